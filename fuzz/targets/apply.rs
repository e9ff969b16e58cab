//! Ownership of fields: applies, forced applies and updates by several managers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use kubeskiff::apply::{ApplyError, ConvertError, FieldManager, ResetFields, TypeSchema, Versions};
use kubeskiff::meta::minor::Minor;
use kubeskiff::object;
use kubeskiff::schema::{convert, json_schema};
use kubeskiff::value::{Map, Value, json};

use super::{Linear, Target};

const VERSION: &str = "example.com/v1";
const NOW: &str = "2026-01-01T00:00:00Z";
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const MANAGERS: [&str; 4] = ["ann", "bob", "cat", "dan"];

static TYPES: LazyLock<TypeSchema> = LazyLock::new(|| {
    let text = br#"{"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "integer"}},
        "atomicList": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "items": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {
            "type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "value": {"type": "integer"}}}}}}}}"#;
    let schema = json::decode(text).expect("it is JSON");
    let (schema, _) = json_schema::decode(&schema).expect("it is a schema");
    TypeSchema::of_custom_resource(&convert::to_structural(&schema).expect("it is structural"), false)
});

struct OneVersion;

impl Versions for OneVersion {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == VERSION).then_some(&*TYPES)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

pub const TARGET: Target = Target {
    name: "apply",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 1 << 20, per_byte: 24_000 },
};

/// Every six bytes are an operation: who does what, and with which spec. After each, the object and its owners are those
/// of a slow model; the operation a second time changes nothing.
fn run(data: &[u8]) {
    let reset_fields = ResetFields::default();
    let manager = FieldManager {
        minor: Minor::NEWEST,
        versions: &OneVersion,
        version: VERSION,
        kind: "K",
        subresource: "",
        reset_fields: &reset_fields,
    };
    let mut live: Option<Value> = None;
    let mut model = Model::default();
    for bytes in data.as_chunks().0 {
        let step = Step::of(*bytes);
        let write = |live: Option<&Value>| match step.action {
            Action::Update => {
                let mut new = step.object();
                if live.is_some() {
                    give_uid(&mut new);
                }
                Ok(manager.update(live, new, step.manager, NOW))
            }
            Action::Apply | Action::Force => {
                let force = step.action == Action::Force;
                manager.apply(live, &step.object(), step.manager, force, NOW).map(|applied| applied.object)
            }
        };
        match write(live.as_ref()) {
            Err(ApplyError::Conflicts(conflicts)) => {
                let found: BTreeSet<_> =
                    conflicts.told().0.into_iter().map(|conflict| (conflict.manager.name, conflict.field)).collect();
                assert_eq!(found, model.conflicts(&step), "conflicts of {step:?}");
            }
            Err(error) => unreachable!("what is applied fits its types: {error}"),
            Ok(mut object) => {
                give_uid(&mut object);
                model.write(&step);
                let spec = object.get("spec").expect("every step sets some of it");
                assert_eq!(fields_of(spec), model.fields, "the object after {step:?}");
                assert_eq!(owners_of(&object), model.owners, "the owners after {step:?}");
                let mut again = write(Some(&object)).expect("who owns it all has no conflict");
                give_uid(&mut again);
                assert_eq!(again, object, "a second time: {step:?}");
                live = Some(object);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Apply,
    Force,
    Update,
}

#[derive(Debug)]
struct Step {
    action: Action,
    manager: &'static str,
    // INVARIANT: what is owned in parts is not empty, so that no parent comes or goes after the first step.
    spec: Value,
}

impl Step {
    fn of([who, keys, values, set, items, whole]: [u8; 6]) -> Step {
        let is_set = |byte: u8, bit: usize| byte >> bit & 1 == 1;
        let number = |bit: usize| Value::Int(i64::from(is_set(values, bit)));
        let item = |(at, name): (usize, &'static str)| {
            let mut item = object! { "name" => name };
            if is_set(whole, at) {
                item.make_object().insert("value", number(at));
            }
            item
        };
        let map: Map = chosen(keys).map(|(at, name)| (name.to_owned(), number(at))).collect();
        let mut items: Vec<Value> = chosen(items).map(item).collect();
        if is_set(who, 7) {
            items.reverse();
        }
        let mut spec = object! {
            "map" => Value::Object(map),
            "set" => Value::Array(chosen(set).map(|(_, name)| Value::from(name)).collect()),
            "items" => Value::Array(items),
        };
        if is_set(whole, 5) {
            spec.make_object().insert("atomicMap", object! { "a" => number(5), "b" => 1 });
        }
        if is_set(whole, 6) {
            spec.make_object().insert("atomicList", Value::Array(vec![number(6), number(7)]));
        }
        Step {
            action: [Action::Apply, Action::Force, Action::Update][usize::from(who / 8 % 3)],
            manager: MANAGERS[usize::from(who) % MANAGERS.len()],
            spec,
        }
    }

    fn object(&self) -> Value {
        object! {
            "apiVersion" => VERSION,
            "kind" => "K",
            "metadata" => object! { "name" => "a" },
            "spec" => self.spec.clone(),
        }
    }

    fn operation(&self) -> &'static str {
        if self.action == Action::Update { "Update" } else { "Apply" }
    }
}

/// The names whose bits are set, each with its position; one at least.
fn chosen(bits: u8) -> impl Iterator<Item = (usize, &'static str)> {
    let always = usize::from(bits / 32) % NAMES.len();
    NAMES.into_iter().enumerate().filter(move |(at, _)| *at == always || bits >> at & 1 == 1)
}

/// All that can be owned, by the path that a conflict shows, with its value; items of lists have none of their own.
type Fields = BTreeMap<String, Value>;

/// By manager and operation, the paths that are owned.
type Owners = BTreeMap<(String, String), BTreeSet<String>>;

#[derive(Default)]
struct Model {
    fields: Fields,
    owners: Owners,
}

impl Model {
    fn changed(&self, new: &Fields) -> BTreeSet<String> {
        new.iter().filter(|(path, value)| self.fields.get(*path) != Some(value)).map(|(path, _)| path.clone()).collect()
    }

    /// Who else owns a field that the step would change.
    fn conflicts(&self, step: &Step) -> BTreeSet<(String, String)> {
        let changed = self.changed(&fields_of(&step.spec));
        let others =
            self.owners.iter().filter(|((name, operation), _)| (&**name, &**operation) != (step.manager, "Apply"));
        others
            .flat_map(|((name, _), owned)| owned.intersection(&changed).map(|path| (name.clone(), path.clone())))
            .collect()
    }

    fn write(&mut self, step: &Step) {
        if step.action == Action::Apply {
            assert_eq!(self.conflicts(step), BTreeSet::new(), "conflicts that nobody saw at {step:?}");
        }
        let new = fields_of(&step.spec);
        let mut changed = self.changed(&new);
        let key = (step.manager.to_owned(), step.operation().to_owned());
        let mut own = self.owners.remove(&key).unwrap_or_default();
        let is_dropped = |path: &&String| !new.contains_key(*path);
        let gone: BTreeSet<String> = match step.action {
            Action::Update => self.fields.keys().filter(is_dropped).cloned().collect(),
            Action::Apply | Action::Force => {
                let alone = |path: &&String| self.owners.values().all(|owned| !owned.contains(*path));
                let dropped: Vec<&String> = own.iter().filter(is_dropped).filter(alone).collect();
                // With an item goes what is below it, whoever owns that.
                let is_below = |path: &&String| dropped.iter().any(|gone| path.starts_with(*gone));
                self.fields.keys().filter(is_below).cloned().collect()
            }
        };
        if step.action == Action::Update {
            if self.fields.is_empty() {
                changed.extend(["", ".map", ".set", ".items"].map(|parent| format!(".spec{parent}")));
            }
            own.extend(changed.iter().cloned());
            own.retain(|path| !gone.contains(path));
        } else {
            own = new.keys().cloned().collect();
        }
        for owned in self.owners.values_mut() {
            owned.retain(|path| !changed.contains(path) && !gone.contains(path));
        }
        self.owners.insert(key, own);
        self.owners.retain(|_, owned| !owned.is_empty());
        self.fields.retain(|path, _| !gone.contains(path));
        self.fields.extend(new);
    }
}

fn give_uid(object: &mut Value) {
    if let Some(metadata) = object.at_mut(&["metadata"]).and_then(Value::as_object_mut) {
        metadata.insert("uid", Value::from("u"));
    }
}

fn fields_of(spec: &Value) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in spec.as_object().into_iter().flat_map(Map::iter) {
        let path = format!(".spec.{name}");
        match (name, value) {
            ("map", Value::Object(map)) => {
                fields.extend(map.iter().map(|(key, value)| (format!("{path}.{key}"), value.clone())));
            }
            ("set", Value::Array(items)) => {
                fields.extend(
                    items.iter().map(|item| (format!("{path}[={}]", json::encode_to_string(item)), Value::Null)),
                );
            }
            ("items", Value::Array(items)) => {
                for item in items {
                    let path = format!("{path}[name={:?}]", item.str_at(&["name"]));
                    let below = item.as_object().into_iter().flat_map(Map::iter);
                    fields.extend(below.map(|(name, value)| (format!("{path}.{name}"), value.clone())));
                    fields.insert(path, Value::Null);
                }
            }
            _ => {
                fields.insert(path, value.clone());
            }
        }
    }
    fields
}

fn owners_of(object: &Value) -> Owners {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let owner = |entry: &Value| {
        let mut owned = BTreeSet::new();
        collect_owned("", entry.get("fieldsV1").expect("every entry has some"), &mut owned);
        ((entry.str_at(&["manager"]).to_owned(), entry.str_at(&["operation"]).to_owned()), owned)
    };
    entries.iter().map(owner).collect()
}

/// Reads `fieldsV1`: `f:a` is `.a`, `k:{"name":"a"}` is `[name="a"]`, `v:"a"` is `[="a"]`.
fn collect_owned(path: &str, fields: &Value, owned: &mut BTreeSet<String>) {
    let fields = fields.as_object().expect("fieldsV1 is made of objects");
    if fields.is_empty() || fields.contains_key(".") {
        owned.insert(path.to_owned());
    }
    for (element, below) in fields.iter().filter(|(element, _)| *element != ".") {
        let (kind, text) = element.split_at(2);
        let shown = match kind {
            "f:" => format!(".{text}"),
            "v:" => format!("[={text}]"),
            _ => format!("[name={}]", text.trim_start_matches(r#"{"name":"#).trim_end_matches('}')),
        };
        collect_owned(&format!("{path}{shown}"), below, owned);
    }
}
