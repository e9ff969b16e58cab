//! The revisions of a template: ControllerRevisions, of which the newest is the current template.
//!
//! Their content is a patch that restores the template, as `kubectl rollout undo` applies it.
//!
//! Source: `pkg/controller/history` of Kubernetes 1.37.

use super::client::{Client, Kind, int_at, key_of, place, read};
use super::decoded;
use super::family::reference;
use super::metadata::references;
use super::template_hash::template_hash;
use crate::meta::Status;
use crate::object;
use crate::store::Stored;
use crate::value::Value;

pub(super) const REVISIONS: Kind = Kind("apps", "controllerrevisions");
const HASH: &str = "controller.kubernetes.io/hash";
/// The label of pods with their revision.
pub(super) const POD_HASH: &str = "controller-revision-hash";

/// The revisions of an owner, of which the last is that of its current template. Only that one and the one that its
/// status names come with their data.
pub(super) async fn revisions(client: &Client, owner_type: (&str, &str), owner: &Value) -> Result<Vec<Value>, Status> {
    let data = patch_of(owner);
    let mut known = known(client, owner, &data).await?;
    known.sort_by_key(|known| number(&known.revision));
    let newest = known.last().map_or(0, |known| number(&known.revision));
    // A user may have written the highest possible number.
    let next = newest.saturating_add(1);
    let at = known.iter().position(|known| known.is_current);
    let present = at.map(|at| known.remove(at).revision);
    let mut known: Vec<Value> = known.into_iter().map(|known| known.revision).collect();
    match present {
        Some(mut present) => {
            let is_newest = number(&present) == newest;
            present.make_object().insert("data", data);
            if !is_newest {
                present.make_object().insert("revision", Value::Int(next));
                present = client.update(REVISIONS, &present).await?;
            }
            known.push(present);
        }
        None => {
            let made = new(owner_type, owner, data, next);
            known.push(client.create(REVISIONS, &made).await?);
        }
    }
    Ok(known)
}

/// A revision that exists, without its data unless the status of its owner names it.
struct KnownRevision {
    revision: Value,
    /// Whether its data is that of the current template.
    is_current: bool,
}

/// The revisions of an owner that exist: their names begin with its own. `data` is that of the current template. They
/// are decoded one by one, and those of others are not.
async fn known(client: &Client, owner: &Value, data: &Value) -> Result<Vec<KnownRevision>, Status> {
    let (namespace, uid) = (owner.str_at(&["metadata", "namespace"]), owner.str_at(&["metadata", "uid"]));
    let begin = format!("{}-", key_of(owner));
    let is_its = |stored: &Stored| {
        stored.key.starts_with(&begin) && references(stored).iter().any(|owner| owner.str_at(&["uid"]) == uid)
    };
    let named = owner.str_at(&["status", "currentRevision"]);
    let mut known = Vec::new();
    for stored in client.stored(REVISIONS, namespace, is_its).await? {
        decoded::begin(&stored.bytes).await?;
        let mut revision = read(&stored)?;
        let is_current = revision.get("data") == Some(data);
        if revision.str_at(&["metadata", "name"]) != named {
            revision.make_object().remove("data");
        }
        known.push(KnownRevision { revision, is_current });
    }
    Ok(known)
}

fn number(revision: &Value) -> i64 {
    int_at(revision, &["revision"])
}

/// The patch that restores the template of `owner`.
fn patch_of(owner: &Value) -> Value {
    let mut template = owner.at(&["spec", "template"]).cloned().unwrap_or_default();
    template.make_object().insert("$patch", Value::from("replace"));
    object! { "spec" => object! { "template" => template } }
}

/// The template that a revision holds.
pub(super) fn template_of(revision: &Value) -> Value {
    let mut template = revision.at(&["data", "spec", "template"]).cloned().unwrap_or_default();
    template.make_object().remove("$patch");
    template
}

/// The short name of a revision: the last part of its name.
pub(super) fn hash_of(revision: &Value) -> &str {
    revision.str_at(&["metadata", "name"]).rsplit('-').next().unwrap_or_default()
}

fn new(owner_type: (&str, &str), owner: &Value, data: Value, number: i64) -> Value {
    let (namespace, name) = place(owner);
    let collisions = owner.at(&["status", "collisionCount"]).and_then(Value::as_i64).filter(|count| *count > 0);
    let hash = template_hash(&data, collisions);
    let labels = owner.at(&["spec", "template", "metadata", "labels"]).cloned();
    let mut labels = labels.filter(|labels| !labels.is_null()).unwrap_or_else(|| object! {});
    // The revisions of a DaemonSet have the same label as its pods.
    let label = if owner_type.1 == "DaemonSet" { POD_HASH } else { HASH };
    labels.make_object().insert(label, Value::from(hash.as_str()));
    let mut revision = object! {
        "apiVersion" => "apps/v1",
        "kind" => "ControllerRevision",
        "metadata" => object! {
            "name" => format!("{name}-{hash}"),
            "namespace" => namespace,
            "labels" => labels,
            "ownerReferences" => vec![reference(owner_type, owner)],
        },
        "data" => data,
        "revision" => number,
    };
    let annotations = owner.at(&["metadata", "annotations"]).filter(|annotations| !annotations.is_null());
    if let Some(annotations) = annotations {
        revision.make_object().entry("metadata").make_object().insert("annotations", annotations.clone());
    }
    revision
}

/// Deletes the oldest revisions beyond a limit that no pod uses. `live` are the short or whole names that are in use.
pub(super) async fn clean_up(client: &Client, revisions: &[Value], limit: i64, live: &[&str]) -> Result<(), Status> {
    let is_live =
        |revision: &&Value| live.contains(&hash_of(revision)) || live.contains(&revision.str_at(&["metadata", "name"]));
    // The last one is current.
    let old = &revisions[..revisions.len().saturating_sub(1)];
    let unused: Vec<&Value> = old.iter().filter(|revision| !is_live(revision)).collect();
    let surplus = unused.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
    for revision in &unused[..surplus] {
        client.delete(REVISIONS, revision, None).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::controllers::recorder::Recorder;
    use crate::registry::fixture;
    use crate::value::yaml;
    use crate::work;

    #[tokio::test]
    async fn the_revisions_of_others_are_not_decoded() {
        let registry = fixture::registry().await;
        let client = Client::new(&registry, &Recorder::start(&registry), "statefulset-controller");
        let read = |text: String| yaml::decode(text.as_bytes()).expect("YAML");
        let set = |name: &str| {
            read(format!(
                "metadata: {{name: {name}, namespace: default, uid: {name}}}\nspec: {{template: {{spec: {{x: {name}}}}}}}"
            ))
        };
        let numbers = vec![Value::Int(1); 10_000];
        for name in ["set", "reset", "set-2", "set-3"] {
            let owner = set(name);
            let data = object! { "data" => if name == "set" { Vec::new() } else { numbers.clone() } };
            let revision = new(("apps/v1", "StatefulSet"), &owner, data, 1);
            client.create(REVISIONS, &revision).await.expect("it is valid");
        }
        let owner = set("set");
        let look = || {
            known(&client, &owner, &Value::Null)
                .now_or_never()
                .expect("nothing is waited for")
                .expect("it is JSON")
                .len()
        };
        let (found, steps) = work::counted(look);
        assert!(found == 1 && steps < 10_000, "{found} revisions, {steps} steps");
    }

    #[test]
    fn a_revision_brings_its_template_back() {
        let text =
            "metadata: {name: s, namespace: d, uid: u}\nspec: {template: {metadata: {labels: {a: b}}, spec: {x: 1}}}";
        let owner = yaml::decode(text.as_bytes()).expect("YAML");
        let revision = new(("apps/v1", "StatefulSet"), &owner, patch_of(&owner), 1);
        assert_eq!(revision.str_at(&["data", "spec", "template", "$patch"]), "replace");
        assert_eq!(Some(&template_of(&revision)), owner.at(&["spec", "template"]));
        let name = format!("s-{}", hash_of(&revision));
        assert_eq!(revision.str_at(&["metadata", "name"]), name);
        assert_eq!(revision.str_at(&["metadata", "labels", "a"]), "b");
    }

    #[test]
    fn a_revision_is_marked_as_its_owner_marks_them_and_has_its_annotations() {
        let text = "metadata: {name: s-1, namespace: d, uid: u, annotations: {x: z}}\nspec: {template: {spec: {x: 1}}}";
        let owner = yaml::decode(text.as_bytes()).expect("YAML");
        for (kind, label) in [("StatefulSet", HASH), ("DaemonSet", POD_HASH)] {
            let revision = new(("apps/v1", kind), &owner, patch_of(&owner), 1);
            assert_eq!(revision.str_at(&["metadata", "labels", label]), hash_of(&revision));
            assert_eq!(revision.at(&["metadata", "labels"]).and_then(Value::as_object).map(|it| it.len()), Some(1));
            assert_eq!(revision.str_at(&["metadata", "annotations", "x"]), "z");
        }
    }
}
