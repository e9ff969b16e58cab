//! The errors of values.

use proptest::prelude::*;

use super::outcome::FAULTS_BYTES_MAX;
use super::*;
use crate::meta::field::Error;
use crate::schema::{arbitrary, convert, json_schema};
use crate::value::arbitrary::value;
use crate::value::with_a_deep_stack;

proptest! {
    #[test]
    fn an_update_has_no_errors_that_a_creation_has_not(
        new in value(), old in value(), schema in arbitrary::schema(),
    ) {
        let create = validate(&Path::ROOT, &new, &schema);
        let update = validate_update(&Path::ROOT, &new, &old, &schema).into_vec();
        let correlated = validate_correlated(Minor::NEWEST, &Path::ROOT, &Correlated::new(&new, &old, &schema));
        prop_assert_eq!(&update, &correlated.into_vec());
        for error in update {
            prop_assert!(create.contains(&error));
        }
    }
}

#[track_caller]
fn check(schema: &str, value: &str, expected: &[&str]) {
    let (schema, value) = (json::decode(schema.as_bytes()).unwrap(), json::decode(value.as_bytes()).unwrap());
    let schema = convert::to_structural(&json_schema::decode(&schema).unwrap().0).unwrap();
    let errors: Vec<String> = validate(&Path::ROOT, &value, &schema).iter().map(Error::to_string).collect();
    assert_eq!(errors, expected);
}

#[test]
fn a_fraction_for_an_integer_is_two_errors() {
    let expected = [
        r#"a: Invalid value: "number": a in body must be of type integer: "number""#,
        r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in a"#,
    ];
    check(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#, r#"{"a":1.5}"#, &expected);
}

#[test]
fn null_is_in_no_enum() {
    let expected = [r#"a: Unsupported value: null: supported values: "x""#];
    check(r#"{"properties":{"a":{"type":"string","nullable":true,"enum":["x"]}}}"#, r#"{"a":null}"#, &expected);
}

#[test]
fn a_format_under_a_junctor_is_of_the_minor_too() {
    let count = |minor, schema: &str| {
        let schema = json::decode(schema.as_bytes()).unwrap();
        let schema = convert::to_structural(&json_schema::decode(&schema).unwrap().0).unwrap();
        validate_in(Minor::of(minor), &Path::ROOT, &Value::from("Not One"), &schema).iter().count()
    };
    for schema in [r#"{"type":"string","format":"k8s-short-name"}"#, r#"{"allOf":[{"format":"k8s-short-name"}]}"#] {
        assert_eq!((count(34, schema), count(35, schema) > 0), (0, true), "{schema}");
    }
}

#[test]
fn additional_properties_may_be_forbidden_under_a_junctor() {
    let expected = [
        r#"<nil>: Invalid value: "b": .b in body is a forbidden property"#,
        r#"<nil>: Invalid value: "": "" must validate all the schemas (allOf). None validated"#,
    ];
    check(
        r#"{"type":"object","allOf":[{"properties":{"a":{}},"additionalProperties":false}]}"#,
        r#"{"a":1,"b":1}"#,
        &expected,
    );
}

fn schema(text: &str) -> Structural {
    let schema = json::decode(text.as_bytes()).expect("the test is JSON");
    convert::to_structural(&json_schema::decode(&schema).expect("it is a schema").0).expect("it is structural")
}

/// Steps of validating a list of `items`, both new and unchanged by an update, and bytes of the faults.
fn steps(item: &str, items: Vec<Value>) -> (u64, usize) {
    let schema = schema(&format!(r#"{{"type":"array","items":{item}}}"#));
    let value = Value::Array(items);
    let (bytes, steps) = work::counted(|| {
        let errors = validate(&Path::ROOT, &value, &schema);
        assert!(validate_update(&Path::ROOT, &value, &value, &schema).is_empty());
        errors.iter().map(|error| error.to_string().len()).sum()
    });
    (steps, bytes)
}

#[test]
fn ten_times_the_items_take_ten_times_the_steps() {
    let long = |count: usize| (0..count).map(|at| format!(r#""v{at}""#)).collect::<Vec<_>>().join(",");
    for (item, make) in [
        (r#"{"type":"string"}"#, &(|_| Value::Int(1)) as &dyn Fn(usize) -> Value),
        (r#"{"type":"object","required":["a","b"]}"#, &|_| Value::Object(Map::new())),
        (&format!(r#"{{"type":"string","enum":[{}]}}"#, long(5000)), &|at| format!("v{}", at % 5000).into()),
        (&format!(r#"{{"type":"string","enum":[{}]}}"#, long(5000)), &|at| format!("w{at}").into()),
        (r#"{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}"#, &|_| Value::Object(Map::new())),
    ] {
        let of = |count| steps(item, (0..count).map(make).collect());
        let (small, large) = (of(2000), of(20_000));
        assert!(large.0 < 13 * small.0 && large.1 < 2 * FAULTS_BYTES_MAX + (1 << 20), "{small:?} {large:?}");
    }
}

#[test]
fn an_update_compares_each_part_of_a_deep_object_once() {
    let of = |depth: usize| {
        let open = r#"{"type":"object","required":["x"],"properties":{"x":{"type":"string"},"p":"#.repeat(depth);
        let schema = schema(&format!(r#"{open}{{"type":"object"}}{}"#, "}}".repeat(depth)));
        let value = (0..depth).fold(Value::Object(Map::new()), |inner, _| crate::object! { "p" => inner });
        let errors = || validate_update(&Path::ROOT, &value, &value, &schema).len();
        let (count, steps) = work::counted(errors);
        assert_eq!(count, 0);
        steps
    };
    // The paths of the forgiven errors are longer, too.
    with_a_deep_stack(move || assert!(of(150) < 25 * of(15), "{} {}", of(15), of(150)));
}
