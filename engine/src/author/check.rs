//! The server's verdict on an object that is created, or updated from an older form.
//!
//! Input: a kind and an object as its author wrote it. Output: the object with its defaults and without unknown fields, every
//! error and warning, and what the rules did. The write is [`crate::write`], as in a server; what only a server knows (uid,
//! times, managedFields) is left out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::author::catalog::{DefinedKind, Traces};
use crate::author::misread::misread_field;
use crate::crd::ServedVersion;
use crate::crd::write::{self, Origin, ReadError};
use crate::kinds;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::kinds::strategy::{Custom, Decoded, Strategy, Subresource};
use crate::meta::field::{Error, ErrorList, ErrorSubject, ErrorType, Path};
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::schema::rules::RuleEvaluation;
use crate::schema::rules::trace::{PartValue, Trace};
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::Value;
use crate::write::metadata::{generate_name, metadata_mut, wipe_system_fields};
use crate::write::{Outcome, RawFieldTexts, Write};

/// The version and the kind of definitions.
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

/// Stands for the uid that a server gives a new object.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// Options for a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckOptions {
    /// Whether the parts of rules that refuse get their values.
    pub explains: bool,
    /// Whether the parts of all rules get their values.
    pub traces: bool,
    /// Whether the write goes to `/status`.
    pub is_status: bool,
    /// Whether only rules that did not hold are recorded.
    pub skips_holding: bool,
}

/// The verdict on an object.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Pruned and defaulted.
    pub object: Value,
    /// As validating policies see it: prepared by its kind, as it would be stored.
    pub prepared: Value,
    /// Why the object is refused. Unknown fields are [`Checked::unknown`].
    pub errors: Vec<Rejected>,
    /// Paths of unknown fields.
    pub unknown: Vec<String>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Errors that are forgiven, as the update did not change the values.
    pub ratcheted: Vec<Error>,
    /// Evaluations of rules and of their messages, in their order.
    pub runs: Vec<RuleRun>,
}

/// An error, and the rule it comes from, if it is one of a rule.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The field error, as a server reports it.
    pub error: Error,
    /// The rule that failed; `None` for any other error.
    pub rule: Option<String>,
    /// The parts of the rule.
    pub parts: Vec<PartValue>,
}

/// An evaluation of a rule.
#[derive(Clone, Debug)]
pub struct RuleRun {
    /// The number of the evaluation, which a rule shares with its message: [`ErrorSubject::Rule`].
    pub number: usize,
    /// The value that the rule was about.
    pub path: String,
    /// The rule's expression.
    pub rule: String,
    /// The cost of the evaluation.
    pub cost: u64,
    /// Whether this is the rule's `messageExpression`.
    pub is_message: bool,
    /// The result of the rule; `None` for an error, and for a message.
    pub truth: Option<bool>,
    /// The result of a message.
    pub message: Option<String>,
    /// Values of the parts of the expression.
    pub parts: Vec<PartValue>,
}

impl Checked {
    /// The cost of all evaluations.
    pub fn cost(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.cost))
    }

    /// The verdict on an object that the server can't decode, in Go's words.
    pub fn refuse(object: Value, error: &ReadError) -> Checked {
        let field = match error {
            ReadError::Unmarshal(UnmarshalError::Type(mismatch)) => misread_field(&object, mismatch),
            _ => None,
        };
        let field = field.unwrap_or_else(|| "metadata".to_owned());
        let error = Error::at(field, ErrorType::TypeInvalid, error.to_string()).about(ErrorSubject::Unreadable);
        Checked::refused(object, error)
    }

    fn refused(object: Value, error: Error) -> Checked {
        Checked { object, errors: vec![Rejected { error, rule: None, parts: Vec::new() }], ..Checked::default() }
    }
}

/// Writes the definition in `value`, over `old` if there is one, in the newest version of Kubernetes.
///
/// # Errors
/// A value that does not fit the type of definitions.
pub fn define(value: &Value, old: Option<&Value>) -> Result<Checked, ReadError> {
    define_in(Minor::NEWEST, value, old)
}

/// [`define`] in that version of Kubernetes.
///
/// # Errors
/// A value that does not fit the type of definitions.
pub fn define_in(minor: Minor, value: &Value, old: Option<&Value>) -> Result<Checked, ReadError> {
    let definition = BuiltIn::of_in(minor, DEFINITIONS.0, DEFINITIONS.1).expect("definitions are a built-in kind");
    definition.write(value, old)
}

/// Creates `object`, which is of `kind`.
pub fn create(kind: &DefinedKind, object: &Value, options: CheckOptions) -> Checked {
    let Some(version) = kind.served(object) else { return not_served(kind, object) };
    let decoded = match Custom.decode(object.clone(), &kind.versions) {
        Ok(decoded) => decoded,
        Err(error) => return Checked::refuse(object.clone(), &error),
    };
    let sent_revision = decoded.object.str_at(&["metadata", "resourceVersion"]).to_owned();
    let mut checked =
        WriteChecker { strategy: &Custom, version, options, traces: Some(&kind.traces) }.check(decoded, None);
    if checked.errors.is_empty() && !matches!(sent_revision.as_str(), "" | "0") {
        let path = METADATA.child("resourceVersion");
        let error = Error::forbidden(&path, "resourceVersion should not be set on objects to be created");
        checked.errors.push(Rejected { error, rule: None, parts: Vec::new() });
    }
    checked.object = answered(kind, version, checked.object);
    checked
}

/// Writes `object`, which is of `kind`, over `old`.
pub fn update(kind: &DefinedKind, object: &Value, old: &Value, options: CheckOptions) -> Checked {
    let Some(version) = kind.served(object) else { return not_served(kind, object) };
    let decoded = match Custom.decode(object.clone(), &kind.versions) {
        Ok(decoded) => decoded,
        Err(error) => return Checked::refuse(object.clone(), &error),
    };
    let has_other_version = old.str_at(&["apiVersion"]) != version.api_version();
    let old = match stored(kind, old, version) {
        Ok(old) => old,
        Err(error) => return Checked::refuse(decoded.object, &error),
    };
    let checker = WriteChecker { strategy: &Custom, version, options, traces: Some(&kind.traces) };
    let mut checked = checker.check(decoded, Some(old));
    if has_other_version && kind.has_webhook() {
        let warning = "the old object is of another version, and no webhook was asked to convert it";
        checked.warnings.push(warning.to_owned());
    }
    checked.object = answered(kind, version, checked.object);
    checked
}

/// A kind that the server has from the start, in one version.
pub struct BuiltIn {
    strategy: &'static dyn Strategy,
    version: Arc<ServedVersion>,
}

impl BuiltIn {
    /// The kind, if it is served in this version by default.
    pub fn of(api_version: &str, kind: &str) -> Option<BuiltIn> {
        BuiltIn::of_in(Minor::NEWEST, api_version, kind)
    }

    /// The same by a server of that version of Kubernetes.
    pub fn of_in(minor: Minor, api_version: &str, kind: &str) -> Option<BuiltIn> {
        let found = RuntimeConfig::of(minor).kind(api_version, kind)?;
        Some(BuiltIn { strategy: found.strategy, version: Arc::new(found.served_version_in(minor)) })
    }

    /// Creates `object`, which is of this kind, or writes it over `old`.
    ///
    /// # Errors
    /// A value that does not fit the type of the kind.
    pub fn write(&self, object: &Value, old: Option<&Value>) -> Result<Checked, ReadError> {
        self.write_with(object, old, CheckOptions::default())
    }

    /// [`BuiltIn::write`], perhaps to `/status`.
    ///
    /// # Errors
    /// A value that does not fit the type of the kind.
    pub fn write_with(&self, object: &Value, old: Option<&Value>, options: CheckOptions) -> Result<Checked, ReadError> {
        let versions = std::slice::from_ref(&self.version);
        let decode = |object: &Value| kinds::decode(self.strategy, &self.version, object.clone(), versions);
        let (decoded, old) = (decode(object)?, old.map(decode).transpose()?);
        let (strategy, version) = (self.strategy, &*self.version);
        let checker = WriteChecker { strategy, version, options, traces: None };
        Ok(checker.check(decoded, old.map(|old| old.object)))
    }
}

/// Runs a write as a server does, and notes what the rules did.
struct WriteChecker<'a> {
    strategy: &'a dyn Strategy,
    version: &'a ServedVersion,
    options: CheckOptions,
    /// What is known of the rules of a custom kind.
    traces: Option<&'a Traces>,
}

impl WriteChecker<'_> {
    fn check(&self, decoded: Decoded, old: Option<Value>) -> Checked {
        let WriteChecker { strategy, version, options, .. } = *self;
        let subresource = if options.is_status { Subresource::Status } else { Subresource::Main };
        let write = Write { strategy, version, subresource, by: None, texts: RawFieldTexts::default() };
        let mut runs = Vec::new();
        let mut observe = |run: RuleEvaluation<'_, '_>| runs.extend(self.note(run));
        let mut new = decoded.object.clone();
        place(version, &mut new);
        let outcome = match old {
            None => {
                wipe_system_fields(&mut new);
                generate_name(&mut new, || if strategy.generates_names() { "xxxxx" } else { "" }.to_owned());
                if strategy.names_nameless() && new.str_at(&["metadata", "name"]).is_empty() {
                    metadata_mut(&mut new).insert("name", Value::from(UID));
                }
                // Some kinds make more of it.
                metadata_mut(&mut new).insert("uid", Value::from(UID));
                strategy.align(&mut new, None);
                write.create(new, &mut observe)
            }
            Some(mut old) => {
                place(version, &mut old);
                // As it was when it was stored.
                strategy.align(&mut old, None);
                let revision = Some(old.str_at(&["metadata", "resourceVersion"]).to_owned());
                let revision = revision.filter(|revision| !revision.is_empty()).unwrap_or_else(|| "1".to_owned());
                for object in [&mut old, &mut new] {
                    metadata_mut(object).insert("resourceVersion", Value::from(revision.as_str()));
                }
                if !options.is_status {
                    strategy.align(&mut new, Some(&old));
                }
                let outcome = write.update(new, &old, &mut observe);
                // Kinds validate their metadata once more, but the server reports each error once.
                Outcome { errors: outcome.errors.distinct(), ..outcome }
            }
        };
        let errors = assign(outcome.errors, &runs);
        let warnings =
            [outcome.early_warnings, outcome.warnings, version.deprecation_warning.iter().cloned().collect()];
        let (object, unknown) = (decoded.object, decoded.findings.unknown);
        let (prepared, ratcheted) = (outcome.object, outcome.ratcheted);
        Checked { object, prepared, errors, unknown, warnings: warnings.concat(), ratcheted, runs }
    }

    fn note(&self, run: RuleEvaluation<'_, '_>) -> Option<RuleRun> {
        use crate::cel::eval::Value as Cel;
        let truth = match run.result {
            Ok(Cel::Bool(truth)) if !run.is_message => Some(*truth),
            _ => None,
        };
        if self.options.skips_holding && truth == Some(true) {
            return None;
        }
        let message = match run.result {
            Ok(Cel::String(text)) if run.is_message => Some(text.as_str().trim().to_owned()),
            _ => None,
        };
        let path = run.path.to_string();
        let is_wanted = self.options.traces || (self.options.explains && truth != Some(true));
        let trace = if is_wanted && !run.is_message { self.trace(&run, &path) } else { None };
        let parts = trace.map_or_else(Vec::new, |trace| trace.values(run.variables));
        let rule = run.rule.rule.clone();
        let (number, cost, is_message) = (run.number, run.cost, run.is_message);
        Some(RuleRun { number, path, rule, cost, is_message, truth, message, parts })
    }

    fn trace(&self, run: &RuleEvaluation<'_, '_>, path: &str) -> Option<Arc<Trace>> {
        self.traces?.of(run.rule, || {
            let (schema, is_resource) = node_at(&self.version.structural, path)?;
            Trace::new(run.rule, schema, is_resource)
        })
    }
}

/// The verdict on a version that the definition does not serve.
fn not_served(kind: &DefinedKind, object: &Value) -> Checked {
    let served = kind.versions.iter().filter(|version| version.served).map(|version| version.api_version());
    let served: Vec<String> = served.collect();
    let served: Vec<&str> = served.iter().map(String::as_str).collect();
    let error = Error::not_supported(&Path::new("apiVersion"), object.str_at(&["apiVersion"]), &served);
    Checked::refused(object.clone(), error)
}

/// An object as it was written, stored, and read again in `version`. Conversion changes the version and nothing else, as it
/// does without a webhook; what a version does not specify is lost on the way.
fn stored(kind: &DefinedKind, object: &Value, version: &ServedVersion) -> Result<Value, ReadError> {
    let mut object = object.clone();
    let is_known = kind.versions.iter().any(|known| known.api_version() == object.str_at(&["apiVersion"]));
    if is_known {
        write::decode(&mut object, &kind.versions, Origin::Store)?;
        if let Some(storage) = kind.versions.iter().find(|version| version.storage) {
            object.make_object().insert("apiVersion", Value::from(storage.api_version()));
            write::decode(&mut object, &kind.versions, Origin::Store)?;
        }
    }
    object.make_object().insert("apiVersion", Value::from(version.api_version()));
    if is_known {
        // Defaults were those of the stored version.
        _ = write::coerce(&mut object, &kind.versions, Origin::Store)?;
    } else {
        _ = write::decode(&mut object, &kind.versions, Origin::Store)?;
    }
    Ok(object)
}

/// What a server answers with: an object that is stored in another version has gained and lost what that version makes of
/// it. What a webhook makes of it is not known.
fn answered(kind: &DefinedKind, version: &ServedVersion, object: Value) -> Value {
    if version.storage || kind.has_webhook() {
        return object;
    }
    match stored(kind, &object, version) {
        Ok(mut answered) => {
            // Only a server counts generations.
            if object.at(&["metadata", "generation"]).is_none() {
                metadata_mut(&mut answered).remove("generation");
            }
            answered
        }
        Err(_) => object,
    }
}

const METADATA: Path<'static> = Path::new("metadata");

/// The namespace is the one that kubectl takes if none is named; what has none loses its own.
fn place(version: &ServedVersion, object: &mut Value) {
    let metadata = metadata_mut(object);
    if !version.is_namespaced() {
        metadata.remove("namespace");
    } else if metadata.get("namespace").and_then(Value::as_str).unwrap_or_default().is_empty() {
        metadata.insert("namespace", Value::from("default"));
    }
}

/// Gives each error the rule that it is about.
fn assign(errors: ErrorList, runs: &[RuleRun]) -> Vec<Rejected> {
    let rules: HashMap<usize, &RuleRun> =
        runs.iter().filter(|run| !run.is_message).map(|run| (run.number, run)).collect();
    let rejected = |error: Error| {
        let run = match error.subject {
            ErrorSubject::Rule(number) => rules.get(&number),
            _ => None,
        };
        let (rule, parts) = run.map(|run| (run.rule.clone(), run.parts.clone())).unzip();
        Rejected { error, rule, parts: parts.unwrap_or_default() }
    };
    errors.into_vec().into_iter().map(rejected).collect()
}

/// The node of a schema that a value at `path` has, and whether that is a resource of its own.
pub fn node_at<'s>(root: &'s Structural, path: &str) -> Option<(&'s Structural, bool)> {
    let (mut node, mut is_resource) = (root, true);
    let mut rest = if path == "<nil>" { "" } else { path };
    while !rest.is_empty() {
        let below = match rest.strip_prefix('[') {
            Some(inner) => {
                let end = inner.match_indices(']').map(|(at, _)| at);
                let end =
                    end.into_iter().find(|at| matches!(inner.as_bytes().get(at + 1), None | Some(b'.' | b'[')))?;
                rest = &inner[end + 1..];
                match &node.items {
                    Some(items) => items,
                    None => node.additional_properties.as_ref().and_then(StructuralOrBool::structural)?,
                }
            }
            None => {
                rest = rest.strip_prefix('.').unwrap_or(rest);
                let named = node.properties.iter().filter(|(name, _)| {
                    rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                });
                let (name, below) = named.max_by_key(|(name, _)| name.len())?;
                rest = &rest[name.len()..];
                below
            }
        };
        (node, is_resource) = (below, below.extensions.embedded_resource);
    }
    Some((node, is_resource))
}
