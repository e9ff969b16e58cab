//! The built-in kinds.
//!
//! A kind is one file in `served/`, which `build.rs` finds: a table `KINDS` of [`Kind`]s, each with its names, its
//! [`Message`] (the Go type, from which JSON, protobuf, patches, apply and OpenAPI follow) and its [`Strategy`] (defaults,
//! validation, columns). Nothing else names a kind. What the files share stands beside them, and in [`crate::types`].
//!
//! Like the layers above it, this one is pure. The registry makes a resource of a kind when it is first asked for.

pub mod strategy;
mod metadata;
pub mod checks;
pub mod defaults;
mod data;
mod rbac;
pub mod pod;
pub mod pod_object;
mod diff;
mod semantic;
pub mod webhooks;
pub mod match_conditions;
pub mod default_roles;
mod token_request;
mod access;
pub mod layout;
/// A file each.
mod served {
    include!(concat!(env!("OUT_DIR"), "/served.rs"));
}

use std::sync::Arc;

use crate::crd::{Names, Scope, ServedVersion};
use crate::protobuf;
use crate::schema::structural::Structural;
use crate::types::Message;
use crate::value::Value;
use crate::value::json::Layout;
use strategy::Strategy;

pub use rbac::GROUP as RBAC_GROUP;
pub use served::api_service::local as local_api_service;
pub use served::config_map::root_authority;
pub use served::namespace::{INITIAL as INITIAL_NAMESPACES, new as new_namespace};
pub use served::service_account::default as default_service_account;
pub use token_request::{TOKEN_REQUEST, issues_tokens};

/// What is known of a built-in kind.
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub scope: Scope,
    /// Whether `/status` is a subresource.
    pub status: bool,
    /// JSON paths, each with its leading dot.
    pub selectable_fields: &'static [&'static str],
    pub form: Form,
    /// Its type, and that of a list of its objects; a kind that nobody lists has none.
    pub message: &'static Message,
    pub list: Option<&'static Message>,
    /// What can be done, sorted.
    pub verbs: &'static [&'static str],
    /// Of a question: who answers it. Questions are not stored.
    pub review: Option<Review>,
    pub strategy: &'static dyn Strategy,
    /// Not stored, but made of what is served, each time somebody asks.
    pub is_computed: bool,
    /// A small valid object, in YAML: what the kind is for, and what the tests create.
    pub example: &'static str,
    /// The same objects in another group. They are stored in one form, that of the core group.
    pub also: Option<&'static Kind>,
}

/// Where the schema of a kind comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From its message.
    Typed,
    /// Of CustomResourceDefinition: recursive, so not structural. [`crate::crd::definition`] is the schema.
    Definition,
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
}

/// Everything that can be done with an object.
const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Of objects that are not deleted together.
const SINGLE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
/// Of objects that only the server makes.
const READING_VERBS: &[&str] = &["get", "list"];
/// Of questions.
const CREATING_VERBS: &[&str] = &["create"];

impl Kind {
    /// What most kinds have in common: version v1, in namespaces, and nothing that has to be said.
    const fn new(message: &'static Message, list: &'static Message, strategy: &'static dyn Strategy) -> Self {
        Kind {
            group: "",
            version: "v1",
            plural: "",
            singular: "",
            kind: message.name,
            short_names: &[],
            categories: &[],
            scope: Scope::Namespaced,
            status: false,
            selectable_fields: &[],
            form: Form::Typed,
            message,
            list: Some(list),
            verbs: VERBS,
            review: None,
            strategy,
            is_computed: false,
            example: "",
            also: None,
        }
    }

    /// A question, which is created and not stored.
    const fn question(group: &'static str, review: Review, message: &'static Message) -> Self {
        Kind {
            group,
            scope: Scope::Cluster,
            list: None,
            verbs: CREATING_VERBS,
            review: Some(review),
            ..Kind::new(message, message, &strategy::Unchecked)
        }
    }

    /// Whether `verb` can be done with objects of the kind.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.contains(&verb)
    }

    /// `v1`, `events.k8s.io/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether `api_version` is that of the kind.
    fn is_in(&self, api_version: &str) -> bool {
        match api_version.split_once('/') {
            Some((group, version)) => self.group == group && self.version == version,
            None => self.group.is_empty() && self.version == api_version,
        }
    }

    /// The kind in all of its forms, itself first.
    pub fn forms(&self) -> impl Iterator<Item = &Kind> {
        std::iter::once(self).chain(self.also)
    }

    /// Whether objects are stored in this form.
    pub fn is_stored(&self) -> bool {
        self.also.is_none() || self.group.is_empty()
    }

    /// The kind in the form that custom kinds have.
    pub fn served_version(&self) -> ServedVersion {
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
            structural: Arc::new(match self.form {
                Form::Typed => self.message.structural(),
                Form::Definition => Structural::default(),
            }),
            rules: Default::default(),
            preserve_unknown_fields: self.form == Form::Definition,
            status: self.status,
            scale: None,
            columns: Vec::new(),
            selectable_fields: texts(self.selectable_fields),
            deprecation_warning: None,
        }
    }
}

/// What `/scale` of a custom resource reads and writes. It has no path of its own, and the resource behind it is validated in
/// its place.
pub static SCALE: Kind = Kind {
    group: "autoscaling",
    plural: "scales",
    singular: "scale",
    ..Kind::new(&protobuf::messages::SCALE, &protobuf::messages::SCALE, &strategy::Unchecked)
};

/// Every built-in kind.
pub fn all() -> impl Iterator<Item = &'static Kind> {
    served::KINDS.iter().flat_map(|kinds| kinds.iter()).copied()
}

/// The built-in kind that is served as `plural` in `group`.
pub fn find(group: &str, plural: &str) -> Option<&'static Kind> {
    all().find(|kind| kind.group == group && kind.plural == plural)
}

/// Whether a built-in kind has the name of a definition, `PLURAL.GROUP`: such a definition is stored and has no effect.
pub fn has_name(definition: &str) -> bool {
    definition.split_once('.').is_some_and(|(plural, group)| find(group, plural).is_some())
}

/// The type of a built-in kind, if its message is its schema.
pub fn type_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let mut known = all().chain([&SCALE, &TOKEN_REQUEST]);
    let found = known.find(|known| known.kind == kind && known.is_in(api_version));
    found.filter(|kind| kind.form == Form::Typed).map(|kind| kind.message)
}

/// The message of anything that goes out in protobuf: a kind, its list, a Status; `None` for what has none, as all custom
/// kinds.
pub fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let in_version = all().filter(|known| known.is_in(api_version));
    let mut messages = in_version.flat_map(|known| std::iter::once(known.message).chain(known.list));
    let found = messages.find(|message| message.name == kind);
    found.or_else(|| protobuf::messages::message_of(api_version, kind))
}

/// How the JSON of a built-in kind or of its list is laid out.
fn layout_of(api_version: &str, kind: &str) -> Option<Layout> {
    let known = all().chain([&TOKEN_REQUEST]);
    let in_version = known.filter(|known| known.is_in(api_version) && known.form == Form::Typed);
    let mut messages = in_version.flat_map(|known| std::iter::once(known.message).chain(known.list));
    messages.find(|message| message.name == kind).map(Message::layout)
}

/// The body that an object goes out in as protobuf; `None` for a kind that has no message.
pub fn seal(object: &Value) -> Option<Vec<u8>> {
    let message = message_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
    Some(protobuf::seal(message, object))
}

#[cfg(test)]
mod wire_tests;
#[cfg(test)]
mod tests;
