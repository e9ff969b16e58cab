//! What a call did cost, by the sizes of its arguments and its result.

use super::model::{self, CallCost};
use crate::work;

/// What the costs of calls depend on in a value.
pub trait Measure {
    /// `size()` of strings, bytes, lists, maps, objects, IP addresses and networks; 1 for any other value.
    fn size(&self) -> u64;

    /// The same, of what an optional holds where this is one.
    fn content_size(&self) -> u64;

    /// Bytes of a string, or of bytes; `None` for other values.
    fn text_bytes(&self) -> Option<u64>;

    /// Shows every element of a list, or every key and value of a map or object; false, and none, for other values.
    fn for_each(&self, visit: &mut dyn FnMut(&Self)) -> bool;

    /// Whether a list has a string or bytes for its first element.
    fn begins_with_text(&self) -> bool;

    /// An integer's value.
    fn as_int(&self) -> Option<i64>;

    /// Whether `==` goes by one step: quantities, addresses, networks, formats, URLs and versions.
    fn is_compared_at_once(&self) -> bool;

    /// The longest regular expression behind a format, in characters; `None` for other values.
    fn format_regex_size(&self) -> Option<u64>;
}

impl CallCost {
    /// What the call cost that made `result` of `args`; the target of a member function is the first of these.
    ///
    /// `&&`, `||` and the conditional are no calls while evaluating. Where an argument or the result is an error, its size
    /// is 1.
    pub fn actual<A: Measure, R: Measure>(self, args: &[A], result: &R) -> u64 {
        let (Some(first), second) = (args.first(), args.get(1)) else { return model::CALL };
        let second_size = second.map_or(1, A::size);
        let second_content = second.map_or(1, A::content_size);
        match self {
            CallCost::One | CallCost::ConcatenateLists | CallCost::Logical | CallCost::Conditional => model::CALL,
            CallCost::AuthorizationCheck => model::AUTHORIZATION_CHECK,
            CallCost::Traverse { factor, .. } => scale(first.size(), factor),
            CallCost::Affix => scale(second_content, model::TRAVERSAL),
            CallCost::Contains => {
                scale(first.content_size(), model::TRAVERSAL).saturating_mul(scale(second_content, model::TRAVERSAL))
            }
            CallCost::Matches => match_regex(first.content_size(), second_content),
            CallCost::Find => match_regex(first.size(), second_size),
            CallCost::Compare { is_equals } => comparison(is_equals, first, second),
            CallCost::Concatenate => scale(first.content_size().saturating_add(second_content), model::TRAVERSAL),
            CallCost::InList => second_content,
            CallCost::EachElement { .. } => traverse(first),
            CallCost::Replace | CallCost::Split => scale(first.size(), model::TRAVERSAL_AND_COPY),
            CallCost::Join => scale(result.size(), model::TRAVERSAL_AND_COPY),
            CallCost::Selector => parse_selector(second_size),
            CallCost::ContainsIp { parses } => compare_addresses(first.size(), second_size, parses),
            CallCost::ContainsCidr { parses } => compare_addresses(first.size(), second_size, parses)
                .saturating_add(scale(first.size(), model::TRAVERSAL))
                .saturating_add(1),
            CallCost::ValidateFormat => match first.format_regex_size() {
                Some(regex_size) => match_regex(second_size, regex_size),
                None => model::CALL,
            },
            CallCost::Slice | CallCost::ListRange | CallCost::ReverseList => allocate_list(1.0, result.size()),
            CallCost::Flatten => {
                let depth = second.map_or(1.0, |depth| depth.as_int().unwrap_or(1) as f64);
                allocate_list(if depth < 0.0 { 1.0 } else { depth }, first.size())
            }
            CallCost::Distinct => compare_pairs(first),
            CallCost::Sort { by_keys, .. } => compare_pairs(second.filter(|_| by_keys).unwrap_or(first)),
            CallCost::Sets { factor } => {
                floor(first.size().wrapping_mul(second_size) as f64 * factor).saturating_add(model::CALL)
            }
        }
    }
}

/// What comparing two values costs; without a second one it counts as a scalar.
pub(in crate::cel) fn comparison<V: Measure>(is_equals: bool, first: &V, second: Option<&V>) -> u64 {
    if is_equals && first.is_compared_at_once() {
        return model::CALL;
    }
    scale(first.content_size().min(second.map_or(1, V::content_size)), model::TRAVERSAL)
}

/// `size` times `factor`, rounded up.
fn scale(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn floor(product: f64) -> u64 {
    product as u64
}

/// An empty text is not free: its expression may be dear.
fn match_regex(text_size: u64, regex_size: u64) -> u64 {
    let text_cost = ((1.0 + text_size as f64) * model::TRAVERSAL).ceil() as u64;
    text_cost.saturating_mul(scale(regex_size, model::REGEX))
}

fn compare_addresses(network_size: u64, other_size: u64, parses: bool) -> u64 {
    let parse_cost = if parses { scale(other_size, model::TRAVERSAL) } else { 0 };
    scale(network_size.saturating_mul(2), model::TRAVERSAL).saturating_add(parse_cost)
}

fn parse_selector(size: u64) -> u64 {
    let requirements = scale(size, model::REQUIREMENTS_PER_CHARACTER);
    let parse_cost = scale(size, model::TRAVERSAL);
    scale(requirements, model::REQUIREMENT).saturating_add(parse_cost).saturating_add(model::MAKE_LIST)
}

fn allocate_list(factor: f64, size: u64) -> u64 {
    floor(size as f64 * factor).saturating_add(model::CALL + model::MAKE_LIST)
}

fn compare_pairs<V: Measure>(list: &V) -> u64 {
    let size = list.size();
    let text_factor = if size > 0 && list.begins_with_text() { model::TRAVERSAL } else { 0.0 };
    allocate_list(model::COMPARE_PAIR + text_factor, size.saturating_mul(size))
}

/// Every text within, and 1 for whatever else is no container.
fn traverse<V: Measure>(value: &V) -> u64 {
    work::step();
    if let Some(bytes) = value.text_bytes() {
        return floor(bytes as f64 * model::TRAVERSAL);
    }
    let mut cost = 0u64;
    let is_container = value.for_each(&mut |inner| cost = cost.saturating_add(traverse(inner)));
    if is_container { cost } else { 1 }
}
