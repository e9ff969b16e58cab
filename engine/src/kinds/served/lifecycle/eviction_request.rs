//! EvictionRequest and Eviction, lifecycle.k8s.io/v1alpha1: somebody asks for a pod to go, and how far that is.
//!
//! Served where they are asked for. Acting on one is the task of a controller, which is not here. It checks the markers of
//! their types (`+k8s:…`), as there was no server to compare with; DIFFERS: those of the lists in the status of an Eviction are
//! not.

use crate::crd::ServedVersion;
use crate::kinds::devices::uid;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, checks, conditions, metadata, prepare, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::Value;

const GROUP: &str = "lifecycle.k8s.io";
const INTENTS: [&str; 2] = ["Eviction", "Withdrawn"];
const CONDITIONS_MAX: usize = 100;

pub static KINDS: [&Kind; 2] = [
    &Kind {
        plural: "evictionrequests",
        singular: "evictionrequest",
        status: true,
        is_default: false,
        example: "metadata: {name: example}\nspec:\n  target: {pod: {name: web, uid: 11111111-1111-1111-1111-111111111111}}\n  requester: example.com/drain\n  intent: Eviction",
        ..Kind::new(
            GROUP,
            "v1alpha1",
            "EvictionRequest",
            &Asked { spec_type: "lifecycle.v1alpha1.EvictionRequestSpec" },
        )
    },
    &Kind {
        plural: "evictions",
        singular: "eviction",
        status: true,
        is_default: false,
        example: "metadata: {name: example}\nspec: {target: {pod: {name: web, uid: 11111111-1111-1111-1111-111111111111}}}",
        ..Kind::new(GROUP, "v1alpha1", "Eviction", &Asked { spec_type: "lifecycle.v1alpha1.EvictionSpec" })
    },
];

/// Either of them. They differ in that a request says who asks, and what for.
struct Asked {
    spec_type: &'static str,
}

impl Strategy for Asked {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
        prepare::first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(self.validate_spec(&FieldRef::root(object).field("spec")));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        if subresource == Subresource::Status {
            errors.extend(validate_status(&new.field("status"), &old.field("status")));
            return errors;
        }
        let (new, old) = (new.field("spec"), old.field("spec"));
        errors.extend(self.validate_spec(&new));
        for name in ["target", "requester"] {
            errors.extend(self.immutable(&new.field(name), &old.field(name)));
        }
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

impl Asked {
    fn validate_spec(&self, spec: &FieldRef<'_>) -> ErrorList {
        let target = spec.field("target");
        let pod = target.field("pod");
        let mut errors = ErrorList::new();
        if pod.is_set() {
            let name = pod.field("name");
            match name.text() {
                "" => errors.push(name.required("")),
                _ => errors.extend(checks::named(&name, names::is_dns1123_subdomain)),
            }
            errors.extend(uid(&pod.field("uid")));
        } else {
            errors.push(Error::invalid(target.path(), "", "must specify one of: `pod`"));
        }
        if self.spec_type.ends_with("EvictionRequestSpec") {
            let requester = spec.field("requester");
            match requester.text() {
                "" => errors.push(requester.required("")),
                _ => errors
                    .extend(crate::kinds::network::names::check_domain_prefixed(requester.path(), requester.text())),
            }
            errors.extend(checks::required_one_of(&spec.field("intent"), &INTENTS));
        }
        errors
    }

    fn immutable(&self, new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
        if new.value() == old.value() {
            return None;
        }
        let error = new.invalid("field is immutable");
        let Some(value @ Value::Object(_)) = new.value() else { return Some(error) };
        let target = format!("{}Target", self.spec_type.trim_end_matches("Spec"));
        Some(error.shown_as(show_internal(&target, value)))
    }
}

fn validate_status(new: &FieldRef<'_>, old: &FieldRef<'_>) -> ErrorList {
    let list = new.field("conditions");
    let mut errors = conditions::validate(&list);
    if list.len() > CONDITIONS_MAX {
        errors.push(list.too_many(CONDITIONS_MAX as i64));
    }
    let (observed, before) = (new.field("observedGeneration"), old.field("observedGeneration"));
    if observed.is_set() && observed.int() < 1 {
        errors.push(observed.invalid("must be greater than or equal to 1"));
    } else if observed.is_set() && observed.int() < before.int() {
        errors.push(observed.invalid("cannot be decreased"));
    } else if before.is_set() && !observed.is_set() {
        errors.push(observed.required("field cannot be cleared once set"));
    }
    errors
}
