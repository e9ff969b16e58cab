//! YAML as sigs.k8s.io/yaml reads it.

use super::*;
use crate::value::{json, with_a_deep_stack};

#[track_caller]
fn check(yaml: &str, json: &str) {
    let value = decode(yaml.as_bytes()).expect("the test is YAML");
    assert_eq!(json::encode_to_string(&value), json);
}

#[track_caller]
fn check_error(yaml: &str, error: &str) {
    assert_eq!(decode(yaml.as_bytes()).expect_err("a mistake").to_string(), error);
}

#[test]
fn scalars_mean_what_they_mean_in_yaml_1_1() {
    check(
        "a: on\nb: 'on'\nc: 017\nd: 1_000\ne: 0x10\nf: ~\ng: 2026-01-02\nh: 18446744073709551615\n",
        r#"{"a":true,"b":"on","c":15,"d":1000,"e":16,"f":null,"g":"2026-01-02","h":18446744073709552000}"#,
    );
    check("a: 1.0\nb: 1e3\nc: -0.0\nd: 1.5\n", r#"{"a":1,"b":1000,"c":0,"d":1.5}"#);
}

#[test]
fn keys_become_text() {
    check("n: 1\n5: x\n0x10: v\n1.50: z\n1e40: w\n", r#"{".inf":"w","1.5":"z","16":"v","5":"x","false":1}"#);
    check_error("null: 1\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1");
    check_error("? [1, a]\n: x\n", r#"yaml: invalid map key: []interface {}{1, "a"}"#);
}

#[test]
fn blocks_quotes_and_folds_are_read() {
    check(
        "a: |\n  x\n\n  y\nb: >-\n  x\n  y\n\n  z\nc: one\n  two\nd: \"x\\\n  \\x41 \\u00e9\"\ne: 'it''s'\n",
        r#"{"a":"x\n\ny\n","b":"x y\nz","c":"one two","d":"xA é","e":"it's"}"#,
    );
    check("- - 1\n  - {a: [b, c: d], e}\n- ? f\n  : - g\n", r#"[[1,{"a":["b",{"c":"d"}],"e":null}],{"f":["g"]}]"#);
}

#[test]
fn anchors_merge_keys_and_tags_are_resolved() {
    check("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\n", r#"{"a":{"p":1,"q":2},"b":{"p":1,"q":3}}"#);
    check("[!!str 1, !!float 2, !!int '3', ! 4, !!binary aGk=]", r#"["1",2,3,"4","hi"]"#);
    check_error("a: !!int x", "yaml: cannot decode !!str `x` as a !!int");
    check_error("a: *b", "yaml: unknown anchor 'b' referenced");
    check_error("&a [*a]", "yaml: anchor 'a' value contains itself");
}

#[test]
fn mistakes_are_told_as_go_tells_them() {
    check_error("a: [1", "yaml: line 1: did not find expected ',' or ']'");
    check_error("a: b\nspec: {size: 1\n", "yaml: line 2: did not find expected ',' or '}'");
    check_error("\tx: 1\n", "yaml: found character that cannot start any token");
    check_error("a: 1\nb\nc: 2\n", "yaml: line 3: could not find expected ':'");
    check_error("a: b: c", "yaml: mapping values are not allowed in this context");
    check_error("- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator");
    check_error("a: 1\n[", "yaml: line 3: could not find expected ':'");
    check_error("a: .inf", "json: unsupported value: +Inf");
    check_error("a: \u{1}", "yaml: control characters are not allowed");
}

#[test]
fn what_follows_the_first_document_is_not_read() {
    check("a: 1\n---\n]: 2\n", r#"{"a":1}"#);
    check("{a: 1} b", r#"{"a":1}"#);
    check("# nothing\n", "null");
    let values = decode_all(b"a: 1\n---\n---\nb: 2\n...\n").expect("the test is YAML");
    assert_eq!(json::encode_to_string(&values.into()), r#"[{"a":1},null,{"b":2}]"#);
}

#[test]
fn a_key_that_stands_twice_is_told_with_its_line() {
    let (value, errors) =
        decode_strict(b"a: 1\nspec:\n  size: 1\n  size: 2\na: 3\n").expect("repeated keys are not a mistake");
    assert_eq!(json::encode_to_string(&value), r#"{"a":3,"spec":{"size":2}}"#);
    let lines = "  line 4: key \"size\" already set in map\n  line 5: key \"a\" already set in map";
    assert_eq!(errors, [format!("yaml: unmarshal errors:\n{lines}")]);
}

#[test]
fn aliases_can_not_make_a_document_huge() {
    let mut text = String::from("a: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..8 {
        let previous = vec![format!("*a{}", level - 1); 10].join(",");
        text.push_str(&format!("b{level}: &a{level} [{previous}]\n"));
    }
    check_error(&text, "yaml: document contains excessive aliasing");
}

/// A text of `bytes` that is the value of `aliases` fields.
fn aliased(bytes: usize, aliases: usize) -> String {
    let fields: String = (0..aliases).map(|at| format!("k{at}: *a\n")).collect();
    format!("a: &a {}\n{fields}", "x".repeat(bytes))
}

#[test]
fn aliases_can_not_make_a_long_text_longer_still() {
    assert!(decode(aliased(1 << 20, 3).as_bytes()).is_ok());
    check_error(&aliased(1 << 20, 4), "yaml: document contains excessive aliasing");
    check_error(&aliased(1000, 4000), "yaml: document contains excessive aliasing");
    let key = aliased(1 << 20, 0) + "b: {p: {*a : 1}, q: {*a : 1}, r: {*a : 1}, s: {*a : 1}}\n";
    check_error(&key, "yaml: document contains excessive aliasing");
}

#[test]
fn aliases_can_not_nest_deeper_than_json_may() {
    let nested =
        |name: usize, inner: &str| format!("a{name}: &a{name} {}{inner}{}\n", "[".repeat(900), "]".repeat(900));
    let mut text = nested(0, "x");
    for level in 1..12 {
        text.push_str(&nested(level, &format!("*a{}", level - 1)));
    }
    with_a_deep_stack(move || {
        let error = decode(text.as_bytes()).expect_err("it is too deep");
        assert_eq!(error.to_string(), "invalid character '[' exceeded max depth");
    });
}

#[test]
fn ten_times_the_text_takes_ten_times_the_steps() {
    let item = "- {a: [1, 'x', \"y\"], b: &c z, d: *c, ? e : f}\n- |\n  lines\n  of text # and\n";
    let long_tags = |count: usize| format!("%TAG !t! !{}\n--- [{}]", "p".repeat(10 * count), "!t!x y, ".repeat(count));
    let repeated = |count: usize| format!("? {}\n: {{{}}}", "k".repeat(900), "a: 1, ".repeat(count));
    check_growth(|count| item.repeat(count));
    check_growth(|count| format!("# {}\na: 1", "c".repeat(100 * count)));
    check_growth(long_tags);
    check_growth(repeated);
}

#[track_caller]
fn check_growth(text: impl Fn(usize) -> String) {
    let steps = |count| work::counted(|| decode_strict(text(count).as_bytes()).expect("the test is YAML")).1;
    let (few, many) = (steps(300), steps(3000));
    assert!(many < 13 * few, "{few} steps, then {many}");
}
