//! The estimated cost of a call by the sizes of its arguments, and what is known about its result.

use super::Coster;
use super::sizes::EntrySizes;
use crate::cel::ast::{Constant, Expr, ExprKind};
use crate::cel::cost::model;
use crate::cel::cost::path::Path;
use crate::cel::cost::range::Range;
use crate::cel::types::{Scalar, Type};

/// An argument of a call.
pub(super) struct SizedArgument<'e> {
    expr: &'e Expr,
    path: Path<'e>,
    size: Option<Range>,
}

/// The estimate for an overload, given the sizes of its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The cost apart from that of the arguments.
    pub cost: Range,
    /// The cost of the arguments if not all of them are evaluated; else it is their sum.
    pub arguments: Option<Range>,
    /// The size of the result, if something is known about it.
    pub result: Option<Range>,
    /// The sizes of the result's contents.
    pub entry: Option<EntrySizes>,
    /// The result is an element of the first argument: the step to it.
    pub step: Option<&'static str>,
}

impl Estimate {
    /// One step.
    pub const ONE: Estimate = Estimate::of(Range::fixed(model::CALL));

    /// An estimate with this cost and a result of unknown size.
    pub const fn of(cost: Range) -> Estimate {
        Estimate { cost, arguments: None, result: None, entry: None, step: None }
    }

    /// The same, with a result of that size.
    #[must_use]
    pub const fn with_result(self, result: Range) -> Estimate {
        Estimate { result: Some(result), ..self }
    }
}

/// The arguments of a call, as far as their sizes are known. The target of a member function is the first of them.
pub struct Sizes<'c, 'e> {
    pub(super) coster: &'c Coster<'e>,
    pub(super) nodes: &'c [SizedArgument<'e>],
    /// The costs of the arguments without the target.
    pub(super) costs: &'c [Range],
}

impl<'e> Sizes<'_, 'e> {
    pub(in crate::cel) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of arguments.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The size of the argument at `at`.
    pub fn size(&self, at: usize) -> Range {
        self.known_size(at).unwrap_or(Range::UNKNOWN)
    }

    /// The same; `None` if nothing is known about it.
    pub fn known_size(&self, at: usize) -> Option<Range> {
        self.nodes.get(at)?.size
    }

    /// The cost of evaluating the argument at `at`, in a call without a target.
    pub fn cost(&self, at: usize) -> Range {
        self.costs.get(at).copied().unwrap_or_default()
    }

    /// The type of the argument at `at`.
    pub fn ty(&self, at: usize) -> Option<&Type> {
        self.nodes.get(at).map(|node| self.coster.checked.ty(node.expr.id))
    }

    /// The sizes of the contents of the argument at `at`.
    pub fn entry(&self, at: usize) -> Option<EntrySizes> {
        self.coster.entry(self.nodes.get(at)?.expr)
    }

    /// The sizes of the contents of either of two arguments.
    pub fn either_entry(&self, left: usize, right: usize) -> Option<EntrySizes> {
        Some(self.entry(left)?.union(self.entry(right)?))
    }

    /// The argument at `at`, if it is an integer literal.
    pub fn int(&self, at: usize) -> Option<i64> {
        match self.nodes.get(at)?.expr.kind {
            ExprKind::Constant(Constant::Int(number)) => Some(number),
            _ => None,
        }
    }

    /// The same, 0 if it is negative; `otherwise` if it is not a literal.
    pub fn unsigned(&self, at: usize, otherwise: u64) -> u64 {
        self.int(at).map_or(otherwise, |number| u64::try_from(number).unwrap_or(0))
    }

    /// The cost of comparing the first two arguments, up to the length of the shorter one.
    pub fn comparison(&self) -> Range {
        let shorter_max = self.size(0).max.min(self.size(1).max);
        Range::new(shorter_max.min(1), shorter_max).scale(model::TRAVERSAL)
    }

    /// The cost of visiting the elements of the first argument; `None` if its type is not a list.
    pub fn each_element(&self) -> Option<Range> {
        let size = self.size(0);
        let path = self.element_path(0)?;
        let is_text = |element: &Type| {
            matches!(element, Type::String | Type::Bytes | Type::Wrapper(Scalar::String) | Type::Wrapper(Scalar::Bytes))
        };
        Some(match self.ty(0)? {
            Type::List(element) if is_text(element) => {
                let texts = self.coster.declared_size(&path).unwrap_or(Range::UNKNOWN);
                size.times(Range::fixed(1).plus(texts.scale(model::TRAVERSAL)))
            }
            _ => size,
        })
    }

    /// The declared size of the elements of the argument at `at`; `None` if its type is not a list.
    pub fn element_size(&self, at: usize) -> Option<Range> {
        Some(self.coster.declared_size(&self.element_path(at)?).unwrap_or(Range::UNKNOWN))
    }

    /// The path of the elements of a list.
    fn element_path(&self, at: usize) -> Option<Path<'e>> {
        let list = self.nodes.get(at)?;
        match self.coster.checked.ty(list.expr.id) {
            Type::List(_) if list.path.read(<[&str]>::is_empty) => Some(Path::default()),
            Type::List(_) => Some(list.path.copied_child("@items")),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Sizes<'_, '_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries((0..self.count()).map(|at| self.known_size(at))).finish()
    }
}

impl<'e> Coster<'e> {
    pub(super) fn node(&mut self, expr: &'e Expr) -> SizedArgument<'e> {
        SizedArgument { expr, path: self.path(expr), size: self.size(expr) }
    }
}
