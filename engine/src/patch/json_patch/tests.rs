//! JSON patches, and Go's errors for those that do not apply.

use super::*;
use crate::value::json;

/// Applies a patch of `count` operations to a list of ten times as many items.
#[track_caller]
fn check_growth(operation: &str) {
    let steps = |count: usize| {
        let object = crate::object! { "a" => vec![Value::Int(1); 10 * count], "s" => "x".repeat(100 * count) };
        let patch = format!("[{operation}{}]", format!(",{operation}").repeat(count - 1));
        let (patch, _) = Patch::decode(patch.as_bytes(), true).expect("the test is a patch");
        work::counted(|| patch.apply(&object, Layout::Sorted).expect("it applies")).1
    };
    let (few, many) = (steps(500), steps(5000));
    assert!(many < 13 * few, "{few} steps, then {many}");
}

#[test]
fn a_small_patch_makes_no_more_values_than_the_limit() {
    let doubled = |count: usize| {
        let copies = r#",{"op":"copy","from":"/a","path":"/a/b"}"#.to_owned();
        let copies: String = (0..count).map(|at| copies.replace("/a/b", &format!("/a/b{at}"))).collect();
        let patch = format!(r#"[{{"op":"add","path":"/a","value":{{}}}}{copies}]"#);
        let (patch, _) = Patch::decode(patch.as_bytes(), true).expect("the test is a patch");
        work::counted(|| patch.apply(&crate::object! {}, Layout::Sorted).map(drop).map_err(|error| error.to_string()))
    };
    let (result, few) = doubled(12);
    assert_eq!(result, Ok(()));
    let (result, many) = doubled(30);
    let told = result.expect_err("it is too much");
    assert!(told.contains("the accumulated number of copied values is"), "{told}");
    assert!(many < 100 * few, "{few} steps, then {many}");
    // Characters within texts are not counted.
    assert_eq!((values_in(r#"{"a":[1,2],"b":"{,\",,"}"#), values_in("1")), (5, 1));
}

#[test]
fn ten_times_the_operations_take_ten_times_the_steps() {
    check_growth(r#"{"op":"add","path":"/a/0","value":2}"#);
    check_growth(r#"{"op":"remove","path":"/a/0"}"#);
    check_growth(r#"{"op":"move","from":"/a/0","path":"/a/-"}"#);
    check_growth(r#"{"op":"copy","from":"/a/0","path":"/a/1"}"#);
    check_growth(r#"{"op":"replace","path":"/a/7","value":[1]}"#);
    let unequal = |path: &str, value: &str| {
        let object = crate::object! { "a" => vec![Value::Int(1); 100_000], "s" => "x".repeat(1 << 20) };
        let patch = format!(r#"[{{"op":"test","path":"{path}","value":{value}}}]"#);
        let (patch, _) = Patch::decode(patch.as_bytes(), true).expect("the test is a patch");
        work::counted(|| patch.apply(&object, Layout::Sorted).expect_err("it is another value")).1
    };
    assert!(unequal("/a", "[1]") < 100 && unequal("/s", r#""x""#) < 100);
}

#[test]
fn what_a_strict_reader_minds_is_found_in_as_many_steps_as_there_are_fields() {
    let steps = |count: usize| {
        let fields = r#""path":"","path":"","y":1,"#.repeat(count) + &format!(r#""value":{{"{}":"#, "k".repeat(count));
        let patch = format!(r#"[{{{fields}{{{}"a":1}}}}}}]"#, r#""a":1,"#.repeat(count));
        work::counted(|| Patch::decode(patch.as_bytes(), true).expect("the test is a patch")).1
    };
    let (few, many) = (steps(1000), steps(10_000));
    assert!(many < 13 * few, "{few} steps, then {many}");
}

#[track_caller]
fn check(object: &str, patch: &str, expect: Option<&str>) {
    let object = json::decode(object.as_bytes()).expect("the test is JSON");
    let (patch, _) = Patch::decode(patch.as_bytes(), true).expect("the test is a patch");
    assert_eq!(patch.apply(&object, Layout::Sorted).ok().as_deref(), expect);
}

#[track_caller]
fn check_error(patch: &str, strict: bool, error: &str) {
    let found = Patch::decode(patch.as_bytes(), strict).map_err(|error| error.to_string());
    assert_eq!(found, Err(error.to_owned()));
}

#[test]
fn operations_change_objects_and_arrays() {
    check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-","value":3}]"#, Some(r#"{"a":[1,2,3]}"#));
    check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-1","value":3}]"#, Some(r#"{"a":[1,2,3]}"#));
    check(r#"{"a":[1,2]}"#, r#"[{"op":"remove","path":"/a/-1"}]"#, Some(r#"{"a":[1]}"#));
    check(r#"{"a":1}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, Some(r#"{"b":1}"#));
    check(r#"{"a/b":1}"#, r#"[{"op":"test","path":"/a~1b","value":1}]"#, Some(r#"{"a/b":1}"#));
    check(r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{"b":1}}]"#, Some(r#"{"b":1}"#));
    check(r#"{"a":1}"#, r#"[{"op":"add","path":"x/b","value":2}]"#, Some(r#"{"a":1,"b":2}"#));
}

#[test]
fn a_copy_into_itself_has_its_fields_sorted() {
    const INNER: Layout = Layout::Struct(&[("x", &Layout::Sorted), ("a", &Layout::Sorted)]);
    const OUTER: Layout = Layout::Struct(&[("y", &INNER), ("b", &INNER)]);
    let object = json::decode(br#"{"z":{"y":{"x":1,"a":2},"b":{"x":1,"a":2}}}"#).expect("the test is JSON");
    let patch = br#"[{"op":"copy","from":"/z","path":"/z/b/e"}]"#;
    let (patch, _) = Patch::decode(patch, true).expect("the test is a patch");
    let patched = patch.apply(&object, Layout::Struct(&[("z", &OUTER)])).expect("it applies");
    let copied = r#"{"b":{"a":2,"x":1},"y":{"x":1,"a":2}}"#;
    assert_eq!(patched, format!(r#"{{"z":{{"b":{{"a":2,"e":{copied},"x":1}},"y":{{"x":1,"a":2}}}}}}"#));
}

#[test]
fn what_is_missing_is_often_taken_as_null() {
    check("{}", r#"[{"op":"replace","path":"/a","value":1}]"#, Some(r#"{"a":1}"#));
    check("{}", r#"[{"op":"copy","from":"/x","path":"/a"}]"#, Some(r#"{"a":null}"#));
    check("{}", r#"[{"op":"test","path":"/a","value":null}]"#, Some("{}"));
    check("{}", r#"[{"op":"remove","path":"/a"}]"#, None);
    check("{}", r#"[{"op":"move","from":"/a","path":"/b"}]"#, None);
    check("{}", r#"[{"path":"/a","value":1}]"#, None);
    check(r#"{"a":null}"#, r#"[{"op":"add","path":"/a/b","value":1}]"#, None);
}

#[test]
fn what_does_not_apply_is_told_in_the_words_of_go() {
    let check = |patch: &str, expected: &str| {
        let object = json::decode(br#"{"a":{"b":1},"l":[1]}"#).expect("the test is JSON");
        let (patch, _) = Patch::decode(patch.as_bytes(), false).expect("the test is a patch");
        match patch.apply(&object, Layout::Sorted) {
            Err(PatchError::Apply(told) | PatchError::Test(told)) => assert_eq!(told, expected),
            other => panic!("{other:?} is not {expected}"),
        }
    };
    check(
        r#"[{"op":"add","path":"/x/y","value":1}]"#,
        r#"add operation does not apply: doc is missing path: "/x/y": missing value"#,
    );
    check(
        r#"[{"op":"remove","path":"/x"}]"#,
        "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
    );
    check(
        r#"[{"op":"replace","path":"/l/7","value":1}]"#,
        "replace operation does not apply: doc is missing key: /l/7: missing value",
    );
    check(r#"[{"op":"test","path":"/a/b","value":2}]"#, "testing value /a/b failed: test failed");
    check(
        r#"[{"op":"add","path":"/l/x","value":2}]"#,
        "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid \
             syntax",
    );
    check(
        r#"[{"op":"add","path":"/l/9","value":2}]"#,
        "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    );
    check(
        r#"[{"op":"move","from":"/x/y","path":"/z"}]"#,
        "move operation does not apply: doc is missing from path: /x/y: missing value",
    );
    check(r#"[{"op":"add","value":2}]"#, "add operation failed to decode path: missing value");
    check(r#"[{"op":"jump","path":"/a"}]"#, "Unexpected kind: jump");
}

#[test]
fn a_test_compares_how_scalars_are_written() {
    check(r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":1.0}]"#, None);
    check(
        r#"{"a":{"b":[1,"x"]}}"#,
        r#"[{"op":"test","path":"/a","value":{"b": [1, "x"]}}]"#,
        Some(r#"{"a":{"b":[1,"x"]}}"#),
    );
    check(r#"{"a":"x"}"#, r#"[{"op":"test","path":"/a","value":"\u0078"}]"#, None);
}

#[test]
fn what_a_patch_adds_stays_as_it_is_written() {
    check(
        r#"{"a":"<"}"#,
        r#"[{"op":"add","path":"/b","value": { "z":1.0, "y": "<", "y": 2 }}]"#,
        Some(r#"{"a":"\u003c","b":{"z":1.0,"y":"\u003c","y":2}}"#),
    );
    check(
        "{}",
        r#"[{"op":"add","path":"/b","value":{"z":1,"y":2}},{"op":"add","path":"/b/x","value":3}]"#,
        Some(r#"{"b":{"x":3,"y":2,"z":1}}"#),
    );
}

#[test]
fn unknown_and_repeated_fields_of_operations_are_told() {
    let patch = br#"[{"op":"add","extra":1,"path":"/a","value":{"b":1,"b":2},"value":2}]"#;
    let (_, errors) = Patch::decode(patch, true).expect("the test is a patch");
    let expected = [
        r#"json patch unknown field "[0].extra""#,
        r#"json patch duplicate field "[0].value.b""#,
        r#"json patch duplicate field "[0].value""#,
    ];
    assert_eq!(errors, expected);
}

#[test]
fn what_is_not_a_patch_is_refused_in_the_words_of_go() {
    check_error(
        "{}",
        true,
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    );
    check_error("{}", false, "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
    check_error("[1]", false, "json: cannot unmarshal number into Go value of type jsonpatch.Operation");
    check_error(
        r#"[{"op":1}]"#,
        true,
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
    );
}
