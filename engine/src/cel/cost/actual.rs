//! The actual cost of a call, by the sizes of its arguments and its result.

use super::model;
use crate::cel::eval::Value;
use crate::meta::minor::Minor;
use crate::work;

/// A completed call. If an argument or the result is an error, it is replaced by null, whose size is 1.
#[derive(Debug)]
pub struct Called<'c, 'a> {
    /// The arguments; the target of a member function is the first one.
    pub arguments: &'c [Value<'a>],
    /// The result of the call.
    pub result: &'c Value<'a>,
}

impl<'c, 'a> Called<'c, 'a> {
    /// The first argument, which every call has that is priced by its arguments.
    pub fn first(&self) -> &'c Value<'a> {
        self.arguments.first().unwrap_or(self.result)
    }

    /// The size of the argument at `at`; 1 if there is none.
    pub fn size(&self, at: usize) -> u64 {
        self.arguments.get(at).map_or(1, Value::size)
    }

    /// The same, for the content of an argument that is an optional.
    pub fn content_size(&self, at: usize) -> u64 {
        self.arguments.get(at).map_or(1, Value::content_size)
    }
}

/// The cost of comparing two values of these sizes, up to the length of the shorter one.
pub fn comparison(left: u64, right: u64) -> u64 {
    scale(left.min(right), model::TRAVERSAL)
}

/// The version of Kubernetes since which comparing values of the libraries' own types takes one step.
pub(in crate::cel) const OWN_TYPES_SINCE: Minor = Minor::of(32);

/// The cost of `left == right`. Comparing quantities, addresses, networks, formats, URLs and versions takes one step.
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

/// The cost of applying a regular expression. An empty text is not free: the expression may be expensive.
pub fn match_regex(text_size: u64, regex_size: u64) -> u64 {
    let text_cost = ((1.0 + text_size as f64) * model::TRAVERSAL).ceil() as u64;
    text_cost.saturating_mul(scale(regex_size, model::REGEX))
}

/// The cost of creating a list.
pub fn allocate_list(factor: f64, size: u64) -> u64 {
    scale_down(size, factor).saturating_add(model::CALL + model::MAKE_LIST)
}

/// The size of all texts within a value, and 1 for everything else that is not a container.
pub fn traverse(value: &Value<'_>) -> u64 {
    work::step();
    if let Some(bytes) = value.text_bytes() {
        return scale_down(bytes, model::TRAVERSAL);
    }
    let mut cost = 0u64;
    let is_container = value.for_each(&mut |inner| cost = cost.saturating_add(traverse(inner)));
    if is_container { cost } else { 1 }
}
