//! What the server would say to an object: created, or written over what it was.
//!
//! In: a kind and an object as its author wrote it. Out: the object with its defaults and without unknown fields, every
//! error and warning, and what the rules did. What only a server knows (uid, times, managedFields) is left out.

use crate::author::catalog::Kind;
use crate::crd::write::{self, Origin};
use crate::crd::{ServedVersion, defaults, definition, strategy, validate, warnings};
use crate::meta::field::{Error, ErrorList, ErrorType, Path};
use crate::meta::{names, object_meta};
use crate::schema::rules::Run;
use crate::schema::rules::trace::{PartValue, Trace};
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::Value;

/// What is asked for beside the verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether the parts of rules that refuse get their values.
    pub explains: bool,
    /// Whether the parts of all rules get their values.
    pub traces: bool,
    /// Whether the write goes to `/status`.
    pub is_status: bool,
}

/// What came of an object.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Pruned and defaulted.
    pub object: Value,
    /// Why the object is refused. Unknown fields are [`Checked::unknown`].
    pub errors: Vec<Rejected>,
    /// Paths of unknown fields.
    pub unknown: Vec<String>,
    pub warnings: Vec<String>,
    /// Errors that are forgiven, as the update left the values alone.
    pub ratcheted: Vec<String>,
    /// Evaluations of rules and of their messages, in their order.
    pub runs: Vec<RuleRun>,
}

/// An error, and the rule it comes from, if it is one of a rule.
#[derive(Clone, Debug)]
pub struct Rejected {
    pub error: Error,
    pub rule: Option<String>,
    /// The parts of the rule.
    pub parts: Vec<PartValue>,
}

/// An evaluation of a rule.
#[derive(Clone, Debug)]
pub struct RuleRun {
    /// The value that the rule was about.
    pub path: String,
    pub rule: String,
    pub cost: u64,
    pub is_message: bool,
    /// What the rule came to; `None` for an error, and for a message.
    pub truth: Option<bool>,
    /// What a message came to.
    pub message: Option<String>,
    pub parts: Vec<PartValue>,
}

impl Checked {
    /// What all evaluations cost.
    pub fn cost(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.cost))
    }

    /// What the server can't even read, in Go's words.
    pub fn refuse(object: Value, detail: String) -> Checked {
        Checked::refused(object, unreadable("metadata", detail))
    }

    /// A verdict in which no rules have a part.
    pub fn plain(object: Value, errors: ErrorList, unknown: Vec<String>, warnings: Vec<String>) -> Checked {
        Checked { object, errors: assign(errors, &mut []), unknown, warnings, ..Checked::default() }
    }

    fn refused(object: Value, error: Error) -> Checked {
        Checked { object, errors: vec![Rejected { error, rule: None, parts: Vec::new() }], ..Checked::default() }
    }
}

/// Writes the definition in `value`, over `old` if there is one.
///
/// # Errors
/// Go's text for what is no definition.
pub fn define(value: &Value, old: Option<&Value>) -> Result<Checked, String> {
    let (mut new, findings) = definition::decode(value)?;
    defaults::set_defaults(&mut new);
    let object = new.encode();
    let (errors, warnings) = match old {
        None => {
            strategy::prepare_create(&mut new);
            (validate::create(&new), warnings::create(&new))
        }
        Some(old) => {
            let (mut old, _) = definition::decode(old)?;
            defaults::set_defaults(&mut old);
            for definition in [&mut new, &mut old] {
                definition.metadata.make_object().insert("resourceVersion", Value::from("1"));
            }
            strategy::prepare_update(&mut new, &old);
            (validate::update(&new, &old), warnings::update(&new, &old))
        }
    };
    Ok(Checked::plain(object, errors, findings.unknown, warnings))
}

/// Creates `object`, which is of `kind`.
pub fn create(kind: &Kind, object: &Value, options: Options) -> Checked {
    let (version, object, unknown) = match decode(kind, object, Origin::Request) {
        Ok(decoded) => decoded,
        Err(error) => return Checked::refused(object.clone(), *error),
    };
    let mut new = prepare(version, &object);
    let metadata = metadata_mut(&mut new);
    if metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty()
        && let Some(base) = metadata.get("generateName").and_then(Value::as_str).filter(|base| !base.is_empty())
    {
        let name = format!("{base}xxxxx");
        metadata.insert("name", Value::from(name));
    }
    write::prepare_create(version, &mut new);
    let mut runs = Vec::new();
    let mut errors = write::validate_create_observed(version, &new, &mut |run| runs.push(note(version, run, options)));
    if errors.is_empty() {
        let own = new.get("metadata").unwrap_or(&Value::Null);
        errors = object_meta::validate(own, version.is_namespaced(), names::is_path_segment, &METADATA);
    }
    if errors.is_empty() && !matches!(new.str_at(&["metadata", "resourceVersion"]), "" | "0") {
        let path = METADATA.child("resourceVersion");
        errors.push(Error::forbidden(&path, "resourceVersion should not be set on objects to be created"));
    }
    let mut warnings = write::warnings(&new, None);
    warnings.extend(version.deprecation_warning.clone());
    let object = answered(kind, version, object);
    Checked { object, errors: assign(errors, &mut runs), unknown, warnings, ratcheted: Vec::new(), runs }
}

/// Writes `object`, which is of `kind`, over `old`.
pub fn update(kind: &Kind, object: &Value, old: &Value, options: Options) -> Checked {
    let (version, object, unknown) = match decode(kind, object, Origin::Request) {
        Ok(decoded) => decoded,
        Err(error) => return Checked::refused(object.clone(), *error),
    };
    let has_other_version = old.str_at(&["apiVersion"]) != version.api_version();
    let mut old = match stored(kind, old, version) {
        Ok(old) => old,
        Err(error) => return Checked::refused(object, unreadable("metadata", error)),
    };
    place(version, &mut old);
    let revision = match old.str_at(&["metadata", "resourceVersion"]) {
        "" => "1".to_owned(),
        revision => revision.to_owned(),
    };
    let mut new = object.clone();
    place(version, &mut new);
    metadata_mut(&mut old).insert("resourceVersion", Value::from(revision.clone()));
    metadata_mut(&mut new).insert("resourceVersion", Value::from(revision));
    keep(&mut new, &old, &["generation"]);
    match options.is_status {
        true => write::prepare_status_update(&mut new, &old),
        false => write::prepare_update(version, &mut new, &old),
    }
    keep(&mut new, &old, &["creationTimestamp", "deletionTimestamp", "uid", "deletionGracePeriodSeconds"]);
    metadata_mut(&mut new).remove("selfLink");
    let own = new.get("metadata").unwrap_or(&Value::Null);
    let mut errors = object_meta::validate(own, version.is_namespaced(), names::is_path_segment, &METADATA);
    errors.extend(object_meta::validate_update(own, old.get("metadata").unwrap_or(&Value::Null), &METADATA));
    let (mut runs, mut ratcheted) = (Vec::new(), Vec::new());
    let mut observe = |run: Run<'_, '_>| runs.push(note(version, run, options));
    errors.extend(match options.is_status {
        true => write::validate_status_update_observed(version, &new, &old, &mut ratcheted, &mut observe),
        false => write::validate_update_observed(version, &new, &old, &mut ratcheted, &mut observe),
    });
    let mut warnings = if options.is_status { Vec::new() } else { write::warnings(&new, Some(&old)) };
    warnings.extend(version.deprecation_warning.clone());
    if has_other_version && has_webhook(kind) {
        warnings.push("the old object is of another version, and no webhook was asked to convert it".to_owned());
    }
    let errors = assign(errors.distinct(), &mut runs);
    let object = answered(kind, version, object);
    Checked { object, errors, unknown, warnings, ratcheted, runs }
}

/// An object as it was written, stored, and read again in `version`. Conversion changes the version and nothing else, as it
/// does without a webhook; what a version does not specify is lost on the way.
fn stored(kind: &Kind, object: &Value, version: &ServedVersion) -> Result<Value, String> {
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
    match is_known {
        // Defaults were those of the stored version.
        true => _ = write::coerce(&mut object, &kind.versions, Origin::Store)?,
        false => _ = write::decode(&mut object, &kind.versions, Origin::Store)?,
    }
    Ok(object)
}

/// What a server answers with: an object that is stored in another version has gained and lost what that version makes of
/// it. What a webhook makes of it is not known.
fn answered(kind: &Kind, version: &ServedVersion, object: Value) -> Value {
    if version.storage || has_webhook(kind) {
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

fn has_webhook(kind: &Kind) -> bool {
    kind.definition.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook")
}

const METADATA: Path<'static> = Path::new("metadata");

type DecodedObject<'k> = (&'k ServedVersion, Value, Vec<String>);

/// The version of an object, the object in its form, and the paths of unknown fields.
fn decode<'k>(kind: &'k Kind, object: &Value, origin: Origin) -> Result<DecodedObject<'k>, Box<Error>> {
    let Some(version) = kind.served(object) else {
        let served: Vec<String> =
            kind.versions.iter().filter(|version| version.served).map(|version| version.api_version()).collect();
        let served: Vec<&str> = served.iter().map(String::as_str).collect();
        let api_version = object.str_at(&["apiVersion"]);
        return Err(Box::new(Error::not_supported(&Path::new("apiVersion"), api_version, &served)));
    };
    let mut object = object.clone();
    match write::decode(&mut object, &kind.versions, origin) {
        Ok(unknown) => Ok((version, object, unknown)),
        // Go tells what it can't read in a sentence that names the field.
        Err(error) => Err(Box::new(unreadable("metadata", error))),
    }
}

fn unreadable(field: &str, detail: String) -> Error {
    Error { kind: ErrorType::TypeInvalid, field: field.to_owned(), bad_value: None, shown: None, detail }
}

/// A new object as it comes to validation: without what only a server sets, in the namespace that kubectl takes.
pub fn prepare(version: &ServedVersion, object: &Value) -> Value {
    let mut new = object.clone();
    wipe_system_fields(&mut new);
    place(version, &mut new);
    new
}

/// The namespace is the one that kubectl takes if none is named; what has none loses its own.
fn place(version: &ServedVersion, object: &mut Value) {
    let metadata = metadata_mut(object);
    if !version.is_namespaced() {
        metadata.remove("namespace");
    } else if metadata.get("namespace").and_then(Value::as_str).unwrap_or_default().is_empty() {
        metadata.insert("namespace", Value::from("default"));
    }
}

fn wipe_system_fields(object: &mut Value) {
    let metadata = metadata_mut(object);
    for name in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(name);
    }
}

/// The old object's metadata of these names stays.
fn keep(new: &mut Value, old: &Value, names: &[&str]) {
    let metadata = metadata_mut(new);
    for name in names {
        match old.at(&["metadata", name]) {
            Some(value) => _ = metadata.insert(*name, value.clone()),
            None if *name == "generation" => _ = metadata.remove(name),
            None => {}
        }
    }
}

fn metadata_mut(object: &mut Value) -> &mut crate::value::Map {
    object.make_object().entry("metadata").make_object()
}

fn note(version: &ServedVersion, run: Run<'_, '_>, options: Options) -> RuleRun {
    use crate::cel::eval::Value as Cel;
    let truth = match run.result {
        Ok(Cel::Bool(truth)) if !run.is_message => Some(*truth),
        _ => None,
    };
    let message = match run.result {
        Ok(Cel::String(text)) if run.is_message => Some(text.as_str().trim().to_owned()),
        _ => None,
    };
    let path = run.path.to_string();
    let is_wanted = options.traces || (options.explains && truth != Some(true));
    let parts = match is_wanted && !run.is_message {
        true => node_at(&version.structural, &path)
            .and_then(|(schema, is_resource)| Trace::new(run.rule, schema, is_resource))
            .map_or_else(Vec::new, |trace| trace.values(run.variables)),
        false => Vec::new(),
    };
    RuleRun { path, rule: run.rule.rule.clone(), cost: run.cost, is_message: run.is_message, truth, message, parts }
}

/// Gives each error the rule it comes from. Rules are run in the order of their errors.
fn assign(errors: ErrorList, runs: &mut [RuleRun]) -> Vec<Rejected> {
    let mut rejected: Vec<Rejected> =
        errors.into_vec().into_iter().map(|error| Rejected { error, rule: None, parts: Vec::new() }).collect();
    for index in 0..runs.len() {
        let run = &runs[index];
        if run.is_message || run.truth == Some(true) {
            continue;
        }
        let is_here = |field: &str| {
            let path = if run.path == "<nil>" { "" } else { run.path.as_str() };
            field == run.path || field.strip_prefix(path).is_some_and(|rest| path.is_empty() || rest.starts_with('.'))
        };
        let said = runs.get(index + 1).filter(|next| next.is_message).and_then(|next| next.message.as_deref());
        let fits = |detail: &str| match said {
            Some(said) if !said.is_empty() => detail == said,
            _ => true,
        };
        let error = rejected.iter_mut().find(|rejected| {
            rejected.rule.is_none()
                && is_rule_error(&rejected.error)
                && is_here(&rejected.error.field)
                && fits(&rejected.error.detail)
        });
        if let Some(rejected) = error {
            rejected.rule = Some(run.rule.clone());
            rejected.parts = run.parts.clone();
        }
    }
    rejected
}

/// Whether an error may come from a rule: values that the schema itself refuses are told in its own words.
fn is_rule_error(error: &Error) -> bool {
    let reasons = [ErrorType::Invalid, ErrorType::Forbidden, ErrorType::Required, ErrorType::Duplicate];
    reasons.contains(&error.kind) && !error.detail.contains(" in body ")
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
