//! Tests of the functions, one behaviour per test. Expected results are those of cel-go 0.29 and Kubernetes 1.37.

use std::collections::HashMap;
use std::sync::LazyLock;

use proptest::prelude::*;

use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::value::{Duration, Timestamp};
use crate::cel::eval::{CallScope, EvalError, Value};
use crate::cel::function::{CalledBy, Implementation};
use crate::meta::field::Undeclared;
use crate::meta::minor::Minor;
use crate::work::counted;

fn implementation(id: &str) -> Option<Implementation> {
    static BY_ID: LazyLock<HashMap<&str, Implementation>> = LazyLock::new(|| {
        let functions = super::kubernetes(Minor::NEWEST, Minor::NEWEST);
        let overloads = functions.iter().flat_map(|function| &function.overloads);
        let made = overloads.filter_map(|overload| match overload.run {
            CalledBy::Function(implementation) => Some((overload.id, implementation)),
            CalledBy::Evaluator => None,
        });
        made.collect()
    });
    BY_ID.get(id).copied()
}

fn call<'a>(id: &str, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let function = implementation(id).unwrap_or_else(|| panic!("{id} has no implementation"));
    function(&mut CallScope::default(), arguments)
}

/// Checks the result, or the error, as it is shown in messages.
#[track_caller]
fn check(id: &str, arguments: &[Value<'_>], expected: &str) {
    let result = call(id, arguments).map_or_else(|error| error.to_string(), |value| show(&value));
    assert_eq!(result, expected, "{id}");
}

fn text(text: &str) -> Value<'_> {
    Value::borrowed(text)
}

fn texts<'a>(texts: &[&'a str]) -> Value<'a> {
    Value::list(texts.iter().map(|text| Value::borrowed(text)).collect())
}

fn ints<'a>(numbers: &[i64]) -> Value<'a> {
    Value::list(numbers.iter().map(|number| Value::Int(*number)).collect())
}

#[track_caller]
fn made<'a>(id: &str, from: &'a str) -> Value<'a> {
    call(id, &[text(from)]).unwrap_or_else(|error| panic!("{id}({from}): {error}"))
}

#[test]
fn integers_overflow_into_errors() {
    check("add_int64", &[Value::Int(i64::MAX), Value::Int(1)], "integer overflow");
    check("subtract_uint64", &[Value::Uint(1), Value::Uint(2)], "unsigned integer overflow");
    check("divide_int64", &[Value::Int(i64::MIN), Value::Int(-1)], "integer overflow");
    check("divide_int64", &[Value::Int(1), Value::Int(0)], "division by zero");
    check("modulo_uint64", &[Value::Uint(1), Value::Uint(0)], "modulus by zero");
    check("negate_int64", &[Value::Int(i64::MIN)], "integer overflow");
    check("divide_double", &[Value::Double(1.0), Value::Double(0.0)], "+Inf");
}

#[test]
fn numbers_of_different_types_are_compared() {
    check("less_int64_uint64", &[Value::Int(-1), Value::Uint(u64::MAX)], "true");
    check("greater_double_int64", &[Value::Double(9.3e18), Value::Int(i64::MAX)], "true");
    check("less_equals_uint64_double", &[Value::Uint(1), Value::Double(f64::NAN)], "NaN values cannot be ordered");
    check("less_bool", &[Value::Bool(false), Value::Bool(true)], "true");
}

#[test]
fn conversions_are_checked() {
    check("double_to_int64", &[Value::Double(9.3e18)], "integer overflow");
    check("double_to_int64", &[Value::Double(-1.9)], "-1");
    check("double_to_uint64", &[Value::Double(-0.5)], "unsigned integer overflow");
    check("string_to_int64", &[text("+5")], "5");
    check("string_to_uint64", &[text("+5")], "type conversion error from 'string' to 'uint'");
    check("string_to_double", &[text("0x1p-2")], "0.25");
    check("string_to_bool", &[text("T")], "true");
    check("bytes_to_string", &[Value::bytes([0xff])], "invalid UTF-8 in bytes, cannot convert to string");
    check("double_to_string", &[Value::Double(1e6)], "1e+06");
    check("string_to_duration", &[text("1d")], "type conversion error from 'string' to 'google.protobuf.Duration'");
}

#[test]
fn times_keep_their_zone() {
    let time = made("string_to_timestamp", "2023-12-31T23:30:00.5-01:00");
    check("timestamp_to_string", std::slice::from_ref(&time), "2023-12-31T23:30:00.5-01:00");
    check("timestamp_to_year", std::slice::from_ref(&time), "2024");
    check("timestamp_to_day_of_week", std::slice::from_ref(&time), "1");
    let later = call("add_timestamp_duration", &[time, Value::Duration(Duration(1_500_000_000))]);
    check("timestamp_to_string", &[later.unwrap_or_default()], "2023-12-31T23:30:02-01:00");
    check("string_to_timestamp", &[text("9999-12-31T23:59:59-01:00")], "timestamp overflow");
    check("duration_to_string", &[Value::Duration(Duration(-5_400_500_000_000))], "-5400.5s");
}

#[test]
fn zones_have_names_or_offsets() {
    let time = || made("string_to_timestamp", "2024-07-01T12:00:00Z");
    check("timestamp_to_hours_with_tz", &[time(), text("America/New_York")], "8");
    check("timestamp_to_hours_with_tz", &[time(), text("-02:30")], "9");
    check("timestamp_to_hours_with_tz", &[time(), text("europe/berlin")], "unknown time zone europe/berlin");
    check("timestamp_to_hours_with_tz", &[time(), text("../UTC")], "time: invalid location name");
    check("timestamp_to_hours_with_tz", &[time(), text("x:0")], r#"strconv.Atoi: parsing "x": invalid syntax"#);
    let last = Value::Timestamp(Timestamp { seconds: 253_402_300_799, nanos: 0, offset_seconds: 0 });
    check("timestamp_to_year_with_tz", &[last, text("Asia/Tokyo")], "10000");
}

#[test]
fn texts_are_taken_apart_by_characters() {
    check("string_char_at_int", &[text("aé"), Value::Int(1)], "é");
    check("string_char_at_int", &[text("aé"), Value::Int(3)], "index out of range: 3");
    check("string_index_of_string_int", &[text("éaéa"), text("a"), Value::Int(2)], "3");
    check("string_last_index_of_string_int", &[text("abab"), text("ab"), Value::Int(1)], "0");
    check("string_last_index_of_string", &[text(""), text("")], "0");
    check(
        "string_substring_int_int",
        &[text("aéb"), Value::Int(2), Value::Int(1)],
        "invalid substring range. start: 2, end: 1",
    );
    check("string_split_string_int", &[text("a,b,c"), text(","), Value::Int(2)], "[a, b,c]");
    check("string_split_string", &[text("aé"), text("")], "[a, é]");
    check("string_replace_string_string_int", &[text("aé"), text(""), text("-"), Value::Int(2)], "-a-é");
    check("string_trim", &[text("\u{a0} a\t\u{2003}")], "a");
    check("string_upper_ascii", &[text("aé")], "Aé");
    check("strings_quote", &[text("a\"\x07é")], r#""a\"\aé""#);
    check("list_join_string", &[texts(&["a", "b"]), text("-")], "a-b");
    check("list_join", &[Value::list(vec![text("a"), Value::Int(1)])], "join: invalid input: 1");
}

#[test]
fn what_a_replacement_makes_is_bounded() {
    let (long, wide) = ("a".repeat(100_000), "b".repeat(100_000));
    check("string_replace_string_string", &[text(&long), text(""), text(&wide)], "string of more than 67108864 bytes");
}

#[test]
fn lists_that_share_their_parts_are_written_out_up_to_a_bound() {
    let nested = (0..8).fold(Value::Int(1), |inner, _| Value::list(vec![inner; 10]));
    let (_, steps) = counted(|| {
        check("list_flatten_int", &[nested.clone(), Value::Int(9)], "list of more than 2097152 items");
        let too_many = "error during formatting: list of more than 2097152 items";
        check("string_format", &[text("%s"), Value::list(vec![nested.clone()])], too_many);
        let long = Value::list(vec![Value::string("x".repeat(1 << 20)); 100]);
        let too_long = "error during formatting: string of more than 67108864 bytes";
        check("string_format", &[text("%s"), Value::list(vec![long])], too_long);
    });
    assert!((4_000_000..8_000_000).contains(&steps), "{steps} steps");
}

#[test]
fn formats_are_american() {
    let format = |template: &str, arguments: Vec<Value<'static>>, expected: &str| {
        check("string_format", &[text(template), Value::list(arguments)], expected);
    };
    format("%.2f", vec![Value::Double(-1_234_567.125)], "-1,234,567.12");
    format("%e", vec![Value::Double(1234.5)], "1.234500×10⁰³");
    format("%.20e", vec![Value::Double(0.5)], "      5.000000×10⁻⁰¹");
    format("%f", vec![Value::string("Infinity")], "∞");
    format(
        "%x %X %b %o",
        vec![Value::Int(-255), Value::string("é"), Value::Bool(true), Value::Uint(8)],
        "-ff C3A9 1 10",
    );
    let list = Value::list(vec![Value::Double(1.0), Value::string("a"), Value::Duration(Duration(1)), Value::Null]);
    format("%s", vec![list], r#"[1.000000, "a", duration("0.000000001s"), null]"#);
    let map = Map::owned([(Value::string("b"), Value::Int(1)), (Value::Int(2), Value::Bool(true))]);
    format("%s%%", vec![Value::Map(map)], "{\"b\":1, 2:true}%");
    format(
        "%d",
        vec![Value::Double(1.0)],
        "error during formatting: decimal clause can only be used on integers, was given double",
    );
    format("%q", vec![Value::Null], "could not parse formatting clause: unrecognized formatting clause \"q\"");
    format("%", vec![Value::Null], "unexpected end of string");
    format("%s", vec![], "index 0 out of range");
}

#[test]
fn lists_are_searched_sorted_and_summed() {
    check("list_a_last_index_of_int", &[ints(&[1, 2, 1]), Value::Double(1.0)], "2");
    check("list_int_max_int", &[ints(&[])], "max called on empty list");
    check("list_int_sum_int", &[ints(&[i64::MAX, 1])], "integer overflow");
    check("list_string_is_sorted_bool", &[texts(&["a", "b", "a"])], "false");
    check("list_string_sort", &[texts(&["b", "a"])], "[a, b]");
    let mixed = || Value::list(vec![Value::Int(1), text("a")]);
    check("list_int_sort", &[mixed()], "list elements must have the same type");
    check("list_int_sortByAssociatedKeys", &[texts(&["a", "b", "c"]), ints(&[3, 1, 2])], "[b, c, a]");
    check("list_distinct", &[Value::list(vec![Value::Int(1), Value::Double(1.0), text("1")])], "[1, 1]");
    check("list_slice", &[ints(&[1, 2, 3]), Value::Int(1), Value::Int(4)], "cannot slice(1, 4), list is length 3");
    check("list_flatten_int", &[Value::list(vec![Value::list(vec![ints(&[1])])]), Value::Int(2)], "[1]");
    check("lists_range", &[Value::Int(1_000_001)], "lists.range: size 1000001 exceeds maximum allowed (1000000)");
    check("list_last", &[ints(&[])], "optional.none()");
    check("list_includes_dyn_dyn", &[text("a"), text("a")], "true");
}

#[test]
fn sets_and_maps() {
    check("list_sets_contains_list", &[ints(&[1, 2]), Value::list(vec![Value::Uint(2)])], "true");
    check("list_sets_equivalent_list", &[ints(&[1, 1]), ints(&[1])], "true");
    check("list_sets_intersects_list", &[ints(&[1]), ints(&[2])], "false");
    let map = || Value::Map(Map::owned([(text("a"), Value::Int(1))]));
    check("in_map", &[text("b"), map()], "false");
    check("@mapInsert_map_key_value", &[map(), text("a"), Value::Int(2)], "insert failed: key a already exists");
}

#[test]
fn optionals_hold_values_or_nothing() {
    check("optional_ofNonZeroValue", &[text("")], "optional.none()");
    check("optional_value", &[Value::OPTIONAL_NONE], "optional.none() dereference");
    check("optional_unwrap", &[Value::list(vec![Value::OPTIONAL_NONE, Value::optional_of(Value::Int(1))])], "[1]");
}

#[test]
fn expressions_are_gos() {
    check("matches_string", &[text("aé"), text("^\\w$")], "false");
    check("matches", &[text("a"), text("(")], "error parsing regexp: missing closing ): `(`");
    check("string_find_string", &[text("xaab"), text("a*$|a+")], "aa");
    check("string_find_all_string", &[text("baac"), text("a*")], "[, aa, ]");
    check("string_find_all_string_int", &[text("aaa"), text("a"), Value::Int(2)], "[a, a]");
    check("string_find_string", &[text("a"), text("[")], "Illegal regex: error parsing regexp: missing closing ]: `[`");
}

#[test]
fn addresses_are_canonical_or_refused() {
    check("ip_is_canonical", &[text("2001:DB8::1")], "false");
    check("ip_is_global_unicast", &[made("string_to_ip", "255.255.255.255")], "false");
    check("string_to_ip", &[text("::ffff:1.2.3.4")], r#"IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed"#);
    let cidr = || made("string_to_cidr", "10.1.2.3/8");
    check("cidr_masked", &[cidr()], "10.0.0.0/8");
    check("cidr_contains_ip_string", &[cidr(), text("x")], "no such overload");
    check("cidr_contains_cidr_string", &[cidr(), text("10.2.0.0/16")], "true");
    check(
        "string_to_cidr",
        &[text("1.2.3.4")],
        "network address parse error during conversion from string: network address parse error during conversion from \
         string: netip.ParsePrefix(\"1.2.3.4\"): no '/'",
    );
}

#[test]
fn urls_are_absolute_or_paths() {
    let url = || made("string_to_url", "https://u@[::1]:80/a b?x=1&x=2#f");
    check("url_get_host", &[url()], "[::1]:80");
    check("url_get_hostname", &[url()], "::1");
    check("url_get_escaped_path", &[url()], "/a%20b");
    check("url_get_query", &[url()], "{x: [1, 2]}");
    check("is_url_string", &[text("../a")], "false");
    check(
        "string_to_url",
        &[text("a")],
        r#"URL parse error during conversion from string: parse "a": invalid URI for request"#,
    );
}

#[test]
fn quantities_are_compared_and_summed() {
    let quantity = |text| made("string_to_quantity", text);
    check("quantity_compare_to", &[quantity("1Gi"), quantity("1024Mi")], "0");
    check("quantity_is_integer", &[quantity("1000m")], "false");
    check("quantity_get_int", &[quantity("0.5")], "cannot convert value to integer");
    check("quantity_sub_int", &[quantity("1500m"), Value::Int(1)], "500m");
    check("string_to_quantity", &[text("1K")], "unable to parse quantity's suffix");
}

#[test]
fn a_sum_is_equal_to_a_quantity_but_not_the_other_way_round() {
    let sum = call("quantity_add_int", &[made("string_to_quantity", "1"), Value::Int(1)]).unwrap_or_default();
    let two = made("string_to_quantity", "2");
    assert_eq!(sum.is(&two), Ok(true));
    assert_eq!(two.is(&sum), Err(EvalError::no_such_overload()));
}

#[test]
fn a_quantity_compared_with_a_decimal_is_no_integer_any_more() {
    let quantity = made("string_to_quantity", "5");
    check("quantity_is_integer", std::slice::from_ref(&quantity), "true");
    check("quantity_is_less_than", &[quantity.clone(), made("string_to_quantity", "1.5Gi")], "true");
    check("quantity_is_integer", &[quantity], "false");
}

#[test]
fn versions_are_read_tolerantly_if_one_likes() {
    check("string_bool_to_semver", &[text("v1.02"), Value::Bool(true)], "1.2.0");
    check("is_semver_string", &[text("v1.2.3")], "false");
    check("semver_is_less_than", &[made("string_to_semver", "1.0.0-rc"), made("string_to_semver", "1.0.0")], "true");
}

#[test]
fn named_formats_tell_what_is_wrong() {
    let label = || call("format.dns1123Label", &[]).unwrap_or_default();
    check("format-validate", &[label(), text("a-b")], "optional.none()");
    check("format-validate", &[label(), text("a.b")], "optional([must not contain dots])");
    check("format-named", &[text("dns")], "optional.none()");
}

#[test]
fn an_expression_knows_what_its_version_has() {
    let known = |version| super::kubernetes(Minor::NEWEST, Minor::of(version));
    let knows = |version, name| known(version).iter().any(|function| function.name == name);
    assert!(knows(37, "includes") && !knows(36, "includes"));
    assert!(knows(28, "quantity") && !knows(27, "quantity"));
    assert!(knows(0, "url") && knows(0, "isSorted"));
}

#[test]
fn a_server_has_what_its_minor_built_and_asks_its_prices() {
    let knows = |minor, name| {
        let functions = super::kubernetes(Minor::of(minor), Minor::of(minor));
        functions.iter().any(|function| function.name == name)
    };
    // It was added to the library of optionals, which 1.28 has.
    assert!(knows(33, "first") && !knows(32, "first"));
    let is_one = |minor| {
        let functions = super::kubernetes(Minor::of(minor), Minor::of(minor));
        let found = functions.into_iter().find(|function| function.name == "isQuantity").expect("it is known");
        matches!(found.overloads[0].cost, crate::cel::cost::Cost::One)
    };
    assert!(is_one(29) && !is_one(30));
}

#[test]
fn what_an_older_version_does_not_declare_is_dated() {
    let function = |name: &str| super::new_since(&Undeclared::Function(name.to_owned()));
    let name = |name: &str| super::new_since(&Undeclared::Name(name.to_owned()));
    // The method of strings, and the library of formats, whose functions have names like `format.uuid`.
    assert_eq!((function("format"), name("format")), (Some(Minor::of(30)), Some(Minor::of(32))));
    assert_eq!((name("ip"), function("ip")), (Some(Minor::of(31)), Some(Minor::of(31))));
    assert_eq!((function("transformList"), function("sortBy")), (Some(Minor::of(33)), Some(Minor::of(35))));
    assert_eq!((function("nothing"), name("nothing"), name("quantity")), (None, None, None));
}

/// Any value; there are few distinct texts, so that equal ones occur.
fn any_value() -> impl Strategy<Value = Value<'static>> {
    let any_text = prop_oneof![
        "[0-9a-z:/.%+\\-]{0,12}",
        "\\PC{0,6}",
        Just("a".to_owned()),
        Just("%.3f %s".to_owned()),
        Just("2024-02-29T00:00:00.5+01:00".to_owned()),
        "[+-]?[0-9]{0,25}[.]?[0-9]{0,12}([numkMGTPE]|[KMGTPE]i|e[+-]?[0-9]{1,11})?",
    ];
    let made = |id: &'static str, pattern: &'static str| {
        pattern.prop_map(move |text| call(id, &[Value::string(text)]).unwrap_or_default())
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![any::<i64>(), -3..20_i64].prop_map(Value::Int),
        prop_oneof![any::<u64>(), 0..20_u64].prop_map(Value::Uint),
        any::<f64>().prop_map(Value::Double),
        any_text.prop_map(Value::string),
        any::<Vec<u8>>().prop_map(Value::bytes),
        any::<i64>().prop_map(|nanos| Value::Duration(Duration(nanos))),
        (-62_135_596_800..=253_402_300_799_i64, 0..1_000_000_000_u32, -90_000..90_000_i32).prop_map(
            |(seconds, nanos, offset_seconds)| Value::Timestamp(Timestamp { seconds, nanos, offset_seconds })
        ),
        made("string_to_quantity", "[0-9]{1,25}([.][0-9]{0,12})?([numkMGTPE]|[KMGTPE]i|e[+-]?[0-9]{1,11})?"),
        made("string_to_cidr", "[0-9a-f:]{1,4}::/[0-9]{1,2}"),
        made("string_to_ip", "[0-9]{1,2}[.]1[.]2[.]3"),
        made("string_to_url", "[a-z]{0,3}:?//?[a-z@:\\[\\]]{0,8}/[%a-f0-9]{0,6}"),
        made("string_to_semver", "[0-9][.][0-9]{1,3}[.][0-9](-[a-z0-9.]{1,4})?"),
        made("format-named", "dns1123Label"),
    ];
    leaf.prop_recursive(2, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::list),
            prop::collection::vec((inner.clone(), inner.clone()), 0..4)
                .prop_map(|entries| Value::Map(Map::owned(entries))),
            inner.prop_map(Value::optional_of),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// With any arguments: of the declared types, of others, and too few.
    #[test]
    fn no_arguments_break_a_function(arguments in prop::collection::vec(any_value(), 0..4)) {
        for function in super::kubernetes(Minor::NEWEST, Minor::NEWEST) {
            for overload in &function.overloads {
                let CalledBy::Function(function) = overload.run else { continue };
                if let Ok(value) = function(&mut CallScope::default(), &arguments) {
                    show(&value);
                }
            }
        }
    }
}

#[test]
fn the_name_of_the_type_of_optionals_has_a_parameter_since_1_37() {
    let error = |minor| {
        let issues = crate::cel::env::Env::of(Minor::of(minor), crate::cel::env::Expressions::Stored)
            .compile("string(optional_type)");
        issues.map(drop).expect_err("there is no such overload").to_string()
    };
    assert!(error(36).contains("applied to '(type(optional_type))'"), "{}", error(36));
    assert!(error(37).contains("applied to '(type(optional_type(dyn)))'"), "{}", error(37));
}
