//! Turns the concrete tree into the syntax tree.
//!
//! Ids are assigned in cel-go's order. `&&` and `||` become balanced trees, macros are expanded, literals are decoded.

use super::ast::{
    Ast, Call, Constant, Expr, ExprId, ExprKind, ListExpr, Location, MapEntry, Range, Select, SourceInfo, Struct,
    StructField, operators,
};
use super::builder::{Builder, NODES_MAX};
use super::error::{Issue, Issues};
use super::language::Library;
use super::lexer::{self, Token, TokenKind};
use super::syntax::grammar;
use super::syntax::tree::{Element, FieldName, Leaf, NodeId, SyntaxEntry, SyntaxField, SyntaxNode, Tree};
use super::{escape, literal, macros};

/// The maximum number of code points of an expression.
pub const CODE_POINTS_MAX: usize = 100_000;
/// How deep operators, selections and calls may be nested.
const DEPTH_MAX: u32 = 250;

/// Parses an expression.
///
/// # Errors
/// All syntax errors, with cel-go's messages.
pub fn parse(source: SourceInfo, library: &Library) -> Result<Ast, Issues> {
    parse_with(source, library, false)
}

/// Parses an expression and keeps the macro calls that were expanded, so that [`print`](super::print::print) can show
/// them.
///
/// # Errors
/// The same as [`parse`].
pub fn parse_keeping_macros(source: SourceInfo, library: &Library) -> Result<Ast, Issues> {
    parse_with(source, library, true)
}

fn parse_with(source: SourceInfo, library: &Library, keep_macros: bool) -> Result<Ast, Issues> {
    if source.text.len() > CODE_POINTS_MAX {
        let size = source.text.len();
        let message = format!("expression code point size exceeds limit: size: {size}, limit {CODE_POINTS_MAX}");
        return Err(Issues::new(vec![Issue::new(Location::NONE, message)], &source));
    }
    let tokens = lexer::tokenize_in(library.minor, &source.text);
    let outcome = grammar::read(&source, &tokens);
    let mut builder = Builder { source, library, keep_macros, next: 1, depth: 0, issues: outcome.issues };
    let expr = outcome.tree.and_then(|(tree, root)| {
        let built = builder.build(&tree, root);
        built.map_err(|TooLarge { message }| builder.report(Location::NONE, message.into())).ok()
    });
    match expr {
        Some(expr) if builder.issues.is_empty() => Ok(Ast { expr, source: builder.source }),
        _ => Err(Issues::new(builder.issues, &builder.source)),
    }
}

/// The location at which a macro reports a missing argument.
const BEFORE_TEXT: Location = Location { line: 1, column: -1 };

/// The error that the tree exceeds a limit.
#[derive(Debug)]
pub(super) struct TooLarge {
    message: Box<str>,
}

type Built<T> = Result<T, TooLarge>;

impl Builder<'_> {
    fn drop_id(&mut self, id: ExprId) {
        self.source.clear_range(id);
        if id.0 + 1 == self.next {
            self.next -= 1;
        }
    }

    fn report(&mut self, location: Location, message: String) {
        self.issues.push(Issue::new(location, message));
    }

    /// A placeholder for a part that is missing; the fault has already been reported.
    fn nothing(&mut self) -> Expr {
        Expr { id: ExprId::default(), kind: ExprKind::Constant(Constant::Null) }
    }

    /// A placeholder for a part that is wrong; the fault has already been reported.
    fn wrong(&mut self, range: Range) -> Expr {
        Expr { id: self.id(range), kind: ExprKind::Constant(Constant::Null) }
    }

    fn fault(&mut self, at: Token, message: String) -> Expr {
        let location = self.source.location_of(at.range.start);
        self.report(location, message);
        self.wrong(at.range)
    }

    fn text(&self, leaf: Leaf) -> String {
        if leaf.is_missing {
            return "<missing undefined>".to_owned();
        }
        let Range { start, end } = leaf.token.range;
        self.source.text[start as usize..end as usize].iter().collect()
    }

    fn deeper(&mut self) -> Built<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TooLarge { message: "max recursion depth exceeded".into() });
        }
        Ok(())
    }

    fn build_or_nothing(&mut self, tree: &Tree, node: Option<NodeId>) -> Built<Expr> {
        match node {
            Some(node) => self.build(tree, node),
            None => Ok(self.nothing()),
        }
    }

    // Each kind of node has its own function: this one recurses as deep as the tree goes, so it keeps its stack frame
    // small.
    fn build(&mut self, tree: &Tree, node: NodeId) -> Built<Expr> {
        match tree.node(node) {
            SyntaxNode::Nothing => Ok(self.nothing()),
            SyntaxNode::BrokenUnary { start } => Ok(self.wrong(start.range)),
            SyntaxNode::Conditional { condition, question, then, otherwise } => {
                self.conditional(tree, *condition, *question, [*then, *otherwise])
            }
            SyntaxNode::Logical { is_or, first, rest } => self.logical(tree, *is_or, *first, rest),
            SyntaxNode::Binary { left, operator, right } => self.binary(tree, *left, *operator, *right),
            SyntaxNode::Unary { operators, operand, .. } if operators % 2 == 0 => self.build_or_nothing(tree, *operand),
            SyntaxNode::Unary { first, operand, .. } => self.unary(tree, *first, *operand),
            SyntaxNode::Select { operand, dot, optional, field, .. } => {
                self.deeper()?;
                let operand = self.build(tree, *operand)?;
                self.depth -= 1;
                Ok(self.select(operand, *dot, *optional, *field))
            }
            SyntaxNode::MemberCall { operand, name, parenthesis, args } => {
                self.member_call(tree, *operand, *name, *parenthesis, args)
            }
            SyntaxNode::Index { operand, bracket, optional, index } => {
                self.index(tree, *operand, *bracket, *optional, *index)
            }
            SyntaxNode::Ident { start, leading_dot, name } => Ok(self.ident(*start, *leading_dot, *name)),
            SyntaxNode::GlobalCall { start, leading_dot, name, parenthesis, args } => {
                match self.name(*start, *leading_dot, *name) {
                    Ok(function) => self.global_call(tree, function, *parenthesis, args),
                    Err(nothing) => Ok(nothing),
                }
            }
            SyntaxNode::List { bracket, elements } => self.list(tree, *bracket, elements),
            SyntaxNode::Map { brace, entries } => self.map(tree, *brace, entries),
            SyntaxNode::Message { names, leading_dot, brace, start, fields } => {
                let type_name = self.message_name(*leading_dot, names);
                self.message(tree, type_name, *brace, *start, fields)
            }
            SyntaxNode::Literal { minus, token } => Ok(self.literal(*minus, *token)),
        }
    }

    fn conditional(
        &mut self,
        tree: &Tree,
        condition: NodeId,
        question: Leaf,
        branches: [Option<NodeId>; 2],
    ) -> Built<Expr> {
        self.deeper()?;
        let condition = self.build(tree, condition)?;
        let id = self.id(question.token.range);
        let then = self.build_or_nothing(tree, branches[0])?;
        let otherwise = self.build_or_nothing(tree, branches[1])?;
        self.depth -= 1;
        Ok(call(id, operators::CONDITIONAL, vec![condition, then, otherwise]))
    }

    fn binary(&mut self, tree: &Tree, left: NodeId, operator: Leaf, right: NodeId) -> Built<Expr> {
        self.deeper()?;
        let left = self.build(tree, left)?;
        let id = self.id(operator.token.range);
        let right = self.build(tree, right)?;
        self.depth -= 1;
        Ok(call(id, operator_of(operator.token.kind), vec![left, right]))
    }

    fn unary(&mut self, tree: &Tree, first: Leaf, operand: Option<NodeId>) -> Built<Expr> {
        let id = self.id(first.token.range);
        let operand = self.build_or_nothing(tree, operand)?;
        let is_minus = first.token.kind == TokenKind::Minus;
        let function = if is_minus { operators::NEGATE } else { operators::LOGICAL_NOT };
        Ok(call(id, function, vec![operand]))
    }

    fn member_call(
        &mut self,
        tree: &Tree,
        operand: NodeId,
        name: Leaf,
        parenthesis: Leaf,
        args: &[NodeId],
    ) -> Built<Expr> {
        self.deeper()?;
        let target = self.build(tree, operand)?;
        let id = self.id(parenthesis.token.range);
        let args = self.build_all(tree, args)?;
        self.depth -= 1;
        let name = self.text(name);
        self.call_or_macro(id, name, Some(target), args)
    }

    fn global_call(&mut self, tree: &Tree, function: String, parenthesis: Leaf, args: &[NodeId]) -> Built<Expr> {
        let id = self.id(parenthesis.token.range);
        let args = self.build_all(tree, args)?;
        self.call_or_macro(id, function, None, args)
    }

    fn index(
        &mut self,
        tree: &Tree,
        operand: NodeId,
        bracket: Leaf,
        optional: bool,
        index: Option<NodeId>,
    ) -> Built<Expr> {
        self.deeper()?;
        let target = self.build(tree, operand)?;
        let id = self.id(bracket.token.range);
        let index = self.build_or_nothing(tree, index)?;
        self.depth -= 1;
        if optional && !self.library.optionals {
            return Ok(self.fault(bracket.token, "unsupported syntax '[?'".to_owned()));
        }
        let function = if optional { operators::OPTIONAL_INDEX } else { operators::INDEX };
        Ok(call(id, function, vec![target, index]))
    }

    fn ident(&mut self, start: Token, leading_dot: bool, name: Leaf) -> Expr {
        match self.name(start, leading_dot, name) {
            Ok(text) => Expr { id: self.id(name.token.range), kind: ExprKind::Ident(text) },
            Err(nothing) => nothing,
        }
    }

    fn message_name(&self, leading_dot: bool, names: &[Leaf]) -> String {
        let names: Vec<String> = names.iter().map(|name| self.text(*name)).collect();
        let dot = if leading_dot { "." } else { "" };
        format!("{dot}{}", names.join("."))
    }

    fn message(
        &mut self,
        tree: &Tree,
        type_name: String,
        brace: Leaf,
        start: Option<Token>,
        fields: &[SyntaxField],
    ) -> Built<Expr> {
        let id = self.id(brace.token.range);
        let fields = self.fields(tree, start, fields)?;
        Ok(Expr { id, kind: ExprKind::Struct(Box::new(Struct { type_name, fields })) })
    }

    fn map(&mut self, tree: &Tree, brace: Leaf, entries: &[SyntaxEntry]) -> Built<Expr> {
        let id = self.id(brace.token.range);
        let entries = self.entries(tree, entries)?;
        Ok(Expr { id, kind: ExprKind::Map(entries) })
    }

    fn build_all(&mut self, tree: &Tree, nodes: &[NodeId]) -> Built<Vec<Expr>> {
        let mut built = Vec::with_capacity(nodes.len());
        for node in nodes {
            built.push(self.build(tree, *node)?);
        }
        Ok(built)
    }

    fn logical(&mut self, tree: &Tree, is_or: bool, first: NodeId, rest: &[(Leaf, NodeId)]) -> Built<Expr> {
        let mut terms = Vec::with_capacity(rest.len() + 1);
        let mut ids = Vec::with_capacity(rest.len());
        terms.push(Some(self.build(tree, first)?));
        for (operator, node) in rest {
            terms.push(Some(self.build(tree, *node)?));
            ids.push(self.id(operator.token.range));
        }
        let function = if is_or { operators::LOGICAL_OR } else { operators::LOGICAL_AND };
        Ok(balanced(function, &mut terms, &ids))
    }

    fn select(&mut self, operand: Expr, dot: Leaf, optional: bool, field: FieldName) -> Expr {
        let text = match field.name {
            Some(name) => self.field_text(name, name.token).unwrap_or_default(),
            None => {
                self.fault(field.start, UNSUPPORTED_NAME.to_owned());
                String::new()
            }
        };
        if !optional {
            let select = Select { operand, field: text, test_only: false };
            return Expr { id: self.id(dot.token.range), kind: ExprKind::Select(Box::new(select)) };
        }
        if !self.library.optionals {
            return self.fault(dot.token, "unsupported syntax '.?'".to_owned());
        }
        let field = Expr { id: self.id(field.start.range), kind: ExprKind::Constant(Constant::String(text)) };
        let id = self.id(dot.token.range);
        call(id, operators::OPTIONAL_SELECT, vec![operand, field])
    }

    /// The name of a field, without its backquotes where they are allowed.
    fn field_text(&mut self, name: Leaf, fault_at: Token) -> Option<String> {
        let text = self.text(name);
        match name.token.kind {
            TokenKind::EscapedIdentifier if self.library.quoted_names => Some(text.trim_matches('`').to_owned()),
            TokenKind::EscapedIdentifier => {
                self.fault(fault_at, "unsupported syntax: '`'".to_owned());
                None
            }
            _ => Some(text),
        }
    }

    /// The name of a variable or function; a reserved one is a fault.
    fn name(&mut self, start: Token, leading_dot: bool, name: Leaf) -> Result<String, Expr> {
        let text = self.text(name);
        if escape::is_reserved(&text) {
            return Err(self.fault(start, format!("reserved identifier: {text}")));
        }
        Ok(if leading_dot { format!(".{text}") } else { text })
    }

    fn list(&mut self, tree: &Tree, bracket: Leaf, written: &[Element]) -> Built<Expr> {
        let id = self.id(bracket.token.range);
        let mut list = ListExpr::default();
        for (index, element) in written.iter().enumerate() {
            let value = self.build_or_nothing(tree, element.value)?;
            list.elements.push(value);
            let Some(question) = element.question else { continue };
            if self.library.optionals {
                list.optional.push(index);
            } else {
                self.fault(question.token, UNSUPPORTED_OPTIONAL.to_owned());
            }
        }
        Ok(Expr { id, kind: ExprKind::List(list) })
    }

    fn entries(&mut self, tree: &Tree, written: &[SyntaxEntry]) -> Built<Vec<MapEntry>> {
        let mut entries = Vec::with_capacity(written.len());
        for entry in written {
            let id = self.id(entry.colon.token.range);
            let optional = entry.key.question.is_some();
            if optional && !self.library.optionals {
                self.fault(entry.key.start, UNSUPPORTED_OPTIONAL.to_owned());
                continue;
            }
            let key = self.build_or_nothing(tree, entry.key.value)?;
            let value = self.build(tree, entry.value)?;
            entries.push(MapEntry { id, key, value, optional });
        }
        Ok(entries)
    }

    fn fields(&mut self, tree: &Tree, start: Option<Token>, written: &[SyntaxField]) -> Built<Vec<StructField>> {
        let mut fields = Vec::with_capacity(written.len());
        for field in written {
            let id = self.id(field.colon.token.range);
            let optional = field.question.is_some();
            if optional && !self.library.optionals {
                self.fault(field.start, UNSUPPORTED_OPTIONAL.to_owned());
                continue;
            }
            let Some(name) = field.name.and_then(|name| name.name) else {
                self.fault(start.unwrap_or(field.start), UNSUPPORTED_NAME.to_owned());
                continue;
            };
            let Some(name) = self.field_text(name, start.unwrap_or(field.start)) else { continue };
            let value = self.build(tree, field.value)?;
            fields.push(StructField { id, name, value, optional });
        }
        Ok(fields)
    }

    fn literal(&mut self, minus: Option<Leaf>, token: Leaf) -> Expr {
        let start = minus.unwrap_or(token).token;
        let text = self.text(token);
        match literal::decode(self.library.minor, token.token.kind, minus.is_some(), &text) {
            Ok(constant) => {
                let range = Range { start: start.range.start, end: token.token.range.end };
                Expr { id: self.id(range), kind: ExprKind::Constant(constant) }
            }
            Err(message) => self.fault(start, message.to_owned()),
        }
    }

    fn call_or_macro(&mut self, id: ExprId, function: String, target: Option<Expr>, args: Vec<Expr>) -> Built<Expr> {
        let Some(expand) = macros::find(self.library, &function, args.len(), target.is_some()) else {
            return Ok(Expr { id, kind: ExprKind::Call(Box::new(Call { function, target, args })) });
        };
        let kept = self.keep_macros.then(|| Call { function, target: target.clone(), args: args.clone() });
        let expanded = expand(&mut macros::Expansion { builder: self, at: id }, target, args);
        if self.next > NODES_MAX {
            let message = format!("expression node count exceeds limit: limit {NODES_MAX}");
            return Err(TooLarge { message: message.into() });
        }
        match expanded {
            Ok(expr) => {
                if let Some(call) = kept {
                    let call = Expr { id: ExprId::default(), kind: ExprKind::Call(Box::new(call)) };
                    self.source.macro_calls.insert(expr.id, call);
                }
                self.drop_id(id);
                Ok(expr)
            }
            Err(macros::Misuse { at, message }) => {
                let range = self.source.range(at);
                let location = range.map_or(BEFORE_TEXT, |range| self.source.location_of(range.start));
                self.drop_id(id);
                self.report(location, message);
                Ok(match range {
                    Some(Range { start, .. }) => self.wrong(Range { start, end: start }),
                    None => self.nothing(),
                })
            }
        }
    }
}

const UNSUPPORTED_NAME: &str = "unsupported ident kind";
const UNSUPPORTED_OPTIONAL: &str = "unsupported syntax '?'";

fn call(id: ExprId, function: &str, args: Vec<Expr>) -> Expr {
    let call = Call { function: function.to_owned(), target: None, args };
    Expr { id, kind: ExprKind::Call(Box::new(call)) }
}

/// Joins terms with one operator as a tree of minimum depth.
fn balanced(function: &str, terms: &mut [Option<Expr>], ids: &[ExprId]) -> Expr {
    let Some((id, left_ids, right_ids)) = split(ids) else {
        return terms.first_mut().and_then(Option::take).expect("there is one term more than operators");
    };
    let (left_terms, right_terms) = terms.split_at_mut(left_ids.len() + 1);
    let left = balanced(function, left_terms, left_ids);
    let right = balanced(function, right_terms, right_ids);
    call(id, function, vec![left, right])
}

/// The operator in the middle (the later of two), and those on either side of it.
fn split(ids: &[ExprId]) -> Option<(ExprId, &[ExprId], &[ExprId])> {
    let middle = ids.len() / 2;
    let id = *ids.get(middle)?;
    Some((id, &ids[..middle], &ids[middle + 1..]))
}

fn operator_of(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::Equals => operators::EQUALS,
        TokenKind::NotEquals => operators::NOT_EQUALS,
        TokenKind::In => operators::IN,
        TokenKind::Less => operators::LESS,
        TokenKind::LessEquals => operators::LESS_EQUALS,
        TokenKind::GreaterEquals => operators::GREATER_EQUALS,
        TokenKind::Greater => operators::GREATER,
        TokenKind::Plus => operators::ADD,
        TokenKind::Minus => operators::SUBTRACT,
        TokenKind::Star => operators::MULTIPLY,
        TokenKind::Slash => operators::DIVIDE,
        _ => operators::MODULO,
    }
}

#[cfg(test)]
mod tests;
