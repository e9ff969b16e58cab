//! The rules of the grammar, as recursive descent.
//!
//! A rule that meets a fault reports it, skips to where its callers can continue, and returns what it has. A rule fails
//! only at a limit. Which alternative a rule takes is decided by looking a few tokens ahead, with the result that
//! ANTLR's prediction has for this grammar.

use crate::cel::ast::SourceInfo;
use crate::cel::lexer::{Token, TokenKind, Tokens};

use super::place::{self, ExpectedTokens, TokenSet, follow};
use super::recovery::{GrammarRule, RecoveredParse, RuleFailure, RuleReader, Stopped};
use super::tree::{Element, FieldName, NodeId, SyntaxEntry, SyntaxField, SyntaxNode};

type ReadResult<T> = Result<T, Stopped>;

/// Reads an expression.
pub fn read(source: &SourceInfo, tokens: &Tokens) -> RecoveredParse {
    let mut reader = RuleReader::new(source, tokens);
    let root = start(&mut reader);
    reader.finish(root)
}

/// `start: expr EOF`
fn start(reader: &mut RuleReader<'_>) -> ReadResult<NodeId> {
    reader.stand(place::START);
    let root = reader.expr(follow::START)?;
    let outcome = reader.expect(place::END_OF_INPUT).map(|_| ());
    reader.settle(outcome)?;
    Ok(root)
}

/// The parts of a conditional that have been read.
struct Conditional {
    condition: NodeId,
    question: Option<super::tree::Leaf>,
    then: Option<NodeId>,
    otherwise: Option<NodeId>,
}

impl RuleReader<'_> {
    /// `expr: conditionalOr ('?' conditionalOr ':' expr)?`
    fn expr(&mut self, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Expr, follow)?;
        self.stand(place::EXPR);
        let condition = self.logical(true, follow::CONDITION)?;
        self.stand(place::EXPR_QUESTION);
        if self.kind(0) != TokenKind::Question {
            self.leave(GrammarRule::Expr);
            return Ok(condition);
        }
        let mut parts = Conditional { condition, question: None, then: None, otherwise: None };
        let outcome = self.branches(&mut parts);
        self.settle(outcome)?;
        self.leave(GrammarRule::Expr);
        let Conditional { condition, question: Some(question), then, otherwise } = parts else { return Ok(condition) };
        Ok(self.tree.add(SyntaxNode::Conditional { condition, question, then, otherwise }))
    }

    fn branches(&mut self, parts: &mut Conditional) -> Result<(), RuleFailure> {
        parts.question = Some(self.expect(place::QUESTION)?);
        self.stand(place::THEN);
        parts.then = Some(self.logical(true, follow::THEN)?);
        self.expect(place::CONDITION_COLON)?;
        self.stand(place::OTHERWISE);
        parts.otherwise = Some(self.expr(follow::OTHERWISE)?);
        Ok(())
    }

    /// `conditionalOr: conditionalAnd ('||' conditionalAnd)*` and `conditionalAnd: relation ('&&' relation)*`
    fn logical(&mut self, is_or: bool, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Other, follow)?;
        let (operator, here, operand) = if is_or {
            (TokenKind::LogicalOr, place::OR, place::OR_OPERAND)
        } else {
            (TokenKind::LogicalAnd, place::AND, place::AND_OPERAND)
        };
        let first = self.logical_operand(is_or, operand)?;
        self.stand(here);
        let mut rest = Vec::new();
        while self.kind(0) == operator {
            let operator = self.take();
            rest.push((operator, self.logical_operand(is_or, operand)?));
            self.stand(here);
        }
        self.leave(GrammarRule::Other);
        if rest.is_empty() { Ok(first) } else { Ok(self.tree.add(SyntaxNode::Logical { is_or, first, rest })) }
    }

    fn logical_operand(&mut self, is_or: bool, here: ExpectedTokens) -> ReadResult<NodeId> {
        self.stand(here);
        if is_or { self.logical(false, follow::OR_OPERAND) } else { self.relation(0, follow::AND_OPERAND) }
    }

    /// `relation: calc | relation ('<' | … | 'in') relation`; only operators of at least `binding` are taken.
    fn relation(&mut self, binding: u8, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Relation, follow)?;
        self.stand(place::COMPARED_OPERAND);
        let mut left = self.calc(0, follow::COMPARED)?;
        self.stand(place::COMPARED);
        while binding <= 1 && place::COMPARISON.contains(self.kind(0)) {
            let operator = self.take();
            self.stand(place::COMPARED_OPERAND);
            let right = self.relation(2, follow::COMPARED)?;
            left = self.tree.add(SyntaxNode::Binary { left, operator, right });
            self.stand(place::COMPARED);
        }
        self.leave(GrammarRule::Relation);
        Ok(left)
    }

    /// `calc: unary | calc ('*' | '/' | '%') calc | calc ('+' | '-') calc`; `binding` works as in
    /// [`RuleReader::relation`].
    fn calc(&mut self, binding: u8, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Calc, follow)?;
        self.stand(place::CALCULATED_OPERAND);
        let mut left = self.unary(follow::CALCULATED)?;
        loop {
            self.stand(place::CALCULATED);
            let strength = match self.kind(0) {
                kind if place::PRODUCT.contains(kind) => 2,
                kind if place::SUM.contains(kind) => 1,
                _ => 0,
            };
            if strength == 0 || strength < binding {
                break;
            }
            let operator = self.take();
            self.stand(place::CALCULATED_OPERAND);
            let right = self.calc(strength + 1, follow::CALCULATED)?;
            left = self.tree.add(SyntaxNode::Binary { left, operator, right });
        }
        self.leave(GrammarRule::Calc);
        Ok(left)
    }

    /// `unary: member | '!'+ member | '-'+ member`
    fn unary(&mut self, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Other, follow)?;
        let start = self.token(0);
        let mut node = None;
        let outcome = self.unary_parts(&mut node);
        self.settle(outcome)?;
        self.leave(GrammarRule::Other);
        Ok(node.unwrap_or_else(|| self.tree.add(SyntaxNode::BrokenUnary { start })))
    }

    fn unary_parts(&mut self, node: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        self.check(place::UNARY)?;
        let (first, mut operators) = match self.kind(0) {
            TokenKind::Exclamation => {
                let first = self.take();
                let mut operators = 1;
                self.check_repeated(place::NOT);
                while self.kind(0) == TokenKind::Exclamation {
                    self.take();
                    operators += 1;
                    self.check_repeated(place::NOT);
                }
                self.stand(place::NOT_OPERAND);
                let operand = Some(self.member(follow::NEGATED)?);
                *node = Some(self.tree.add(SyntaxNode::Unary { operators, first, operand }));
                return Ok(());
            }
            TokenKind::Minus if !self.is_negative_literal()? => (self.take(), 1),
            kind if place::OPERAND.contains(kind) => {
                *node = Some(self.member(follow::NEGATED)?);
                return Ok(());
            }
            _ => return Err(RuleFailure::NoViable(self.at, self.at)),
        };
        loop {
            self.check_repeated(place::NEGATE);
            match (self.kind(0), self.kind(1)) {
                (TokenKind::Minus, next) if place::OPERAND.contains(next) => {
                    self.take();
                    operators += 1;
                }
                (TokenKind::Minus, _) => {
                    *node = Some(self.tree.add(SyntaxNode::Unary { operators, first, operand: None }));
                    return Err(RuleFailure::NoViable(self.at, self.at + 1));
                }
                (kind, _) if place::OPERAND.contains(kind) => break,
                _ => {
                    *node = Some(self.tree.add(SyntaxNode::Unary { operators, first, operand: None }));
                    return Err(RuleFailure::NoViable(self.at, self.at));
                }
            }
        }
        self.stand(place::NEGATE_OPERAND);
        let operand = Some(self.member(follow::NEGATED)?);
        *node = Some(self.tree.add(SyntaxNode::Unary { operators, first, operand }));
        Ok(())
    }

    /// Whether the minus at the current token belongs to a number.
    fn is_negative_literal(&mut self) -> Result<bool, RuleFailure> {
        match self.kind(1) {
            TokenKind::Int | TokenKind::Float => Ok(true),
            kind if place::OPERAND.contains(kind) => Ok(false),
            _ => Err(RuleFailure::NoViable(self.at, self.at + 1)),
        }
    }

    /// `member: primary | member '.' '?'? name | member '.' IDENTIFIER '(' … ')' | member '[' '?'? expr ']'`
    fn member(&mut self, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Other, follow)?;
        self.stand(place::MEMBER);
        let mut node = self.primary(follow::MEMBER)?;
        let outcome = self.suffixes(&mut node);
        self.settle(outcome)?;
        self.leave(GrammarRule::Other);
        Ok(node)
    }

    fn suffixes(&mut self, node: &mut NodeId) -> Result<(), RuleFailure> {
        loop {
            self.stand(place::MEMBER);
            match self.kind(0) {
                TokenKind::LeftBracket => self.index(node)?,
                TokenKind::Dot => {
                    self.stand(place::MEMBER_SUFFIX);
                    match (self.kind(1), self.kind(2)) {
                        (TokenKind::Identifier, TokenKind::LeftParenthesis) => self.member_call(node)?,
                        (TokenKind::Identifier | TokenKind::EscapedIdentifier | TokenKind::Question, _) => {
                            self.select(node)?;
                        }
                        _ => return Err(RuleFailure::NoViable(self.at, self.at + 1)),
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn select(&mut self, node: &mut NodeId) -> ReadResult<()> {
        let dot = self.take();
        let optional = self.kind(0) == TokenKind::Question;
        if optional {
            self.take();
        }
        self.stand(place::SELECT_FIELD);
        let field = self.field_name(follow::MEMBER)?;
        *node = self.tree.add(SyntaxNode::Select { operand: *node, dot, optional, field });
        Ok(())
    }

    fn member_call(&mut self, node: &mut NodeId) -> Result<(), RuleFailure> {
        self.take();
        let (name, parenthesis) = (self.take(), self.take());
        let mut args = Vec::new();
        let outcome = self.arguments(&mut args, place::CALL_ARGUMENTS, place::CALL_END);
        *node = self.tree.add(SyntaxNode::MemberCall { operand: *node, name, parenthesis, args });
        outcome
    }

    fn index(&mut self, node: &mut NodeId) -> Result<(), RuleFailure> {
        let bracket = self.take();
        let (mut optional, mut index) = (false, None);
        let outcome = self.index_parts(&mut optional, &mut index);
        *node = self.tree.add(SyntaxNode::Index { operand: *node, bracket, optional, index });
        outcome
    }

    fn index_parts(&mut self, optional: &mut bool, index: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        self.check(place::INDEX)?;
        if self.kind(0) == TokenKind::Question {
            self.take();
            *optional = true;
        }
        self.stand(place::INDEX_OPERAND);
        *index = Some(self.expr(follow::INDEX)?);
        self.expect(place::INDEX_END)?;
        Ok(())
    }

    /// `primary`: names, calls, brackets of all kinds, literals.
    fn primary(&mut self, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Other, follow)?;
        let mut node = None;
        let outcome = self.primary_parts(&mut node);
        self.settle(outcome)?;
        self.leave(GrammarRule::Other);
        Ok(node.unwrap_or_else(|| self.tree.add(SyntaxNode::Nothing)))
    }

    fn primary_parts(&mut self, node: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        let start = self.token(0);
        self.check(place::PRIMARY)?;
        match self.kind(0) {
            TokenKind::LeftParenthesis => {
                self.take();
                self.stand(place::NESTED);
                *node = Some(self.expr(follow::ARGUMENTS)?);
                self.expect(place::NESTED_END)?;
                Ok(())
            }
            TokenKind::LeftBracket => self.list(node),
            TokenKind::LeftBrace => self.map(node),
            TokenKind::Dot if self.kind(1) != TokenKind::Identifier => Err(RuleFailure::NoViable(self.at, self.at + 1)),
            TokenKind::Dot | TokenKind::Identifier => self.named(start, node),
            kind if place::OPERAND.contains(kind) => {
                *node = Some(self.literal(follow::LITERAL)?);
                Ok(())
            }
            _ => Err(RuleFailure::NoViable(self.at, self.at)),
        }
    }

    /// Reads a name, a call of a function, or a message.
    fn named(&mut self, start: Token, node: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        let leading_dot = self.kind(0) == TokenKind::Dot;
        let name_at = usize::from(leading_dot);
        if self.kind(name_at + 1) == TokenKind::LeftParenthesis {
            if leading_dot {
                self.take();
            }
            let (name, parenthesis) = (self.take(), self.take());
            let mut args = Vec::new();
            let outcome = self.arguments(&mut args, place::GLOBAL_ARGUMENTS, place::GLOBAL_END);
            *node = Some(self.tree.add(SyntaxNode::GlobalCall { start, leading_dot, name, parenthesis, args }));
            return outcome;
        }
        let mut end = name_at + 1;
        while self.kind(end) == TokenKind::Dot && self.kind(end + 1) == TokenKind::Identifier {
            end += 2;
        }
        if self.kind(end) == TokenKind::LeftBrace {
            return self.message(leading_dot, node);
        }
        if leading_dot {
            self.take();
        }
        let name = self.take();
        *node = Some(self.tree.add(SyntaxNode::Ident { start, leading_dot, name }));
        Ok(())
    }

    fn message(&mut self, leading_dot: bool, node: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        if leading_dot {
            self.take();
        }
        let mut names = vec![self.take()];
        while self.kind(0) == TokenKind::Dot {
            self.take();
            names.push(self.take());
        }
        let brace = self.take();
        let (mut start, mut fields) = (None, Vec::new());
        let outcome = self.message_parts(&mut start, &mut fields);
        *node = Some(self.tree.add(SyntaxNode::Message { names, leading_dot, brace, start, fields }));
        outcome
    }

    fn message_parts(&mut self, start: &mut Option<Token>, fields: &mut Vec<SyntaxField>) -> Result<(), RuleFailure> {
        self.check(place::MESSAGE)?;
        if place::FIELD.contains(self.kind(0)) || self.kind(0) == TokenKind::Question {
            *start = Some(self.token(0));
            self.stand(place::MESSAGE);
            self.enter(GrammarRule::Other, follow::ENTRIES)?;
            let outcome = self.fields(fields);
            self.settle(outcome)?;
            self.leave(GrammarRule::Other);
        }
        self.close(place::MESSAGE_COMMA, place::MESSAGE_END)
    }

    /// `fieldInitializerList: optField ':' expr (',' optField ':' expr)*`
    fn fields(&mut self, fields: &mut Vec<SyntaxField>) -> Result<(), RuleFailure> {
        loop {
            self.stand(place::FIELDS_NAME);
            let (start, question, name) = self.optional_field(follow::KEY)?;
            let colon = self.expect(place::FIELDS_COLON)?;
            self.stand(place::FIELDS_VALUE);
            let value = self.expr(follow::VALUE)?;
            fields.push(SyntaxField { start, question, name, colon, value });
            self.stand(place::FIELDS);
            let next = self.kind(1);
            let goes_on = place::FIELD.contains(next) || next == TokenKind::Question;
            if self.kind(0) != TokenKind::Comma || !goes_on {
                return Ok(());
            }
            self.take();
        }
    }

    /// `optField: '?'? name`
    fn optional_field(
        &mut self,
        follow: TokenSet,
    ) -> ReadResult<(Token, Option<super::tree::Leaf>, Option<FieldName>)> {
        self.enter(GrammarRule::Other, follow)?;
        let start = self.token(0);
        let (mut question, mut name) = (None, None);
        let outcome = self.check(place::OPTIONAL_FIELD_START);
        if outcome.is_ok() {
            if self.kind(0) == TokenKind::Question {
                question = Some(self.take());
            }
            self.stand(place::OPTIONAL_FIELD_NAME);
            name = Some(self.field_name(follow::FIELD)?);
        }
        self.settle(outcome)?;
        self.leave(GrammarRule::Other);
        Ok((start, question, name))
    }

    /// `escapeIdent: IDENTIFIER | ESC_IDENTIFIER`
    fn field_name(&mut self, follow: TokenSet) -> ReadResult<FieldName> {
        self.enter(GrammarRule::Other, follow)?;
        let start = self.token(0);
        let mut outcome = self.check(place::FIELD_NAME);
        let mut name = None;
        if outcome.is_ok() {
            if place::FIELD.contains(self.kind(0)) {
                name = Some(self.take());
            } else {
                outcome = Err(RuleFailure::NoViable(self.at, self.at));
            }
        }
        self.settle(outcome)?;
        self.leave(GrammarRule::Other);
        Ok(FieldName { start, name })
    }

    /// Reads the arguments of a call and the closing parenthesis: `exprList? ')'`.
    fn arguments(
        &mut self,
        args: &mut Vec<NodeId>,
        open: ExpectedTokens,
        close: ExpectedTokens,
    ) -> Result<(), RuleFailure> {
        self.check(open)?;
        if place::EXPRESSION.contains(self.kind(0)) {
            self.enter(GrammarRule::Other, follow::ARGUMENTS)?;
            loop {
                self.stand(place::ARGUMENT_OPERAND);
                args.push(self.expr(follow::ARGUMENT)?);
                self.stand(place::ARGUMENT);
                if self.kind(0) != TokenKind::Comma {
                    break;
                }
                self.take();
            }
            self.leave(GrammarRule::Other);
        }
        self.expect(close)?;
        Ok(())
    }

    fn list(&mut self, node: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        let bracket = self.take();
        let mut elements = Vec::new();
        let outcome = self.list_parts(&mut elements);
        *node = Some(self.tree.add(SyntaxNode::List { bracket, elements }));
        outcome
    }

    /// `listInit? ','? ']'` with `listInit: optExpr (',' optExpr)*`
    fn list_parts(&mut self, elements: &mut Vec<Element>) -> Result<(), RuleFailure> {
        self.check(place::LIST)?;
        if place::ELEMENT.contains(self.kind(0)) {
            self.enter(GrammarRule::Other, follow::ELEMENTS)?;
            loop {
                self.stand(place::ELEMENTS_OPERAND);
                elements.push(self.element(follow::ARGUMENT)?);
                self.stand(place::ELEMENTS);
                if self.kind(0) != TokenKind::Comma || !place::ELEMENT.contains(self.kind(1)) {
                    break;
                }
                self.take();
            }
            self.leave(GrammarRule::Other);
        }
        self.close(place::LIST_COMMA, place::LIST_END)
    }

    /// Reads an optional comma and the closing bracket.
    fn close(&mut self, comma: ExpectedTokens, end: ExpectedTokens) -> Result<(), RuleFailure> {
        self.check(comma)?;
        if self.kind(0) == TokenKind::Comma {
            self.take();
        }
        self.expect(end)?;
        Ok(())
    }

    fn map(&mut self, node: &mut Option<NodeId>) -> Result<(), RuleFailure> {
        let brace = self.take();
        let mut entries = Vec::new();
        let outcome = self.map_parts(&mut entries);
        *node = Some(self.tree.add(SyntaxNode::Map { brace, entries }));
        outcome
    }

    fn map_parts(&mut self, entries: &mut Vec<SyntaxEntry>) -> Result<(), RuleFailure> {
        self.check(place::MAP)?;
        if place::ELEMENT.contains(self.kind(0)) {
            self.enter(GrammarRule::Other, follow::ENTRIES)?;
            let outcome = self.entries(entries);
            self.settle(outcome)?;
            self.leave(GrammarRule::Other);
        }
        self.close(place::MAP_COMMA, place::MAP_END)
    }

    /// `mapInitializerList: optExpr ':' expr (',' optExpr ':' expr)*`
    fn entries(&mut self, entries: &mut Vec<SyntaxEntry>) -> Result<(), RuleFailure> {
        loop {
            self.stand(place::ENTRIES_KEY);
            let key = self.element(follow::KEY)?;
            let colon = self.expect(place::ENTRIES_COLON)?;
            self.stand(place::ENTRIES_VALUE);
            let value = self.expr(follow::VALUE)?;
            entries.push(SyntaxEntry { key, colon, value });
            self.stand(place::ENTRIES);
            if self.kind(0) != TokenKind::Comma || !place::ELEMENT.contains(self.kind(1)) {
                return Ok(());
            }
            self.take();
        }
    }

    /// `optExpr: '?'? expr`
    fn element(&mut self, follow: TokenSet) -> ReadResult<Element> {
        self.enter(GrammarRule::Other, follow)?;
        let start = self.token(0);
        let (mut question, mut value) = (None, None);
        let outcome = self.check(place::ELEMENT_START);
        if outcome.is_ok() {
            if self.kind(0) == TokenKind::Question {
                question = Some(self.take());
            }
            self.stand(place::ELEMENT_OPERAND);
            value = Some(self.expr(follow::ELEMENT)?);
        }
        self.settle(outcome)?;
        self.leave(GrammarRule::Other);
        Ok(Element { start, question, value })
    }

    /// `literal`: numbers with their sign, strings, bytes, `true`, `false` and `null`.
    fn literal(&mut self, follow: TokenSet) -> ReadResult<NodeId> {
        self.enter(GrammarRule::Other, follow)?;
        self.stand(place::LITERAL_TOKEN);
        let has_minus = self.kind(0) == TokenKind::Minus;
        let node = if has_minus && !matches!(self.kind(1), TokenKind::Int | TokenKind::Float) {
            self.settle(Err(RuleFailure::NoViable(self.at, self.at + 1)))?;
            SyntaxNode::Nothing
        } else {
            let minus = if has_minus { Some(self.take()) } else { None };
            SyntaxNode::Literal { minus, token: self.take() }
        };
        self.leave(GrammarRule::Other);
        Ok(self.tree.add(node))
    }
}
