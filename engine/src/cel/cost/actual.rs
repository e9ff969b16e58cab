//! What a call did cost, by the sizes of its arguments and its result.

use super::model;
use crate::cel::eval::Value;
use crate::meta::minor::Minor;
use crate::work;

/// A call that was made. Where an argument or the result is an error, null stands for it, and its size is 1.
#[derive(Debug)]
pub struct Called<'c, 'a> {
    /// The target of a member function is the first of these.
    pub arguments: &'c [Value<'a>],
    /// What the call came to.
    pub result: &'c Value<'a>,
}

impl<'c, 'a> Called<'c, 'a> {
    /// The argument that every call has which is priced by its arguments.
    pub fn first(&self) -> &'c Value<'a> {
        self.arguments.first().unwrap_or(self.result)
    }

    /// The size of the argument at `at`; 1 where there is none.
    pub fn size(&self, at: usize) -> u64 {
        self.arguments.get(at).map_or(1, Value::size)
    }

    /// The same, of what an optional holds where the argument is one.
    pub fn content_size(&self, at: usize) -> u64 {
        self.arguments.get(at).map_or(1, Value::content_size)
    }
}

/// What comparing two values costs by their sizes, as far as the shorter one goes.
pub fn comparison(left: u64, right: u64) -> u64 {
    scale(left.min(right), model::TRAVERSAL)
}

/// The version of Kubernetes from which on values of the libraries' own types are compared at once.
pub(in crate::cel) const OWN_TYPES_SINCE: Minor = Minor::of(32);

/// What `left == right` costs. Quantities, addresses, networks, formats, URLs and versions are compared at once.
pub(in crate::cel) fn equality(left: &Value<'_>, right: u64) -> u64 {
    match left {
        Value::Opaque(_) => model::CALL,
        left => comparison(left.content_size(), right),
    }
}

/// `size` times `factor`, rounded up.
pub fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// `size` times `factor`, rounded down.
pub fn scale_down(size: u64, factor: f64) -> u64 {
    (size as f64 * factor) as u64
}

/// What applying a regular expression costs. An empty text is not free: its expression may be dear.
pub fn match_regex(text_size: u64, regex_size: u64) -> u64 {
    let text_cost = ((1.0 + text_size as f64) * model::TRAVERSAL).ceil() as u64;
    text_cost.saturating_mul(scale(regex_size, model::REGEX))
}

/// What making a list costs.
pub fn allocate_list(factor: f64, size: u64) -> u64 {
    scale_down(size, factor).saturating_add(model::CALL + model::MAKE_LIST)
}

/// Every text within a value, and 1 for whatever else is not a container.
pub fn traverse(value: &Value<'_>) -> u64 {
    work::step();
    if let Some(bytes) = value.text_bytes() {
        return scale_down(bytes, model::TRAVERSAL);
    }
    let mut cost = 0u64;
    let is_container = value.for_each(&mut |inner| cost = cost.saturating_add(traverse(inner)));
    if is_container { cost } else { 1 }
}
