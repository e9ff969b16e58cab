//! The additional checks of Kubernetes after type checking: literals that are always wrong.
//!
//! Elements of a list or map literal that differ in type; durations, timestamps and regular expressions that cannot be
//! read; formats that do not fit their arguments.

use super::assign::is_exact;
use super::{CheckedExpr, format, in_words_of};
use crate::cel::ast::{Call, Constant, Expr, ExprId, ExprKind, ListExpr, MapEntry};
use crate::cel::error::Issue;
use crate::cel::library::time;
use crate::cel::types::Type;
use crate::meta::{duration, minor::Minor, pattern::Pattern};

/// All faults; those of lists and maps only if their elements must have one type, those of constants only if it
/// `validates` them.
pub(super) fn faults(checked: &CheckedExpr, homogeneous: bool, validates: bool) -> Vec<Issue> {
    let mut search =
        LiteralSearch { checked, homogeneous, validates, mixed: Vec::new(), unreadable: Vec::new(), unfit: Vec::new() };
    search.look_at(&checked.ast.expr, false);
    let LiteralSearch { mixed, unreadable, unfit, .. } = search;
    [mixed, unreadable, unfit].concat()
}

/// The version of Kubernetes that began to check the templates of `format` against their arguments.
const FORMATS_SINCE: Minor = Minor::of(31);

struct LiteralSearch<'c> {
    checked: &'c CheckedExpr,
    homogeneous: bool,
    /// Whether constant arguments of calls are checked.
    validates: bool,
    mixed: Vec<Issue>,
    unreadable: Vec<Issue>,
    unfit: Vec<Issue>,
}

impl LiteralSearch<'_> {
    /// Arguments of `format` may have mixed types. In versions that don't check templates, the nearest call decides.
    fn look_at(&mut self, expr: &Expr, in_format: bool) {
        let mut within = in_format;
        match &expr.kind {
            ExprKind::List(list) if self.homogeneous && !in_format => self.look_at_list(list),
            ExprKind::Map(entries) if self.homogeneous && !in_format => self.look_at_map(entries),
            ExprKind::Call(call) => {
                within = call.function == "format" || in_format && self.checked.minor >= FORMATS_SINCE;
                if self.validates {
                    self.look_at_call(expr.id, call);
                }
            }
            _ => {}
        }
        for child in expr.children() {
            self.look_at(child, within);
        }
    }

    fn issue(&self, id: ExprId, message: String) -> Issue {
        Issue::new(self.checked.ast.source.location(id), in_words_of(self.checked.minor, message))
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        self.mixed.push(self.issue(id, format!("expected type '{expected}' but found '{actual}'")));
    }

    /// The type of an element; for an optional element, that of its content.
    fn type_of(&self, id: ExprId, optional: bool) -> Type {
        let ty = self.checked.ty(id);
        let content = if optional { ty.optional_content() } else { None };
        content.unwrap_or(ty).clone()
    }

    fn look_at_list(&mut self, list: &ListExpr) {
        let mut elements = list.elements.iter().enumerate();
        let Some((_, first)) = elements.next() else { return };
        let expected = self.type_of(first.id, list.optional.contains(&0));
        for (index, element) in elements {
            let actual = self.type_of(element.id, list.optional.contains(&index));
            if !is_exact(&expected, &actual) {
                return self.mismatch(element.id, &expected, &actual);
            }
        }
    }

    fn look_at_map(&mut self, entries: &[MapEntry]) {
        let Some(first) = entries.first() else { return };
        let key = self.type_of(first.key.id, false);
        let value = self.type_of(first.value.id, first.optional);
        for entry in &entries[1..] {
            let actual = self.type_of(entry.key.id, false);
            if !is_exact(&key, &actual) {
                self.mismatch(entry.key.id, &key, &actual);
            }
            let actual = self.type_of(entry.value.id, entry.optional);
            if !is_exact(&value, &actual) {
                self.mismatch(entry.value.id, &value, &actual);
            }
        }
    }

    fn look_at_call(&mut self, id: ExprId, call: &Call) {
        if self.checked.minor >= FORMATS_SINCE
            && let Some(fault) = format::fault(self.checked, id, call)
        {
            let issue = self.issue(fault.at, fault.message);
            self.unfit.push(issue);
        }
        let Some(Expr { id, kind: ExprKind::Constant(literal) }) = call.args.first() else { return };
        let readable = match call.function.as_str() {
            "duration" => matches!(literal, Constant::String(text) if duration::parse(text).is_some()),
            "timestamp" => match literal {
                Constant::String(text) => time::parse(text).is_ok(),
                Constant::Int(seconds) => time::from_unix(*seconds).is_ok(),
                _ => false,
            },
            "matches" => matches!(literal, Constant::String(text) if Pattern::new(text).is_ok()),
            _ => true,
        };
        if !readable {
            let issue = self.issue(*id, format!("invalid {} argument", call.function));
            self.unreadable.push(issue);
        }
    }
}
