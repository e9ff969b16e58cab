//! The operators and functions of the CEL standard.

use crate::cel::ast::operators;
use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};

/// What the CEL standard declares.
pub fn functions() -> Vec<FunctionDecl> {
    [logic(), order(), arithmetic(), containers(), conversions(), texts(), times()].concat()
}

fn global(id: &'static str, params: impl Into<Vec<Type>>, result: Type) -> OverloadDecl {
    OverloadDecl::global(id, params, result)
}

fn member(id: &'static str, params: impl Into<Vec<Type>>, result: Type) -> OverloadDecl {
    OverloadDecl::member(id, params, result)
}

/// An operator on two values of one type, with such a result.
fn alike(id: &'static str, ty: Type) -> OverloadDecl {
    OverloadDecl::global(id, [ty.clone(), ty.clone()], ty)
}

fn a() -> Type {
    Type::param("A")
}

fn list() -> Type {
    Type::list(a())
}

fn map() -> Type {
    Type::map(a(), Type::param("B"))
}

fn logic() -> Vec<FunctionDecl> {
    let not_strictly_false = "__not_strictly_false__";
    vec![
        FunctionDecl::new(operators::CONDITIONAL, [global("conditional", [Bool, a(), a()], a())]),
        FunctionDecl::new(operators::LOGICAL_AND, [alike("logical_and", Bool)]),
        FunctionDecl::new(operators::LOGICAL_OR, [alike("logical_or", Bool)]),
        FunctionDecl::new(operators::LOGICAL_NOT, [global("logical_not", [Bool], Bool)]),
        FunctionDecl::new(operators::NOT_STRICTLY_FALSE, [global("not_strictly_false", [Bool], Bool)]),
        FunctionDecl::new(not_strictly_false, [global(not_strictly_false, [Bool], Bool)]),
        FunctionDecl::new(operators::EQUALS, [global("equals", [a(), a()], Bool)]),
        FunctionDecl::new(operators::NOT_EQUALS, [global("not_equals", [a(), a()], Bool)]),
    ]
}

/// One comparison, for all types with an order and between numbers of all types.
macro_rules! comparison {
    ($function:expr, $name:literal) => {
        FunctionDecl::new(
            $function,
            [
                global(concat!($name, "_bool"), [Bool, Bool], Bool),
                global(concat!($name, "_int64"), [Int, Int], Bool),
                global(concat!($name, "_int64_double"), [Int, Double], Bool),
                global(concat!($name, "_int64_uint64"), [Int, Uint], Bool),
                global(concat!($name, "_uint64"), [Uint, Uint], Bool),
                global(concat!($name, "_uint64_double"), [Uint, Double], Bool),
                global(concat!($name, "_uint64_int64"), [Uint, Int], Bool),
                global(concat!($name, "_double"), [Double, Double], Bool),
                global(concat!($name, "_double_int64"), [Double, Int], Bool),
                global(concat!($name, "_double_uint64"), [Double, Uint], Bool),
                global(concat!($name, "_string"), [String, String], Bool),
                global(concat!($name, "_bytes"), [Bytes, Bytes], Bool),
                global(concat!($name, "_timestamp"), [Timestamp, Timestamp], Bool),
                global(concat!($name, "_duration"), [Duration, Duration], Bool),
            ],
        )
    };
}

fn order() -> Vec<FunctionDecl> {
    vec![
        comparison!(operators::LESS, "less"),
        comparison!(operators::LESS_EQUALS, "less_equals"),
        comparison!(operators::GREATER, "greater"),
        comparison!(operators::GREATER_EQUALS, "greater_equals"),
    ]
}

fn arithmetic() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new(
            operators::ADD,
            [
                alike("add_bytes", Bytes),
                alike("add_double", Double),
                alike("add_duration_duration", Duration),
                global("add_duration_timestamp", [Duration, Timestamp], Timestamp),
                global("add_timestamp_duration", [Timestamp, Duration], Timestamp),
                alike("add_int64", Int),
                alike("add_list", list()),
                alike("add_string", String),
                alike("add_uint64", Uint),
            ],
        ),
        FunctionDecl::new(
            operators::SUBTRACT,
            [
                alike("subtract_double", Double),
                alike("subtract_duration_duration", Duration),
                alike("subtract_int64", Int),
                global("subtract_timestamp_duration", [Timestamp, Duration], Timestamp),
                global("subtract_timestamp_timestamp", [Timestamp, Timestamp], Duration),
                alike("subtract_uint64", Uint),
            ],
        ),
        FunctionDecl::new(
            operators::MULTIPLY,
            [alike("multiply_double", Double), alike("multiply_int64", Int), alike("multiply_uint64", Uint)],
        ),
        FunctionDecl::new(
            operators::DIVIDE,
            [alike("divide_double", Double), alike("divide_int64", Int), alike("divide_uint64", Uint)],
        ),
        FunctionDecl::new(operators::MODULO, [alike("modulo_int64", Int), alike("modulo_uint64", Uint)]),
        FunctionDecl::new(
            operators::NEGATE,
            [global("negate_double", [Double], Double), global("negate_int64", [Int], Int)],
        ),
    ]
}

fn containers() -> Vec<FunctionDecl> {
    let is_in = || [global("in_list", [a(), list()], Bool), global("in_map", [a(), map()], Bool)];
    vec![
        FunctionDecl::new(
            operators::INDEX,
            [global("index_list", [list(), Int], a()), global("index_map", [map(), a()], Type::param("B"))],
        ),
        FunctionDecl::new(operators::IN, is_in()),
        FunctionDecl::new("_in_", is_in()),
        FunctionDecl::new("in", is_in()),
        FunctionDecl::new(
            "size",
            [
                global("size_bytes", [Bytes], Int),
                member("bytes_size", [Bytes], Int),
                global("size_list", [list()], Int),
                member("list_size", [list()], Int),
                global("size_map", [map()], Int),
                member("map_size", [map()], Int),
                global("size_string", [String], Int),
                member("string_size", [String], Int),
            ],
        ),
    ]
}

fn conversions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("type", [global("type", [a()], Type::type_of(a()))]),
        FunctionDecl::new("dyn", [global("to_dyn", [a()], Dyn)]),
        FunctionDecl::new("bool", [global("bool_to_bool", [Bool], Bool), global("string_to_bool", [String], Bool)]),
        FunctionDecl::new(
            "bytes",
            [global("bytes_to_bytes", [Bytes], Bytes), global("string_to_bytes", [String], Bytes)],
        ),
        FunctionDecl::new(
            "double",
            [
                global("double_to_double", [Double], Double),
                global("int64_to_double", [Int], Double),
                global("string_to_double", [String], Double),
                global("uint64_to_double", [Uint], Double),
            ],
        ),
        FunctionDecl::new(
            "duration",
            [global("duration_to_duration", [Duration], Duration), global("string_to_duration", [String], Duration)],
        ),
        FunctionDecl::new(
            "int",
            [
                global("int64_to_int64", [Int], Int),
                global("double_to_int64", [Double], Int),
                global("duration_to_int64", [Duration], Int),
                global("string_to_int64", [String], Int),
                global("timestamp_to_int64", [Timestamp], Int),
                global("uint64_to_int64", [Uint], Int),
            ],
        ),
        FunctionDecl::new(
            "string",
            [
                global("string_to_string", [String], String),
                global("bool_to_string", [Bool], String),
                global("bytes_to_string", [Bytes], String),
                global("double_to_string", [Double], String),
                global("duration_to_string", [Duration], String),
                global("int64_to_string", [Int], String),
                global("timestamp_to_string", [Timestamp], String),
                global("uint64_to_string", [Uint], String),
            ],
        ),
        FunctionDecl::new(
            "timestamp",
            [
                global("timestamp_to_timestamp", [Timestamp], Timestamp),
                global("int64_to_timestamp", [Int], Timestamp),
                global("string_to_timestamp", [String], Timestamp),
            ],
        ),
        FunctionDecl::new(
            "uint",
            [
                global("uint64_to_uint64", [Uint], Uint),
                global("double_to_uint64", [Double], Uint),
                global("int64_to_uint64", [Int], Uint),
                global("string_to_uint64", [String], Uint),
            ],
        ),
    ]
}

fn texts() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("contains", [member("contains_string", [String, String], Bool)]),
        FunctionDecl::new("endsWith", [member("ends_with_string", [String, String], Bool)]),
        FunctionDecl::new("startsWith", [member("starts_with_string", [String, String], Bool)]),
        FunctionDecl::new(
            "matches",
            [global("matches", [String, String], Bool), member("matches_string", [String, String], Bool)],
        ),
    ]
}

/// A part of a time, in UTC or in a zone, perhaps also of a duration.
fn part(name: &'static str, utc: &'static str, zoned: &'static str, duration: Option<&'static str>) -> FunctionDecl {
    let of_time = [member(utc, [Timestamp], Int), member(zoned, [Timestamp, String], Int)];
    FunctionDecl::new(name, of_time.into_iter().chain(duration.map(|id| member(id, [Duration], Int))))
}

fn times() -> Vec<FunctionDecl> {
    vec![
        part("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", None),
        part("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", None),
        part("getDayOfYear", "timestamp_to_day_of_year", "timestamp_to_day_of_year_with_tz", None),
        part("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", None),
        part("getDate", "timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz", None),
        part("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", None),
        part("getHours", "timestamp_to_hours", "timestamp_to_hours_with_tz", Some("duration_to_hours")),
        part("getMinutes", "timestamp_to_minutes", "timestamp_to_minutes_with_tz", Some("duration_to_minutes")),
        part("getSeconds", "timestamp_to_seconds", "timestamp_to_seconds_tz", Some("duration_to_seconds")),
        part(
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            Some("duration_to_milliseconds"),
        ),
    ]
}
