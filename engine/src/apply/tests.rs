//! Operations → object and managers. Expected values: answers recorded from apiextensions-apiserver 1.37.

use proptest::prelude::*;

use super::*;
use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};
use crate::value::json;

const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:00:05Z";

fn value(text: &str) -> Value {
    json::decode(text.as_bytes()).unwrap()
}

/// The structure of an OpenAPI schema, as far as tests need it.
fn structural(schema: &Value) -> Structural {
    let truth = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
    let text = |name: &str| schema.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut node = Structural::default();
    node.generic.type_ = text("type").unwrap_or_default();
    node.generic.default = schema.get("default").cloned().map(Box::new);
    node.items = schema.get("items").map(|items| Box::new(structural(items)));
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        node.properties = properties.iter().map(|(name, schema)| (name.to_owned(), structural(schema))).collect();
    }
    node.additional_properties = schema.get("additionalProperties").map(|additional| match additional.as_bool() {
        Some(allowed) => StructuralOrBool::Bool(allowed),
        None => StructuralOrBool::Structural(Box::new(structural(additional))),
    });
    node.extensions.preserve_unknown_fields = truth("x-kubernetes-preserve-unknown-fields");
    node.extensions.embedded_resource = truth("x-kubernetes-embedded-resource");
    node.extensions.int_or_string = truth("x-kubernetes-int-or-string");
    node.extensions.list_type = text("x-kubernetes-list-type");
    node.extensions.map_type = text("x-kubernetes-map-type");
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).unwrap_or_default();
    node.extensions.list_map_keys = keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    node.value_validation =
        text("format").map(|format| Box::new(ValueValidation { format, ..ValueValidation::default() }));
    node
}

/// Versions that differ in structure only, as with conversion strategy None.
struct Kind(Vec<(&'static str, TypeSchema)>);

impl Versions for Kind {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.0.iter().find(|(version, _)| *version == api_version).map(|(_, types)| types)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        match api_version {
            "g/gone" => Err(ConvertError::MissingVersion),
            _ if self.types(api_version).is_none() => {
                Err(ConvertError::Failed(format!("request to convert CR to an invalid group/version: {api_version}")))
            }
            _ => Ok(in_version(object, api_version)),
        }
    }
}

fn in_version(object: &Value, api_version: &str) -> Value {
    let mut object = object.clone();
    object.as_object_mut().unwrap().insert("apiVersion", Value::from(api_version));
    object
}

/// A server with one object of kind `K`, whose spec has this schema.
struct Scenario {
    kind: Kind,
    minor: Minor,
    live: Option<Value>,
    reset: ResetFields,
}

impl Scenario {
    fn new(spec: &str) -> Self {
        Scenario::of_versions(&[("g/v1", spec)])
    }

    fn of_versions(specs: &[(&'static str, &str)]) -> Self {
        let types = |spec: &str| {
            let status = r#"{"type":"object","properties":{"phase":{"type":"string"}}}"#;
            let root = format!(r#"{{"type":"object","properties":{{"spec":{spec},"status":{status}}}}}"#);
            TypeSchema::of_custom_resource(&structural(&value(&root)), false)
        };
        let kind = Kind(specs.iter().map(|(version, spec)| (*version, types(spec))).collect());
        Scenario { kind, minor: Minor::NEWEST, live: None, reset: ResetFields::default() }
    }

    fn with_manager<T>(
        &self,
        version: &str,
        subresource: &str,
        work: impl FnOnce(FieldManager<'_>, Option<&Value>) -> T,
    ) -> T {
        let (minor, versions) = (self.minor, &self.kind);
        let manager = FieldManager { minor, versions, version, kind: "K", subresource, reset_fields: &self.reset };
        let live = self.live.as_ref().map(|live| in_version(live, version));
        work(manager, live.as_ref())
    }

    fn try_apply(&mut self, version: &str, manager: &str, body: &str, force: bool, now: &str) -> Result<(), String> {
        let applied = object_of(version, body);
        let outcome = self.with_manager(version, "", |fields, live| fields.apply(live, &applied, manager, force, now));
        self.store(outcome.map_err(|error| error.to_string())?.object);
        Ok(())
    }

    fn apply(&mut self, manager: &str, body: &str) -> &mut Self {
        self.try_apply("g/v1", manager, body, false, NOW).unwrap();
        self
    }

    fn force(&mut self, manager: &str, body: &str) -> &mut Self {
        self.try_apply("g/v1", manager, body, true, NOW).unwrap();
        self
    }

    fn conflict(&mut self, manager: &str, body: &str) -> String {
        self.try_apply("g/v1", manager, body, false, NOW).unwrap_err()
    }

    /// Replaces all but the fields that the server keeps.
    fn update(&mut self, manager: &str, body: &str) -> &mut Self {
        self.update_at(manager, body, NOW)
    }

    fn update_at(&mut self, manager: &str, body: &str, now: &str) -> &mut Self {
        let mut new = object_of("g/v1", body);
        if self.live.is_some() {
            new.get_mut("metadata").unwrap().as_object_mut().unwrap().insert("uid", Value::from("u"));
        }
        let new = self.with_manager("g/v1", "", |fields, live| fields.update(live, new, manager, now));
        self.store(new);
        self
    }

    fn store(&mut self, mut object: Value) {
        object.get_mut("metadata").unwrap().as_object_mut().unwrap().insert("uid", Value::from("u"));
        self.live = Some(object);
    }

    /// The spec if there is one, then a line per manager: operation, name, version and subresource if they matter,
    /// fields, `-` if there is no time.
    #[track_caller]
    fn check(&mut self, expected: &str) -> &mut Self {
        let live = self.live.as_ref().unwrap();
        let mut lines: Vec<String> = live.get("spec").map(json::encode_to_string).into_iter().collect();
        for entry in live.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default() {
            let version = match entry.str_at(&["apiVersion"]) {
                "g/v1" => String::new(),
                other => format!(" in {other}"),
            };
            let subresource = match entry.str_at(&["subresource"]) {
                "" => String::new(),
                other => format!(" at {other}"),
            };
            let time = if entry.get("time").is_some() { "" } else { " -" };
            lines.push(format!(
                "{} {}{version}{subresource} {}{time}",
                entry.str_at(&["operation"]),
                entry.str_at(&["manager"]),
                json::encode_to_string(entry.get("fieldsV1").unwrap()),
            ));
        }
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines, expected);
        self
    }
}

impl Scenario {
    /// The spec, with its lists sorted, and the owners; independent of the order of operations.
    fn contents(&self) -> (String, Vec<String>) {
        let live = self.live.as_ref().unwrap();
        let mut spec = live.get("spec").cloned().unwrap_or_default();
        for part in spec.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Value::Array(items) = part {
                items.sort_by_key(json::encode_to_string);
            }
        }
        let entries = live.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
        let owner = |entry: &Value| {
            let fields = json::encode_to_string(entry.get("fieldsV1").unwrap());
            format!("{} {} {fields}", entry.str_at(&["operation"]), entry.str_at(&["manager"]))
        };
        let mut owners: Vec<String> = entries.iter().map(owner).collect();
        owners.sort();
        (json::encode_to_string(&spec), owners)
    }
}

fn object_of(version: &str, body: &str) -> Value {
    let mut object = value(body);
    let fields = object.as_object_mut().unwrap();
    fields.insert("apiVersion", Value::from(version));
    fields.insert("kind", Value::from("K"));
    let metadata = fields.entry("metadata");
    if metadata.is_null() {
        *metadata = object! {};
    }
    metadata.as_object_mut().unwrap().insert("name", Value::from("a"));
    object
}

const PLAIN: &str = r#"{"type":"object","properties":{"size":{"type":"integer"},"color":{"type":"string"}}}"#;
const LISTS: &str = r#"{"type":"object","properties":{
    "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"],
        "items":{"type":"object","properties":{"port":{"type":"integer"},"name":{"type":"string"},
            "protocol":{"type":"string","default":"TCP"}}}},
    "conds":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["type"],
        "items":{"type":"object","properties":{"type":{"type":"string"}}}},
    "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "args":{"type":"array","items":{"type":"string"}}}}"#;
const MAPS: &str = r#"{"type":"object","properties":{
    "gran":{"type":"object","additionalProperties":{"type":"string"}},
    "atom":{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-map-type":"atomic"},
    "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}"#;

#[test]
fn an_update_owns_maps_and_an_apply_owns_leaves() {
    Scenario::new(PLAIN).update("m", r#"{"spec":{"size":1}}"#).apply("a", r#"{"spec":{"size":1}}"#).check(
        r#"{"size":1}
            Apply a {"f:spec":{"f:size":{}}} -
            Update m {"f:spec":{".":{},"f:size":{}}}"#,
    );
}

#[test]
fn an_update_takes_what_it_changes_and_leaves_empty_parents() {
    Scenario::new(PLAIN)
        .update("m1", r#"{"spec":{"size":1,"color":"red"}}"#)
        .update("m2", r#"{"spec":{"size":1,"color":"blue"}}"#)
        .check(
            r#"{"color":"blue","size":1}
            Update m1 {"f:spec":{".":{},"f:size":{}}}
            Update m2 {"f:spec":{"f:color":{}}}"#,
        )
        .update("m3", r#"{"spec":{"size":2}}"#)
        .check(
            r#"{"size":2}
            Update m1 {"f:spec":{}}
            Update m3 {"f:spec":{"f:size":{}}}"#,
        )
        .update("m4", "{}")
        .check("");
}

#[test]
fn another_value_conflicts_and_force_takes_it() {
    let mut scenario = Scenario::new(PLAIN);
    scenario.apply("alpha", r#"{"metadata":{"labels":{"l":"1"}},"spec":{"size":1,"color":"red"}}"#);
    assert_eq!(
        scenario.conflict("beta", r#"{"spec":{"size":2}}"#),
        r#"Apply failed with 1 conflict: conflict with "alpha": .spec.size"#
    );
    assert_eq!(
        scenario.conflict("beta", r#"{"metadata":{"labels":{"l":"2"}},"spec":{"size":2,"color":"blue"}}"#),
        "Apply failed with 3 conflicts: conflicts with \"alpha\":\n- .metadata.labels.l\n- .spec.color\n- .spec.size"
    );
    scenario.force("beta", r#"{"spec":{"size":2}}"#).check(
        r#"{"color":"red","size":2}
        Apply alpha {"f:metadata":{"f:labels":{"f:l":{}}},"f:spec":{"f:color":{}}}
        Apply beta {"f:spec":{"f:size":{}}}"#,
    );
}

#[test]
fn a_conflict_with_an_update_names_its_version() {
    let mut scenario = Scenario::new(PLAIN);
    scenario.update("m", r#"{"spec":{"size":1}}"#).apply("a", r#"{"spec":{"color":"red"}}"#);
    assert_eq!(
        scenario.conflict("b", r#"{"spec":{"size":2,"color":"blue"}}"#),
        "Apply failed with 2 conflicts: conflicts with \"a\":\n- .spec.color\nconflicts with \"m\" using g/v1:\n- .spec.size"
    );
}

#[test]
fn fields_left_out_of_the_next_apply_are_removed_unless_owned_by_others() {
    Scenario::new(MAPS)
        .apply("a", r#"{"spec":{"gran":{"x":"1","y":"2"},"atom":{"x":"1"},"free":{"x":{"y":1}}}}"#)
        .apply("b", r#"{"spec":{"gran":{"x":"1"}}}"#)
        .apply("a", r#"{"spec":{"free":{"z":null}}}"#)
        .check(
            r#"{"free":{"z":null},"gran":{"x":"1"}}
            Apply b {"f:spec":{"f:gran":{"f:x":{}}}} -
            Apply a {"f:spec":{"f:free":{"f:z":{}}}}"#,
        );
}

#[test]
fn an_emptied_container_becomes_null() {
    let mut scenario = Scenario::new(MAPS);
    scenario.apply("a", r#"{"spec":{"gran":{"x":"1"}}}"#).apply("a", r#"{"spec":{"gran":{}}}"#);
    assert_eq!(scenario.live.unwrap().at(&["spec", "gran"]), Some(&Value::Null));
}

#[test]
fn list_items_merge_by_key_in_the_order_of_the_applier() {
    Scenario::new(LISTS)
        .apply("a", r#"{"spec":{"ports":[{"port":80,"name":"web"},{"port":53,"protocol":"UDP"}]}}"#)
        .apply("b", r#"{"spec":{"ports":[{"port":443,"name":"tls"},{"port":80}]}}"#)
        .check(
            r#"{"ports":[{"name":"tls","port":443},{"name":"web","port":80},{"port":53,"protocol":"UDP"}]}
            Apply a {"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}
            Apply b {"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
        );
}

#[test]
fn a_conflict_in_a_list_shows_the_key_with_its_defaults() {
    let mut scenario = Scenario::new(LISTS);
    scenario.apply("a", r#"{"spec":{"ports":[{"port":80,"name":"web"}]}}"#);
    assert_eq!(
        scenario.conflict("b", r#"{"spec":{"ports":[{"port":80,"protocol":"TCP","name":"http"}]}}"#),
        r#"Apply failed with 1 conflict: conflict with "a": .spec.ports[port=80,protocol="TCP"].name"#
    );
}

#[test]
fn sets_merge_and_atomic_lists_are_owned_whole() {
    let mut scenario = Scenario::new(LISTS);
    scenario
        .apply("a", r#"{"spec":{"tags":["b","a"],"args":["x"]}}"#)
        .apply("b", r#"{"spec":{"tags":["c","a"]}}"#)
        .check(
            r#"{"args":["x"],"tags":["b","c","a"]}
            Apply a {"f:spec":{"f:args":{},"f:tags":{"v:\"a\"":{},"v:\"b\"":{}}}}
            Apply b {"f:spec":{"f:tags":{"v:\"a\"":{},"v:\"c\"":{}}}}"#,
        );
    assert_eq!(
        scenario.conflict("b", r#"{"spec":{"args":["x","y"]}}"#),
        r#"Apply failed with 1 conflict: conflict with "a": .spec.args"#
    );
}

#[test]
fn empty_sets_are_not_owned_but_empty_atomic_lists_are() {
    Scenario::new(LISTS).apply("a", r#"{"spec":{"tags":[],"args":[]}}"#).check(
        r#"{"args":[],"tags":[]}
            Apply a {"f:spec":{"f:args":{}}}"#,
    );
}

#[test]
fn an_applied_object_must_fit_its_types() {
    let mut scenario = Scenario::new(LISTS);
    let mut check = |spec: &str, expected: &str| {
        let message = scenario.conflict("a", &format!(r#"{{"spec":{spec}}}"#));
        assert_eq!(message, format!("failed to create typed patch object (/a; g/v1, Kind=K): {expected}"));
    };
    check(r#"{"x":1}"#, ".spec.x: field not declared in schema");
    check(r#"{"ports":[{"port":1},{"port":1}]}"#, r#".spec.ports: duplicate entries for key [port=1,protocol="TCP"]"#);
    check(r#"{"tags":["q","q"]}"#, r#".spec.tags: duplicate entries for key [="q"]"#);
    check(r#"{"ports":{"port":1}}"#, ".spec.ports: expected list, got &{map[port:1]}");
    check(
        r#"{"conds":[{}]}"#,
        r#".spec.conds: element 0: associative list with keys has an element that omits all key fields ["type"] (and doesn't have default values for any key fields)"#,
    );
    check(
        r#"{"args":[1],"tags":"x"}"#,
        "errors:\n  .spec.args[0]: expected string, got &value.valueUnstructured{Value:1}\n  .spec.tags: expected \
         list, got &{x}",
    );
}

#[test]
fn the_version_and_kind_must_be_those_of_the_request() {
    let mut scenario = Scenario::new(PLAIN);
    let applied = object_of("g/v2", "{}");
    let outcome = scenario.with_manager("g/v1", "", |fields, live| fields.apply(live, &applied, "a", false, NOW));
    assert_eq!(outcome, Err(ApplyError::BadRequest("invalid object type: g/v2, Kind=K".to_owned())));
    let message = scenario.conflict("a", r#"{"metadata":{"managedFields":[]}}"#);
    assert_eq!(message, "metadata.managedFields must be nil");
}

#[test]
fn what_was_there_before_the_first_apply_has_a_manager() {
    Scenario::new(PLAIN)
        .update("m", r#"{"spec":{"size":1}}"#)
        .update("m", r#"{"metadata":{"managedFields":[{}]},"spec":{"size":1}}"#)
        .check(r#"{"size":1}"#)
        .update("m", r#"{"spec":{"size":3}}"#)
        .check(r#"{"size":3}"#)
        .apply("a", r#"{"spec":{"color":"red"}}"#)
        .check(
            r#"{"color":"red","size":3}
            Apply a {"f:spec":{"f:color":{}}}
            Update before-first-apply {"f:spec":{".":{},"f:size":{}}}"#,
        );
}

#[test]
fn managed_fields_that_make_no_sense_change_nothing() {
    for entries in [
        r#"[{"manager":"x","operation":"","apiVersion":"g/v1","fieldsType":"FieldsV1","fieldsV1":{}}]"#,
        r#"[{"manager":"x","operation":"Update","apiVersion":"g/v1","fieldsType":"FieldsV2","fieldsV1":{}}]"#,
        r#"[{"manager":"x","operation":"Update","fieldsType":"FieldsV1"}]"#,
        r#"[{"manager":"x","operation":"Update","apiVersion":"g/v1","fieldsType":"FieldsV1","fieldsV1":{"size":{}}}]"#,
    ] {
        Scenario::new(PLAIN)
            .update("m", r#"{"spec":{"size":1}}"#)
            .update("m", &format!(r#"{{"metadata":{{"managedFields":{entries}}},"spec":{{"size":1}}}}"#))
            .check(
                r#"{"size":1}
                Update m {"f:spec":{".":{},"f:size":{}}}"#,
            );
    }
}

#[test]
fn an_applied_object_without_metadata_may_change_nothing() {
    let mut scenario = Scenario::new(PLAIN);
    scenario.apply("a", r#"{"spec":{"size":1}}"#);
    let applied = value(r#"{"apiVersion":"g/v1","kind":"K","spec":{"size":1}}"#);
    let again = scenario.with_manager("g/v1", "", |fields, live| fields.apply(live, &applied, "a", false, LATER));
    assert_eq!(again, Ok(Applied { object: scenario.live.unwrap(), is_changed: false }));
}

#[test]
fn a_subresource_has_entries_of_its_own() {
    let mut scenario = Scenario::new(PLAIN);
    scenario.apply("ctl", r#"{"spec":{"size":1}}"#);
    scenario.reset = ResetFields::new(vec![("g/v1".to_owned(), FieldSet::of_fields(&[&["metadata"], &["spec"]]))]);
    let applied = object_of("g/v1", r#"{"spec":{"size":7},"status":{"phase":"up"}}"#);
    let stored =
        scenario.with_manager("g/v1", "status", |fields, live| fields.apply(live, &applied, "ctl", false, NOW));
    scenario.store(stored.unwrap().object);
    scenario.check(
        r#"{"size":7}
        Apply ctl {"f:spec":{"f:size":{}}}
        Apply ctl at status {"f:status":{"f:phase":{}}}"#,
    );
    let other = object_of("g/v1", r#"{"status":{"phase":"down"}}"#);
    let error = scenario.with_manager("g/v1", "status", |fields, live| fields.apply(live, &other, "o", false, NOW));
    assert_eq!(
        error.unwrap_err().to_string(),
        r#"Apply failed with 1 conflict: conflict with "ctl" with subresource "status": .status.phase"#
    );
}

#[test]
fn an_applier_is_the_same_in_every_version() {
    let mut scenario = Scenario::of_versions(&[("g/v1", PLAIN), ("g/v2", PLAIN)]);
    scenario.try_apply("g/v2", "a", r#"{"spec":{"size":1,"color":"red"}}"#, false, NOW).unwrap();
    scenario.apply("a", r#"{"spec":{"size":1}}"#).check(
        r#"{"size":1}
        Apply a {"f:spec":{"f:size":{}}}"#,
    );
}

#[test]
fn owners_in_a_version_that_is_gone_fail_or_are_forgotten() {
    let owned_in = |version: &str| {
        let mut scenario = Scenario::new(PLAIN);
        let entry = format!(
            r#"{{"metadata":{{"managedFields":[{{"manager":"x","operation":"Apply","apiVersion":"{version}",
            "fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{{"f:size":{{}}}}}}}}]}},"spec":{{"size":1}}}}"#
        );
        scenario.store(object_of("g/v1", &entry));
        scenario
    };
    owned_in("g/gone").apply("a", r#"{"spec":{"size":2}}"#).check(
        r#"{"size":2}
        Apply a {"f:spec":{"f:size":{}}}"#,
    );
    assert_eq!(
        owned_in("g/v0").conflict("a", r#"{"spec":{"size":2}}"#),
        "request to convert CR to an invalid group/version: g/v0"
    );
    // An update never fails: what was recorded stays.
    owned_in("g/v0").update("m", r#"{"spec":{"size":2}}"#).check(
        r#"{"size":2}
        Apply x in g/v0 {"f:spec":{"f:size":{}}} -"#,
    );
    // Before 1.37, nothing stays.
    let mut older = owned_in("g/v0");
    older.minor = Minor::of(36);
    older.update("m", r#"{"spec":{"size":2}}"#).check(r#"{"size":2}"#);
}

#[test]
fn an_update_that_does_not_fit_its_types_changes_no_owners() {
    let updated = |minor: u16| {
        let mut scenario = Scenario::new(PLAIN);
        scenario.minor = Minor::of(minor);
        scenario.apply("a", r#"{"spec":{"size":1}}"#).update("m", r#"{"spec":[1]}"#);
        scenario.live.and_then(|live| live.at(&["metadata", "managedFields"]).cloned())
    };
    assert!(updated(37).is_some_and(|owners| owners.as_array().is_some_and(|owners| owners.len() == 1)));
    assert_eq!(updated(36), None);
}

#[test]
fn fields_that_cannot_be_read_are_shown_with_their_entry() {
    let entry = |rest: &str| {
        value(&format!(
            r#"{{"metadata":{{"managedFields":[{{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{{"x":{{}}}}{rest}}}]}}}}"#
        ))
    };
    let told = |rest: &str| validate_managed_fields(&entry(rest)).unwrap_err().to_string();
    let fault = "error decoding set: parsing key as path element: key must be 2 characters long:, error found in #5 byte of \
                 ...|{\"x\":{}}|..., bigger context ...|{\"x\":{}}|...";
    assert_eq!(
        told(r#","time":"2026-01-02T03:04:05Z","subresource":"status""#),
        format!(
            "error decoding versioned set from {{m Update v1 2026-01-02 03:04:05 +0000 UTC FieldsV1 {{\"x\":{{}}}} status}}: {fault}"
        )
    );
    assert_eq!(
        told(""),
        format!("error decoding versioned set from {{m Update v1 <nil> FieldsV1 {{\"x\":{{}}}} }}: {fault}")
    );
}

#[test]
fn a_map_that_became_atomic_is_owned_whole() {
    let granular = r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
    let atomic = r#"{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string"},
        "x-kubernetes-map-type":"atomic"}}}"#;
    let mut scenario = Scenario::new(granular);
    scenario.apply("a", r#"{"spec":{"m":{"x":"1"}}}"#);
    scenario.kind = Scenario::new(atomic).kind;
    scenario.apply("b", r#"{"metadata":{"labels":{"l":"1"}}}"#).check(
        r#"{"m":{"x":"1"}}
        Apply a {"f:spec":{"f:m":{}}}
        Apply b {"f:metadata":{"f:labels":{"f:l":{}}}}"#,
    );
}

#[test]
fn only_ten_updates_are_kept_apart() {
    let mut scenario = Scenario::new(MAPS);
    for at in 0..12 {
        let fields: Vec<String> = (0..=at).map(|at| format!(r#""k{at:02}":"v""#)).collect();
        let body = format!(r#"{{"spec":{{"gran":{{{}}}}}}}"#, fields.join(","));
        scenario.update_at(&format!("m{at:02}"), &body, &format!("2026-01-01T00:00:{at:02}Z"));
    }
    let live = scenario.live.unwrap();
    let entries = live.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0].str_at(&["manager"]), "ancient-changes");
    assert_eq!(entries[0].str_at(&["time"]), "2026-01-01T00:00:02Z");
    assert_eq!(
        json::encode_to_string(entries[0].get("fieldsV1").unwrap()),
        r#"{"f:spec":{".":{},"f:gran":{".":{},"f:k00":{},"f:k01":{},"f:k02":{}}}}"#
    );
}

#[test]
fn entries_come_by_operation_time_and_name() {
    let mut scenario = Scenario::new(PLAIN);
    scenario.update_at("z", r#"{"spec":{"size":1}}"#, NOW);
    scenario.try_apply("g/v1", "b", r#"{"spec":{"color":"red"}}"#, false, LATER).unwrap();
    scenario.try_apply("g/v1", "c", r#"{"metadata":{"labels":{"l":"1"}}}"#, false, NOW).unwrap();
    scenario.try_apply("g/v1", "d", r#"{"spec":{"color":"red"}}"#, false, LATER).unwrap();
    scenario.check(
        r#"{"color":"red","size":1}
        Apply d {"f:spec":{"f:color":{}}} -
        Apply c {"f:metadata":{"f:labels":{"f:l":{}}}}
        Apply b {"f:spec":{"f:color":{}}}
        Update z {"f:spec":{".":{},"f:size":{}}}"#,
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client() {
    let applied = r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"spec":{"size":1}}"#;
    let annotations = object! { "kubectl.kubernetes.io/last-applied-configuration" => applied };
    let body = object! {
        "metadata" => object! { "annotations" => annotations },
        "spec" => object! { "size" => 1, "color" => "red" },
    };
    let mut scenario = Scenario::new(PLAIN);
    scenario.update("kubectl-client-side-apply", &json::encode_to_string(&body));
    assert_eq!(
        scenario.conflict("other", r#"{"spec":{"size":2}}"#),
        r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using g/v1: .spec.size"#
    );
    assert_eq!(
        scenario.conflict("kubectl", r#"{"spec":{"size":2,"color":"blue"}}"#),
        r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using g/v1: .spec.color"#
    );
    scenario.apply("kubectl", r#"{"spec":{"size":2}}"#);
    let live = scenario.live.unwrap();
    assert_eq!(
        live.str_at(&["metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"]),
        "{\"apiVersion\":\"g/v1\",\"kind\":\"K\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"size\":2}}\n"
    );
}

#[test]
fn a_write_that_only_changes_times_keeps_the_old_ones() {
    let mut scenario = Scenario::new(PLAIN);
    scenario.apply("a", r#"{"spec":{"size":1}}"#);
    let old = scenario.live.clone().unwrap();
    let text = json::encode_to_string(&old).replace(NOW, LATER);
    let mut same = value(&text);
    keep_times(&mut same, &old);
    assert_eq!(same, old);
    let mut other = value(&text.replace(r#""size":1"#, r#""size":2"#));
    let before = other.clone();
    keep_times(&mut other, &old);
    assert_eq!(other, before);
}

#[test]
fn ownership_of_the_replicas_goes_to_scale_and_back() {
    let paths = [("g/v1".to_owned(), Some(vec![PathElement::field("spec"), PathElement::field("size")]))];
    let mut scenario = Scenario::new(PLAIN);
    scenario.apply("a", r#"{"spec":{"size":1,"color":"red"}}"#);
    let live = scenario.live.clone().unwrap();
    let fields = ScaleFields::of(&live, &paths).unwrap();
    let of_scale = fields.to_scale().unwrap();
    assert_eq!(
        json::encode_to_string(&of_scale),
        r#"[{"apiVersion":"autoscaling/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"manager":"a","operation":"Apply","time":"2026-01-01T00:00:00Z"}]"#
    );
    // Another manager takes the replicas through the subresource.
    let scale = value(
        r#"{"metadata":{"managedFields":[{"apiVersion":"autoscaling/v1","fieldsType":"FieldsV1",
        "fieldsV1":{"f:spec":{"f:replicas":{}}},"manager":"b","operation":"Update","subresource":"scale"}]}}"#,
    );
    let list = fields.to_parent(&scale, "g/v1").unwrap();
    let mut live = live;
    set_managed_fields(&mut live, list);
    scenario.store(live);
    scenario.check(
        r#"{"color":"red","size":1}
        Apply a {"f:spec":{"f:color":{}}}
        Update b at scale {"f:spec":{"f:size":{}}} -"#,
    );
}

#[test]
fn definitions_have_types_too() {
    let types =
        TypeSchema::of_message(crate::types::message_of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"));
    let check = |spec: &str, expected: &str| {
        let definition = value(&format!(r#"{{"apiVersion":"x","kind":"y","spec":{spec}}}"#));
        let message = types.validate(&definition, false).map_err(|errors| errors.to_string());
        assert_eq!(message.err().unwrap_or_default(), expected);
    };
    check(r#"{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"a":{"items":{"any":1}}}}}}]}"#, "");
    check(
        r#"{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"a":{"nope":1}}}}}]}"#,
        ".spec.versions[0].schema.openAPIV3Schema.properties.a.nope: field not declared in schema",
    );
}

const ANY: &str = r#"{"type":"object","properties":{
    "gran":{"type":"object","additionalProperties":{"type":"integer"}},
    "free":{"x-kubernetes-preserve-unknown-fields":true},
    "list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
        "items":{"type":"object","properties":{"k":{"type":"integer"},"v":{"type":"string"}}}},
    "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}}}}"#;

fn anything() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        (0..5i64).prop_map(Value::Int),
        "[a-c]?".prop_map(Value::String),
        Just(Value::Null),
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            fields("[a-c]", inner).prop_map(Value::Object),
        ]
    })
}

fn fields(names: &'static str, values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map> {
    prop::collection::btree_map(names, values, 0..3).prop_map(|fields| fields.into_iter().collect())
}

fn body() -> impl Strategy<Value = String> {
    let numbers = prop::collection::btree_set(0..6i64, 0..4);
    let gran = fields("[a-e]", (0..9i64).prop_map(Value::Int)).prop_map(Value::Object);
    let list = prop::collection::btree_map(0..6i64, prop::option::of("[a-c]"), 0..4).prop_shuffle_items();
    let set = numbers.prop_map(|items| Value::Array(items.into_iter().map(Value::Int).collect()));
    (prop::option::of(gran), prop::option::of(anything()), prop::option::of(list), prop::option::of(set)).prop_map(
        |(gran, free, list, set)| {
            let mut spec = Map::new();
            for (name, value) in [("gran", gran), ("free", free), ("list", list), ("set", set)] {
                if let Some(value) = value {
                    spec.insert(name, value);
                }
            }
            json::encode_to_string(&object! { "spec" => spec })
        },
    )
}

trait ShuffleItems {
    fn prop_shuffle_items(self) -> BoxedStrategy<Value>;
}

impl<S> ShuffleItems for S
where
    S: Strategy<Value = std::collections::BTreeMap<i64, Option<String>>> + 'static,
{
    fn prop_shuffle_items(self) -> BoxedStrategy<Value> {
        let item = |(key, text): (i64, Option<String>)| {
            let mut item = object! { "k" => key };
            if let Some(text) = text {
                item.as_object_mut().unwrap().insert("v", Value::String(text));
            }
            item
        };
        self.prop_map(move |items| items.into_iter().map(item).collect::<Vec<_>>())
            .prop_shuffle()
            .prop_map(Value::Array)
            .boxed()
    }
}

proptest! {
    #[test]
    fn apply_twice_changes_nothing(first in body(), second in body()) {
        let mut scenario = Scenario::new(ANY);
        scenario.force("a", &first).force("b", &second);
        let once = scenario.live.clone();
        // `a` may have lost fields to `b`; `b` has not.
        scenario.force("b", &second);
        prop_assert_eq!(&scenario.live, &once);
    }

    /// Additions are found by another walk than removals.
    #[test]
    fn what_one_way_adds_the_other_removes(left in anything(), right in anything(), a in body(), b in body()) {
        let types = TypeSchema::of_custom_resource(&structural(&value(&format!(
            r#"{{"type":"object","properties":{{"spec":{ANY},"other":{ANY},"free":{{"x-kubernetes-preserve-unknown-fields":true}}}}}}"#,
        ))), false);
        let object = |mut object: Value, free: Value| {
            let again = object.at(&["spec", "list"]).cloned();
            let fields = object.make_object();
            // Also with duplicate items.
            if let Some(Value::Array(mut items)) = again {
                items.extend_from_within(..items.len() / 2);
                fields.insert("other", object! { "list" => items });
            }
            fields.insert("free", free);
            object
        };
        let (old, new) = (object(value(&a), left), object(value(&b), right));
        let (forth, back) = (types.compare(&old, &new), types.compare(&new, &old));
        prop_assert_eq!(&forth.added, &back.removed);
        prop_assert_eq!(&forth.removed, &back.added);
        prop_assert_eq!(&forth.modified, &back.modified);
    }

    #[test]
    fn disjoint_appliers_commute(left in body(), right in body()) {
        let (left, right) = (within(&left, 0), within(&right, 3));
        let mut forth = Scenario::new(ANY);
        forth.apply("l", &left).apply("r", &right);
        let mut back = Scenario::new(ANY);
        back.apply("r", &right).apply("l", &left);
        prop_assert_eq!(forth.contents(), back.contents());
    }

    #[test]
    fn every_field_has_an_owner(steps in prop::collection::vec((0..3u8, "[ab]", body()), 1..6)) {
        let mut scenario = Scenario::new(ANY);
        for (verb, manager, body) in &steps {
            let body = within(body, 0);
            match verb {
                0 => _ = scenario.update(manager, &body),
                1 => _ = scenario.force(manager, &body),
                _ => _ = scenario.try_apply("g/v1", manager, &body, false, NOW),
            }
        }
        let live = scenario.live.unwrap_or_else(|| object_of("g/v1", "{}"));
        let entries = managed_fields::read(live.at(&["metadata", "managedFields"])).unwrap_or_default();
        let owners = Managers::decode(&entries).unwrap().entries;
        if owners.is_empty() {
            // The last manager has lost all its fields: from here on nothing is tracked, until the next apply.
            return Ok(());
        }
        let owned = owners.values().fold(FieldSet::new(), |all, entry| all.union(&entry.fields.set()));
        let all = scenario.kind.types("g/v1").unwrap().field_set(&live);
        all.for_each(&mut |path| {
            let text: String = path.iter().map(ToString::to_string).collect();
            let is_emptied = |name: &str| {
                let part = live.at(&["spec", name]).unwrap_or(&Value::Null);
                text == format!(".spec.{name}") && matches!(part, Value::Null | Value::Object(_) | Value::Array(_))
            };
            // A map or list that others have emptied has no owner.
            let counts = text.starts_with(".spec.") && !is_emptied("gran") && !is_emptied("list") && !is_emptied("set");
            assert!(!counts || owned.contains(path), "nobody owns {text} of {}", json::encode_to_string(&live));
        });
    }

    #[test]
    fn what_is_removed_and_applied_again_is_as_it_was(first in body(), second in body()) {
        let (first, second) = (within(&first, 0), within(&second, 0));
        let mut scenario = Scenario::new(ANY);
        scenario.force("b", &second).force("a", &first);
        let before = scenario.contents();
        scenario.force("a", r#"{"spec":{}}"#).force("a", &first);
        prop_assert_eq!(scenario.contents(), before);
    }
}

/// A body with only those parts whose number, or the number in whose name, is one of three from `from` on: two such
/// ranges share nothing.
fn within(body: &str, from: i64) -> String {
    let is_within = |number: i64| (from..from + 3).contains(&number);
    let mut body = value(body);
    let spec = body.get_mut("spec").and_then(Value::as_object_mut).unwrap();
    spec.remove("free");
    if let Some(fields) = spec.get_mut("gran").and_then(Value::as_object_mut) {
        fields.retain(|name, _| is_within(i64::from(name.as_bytes()[0] - b'a')));
    }
    for (list, key) in [("list", Some("k")), ("set", None)] {
        if let Some(Value::Array(items)) = spec.get_mut(list) {
            let key_of = |item: &Value| key.map_or(item.as_i64(), |key| item.get(key).and_then(Value::as_i64));
            items.retain(|item| key_of(item).is_some_and(is_within));
        }
    }
    spec.retain(|_, part| part.as_object().is_none_or(|part| !part.is_empty()) && part.as_array() != Some(&[]));
    json::encode_to_string(&body)
}

/// An object whose lists and maps have `count` entries, and as many managers in its managedFields.
fn large(count: usize, size: i64) -> Value {
    let entries = (0..count).map(|at| {
        let fields = object! { "f:spec" => object! { "f:sizes" => object! { format!("f:a{at}") => object! {} } } };
        object! {
            "manager" => format!("m{at}"), "operation" => "Update", "apiVersion" => "g/v1", "fieldsType" => "FieldsV1",
            "fieldsV1" => fields,
        }
    });
    let sizes: Map = (0..count).map(|at| (format!("a{at}"), Value::Int(size))).collect();
    let ports = (0..count as i64).rev().map(|port| object! { "port" => port, "size" => size });
    object! {
        "apiVersion" => "g/v1", "kind" => "K",
        "metadata" => object! { "uid" => "u", "managedFields" => entries.collect::<Vec<_>>() },
        "spec" => object! { "sizes" => Value::Object(sizes), "ports" => ports.collect::<Vec<_>>() },
    }
}

const LARGE: &str = r#"{"type":"object","properties":{
    "sizes":{"type":"object","additionalProperties":{"type":"integer"}},
    "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port"],
        "items":{"type":"object","properties":{"port":{"type":"integer"},"size":{"type":"integer"}}}}}}"#;

#[test]
fn ten_times_the_object_and_its_managers_take_ten_times_the_steps() {
    let mut scenario = Scenario::new(LARGE);
    let mut applied = |count| {
        scenario.live = Some(large(count, 1));
        let mut body = large(count, 2);
        take_managed_fields(&mut body);
        let write = |fields: FieldManager<'_>, live: Option<&Value>| {
            let refused = fields.apply(live, &body, "b", false, NOW).expect_err("others own it");
            assert!(refused.to_string().len() < 1 << 20);
            let forced = fields.apply(live, &body, "b", true, NOW).expect("it is applied");
            let less = object! { "apiVersion" => "g/v1", "kind" => "K", "spec" => object! { "sizes" => object! {} } };
            let less = fields.apply(Some(&forced.object), &less, "b", true, NOW).expect("it is applied");
            assert_eq!(less.object.at(&["spec", "ports"]), None);
        };
        crate::work::counted(|| scenario.with_manager("g/v1", "", write)).1
    };
    let (few, many) = (applied(300), applied(3000));
    assert!(many < 16 * few, "{few} steps, then {many}");

    let mut updated = |count| {
        scenario.live = Some(large(count, 1));
        let body = large(count, 1);
        let write = |fields: FieldManager<'_>, live: Option<&Value>| fields.update(live, body, "b", NOW);
        let (written, steps) = crate::work::counted(|| scenario.with_manager("g/v1", "", write));
        assert_eq!(written.items_at(&["metadata", "managedFields"]).len(), 10);
        steps
    };
    let (few, many) = (updated(300), updated(3000));
    assert!(many < 16 * few, "{few} steps, then {many}");
}

#[test]
fn type_errors_behind_a_long_path_are_told_up_to_a_length() {
    let mut scenario = Scenario::new(LARGE);
    let ports = format!("[{}]", vec![r#"{"port":"x"}"#; 1000].join(","));
    let spec = format!(r#"{{"spec":{{"sizes":{{"{}":{ports}}}}}}}"#, "k".repeat(1000));
    let error = scenario.try_apply("g/v1", "a", &spec, false, NOW).expect_err("it is not a number");
    assert!(error.len() < 2 << 20, "{} bytes", error.len());
    let wrong: Vec<String> = (0..3000).map(|at| format!(r#""{}{at}":"x""#, "k".repeat(1000))).collect();
    let spec = format!(r#"{{"spec":{{"sizes":{{{}}}}}}}"#, wrong.join(","));
    let error = scenario.try_apply("g/v1", "a", &spec, false, NOW).expect_err("they are not numbers");
    assert!(error.len() < 2 << 20 && error.ends_with(" more errors"), "{} bytes", error.len());
}
