//! Ownership of fields: applies, forced applies and updates by several managers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use kubeskiff::apply::{ApplyError, ConvertError, FieldManager, ResetFields, TypeSchema, Versions};
use kubeskiff::object;
use kubeskiff::schema::{convert, json_schema};
use kubeskiff::value::{Map, Value, json};

const VERSION: &str = "example.com/v1";
const NOW: &str = "2026-01-01T00:00:00Z";
const FIELDS: [&str; 5] = ["a", "b", "c", "d", "e"];
const MANAGERS: [&str; 4] = ["ann", "bob", "cat", "dan"];

static TYPES: LazyLock<TypeSchema> = LazyLock::new(|| {
    let text =
        br#"{"type":"object","properties":{"spec":{"type":"object","additionalProperties":{"type":"integer"}}}}"#;
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

/// Every three bytes are an operation: who does what, which fields of the spec, and their values. After each, the object
/// and its owners are those of a slow model; the operation a second time changes nothing.
pub fn run(data: &[u8]) {
    let reset_fields = ResetFields::default();
    let manager = FieldManager {
        versions: &OneVersion,
        version: VERSION,
        kind: "K",
        subresource: "",
        reset_fields: &reset_fields,
    };
    let mut live: Option<Value> = None;
    let mut model = Model::default();
    for bytes in data.chunks_exact(3) {
        let step = Step::of(bytes);
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
                let found: BTreeSet<_> = conflicts
                    .iter()
                    .map(|conflict| (conflict.manager.name.clone(), conflict.field().replace(".spec.", "")))
                    .collect();
                assert_eq!(found, model.conflicts(&step), "conflicts of {step:?}");
            }
            Err(error) => unreachable!("what is applied fits its types: {error}"),
            Ok(mut object) => {
                give_uid(&mut object);
                model.write(&step);
                assert_eq!(spec_of(&object), model.spec, "the object after {step:?}");
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
    // INVARIANT: not empty, so that no parent comes or goes after the first step.
    spec: BTreeMap<String, i64>,
}

impl Step {
    fn of(bytes: &[u8]) -> Step {
        let [who, which, values] = [0, 1, 2].map(|at| usize::from(bytes.get(at).copied().unwrap_or_default()));
        let chosen = |at: usize| at == which / 32 % FIELDS.len() || which >> at & 1 == 1;
        let fields = FIELDS.iter().enumerate().filter(|(at, _)| chosen(*at));
        Step {
            action: [Action::Apply, Action::Force, Action::Update][who / 8 % 3],
            manager: MANAGERS[who % MANAGERS.len()],
            spec: fields.map(|(at, name)| ((*name).to_owned(), i64::from(values >> at & 1 == 1))).collect(),
        }
    }

    fn object(&self) -> Value {
        let spec: Map = self.spec.iter().map(|(name, value)| (name.clone(), Value::Int(*value))).collect();
        object! {
            "apiVersion" => VERSION,
            "kind" => "K",
            "metadata" => object! { "name" => "a" },
            "spec" => Value::Object(spec),
        }
    }
}

/// By manager and operation, the fields of the spec; `.` is the spec itself, which one who updates owns when it adds it.
type Owners = BTreeMap<(String, &'static str), BTreeSet<String>>;

#[derive(Default)]
struct Model {
    spec: BTreeMap<String, i64>,
    owners: Owners,
}

impl Model {
    /// Who else owns a field that the step would change.
    fn conflicts(&self, step: &Step) -> BTreeSet<(String, String)> {
        let changed = step.spec.iter().filter(|(name, value)| self.spec.get(*name) != Some(value));
        let mut conflicts = BTreeSet::new();
        for (name, _) in changed {
            for ((manager, operation), fields) in &self.owners {
                if (manager.as_str(), *operation) != (step.manager, "Apply") && fields.contains(name) {
                    conflicts.insert((manager.clone(), name.clone()));
                }
            }
        }
        conflicts
    }

    fn write(&mut self, step: &Step) {
        let operation = if step.action == Action::Update { "Update" } else { "Apply" };
        if step.action == Action::Apply {
            assert_eq!(self.conflicts(step), BTreeSet::new(), "conflicts that nobody saw at {step:?}");
        }
        let key = (step.manager.to_owned(), operation);
        let mut own = self.owners.remove(&key).unwrap_or_default();
        let mut changed: BTreeSet<String> = step
            .spec
            .iter()
            .filter(|(name, value)| self.spec.get(*name) != Some(value))
            .map(|(n, _)| n.clone())
            .collect();
        let gone: Vec<String> = match step.action {
            Action::Update => self.spec.keys().filter(|name| !step.spec.contains_key(*name)).cloned().collect(),
            Action::Apply | Action::Force => {
                let alone = |name: &&String| self.owners.values().all(|fields| !fields.contains(*name));
                own.iter().filter(|name| !step.spec.contains_key(*name)).filter(alone).cloned().collect()
            }
        };
        if step.action == Action::Update {
            if self.spec.is_empty() {
                changed.insert(".".to_owned());
            }
            own.extend(changed.iter().cloned());
            own.retain(|name| !gone.contains(name));
        } else {
            own = step.spec.keys().cloned().collect();
        }
        for fields in self.owners.values_mut() {
            fields.retain(|name| !changed.contains(name) && !gone.contains(name));
        }
        self.owners.insert(key, own);
        self.owners.retain(|_, fields| !fields.is_empty());
        self.spec.retain(|name, _| !gone.contains(name));
        self.spec.extend(step.spec.iter().map(|(name, value)| (name.clone(), *value)));
    }
}

fn give_uid(object: &mut Value) {
    if let Some(metadata) = object.at_mut(&["metadata"]).and_then(Value::as_object_mut) {
        metadata.insert("uid", Value::from("u"));
    }
}

fn spec_of(object: &Value) -> BTreeMap<String, i64> {
    let spec = object.at(&["spec"]).and_then(Value::as_object);
    let fields = spec.into_iter().flat_map(Map::iter);
    fields.filter_map(|(name, value)| Some((name.to_owned(), value.as_i64()?))).collect()
}

fn owners_of(object: &Value) -> Owners {
    let entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default();
    let owner = |entry: &Value| {
        let operation = if entry.str_at(&["operation"]) == "Apply" { "Apply" } else { "Update" };
        let spec = entry.at(&["fieldsV1", "f:spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut fields: BTreeSet<String> = spec.keys().map(|name| name.trim_start_matches("f:").to_owned()).collect();
        if fields.is_empty() {
            // A member without children is written without its dot.
            fields.insert(".".to_owned());
        }
        ((entry.str_at(&["manager"]).to_owned(), operation), fields)
    };
    entries.iter().map(owner).collect()
}
