//! EvictionRequest and Eviction, lifecycle.k8s.io/v1alpha1: a request for a pod's eviction, and its progress.
//!
//! Only served if enabled. A controller, which does not exist here, would have to act on a request. Only the markers of
//! the types (`+k8s:…`) are checked, because there was no server to compare with.

use crate::crd::ServedVersion;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, conditions, declared, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::types::{self, Message};
use crate::value::Value;

const GROUP: &str = "lifecycle.k8s.io";

pub static KINDS: [&Kind; 2] = [
    &Kind {
        plural: "evictionrequests",
        singular: "evictionrequest",
        status: true,
        is_default: false,
        example: "metadata: {name: example}\nspec:\n  target: {pod: {name: web, uid: 11111111-1111-1111-1111-111111111111}}\n  requester: example.com/drain\n  intent: Eviction",
        ..Kind::new(GROUP, "v1alpha1", "EvictionRequest", &EvictionRequest)
    },
    &Kind {
        plural: "evictions",
        singular: "eviction",
        status: true,
        is_default: false,
        example: "metadata: {name: example}\nspec: {target: {pod: {name: web, uid: 11111111-1111-1111-1111-111111111111}}}",
        ..Kind::new(GROUP, "v1alpha1", "Eviction", &EvictionRequest)
    },
];

/// The strategy of both kinds: the markers of their types describe how they differ.
struct EvictionRequest;

impl Strategy for EvictionRequest {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(declared::validate(message(version), &FieldRef::root(object), version.minor));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        if subresource == Subresource::Status {
            errors.extend(conditions::validate(&new.field("status").field("conditions")));
        }
        errors.extend(declared::validate_update(message(version), &new, &old, version.minor));
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(Vec::new(), |object| Cell::named(object, Vec::new())))
    }
}

/// The type of the kind that is being written.
fn message(version: &ServedVersion) -> &'static Message {
    types::message_of_kind(&version.group, &version.version, &version.names.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::find;
    use crate::value::yaml;

    const TARGET: &str = "target: {pod: {name: web, uid: 11111111-1111-1111-1111-111111111111}}";

    fn object(plural: &str, rest: &str) -> Value {
        let kind = find(GROUP, plural).expect("the kind is there");
        let text = format!("{{apiVersion: {GROUP}/v1alpha1, kind: {}, metadata: {{name: a}}, {rest}}}", kind.kind);
        let sent = yaml::decode(text.as_bytes()).expect("the test is valid");
        kind.strategy.decode(sent, &[]).unwrap_or_else(|_| panic!("{text} can be read")).object
    }

    fn told(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).filter(|text| !text.starts_with("metadata")).collect()
    }

    #[test]
    fn a_request_is_checked_as_its_markers_say() {
        let kind = find(GROUP, "evictionrequests").expect("the kind is there");
        let check = |spec: &str, expect: &[&str]| {
            let object = object(kind.plural, &format!("spec: {spec}"));
            assert_eq!(told(&kind.strategy.validate_create(&kind.served_version(), &object)), expect);
        };
        check(&format!("{{{TARGET}, requester: example.com/drain, intent: Eviction}}"), &[]);
        check(
            "{target: {}, requester: drain, intent: Move}",
            &[
                "spec.target: Invalid value: \"\": must specify one of: `pod`",
                "spec.requester: Invalid value: \"drain\": must include a prefix (e.g. 'example.com/key')",
                "spec.intent: Unsupported value: \"Move\": supported values: \"Eviction\", \"Withdrawn\"",
            ],
        );
        check(
            "{target: {pod: {name: A_, uid: x}}, requester: '', intent: ''}",
            &[
                "spec.target.pod.name: Invalid value: \"A_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
                "spec.target.pod.uid: Invalid value: \"x\": must be a lowercase UUID in 8-4-4-4-12 format",
                "spec.requester: Required value",
                "spec.intent: Required value",
            ],
        );
    }

    #[test]
    fn a_requester_is_in_no_domain_of_kubernetes() {
        let kind = find(GROUP, "evictionrequests").expect("the kind is there");
        let check = |requester: &str, expect: &[&str]| {
            let spec = format!("spec: {{{TARGET}, requester: {requester}, intent: Eviction}}");
            let errors = kind.strategy.validate_create(&kind.served_version(), &object(kind.plural, &spec));
            assert_eq!(told(&errors), expect);
        };
        for requester in ["k8s.io/drain", "a.k8s.io/drain", "kubernetes.io/drain", "a.b.kubernetes.io/drain"] {
            let error = format!(
                "spec.requester: Invalid value: \"{requester}\": domain names *.k8s.io, *.kubernetes.io are reserved"
            );
            check(requester, &[&error]);
        }
        for requester in ["ak8s.io/drain", "k8s.io.example.com/drain", "example.com/k8s.io"] {
            check(requester, &[]);
        }
        check(
            "k8s.io.",
            &[
                "spec.requester: Invalid value: \"k8s.io.\": domain names *.k8s.io, *.kubernetes.io are reserved",
                "spec.requester: Invalid value: \"k8s.io.\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ],
        );
    }

    #[test]
    fn the_lists_in_a_status_are_checked() {
        let kind = find(GROUP, "evictions").expect("the kind is there");
        let check = |old: &str, new: &str, expect: &[&str]| {
            let of = |status: &str| object(kind.plural, &format!("spec: {{{TARGET}}}, status: {status}"));
            let errors = kind.strategy.validate_update(&kind.served_version(), Subresource::Status, &of(new), &of(old));
            assert_eq!(told(&errors), expect);
        };
        check(
            "{}",
            "{observedGeneration: 0}",
            &["status.observedGeneration: Invalid value: 0: must be greater than or equal to 1"],
        );
        check(
            "{observedGeneration: 3}",
            "{observedGeneration: 2}",
            &["status.observedGeneration: Invalid value: 2: may not be decreased from 3"],
        );
        check(
            "{}",
            "{targetResponders: [{name: a.b/c, priority: 100001, state: Gone}]}",
            &[
                "status.targetResponders[0].priority: Invalid value: 100001: must be less than or equal to 100000",
                "status.targetResponders[0].state: Unsupported value: \"Gone\": supported values: \"Active\", \"Canceled\", \"Completed\", \"Inactive\", \"Interrupted\"",
            ],
        );
        check(
            "{responders: [{name: a.b/c, startTime: '2026-01-01T00:00:00Z'}]}",
            "{responders: [{name: a.b/c, startTime: '2026-01-02T00:00:00Z'}]}",
            &["status.responders[0].startTime: Invalid value: null: field cannot be modified once set"],
        );
    }
}
