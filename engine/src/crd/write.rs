//! How a custom resource is written, up to admission: decode, prepare, validate.
//!
//! Input: an object as a client sent it, or as it was stored. Output: the object in the form that is stored and answered, with
//! every error and warning that Kubernetes has for it. The registry, the command line and the vectors runner all call this;
//! it never reads a clock or a database.
//!
//! Source: the strategies of apiextensions-apiserver 1.37, and answers recorded from it.

use std::sync::Arc;

use thiserror::Error;

use super::ServedVersion;
use super::nested::{NestedError, nested_int, nested_str, split_path};
use crate::meta::api_version::{ApiVersionError, split_api_version};
use crate::meta::field::{self, ErrorList, ErrorSubject, ErrorType, Path};
use crate::meta::gate::Gate;
use crate::meta::unmarshal::UnmarshalError;
use crate::meta::{names, object_meta};
use crate::object;
use crate::schema::correlate::Correlated;
use crate::schema::default::TooLarge;
use crate::schema::pending::{Pending, pending};
use crate::schema::rules::{CostLimits, RuleEvaluation};
use crate::schema::structural::Structural;
use crate::schema::{coerce, default, list_type, prune, validate};
use crate::value::Value;

/// A receiver of each evaluation of a rule.
pub type Observe<'o, 'a> = &'o mut dyn FnMut(RuleEvaluation<'_, 'a>);

const METADATA: Path<'static> = Path::new("metadata");
const REPLICAS_MAX: i64 = i32::MAX as i64;

/// Why an object can't be decoded.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReadError {
    /// A value that does not fit its Go type.
    #[error(transparent)]
    Unmarshal(#[from] UnmarshalError),
    /// `apiVersion` or `kind` is not a text.
    #[error(transparent)]
    Nested(#[from] NestedError),
    /// `apiVersion` is not one.
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    /// A field of an embedded object has the wrong type.
    #[error(transparent)]
    Embedded(#[from] Box<field::Error>),
    /// The defaults are too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The kind's internal type can't represent it; the text is Go's.
    #[error("{0}")]
    Internal(String),
}

/// The origin of an object, which decides how strictly its metadata is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client: metadata of a wrong type is an error.
    Request,
    /// Admission: malformed metadata is dropped, nulls stay.
    Admission,
    /// The store: malformed metadata from before it was checked is dropped, and a missing generation is added.
    Store,
}

/// Brings `object` into the form of the version that it names: metadata as Go's `ObjectMeta` reads and writes it, unknown
/// fields pruned, needless nulls dropped, embedded metadata coerced, defaults set.
///
/// Returns the paths of unknown fields: of the metadata, of the object, of embedded metadata. `versions` are all
/// versions of the resource; of an object of another group or kind, only the metadata is read.
///
/// Errors are Go's texts, for a 400.
///
/// # Errors
///
/// The version is not served, metadata can't be read, or the defaults are too many.
pub fn decode(object: &mut Value, versions: &[Arc<ServedVersion>], origin: Origin) -> Result<Vec<String>, ReadError> {
    let Coerced { unknown, may_lack_defaults } = coerce_pending(object, versions, origin)?;
    if !may_lack_defaults {
        return Ok(unknown);
    }
    match (set_defaults(object, versions), origin) {
        (Err(error), Origin::Request) => Err(error.into()),
        // Stored objects are returned even if not all defaults could be set.
        _ => Ok(unknown),
    }
}

/// Whether [`decode`] would return `object` unchanged. It may be false even if so.
pub fn is_decoded(object: &Value, version: &ServedVersion) -> bool {
    !version.preserve_unknown_fields
        && is_of(object, version)
        && object.get("metadata").is_some_and(object_meta::is_decoded)
        && generation(object) > 0
        && pending(object, &version.structural).is_none()
}

/// Sets the defaults of the version that `object` names.
///
/// # Errors
///
/// The defaults are too large for an object that is stored.
pub fn set_defaults(object: &mut Value, versions: &[Arc<ServedVersion>]) -> Result<(), TooLarge> {
    match own_version(object, versions) {
        Some(version) => default::apply(object, &version.structural),
        None => Ok(()),
    }
}

/// [`decode`] without the defaults, for objects after conversion.
///
/// # Errors
///
/// The version is not served, or metadata can't be read.
pub fn coerce(object: &mut Value, versions: &[Arc<ServedVersion>], origin: Origin) -> Result<Vec<String>, ReadError> {
    coerce_pending(object, versions, origin).map(|coerced| coerced.unknown)
}

/// What coercion found.
struct Coerced {
    /// The paths of unknown fields.
    unknown: Vec<String>,
    /// False if no default is missing.
    may_lack_defaults: bool,
}

fn coerce_pending(object: &mut Value, versions: &[Arc<ServedVersion>], origin: Origin) -> Result<Coerced, ReadError> {
    // Wrong types of these fields are reported before anything else.
    let kind = nested_str(object, &["kind"])?;
    let api_version = nested_str(object, &["apiVersion"])?;
    let mut unknown = Vec::new();
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => None,
        Some(metadata) if object_meta::is_decoded(metadata) => None,
        Some(metadata) => match object_meta::decode(metadata) {
            Ok((metadata, fields)) => {
                unknown = fields.iter().map(|path| format!("metadata.{path}")).collect();
                Some(metadata)
            }
            Err(_) if origin != Origin::Request => Some(object_meta::decode_leniently(metadata)),
            Err(error) => return Err(error.into()),
        },
    };
    let (group, _) = split_api_version(api_version.unwrap_or_default())?;
    let Some(first) = versions.first() else { return Ok(Coerced { unknown, may_lack_defaults: true }) };
    let is_own = group == first.group && kind == Some(&first.names.kind);
    let mut may_lack_defaults = true;
    if is_own {
        let nothing_specified = Structural::default();
        let version = own_version(object, versions);
        let schema = version.map_or(&nothing_specified, |version| &version.structural);
        let prunes = !version.is_some_and(|version| version.preserve_unknown_fields);
        let to_do = if prunes { pending(object, schema) } else { Pending::UNKNOWN };
        may_lack_defaults = to_do.defaults || to_do.removals;
        if to_do.removals {
            if prunes {
                unknown.extend(prune::prune(object, schema, true));
                if origin != Origin::Admission {
                    default::prune_non_nullable_nulls(object, schema);
                }
            }
            let drop_invalid = origin != Origin::Request;
            unknown.extend(coerce::coerce(&Path::ROOT, object, schema, false, drop_invalid)?);
        }
    }
    if let (Some(metadata), Value::Object(fields)) = (metadata, &mut *object) {
        fields.insert("metadata", metadata);
    }
    let has_metadata = matches!(object.get("metadata"), Some(Value::Object(_)));
    if is_own && origin == Origin::Store && has_metadata && generation(object) == 0 {
        set_generation(object, 1);
    }
    Ok(Coerced { unknown, may_lack_defaults })
}

fn is_of(object: &Value, version: &ServedVersion) -> bool {
    version.names.kind == object.str_at(&["kind"]) && version.is_named(object.str_at(&["apiVersion"]))
}

fn own_version<'v>(object: &Value, versions: &'v [Arc<ServedVersion>]) -> Option<&'v ServedVersion> {
    versions.iter().map(Arc::as_ref).find(|version| is_of(object, version))
}

/// Prepares an object for creation: drops the status if `/status` owns it, and sets generation 1.
pub fn prepare_create(version: &ServedVersion, object: &mut Value) {
    let Value::Object(fields) = object else { return };
    if version.status {
        fields.remove("status");
    }
    set_generation(object, 1);
}

/// Prepares a write to the main resource: keeps the old status if `/status` owns it; any change outside the metadata
/// raises the generation.
pub fn prepare_update(version: &ServedVersion, new: &mut Value, old: &Value) {
    let Value::Object(fields) = new else { return };
    if version.status {
        match old.get("status") {
            Some(status) => _ = fields.insert("status", status.clone()),
            None => _ = fields.remove("status"),
        }
    }
    if differs_beside_metadata(new, old) {
        set_generation(new, generation(old).saturating_add(1));
    }
}

/// Prepares a write to `/status`: everything except the status and the managed fields stays as in the old object.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    let status = new.as_object_mut().and_then(|fields| fields.remove("status"));
    let managed_fields =
        new.at_mut(&["metadata"]).and_then(Value::as_object_mut).and_then(|m| m.remove("managedFields"));
    *new = old.clone();
    let Value::Object(fields) = new else { return };
    match status {
        Some(status) => _ = fields.insert("status", status),
        None => _ = fields.remove("status"),
    }
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        match managed_fields {
            Some(entries) => _ = metadata.insert("managedFields", entries),
            None => _ = metadata.remove("managedFields"),
        }
    }
}

/// Every error of an object to be created.
pub fn validate_create(version: &ServedVersion, object: &Value) -> ErrorList {
    validate_create_observed(version, object, &mut |_| {})
}

/// [`validate_create`]; `observe` is called with each evaluation of a rule.
pub fn validate_create_observed<'a>(
    version: &'a ServedVersion,
    object: &'a Value,
    observe: Observe<'_, 'a>,
) -> ErrorList {
    let mut errors = validate_type_meta(version, object);
    // A wrong type only skips the checks of this block.
    if errors.is_empty() {
        errors.extend(object_meta::validate(
            metadata(object),
            version.is_namespaced(),
            names::name_is_dns1123_subdomain,
            &METADATA,
        ));
        errors.extend(validate::validate_in(version.minor, &Path::ROOT, object, &version.structural));
        validate_scale_spec(version, object, &mut errors);
        validate_scale_status(version, object, &mut errors);
    }
    errors.extend(coerce::validate_embedded(&Path::ROOT, object, &version.structural, false));
    errors.extend(list_type::validate(&Path::ROOT, object, &version.structural));
    run_rules(version, object, None, &mut errors, &mut Vec::new(), observe);
    errors
}

/// Every error of a write to the main resource over `old`. Failures of rules that are forgiven, as `new` did not change
/// the value, are added to `ratcheted`.
pub fn validate_update(
    version: &ServedVersion,
    new: &Value,
    old: &Value,
    ratcheted: &mut Vec<field::Error>,
) -> ErrorList {
    validate_update_observed(version, new, old, ratcheted, &mut |_| {})
}

/// [`validate_update`]; `observe` is called with each evaluation of a rule.
pub fn validate_update_observed<'a>(
    version: &'a ServedVersion,
    new: &'a Value,
    old: &'a Value,
    ratcheted: &mut Vec<field::Error>,
    observe: Observe<'_, 'a>,
) -> ErrorList {
    let mut errors = validate_type_meta(version, new);
    if errors.is_empty() {
        errors.extend(validate_metadata_update(new, old));
        errors.extend(validate::validate_update_in(version.minor, &Path::ROOT, new, old, &version.structural));
        validate_scale_spec(version, new, &mut errors);
        validate_scale_status(version, new, &mut errors);
    }
    errors.extend(coerce::validate_embedded(&Path::ROOT, new, &version.structural, false));
    validate_list_types_update(version, new, old, &mut errors);
    run_rules(version, new, Some(old), &mut errors, ratcheted, observe);
    errors
}

/// Every error of a write to `/status` over `old`; `ratcheted` as for [`validate_update`].
pub fn validate_status_update(
    version: &ServedVersion,
    new: &Value,
    old: &Value,
    ratcheted: &mut Vec<field::Error>,
) -> ErrorList {
    validate_status_update_observed(version, new, old, ratcheted, &mut |_| {})
}

/// [`validate_status_update`]; `observe` is called with each evaluation of a rule.
pub fn validate_status_update_observed<'a>(
    version: &'a ServedVersion,
    new: &'a Value,
    old: &'a Value,
    ratcheted: &mut Vec<field::Error>,
    observe: Observe<'_, 'a>,
) -> ErrorList {
    let mut errors = validate_type_meta(version, new);
    if errors.is_empty() {
        errors.extend(validate_metadata_update(new, old));
        validate_status(version, new, old, &mut errors);
        validate_scale_status(version, new, &mut errors);
    }
    validate_list_types_update(version, new, old, &mut errors);
    run_rules(version, new, Some(old), &mut errors, ratcheted, observe);
    errors
}

fn validate_status(version: &ServedVersion, new: &Value, old: &Value, errors: &mut ErrorList) {
    if let (Some(status), Some(schema)) = (new.get("status"), version.structural.properties.get("status")) {
        let old_status = old.get("status").unwrap_or(&Value::Null);
        errors.extend(validate::validate_update_in(version.minor, &Path::new("status"), status, old_status, schema));
    }
}

/// Warnings about finalizers that `new` has and `old` had not.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let added = object_meta::added_finalizers(metadata(new), old.map_or(&Value::Null, metadata));
    added.into_iter().flat_map(finalizer_warnings).collect()
}

fn finalizer_warnings(name: &str) -> Vec<String> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let quoted = crate::value::go_quote(name);
    let mut warnings: Vec<String> = names::is_qualified_name(name)
        .into_iter()
        .map(|message| format!("metadata.finalizers: {quoted}: {message}"))
        .collect();
    if !name.contains('/') && !STANDARD.contains(&name) {
        let how = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(format!(
            "metadata.finalizers: {quoted}: prefer a domain-qualified finalizer name{how} to avoid accidental conflicts \
             with other finalizer writers"
        ));
    }
    warnings
}

fn metadata(object: &Value) -> &Value {
    object.get("metadata").unwrap_or(&Value::Null)
}

fn generation(object: &Value) -> i64 {
    object.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default()
}

fn set_generation(object: &mut Value, generation: i64) {
    let Value::Object(fields) = object else { return };
    let metadata = fields.entry("metadata");
    if metadata.is_null() {
        *metadata = object! {};
    }
    if let Value::Object(metadata) = metadata {
        metadata.insert("generation", Value::Int(generation));
    }
}

/// Whether there is a difference outside the metadata.
pub fn differs_beside_metadata(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return new != old };
    let beside = |map: &crate::value::Map| map.len() - usize::from(map.contains_key("metadata"));
    beside(new) != beside(old) || new.iter().any(|(name, value)| name != "metadata" && old.get(name) != Some(value))
}

fn validate_type_meta(version: &ServedVersion, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let kind = object.str_at(&["kind"]);
    if kind != version.names.kind {
        errors.push(field::Error::invalid(&Path::new("kind"), kind, format!("must be {}", version.names.kind)));
    }
    let api_version = object.str_at(&["apiVersion"]);
    if !version.is_named(api_version) {
        let detail = format!("must be {}", version.api_version());
        errors.push(field::Error::invalid(&Path::new("apiVersion"), api_version, detail));
    }
    errors
}

fn validate_metadata_update(new: &Value, old: &Value) -> ErrorList {
    object_meta::validate_update(metadata(new), metadata(old), &METADATA)
}

/// List-type errors of the new object count only if the old one had none.
fn validate_list_types_update(version: &ServedVersion, new: &Value, old: &Value, errors: &mut ErrorList) {
    let found = list_type::validate(&Path::ROOT, new, &version.structural);
    if !found.is_empty() && list_type::validate(&Path::ROOT, old, &version.structural).is_empty() {
        errors.extend(found);
    }
}

fn validate_scale_spec(version: &ServedVersion, object: &Value, errors: &mut ErrorList) {
    if let Some(scale) = &version.scale {
        validate_replicas(&scale.spec_replicas_path, object, errors);
    }
}

fn validate_scale_status(version: &ServedVersion, object: &Value, errors: &mut ErrorList) {
    let Some(scale) = &version.scale else { return };
    validate_replicas(&scale.status_replicas_path, object, errors);
    if let Some(path) = &scale.label_selector_path
        && let Err(error) = nested_str(object, &split_path(path))
    {
        errors.push(field::Error::invalid(&Path::new(path), "", error.to_string()));
    }
}

fn validate_replicas(path: &str, object: &Value, errors: &mut ErrorList) {
    let at = Path::new(path);
    match nested_int(object, &split_path(path)) {
        Err(error) => errors.push(field::Error::invalid(&at, 0, error.to_string())),
        Ok(Some(replicas)) if replicas < 0 => {
            errors.push(field::Error::invalid(&at, replicas, "should be a non-negative integer"));
        }
        Ok(Some(replicas)) if replicas > REPLICAS_MAX => {
            errors.push(field::Error::invalid(
                &at,
                replicas,
                format!("should be less than or equal to {REPLICAS_MAX}"),
            ));
        }
        Ok(_) => {}
    }
}

/// Runs the rules. They don't run over an object with a broken structure, and the answer says so.
fn run_rules<'a>(
    version: &'a ServedVersion,
    new: &'a Value,
    old: Option<&'a Value>,
    errors: &mut ErrorList,
    ratcheted: &mut Vec<field::Error>,
    observe: Observe<'_, 'a>,
) {
    const BLOCKING: [ErrorType; 5] =
        [ErrorType::NotSupported, ErrorType::Required, ErrorType::TooLong, ErrorType::TooMany, ErrorType::TypeInvalid];
    let rules = version.rules();
    if rules.is_empty() {
        return;
    }
    if errors.has_any(&BLOCKING) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                      complete validation";
        errors.push(field::Error::invalid(&Path::ROOT, Value::Null, detail).about(ErrorSubject::SkippedRules));
        return;
    }
    let ratchets = version.minor.opens(Gate::CrdValidationRatcheting);
    let correlated = old.filter(|_| ratchets).map(|old| Correlated::new(new, old, &version.structural));
    let findings = rules.evaluate(&Path::ROOT, new, old, correlated.as_ref(), CostLimits::default(), observe);
    errors.extend(findings.errors);
    ratcheted.extend(findings.ratcheted);
}
