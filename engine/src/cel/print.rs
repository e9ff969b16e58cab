//! Prints a syntax tree as text.
//!
//! Parsing the text with [`parse_keeping_macros`](super::parser::parse_keeping_macros) gives the same tree, apart from
//! ids and positions. Parentheses are printed only where they are needed, and macros as they were called.

use std::fmt::Write;

use super::ast::{Ast, Call, Constant, Expr, ExprKind, ListExpr, MapEntry, Select, SourceInfo, Struct, operators};

/// Prints a tree. Returns `None` if it has macros whose calls were not kept, so that only their expansions are known.
pub fn print(ast: &Ast) -> Option<String> {
    let mut printer = Printer { source: &ast.source, text: String::new() };
    printer.expr(&ast.expr, Strength::Expression)?;
    Some(printer.text)
}

/// How tightly an expression binds, from the loosest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Expression,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

impl Strength {
    fn next(self) -> Strength {
        match self {
            Strength::Expression => Strength::Or,
            Strength::Or => Strength::And,
            Strength::And => Strength::Relation,
            Strength::Relation => Strength::Sum,
            Strength::Sum => Strength::Product,
            Strength::Product => Strength::Unary,
            Strength::Unary | Strength::Member => Strength::Member,
        }
    }
}

/// How a binary operator is written.
fn binary(function: &str) -> Option<(Strength, &'static str)> {
    Some(match function {
        operators::LOGICAL_OR => (Strength::Or, "||"),
        operators::LOGICAL_AND => (Strength::And, "&&"),
        operators::EQUALS => (Strength::Relation, "=="),
        operators::NOT_EQUALS => (Strength::Relation, "!="),
        operators::LESS => (Strength::Relation, "<"),
        operators::LESS_EQUALS => (Strength::Relation, "<="),
        operators::GREATER => (Strength::Relation, ">"),
        operators::GREATER_EQUALS => (Strength::Relation, ">="),
        operators::IN => (Strength::Relation, "in"),
        operators::ADD => (Strength::Sum, "+"),
        operators::SUBTRACT => (Strength::Sum, "-"),
        operators::MULTIPLY => (Strength::Product, "*"),
        operators::DIVIDE => (Strength::Product, "/"),
        operators::MODULO => (Strength::Product, "%"),
        _ => return None,
    })
}

fn strength(expr: &Expr) -> Strength {
    let ExprKind::Call(call) = &expr.kind else { return Strength::Member };
    match call.function.as_str() {
        operators::CONDITIONAL => Strength::Expression,
        operators::LOGICAL_NOT | operators::NEGATE => Strength::Unary,
        function => binary(function).map_or(Strength::Member, |(strength, _)| strength),
    }
}

struct Printer<'a> {
    source: &'a SourceInfo,
    text: String,
}

impl<'a> Printer<'a> {
    /// Prints `expr`, in parentheses if it binds less tightly than `least`.
    fn expr(&mut self, expr: &'a Expr, least: Strength) -> Option<()> {
        let expr = self.source.macro_calls.get(&expr.id).unwrap_or(expr);
        if strength(expr) >= least {
            return self.bare(expr);
        }
        self.text.push('(');
        self.bare(expr)?;
        self.text.push(')');
        Some(())
    }

    fn bare(&mut self, expr: &'a Expr) -> Option<()> {
        match &expr.kind {
            ExprKind::Constant(constant) => self.constant(constant),
            ExprKind::Ident(name) => self.text.push_str(name),
            ExprKind::Select(select) => self.select(select)?,
            ExprKind::Call(call) => self.call(call)?,
            ExprKind::List(list) => self.list(list)?,
            ExprKind::Map(entries) => self.map(entries)?,
            ExprKind::Struct(message) => self.message(message)?,
            ExprKind::Comprehension(_) => return None,
        }
        Some(())
    }

    fn select(&mut self, select: &'a Select) -> Option<()> {
        if select.test_only {
            self.text.push_str("has(");
        }
        self.expr(&select.operand, Strength::Member)?;
        self.text.push('.');
        self.field(&select.field);
        if select.test_only {
            self.text.push(')');
        }
        Some(())
    }

    fn field(&mut self, name: &str) {
        let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
            && !matches!(name, "in" | "true" | "false" | "null");
        let quote = if is_plain { "" } else { "`" };
        self.text.push_str(quote);
        self.text.push_str(name);
        self.text.push_str(quote);
    }

    fn call(&mut self, call: &'a Call) -> Option<()> {
        match (call.function.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                self.expr(condition, Strength::Or)?;
                self.text.push_str(" ? ");
                self.expr(then, Strength::Or)?;
                self.text.push_str(" : ");
                self.expr(otherwise, Strength::Expression)
            }
            (operators::LOGICAL_NOT, [operand]) => self.unary('!', operand),
            (operators::NEGATE, [operand]) => self.unary('-', operand),
            (operators::INDEX, [operand, index]) => self.index(operand, "[", index),
            (operators::OPTIONAL_INDEX, [operand, index]) => self.index(operand, "[?", index),
            (operators::OPTIONAL_SELECT, [operand, field]) => {
                let ExprKind::Constant(Constant::String(name)) = &field.kind else { return None };
                self.expr(operand, Strength::Member)?;
                self.text.push_str(".?");
                self.field(name);
                Some(())
            }
            (function, [left, right]) if call.target.is_none() && binary(function).is_some() => {
                self.operator(call, function, left, right)
            }
            (function, args) => {
                if let Some(target) = &call.target {
                    self.expr(target, Strength::Member)?;
                    self.text.push('.');
                }
                self.text.push_str(function);
                self.text.push('(');
                self.separated(args, |printer, arg| printer.expr(arg, Strength::Expression))?;
                self.text.push(')');
                Some(())
            }
        }
    }

    fn unary(&mut self, operator: char, operand: &'a Expr) -> Option<()> {
        self.text.push(operator);
        let start = self.text.len();
        self.expr(operand, Strength::Member)?;
        // A minus before a number would become part of it, and a second minus would cancel the first.
        if operator == '-' && self.text[start..].starts_with(|first: char| first.is_ascii_digit() || first == '-') {
            self.text.insert(start, '(');
            self.text.push(')');
        }
        Some(())
    }

    fn index(&mut self, operand: &'a Expr, bracket: &str, index: &'a Expr) -> Option<()> {
        self.expr(operand, Strength::Member)?;
        self.text.push_str(bracket);
        self.expr(index, Strength::Expression)?;
        self.text.push(']');
        Some(())
    }

    fn operator(&mut self, call: &'a Call, function: &str, left: &'a Expr, right: &'a Expr) -> Option<()> {
        let (strength, text) = binary(function)?;
        if !matches!(strength, Strength::Or | Strength::And) {
            self.expr(left, strength)?;
            write!(self.text, " {text} ").ok()?;
            return self.expr(right, strength.next());
        }
        // The parser balances chains of operators, so only a chain of the shape that it makes needs no parentheses.
        let mut terms = Vec::new();
        self.terms(left, function, &mut terms);
        self.terms(right, function, &mut terms);
        if !self.is_balanced(call, terms.len()) {
            terms = vec![left, right];
        }
        for (index, term) in terms.into_iter().enumerate() {
            if index > 0 {
                write!(self.text, " {text} ").ok()?;
            }
            self.expr(term, strength.next())?;
        }
        Some(())
    }

    /// The two operands of a call of `function` that does not come from a macro.
    fn sides(&self, expr: &'a Expr, function: &str) -> Option<[&'a Expr; 2]> {
        match &expr.kind {
            ExprKind::Call(call) if call.function == function && !self.source.macro_calls.contains_key(&expr.id) => {
                match call.args.as_slice() {
                    [left, right] => Some([left, right]),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn terms(&self, expr: &'a Expr, function: &str, terms: &mut Vec<&'a Expr>) {
        match self.sides(expr, function) {
            Some([left, right]) => {
                self.terms(left, function, terms);
                self.terms(right, function, terms);
            }
            None => terms.push(expr),
        }
    }

    /// Whether a chain of `count` terms has the shape that the parser gives it.
    fn is_balanced(&self, call: &'a Call, count: usize) -> bool {
        let [left, right] = call.args.as_slice() else { return false };
        let left_count = (count - 1) / 2 + 1;
        [(left, left_count), (right, count - left_count)].into_iter().all(|(side, count)| {
            match (self.sides(side, &call.function), &side.kind) {
                (None, _) => count == 1,
                (Some(_), ExprKind::Call(call)) => count > 1 && self.is_balanced(call, count),
                (Some(_), _) => false,
            }
        })
    }

    fn list(&mut self, list: &'a ListExpr) -> Option<()> {
        self.text.push('[');
        let elements: Vec<(usize, &Expr)> = list.elements.iter().enumerate().collect();
        self.separated(&elements, |printer, (index, element)| {
            if list.optional.contains(index) {
                printer.text.push('?');
            }
            printer.expr(element, Strength::Expression)
        })?;
        self.text.push(']');
        Some(())
    }

    fn map(&mut self, entries: &'a [MapEntry]) -> Option<()> {
        self.text.push('{');
        self.separated(entries, |printer, entry| {
            if entry.optional {
                printer.text.push('?');
            }
            printer.expr(&entry.key, Strength::Expression)?;
            printer.text.push_str(": ");
            printer.expr(&entry.value, Strength::Expression)
        })?;
        self.text.push('}');
        Some(())
    }

    fn message(&mut self, message: &'a Struct) -> Option<()> {
        self.text.push_str(&message.type_name);
        self.text.push('{');
        self.separated(&message.fields, |printer, field| {
            if field.optional {
                printer.text.push('?');
            }
            printer.field(&field.name);
            printer.text.push_str(": ");
            printer.expr(&field.value, Strength::Expression)
        })?;
        self.text.push('}');
        Some(())
    }

    fn separated<'i, T>(
        &mut self,
        items: &'i [T],
        mut print: impl FnMut(&mut Self, &'i T) -> Option<()>,
    ) -> Option<()> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            print(self, item)?;
        }
        Some(())
    }

    fn constant(&mut self, constant: &Constant) {
        // Writing to a string cannot fail.
        let _ = match constant {
            Constant::Null => write!(self.text, "null"),
            Constant::Bool(value) => write!(self.text, "{value}"),
            Constant::Int(value) => write!(self.text, "{value}"),
            Constant::Uint(value) => write!(self.text, "{value}u"),
            Constant::Double(value) => write!(self.text, "{value:?}"),
            Constant::String(value) => return self.string(value),
            Constant::Bytes(value) => return self.bytes(value),
        };
    }

    fn string(&mut self, value: &str) {
        self.text.push('"');
        for character in value.chars() {
            match character {
                '"' | '\\' => self.text.extend(['\\', character]),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\t' => self.text.push_str("\\t"),
                control if control.is_control() => self.text.push_str(&format!("\\u{:04x}", u32::from(control))),
                character => self.text.push(character),
            }
        }
        self.text.push('"');
    }

    fn bytes(&mut self, value: &[u8]) {
        self.text.push_str("b\"");
        for byte in value {
            match byte {
                b'"' | b'\\' => self.text.extend(['\\', char::from(*byte)]),
                b' '..=b'~' => self.text.push(char::from(*byte)),
                byte => self.text.push_str(&format!("\\{byte:03o}")),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cel::ast::ExprId;
    use crate::cel::env::{Env, Expressions};
    use crate::cel::parser::parse_keeping_macros;

    fn parse(text: &str) -> Option<Ast> {
        parse_keeping_macros(SourceInfo::new(text), &Env::kubernetes(Expressions::Stored).library).ok()
    }

    fn check(text: &str, expected: &str) {
        let ast = parse(text).unwrap_or_else(|| panic!("{text} does not parse"));
        assert_eq!(print(&ast).as_deref(), Some(expected), "{text}");
    }

    /// The tree without ids, as text.
    fn shape(expr: &Expr) -> String {
        let mut expr = expr.clone();
        forget_ids(&mut expr);
        format!("{expr:?}")
    }

    fn forget_ids(expr: &mut Expr) {
        expr.id = ExprId::default();
        match &mut expr.kind {
            ExprKind::Constant(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => forget_ids(&mut select.operand),
            ExprKind::Call(call) => call.target.iter_mut().chain(&mut call.args).for_each(forget_ids),
            ExprKind::List(list) => list.elements.iter_mut().for_each(forget_ids),
            ExprKind::Map(entries) => entries.iter_mut().for_each(|entry| {
                entry.id = ExprId::default();
                forget_ids(&mut entry.key);
                forget_ids(&mut entry.value);
            }),
            ExprKind::Struct(message) => message.fields.iter_mut().for_each(|field| {
                field.id = ExprId::default();
                forget_ids(&mut field.value);
            }),
            ExprKind::Comprehension(fold) => {
                forget_ids(&mut fold.iter_range);
                forget_ids(&mut fold.accu_init);
                forget_ids(&mut fold.loop_condition);
                forget_ids(&mut fold.loop_step);
                forget_ids(&mut fold.result);
            }
        }
    }

    #[test]
    fn parentheses_stand_only_where_they_are_needed() {
        check("((a)+(b))*c", "(a + b) * c");
        check("a+(b+c)", "a + (b + c)");
        check("(a?b:c)?d:(e?f:g)", "(a ? b : c) ? d : e ? f : g");
        check("-(1)", "-(1)");
        check("-(-x)", "-(-x)");
        check("-((1).f())", "-(1.f())");
        check("((a)+b).c[0]", "(a + b).c[0]");
    }

    #[test]
    fn chains_keep_their_shape() {
        check("a&&b&&c&&d&&e", "a && b && c && d && e");
        check("a&&(b&&(c&&d))", "a && (b && (c && d))");
        check("(a||b)&&(c||d)", "(a || b) && (c || d)");
    }

    #[test]
    fn macros_are_printed_as_they_were_called() {
        check("self.all( x , has(x.y)&&x.y>0 )", "self.all(x, has(x.y) && x.y > 0)");
        check("a.?b.optMap(v,v+1).orValue(0)", "a.?b.optMap(v, v + 1).orValue(0)");
        check("l.sortBy(e,-e)", "l.sortBy(e, -e)");
    }

    #[test]
    fn without_the_calls_of_macros_nothing_is_printed() {
        let ast = Env::standard().parse("[1].all(x, x > 0)").expect("it parses");
        assert_eq!(print(&ast), None);
    }

    fn expressions() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("a".to_owned()),
            Just("self.b".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<u64>().prop_map(|number| format!("{number}u")),
            (-1e30..1e30).prop_map(|number: f64| format!("{number:?}")),
            "[ -~é日]{0,6}".prop_map(|text| format!("{text:?}")),
            Just("b'\\377x'".to_owned()),
            Just("null".to_owned()),
            Just("x.`a-b`".to_owned()),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let operator = prop_oneof![
                Just("&&"),
                Just("||"),
                Just("=="),
                Just("in"),
                Just("<"),
                Just("+"),
                Just("-"),
                Just("*"),
                Just("%"),
            ];
            prop_oneof![
                (inner.clone(), operator, inner.clone())
                    .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
                inner.clone().prop_map(|inner| format!("({inner})")),
                inner.clone().prop_map(|inner| format!("!({inner})")),
                inner.clone().prop_map(|inner| format!("-({inner})")),
                (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : {c}")),
                (inner.clone(), inner.clone()).prop_map(|(list, body)| format!("({list}).all(x, {body})")),
                (inner.clone(), inner.clone()).prop_map(|(list, body)| format!("({list}).map(x, {body}, x)")),
                (inner.clone(), inner.clone()).prop_map(|(list, index)| format!("({list})[?{index}]")),
                inner.clone().prop_map(|inner| format!("has(({inner}).f)")),
                inner.clone().prop_map(|inner| format!("({inner}).?f.size()")),
                proptest::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
                (inner.clone(), inner).prop_map(|(key, value)| format!("{{?{key}: {value}}}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same_tree(text in expressions()) {
            let Some(ast) = parse(&text) else { return Ok(()) };
            let printed = print(&ast).expect("the calls of macros are kept");
            let again = parse(&printed);
            prop_assert!(again.is_some(), "{text} printed as {printed}");
            prop_assert_eq!(again.map(|again| shape(&again.expr)), Some(shape(&ast.expr)), "{} printed as {}", text, printed);
        }
    }
}
