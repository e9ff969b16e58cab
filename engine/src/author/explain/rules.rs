//! A rule in words.
//!
//! Operators, the common macros and the tests of strings have phrases. Parts without a phrase stay as they are written,
//! between backticks, so that the words never deviate from the rule.

use super::super::prose;
use crate::cel::ast::{Ast, Call, Constant, Expr, ExprKind, ListExpr, Select, SourceInfo, operators};
use crate::cel::env::{Env, Expressions};
use crate::cel::escape::unescape;
use crate::cel::parser::parse_keeping_macros;
use crate::cel::print::print;

/// `rule` in words; `None` if it does not parse, or if no part of it has a phrase.
pub fn say(rule: &str) -> Option<String> {
    let env = Env::kubernetes(Expressions::Stored);
    let Ast { expr, source } = parse_keeping_macros(SourceInfo::new(rule), &env.library).ok()?;
    let speaker = Speaker { source: &source };
    Some(speaker.holds(&expr, ClausePosition::Whole)).filter(|words| *words != speaker.quoted(&expr))
}

/// Where a clause stands: inside others, those of several parts need parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClausePosition {
    Whole,
    Within,
}

struct Speaker<'a> {
    source: &'a SourceInfo,
}

/// How a comparison is said, and how its opposite.
fn verbs(operator: &str) -> Option<(&'static str, &'static str)> {
    Some(match operator {
        operators::EQUALS => ("is", "is not"),
        operators::NOT_EQUALS => ("is not", "is"),
        operators::LESS => ("is less than", "is not less than"),
        operators::LESS_EQUALS => ("is at most", "is not at most"),
        operators::GREATER => ("is more than", "is not more than"),
        operators::GREATER_EQUALS => ("is at least", "is not at least"),
        operators::IN => ("is in", "is not in"),
        "startsWith" => ("starts with", "does not start with"),
        "endsWith" => ("ends with", "does not end with"),
        "contains" => ("contains", "does not contain"),
        "matches" => ("matches", "does not match"),
        _ => return None,
    })
}

fn arithmetic(operator: &str) -> Option<&'static str> {
    Some(match operator {
        operators::ADD => "+",
        operators::SUBTRACT => "-",
        operators::MULTIPLY => "*",
        operators::DIVIDE => "/",
        operators::MODULO => "%",
        _ => return None,
    })
}

/// The two sides of a call with or without a target.
fn sides(call: &Call) -> Option<(&Expr, &Expr)> {
    match (&call.target, call.args.as_slice()) {
        (Some(left), [right]) | (None, [left, right]) => Some((left, right)),
        _ => None,
    }
}

impl<'a> Speaker<'a> {
    /// The call of the macro that `expr` came from, else `expr` itself.
    fn written<'e>(&'e self, expr: &'e Expr) -> &'e Expr {
        self.source.macro_calls.get(&expr.id).unwrap_or(expr)
    }

    /// That `expr` is true.
    fn holds(&self, expr: &Expr, place: ClausePosition) -> String {
        let said = match &self.written(expr).kind {
            ExprKind::Call(call) => self.call_holds(call, place),
            ExprKind::Select(select) if select.test_only => Some(format!("{} is set", self.field(select))),
            ExprKind::Select(_) | ExprKind::Ident(_) => Some(format!("{} is true", self.value(expr))),
            _ => None,
        };
        said.unwrap_or_else(|| self.quoted(expr))
    }

    /// That `expr` is false.
    fn fails(&self, expr: &Expr) -> String {
        let said = match &self.written(expr).kind {
            ExprKind::Call(call) => self.call_fails(call),
            ExprKind::Select(select) if select.test_only => Some(format!("{} is not set", self.field(select))),
            ExprKind::Select(_) | ExprKind::Ident(_) => Some(format!("{} is false", self.value(expr))),
            _ => None,
        };
        said.unwrap_or_else(|| format!("not {}", self.quoted(expr)))
    }

    fn call_holds(&self, call: &Call, place: ClausePosition) -> Option<String> {
        let parts = match (call.function.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, [denied]) => return Some(self.fails(denied)),
            (operators::LOGICAL_AND, _) => self.joined(&self.chain(call), ", and "),
            (operators::LOGICAL_OR, _) => self.either(&self.chain(call)),
            (operators::CONDITIONAL, [condition, then, otherwise]) => match &otherwise.kind {
                ExprKind::Constant(Constant::Bool(true)) => self.implies(condition, then),
                _ => {
                    format!("{}, else {}", self.implies(condition, then), self.holds(otherwise, ClausePosition::Within))
                }
            },
            ("all", [variable, predicate]) => self.quantified("every", call, variable, predicate)?,
            ("exists", [variable, predicate]) => self.quantified("at least one", call, variable, predicate)?,
            ("exists_one" | "existsOne", [variable, predicate]) => {
                self.quantified("exactly one", call, variable, predicate)?
            }
            _ => return self.simple_holds(call),
        };
        Some(if place == ClausePosition::Within { format!("({parts})") } else { parts })
    }

    /// Calls that are one statement wherever they stand.
    fn simple_holds(&self, call: &Call) -> Option<String> {
        if let ("has", [field]) = (call.function.as_str(), call.args.as_slice()) {
            return Some(format!("{} is set", self.value(field)));
        }
        self.unchanged(call).or_else(|| {
            let (left, right) = sides(call)?;
            Some(format!("{} {} {}", self.value(left), verbs(&call.function)?.0, self.value(right)))
        })
    }

    fn call_fails(&self, call: &Call) -> Option<String> {
        match (call.function.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, [held]) => Some(self.holds(held, ClausePosition::Within)),
            ("has", [field]) => Some(format!("{} is not set", self.value(field))),
            ("exists", [variable, predicate]) => {
                self.quantified("no", call, variable, predicate).map(|said| format!("({said})"))
            }
            (function, _) => match (verbs(function), sides(call)) {
                (Some((_, verb)), Some((left, right))) => {
                    Some(format!("{} {verb} {}", self.value(left), self.value(right)))
                }
                _ => self.call_holds(call, ClausePosition::Within).map(|held| format!("never {held}")),
            },
        }
    }

    /// The operands of a chain of the same operator.
    fn chain<'e>(&'e self, call: &'e Call) -> Vec<&'e Expr> {
        let operands = call.args.iter().flat_map(|side| match &self.written(side).kind {
            ExprKind::Call(inner) if inner.function == call.function => self.chain(inner),
            _ => vec![side],
        });
        operands.collect()
    }

    fn joined(&self, clauses: &[&Expr], word: &str) -> String {
        let clauses: Vec<String> = clauses.iter().map(|clause| self.holds(clause, ClausePosition::Within)).collect();
        clauses.join(word)
    }

    /// One of some clauses. Denials at the front are conditions: "not this, or that" is "if this, then that".
    fn either(&self, clauses: &[&Expr]) -> String {
        let last = clauses.len().saturating_sub(1);
        let conditions: Vec<&Expr> = clauses[..last].iter().map_while(|clause| self.denied(clause)).collect();
        let held = self.joined(&clauses[conditions.len()..], ", or ");
        match conditions.as_slice() {
            [] => held,
            conditions => format!("if {}, then {held}", self.joined(conditions, ", and ")),
        }
    }

    fn denied<'e>(&self, expr: &'e Expr) -> Option<&'e Expr> {
        match &expr.kind {
            ExprKind::Call(call) if call.function == operators::LOGICAL_NOT => call.args.first(),
            _ => None,
        }
    }

    fn implies(&self, condition: &Expr, then: &Expr) -> String {
        format!(
            "if {}, then {}",
            self.holds(condition, ClausePosition::Within),
            self.holds(then, ClausePosition::Within)
        )
    }

    fn quantified(&self, which: &str, call: &Call, variable: &Expr, predicate: &Expr) -> Option<String> {
        let range = self.value(call.target.as_ref()?);
        let said = self.holds(predicate, ClausePosition::Within);
        Some(format!("for {which} {} in {range}, {said}", self.value(variable)))
    }

    /// `self.x == oldSelf.x`.
    fn unchanged(&self, call: &Call) -> Option<String> {
        let (left, right) = sides(call).filter(|_| call.function == operators::EQUALS)?;
        let (left, right) = (self.path(left)?, self.path(right)?);
        let is_new_and_old = matches!((left.root, right.root), ("self", "oldSelf") | ("oldSelf", "self"));
        (is_new_and_old && left.steps == right.steps).then(|| match left.steps.as_str() {
            "" => "the value does not change".to_owned(),
            steps => format!("{steps} does not change"),
        })
    }

    /// A value, as the subject or the object of a sentence.
    fn value(&self, expr: &Expr) -> String {
        if let Some(path) = self.path(expr) {
            return path.said();
        }
        match &self.written(expr).kind {
            ExprKind::Constant(_) => self.text(expr),
            ExprKind::List(ListExpr { elements, optional }) if optional.is_empty() => {
                let elements: Vec<String> = elements.iter().map(|element| self.value(element)).collect();
                format!("[{}]", elements.join(", "))
            }
            ExprKind::Call(call) => self.call_value(call).unwrap_or_else(|| self.quoted(expr)),
            _ => self.quoted(expr),
        }
    }

    fn call_value(&self, call: &Call) -> Option<String> {
        match (call.function.as_str(), &call.target, call.args.as_slice()) {
            ("size", Some(of), []) | ("size", None, [of]) => {
                Some(self.filtered(of).unwrap_or_else(|| format!("the size of {}", self.value(of))))
            }
            (operators::ADD, None, _) if self.counted(call).is_some() => self.counted(call),
            (operators::INDEX, None, [of, at]) => Some(format!("{}[{}]", self.value(of), self.value(at))),
            (operator, None, [left, right]) => {
                let sign = arithmetic(operator)?;
                let left = match &left.kind {
                    ExprKind::Call(before) if before.function == operator => self.value(left),
                    _ => self.term(left),
                };
                Some(format!("{left} {sign} {}", self.term(right)))
            }
            _ => None,
        }
    }

    /// `[a, b].filter(x, x)`, whose size is how many of them hold.
    fn filtered(&self, list: &Expr) -> Option<String> {
        let ExprKind::Call(call) = &self.written(list).kind else { return None };
        let ([variable, predicate], Some(of)) = (call.args.as_slice(), &call.target) else { return None };
        let ExprKind::List(list) = &of.kind else { return None };
        let is_itself = call.function == "filter" && variable.kind == predicate.kind;
        is_itself.then(|| self.how_many(&list.elements.iter().collect::<Vec<_>>()))
    }

    /// `(a ? 1 : 0) + (b ? 1 : 0)`.
    fn counted(&self, sum: &Call) -> Option<String> {
        let is = |expr: &Expr, number: i64| expr.kind == ExprKind::Constant(Constant::Int(number));
        let conditions = self.chain(sum).into_iter().map(|term| match &term.kind {
            ExprKind::Call(call) if call.function == operators::CONDITIONAL => match call.args.as_slice() {
                [condition, one, zero] if is(one, 1) && is(zero, 0) => Some(condition),
                _ => None,
            },
            _ => None,
        });
        Some(self.how_many(&conditions.collect::<Option<Vec<_>>>()?))
    }

    fn how_many(&self, clauses: &[&Expr]) -> String {
        format!("the number of ({}) that hold", self.joined(clauses, ", "))
    }

    /// A side of an arithmetic operator.
    fn term(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Call(call) if arithmetic(&call.function).is_some() => format!("({})", self.value(expr)),
            _ => self.value(expr),
        }
    }

    fn field(&self, select: &Select) -> String {
        let mut select = select.clone();
        select.test_only = false;
        self.value(&Expr { id: Default::default(), kind: ExprKind::Select(Box::new(select)) })
    }

    fn path<'e>(&self, expr: &'e Expr) -> Option<FieldPath<'e>> {
        match &expr.kind {
            ExprKind::Ident(root) => Some(FieldPath { root, steps: String::new() }),
            ExprKind::Select(select) if !select.test_only => {
                let mut path = self.path(&select.operand)?;
                if !path.steps.is_empty() {
                    path.steps.push('.');
                }
                path.steps.push_str(&unescape(&select.field).unwrap_or_else(|| select.field.as_str().into()));
                Some(path)
            }
            _ => None,
        }
    }

    fn quoted(&self, expr: &Expr) -> String {
        prose::quoted(&self.text(expr))
    }

    fn text(&self, expr: &Expr) -> String {
        print(&Ast { expr: expr.clone(), source: self.source.clone() }).unwrap_or_default()
    }
}

/// A variable and the fields below it, `a.b`.
struct FieldPath<'e> {
    root: &'e str,
    steps: String,
}

impl FieldPath<'_> {
    fn said(&self) -> String {
        match (self.root, self.steps.as_str()) {
            ("self", "") => "the value".to_owned(),
            ("oldSelf", "") => "the old value".to_owned(),
            ("self", steps) => steps.to_owned(),
            ("oldSelf", steps) => format!("the old {steps}"),
            (variable, "") => variable.to_owned(),
            (variable, steps) => format!("{variable}.{steps}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: &str, expect: &str) {
        assert_eq!(say(rule).as_deref(), Some(expect), "{rule}");
    }

    #[test]
    fn comparisons_are_sentences() {
        check("self.minReplicas <= self.replicas", "minReplicas is at most replicas");
        check("self.crew * 2 + 1 <= self.length", "(crew * 2) + 1 is at most length");
        check("self.name.size() < 10", "the size of name is less than 10");
        check("self.rig in ['sloop', 'ketch']", r#"rig is in ["sloop", "ketch"]"#);
        check("!self.name.startsWith('x-')", r#"name does not start with "x-""#);
        check("self != ''", r#"the value is not """#);
        check("self.class__dash__name == 'a'", r#"class-name is "a""#);
    }

    #[test]
    fn what_must_stay_does_not_change() {
        check("self == oldSelf", "the value does not change");
        check("self.spec.size == oldSelf.spec.size", "spec.size does not change");
        check("self.size >= oldSelf.size", "size is at least the old size");
    }

    #[test]
    fn conditions_are_joined_and_implied() {
        check("has(self.a) && has(self.b) && !has(self.c)", "a is set, and b is set, and c is not set");
        check("!has(self.a) || self.a > 1", "if a is set, then a is more than 1");
        check("self.a == 1 || self.b", "a is 1, or b is true");
        check("self.kind == 'A' ? has(self.a) : !has(self.a)", r#"if kind is "A", then a is set, else a is not set"#);
        check("has(self.a) ? self.a < 2 : true", "if a is set, then a is less than 2");
        check(
            "!has(self.a) || !has(self.b) || self.a || self.b",
            "if a is set, and b is set, then a is true, or b is true",
        );
        check("!has(self.a) || !has(self.b)", "if a is set, then b is not set");
        check("(has(self.a) || has(self.b)) && self.c", "(a is set, or b is set), and c is true");
        check("!(has(self.a) && has(self.b))", "never (a is set, and b is set)");
    }

    #[test]
    fn macros_over_lists_quantify() {
        check("self.list.all(x, x.size() < 10)", "for every x in list, the size of x is less than 10");
        check("self.list.exists(x, x == 'a')", r#"for at least one x in list, x is "a""#);
        check("!self.list.exists(x, x.port == 0)", "(for no x in list, x.port is 0)");
        check("self.exists_one(x, x.primary)", "for exactly one x in the value, x.primary is true");
    }

    #[test]
    fn what_counts_conditions_says_so() {
        let expect = "the number of (a is set, b is true) that hold is 1";
        check("(has(self.a) ? 1 : 0) + (self.b ? 1 : 0) == 1", expect);
        check("[has(self.a), self.b].filter(x, x).size() == 1", expect);
    }

    #[test]
    fn what_has_no_phrase_stays_as_it_is_written() {
        check("self.url == '' || isURL(self.url)", r#"url is "", or `isURL(self.url)`"#);
        check(
            "quantity(self.a).isLessThan(quantity('1')) && self.b",
            r#"`quantity(self.a).isLessThan(quantity("1"))`, and b is true"#,
        );
        assert_eq!(say("isURL(self)"), None);
        assert_eq!(say("self."), None);
    }
}
