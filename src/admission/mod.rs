//! Admission: the plugins, policies and webhooks that may still change or refuse a valid write.
//!
//! Every write passes through [`Admission::mutate`] after defaulting, inside the loop that retries
//! a write after a conflict, and through [`Admission::validate`] right before the commit.

pub mod expression_authorizer;
pub mod matcher;
pub mod configuration;
mod figures;
mod handled;
mod namespace_lifecycle;
mod objects;
mod owner_references;
pub mod plugins;
mod pods;
mod pod_security;
pub mod policies;
pub mod webhooks;
pub mod static_manifests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;

use crate::apply::TypeSchema;
use crate::auth::UserInfo;
use crate::crd::ServedVersion;
use crate::crd::conversion_review::ConversionError;
use crate::crd::write::ReadError;
use crate::kinds;
use crate::meta::Status;
use crate::meta::selector::LabelSelector;
use crate::meta::type_meta::{MissingKind, TypeMetaError};
use crate::policy::mutation::Mutated;
use crate::policy::request::{AdmissionRequest, GroupVersionName};
use crate::value::Value;

pub use configuration::Configuration;
use figures::{AdmissionCall, PluginFigures};
pub use figures::{AdmissionResult, Evaluated, Figures, WebhookCall};
pub use handled::AdmissionRound;
pub use namespace_lifecycle::{NamespaceLifecycle, Namespaces, Phase};
pub use objects::{Listed, Objects, ScopedResource, TextFilter};
pub use owner_references::OwnerReferences;
pub use pod_security::{PodSecurity, Settings as PodSecuritySettings};
pub use pods::{DefaultTolerationSeconds, NodeDeclaredFeatureValidator, PodResizeValidator, Priority, RuntimeClass};
pub use webhooks::Webhooks;

pub use crate::policy::mutation::Misread;
pub use crate::policy::{Operation, Reinvocation};

/// The attributes of a write, except for the new object.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub operation: Operation,
    pub version: &'a ServedVersion,
    /// `""`, `status`, `scale` or `finalize`. The objects of `scale` are Scales.
    pub subresource: &'a str,
    /// Empty for cluster scope.
    pub namespace: &'a str,
    /// Empty if the name is still to be generated, and for a collection.
    pub name: &'a str,
    pub old: Option<&'a Value>,
    pub user: &'a UserInfo,
    pub dry_run: bool,
    /// The CreateOptions, UpdateOptions or DeleteOptions of the request.
    pub options: &'a Value,
    pub forms: &'a dyn Forms,
    pub told: &'a AdmissionNotes,
    pub reinvocation: &'a Reinvocation,
    /// The quota charges of earlier attempts of the request.
    pub charges: &'a plugins::Charges,
}

/// The group, version and kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionKind<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
}

impl Attributes<'_> {
    /// The kind of the request's objects in `version`.
    pub fn kind_in<'v>(&self, version: &'v ServedVersion) -> GroupVersionKind<'v> {
        let resource = kinds::find(&version.group, &version.names.plural);
        let sent = resource.and_then(|kind| kind.part(self.subresource)).and_then(|part| part.kind);
        match (self.subresource, sent) {
            ("scale", _) => GroupVersionKind { group: "autoscaling", version: "v1", kind: "Scale" },
            (_, Some(sent)) => GroupVersionKind { group: sent.group, version: sent.version, kind: sent.kind },
            _ => GroupVersionKind { group: &version.group, version: &version.version, kind: &version.names.kind },
        }
    }

    /// The AdmissionRequest without uid and objects, for the version that the rules matched.
    pub fn request(&self, matched: &ServedVersion) -> Value {
        let kind = |version| {
            let GroupVersionKind { group, version, kind } = self.kind_in(version);
            GroupVersionName { group, version, name: kind }
        };
        AdmissionRequest {
            kind: kind(matched),
            resource: resource(matched),
            request_kind: kind(self.version),
            request_resource: resource(self.version),
            subresource: self.subresource,
            name: self.name,
            namespace: self.namespace_or_own(),
            operation: self.operation,
            user: &self.user.encode(),
            dry_run: self.dry_run,
            options: self.options,
        }
        .encode()
    }

    /// The namespace; for a Namespace object its own name, as in URL paths.
    pub fn namespace_or_own(&self) -> &str {
        if self.version.group.is_empty() && self.version.names.plural == "namespaces" {
            self.name
        } else {
            self.namespace
        }
    }
}

fn resource(version: &ServedVersion) -> GroupVersionName<'_> {
    GroupVersionName { group: &version.group, version: &version.version, name: &version.names.plural }
}

/// A `Forbidden` status for a write that a plugin refuses.
fn forbidden(attributes: &Attributes<'_>, object: &Value, why: &str) -> Status {
    let version = attributes.version;
    Status::forbidden(&version.group, &version.names.plural, denied_name(attributes, object), why)
}

/// The name of the object in a refusal, or its `generateName`.
fn denied_name<'n>(attributes: &Attributes<'n>, object: &'n Value) -> &'n str {
    let in_metadata = |name: &str| object.str_at(&["metadata", name]);
    match (attributes.name, in_metadata("name"), in_metadata("generateName")) {
        ("", "", "") if object.is_null() || object.get("metadata").is_some() => "Unknown",
        ("", "", "") => "Unknown/errorGettingName",
        ("", "", generated) => generated,
        ("", name, _) | (name, ..) => name,
    }
}

/// Why an object can't be converted, in the words of Kubernetes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FormError {
    #[error(transparent)]
    TypeMeta(#[from] TypeMetaError),
    #[error(transparent)]
    Kind(#[from] MissingKind),
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The conversion failed.
    #[error(transparent)]
    Conversion(#[from] ConversionError),
}

/// Converts and decodes objects of the resource, and finds those of other resources.
#[async_trait]
pub trait Forms: Send + Sync {
    /// All declared versions that have the subresource of the request, in the order of their
    /// declaration.
    fn versions(&self) -> Vec<Arc<ServedVersion>>;

    /// Converts `object` to another version.
    async fn convert(&self, object: Value, to: &ServedVersion) -> Result<Value, FormError>;

    /// Decodes a changed object as Go does: it must have a kind, typed kinds lose unknown fields,
    /// and defaults are set.
    fn decode(&self, object: Value) -> Result<Value, FormError>;

    /// Whether two objects differ once Go has decoded them, before it sets defaults: fields that a typed kind does not
    /// know do not count.
    fn differ(&self, one: &Value, other: &Value) -> bool;

    /// The version in which objects of another kind are served; `None` if there is none.
    async fn version_of(&self, group: &str, version: &str, kind: &str) -> Result<Option<Arc<ServedVersion>>, Status>;

    /// The schema by which an `object` in `version` is merged; `None` if none is published.
    fn types(&self, object: &Value, version: &ServedVersion) -> Option<Cow<'_, TypeSchema>>;

    /// Decodes the object that a policy made of `before`, and sets the defaults of its version.
    fn read(&self, before: &Value, mutated: Mutated) -> Result<Value, Misread>;

    /// An object of another resource by name, in `version`; `None` if it does not exist.
    async fn find(&self, version: &ServedVersion, namespace: &str, name: &str) -> Result<Option<Value>, Status>;

    /// The objects of another resource that have the labels, in `version`, sorted by name.
    async fn select(
        &self,
        version: &ServedVersion,
        namespace: &str,
        labels: &LabelSelector,
    ) -> Result<Vec<Value>, Status>;

    /// Creates a namespace as a regular write; it may already exist.
    async fn make_namespace(&self, name: &str) -> Result<(), Status>;

    /// Converts a changed object to the stored form: unknown fields are pruned.
    fn settle(&self, object: Value) -> Result<Value, FormError>;
}

/// What admission returns besides its verdict.
#[derive(Default)]
pub struct AdmissionNotes {
    notes: Mutex<Notes>,
    /// The managedFields of the object before it was first replaced.
    owners_before: OnceLock<Option<Value>>,
}

/// Warnings for the client, and annotations of the audit log by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub warnings: Vec<String>,
    pub annotations: BTreeMap<String, String>,
    /// Annotations that tell parts of the object: only events of the level `Request` and above have them.
    pub request_annotations: BTreeMap<String, String>,
    pub webhook_times: WebhookTimes,
}

/// How long a request waited for webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookTimes {
    /// For all of them, as they are called one after the other.
    pub mutating: Duration,
    /// For the slowest, as all are called at once.
    pub validating: Duration,
}

impl WebhookTimes {
    /// Adds the times of further calls.
    pub fn add(&mut self, other: WebhookTimes) {
        self.mutating = self.mutating.saturating_add(other.mutating);
        self.validating = self.validating.max(other.validating);
    }
}

impl AdmissionNotes {
    pub fn warn(&self, text: &str) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).warnings.push(text.to_owned());
    }

    /// Adds an annotation; if the name exists already, the first value stays.
    pub fn annotate(&self, name: String, text: &str) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.annotations.entry(name).or_insert_with(|| text.to_owned());
    }

    /// Adds an annotation for events of the level `Request` and above.
    pub fn annotate_requests(&self, name: String, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.request_annotations.entry(name).or_insert(text);
    }

    /// Records that a webhook was waited for.
    pub fn waited(&self, times: WebhookTimes) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).webhook_times.add(times);
    }

    /// Replaces the object of the request by the one that a webhook or a policy returned.
    pub fn replace(&self, object: &mut Value, new: Value) {
        let mut before = std::mem::replace(object, new);
        self.owners_before.get_or_init(|| before.at_mut(&["metadata", "managedFields"]).map(std::mem::take));
    }

    /// The managedFields that the object had before it was first replaced; the outer `None` if it
    /// was not.
    pub fn owners_before(&self) -> Option<Option<&Value>> {
        self.owners_before.get().map(Option::as_ref)
    }

    pub fn into_notes(self) -> Notes {
        self.notes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One step of admission, or a chain of steps.
#[async_trait]
pub trait Admission: Send + Sync {
    /// May change `object`; an error refuses the write. `object` is null for a deletion.
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status>;

    /// Refuses the write by an error.
    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status>;

    /// The metrics of the step, if it has any.
    fn figures(&self) -> Option<Arc<Figures>> {
        None
    }

    /// Whether the step may concern custom resources.
    fn concerns_custom_resources(&self) -> bool {
        true
    }

    /// Whether the step handles connections, which write nothing.
    fn takes_connections(&self) -> bool {
        false
    }
}

/// The admission plugins, in order.
#[derive(Default)]
pub struct Chain {
    plugins: Vec<Plugin>,
    figures: Arc<Figures>,
}

struct Plugin {
    admission: Box<dyn Admission>,
    figures: PluginFigures,
}

/// Measures consecutive steps: each ends where the next one begins.
struct Stopwatch(Instant);

impl Stopwatch {
    /// The time since the end of the previous step.
    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut self.0, now))
    }
}

impl Chain {
    /// A chain of `plugins`, each with its name in kube-apiserver.
    pub fn new(plugins: impl Iterator<Item = (&'static str, Box<dyn Admission>)>, figures: Arc<Figures>) -> Self {
        let plugins = plugins.map(|(name, admission)| Plugin { admission, figures: PluginFigures::of(name, &figures) });
        Chain { plugins: plugins.collect(), figures }
    }

    fn asked(&self, attributes: &Attributes<'_>) -> impl Iterator<Item = &Plugin> {
        let connects = attributes.operation == Operation::Connect;
        let is_custom = kinds::find(&attributes.version.group, &attributes.version.names.plural).is_none();
        self.plugins.iter().filter(move |Plugin { admission, .. }| {
            (!connects || admission.takes_connections()) && (!is_custom || admission.concerns_custom_resources())
        })
    }

    async fn mutate_once(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let mut stopwatch = Stopwatch(Instant::now());
        for plugin in self.asked(attributes) {
            let outcome = plugin.admission.mutate(attributes, object).await;
            let call = AdmissionCall::new(AdmissionRound::Admit, attributes, stopwatch.lap(), outcome.is_err());
            plugin.figures.asked(&call);
            outcome?;
        }
        Ok(())
    }

    async fn validate_once(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let mut stopwatch = Stopwatch(Instant::now());
        for plugin in self.asked(attributes) {
            let outcome = plugin.admission.validate(attributes, object).await;
            let call = AdmissionCall::new(AdmissionRound::Validate, attributes, stopwatch.lap(), outcome.is_err());
            plugin.figures.asked(&call);
            outcome?;
        }
        Ok(())
    }
}

#[async_trait]
impl Admission for Chain {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let began = Instant::now();
        let mut outcome = self.mutate_once(attributes, object).await;
        if outcome.is_ok() && attributes.reinvocation.begin() {
            outcome = self.mutate_once(attributes, object).await;
        }
        self.figures.passed(&AdmissionCall::new(AdmissionRound::Admit, attributes, began.elapsed(), outcome.is_err()));
        outcome
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let began = Instant::now();
        let outcome = self.validate_once(attributes, object).await;
        self.figures.passed(&AdmissionCall::new(
            AdmissionRound::Validate,
            attributes,
            began.elapsed(),
            outcome.is_err(),
        ));
        outcome
    }

    fn figures(&self) -> Option<Arc<Figures>> {
        Some(Arc::clone(&self.figures))
    }
}
