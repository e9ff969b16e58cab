//! Tests of the values and costs of expressions; expected values are those of cel-go 0.29 with the Kubernetes libraries
//! 1.37.

use super::host::{HostField, HostForm, HostShape, ListForm, ListKind, MapForm};
use super::{BoundValue, Program, Value};
use crate::cel::env::{Env, Expressions};
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::value::json;

/// Evaluates `text` and shows the value or error, and the cost.
#[track_caller]
fn check(text: &str, expected: &str, cost: u64) {
    check_with(text, &[], u64::MAX, expected, cost);
}

#[track_caller]
fn check_with(text: &str, variables: &[(&str, BoundValue<'_>)], limit: u64, expected: &str, cost: u64) {
    let mut env = Env::kubernetes(Expressions::Stored);
    for (name, _) in variables {
        env = env.with_variable(name, Type::Dyn);
    }
    let checked = env.compile(text).unwrap_or_else(|issues| panic!("{issues}"));
    let program = Program::new(&checked, &env).unwrap_or_else(|error| panic!("{error}"));
    let bindings: Vec<BoundValue<'_>> = variables.iter().map(|(_, binding)| binding.clone()).collect();
    let evaluation = program.evaluate(&bindings, limit);
    let shown = match evaluation.result {
        Ok(value) => super::show::show(&value),
        Err(error) => format!("error: {error}"),
    };
    assert_eq!((shown.as_str(), evaluation.cost), (expected, cost), "{text}");
}

#[test]
fn what_is_not_an_optional_is_its_own_value_before_1_37() {
    let evaluate = |minor: u16, text: &str| {
        let env = Env::of(Minor::of(minor), Expressions::Stored);
        let checked = env.compile(text).unwrap_or_else(|issues| panic!("{issues}"));
        let program = Program::new(&checked, &env).unwrap_or_else(|error| panic!("{error}"));
        program.evaluate(&[], u64::MAX).result.map(|value| super::show::show(&value)).map_err(|error| error.to_string())
    };
    for text in ["dyn('a').orValue('b')", "dyn('a').or(optional.of('b'))"] {
        assert_eq!(evaluate(36, text), Ok("a".to_owned()));
        assert_eq!(evaluate(37, text), Err("no such overload".to_owned()));
    }
}

fn number(number: i64) -> BoundValue<'static> {
    Some(Ok(Value::Int(number)))
}

#[test]
fn constants_are_folded_and_cost_nothing() {
    check("[1, 2, 3]", "[1, 2, 3]", 0);
    check("{'a': 1}", "{a: 1}", 0);
    check("int('12')", "12", 0);
    check("2 in [1, 2]", "true", 0);
    check("1 + 2", "3", 1);
}

#[test]
fn constant_faults_show_before_evaluation() {
    let env = Env::kubernetes(Expressions::Stored);
    let checked = env.compile("int('x') == 1").expect("it checks");
    let error = Program::new(&checked, &env).expect_err("the conversion fails");
    assert_eq!(error.to_string(), "type conversion error from 'string' to 'int'");
}

#[test]
fn logic_passes_over_errors_where_the_other_side_decides() {
    check("1 / 0 > 0 || true", "true", 2);
    check("true || 1 / 0 > 0", "true", 0);
    check("1 / 0 > 0 && true", "error: division by zero", 2);
    check("[1, 0].exists(x, 1 / x > 0)", "true", 11);
    check("[0, 1].all(x, 1 / x > 0)", "error: division by zero", 13);
}

#[test]
fn a_missing_variable_is_an_error() {
    check_with("x + 1", &[("x", None)], u64::MAX, "error: no such attribute(s): x", 2);
}

#[test]
fn evaluation_ends_with_the_step_that_costs_too_much() {
    let limited = "error: operation cancelled: actual cost limit exceeded";
    check_with("[1, 2, 3].all(x, x > 0)", &[], 7, limited, 8);
    check_with("1 + 2 + 3", &[], 2, "6", 2);
}

#[test]
fn comprehensions_collect_in_order() {
    check("[1, 2, 3].map(x, x * 2)", "[2, 4, 6]", 43);
    check("[1, 2, 3].filter(x, x > 1)", "[2, 3]", 33);
    check("['a', 'b'].transformMap(i, s, i)", "{0: 0, 1: 1}", 9);
    check("{'a': 1}.map(k, k)", "[a]", 14);
}

#[test]
fn optionals_end_at_the_first_absence() {
    check("{'a': 1}[?'b'].orValue(5)", "5", 1);
    check("{'a': 1}[?'a'].orValue(5)", "1", 2);
    check("optional.of(1).optMap(x, x + 1).value()", "2", 8);
}

#[test]
fn an_index_costs_as_the_reference_counts_it() {
    let list = Some(Ok(Value::list(vec![Value::Int(7), Value::Int(8)])));
    check_with("l[i]", &[("l", list.clone()), ("i", number(1))], u64::MAX, "8", 2);
    check_with("l[i + 1]", &[("l", list), ("i", number(1))], u64::MAX, "error: index out of bounds: 2", 4);
}

#[test]
fn objects_are_read_through_their_form() {
    let text = |escaped: &str| HostField {
        form: HostForm { nullable: false, nulls_differ: false, shape: HostShape::String }.into(),
        escaped: escaped.to_owned(),
    };
    let set = ListForm {
        item: HostForm { nullable: false, nulls_differ: false, shape: HostShape::Integer }.into(),
        kind: ListKind::Set,
    };
    let set = HostField {
        form: HostForm { nullable: false, nulls_differ: false, shape: HostShape::List(Box::new(set)) }.into(),
        escaped: "set".to_owned(),
    };
    let fields = [("a-b".to_owned(), text("a__dash__b")), ("set".to_owned(), set), ("wrong".to_owned(), text("wrong"))];
    let form = HostForm {
        nullable: false,
        nulls_differ: false,
        shape: HostShape::Map(MapForm::Fields(fields.into_iter().collect())),
    };
    let object = json::decode(br#"{"a-b": "x", "set": [1, 2], "wrong": 1, "unknown": true}"#).expect("it is JSON");
    let check = |expression: &str, expected: &str, cost: u64| {
        check_with(expression, &[("o", Some(Value::host(&object, &form)))], u64::MAX, expected, cost);
    };
    check("o.a__dash__b", "x", 2);
    check("o.set == [2, 1]", "true", 3);
    check("o.set + [2, 3]", "[1, 2, 3]", 3);
    check("o.wrong", "error: invalid data, expected string, got int64", 2);
    check("o.unknown", "error: no such key: unknown", 2);
    check("has(o.none)", "false", 1);
}

/// Read from the source of Go: a time is compared with its zone, and zones that are not whole hours are made for each time.
#[test]
fn times_in_sets_are_told_apart_by_their_zones() {
    let set = ListForm {
        item: HostForm { nullable: false, nulls_differ: false, shape: HostShape::DateTime }.into(),
        kind: ListKind::Set,
    };
    let form = HostForm { nullable: false, nulls_differ: false, shape: HostShape::List(Box::new(set)) };
    let read = |time: &str| json::decode(format!("[\"{time}\"]").as_bytes()).expect("it is JSON");
    let check = |left: &str, right: &str, expected: &str| {
        let (left, right) = (read(left), read(right));
        let [left, right] = [&left, &right].map(|times| Some(Value::host(times, &form)));
        check_with("l == r", &[("l", left), ("r", right)], u64::MAX, expected, 3);
    };
    check("2026-01-01T02:00:00+02:00", "2026-01-01T02:00:00+02:00", "true");
    check("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z", "false");
    check("2026-01-01T05:30:00+05:30", "2026-01-01T05:30:00+05:30", "false");
}

#[test]
fn keys_of_maps_are_told_apart_as_the_reference_does() {
    check("duration('1s') in {duration('1s'): 1}", "true", 1);
    check("{duration('1s'): 1, duration('1s'): 2}.size()", "1", 1);
    check("{int: 1} == {int: 1}", "true", 1);
    check("ip('1.1.1.1') in {ip('1.1.1.1'): 1}", "true", 33);
    // For lists, quantities and the like it compares pointers; the entries exist all the same.
    check("[1] in {[1]: 5}", "false", 1);
    check("{[1]: 5}.exists(key, value, value == 5)", "true", 7);
    check("quantity('1') in {quantity('1'): 1}", "false", 33);
}

#[test]
fn what_can_be_no_key_ends_the_evaluation() {
    const FAULT: &str = "error: internal error: runtime error: hash of unhashable type types.Bytes";
    check("{[b'a'][size('')]: 1}", FAULT, 3);
    check("true || b'a' in {}", "true", 0);
    check("b'a' in {}", "false", 1);
    let env = Env::kubernetes(Expressions::Stored);
    let checked = env.compile("{b'a': 1}").expect("it checks");
    assert_eq!(
        Program::new(&checked, &env).map(drop).map_err(|error| format!("error: {error}")),
        Err(FAULT.to_owned())
    );
}

#[test]
fn has_of_nothing_is_false() {
    check("has(optional.none().s)", "false", 1);
    check("!has(dyn(optional.of({'s': 1})).s)", "false", 4);
    // In a branch, the reference forgets that only the presence was tested.
    check("true ? has(optional.of({'s': 1}).s) : false", "optional(1)", 2);
}

#[test]
fn lists_of_any_content_are_flattened() {
    check("dyn([dyn(1), dyn([2])]).flatten()", "[1, 2]", 13);
    check("dyn(1).flatten(1)", "error: no such overload: int.flatten(int)", 12);
}

#[test]
fn messages_and_enums_of_protobuf_are_known() {
    check("google.protobuf.Empty{} == google.protobuf.Empty{}", "true", 81);
    check("dyn(google.protobuf.Empty{}).x", "error: no such field 'x'", 43);
    check("google.protobuf.NullValue.NULL_VALUE + 1", "1", 1);
    check("list{}", "error: unknown type 'list'", 40);
}

#[test]
fn a_constant_regular_expression_looks_into_optionals() {
    check("dyn(optional.of('abcb')).find('b')", "b", 3);
    check("dyn(optional.none()).find('b')", "error: no such overload", 3);
    check("dyn(optional.of('abcb')).matches('b' + '')", "error: no such overload: matches", 4);
}

#[test]
fn fields_of_messages_take_values_of_their_types_alone() {
    let unfit = |field: &str, why: &str| {
        format!("error: field type conversion error for google.protobuf.{field} value type: {why}")
    };
    let texts = unfit("Int64Value.value", "unsupported native conversion from string to 'int64'");
    check("google.protobuf.Int64Value{value: dyn('a')}", &texts, 40);
    let nulls = unfit("Duration.seconds", "type conversion error from 'null_type' to 'int64'");
    check("google.protobuf.Duration{seconds: dyn(null)}", &nulls, 40);
    check("google.protobuf.StringValue{value: dyn(ip('::1'))}", "::1", 42);
    let lists = "error: unsupported field type for google.protobuf.Struct.fields: list(dyn)";
    check("google.protobuf.Struct{fields: dyn([1])}", lists, 40);
}

#[test]
fn variables_that_hold_types_are_taken_for_their_names() {
    for (text, name) in [("[int].all(x, x == int)", "x"), ("type(duration('1s')) == duration", "duration")] {
        let env = Env::kubernetes(Expressions::Stored);
        let checked = env.compile(text).expect("it checks");
        let error = Program::new(&checked, &env).expect_err("there is no such type");
        assert_eq!(error.to_string(), format!("reference to undefined type: {name}"));
    }
}

#[test]
fn a_folder_of_zones_is_none() {
    check("timestamp(0).getHours('America')", "error: is a directory", 1);
    check("timestamp(0).getHours('Nowhere')", "error: unknown time zone Nowhere", 1);
}
