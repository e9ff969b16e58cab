//! Namespace, core/v1.
//!
//! A namespace is never gone at once: its deletion marks it as terminating, and a controller empties it.

use std::sync::Arc;

use crate::apply::TypeSchema;
use crate::crd::write::{self, Origin};
use crate::crd::{Names, Scope, ServedVersion};
use crate::meta::field::{ErrorList, Path};
use crate::meta::{names, object_meta};
use crate::object;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::schema::{json_schema, validate};
use crate::store::Collection;
use crate::value::{Value, yaml};

use super::super::strategy::{Decoded, Strategy, Subresource};
use super::super::{Resource, delete};

/// Namespaces that are there from the start.
pub const INITIAL: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

const SCHEMA: &str = include_str!("../../../schemas/namespace.yaml");
/// The finalizer in the spec: the namespace's content goes first.
const FINALIZER: &str = "kubernetes";
const METADATA: Path<'static> = Path::new("metadata");

/// A namespace to be created.
pub fn new(name: &str) -> Value {
    object! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => object! { "name" => name } }
}

pub(super) fn resource() -> Resource {
    let structural = structural();
    let types = TypeSchema::of_custom_resource(&structural, false);
    let version = ServedVersion {
        group: String::new(),
        version: "v1".to_owned(),
        names: Names {
            plural: "namespaces".to_owned(),
            singular: "namespace".to_owned(),
            kind: "Namespace".to_owned(),
            list_kind: "NamespaceList".to_owned(),
            short_names: vec!["ns".to_owned()],
            categories: Vec::new(),
        },
        scope: Scope::Cluster,
        schema_generation: 0,
        served: true,
        storage: true,
        structural: Arc::new(structural),
        preserve_unknown_fields: false,
        status: true,
        scale: None,
        columns: Vec::new(),
        selectable_fields: Vec::new(),
        deprecation_warning: None,
    };
    Resource::new(Collection::new("", "namespaces"), vec![Arc::new(version)], vec![types], Arc::new(Namespace))
}

fn structural() -> Structural {
    let schema = yaml::decode(SCHEMA.as_bytes()).expect("schemas/namespace.yaml is YAML");
    let (schema, _) = json_schema::decode(&schema).expect("schemas/namespace.yaml is a schema");
    to_structural(&schema).expect("schemas/namespace.yaml is structural")
}

struct Namespace;

impl Strategy for Namespace {
    fn decode(&self, mut object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, String> {
        let unknown_fields = write::decode(&mut object, versions, Origin::Request)?;
        Ok(Decoded { is_typed: true, ..Decoded::unstructured(object, unknown_fields) })
    }

    fn may_leave_type_out(&self) -> bool {
        true
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        let fields = object.make_object();
        fields.insert("status", object! { "phase" => "Active" });
        let spec = fields.entry("spec").make_object();
        let finalizers = spec.entry("finalizers");
        if !matches!(finalizers, Value::Array(_)) {
            *finalizers = Value::Array(Vec::new());
        }
        if let Value::Array(finalizers) = finalizers
            && !finalizers.iter().any(|name| name.as_str() == Some(FINALIZER))
        {
            finalizers.push(Value::from(FINALIZER));
        }
        label_with_name(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let mut errors = object_meta::validate(metadata, false, names::name_is_dns1123_label, &METADATA);
        errors.extend(validate::validate(&Path::ROOT, object, &version.structural));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let kept: &[&str] = match subresource {
            Subresource::Status => &["spec"],
            Subresource::Finalize => &["status"],
            Subresource::Main | Subresource::Scale => &["spec", "status"],
        };
        let fields = new.make_object();
        for name in kept {
            match old.get(name) {
                Some(value) => _ = fields.insert(*name, value.clone()),
                None => _ = fields.remove(name),
            }
        }
        label_with_name(new);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, _: &Value) -> ErrorList {
        validate::validate(&Path::ROOT, new, &version.structural)
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, _: &Value, _: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    fn allows_unconditional_update(&self) -> bool {
        true
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static str] {
        match subresource {
            Subresource::Status => &["spec"],
            Subresource::Main | Subresource::Scale | Subresource::Finalize => &["status"],
        }
    }

    fn begin_delete(&self, object: &Value, now: &str) -> Option<Value> {
        if object.at(&["metadata", "deletionTimestamp"]).is_some() {
            return None;
        }
        let mut marked = object.clone();
        delete::mark(&mut marked, now);
        marked.make_object().entry("metadata").make_object().remove("deletionGracePeriodSeconds");
        marked.make_object().entry("status").make_object().insert("phase", Value::from("Terminating"));
        Some(marked)
    }

    fn must_stay(&self, object: &Value) -> bool {
        object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|names| !names.is_empty())
    }
}

/// Every namespace has its name among its labels, for selectors.
fn label_with_name(object: &mut Value) {
    let name = object.str_at(&["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let metadata = object.make_object().entry("metadata").make_object();
        metadata.entry("labels").make_object().insert("kubernetes.io/metadata.name", Value::from(name));
    }
}
