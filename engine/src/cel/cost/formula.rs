//! The cost of a call apart from its arguments, as data: a formula over ranges of sizes, and the same over values.
//!
//! A formula is defined beside its function. Here are those shared by several families of functions.

use super::actual::{self, Called};
use super::estimate::{Estimate, Sizes};
use super::model;
use super::range::Range;

/// The cost of a call.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// One step, whatever the arguments: the default.
    One,
    /// Depends on the sizes of the arguments and the result.
    BySize(Formula),
}

/// The estimated and the actual cost, with their conditions.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    estimate: fn(&Sizes<'_, '_>) -> Estimate,
    actual: fn(&Called<'_, '_>) -> u64,
    /// Kubernetes prices its functions by their names, cel-go its own by their overloads. So only a price by name is
    /// known if the overload is only found at evaluation.
    is_of_name: bool,
    pub(in crate::cel) wants: Wants,
    /// Whether elements are compared in pairs, which may take long before the cost is known.
    pub(in crate::cel) compares_pairs: bool,
}

/// The argument that the reference requires to price a call at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    Anything,
    /// The argument at this index must be a list.
    List(usize),
    /// The argument at this index must be an integer.
    Int(usize),
}

impl Cost {
    /// A cost for one overload.
    pub const fn of_overload(estimate: fn(&Sizes<'_, '_>) -> Estimate, actual: fn(&Called<'_, '_>) -> u64) -> Cost {
        Cost::BySize(Formula { estimate, actual, is_of_name: false, wants: Wants::Anything, compares_pairs: false })
    }

    /// A cost for the name of the function, whichever overload is called.
    pub const fn of_name(estimate: fn(&Sizes<'_, '_>) -> Estimate, actual: fn(&Called<'_, '_>) -> u64) -> Cost {
        Cost::BySize(Formula { estimate, actual, is_of_name: true, wants: Wants::Anything, compares_pairs: false })
    }

    /// Sets the argument that the reference requires to price a call.
    #[must_use]
    pub(in crate::cel) const fn wanting(self, wants: Wants) -> Cost {
        match self {
            Cost::One => Cost::One,
            Cost::BySize(formula) => Cost::BySize(Formula { wants, ..formula }),
        }
    }

    /// Marks a call that compares elements in pairs: if there are too many pairs, the call is not made.
    #[must_use]
    pub(in crate::cel) const fn comparing_pairs(self) -> Cost {
        match self {
            Cost::One => Cost::One,
            Cost::BySize(formula) => Cost::BySize(Formula { compares_pairs: true, ..formula }),
        }
    }

    pub(in crate::cel) const fn is_of_name(&self) -> bool {
        matches!(self, Cost::BySize(Formula { is_of_name: true, .. }))
    }

    /// The estimated cost of a call, by what is known about the sizes of its arguments.
    pub(in crate::cel) fn estimate(&self, sizes: &Sizes<'_, '_>) -> Estimate {
        match self {
            Cost::BySize(formula) if !sizes.is_empty() => (formula.estimate)(sizes),
            _ => Estimate::ONE,
        }
    }
}

impl Formula {
    /// The actual cost of a call.
    pub(in crate::cel) fn actual(&self, called: &Called<'_, '_>) -> u64 {
        if called.arguments.is_empty() { model::CALL } else { (self.actual)(called) }
    }
}

/// A text is traversed, and the result has the same size: `trim`.
pub const TRAVERSE: Cost = Cost::of_name(
    |sizes| Estimate::of(sizes.size(0).scale(model::TRAVERSAL)).with_result(sizes.size(0)),
    |called| actual::scale(called.size(0), model::TRAVERSAL),
);

/// A text is parsed, and nothing is known about the size of the result: `quantity`.
pub const PARSE: Cost = Cost::of_name(
    |sizes| Estimate::of(sizes.size(0).scale(model::TRAVERSAL)),
    |called| actual::scale(called.size(0), model::TRAVERSAL),
);

/// The shorter operand is traversed: `!=`, and comparisons of strings and bytes.
pub const COMPARE: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.comparison()),
    |called| actual::comparison(called.content_size(0), called.content_size(1)),
);

/// Every element is traversed once: `sum`, `min`, `indexOf` and the like.
pub const EACH_ELEMENT: Cost = Cost::of_name(
    |sizes| Estimate::of(sizes.each_element().unwrap_or_else(|| sizes.size(0).scale(model::TRAVERSAL))),
    |called| actual::traverse(called.first()),
);

/// The estimated cost of applying a regular expression. An empty text is not free: the expression may be expensive.
pub fn match_regex(text: Range, regex: Range) -> Range {
    text.plus(Range::fixed(1)).scale(model::TRAVERSAL).times(regex.scale(model::REGEX))
}

/// The estimated cost of creating a list, with its size as the size of the result.
pub fn allocate_list(factor: f64, size: Range) -> Estimate {
    Estimate::of(size.scale(factor).plus(Range::fixed(model::CALL + model::MAKE_LIST))).with_result(size)
}
