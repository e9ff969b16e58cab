//! Every constant of the cost model, and the formula for each function.

/// Reading a variable, or a field of a map or an object.
pub const SELECT: u64 = 1;
/// Making a list, apart from its elements.
pub const MAKE_LIST: u64 = 10;
/// Making a map, apart from its entries.
pub const MAKE_MAP: u64 = 30;
/// Making a struct, apart from its fields.
pub const MAKE_STRUCT: u64 = 40;
/// A call, where no formula says more.
pub const CALL: u64 = 1;
/// Going through a text once, per character (of bytes: per byte).
pub const TRAVERSAL: f64 = 0.1;
/// Going through a text twice: to read it and to write the result.
pub const TRAVERSAL_AND_COPY: f64 = 2.0 * TRAVERSAL;
/// Applying a regular expression, per character of the expression and unit of the text's cost.
pub const REGEX: f64 = 0.25;
/// An authorization check.
pub const AUTHORIZATION_CHECK: u64 = 350_000;
/// Requirements in a selector, per character.
pub const REQUIREMENTS_PER_CHARACTER: f64 = 0.5;
/// A requirement of a selector.
pub const REQUIREMENT: f64 = (MAKE_LIST + MAKE_STRUCT) as f64;
/// Bytes of an IPv4 address.
pub const IP_BYTES_MIN: u64 = 4;
/// Bytes of an IPv6 address.
pub const IP_BYTES_MAX: u64 = 16;
/// What the estimate takes for the length of the name of a format.
pub const FORMAT_SIZE_MAX: u64 = 64;
/// What the estimate takes for the length of the regular expression behind a format.
pub const FORMAT_REGEX_SIZE_MAX: f64 = 128.0;
/// Comparing elements with each other, per pair.
pub const COMPARE_PAIR: f64 = 2.0;

/// The largest request, in bytes.
pub const REQUEST_SIZE_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// What an expression may cost by the estimate, times its cardinality.
pub const EXPRESSION_ESTIMATE_MAX: u64 = 10_000_000;
/// What the expressions of a schema may cost by the estimate.
pub const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;
/// What one evaluation of an expression may cost.
pub const CALL_LIMIT: u64 = 1_000_000;
/// What the expressions of an object may cost, each as often as it is evaluated.
pub const OBJECT_BUDGET: u64 = 10_000_000;

/// How a call is priced, apart from its arguments. `x` is the first argument, which is the target of a member function,
/// and `y` the second one; `|x|` is a size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CallCost {
    /// 1 whatever the arguments.
    #[default]
    One,
    /// An authorization check, which must not happen often.
    AuthorizationCheck,
    /// `|x|` times a factor; the result is as large as `x` where that is said.
    Traverse { factor: f64, result: TraverseResult },
    /// `|y|` traversed: `startsWith`, `endsWith`.
    Affix,
    /// Both operands traversed: `contains`.
    Contains,
    /// `|x|` by the length of the expression `y`: `matches`.
    Matches,
    /// The same with a result that is no longer than `x`: `find`, `findAll`.
    Find,
    /// The shorter operand traversed: `==`, and comparisons of strings and bytes. True for `==` itself, which is cheap for
    /// values of the libraries' own types.
    Compare { is_equals: bool },
    /// `|x| + |y|` traversed: `+` on strings and bytes.
    Concatenate,
    /// 1, and a list of both sizes: `+` on lists.
    ConcatenateLists,
    /// `|y|`: `in` on lists.
    InList,
    /// The left side, and the right one where it is needed: `&&`, `||`.
    Logical,
    /// The condition and one of the branches.
    Conditional,
    /// Every element once: `sum`, `min`, `indexOf` and their kin.
    EachElement {
        /// For lists of unknown elements as for lists: `includes`.
        takes_dyn: bool,
    },
    /// `x` read and written: `replace`.
    Replace,
    /// `x` read and written: `split`.
    Split,
    /// The result written: `join`.
    Join,
    /// A selector parsed: `fieldSelector`, `labelSelector`.
    Selector,
    /// The bytes of two addresses compared: `containsIP`. True where `y` is a string, which is parsed first.
    ContainsIp { parses: bool },
    /// The same, and the prefix: `containsCIDR`.
    ContainsCidr { parses: bool },
    /// `|x|` by the longest expression of a format: `validate`.
    ValidateFormat,
    /// A list as long as the result: `slice`.
    Slice,
    /// A list as long as the result: `lists.range`.
    ListRange,
    /// A list as long as the result: `reverse`.
    ReverseList,
    /// A list, `x` walked through as often as it is deep: `flatten`.
    Flatten,
    /// A list, each element of `x` compared with each other: `distinct`.
    Distinct,
    /// A list, each element of `x` (of `y` if `by_keys`) compared with each other; dearer for texts.
    Sort { by_keys: bool, of_texts: bool },
    /// Each element of `x` compared with each of `y`, times a factor.
    Sets { factor: f64 },
}

/// What the estimate says of the size of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TraverseResult {
    Unknown,
    /// As large as `x`.
    Same,
    /// Up to four bytes for each character.
    Encoded,
    /// A character for each byte, or for each four of them.
    Decoded,
    /// Quoted, each character perhaps escaped.
    Quoted,
}

/// How a call of `function` is priced that was resolved to `overload`; `overload` is empty where the types of the
/// arguments leave more than one, which only matters while evaluating.
///
/// The overloads of the extensions come first, then functions that Kubernetes prices by name, then overloads of the
/// standard library.
pub fn call_cost(function: &str, overload: &str) -> CallCost {
    extension_cost(overload).or_else(|| kubernetes_cost(function, overload)).unwrap_or_else(|| standard_cost(overload))
}

fn extension_cost(overload: &str) -> Option<CallCost> {
    if let Some(rest) = overload.strip_prefix("list_") {
        for (suffix, by_keys) in [("_sort", false), ("_sortByAssociatedKeys", true)] {
            if let Some(of) = rest.strip_suffix(suffix) {
                return Some(CallCost::Sort { by_keys, of_texts: matches!(of, "string" | "bytes") });
            }
        }
    }
    Some(match overload {
        "list_slice" => CallCost::Slice,
        "list_flatten" | "list_flatten_int" => CallCost::Flatten,
        "lists_range" => CallCost::ListRange,
        "list_reverse" => CallCost::ReverseList,
        "list_distinct" => CallCost::Distinct,
        "list_sets_contains_list" | "list_sets_intersects_list" => CallCost::Sets { factor: 1.0 },
        // Each list is looked for in the other.
        "list_sets_equivalent_list" => CallCost::Sets { factor: 2.0 },
        _ => return None,
    })
}

fn kubernetes_cost(function: &str, overload: &str) -> Option<CallCost> {
    use TraverseResult::{Same, Unknown};
    let traverse = |factor, result| CallCost::Traverse { factor, result };
    Some(match function {
        "check" => CallCost::AuthorizationCheck,
        "fieldSelector" | "labelSelector" => CallCost::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::EachElement { takes_dyn: false },
        "includes" => CallCost::EachElement { takes_dyn: true },
        "url" | "jsonpatch.escapeKey" | "lowerAscii" | "upperAscii" | "substring" | "trim" => traverse(TRAVERSAL, Same),
        "replace" => CallCost::Replace,
        "split" => CallCost::Split,
        "join" => CallCost::Join,
        "find" | "findAll" => CallCost::Find,
        // A part of what is parsed already.
        "ip" if overload == "cidr_ip" => CallCost::One,
        "ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            traverse(TRAVERSAL, Unknown)
        }
        // Parsed, then compared with what was parsed.
        "ip.isCanonical" => traverse(TRAVERSAL_AND_COPY, Unknown),
        "containsIP" => CallCost::ContainsIp { parses: overload == "cidr_contains_ip_string" },
        "containsCIDR" => CallCost::ContainsCidr { parses: overload == "cidr_contains_cidr_string" },
        "validate" => CallCost::ValidateFormat,
        _ => return None,
    })
}

fn standard_cost(overload: &str) -> CallCost {
    let traverse = |result| CallCost::Traverse { factor: TRAVERSAL, result };
    match overload {
        "string_format" => traverse(TraverseResult::Unknown),
        "string_to_bytes" => traverse(TraverseResult::Encoded),
        "bytes_to_string" => traverse(TraverseResult::Decoded),
        "strings_quote" => traverse(TraverseResult::Quoted),
        "starts_with_string" | "ends_with_string" => CallCost::Affix,
        "in_list" => CallCost::InList,
        "matches" | "matches_string" => CallCost::Matches,
        "contains_string" => CallCost::Contains,
        "logical_and" | "logical_or" => CallCost::Logical,
        "conditional" => CallCost::Conditional,
        "add_string" | "add_bytes" => CallCost::Concatenate,
        "add_list" => CallCost::ConcatenateLists,
        "equals" => CallCost::Compare { is_equals: true },
        "not_equals"
        | "less_string"
        | "less_equals_string"
        | "greater_string"
        | "greater_equals_string"
        | "less_bytes"
        | "less_equals_bytes"
        | "greater_bytes"
        | "greater_equals_bytes" => CallCost::Compare { is_equals: false },
        _ => CallCost::One,
    }
}
