//! The built-in kinds.
//!
//! A kind is one file in `served/GROUP`, which `build.rs` finds: a table `KINDS` of [`Kind`]s, each with its names and its
//! [`Strategy`] (defaults, validation, columns). Its type, from which JSON, protobuf, patches, apply and OpenAPI follow, is
//! data: [`crate::types`]. Nothing else names a kind. What the files share stands beside them.
//!
//! Like the layers above it, this one is pure. The registry makes a resource of a kind when it is first asked for.
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
//!   never compiled, and deleting one deletes nothing but itself. Else who may write definitions could take
//!   admission, roles or leases away from everybody. (The corpus was recorded from a server of definitions alone,
//!   which serves them; `tests/spec/KNOWN-CORPUS` names those answers.)
//! - `cargo fmt` does not see files that a build script finds; `tests/run` formats the folder by name.

pub mod strategy;
mod metadata;
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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use crate::crd::{Names, Scale, Scope, SelectorForm, ServedVersion};
use crate::meta::api_version::group_version;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::policy;
use crate::protobuf;
use crate::types;
use crate::types::Message;
use crate::value::Value;
use strategy::Strategy;

pub use crate::types::show_internal;
pub use decode::decode;
pub use devices::{AdminAccess, admin_access, check_admin_access};
pub use foreign::{Foreign, foreign};
pub use rbac::GROUP as RBAC_GROUP;

/// What is known of a built-in kind.
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    /// The version: `v1`.
    pub version: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// The name of one, for kubectl.
    pub singular: &'static str,
    /// The name in objects.
    pub kind: &'static str,
    /// Names that kubectl takes as well.
    pub short_names: &'static [&'static str],
    /// Groups that kubectl takes it by: `all`.
    pub categories: &'static [&'static str],
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// Whether `/status` is a subresource.
    pub status: bool,
    /// Its other subresources.
    pub parts: &'static [Part],
    /// JSON paths, each with its leading dot.
    pub selectable_fields: &'static [&'static str],
    /// How it is served.
    pub form: Form,
    /// What can be done, sorted.
    pub verbs: &'static [&'static str],
    /// Of a question: who answers it. Questions are not stored.
    pub review: Option<Review>,
    /// What data can't say of it.
    pub strategy: &'static dyn Strategy,
    /// Some of its objects are made each time somebody asks: of what.
    pub computed: Option<Computed>,
    /// Some of its objects are made by the server where they are missing.
    pub initial: Option<Initial>,
    /// A small valid object, in YAML: what the kind is for, and what the tests create.
    pub example: &'static str,
    /// Every form of the same objects, in other versions or groups: they are stored in the first. Empty for a kind that has
    /// one.
    pub forms: &'static [&'static Kind],
    /// Whether it is served unless somebody asks for something else: beta and alpha versions are not.
    pub is_default: bool,
    /// Whether the newest minor does not have it any more.
    pub is_former: bool,
    /// The feature gate without which it is not served by default.
    pub gate: Option<Gate>,
    /// What everybody is warned of who uses it, where its type does not tell.
    pub deprecation: Option<&'static str>,
}

/// Where the schema of a kind comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From its message.
    Typed,
    /// Of CustomResourceDefinition: recursive, so not structural. [`crate::crd::definition`] is the schema.
    Definition,
}

/// A subresource of a kind, beside `/status`.
pub struct Part {
    /// As in paths.
    pub name: &'static str,
    /// What can be done, sorted.
    pub verbs: &'static [&'static str],
    /// What is sent and answered, where it is not the object itself.
    pub kind: Option<&'static Kind>,
    /// What is done by it.
    pub action: Action,
    /// The minor that brought it.
    pub since: Minor,
    /// The feature gate without which it is not there.
    pub gate: Option<Gate>,
}

impl Part {
    /// One that all minors have.
    const fn new(
        name: &'static str,
        verbs: &'static [&'static str],
        kind: Option<&'static Kind>,
        action: Action,
    ) -> Self {
        Part { name, verbs, kind, action, since: Minor::OLDEST, gate: None }
    }

    /// Whether a server that speaks for that version of Kubernetes has it.
    pub fn is_in(&self, minor: Minor) -> bool {
        self.since <= minor && self.gate.is_none_or(|gate| minor.opens(gate))
    }

    /// `/scale` of a kind that has `.spec.replicas`, `.status.replicas` and `.spec.selector`.
    const fn scale(selector: SelectorForm) -> Self {
        Part::new("scale", &["get", "patch", "update"], Some(&SCALE), Action::Scale(selector))
    }
}

/// What a request to a subresource does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It reads and writes the object, and the kind's strategy knows the part.
    Write,
    /// It issues a token for the object.
    IssueToken,
    /// It gives the object, a pod, its node.
    Bind,
    /// It deletes the object, a pod, if its budgets allow it.
    Evict,
    /// It reads what a container wrote.
    Log,
    /// It speaks with a container.
    Connect,
    /// It passes a request on to the object.
    Proxy,
    /// It reads and writes the number of replicas, beside which stands a selector.
    Scale(SelectorForm),
    /// It is sent on to one of the endpoints of the service.
    ConnectService,
    /// It is sent on to the node, or to its kubelet.
    ConnectNode,
}

/// What objects are made of that are not stored.
#[derive(Clone, Copy, Debug)]
pub enum Computed {
    /// Of the groups and versions that are served, one each. A change of such an object makes a stored one of it.
    Services(ServiceObject),
    /// Of what belongs to a cluster beside this server.
    Components(fn() -> Vec<Value>),
}

/// Makes the object for a group and its version. Further: whether they are built in, and since when (RFC 3339) they are served.
pub type ServiceObject = fn(&str, &str, bool, &str) -> Value;

/// When a server makes objects that are missing. They come in the order in which they are made.
#[derive(Clone, Copy, Debug)]
pub enum Initial {
    /// Before it is ready.
    AtStart(fn() -> Vec<Value>),
    /// Once it is ready, or is asked for their group: nobody but their readers looks at them.
    Deferred(fn() -> Vec<Value>),
}

/// What is asked by creating an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// Whose token is this?
    Token,
    /// Who am I?
    SelfSubject,
    /// May somebody do something?
    SubjectAccess,
    /// As [`Review::SubjectAccess`], within a namespace.
    LocalSubjectAccess,
    /// May I do something?
    SelfSubjectAccess,
    /// What may I do?
    SelfSubjectRules,
    /// No question, but a pod that is to get its node.
    Binding,
}

/// Everything that can be done with an object.
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Of objects that are not deleted together.
const SINGLE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// Of what passes requests on.
const CONNECTING_VERBS: &[&str] = &["create", "delete", "get", "patch", "update"];
/// Of questions.
const CREATING_VERBS: &[&str] = &["create"];

impl Kind {
    /// What most kinds have in common: in namespaces, and nothing that has to be said.
    const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        strategy: &'static dyn Strategy,
    ) -> Self {
        Kind {
            group,
            version,
            plural: "",
            singular: "",
            kind,
            short_names: &[],
            categories: &[],
            scope: Scope::Namespaced,
            status: false,
            parts: &[],
            selectable_fields: &[],
            form: Form::Typed,
            verbs: VERBS,
            review: None,
            strategy,
            computed: None,
            initial: None,
            example: "",
            forms: &[],
            is_default: true,
            is_former: false,
            gate: None,
            deprecation: None,
        }
    }

    /// A question, which is created and not stored.
    const fn question(group: &'static str, review: Review, kind: &'static str) -> Self {
        Kind {
            scope: Scope::Cluster,
            verbs: CREATING_VERBS,
            review: Some(review),
            ..Kind::new(group, "v1", kind, &strategy::Unchecked)
        }
    }

    /// A version of the kind that older minors have, where it is asked for.
    const fn former(self, version: &'static str) -> Self {
        Kind { version, is_default: false, is_former: true, ..self }
    }

    /// Whether it is asked and answered, and nothing else comes of it.
    pub fn is_question(&self) -> bool {
        self.review.is_some_and(|review| review != Review::Binding)
    }

    /// Whether that version of Kubernetes has it.
    pub fn is_in(&self, minor: Minor) -> bool {
        if minor == Minor::NEWEST {
            return !self.is_former;
        }
        let named = types::of_kind(self.group, self.version, self.kind);
        named.is_none_or(|named| named.is_in(u32::from(minor.number())))
    }

    /// What everybody is warned of who uses it.
    fn deprecation(&self, minor: Minor) -> Option<String> {
        let now = u32::from(minor.number());
        let of_type = || types::of_kind(self.group, self.version, self.kind)?.deprecation(now);
        self.deprecation.map(str::to_owned).or_else(of_type)
    }

    /// Its type.
    pub fn message(&self) -> &'static Message {
        types::message_of_kind(self.group, self.version, self.kind)
    }

    /// The type of a list of its objects; a kind that nobody lists has none.
    pub fn list(&self) -> Option<&'static Message> {
        let named = types::of_kind(self.group, self.version, &format!("{}List", self.kind));
        named.filter(|_| self.can("list")).map(types::Named::message)
    }

    /// Whether `verb` can be done with objects of the kind.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// Its subresource `name`, beside `/status`.
    pub fn part(&self, name: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Its subresources, beside `/status`, in that version of Kubernetes.
    pub fn parts_in(&self, minor: Minor) -> impl Iterator<Item = &'static Part> + use<> {
        self.parts.iter().filter(move |part| part.is_in(minor))
    }

    /// What `/scale` reads and writes.
    fn scale(&self) -> Option<Scale> {
        let form = |part: &Part| match part.action {
            Action::Scale(form) => Some(form),
            _ => None,
        };
        self.parts.iter().find_map(form).map(|selector_form| Scale {
            spec_replicas_path: ".spec.replicas".to_owned(),
            status_replicas_path: ".status.replicas".to_owned(),
            label_selector_path: Some(".spec.selector".to_owned()),
            selector_form,
        })
    }

    /// Whether `version` is this kind in this version.
    pub fn is_form(&self, version: &ServedVersion) -> bool {
        (self.group, self.version, self.plural) == (&version.group, &version.version, &version.names.plural)
    }

    /// `v1`, `events.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The kind in all of its forms, itself first.
    pub fn forms(&'static self) -> impl Iterator<Item = &'static Kind> {
        std::iter::once(self).chain(self.forms.iter().copied().filter(move |form| !std::ptr::eq(*form, self)))
    }

    /// Whether objects are stored in this form.
    pub fn is_stored(&self) -> bool {
        self.forms.first().is_none_or(|first| std::ptr::eq(*first, self))
    }

    /// The kind in the form that custom kinds have.
    pub fn served_version(&self) -> ServedVersion {
        self.served_version_in(Minor::NEWEST)
    }

    /// The same, for a server of that version of Kubernetes.
    pub fn served_version_in(&self, minor: Minor) -> ServedVersion {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ServedVersion {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            names: Arc::new(Names {
                plural: self.plural.to_owned(),
                singular: self.singular.to_owned(),
                kind: self.kind.to_owned(),
                list_kind: format!("{}List", self.kind),
                short_names: texts(self.short_names),
                categories: texts(self.categories),
            }),
            scope: self.scope,
            schema_generation: 0,
            served: true,
            storage: self.is_stored() && self.review.is_none(),
            structural: Arc::default(),
            rules: Default::default(),
            preserve_unknown_fields: self.form == Form::Definition,
            status: self.status,
            scale: self.scale(),
            columns: Vec::new(),
            selectable_fields: texts(self.selectable_fields),
            deprecation_warning: self.deprecation(minor),
            minor,
        }
    }
}

/// What `/scale` of a custom resource reads and writes. It has no path of its own, and the resource behind it is validated in
/// its place.
pub static SCALE: Kind =
    Kind { plural: "scales", singular: "scale", ..Kind::new("autoscaling", "v1", "Scale", &strategy::Unchecked) };

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

/// Whether no policy is asked about a resource: those of policies, and questions.
pub fn is_exempt_from_policies(version: &ServedVersion) -> bool {
    policy::is_exempt(version) || find(&version.group, &version.names.plural).is_some_and(Kind::is_question)
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

/// Annotations of a kind's objects that stand for fields of Go's internal type: metadata on its own does not have them.
pub fn internal_annotations(api_version: &str, kind: &str) -> &'static [&'static str] {
    of_object(api_version, kind).map_or(&[], |kind| kind.strategy.internal_annotations())
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

/// The objects that a server makes at its start where they are missing, each with its group and plural.
pub fn initial_objects() -> Vec<(&'static str, &'static str, Value)> {
    made_by_server(|kind| match kind.initial {
        Some(Initial::AtStart(objects)) => Some(objects),
        _ => None,
    })
}

/// Those that nobody but their readers looks at, so that a server makes them once it is ready, or is asked for their group.
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

/// Brings an object into the form that the store of Kubernetes gives back; one of a custom kind stays as it is.
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

#[cfg(test)]
mod tests;
