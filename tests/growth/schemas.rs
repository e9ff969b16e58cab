//! Definitions whose schemas are large in one keyword each.

use crate::inputs::{Shape, fields, items, list};

/// The definition of Widgets with this schema.
pub fn definition(schema: &str) -> String {
    definition_of(
        "widgets",
        "Widget",
        &format!(r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}"#),
    )
}

/// A definition with these versions.
pub fn definition_of(plural: &str, kind: &str, versions: &str) -> String {
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{{"name":"{plural}.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
        "names":{{"plural":"{plural}","singular":"{0}","kind":"{kind}","listKind":"{kind}List"}},"versions":[{versions}]}}}}"#,
        kind.to_lowercase()
    )
}

/// Schemas that are large in one of their keywords.
pub const SCHEMAS: [Shape; 26] = [
    ("properties", |size| {
        schema_of(&format!(r#""properties":{}"#, fields(size, |at| format!(r#""p{at}":{{"type":"string"}}"#))))
    }),
    ("properties of wrong types", |size| {
        schema_of(&format!(r#""properties":{}"#, fields(size, |at| format!(r#""p{at}":{{"type":"wrong"}}"#))))
    }),
    ("properties without types", |size| {
        schema_of(&format!(r#""properties":{}"#, fields(size, |at| format!(r#""p{at}":{{}}"#))))
    }),
    ("nested properties", |size| nested(size, r#""type":"object","properties":{"p":"#, "}")),
    ("nested items", |size| nested(size, r#""type":"array","items":"#, "")),
    ("nested values", |size| nested(size, r#""type":"object","additionalProperties":"#, "")),
    ("nested not", |size| nested(size, r#""not":"#, "")),
    ("all of many", |size| {
        schema_of(&format!(r#""allOf":{}"#, list(size, |at| format!(r#"{{"maxProperties":{at}}}"#))))
    }),
    ("any of many with properties", |size| {
        schema_of(&format!(
            r#""anyOf":{}"#,
            list(size, |at| format!(r#"{{"properties":{{"p{at}":{{"minLength":1}}}}}}"#))
        ))
    }),
    ("a long enum", |size| {
        schema_of(&format!(
            r#""properties":{{"p":{{"type":"string","enum":{}}}}}"#,
            list(size, |at| format!(r#""v{at}""#))
        ))
    }),
    ("an enum of one value", |size| {
        schema_of(&format!(
            r#""properties":{{"p":{{"type":"string","enum":{}}}}}"#,
            list(size, |_| r#""v""#.to_owned())
        ))
    }),
    ("many required", |size| schema_of(&format!(r#""required":{}"#, list(size, |at| format!(r#""r{at}""#))))),
    ("one required many times", |size| schema_of(&format!(r#""required":{}"#, list(size, |_| r#""r""#.to_owned())))),
    ("map keys", |size| map_list(size, |at| format!("k{at}"))),
    ("one map key many times", |size| map_list(size, |_| "k".to_owned())),
    ("patterns", |size| {
        schema_of(&format!(
            r#""properties":{}"#,
            fields(size, |at| format!(r#""p{at}":{{"type":"string","pattern":"^a{at}$"}}"#))
        ))
    }),
    ("wrong patterns", |size| {
        schema_of(&format!(
            r#""properties":{}"#,
            fields(size, |at| format!(r#""p{at}":{{"type":"string","pattern":"("}}"#))
        ))
    }),
    ("defaults", |size| {
        schema_of(&format!(
            r#""properties":{}"#,
            fields(size, |at| format!(r#""p{at}":{{"type":"string","default":"x"}}"#))
        ))
    }),
    ("wrong defaults", |size| {
        schema_of(&format!(
            r#""properties":{}"#,
            fields(size, |at| format!(r#""p{at}":{{"type":"string","default":1}}"#))
        ))
    }),
    ("nested defaults", |size| nested(size, r#""type":"object","default":{},"properties":{"p":"#, "}")),
    ("a large default", |size| {
        schema_of(&format!(
            r#""properties":{{"p":{{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{}}}}}"#,
            fields(size, |at| format!(r#""k{at}":1"#))
        ))
    }),
    ("a long description", |size| schema_of(&format!(r#""description":"{}""#, "x ".repeat(size)))),
    ("unknown keywords", |size| schema_of(&items(size, |at| format!(r#""unknown{at}":1"#)))),
    ("forbidden keywords", |size| {
        schema_of(&format!(
            r#""properties":{}"#,
            fields(size, |at| format!(r##""p{at}":{{"type":"string","$ref":"#/x","uniqueItems":true}}"##))
        ))
    }),
    ("rules", |size| {
        schema_of(&format!(
            r#""properties":{{"n":{{"type":"integer"}}}},"x-kubernetes-validations":{}"#,
            list(size, |at| format!(r#"{{"rule":"self.n != {at}"}}"#))
        ))
    }),
    ("wrong rules", |size| {
        schema_of(&format!(
            r#""x-kubernetes-validations":{}"#,
            list(size, |at| format!(r#"{{"rule":"self.none{at}"}}"#))
        ))
    }),
];

fn schema_of(keywords: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"spec":{{"type":"object",{keywords}}}}}}}"#)
}

fn nested(size: usize, before: &str, after: &str) -> String {
    let inside = r#"{"type":"string"}"#;
    let spec = format!("{}{inside}{}", format!("{{{before}").repeat(size), format!("{after}}}").repeat(size));
    format!(r#"{{"type":"object","properties":{{"spec":{spec}}}}}"#)
}

fn map_list(size: usize, key: impl Fn(usize) -> String) -> String {
    let keys: Vec<String> = (0..size).map(key).collect();
    let quoted = items(size, |at| format!(r#""{}""#, keys[at]));
    let properties = fields(size, |at| format!(r#""{}":{{"type":"string"}}"#, keys[at]));
    schema_of(&format!(
        r#""properties":{{"l":{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{quoted}],
        "items":{{"type":"object","required":[{quoted}],"properties":{properties}}}}}}}"#
    ))
}
