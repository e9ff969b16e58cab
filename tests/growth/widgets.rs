//! Objects that are large in one way each, of a kind that has everything.

use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{convert, json_schema};

use crate::inputs::{Shape, fields, items, list, value};

/// Objects of the custom kind that the passes are tried with, its `spec` and its metadata after the name as JSON.
pub fn widget(metadata: &str, spec: &str) -> String {
    let comma = if metadata.is_empty() { "" } else { "," };
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"a","namespace":"default"{comma}{metadata}}},"spec":{spec}}}"#
    )
}

/// The metadata that a client can make long, without the name.
pub const METADATA: [Shape; 15] = [
    ("labels", |size| format!(r#""labels":{}"#, fields(size, |at| format!(r#""k{at}":"v""#)))),
    ("wrong labels", |size| format!(r#""labels":{}"#, fields(size, |at| format!(r#""-k{at}":"!""#)))),
    ("a long label", |size| format!(r#""labels":{{"k{}":"{0}"}}"#, "x".repeat(size))),
    ("a wrong long label", |size| format!(r#""labels":{{"k{}":"{0}"}}"#, "x".repeat(size + 64))),
    ("annotations", |size| format!(r#""annotations":{}"#, fields(size, |at| format!(r#""k{at}":"v""#)))),
    ("wrong annotations", |size| format!(r#""annotations":{}"#, fields(size, |at| format!(r#""-k{at}":"v""#)))),
    ("finalizers", |size| format!(r#""finalizers":{}"#, list(size, |at| format!(r#""example.com/f{at}""#)))),
    ("wrong finalizers", |size| format!(r#""finalizers":{}"#, list(size, |at| format!(r#""f!{at}""#)))),
    ("one finalizer many times", |size| format!(r#""finalizers":{}"#, list(size, |_| r#""example.com/f""#.to_owned()))),
    ("owners", |size| format!(r#""ownerReferences":{}"#, list(size, |at| owner(at, "v1", false)))),
    ("controllers", |size| format!(r#""ownerReferences":{}"#, list(size, |at| owner(at, "v1", true)))),
    ("wrong owners", |size| format!(r#""ownerReferences":{}"#, list(size, |at| owner(at, "", false)))),
    ("one owner many times", |size| format!(r#""ownerReferences":{}"#, list(size, |_| owner(0, "v1", false)))),
    ("managers", |size| {
        let entry = |at| {
            format!(
                r#"{{"manager":"m{at}","operation":"Apply","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z",
                "fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{"f:k{at}":{{}}}}}}}}"#
            )
        };
        format!(r#""managedFields":{}"#, list(size, entry))
    }),
    ("unknown metadata", |size| items(size, |at| format!(r#""unknown{at}":1"#))),
];

fn owner(at: usize, api_version: &str, controller: bool) -> String {
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"ConfigMap","name":"o{at}","uid":"u{at}","controller":{controller}}}"#
    )
}

/// A schema that has everything, as JSON: the passes over values go along it.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},
    "metadata":{"type":"object"},"spec":{"type":"object","properties":{
    "text":{"type":"string","maxLength":5,"pattern":"^(a|b)*$"},
    "map":{"type":"object","additionalProperties":{"type":"integer","maximum":5}},
    "atomic":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
    "list":{"type":"array","items":{"type":"string","maxLength":3,"format":"date"}},
    "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "unique":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
    "one":{"type":"array","items":{"type":"object","properties":{"mode":{"type":"string","enum":["a","b"]},
        "either":{"x-kubernetes-int-or-string":true}},"required":["mode"]}},
    "items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{
        "type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer","default":1},
        "deep":{"type":"object","default":{"a":1,"b":"x"},"properties":{"a":{"type":"integer"},"b":{"type":"string"}}}}}},
    "pairs":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"],"items":{
        "type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}},
    "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
    "embedded":{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,
        "x-kubernetes-preserve-unknown-fields":true}}
    }}}}"#;

/// Specs that are wide in one of its fields.
pub const SPECS: [Shape; 16] = [
    ("a map", |size| format!(r#"{{"map":{}}}"#, fields(size, |at| format!(r#""k{at}":1"#)))),
    ("a map of wrong values", |size| format!(r#"{{"map":{}}}"#, fields(size, |at| format!(r#""k{at}":9"#)))),
    ("a map of wrong types", |size| format!(r#"{{"map":{}}}"#, fields(size, |at| format!(r#""k{at}":"x""#)))),
    ("an atomic map", |size| format!(r#"{{"atomic":{}}}"#, fields(size, |at| format!(r#""k{at}":"x""#)))),
    ("a list of wrong values", |size| format!(r#"{{"list":{}}}"#, list(size, |at| format!(r#""wrong{at}""#)))),
    ("a set", |size| format!(r#"{{"set":{}}}"#, list(size, |at| format!(r#""s{at}""#)))),
    ("a set of one value", |size| format!(r#"{{"set":{}}}"#, list(size, |_| r#""s""#.to_owned()))),
    ("a set in reverse order", |size| format!(r#"{{"set":{}}}"#, list(size, |at| format!(r#""s{:09}""#, size - at)))),
    ("a map list", |size| format!(r#"{{"items":{}}}"#, list(size, |at| format!(r#"{{"name":"n{at}"}}"#)))),
    ("a map list with one key", |size| format!(r#"{{"items":{}}}"#, list(size, |_| r#"{"name":"n"}"#.to_owned()))),
    ("a map list without keys", |size| format!(r#"{{"items":{}}}"#, list(size, |_| "{}".to_owned()))),
    ("a map list with two keys", |size| {
        format!(r#"{{"pairs":{}}}"#, list(size, |at| format!(r#"{{"a":"same","b":"n{at}"}}"#)))
    }),
    ("objects of wrong values", |size| format!(r#"{{"one":{}}}"#, list(size, |at| format!(r#"{{"mode":"x{at}"}}"#)))),
    ("unknown fields", |size| fields(size, |at| format!(r#""u{at}":1"#))),
    ("preserved fields", |size| format!(r#"{{"any":{}}}"#, fields(size, |at| format!(r#""u{at}":{{"v":[{at}]}}"#)))),
    ("embedded objects", |size| {
        let embedded = |at| format!(r#"{{"apiVersion":"v1","kind":"K","metadata":{{"name":"!n{at}","u":1}}}}"#);
        format!(r#"{{"embedded":{}}}"#, list(size, embedded))
    }),
];

/// The schema above, decoded.
pub fn structural() -> Structural {
    let schema = value(SCHEMA);
    let (schema, _) = json_schema::decode(&schema).expect("it is a schema");
    convert::to_structural(&schema).expect("it is structural")
}
