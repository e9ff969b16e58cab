//! The claims of a stateful set: their names and owners.
//!
//! Source: `pkg/controller/statefulset/stateful_set_utils.go`, release 1.37.

use super::names::{TYPE, pod_name};
use crate::controllers::client::controller_of;
use crate::controllers::family::reference;
use crate::value::Value;

const POD_TYPE: (&str, &str) = ("v1", "Pod");

pub(super) fn claim_name(set: &Value, template: &Value, ordinal: i64) -> String {
    format!("{}-{}", template.str_at(&["metadata", "name"]), pod_name(set, ordinal))
}

/// The possible names of the set that a claim of this name belongs to: `data-db-0` is of `db`, or of `data-db`.
pub(super) fn sets_of_claim(claim: &str) -> impl Iterator<Item = &str> {
    let prefix = claim.rsplit_once('-').map_or("", |(prefix, _)| prefix);
    prefix.match_indices('-').map(|(at, _)| &prefix[at + 1..])
}

/// The claim of a template, for the pod of a number.
pub(super) fn claim_of(set: &Value, template: &Value, ordinal: i64) -> Value {
    let mut claim = template.clone();
    let fields = claim.make_object();
    fields.remove("status");
    fields.insert("apiVersion", Value::from("v1"));
    fields.insert("kind", Value::from("PersistentVolumeClaim"));
    let metadata = fields.entry("metadata").make_object();
    metadata.insert("name", Value::String(claim_name(set, template, ordinal)));
    metadata.insert("namespace", Value::from(set.str_at(&["metadata", "namespace"])));
    let labels = metadata.entry("labels").make_object();
    let selected = set.at(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    selected.into_iter().flat_map(|it| it.iter()).for_each(|(name, value)| _ = labels.insert(name, value.clone()));
    claim
}

/// The owner that the claims of a pod must have, so that they are deleted with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimOwner {
    Nobody,
    Set,
    Pod,
}

fn deletes(set: &Value, when: &str) -> bool {
    set.str_at(&["spec", "persistentVolumeClaimRetentionPolicy", when]) == "Delete"
}

/// Whether the claims of pods are deleted when the set is scaled down.
pub(super) fn goes_with_pods(set: &Value) -> bool {
    deletes(set, "whenScaled")
}

/// The owner of the claims of a pod by the policy of its set; `has_place`: the set wants the pod.
pub(super) fn claim_owner(set: &Value, has_place: bool) -> ClaimOwner {
    match (has_place, goes_with_pods(set), deletes(set, "whenDeleted")) {
        (false, true, _) => ClaimOwner::Pod,
        (true, _, true) | (false, false, true) => ClaimOwner::Set,
        _ => ClaimOwner::Nobody,
    }
}

/// Whether a reference names an object by this `apiVersion` and `kind` and its name, whatever its uid.
fn names(reference: &Value, (api_version, kind): (&str, &str), object: &Value) -> bool {
    reference.str_at(&["apiVersion"]) == api_version
        && reference.str_at(&["kind"]) == kind
        && reference.str_at(&["name"]) == object.str_at(&["metadata", "name"])
}

fn is_to(reference: &Value, object: &Value) -> bool {
    reference.str_at(&["uid"]) == object.str_at(&["metadata", "uid"])
}

/// Whether a claim belongs to an earlier object of that name: only the garbage collector touches it.
fn is_stale(claim: &Value, of_type: (&str, &str), object: &Value) -> bool {
    let references = claim.items_at(&["metadata", "ownerReferences"]).iter();
    references.filter(|it| names(it, of_type, object)).any(|it| !is_to(it, object))
}

/// Whether a claim still belongs to an earlier pod of that name, so that the new one can't use it.
pub(super) fn is_of_earlier_pod(claim: &Value, pod: &Value) -> bool {
    is_stale(claim, POD_TYPE, pod)
}

/// Whether a claim whose policy is not to stay is managed by somebody else.
pub(super) fn is_managed_by_others(set: &Value, pod: &Value, claim: &Value) -> bool {
    (deletes(set, "whenDeleted") || goes_with_pods(set))
        && controller_of(claim).is_some_and(|it| !is_to(it, set) && !is_to(it, pod))
}

/// The owners that the claim of a pod must have; `None` if it has them, or must not be touched.
pub(super) fn owners_of_claim(set: &Value, pod: &Value, claim: &Value, claim_owner: ClaimOwner) -> Option<Vec<Value>> {
    if is_stale(claim, TYPE, set) || is_stale(claim, POD_TYPE, pod) {
        return None;
    }
    let present = claim.items_at(&["metadata", "ownerReferences"]);
    let others = present.iter().filter(|it| !names(it, TYPE, set) && !names(it, POD_TYPE, pod));
    let mut wanted: Vec<Value> = others.cloned().collect();
    if !is_managed_by_others(set, pod, claim) {
        match claim_owner {
            ClaimOwner::Nobody => {}
            ClaimOwner::Set => wanted.push(reference(TYPE, set)),
            ClaimOwner::Pod => wanted.push(reference(POD_TYPE, pod)),
        }
    }
    let is_there = |owner: &Value| present.iter().any(|it| is_same(it, owner));
    let is_as_wanted = wanted.len() == present.len() && wanted.iter().all(is_there);
    (!is_as_wanted).then_some(wanted)
}

/// Whether two references are to the same object, in the same role.
fn is_same(one: &Value, other: &Value) -> bool {
    let is_controller = |it: &Value| it.get("controller").and_then(Value::as_bool) == Some(true);
    one.str_at(&["uid"]) == other.str_at(&["uid"]) && is_controller(one) == is_controller(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn set(policy: &str) -> Value {
        read(&format!(
            "metadata: {{name: s, namespace: d, uid: u}}\n\
             spec: {{selector: {{matchLabels: {{a: b}}}}, volumeClaimTemplates: [{{metadata: {{name: data}}}}], \
             persistentVolumeClaimRetentionPolicy: {policy}}}"
        ))
    }

    #[test]
    fn a_claim_has_the_name_and_the_labels_of_its_set() {
        let set = set("{}");
        let claim = claim_of(&set, &set.items_at(&["spec", "volumeClaimTemplates"])[0], 3);
        assert_eq!(claim.str_at(&["metadata", "name"]), "data-s-3");
        assert_eq!(claim.str_at(&["metadata", "labels", "a"]), "b");
        assert_eq!(sets_of_claim("data-a-b-3").collect::<Vec<_>>(), ["a-b", "b"]);
        assert_eq!(sets_of_claim("data").count() + sets_of_claim("").count(), 0);
    }

    #[test]
    fn claims_go_as_their_policy_says() {
        let check = |policy: &str, expected: [ClaimOwner; 2]| {
            assert_eq!([true, false].map(|has_place| claim_owner(&set(policy), has_place)), expected, "{policy}");
        };
        check("{}", [ClaimOwner::Nobody; 2]);
        check("{whenDeleted: Delete, whenScaled: Retain}", [ClaimOwner::Set; 2]);
        check("{whenDeleted: Retain, whenScaled: Delete}", [ClaimOwner::Nobody, ClaimOwner::Pod]);
        check("{whenDeleted: Delete, whenScaled: Delete}", [ClaimOwner::Set, ClaimOwner::Pod]);
    }

    /// The owners that a claim gets, by their kinds; `None` where it stays.
    fn owners(references: &str, claim_owner: ClaimOwner) -> Option<Vec<String>> {
        let (set, pod) = (set("{whenDeleted: Delete}"), read("metadata: {name: s-0, uid: p}"));
        let claim = read(&format!("metadata: {{ownerReferences: [{references}]}}"));
        let owners = owners_of_claim(&set, &pod, &claim, claim_owner)?;
        Some(owners.iter().map(|owner| owner.str_at(&["kind"]).to_owned()).collect())
    }

    #[test]
    fn claims_belong_to_their_set_or_their_pod() {
        let ours = "{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: u, controller: true}";
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(owners("", ClaimOwner::Set), names(&["StatefulSet"]));
        assert_eq!(owners(ours, ClaimOwner::Set), None);
        assert_eq!(owners(ours, ClaimOwner::Nobody), names(&[]));
        assert_eq!(owners(ours, ClaimOwner::Pod), names(&["Pod"]));
        assert_eq!(owners(&ours.replace("true", "false"), ClaimOwner::Set), names(&["StatefulSet"]));
        // What belongs to an earlier one of that name is left to the garbage collector.
        assert_eq!(owners(&ours.replace("uid: u", "uid: v"), ClaimOwner::Nobody), None);
        // What somebody else manages gets nobody beside.
        let other = "{apiVersion: v1, kind: Other, name: o, uid: o, controller: true}";
        assert_eq!(owners(other, ClaimOwner::Set), None);
        assert_eq!(
            owners(&format!("{ours}, {other}").replacen("true", "false", 1), ClaimOwner::Set),
            names(&["Other"])
        );
    }

    #[test]
    fn a_claim_of_an_earlier_pod_is_not_for_the_next_one() {
        let check = |uid: &str, expected: bool| {
            let claim =
                read(&format!("metadata: {{ownerReferences: [{{apiVersion: v1, kind: Pod, name: s-0, uid: {uid}}}]}}"));
            assert_eq!(is_of_earlier_pod(&claim, &read("metadata: {name: s-0}")), expected);
        };
        check("earlier", true);
        check("''", false);
    }
}
