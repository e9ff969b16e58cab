//! The built-in kinds.
//!
//! A kind is one file in `served/GROUP`, which `build.rs` finds: a table `KINDS` of [`Kind`]s, each with its names and
//! its [`Strategy`](strategy::Strategy) (defaults, validation, columns). Its type, from which JSON, protobuf, patches,
//! apply and OpenAPI follow, is data: [`crate::types`]. Nothing else names a kind. Code that the files share is beside
//! them.
//!
//! Like the layers above it, this one is pure. The registry makes a resource from a kind on first use.
//!
//! # What a kind says
//!
//! - **A subresource** is a `Part`: its name, its verbs, the kind that is sent where it is not the object's, and an
//!   `Action`. `Action::Write` reads and writes the object, and the strategy knows the part (`approval`, `resize`);
//!   the others (`Bind`, `Evict`, `Scale`, `Connect` and so on) are a function of the registry each.
//! - **Forms of one kind** (versions, or the two Events) name each other in `forms`. The first is stored;
//!   `Strategy::convert` makes the others of it.
//! - **Which versions are served** is decided by `kinds::runtime_config` from `is_default` and `--runtime-config`.
//! - **Strategies work on the decoded form**: a JSON tree as Go would write it, with nothing where Go has a zero
//!   value that it omits. They read it by `FieldRef`, a value with its path, so that an error knows where it is, and
//!   set defaults by the few words of `kinds::defaults`. Rust structs for the Go types would be a second copy of
//!   every object. Where Go's internal type differs from the version's, `internalize` does what the round trip does.
//! - **Errors come in the order of the reference**, all of them. Every loop over a client's list counts its steps,
//!   and duplicates are found by sets.
//! - Definitions with the name of a built-in kind are stored and stay without effect, as in kube-apiserver: they are
//!   never compiled, and deleting one deletes nothing but itself. Else anyone who may write definitions could take
//!   admission, roles or leases away from everybody. (The corpus was recorded from a server of definitions alone,
//!   which serves them; `tests/spec/KNOWN-CORPUS` names those answers.)
//! - `cargo fmt` does not see files that a build script finds; `tests/run` formats the folder by name.

mod kind;
pub mod strategy;
mod metadata;
mod older;
pub(crate) mod checks;
pub(crate) mod conditions;
pub(crate) mod defaults;
mod features;
mod declared;
pub mod prepare;
pub mod certificates;
pub mod flow_control;
pub(crate) mod devices;
mod static_names;
pub(crate) mod policies;
mod data;
mod decode;
mod foreign;
mod rbac;
pub(crate) mod diff;
pub mod semantic;
pub mod resources;
pub(crate) mod node_selector;
mod annotated;
mod nodes;
pub(crate) mod pod;
pub mod workloads;
mod jobs;
mod autoscaling;
mod workload_templates;
pub mod limits;
pub mod quota;
pub(crate) mod signers;
pub mod storage;
pub mod pod_object;
pub(crate) mod webhooks;
pub(crate) mod network;
pub mod services;
pub mod namespaces;
pub mod default_roles;
mod token_request;
pub mod api_groups;
pub mod ingress_classes;
pub mod layout;
pub mod runtime_config;
/// A file each.
mod served {
    include!(concat!(env!("OUT_DIR"), "/served.rs"));
}

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::crd::ServedVersion;
use crate::meta::api_version::group_version;
use crate::policy;
use crate::protobuf::{self, ItemTexts};
use crate::types;
use crate::types::Message;
use crate::value::Value;
use crate::value::json::{self, Tape, TextTree};
use kind::{CONNECTING_VERBS, SINGLE_VERBS};

pub use crate::types::show_internal;
pub use decode::decode;
pub use devices::{AdminAccess, admin_access, check_admin_access};
pub use devices::{allocated_node, changed_drivers, changes_binding};
pub use foreign::{Foreign, foreign};
pub use kind::{Action, Computed, Form, Initial, Kind, Part, Review, SCALE, ServiceObject};
pub use older::forget_newer;
pub use rbac::GROUP as RBAC_GROUP;

/// Whether the kinds that are made up for tests are among the others; they are in no other program.
#[doc(hidden)]
pub static SHOWS_MADE_UP: AtomicBool = AtomicBool::new(cfg!(test));

/// Every built-in kind of the newest minor.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    of_all_minors().filter(|kind| !kind.is_former)
}

/// Every built-in kind, with the versions that only older minors have.
pub fn of_all_minors() -> impl Iterator<Item = &'static Kind> {
    let made_up = if SHOWS_MADE_UP.load(Ordering::Relaxed) { &served::MADE_UP[..] } else { &[] };
    served::KINDS.iter().chain(made_up).flat_map(|kinds| kinds.iter()).copied()
}

/// The built-in kind that is served as `plural` in `group`.
pub fn find(group: &str, plural: &str) -> Option<&'static Kind> {
    /// Each with whether it is made up.
    static BY_PLURAL: LazyLock<HashMap<&str, Vec<(&'static Kind, bool)>>> = LazyLock::new(|| {
        let mut kinds: HashMap<&str, Vec<_>> = HashMap::new();
        for (part, is_made_up) in [(&served::KINDS[..], false), (&served::MADE_UP[..], true)] {
            for kind in part.iter().flat_map(|kinds| kinds.iter()) {
                kinds.entry(kind.plural).or_default().push((*kind, is_made_up));
            }
        }
        kinds
    });
    let found = BY_PLURAL.get(plural)?.iter().find(|(kind, _)| kind.group == group);
    found.filter(|(_, is_made_up)| !is_made_up || SHOWS_MADE_UP.load(Ordering::Relaxed)).map(|(kind, _)| *kind)
}

/// Whether no policy applies to a resource: the resources of policies, and questions.
pub fn is_exempt_from_policies(version: &ServedVersion) -> bool {
    policy::is_exempt(version) || find(&version.group, &version.names.plural).is_some_and(Kind::is_question)
}

/// Takes the type out of a parameter of a mutating policy, if the reference has it from an informer that knows its kind:
/// those leave it out. Definitions and APIServices are read as custom resources are.
pub fn forget_type_of_parameter(version: &ServedVersion, parameter: &mut Value) {
    const UNKNOWN_TO_INFORMERS: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];
    let is_known = find(&version.group, &version.names.plural).is_some();
    if let Some(fields) = parameter.as_object_mut().filter(|_| is_known)
        && !UNKNOWN_TO_INFORMERS.contains(&version.group.as_str())
    {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
}

/// Whether a built-in kind has the name of a definition, `PLURAL.GROUP`: such a definition is stored and has no effect.
pub fn has_name(definition: &str) -> bool {
    definition.split_once('.').is_some_and(|(plural, group)| find(group, plural).is_some())
}

/// The type of a built-in kind, if its message is its schema.
pub fn type_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let found = message_of(api_version, kind).filter(|message| message.is_object);
    found.filter(|_| (api_version, kind) != ("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
}

/// Annotations of a kind's objects that are fields of Go's internal type, which separate metadata does not contain.
pub fn internal_annotations(api_version: &str, kind: &str) -> &'static [&'static str] {
    /// The few kinds that have any: it is asked for each row of a table.
    static KINDS: LazyLock<Vec<&'static Kind>> = LazyLock::new(|| {
        let has_any = |kind: &&Kind| !kind.is_former && !kind.strategy.internal_annotations().is_empty();
        served::KINDS.iter().chain(&served::MADE_UP).flat_map(|kinds| kinds.iter()).copied().filter(has_any).collect()
    });
    let (group, version) = group_version(api_version);
    let found = KINDS.iter().find(|known| (known.kind, known.version, known.group) == (kind, version, group));
    found.map_or(&[], |kind| kind.strategy.internal_annotations())
}

/// The kind of an object that names it so.
fn of_object(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = group_version(api_version);
    all().find(|known| (known.kind, known.version, known.group) == (kind, version, group))
}

/// The message of anything that goes out in protobuf: a kind, its list, a Status; `None` for what has none, as all custom
/// kinds.
pub fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    if matches!((api_version, kind), ("v1", "Table")) {
        return None;
    }
    types::of_api_version(api_version, kind).map(types::Named::message)
}

/// The type of the options of a deletion.
pub fn delete_options() -> &'static Message {
    types::message_named("meta.v1", "DeleteOptions")
}

/// The objects that a server creates at its start if they are missing, each with its group and plural.
pub fn initial_objects() -> Vec<(&'static str, &'static str, Value)> {
    made_by_server(|kind| match kind.initial {
        Some(Initial::AtStart(objects)) => Some(objects),
        _ => None,
    })
}

/// Initial objects that only their readers use, so that a server creates them once it is ready, or when their group is
/// requested.
pub fn deferred_objects() -> Vec<(&'static str, &'static str, Value)> {
    made_by_server(|kind| match kind.initial {
        Some(Initial::Deferred(objects)) => Some(objects),
        _ => None,
    })
}

/// Each object with the group and the plural of its kind.
fn made_by_server(
    objects_of: impl Fn(&Kind) -> Option<fn() -> Vec<Value>>,
) -> Vec<(&'static str, &'static str, Value)> {
    let objects = all().filter_map(objects_of).flat_map(|objects| objects());
    let named = objects.filter_map(|object| {
        let kind = of_object(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
        Some((kind.group, kind.plural, object))
    });
    named.collect()
}

/// Whether objects of the group are among [`deferred_objects`].
pub fn is_deferred(group: &str) -> bool {
    static GROUPS: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let deferred = all().filter(|kind| matches!(kind.initial, Some(Initial::Deferred(_))));
        deferred.map(|kind| kind.group).collect()
    });
    GROUPS.contains(&group)
}

/// Brings an object into the form that the store of Kubernetes returns; objects of custom kinds are unchanged.
pub fn settle_stored(object: &mut Value) {
    let message = type_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    if let Some(message) = message {
        message.settle(object);
    }
}

/// The body that an object goes out in as protobuf; `None` for a kind that has no message.
pub fn seal(object: &Value) -> Option<Vec<u8>> {
    let message = message_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
    Some(protobuf::seal(message, object))
}

/// As [`seal`], for an object that is the text of its JSON. Text that was encoded here is not decoded.
pub fn seal_text(object: &[u8]) -> Option<Vec<u8>> {
    let mut tape = Tape::default();
    let Some(tree) = tape.read(object) else { return seal(&json::decode(object).unwrap_or_default()) };
    let text = |name: &str| tree.field(TextTree::ROOT, name).and_then(|field| tree.as_str(field)).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    Some(protobuf::seal_text(message_of(&api_version, &kind)?, (&api_version, &kind), tree))
}

/// The body in which the metadata of an object go out alone; `api_version` is that of the metadata. `None` if the text
/// must be decoded for it.
pub fn seal_metadata(object: &[u8], api_version: &str) -> Option<Vec<u8>> {
    const KIND: &str = "PartialObjectMetadata";
    let message = message_of(api_version, KIND)?;
    let mut tape = Tape::default();
    Some(protobuf::seal_text(message, (api_version, KIND), tape.read(object)?))
}

/// The body that a list goes out in as protobuf, with items that are texts; `None` for a kind that has no message. The
/// other fields are those of `list`.
pub fn seal_list(list: &Value, items: ItemTexts<impl FnMut(usize, &mut Vec<u8>)>) -> Option<Vec<u8>> {
    let message = message_of(list.str_at(&["apiVersion"]), list.str_at(&["kind"]))?;
    protobuf::seal_list(message, list, items)
}

#[cfg(test)]
mod tests;
