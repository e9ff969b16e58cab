//! The description of a built-in kind: its names, its subresources, its verbs.

use std::sync::Arc;

use super::strategy::{self, Strategy};
use crate::crd::{Names, Scale, Scope, SelectorForm, ServedVersion};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::types;
use crate::types::Message;
use crate::value::Value;

/// The description of a built-in kind.
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
    /// Names that kubectl accepts as well.
    pub short_names: &'static [&'static str],
    /// Groups of resources that kubectl accepts: `all`.
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
    /// The verbs, sorted.
    pub verbs: &'static [&'static str],
    /// The question of a review, if the kind is one. Reviews are not stored.
    pub review: Option<Review>,
    /// The logic of the kind that data can't express.
    pub strategy: &'static dyn Strategy,
    /// The source of objects that are computed at each request.
    pub computed: Option<Computed>,
    /// Objects that the server creates if they are missing.
    pub initial: Option<Initial>,
    /// A small valid object, in YAML: what the kind is for, and what the tests create.
    pub example: &'static str,
    /// Every form of the same objects, in other versions or groups: they are stored in the first. Empty for a kind that has
    /// one.
    pub forms: &'static [&'static Kind],
    /// Whether it is served by default: beta and alpha versions are not.
    pub is_default: bool,
    /// Whether the newest minor does not have it any more.
    pub is_former: bool,
    /// The feature gate without which it is not served, even if it is asked for.
    pub gate: Option<Gate>,
    /// The warning for every use of it, if its type has none.
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

/// A subresource of a kind, besides `/status`.
pub struct Part {
    /// As in paths.
    pub name: &'static str,
    /// The verbs, sorted.
    pub verbs: &'static [&'static str],
    /// The kind of its requests and answers, if it is not that of the object itself.
    pub kind: Option<&'static Kind>,
    /// The action of a request.
    pub action: Action,
    /// The minor that added it.
    pub since: Minor,
    /// The feature gate without which it is not there.
    pub gate: Option<Gate>,
}

impl Part {
    /// One that all minors have.
    pub(super) const fn new(
        name: &'static str,
        verbs: &'static [&'static str],
        kind: Option<&'static Kind>,
        action: Action,
    ) -> Self {
        Part { name, verbs, kind, action, since: Minor::OLDEST, gate: None }
    }

    /// Whether a server that emulates that version of Kubernetes has it.
    pub fn is_in(&self, minor: Minor) -> bool {
        self.since <= minor && self.gate.is_none_or(|gate| minor.opens(gate))
    }

    /// `/scale` of a kind that has `.spec.replicas`, `.status.replicas` and `.spec.selector`.
    pub(super) const fn scale(selector: SelectorForm) -> Self {
        Part::new("scale", &["get", "patch", "update"], Some(&SCALE), Action::Scale(selector))
    }
}

/// The action of a request to a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It reads and writes the object, and the kind's strategy knows the part.
    Write,
    /// It issues a token for the object.
    IssueToken,
    /// Binds the object, a pod, to a node.
    Bind,
    /// It deletes the object, a pod, if its budgets allow it.
    Evict,
    /// It reads what a container wrote.
    Log,
    /// It speaks with a container.
    Connect,
    /// It passes a request on to the object.
    Proxy,
    /// Reads and writes the number of replicas, with a selector.
    Scale(SelectorForm),
    /// It is sent on to one of the endpoints of the service.
    ConnectService,
    /// It is sent on to the node, or to its kubelet.
    ConnectNode,
}

/// The source of objects that are not stored.
#[derive(Clone, Copy, Debug)]
pub enum Computed {
    /// One object for each group and version that is served. A change of such an object makes it a stored one.
    Services(ServiceObject),
    /// The components of a cluster besides this server.
    Components(fn() -> Vec<Value>),
}

/// Makes the object for a group and its version. Further: whether they are built in, and since when (RFC 3339) they are served.
pub type ServiceObject = fn(&str, &str, bool, &str) -> Value;

/// When a server makes objects that are missing. They come in the order in which they are made.
#[derive(Clone, Copy, Debug)]
pub enum Initial {
    /// Before it is ready.
    AtStart(fn() -> Vec<Value>),
    /// Created once the server is ready, or when their group is requested: only their readers use them.
    Deferred(fn() -> Vec<Value>),
}

/// The question of a review.
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
    /// Not a question: a pod is to get its node.
    Binding,
}

/// Everything that can be done with an object.
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Of objects that are not deleted together.
pub(super) const SINGLE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// The verbs of subresources that pass requests on.
pub(super) const CONNECTING_VERBS: &[&str] = &["create", "delete", "get", "patch", "update"];

/// Of questions.
const CREATING_VERBS: &[&str] = &["create"];

impl Kind {
    /// A kind with the usual properties: namespaced, with nothing special.
    pub(super) const fn new(
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
    pub(super) const fn question(group: &'static str, review: Review, kind: &'static str) -> Self {
        Kind {
            scope: Scope::Cluster,
            verbs: CREATING_VERBS,
            review: Some(review),
            ..Kind::new(group, "v1", kind, &strategy::Unchecked)
        }
    }

    /// A version of the kind that older minors have, if requested.
    pub(super) const fn former(self, version: &'static str) -> Self {
        Kind { version, is_default: false, is_former: true, ..self }
    }

    /// Whether it is only a question with an answer, without other effects.
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

    /// The warning for every use of it.
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

    /// Its subresource `name`, other than `/status`.
    pub fn part(&self, name: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == name)
    }

    /// Its subresources in that version of Kubernetes, without `/status`.
    pub fn parts_in(&self, minor: Minor) -> impl Iterator<Item = &'static Part> + use<> {
        self.parts.iter().filter(move |part| part.is_in(minor))
    }

    /// The fields that `/scale` reads and writes.
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
            structural: Default::default(),
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

/// The kind that `/scale` of a custom resource reads and writes. It has no path of its own, and the scaled resource is
/// validated in its place.
pub static SCALE: Kind =
    Kind { plural: "scales", singular: "scale", ..Kind::new("autoscaling", "v1", "Scale", &strategy::Unchecked) };
