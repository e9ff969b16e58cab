//! Definitions, and every error of them.

use super::*;
use crate::crd::{defaults, definition, strategy};
use crate::object;
use crate::value::json;
use crate::work;

/// A definition with these versions, as it would be stored.
fn definition(versions: &str) -> Definition {
    let value = object! {
        "metadata" => object! { "name" => "foos.example.com", "resourceVersion" => "1" },
        "spec" => object! {
            "group" => "example.com",
            "scope" => "Namespaced",
            "names" => object! { "plural" => "foos", "kind" => "Foo" },
            "versions" => json::decode(versions.as_bytes()).expect("the test is JSON"),
        },
    };
    let mut definition = definition::decode(&value).expect("the test is a definition").0;
    defaults::set_defaults(&mut definition);
    strategy::prepare_create(&mut definition);
    definition
}

fn texts(errors: ErrorList) -> Vec<String> {
    errors.iter().map(Error::to_string).collect()
}

#[track_caller]
fn check(versions: &str, expected: &[&str]) {
    assert_eq!(texts(create(&definition(versions))), expected);
}

#[test]
fn a_schema_of_all_versions_has_its_errors_in_one_place() {
    let expected = ["spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for \
                         specified object fields"];
    let schema = r#""schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{}}}}"#;
    check(&format!(r#"[{{"name":"v1","served":true,"storage":true,{schema}}}]"#), &expected);
    let two = format!(r#"[{{"name":"v1","storage":true,{schema}}},{{"name":"v2",{schema}}}]"#);
    check(&two, &expected);
}

#[test]
fn a_schema_of_its_own_has_its_errors_at_its_version() {
    check(
        r#"[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
                {"name":"v2","schema":{"openAPIV3Schema":{"type":"object","nullable":true}}}]"#,
        &["spec.versions[1].schema.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root"],
    );
}

#[test]
fn versions_are_shown_as_the_internal_type() {
    let shown = concat!(
        r#"[{"Name":"v1","Served":false,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"#,
        r#""Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]"#,
    );
    check(
        r#"[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}}}]"#,
        &[
            &format!("spec.versions: Invalid value: {shown}: must have exactly one version marked as storage version"),
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    );
}

#[test]
fn a_default_must_be_pruned_and_valid() {
    check(
        r#"[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
                "a":{"type":"object","properties":{"x":{"type":"integer"}},"default":{"x":"y","z":1}}}}}}]"#,
        &[
            r#"spec.validation.openAPIV3Schema.properties[a].default: Invalid value: {"x":"y","z":1}: must not have unknown fields"#,
            r#"spec.validation.openAPIV3Schema.properties[a].default.x: Invalid value: "string": x in body must be of type integer: "string""#,
        ],
    );
}

#[test]
fn an_update_keeps_the_faults_that_were_stored() {
    let keys = |more: &str| {
        definition(&format!(
            r#"[{{"name":"v1","storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
                    "a":{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
                    "items":{{"type":"object","properties":{{"k":{{"type":"string"}}}}}}}}{more}}}}}}}}}]"#
        ))
    };
    let plain = definition(r#"[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]"#);
    let changed = keys(r#","b":{"type":"string"}"#);
    assert_eq!(texts(update(&changed, &keys(""))), [""; 0]);
    let expected = "spec.validation.openAPIV3Schema.properties[a].items.properties[k].default: Required value: this \
                        property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
    assert_eq!(texts(update(&changed, &plain)), [expected]);
}

#[test]
fn what_is_in_use_can_not_change_its_kind() {
    let versions = r#"[{"name":"v1","storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]"#;
    let (mut new, mut old) = (definition(versions), definition(versions));
    new.spec.names.kind = "Bar".to_owned();
    assert_eq!(texts(update(&new, &old)), [""; 0]);
    let established = crate::crd::names::condition("Established", "True", "", "");
    old.set_condition(established, "2026-01-01T00:00:00Z");
    assert_eq!(texts(update(&new, &old)), [r#"spec.names.kind: Invalid value: "Bar": field is immutable"#]);
}

/// A definition whose objects have these fields.
fn with_properties(properties: &str) -> Definition {
    let schema = format!(r#"{{"openAPIV3Schema":{{"type":"object","properties":{{{properties}}}}}}}"#);
    definition(&format!(r#"[{{"name":"v1","storage":true,"schema":{schema}}}]"#))
}

const UNBOUNDED_TEXTS: &str = r#""a":{"type":"array","items":{"type":"string",
        "x-kubernetes-validations":[{"rule":"self.contains('a')"}]}}"#;

#[test]
fn an_expression_must_not_be_too_dear_times_its_cardinality() {
    let rule = "spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].rule: Forbidden: ";
    let budget = |name: &str, factor: &str| {
        format!(
            "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
                 maxProperties, and maxLength where arrays, maps, and strings are declared)"
        )
    };
    let total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
    let expected = [
        format!("{rule}{}", budget("estimated rule cost", "more than 100x")),
        format!("{rule}contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"),
        format!("spec.validation.openAPIV3Schema: Forbidden: {}", budget(total, "more than 100x")),
    ];
    assert_eq!(texts(create(&with_properties(UNBOUNDED_TEXTS))), expected);
}

#[test]
fn an_unchanged_schema_keeps_its_dear_expressions_but_not_their_sum() {
    let dear = UNBOUNDED_TEXTS.replace("\"string\"", "\"string\",\"maxLength\":40");
    let (old, mut new) = (with_properties(&dear), with_properties(&dear));
    let found = texts(create(&new));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(texts(update(&new, &old)), [""; 0]);
    new = with_properties(&format!(r#"{dear},"b":{{"type":"string"}}"#));
    assert_eq!(texts(update(&new, &old)), found);
    let too_dear = with_properties(UNBOUNDED_TEXTS);
    assert_eq!(texts(update(&too_dear, &too_dear)).len(), 2);
}

#[test]
fn an_expression_that_was_there_may_use_what_new_ones_may_not() {
    let rule = r#""x-kubernetes-validations":[{"rule":"self.includes('a')"}]"#;
    let list = format!(r#""a":{{"type":"array","maxItems":3,"items":{{"type":"string","maxLength":3}},{rule}}}"#);
    let old = with_properties(&list);
    let found = texts(create(&old));
    assert!(found[0].contains("undeclared reference to 'includes'"), "{found:?}");
    let new = with_properties(&format!(r#"{list},"b":{{"type":"string"}}"#));
    assert_eq!(texts(update(&new, &old)), [""; 0]);
}

#[test]
fn an_old_value_is_only_named_where_there_is_one_to_find() {
    let rules = r#""x-kubernetes-validations":[{"rule":"self == oldSelf"}]"#;
    let list = format!(r#""a":{{"type":"array","maxItems":3,"items":{{"type":"string","maxLength":3,{rules}}}}}"#);
    let expected = "spec.validation.openAPIV3Schema.properties[a].items.x-kubernetes-validations[0].rule: Invalid \
                        value: \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema \
                        within spec.validation.openAPIV3Schema.properties[a]";
    assert_eq!(texts(create(&with_properties(&list))), [expected]);
}

/// Steps of validating a new definition and an unchanged update, and bytes of the errors.
fn steps(versions: &str) -> (u64, usize) {
    let definition = definition(versions);
    let (bytes, steps) = work::counted(|| {
        let errors = create(&definition);
        update(&definition, &definition);
        errors.iter().map(|error| error.to_string().len()).sum::<usize>()
    });
    (steps, bytes)
}

fn property(schema: &str) -> String {
    let schema = format!(r#"{{"type":"object","properties":{{"a":{schema}}}}}"#);
    format!(r#"[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]"#)
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

#[test]
fn ten_times_the_definition_takes_ten_times_the_steps() {
    let map = |count, key: fn(usize) -> String| {
        property(&format!(
            r#"{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{}],"items":{{"type":"object",
                    "properties":{{"k":{{"type":"string"}}}}}}}}"#,
            list(count, key)
        ))
    };
    let versions = |count| {
        let version = |at| {
            format!(r#"{{"name":"v{at}","storage":{},"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}"#, at == 0)
        };
        format!("[{}]", list(count, version))
    };
    let required = |count| {
        let properties = list(count, |at| format!(r#""p{at}":{{"type":"integer"}}"#));
        let names = list(count, |at| format!(r#""p{at}""#));
        property(&format!(
            r#"{{"type":"object","required":[{names}],"properties":{{{properties}}},
                    "x-kubernetes-validations":[{{"rule":"self.p0 > 1"}}]}}"#
        ))
    };
    let rules = |count| {
        let rule = |at| format!(r#"{{"rule":"self.b > {at}","fieldPath":".b"}}"#);
        property(&format!(
            r#"{{"type":"object","properties":{{"b":{{"type":"integer"}}}},"x-kubernetes-validations":[{}]}}"#,
            list(count, rule)
        ))
    };
    let faults = |count| {
        property(&format!(r#"{{"type":"object","properties":{{{}}}}}"#, list(count, |at| format!(r#""p{at}":{{}}"#))))
    };
    // Errors about keys quote all of them, up to a limit that 300 keys nearly reach.
    let repeated = |count| map(10 * count, |_| r#""k""#.to_owned());
    let distinct = |count| map(10 * count, |at| format!(r#""k{at}""#));
    let all: [&dyn Fn(usize) -> String; 6] = [&repeated, &distinct, &versions, &required, &rules, &faults];
    for make in all {
        let (small, large) = (steps(&make(30)), steps(&make(300)));
        assert!(large.0 < 13 * small.0, "{small:?} {large:?}: {}", make(3));
        assert!(large.1 <= 4 << 20, "{} bytes", large.1);
    }
}

#[test]
fn keys_that_are_repeated_are_told_within_a_bound() {
    let keys = list(20_000, |_| r#""k""#.to_owned());
    let (_, bytes) = steps(&property(&format!(
        r#"{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{keys}],"items":{{"type":"object",
                "required":["k"],"properties":{{"k":{{"type":"string"}}}}}}}}"#
    )));
    assert!(bytes < 4 << 20, "{bytes}");
}

#[test]
fn names_that_discovery_repeats_are_bounded() {
    let definition = |names| {
        let mut definition = definition(&format!(
            "[{}]",
            list(100, |at| format!(
                r#"{{"name":"v{at}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}"#,
                at == 0
            ))
        ));
        definition.spec.names.categories = (0..names).map(|at| format!("category-{at}")).collect();
        definition.status.accepted_names = definition.spec.names.clone();
        definition
    };
    assert_eq!(texts(create(&definition(10))), [""; 0]);
    let many = definition(1000);
    assert_eq!(texts(create(&many)), ["spec.names: Too long: may not be more than 1048576 bytes"]);
    // A definition stored before the limit stays as it is, and is served without these names.
    assert_eq!(texts(update(&many, &many)), [""; 0]);
    let served = crate::crd::compile(&many);
    assert!(served.len() == 100 && served.iter().all(|version| version.names.categories.is_empty()));
}
