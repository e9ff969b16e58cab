//! The constants of the cost model that belong to no function.

/// Reading a variable, or a field of a map or an object.
pub const SELECT: u64 = 1;
/// Making a list, apart from its elements.
pub const MAKE_LIST: u64 = 10;
/// Making a map, apart from its entries.
pub const MAKE_MAP: u64 = 30;
/// Making a struct, apart from its fields.
pub const MAKE_STRUCT: u64 = 40;
/// A call without a formula of its own.
pub const CALL: u64 = 1;
/// Traversing a text once, per character (for `bytes`, per byte).
pub const TRAVERSAL: f64 = 0.1;
/// Traversing a text twice: to read it and to write the result.
pub const TRAVERSAL_AND_COPY: f64 = 2.0 * TRAVERSAL;
/// Applying a regular expression, per character of the expression and unit of the text's cost.
pub const REGEX: f64 = 0.25;
/// Comparing elements with each other, per pair.
pub const COMPARE_PAIR: f64 = 2.0;

/// The largest request, in bytes.
pub const REQUEST_SIZE_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// The maximum estimated cost of an expression, times its cardinality.
pub const EXPRESSION_ESTIMATE_MAX: u64 = 10_000_000;
/// The maximum estimated cost of all expressions of a schema.
pub const SCHEMA_ESTIMATE_MAX: u64 = 100_000_000;
/// The maximum cost of one evaluation of an expression.
pub const CALL_LIMIT: u64 = 1_000_000;
/// The maximum cost of all evaluations of expressions for an object.
pub const OBJECT_BUDGET: u64 = 10_000_000;
