//! Namespace, core/v1.
//!
//! A namespace is never removed immediately: its deletion marks it as terminating, and a controller deletes its
//! contents first.

use crate::crd::{Column, Scope, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::{names, object_meta};
use crate::object;
use crate::value::Value;

use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Action, Kind, Part, SINGLE_VERBS, defaults, metadata, namespaces};

/// The finalizer in the spec that keeps the namespace until its contents are deleted.
const FINALIZER: &str = "kubernetes";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    scope: Scope::Cluster,
    status: true,
    parts: &[Part::new(namespaces::FINALIZE, &["update"], None, Action::Write)],
    verbs: SINGLE_VERBS,
    selectable_fields: &[".status.phase"],
    example: "metadata: {name: example}",
    ..Kind::new("", "v1", "Namespace", &Namespace)
}];

struct Namespace;

impl Strategy for Namespace {
    fn set_typed_defaults(&self, object: &mut Value) {
        label_with_name(object);
        defaults::set(defaults::structure(object, "status"), "phase", "Active");
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

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_label);
        let spec = Path::new("spec");
        let path = spec.child("finalizers");
        for name in finalizers(object) {
            errors.extend(check_finalizer(name.as_str().unwrap_or_default(), &path));
        }
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let kept: &[&str] = match subresource {
            Subresource::Status => &["spec"],
            Subresource::Part(namespaces::FINALIZE) => &["status"],
            _ => &["spec", "status"],
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

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let of_metadata = metadata::validate_update(new, old);
        let others = match subresource {
            Subresource::Main | Subresource::Scale => {
                let mut errors = self.validate_create(version, new);
                errors.extend(of_metadata);
                return errors;
            }
            Subresource::Part(_) => {
                let spec = Path::new("spec");
                let path = spec.child("finalizers");
                let mut errors = ErrorList::new();
                for (index, name) in finalizers(new).iter().enumerate() {
                    errors.extend(check_finalizer(name.as_str().unwrap_or_default(), &path.index(index)));
                }
                errors
            }
            Subresource::Status => {
                let (wanted, deletion) = if new.at(&["metadata", "deletionTimestamp"]).is_some() {
                    ("Terminating", "is not empty")
                } else {
                    ("Active", "is empty")
                };
                let phase = new.str_at(&["status", "phase"]);
                let status = Path::new("status");
                let why = format!("may only be '{wanted}' if `deletionTimestamp` {deletion}");
                let unfit = (phase != wanted).then(|| Error::invalid(&status.child("Phase"), phase, why));
                unfit.into_iter().collect()
            }
        };
        let mut errors = of_metadata;
        errors.extend(others);
        errors
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(vec![Column::string("Status", "The status of the namespace")], |object| {
            Cell::named(object, vec![Cell::text(object.str_at(&["status", "phase"]))])
        }))
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        Some("Precondition failed")
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    /// As in kube-apiserver, whose documents promise a Status.
    fn publishes_deleted(&self) -> bool {
        false
    }

    fn begin_delete(&self, object: &Value, now: &str) -> Option<Value> {
        if object.at(&["metadata", "deletionTimestamp"]).is_some() {
            return None;
        }
        let mut marked = object.clone();
        object_meta::mark_deleted(&mut marked, now);
        marked.make_object().entry("metadata").make_object().remove("deletionGracePeriodSeconds");
        marked.make_object().entry("status").make_object().insert("phase", Value::from("Terminating"));
        Some(marked)
    }

    fn must_stay(&self, object: &Value) -> bool {
        !finalizers(object).is_empty()
    }
}

/// Adds the label with the namespace's name, for selectors.
fn label_with_name(object: &mut Value) {
    let name = object.str_at(&["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let metadata = object.make_object().entry("metadata").make_object();
        metadata.entry("labels").make_object().insert("kubernetes.io/metadata.name", Value::from(name));
    }
}

/// The finalizers in the spec. The namespace is removed when there are none left.
fn finalizers(object: &Value) -> &[Value] {
    object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or_default()
}

fn check_finalizer(name: &str, path: &Path<'_>) -> ErrorList {
    let faults = names::is_qualified_name(name).into_iter();
    let mut errors: ErrorList = faults.map(|fault| Error::invalid(path, name, fault)).collect();
    errors.extend(metadata::check_finalizer(name, path));
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finalizing_changes_the_finalizers_alone_and_lets_the_namespace_go() {
        let mut old = Namespace.begin_delete(
            &object! {
                "metadata" => object! { "name" => "n" },
                "spec" => object! { "finalizers" => vec![Value::from(FINALIZER)] },
                "status" => object! { "phase" => "Active" },
            },
            "2026-01-01T00:00:00Z",
        );
        let old = old.as_mut().expect("its content is still there");
        assert!(Namespace.must_stay(old));
        let version = KINDS[0].served_version();
        let mut new = old.clone();
        new.make_object().insert("spec", object! {});
        new.make_object().insert("status", object! { "phase" => "Active" });
        let finalize = Subresource::Part(namespaces::FINALIZE);
        Namespace.prepare_update(&version, finalize, &mut new, old);
        assert_eq!(new.str_at(&["status", "phase"]), "Terminating");
        assert!(!Namespace.must_stay(&new));
        // An update of the whole object keeps the finalizers: only that subresource changes them.
        let mut whole = object! { "metadata" => object! { "name" => "n" } };
        Namespace.prepare_update(&version, Subresource::Main, &mut whole, old);
        assert!(Namespace.must_stay(&whole));
    }
}
