//! What a request is about: a resource in its versions, and perhaps a part of it.

use std::borrow::Cow;
use std::sync::Arc;

use thiserror::Error;

use crate::apply::TypeSchema;
use crate::author::Catalog;
use crate::crd::ServedVersion;
use crate::crd::write::ReadError;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::kinds::strategy::{Custom, Strategy};
use crate::kinds::{self, Action, Form, Kind};
use crate::meta::api_version::split_api_version;
use crate::meta::minor::Minor;
use crate::policy::Operation;
use crate::policy::mutation::{Misread, Mutated, check_numbers};
use crate::value::Value;

/// Why an object is not made one of another version.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TargetError {
    /// A webhook does it, which is not asked here.
    #[error("a webhook converts it to {api_version}, and webhooks are not called here")]
    Webhook {
        /// The version that is wanted.
        api_version: String,
    },
    /// The version can't hold the object.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// A resource, or a part of it.
pub struct PolicyTarget {
    /// As the manifest names it.
    pub version: Arc<ServedVersion>,
    /// `""`, `status`, `scale`, or another part.
    pub subresource: String,
    versions: Vec<Arc<ServedVersion>>,
    strategy: &'static dyn Strategy,
    /// What is sent to the part, where that is not the object.
    sent: Option<&'static Kind>,
    connects: bool,
    is_custom: bool,
    /// Whether a webhook makes its versions of each other.
    is_converted_elsewhere: bool,
}

impl PolicyTarget {
    /// Where `object` is written to; `None` for a kind that nobody here knows, and for questions, which nothing is asked
    /// about. An object that is sent to a part, as PodExecOptions are, finds that part.
    pub fn of(object: &Value, subresource: &str, catalog: &Catalog) -> Option<PolicyTarget> {
        PolicyTarget::of_kind(object.str_at(&["apiVersion"]), object.str_at(&["kind"]), subresource, catalog)
    }

    /// [`PolicyTarget::of`] for objects of a kind.
    pub fn of_kind(api_version: &str, kind: &str, subresource: &str, catalog: &Catalog) -> Option<PolicyTarget> {
        let target = PolicyTarget::custom(api_version, kind, catalog)
            .or_else(|| PolicyTarget::built_in(catalog.minor(), api_version, kind))
            .or_else(|| PolicyTarget::part(catalog.minor(), api_version, kind))?;
        match subresource {
            "" => Some(target),
            "status" => {
                let has_it = |version: &Arc<ServedVersion>| version.status;
                let versions = target.versions.iter().filter(|version| has_it(version)).cloned().collect();
                Some(PolicyTarget { subresource: subresource.to_owned(), versions, ..target })
            }
            "scale" => {
                let has_it = |version: &&Arc<ServedVersion>| version.scale.is_some();
                let versions = target.versions.iter().filter(has_it).cloned().collect();
                Some(PolicyTarget {
                    subresource: subresource.to_owned(),
                    versions,
                    sent: Some(&kinds::SCALE),
                    ..target
                })
            }
            _ => Some(PolicyTarget { subresource: subresource.to_owned(), ..target }),
        }
    }

    fn custom(api_version: &str, kind: &str, catalog: &Catalog) -> Option<PolicyTarget> {
        let (group, _) = split_api_version(api_version).ok()?;
        let known = catalog.named(group, kind)?;
        let version = known.versions.iter().find(|version| version.served && version.api_version() == api_version)?;
        Some(PolicyTarget {
            version: Arc::clone(version),
            subresource: String::new(),
            versions: known.versions.clone(),
            strategy: &Custom,
            sent: None,
            connects: false,
            is_custom: true,
            is_converted_elsewhere: known.has_webhook(),
        })
    }

    fn built_in(minor: Minor, api_version: &str, kind: &str) -> Option<PolicyTarget> {
        let found = RuntimeConfig::of(minor).kind(api_version, kind)?;
        found.review.is_none().then(|| PolicyTarget::of_built_in(minor, found))
    }

    fn of_built_in(minor: Minor, kind: &'static Kind) -> PolicyTarget {
        let config = RuntimeConfig::of(minor);
        let forms = kind.forms().filter(|form| config.serves(form));
        let versions: Vec<_> = forms.map(|form| Arc::new(form.served_version_in(minor))).collect();
        let own = versions.iter().find(|version| kind.is_form(version)).cloned();
        PolicyTarget {
            version: own.unwrap_or_else(|| Arc::new(kind.served_version_in(minor))),
            subresource: String::new(),
            versions,
            strategy: kind.strategy,
            sent: None,
            connects: false,
            is_custom: false,
            is_converted_elsewhere: false,
        }
    }

    /// The part that objects of the kind are sent to.
    fn part(minor: Minor, api_version: &str, kind: &str) -> Option<PolicyTarget> {
        let config = RuntimeConfig::of(minor);
        let mut parts = config.kinds().flat_map(|whole| whole.parts_in(minor).map(move |part| (whole, part)));
        let is_sent = |sent: &Kind| sent.kind == kind && sent.api_version() == api_version;
        let is_scale = |action: Action| matches!(action, Action::Scale(_));
        let (whole, part) = parts.find(|(_, part)| !is_scale(part.action) && part.kind.is_some_and(is_sent))?;
        let connects =
            matches!(part.action, Action::Connect | Action::Proxy | Action::ConnectService | Action::ConnectNode);
        Some(PolicyTarget {
            subresource: part.name.to_owned(),
            sent: part.kind,
            connects,
            ..PolicyTarget::of_built_in(minor, whole)
        })
    }

    /// What a request does unless it says so.
    pub fn operation(&self, has_old: bool) -> Operation {
        match (self.connects, has_old) {
            (true, _) => Operation::Connect,
            (false, true) => Operation::Update,
            (false, false) => Operation::Create,
        }
    }

    /// Every version that rules may name.
    pub(super) fn versions(&self) -> &[Arc<ServedVersion>] {
        &self.versions
    }

    /// Whether what is sent is not the object of the resource.
    pub(super) fn takes_others(&self) -> bool {
        self.sent.is_some()
    }

    pub(super) fn is_namespaces(&self) -> bool {
        self.version.group.is_empty() && self.version.names.plural == "namespaces"
    }

    /// Group, version and kind of the objects in `version`.
    pub(super) fn kind_in(&self, version: &ServedVersion) -> (String, String, String) {
        match self.sent {
            Some(sent) => (sent.group.to_owned(), sent.version.to_owned(), sent.kind.to_owned()),
            None => (version.group.clone(), version.version.clone(), version.names.kind.clone()),
        }
    }

    /// Brings an object into the form of its version, with defaults.
    ///
    /// # Errors
    /// The version can't hold the object.
    pub fn decode(&self, object: &Value) -> Result<Value, ReadError> {
        match self.sent {
            Some(_) => Ok(object.clone()),
            None => {
                let decoded = kinds::decode(self.strategy, &self.version, object.clone(), &self.versions);
                decoded.map(|decoded| decoded.object)
            }
        }
    }

    /// `object` in another version.
    ///
    /// # Errors
    /// A webhook converts it, or the version can't hold it.
    pub(super) fn convert(&self, object: &Value, to: &ServedVersion) -> Result<Value, TargetError> {
        let api_version = to.api_version();
        if object.is_null() || self.sent.is_some() || object.str_at(&["apiVersion"]) == api_version {
            return Ok(object.clone());
        }
        if self.is_converted_elsewhere {
            return Err(TargetError::Webhook { api_version });
        }
        let named = || {
            let mut named = object.clone();
            named.make_object().insert("apiVersion", Value::from(api_version.as_str()));
            named
        };
        let converted = self.strategy.convert(object, &api_version).unwrap_or_else(named);
        Ok(self.strategy.set_defaults(converted, &self.versions)?.object)
    }

    /// What an object in `version` is merged by; `None` where nothing is known of it.
    pub(super) fn types(&self, version: &ServedVersion) -> Option<TypeSchema> {
        // What a part takes has types where its kind is of the version that the resource is served in.
        if self.sent.is_some_and(|sent| sent.api_version() != version.api_version()) {
            return None;
        }
        if self.is_custom {
            return Some(TypeSchema::of_custom_resource(&version.structural, version.preserve_unknown_fields));
        }
        let (group, name, kind) = self.kind_in(version);
        let api_version = if group.is_empty() { name } else { format!("{group}/{name}") };
        let definition = kinds::find(&version.group, &version.names.plural)
            .filter(|kind| kind.form == Form::Definition && self.sent.is_none());
        definition.map(Kind::message).or_else(|| kinds::type_of(&api_version, &kind)).map(TypeSchema::of_message)
    }

    /// Reads what a policy made of `before`, with the defaults of its version.
    ///
    /// # Errors
    /// Go's text for what is not an object of the kind.
    pub(super) fn read(&self, before: &Value, mutated: Mutated) -> Result<Value, Misread> {
        let is_patched = matches!(mutated, Mutated::Patched(_));
        let (Mutated::Merged(mut object) | Mutated::Patched(mut object)) = mutated;
        let unfit = |why: String| if is_patched { Misread::Broken(why) } else { Misread::Fault(why) };
        if self.is_custom && self.sent.is_some() {
            // Kubernetes can't make a custom resource's Scale of what a policy made of it.
            let why = "request to convert CR to an invalid group/version: autoscaling/v1";
            return Err(Misread::Fault(why.to_owned()));
        }
        for name in ["apiVersion", "kind"] {
            if object.str_at(&[name]).is_empty() {
                object.make_object().insert(name, before.get(name).cloned().unwrap_or_default());
            }
        }
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let message = kinds::message_of(api_version, kind).filter(|_| !self.is_custom);
        if let Some(message) = message.filter(|_| !is_patched) {
            if let Some(why) = message.restore_error(&object) {
                return Err(unfit(why));
            }
            message.truncate_numbers(&mut object);
        }
        check_numbers(&object)?;
        match (self.sent, message) {
            (Some(_), Some(message)) => {
                message.decode(&object).map(|(object, _)| object).map_err(|error| unfit(error.to_string()))
            }
            _ => match self.strategy.set_defaults(object, &self.versions) {
                Ok(decoded) => Ok(decoded.object),
                Err(error) => Err(unfit(error.to_string())),
            },
        }
    }

    /// What the client is told that a refusal is about, if it has no name.
    pub(super) fn name_in<'o>(&self, name: &'o str, object: &'o Value) -> Cow<'o, str> {
        match (name, object.str_at(&["metadata", "generateName"])) {
            ("", "") => "Unknown".into(),
            ("", generated) => generated.into(),
            (name, _) => name.into(),
        }
    }
}
