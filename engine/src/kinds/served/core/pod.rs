//! Pod, core/v1.
//!
//! No kubelet is ever called: a pod is an object for other programs to work with.

use super::binding::BINDING;
use crate::crd::ServedVersion;
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::{Action, Kind, Part, pod, pod_object};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types::decoder::Empty;
use crate::value::Value;

const EPHEMERAL_CONTAINERS: &str = "ephemeralcontainers";
const RESIZE: &str = "resize";
const WRITING: &[&str] = &["get", "patch", "update"];
const PROXYING: &[&str] = &["create", "delete", "get", "patch", "update"];
const CONNECTING: &[&str] = &["create", "get"];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "pods",
    singular: "pod",
    short_names: &["po"],
    categories: &["all"],
    status: true,
    parts: &[
        Part::new("attach", CONNECTING, Some(&pod_object::ATTACH_OPTIONS), Action::Connect),
        Part::new("binding", &["create"], Some(&BINDING), Action::Bind),
        Part::new(EPHEMERAL_CONTAINERS, WRITING, None, Action::Write),
        Part::new("eviction", &["create"], Some(&pod_object::EVICTION), Action::Evict),
        Part::new("exec", CONNECTING, Some(&pod_object::EXEC_OPTIONS), Action::Connect),
        Part::new("log", &["get"], None, Action::Log),
        Part::new("portforward", CONNECTING, Some(&pod_object::PORT_FORWARD_OPTIONS), Action::Connect),
        Part::new("proxy", PROXYING, Some(&pod_object::PROXY_OPTIONS), Action::Proxy),
        Part {
            since: Minor::of(32),
            gate: Some(Gate::InPlacePodVerticalScaling),
            ..Part::new(RESIZE, WRITING, None, Action::Write)
        },
    ],
    selectable_fields: pod_object::fields::SELECTABLE,
    example: "metadata: {name: example}\nspec: {containers: [{name: main, image: example}]}",
    ..Kind::new("", "v1", "Pod", &Pod)
}];

struct Pod;

impl Strategy for Pod {
    fn set_typed_defaults(&self, object: &mut Value) {
        pod::set_pod_defaults(object);
        pod_object::convert::internalize(object);
    }

    fn keep_empty(&self, sent: &Value, object: &mut Value) {
        pod_object::convert::keep_empty_overhead(sent, object);
    }

    fn infer_empty(&self, empty: &mut Vec<Empty>) {
        pod_object::convert::infer_empty_requests(empty);
    }

    fn drop_empty(&self, object: &mut Value) {
        pod_object::convert::drop_empty_overhead(object);
    }

    fn complete(&self, object: &mut Value) {
        pod_object::convert::drop_empty_overhead(object);
    }

    fn early_warnings(&self, object: &Value) -> Vec<String> {
        pod_object::app_armor::warnings(object)
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        let now = object.str_at(&["metadata", "creationTimestamp"]).to_owned();
        pod_object::prepare::create(version.minor, object, &now);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        pod_object::create::validate(version.minor, object)
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let minor = version.minor;
        match subresource {
            Subresource::Status => pod_object::prepare::update_status(minor, new, old),
            Subresource::Part(EPHEMERAL_CONTAINERS) => pod_object::ephemeral::prepare(minor, new, old),
            Subresource::Part(RESIZE) => pod_object::resize::prepare(minor, new, old),
            _ => pod_object::prepare::update(minor, new, old),
        }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        match subresource {
            Subresource::Status => pod_object::status::validate(version.minor, new, old),
            Subresource::Part(EPHEMERAL_CONTAINERS) => pod_object::ephemeral::validate(version.minor, new, old),
            Subresource::Part(RESIZE) => pod_object::resize::validate(version.minor, new, old),
            _ => pod_object::update::validate(version.minor, new, old),
        }
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        match (subresource, old) {
            (Subresource::Status, _) => pod_object::status::warnings(new),
            (Subresource::Main, None) => new_pod_warnings(new),
            _ => Vec::new(),
        }
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn select(&self, object: &Value, field: &str) -> Option<String> {
        pod_object::fields::select(object, field)
    }

    fn indexed_field(&self) -> Option<&'static str> {
        Some("spec.nodeName")
    }

    fn table(&self) -> Option<Table> {
        Some(Table { columns: pod_object::table::columns(), cells: pod_object::table::cells })
    }

    fn completion(&self, object: &Value) -> Option<(&'static str, &'static str)> {
        pod_object::table::completion(object)
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Main => &[&["status"]],
            Subresource::Status => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
            _ => &[],
        }
    }

    fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        Some(pod_object::deletion::grace_period(object, asked))
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

/// The warnings about a new pod.
fn new_pod_warnings(object: &Value) -> Vec<String> {
    let faults = names::is_dns1123_label(object.str_at(&["metadata", "name"]));
    let surprising = format!(
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        faults.join(" ")
    );
    let of_name = (!faults.is_empty()).then_some(surprising);
    of_name.into_iter().chain(pod::pod_warnings(&FieldRef::root(object), None)).collect()
}
