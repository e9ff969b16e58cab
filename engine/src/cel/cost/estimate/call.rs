//! What a call costs by the sizes of its arguments, and the size of what it gives.

use super::Coster;
use super::sizes::set;
use crate::cel::ast::{Constant, Expr, ExprId, ExprKind};
use crate::cel::cost::model::{self, CallCost, TraverseResult};
use crate::cel::cost::path::Path;
use crate::cel::cost::range::Range;
use crate::cel::types::{Scalar, Type};

const ADDRESS: Range = Range::new(model::IP_BYTES_MIN, model::IP_BYTES_MAX);

/// An argument of a call.
pub(super) struct Node<'e> {
    expr: &'e Expr,
    path: Path<'e>,
    size: Option<Range>,
}

/// The cost of a call with that of its arguments, and the size of its result where something is known about it.
pub(super) struct Priced {
    pub cost: Range,
    pub result: Option<Range>,
}

impl Priced {
    fn cost(cost: Range) -> Priced {
        Priced { cost, result: None }
    }

    fn with_result(self, result: Range) -> Priced {
        Priced { result: Some(result), ..self }
    }
}

impl<'e> Coster<'e> {
    pub(super) fn node(&mut self, expr: &'e Expr) -> Node<'e> {
        Node { expr, path: self.path(expr), size: self.size(expr) }
    }

    pub(super) fn size_of(&self, node: &Node<'e>) -> Range {
        node.size.unwrap_or(Range::UNKNOWN)
    }

    /// `nodes` are the arguments, the target of a member function first; `costs` are those of the arguments alone.
    pub(super) fn price(&mut self, id: ExprId, formula: CallCost, nodes: &[Node<'e>], costs: &[Range]) -> Priced {
        let args_cost = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        match formula {
            CallCost::Logical => {
                let (left, right) = (costs.first().copied(), costs.get(1).copied());
                let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
                // The right side is not always reached.
                return Priced::cost(Range::new(left.min, left.plus(right).max));
            }
            CallCost::Conditional => return self.price_conditional(id, nodes, costs),
            CallCost::Concatenate | CallCost::ConcatenateLists => {
                let entries = nodes.first().zip(nodes.get(1));
                let entries = entries.and_then(|(left, right)| Some((self.entry(left.expr)?, self.entry(right.expr)?)));
                if let Some((left, right)) = entries {
                    set(&mut self.entries, id, left.union(right));
                }
            }
            _ => {}
        }
        let own = self.price_by_sizes(formula, nodes);
        Priced { cost: own.cost.plus(args_cost), ..own }
    }

    fn price_conditional(&mut self, id: ExprId, nodes: &[Node<'e>], costs: &[Range]) -> Priced {
        let ([_, yes, no], [condition, yes_cost, no_cost]) = (nodes, costs) else {
            return Priced::cost(Range::fixed(model::CALL));
        };
        if let (Some(yes), Some(no)) = (self.entry(yes.expr), self.entry(no.expr)) {
            set(&mut self.entries, id, yes.union(no));
        }
        let size = yes.size.unwrap_or(Range::UNKNOWN).union(no.size.unwrap_or(Range::UNKNOWN));
        Priced::cost(condition.plus(yes_cost.union(*no_cost))).with_result(size)
    }

    /// The cost apart from that of the arguments.
    fn price_by_sizes(&self, formula: CallCost, nodes: &[Node<'e>]) -> Priced {
        let one = Priced::cost(Range::fixed(model::CALL));
        let Some(first) = nodes.first() else { return one };
        let size = self.size_of(first);
        let second = nodes.get(1);
        let second_size = second.map_or(Range::UNKNOWN, |second| self.size_of(second));
        let traversal = |size: Range| size.scale(model::TRAVERSAL);
        match formula {
            CallCost::One | CallCost::Logical | CallCost::Conditional => one,
            CallCost::AuthorizationCheck => Priced::cost(Range::fixed(model::AUTHORIZATION_CHECK)),
            CallCost::Traverse { factor, result } => {
                let cost = Priced::cost(size.scale(factor));
                match traversed(size, result) {
                    Some(result) => cost.with_result(result),
                    None => cost,
                }
            }
            CallCost::Affix => Priced::cost(traversal(second_size)),
            CallCost::Contains => Priced::cost(traversal(size).times(traversal(second_size))),
            CallCost::Matches => Priced::cost(match_regex(size, second_size)),
            CallCost::Find => Priced::cost(match_regex(size, second_size)).with_result(Range::new(0, size.max)),
            CallCost::Compare { is_equals } => {
                let own_type = second.filter(|_| is_equals).and_then(|second| self.compare_own_types(first, second));
                Priced::cost(own_type.unwrap_or_else(|| compare(size, second_size)))
            }
            CallCost::Concatenate => {
                let both = size.plus(second_size);
                Priced::cost(traversal(both)).with_result(both)
            }
            CallCost::ConcatenateLists => one.with_result(size.plus(second_size)),
            CallCost::InList => Priced::cost(second_size.scale(1.0)),
            CallCost::EachElement { takes_dyn } => Priced::cost(self.each_element(first, size, takes_dyn)),
            CallCost::Replace => {
                let with_size = nodes.get(2).map_or(Range::UNKNOWN, |with| self.size_of(with));
                Priced::cost(size.scale(model::TRAVERSAL_AND_COPY)).with_result(replaced(size, second_size, with_size))
            }
            CallCost::Split => {
                let parts_max = nodes.get(2).and_then(|limit| int_literal(limit.expr));
                let result = Range::new(0, parts_max.map_or(size.max, |limit| limit as u64));
                Priced::cost(size.scale(model::TRAVERSAL_AND_COPY)).with_result(result)
            }
            CallCost::Join => {
                let joined = self.joined(first, size, second.map(|_| second_size));
                Priced::cost(traversal(joined)).with_result(joined)
            }
            CallCost::Selector => Priced::cost(
                second_size
                    .scale(model::REQUIREMENTS_PER_CHARACTER)
                    .scale(model::REQUIREMENT)
                    .plus(traversal(second_size))
                    .plus(Range::fixed(model::MAKE_LIST)),
            ),
            CallCost::ContainsIp { parses } => Priced::cost(compare_addresses(parses.then_some(second_size))),
            CallCost::ContainsCidr { parses } => {
                let compare = compare_addresses(parses.then_some(second_size));
                Priced::cost(compare.plus(traversal(ADDRESS)).plus(Range::fixed(1)))
            }
            CallCost::ValidateFormat => {
                Priced::cost(traversal(second_size).scale(model::FORMAT_REGEX_SIZE_MAX * model::REGEX))
            }
            CallCost::Slice => {
                let start = second.map_or(0, |start| unsigned_literal(start.expr, 0));
                let end = nodes.get(2).map_or(size.max, |end| unsigned_literal(end.expr, size.max));
                allocate_list(1.0, Range::fixed(end.wrapping_sub(start)))
            }
            CallCost::ListRange => allocate_list(1.0, Range::fixed(unsigned_literal(first.expr, u64::MAX))),
            CallCost::ReverseList => allocate_list(1.0, size),
            CallCost::Flatten => {
                let depth = second.map_or(1, |depth| unsigned_literal(depth.expr, u64::MAX));
                allocate_list(depth as f64, size)
            }
            CallCost::Distinct => allocate_list(model::COMPARE_PAIR, size.times(size)),
            CallCost::Sort { by_keys, of_texts } => {
                let size = if by_keys { second_size } else { size };
                let text_factor = if of_texts { model::TRAVERSAL } else { 0.0 };
                allocate_list(model::COMPARE_PAIR + text_factor, size.times(size))
            }
            CallCost::Sets { factor } => {
                Priced::cost(size.times(second_size).scale(factor).plus(Range::fixed(model::CALL)))
            }
        }
    }

    /// `==` on two values of the same type of a library.
    fn compare_own_types(&self, left: &Node<'e>, right: &Node<'e>) -> Option<Range> {
        let ty = self.checked.ty(left.expr.id);
        if ty != self.checked.ty(right.expr.id) {
            return None;
        }
        match ty {
            Type::Opaque(opaque) if matches!(opaque.name.as_str(), "net.IP" | "net.CIDR") => Some(Range::fixed(1)),
            Type::Object(object) => match object.name.as_str() {
                "kubernetes.Quantity" | "kubernetes.Semver" => Some(Range::fixed(1)),
                name if name.starts_with("kubernetes.authorization.") => Some(Range::fixed(1)),
                "kubernetes.NamedFormat" => Some(Range::new(1, model::FORMAT_SIZE_MAX).scale(model::TRAVERSAL)),
                "kubernetes.URL" => {
                    let size_max = right.size.map_or(1, |size| size.max);
                    Some(Range::new(1, size_max).scale(model::TRAVERSAL))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn each_element(&self, list: &Node<'e>, size: Range, takes_dyn: bool) -> Range {
        match self.element_size(list) {
            Some(Some(texts)) => size.times(Range::fixed(1).plus(texts.scale(model::TRAVERSAL))),
            Some(None) => size,
            None if takes_dyn => size,
            None => size.scale(model::TRAVERSAL),
        }
    }

    fn joined(&self, list: &Node<'e>, count: Range, separator: Option<Range>) -> Range {
        let elements = match self.list_element(list) {
            Some(path) => count.times(self.declared_size(&path).unwrap_or(Range::UNKNOWN)),
            None => Range::default(),
        };
        match separator {
            Some(size) => {
                elements.plus(size.times(Range::new(count.min.saturating_sub(1), count.max.saturating_sub(1))))
            }
            None => elements,
        }
    }

    /// The size of the elements of `list` if they are strings or bytes; `None` outside if this is no list.
    fn element_size(&self, list: &Node<'e>) -> Option<Option<Range>> {
        let path = self.list_element(list)?;
        let is_text = match self.checked.ty(list.expr.id) {
            Type::List(element) => {
                matches!(
                    **element,
                    Type::String | Type::Bytes | Type::Wrapper(Scalar::String) | Type::Wrapper(Scalar::Bytes)
                )
            }
            _ => false,
        };
        Some(is_text.then(|| self.declared_size(&path).unwrap_or(Range::UNKNOWN)))
    }

    /// Where the elements of `list` are, by its path; `None` if its type has no parameters.
    fn list_element(&self, list: &Node<'e>) -> Option<Path<'e>> {
        match self.checked.ty(list.expr.id) {
            Type::List(_) if list.path.read(<[&str]>::is_empty) => Some(Path::default()),
            Type::List(_) => Some(list.path.copied_child("@items")),
            _ => None,
        }
    }
}

fn int_literal(expr: &Expr) -> Option<i64> {
    match expr.kind {
        ExprKind::Constant(Constant::Int(number)) => Some(number),
        _ => None,
    }
}

/// The value of a literal, 0 if that is negative; `otherwise` for what is no literal.
fn unsigned_literal(expr: &Expr, otherwise: u64) -> u64 {
    int_literal(expr).map_or(otherwise, |number| u64::try_from(number).unwrap_or(0))
}

/// The size of the result of traversing `size`. The products wrap around, as they do in the reference.
fn traversed(size: Range, result: TraverseResult) -> Option<Range> {
    match result {
        TraverseResult::Unknown => None,
        TraverseResult::Same => Some(size),
        TraverseResult::Encoded => Some(Range::new(size.min, size.max.wrapping_mul(4))),
        TraverseResult::Decoded => Some(Range::new(size.min / 4, size.max)),
        TraverseResult::Quoted => Some(Range::new(size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2))),
    }
}

/// An empty text is not free: its expression may be dear.
fn match_regex(text: Range, regex: Range) -> Range {
    text.plus(Range::fixed(1)).scale(model::TRAVERSAL).times(regex.scale(model::REGEX))
}

fn compare(left: Range, right: Range) -> Range {
    let shorter_max = left.max.min(right.max);
    Range::new(shorter_max.min(1), shorter_max).scale(model::TRAVERSAL)
}

fn compare_addresses(parsed: Option<Range>) -> Range {
    let compare = ADDRESS.plus(ADDRESS).scale(model::TRAVERSAL);
    parsed.map_or(compare, |text| compare.plus(text.scale(model::TRAVERSAL)))
}

fn allocate_list(factor: f64, size: Range) -> Priced {
    let cost = size.scale(factor).plus(Range::fixed(model::CALL + model::MAKE_LIST));
    Priced::cost(cost).with_result(size)
}

/// The size of `text` with `what` replaced by `with`.
fn replaced(text: Range, what: Range, with: Range) -> Range {
    // How often, and how much of the text is left.
    let (count_max, kept_max) = if what.min == 0 {
        // The empty text stands before each character and at the end.
        (text.max.saturating_add(1), text.max)
    } else if with.max <= what.min {
        (0, text.max)
    } else {
        (divide(text.max, what.min), 0)
    };
    let (count_min, kept_min) = if what.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if what.max <= with.min {
        (0, text.min)
    } else {
        (divide(text.min, what.max), 0)
    };
    Range::new(count_min, count_max).times(with).plus(Range::new(kept_min, kept_max))
}

/// The quotient, rounded up. One that does not fit becomes half of the range, as Go converts it.
fn divide(size: u64, by: u64) -> u64 {
    let quotient = (size as f64 / by as f64).ceil();
    if quotient >= u64::MAX as f64 { 1 << 63 } else { quotient as u64 }
}
