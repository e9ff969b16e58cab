//! The positions in the rules of the grammar where a fault can occur, and the tokens that may come there.

use crate::cel::lexer::TokenKind;

/// A set of token kinds, and whether the rule may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenSet(u64);

const RULE_END: u64 = 1 << 63;

const fn of(kinds: &[TokenKind]) -> TokenSet {
    let mut bits = 0;
    let mut at = 0;
    while at < kinds.len() {
        bits |= 1 << kinds[at] as u8;
        at += 1;
    }
    TokenSet(bits)
}

impl TokenSet {
    pub const NONE: TokenSet = TokenSet(0);
    /// Nothing more: the rule ends.
    pub const END: TokenSet = TokenSet(RULE_END);

    pub const fn and(self, other: TokenSet) -> TokenSet {
        TokenSet(self.0 | other.0)
    }

    pub const fn or_end(self) -> TokenSet {
        TokenSet(self.0 | RULE_END)
    }

    pub const fn without_end(self) -> TokenSet {
        TokenSet(self.0 & !RULE_END)
    }

    pub const fn without(self, kind: TokenKind) -> TokenSet {
        TokenSet(self.0 & !(1 << kind as u8))
    }

    pub const fn may_end(self) -> bool {
        self.0 & RULE_END != 0
    }

    pub const fn contains(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds in order.
    pub fn kinds(self) -> impl Iterator<Item = TokenKind> {
        NAMES.iter().map(|(kind, _)| *kind).filter(move |kind| self.contains(*kind))
    }
}

/// Prints a list of expected tokens: `'+'`, `{'.', IDENTIFIER}`.
impl std::fmt::Display for TokenSet {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = NAMES.iter().filter(|(kind, _)| self.contains(*kind)).map(|(_, name)| *name).collect();
        match names.as_slice() {
            [name] => formatter.write_str(name),
            names => write!(formatter, "{{{}}}", names.join(", ")),
        }
    }
}

const NAMES: [(TokenKind, &str); 36] = [
    (TokenKind::EndOfInput, "<EOF>"),
    (TokenKind::Equals, "'=='"),
    (TokenKind::NotEquals, "'!='"),
    (TokenKind::In, "'in'"),
    (TokenKind::Less, "'<'"),
    (TokenKind::LessEquals, "'<='"),
    (TokenKind::GreaterEquals, "'>='"),
    (TokenKind::Greater, "'>'"),
    (TokenKind::LogicalAnd, "'&&'"),
    (TokenKind::LogicalOr, "'||'"),
    (TokenKind::LeftBracket, "'['"),
    (TokenKind::RightBracket, "']'"),
    (TokenKind::LeftBrace, "'{'"),
    (TokenKind::RightBrace, "'}'"),
    (TokenKind::LeftParenthesis, "'('"),
    (TokenKind::RightParenthesis, "')'"),
    (TokenKind::Dot, "'.'"),
    (TokenKind::Comma, "','"),
    (TokenKind::Minus, "'-'"),
    (TokenKind::Exclamation, "'!'"),
    (TokenKind::Question, "'?'"),
    (TokenKind::Colon, "':'"),
    (TokenKind::Plus, "'+'"),
    (TokenKind::Star, "'*'"),
    (TokenKind::Slash, "'/'"),
    (TokenKind::Percent, "'%'"),
    (TokenKind::True, "'true'"),
    (TokenKind::False, "'false'"),
    (TokenKind::Null, "'null'"),
    (TokenKind::Float, "NUM_FLOAT"),
    (TokenKind::Int, "NUM_INT"),
    (TokenKind::Uint, "NUM_UINT"),
    (TokenKind::String, "STRING"),
    (TokenKind::Bytes, "BYTES"),
    (TokenKind::Identifier, "IDENTIFIER"),
    (TokenKind::EscapedIdentifier, "ESC_IDENTIFIER"),
];

/// A position in a rule: the tokens that may come there, and those that may come after that one token.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedTokens {
    /// Identifies the position; below 64.
    pub number: u8,
    pub next: TokenSet,
    /// The tokens that may come after the expected one; only for positions with a single expected token.
    pub after: TokenSet,
}

const fn token(number: u8, kind: TokenKind, after: TokenSet) -> ExpectedTokens {
    ExpectedTokens { number, next: of(&[kind]), after }
}

const fn choice(number: u8, next: TokenSet) -> ExpectedTokens {
    ExpectedTokens { number, next, after: TokenSet::NONE }
}

const LITERAL: TokenSet = of(&[
    TokenKind::Minus,
    TokenKind::True,
    TokenKind::False,
    TokenKind::Null,
    TokenKind::Float,
    TokenKind::Int,
    TokenKind::Uint,
    TokenKind::String,
    TokenKind::Bytes,
]);
/// The tokens that begin an operand without an operator.
pub const OPERAND: TokenSet = LITERAL.and(of(&[
    TokenKind::LeftBracket,
    TokenKind::LeftBrace,
    TokenKind::LeftParenthesis,
    TokenKind::Dot,
    TokenKind::Identifier,
]));
/// The tokens that begin an expression.
pub const EXPRESSION: TokenSet = OPERAND.and(of(&[TokenKind::Exclamation]));
/// The tokens that begin an element of a list.
pub const ELEMENT: TokenSet = EXPRESSION.and(of(&[TokenKind::Question]));
/// The tokens that begin the name of a field.
pub const FIELD: TokenSet = of(&[TokenKind::Identifier, TokenKind::EscapedIdentifier]);
const OPTIONAL_FIELD: TokenSet = FIELD.and(of(&[TokenKind::Question]));
pub const COMPARISON: TokenSet = of(&[
    TokenKind::Equals,
    TokenKind::NotEquals,
    TokenKind::In,
    TokenKind::Less,
    TokenKind::LessEquals,
    TokenKind::GreaterEquals,
    TokenKind::Greater,
]);
pub const PRODUCT: TokenSet = of(&[TokenKind::Star, TokenKind::Slash, TokenKind::Percent]);
pub const SUM: TokenSet = of(&[TokenKind::Plus, TokenKind::Minus]);
const COMMA: TokenSet = of(&[TokenKind::Comma]);
const COLON: TokenSet = of(&[TokenKind::Colon]);

/// The tokens that may follow in a rule after a rule that it calls.
pub mod follow {
    use super::{COLON, COMMA, COMPARISON, PRODUCT, SUM, TokenKind, TokenSet, of};

    pub const START: TokenSet = of(&[TokenKind::EndOfInput]);
    pub const CONDITION: TokenSet = of(&[TokenKind::Question]).or_end();
    pub const THEN: TokenSet = COLON;
    pub const OTHERWISE: TokenSet = TokenSet::END;
    pub const OR_OPERAND: TokenSet = of(&[TokenKind::LogicalOr]).or_end();
    pub const AND_OPERAND: TokenSet = of(&[TokenKind::LogicalAnd]).or_end();
    pub const COMPARED: TokenSet = COMPARISON.or_end();
    pub const CALCULATED: TokenSet = PRODUCT.and(SUM).or_end();
    pub const NEGATED: TokenSet = TokenSet::END;
    pub const MEMBER: TokenSet = of(&[TokenKind::Dot, TokenKind::LeftBracket]).or_end();
    pub const ARGUMENTS: TokenSet = of(&[TokenKind::RightParenthesis]);
    pub const INDEX: TokenSet = of(&[TokenKind::RightBracket]);
    pub const ELEMENTS: TokenSet = of(&[TokenKind::Comma, TokenKind::RightBracket]);
    pub const ENTRIES: TokenSet = of(&[TokenKind::Comma, TokenKind::RightBrace]);
    pub const ARGUMENT: TokenSet = COMMA.or_end();
    pub const KEY: TokenSet = COLON;
    pub const VALUE: TokenSet = COMMA.or_end();
    pub const LITERAL: TokenSet = TokenSet::END;
    pub const FIELD: TokenSet = TokenSet::END;
    pub const ELEMENT: TokenSet = TokenSet::END;
}

pub const START: ExpectedTokens = choice(0, EXPRESSION);
pub const END_OF_INPUT: ExpectedTokens = token(1, TokenKind::EndOfInput, TokenSet::END);

pub const EXPR: ExpectedTokens = choice(2, EXPRESSION);
pub const EXPR_QUESTION: ExpectedTokens = choice(3, follow::CONDITION);
pub const QUESTION: ExpectedTokens = token(4, TokenKind::Question, EXPRESSION);
pub const THEN: ExpectedTokens = choice(5, EXPRESSION);
pub const CONDITION_COLON: ExpectedTokens = token(6, TokenKind::Colon, EXPRESSION);
pub const OTHERWISE: ExpectedTokens = choice(7, EXPRESSION);

pub const OR: ExpectedTokens = choice(8, follow::OR_OPERAND);
pub const OR_OPERAND: ExpectedTokens = choice(9, EXPRESSION);
pub const AND: ExpectedTokens = choice(10, follow::AND_OPERAND);
pub const AND_OPERAND: ExpectedTokens = choice(11, EXPRESSION);
pub const COMPARED: ExpectedTokens = choice(12, follow::COMPARED);
pub const COMPARED_OPERAND: ExpectedTokens = choice(13, EXPRESSION);
pub const CALCULATED: ExpectedTokens = choice(14, follow::CALCULATED);
pub const CALCULATED_OPERAND: ExpectedTokens = choice(15, EXPRESSION);

pub const UNARY: ExpectedTokens = choice(16, EXPRESSION);
pub const NOT: ExpectedTokens = choice(17, OPERAND.and(of(&[TokenKind::Exclamation])));
pub const NOT_OPERAND: ExpectedTokens = choice(18, OPERAND);
pub const NEGATE: ExpectedTokens = choice(19, OPERAND);
pub const NEGATE_OPERAND: ExpectedTokens = choice(20, OPERAND);

pub const MEMBER: ExpectedTokens = choice(21, follow::MEMBER);
pub const MEMBER_SUFFIX: ExpectedTokens = choice(22, of(&[TokenKind::Dot, TokenKind::LeftBracket]));
pub const SELECT_FIELD: ExpectedTokens = choice(23, FIELD);
pub const CALL_ARGUMENTS: ExpectedTokens = choice(24, EXPRESSION.and(follow::ARGUMENTS));
pub const CALL_END: ExpectedTokens = token(25, TokenKind::RightParenthesis, follow::MEMBER);
pub const INDEX: ExpectedTokens = choice(26, ELEMENT);
pub const INDEX_OPERAND: ExpectedTokens = choice(27, EXPRESSION);
pub const INDEX_END: ExpectedTokens = token(28, TokenKind::RightBracket, follow::MEMBER);

pub const PRIMARY: ExpectedTokens = choice(29, OPERAND);
pub const GLOBAL_ARGUMENTS: ExpectedTokens = choice(30, EXPRESSION.and(follow::ARGUMENTS));
pub const GLOBAL_END: ExpectedTokens = token(31, TokenKind::RightParenthesis, TokenSet::END);
pub const NESTED: ExpectedTokens = choice(32, EXPRESSION);
pub const NESTED_END: ExpectedTokens = token(33, TokenKind::RightParenthesis, TokenSet::END);
pub const LIST: ExpectedTokens = choice(34, ELEMENT.and(follow::ELEMENTS));
pub const LIST_COMMA: ExpectedTokens = choice(35, follow::ELEMENTS);
pub const LIST_END: ExpectedTokens = token(36, TokenKind::RightBracket, TokenSet::END);
pub const MAP: ExpectedTokens = choice(37, ELEMENT.and(follow::ENTRIES));
pub const MAP_COMMA: ExpectedTokens = choice(38, follow::ENTRIES);
pub const MAP_END: ExpectedTokens = token(39, TokenKind::RightBrace, TokenSet::END);
pub const MESSAGE: ExpectedTokens = choice(40, OPTIONAL_FIELD.and(follow::ENTRIES));
pub const MESSAGE_COMMA: ExpectedTokens = choice(41, follow::ENTRIES);
pub const MESSAGE_END: ExpectedTokens = token(42, TokenKind::RightBrace, TokenSet::END);
pub const LITERAL_TOKEN: ExpectedTokens = choice(43, LITERAL);

pub const ARGUMENT: ExpectedTokens = choice(44, follow::ARGUMENT);
pub const ARGUMENT_OPERAND: ExpectedTokens = choice(45, EXPRESSION);
pub const ELEMENTS: ExpectedTokens = choice(46, follow::ARGUMENT);
pub const ELEMENTS_OPERAND: ExpectedTokens = choice(47, ELEMENT);
pub const ELEMENT_START: ExpectedTokens = choice(48, ELEMENT);
pub const ELEMENT_OPERAND: ExpectedTokens = choice(49, EXPRESSION);

pub const FIELDS_NAME: ExpectedTokens = choice(50, OPTIONAL_FIELD);
pub const FIELDS_COLON: ExpectedTokens = token(51, TokenKind::Colon, EXPRESSION);
pub const FIELDS_VALUE: ExpectedTokens = choice(52, EXPRESSION);
pub const FIELDS: ExpectedTokens = choice(53, follow::VALUE);
pub const OPTIONAL_FIELD_START: ExpectedTokens = choice(54, OPTIONAL_FIELD);
pub const OPTIONAL_FIELD_NAME: ExpectedTokens = choice(55, FIELD);
pub const FIELD_NAME: ExpectedTokens = choice(56, FIELD);

pub const ENTRIES_KEY: ExpectedTokens = choice(57, ELEMENT);
pub const ENTRIES_COLON: ExpectedTokens = token(58, TokenKind::Colon, EXPRESSION);
pub const ENTRIES_VALUE: ExpectedTokens = choice(59, EXPRESSION);
pub const ENTRIES: ExpectedTokens = choice(60, follow::VALUE);
