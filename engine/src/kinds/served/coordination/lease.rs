//! Lease, coordination.k8s.io/v1.

use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::gate::Gate;
use crate::meta::{names, object_meta};
use crate::value::Value;

use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata};

/// The fields of coordinated leader election; an object keeps those that it already has.
const FEATURES: [Feature; 2] = [
    Feature::new(Gate::CoordinatedLeaderElection, &["spec.strategy"]),
    Feature::new(Gate::CoordinatedLeaderElection, &["spec.preferredHolder"]),
];
/// The only strategy that Kubernetes itself defines.
const STRATEGY: &str = "OldestEmulationVersion";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "leases",
    singular: "lease",
    example: "metadata: {name: example}\nspec: {holderIdentity: me, leaseDurationSeconds: 15}",
    ..Kind::new("coordination.k8s.io", "v1", "Lease", &Lease)
}];

struct Lease;

impl Strategy for Lease {
    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        features::drop_fields(&FEATURES, version.minor, object, None);
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        features::drop_fields(&FEATURES, version.minor, new, Some(old));
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let name_check = names::name_is_dns1123_subdomain;
        let mut errors = object_meta::validate(metadata::of(object), true, name_check, &metadata::METADATA);
        errors.extend(validate_spec(object));
        errors
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_plain_update(new, old);
        errors.extend(validate_spec(new));
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        const HOLDER: &str = "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader \
                              Election is used, the holder identity must be equal to the elected \
                              LeaseCandidate.metadata.name field.";
        Some(Table::named(vec![Column::string("Holder", HOLDER)], |object| {
            Cell::named(object, vec![Cell::text(object.str_at(&["spec", "holderIdentity"]))])
        }))
    }
}

fn validate_spec(object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    let number = |name: &str| object.at(&["spec", name]).and_then(Value::as_i64);
    let text = |name: &str| object.at(&["spec", name]).and_then(Value::as_str);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.push(Error::invalid(&path.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        let at = path.child("leaseTransitions");
        errors.push(Error::invalid(&at, count, "must be greater than or equal to 0"));
    }
    if let Some(strategy) = text("strategy") {
        let outer = path.child("strategy");
        // The reference names the field twice.
        let at = outer.child("strategy");
        if strategy.contains('/') {
            let faults = names::is_qualified_name(strategy).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&at, strategy, fault)));
        } else if strategy != STRATEGY {
            errors.push(Error::not_supported(&at, strategy, &[STRATEGY]));
        }
    }
    let has = |name: &str| text(name).is_some_and(|text| !text.is_empty());
    if has("preferredHolder") && !has("strategy") {
        let why = "may only be specified if `strategy` is defined";
        errors.push(Error::forbidden(&path.child("preferredHolder"), why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::minor::Minor;
    use crate::value::{json, yaml};

    #[test]
    fn coordinated_leader_election_stays_where_it_is_in_use() {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
        let mut lease = read("spec: {strategy: x, preferredHolder: y, holderIdentity: z}");
        features::drop_fields(&FEATURES, Minor::NEWEST, &mut lease, Some(&read("spec: {strategy: w}")));
        assert_eq!(json::encode_to_string(&lease), r#"{"spec":{"holderIdentity":"z","strategy":"x"}}"#);
    }
}
