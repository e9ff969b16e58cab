//! Computes the result of a patch: JSON Patch, JSON Merge Patch, strategic merge patch and server-side apply. No I/O.
//!
//! Input: the live object and the patch. Output: the object, or the Status that refuses it, and warnings.

use std::cell::OnceCell;

use bytes::Bytes;

use crate::apply::{Applied, ApplyError, FieldManager};
use crate::crd::write::ReadError;
use crate::kinds::{self, layout};
use crate::meta::api_version::{ApiVersionError, split_api_version};
use crate::meta::field::{self, Path};
use crate::meta::minor::Minor;
use crate::meta::scheme::SchemeError;
use crate::meta::type_meta::{MissingKind, type_meta};
use crate::meta::unmarshal::UnmarshalError;
use crate::meta::{Cause, Status};
use crate::object;
use crate::patch::strategic_merge::{self, MergeError};
use crate::patch::{PatchError, json_patch, merge_patch};
use crate::schema::strict::{first_in_document_order, in_document_order};
use crate::types::Message;
use crate::value::{Map, Value, json, json_type, yaml};
use crate::write::metadata::{check_name, ensure_namespace};

use super::decode::{FieldValidation, add_strict_warning, not_convertible, tell_strict};
use super::{Target, Warnings};

/// The type of a patch, by its media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`, for built-in kinds
    StrategicMerge,
    /// `application/apply-patch+yaml`
    Apply,
}

/// The parameters of a PATCH, besides its target.
pub struct PatchRequest {
    pub patch_type: PatchType,
    pub bytes: Bytes,
    pub field_validation: FieldValidation,
    pub manager: String,
    pub force: bool,
    pub dry_run: bool,
    /// The fields of the options that were sent, for admission.
    pub options: Value,
}

/// The result of a patch of the existing object.
pub(super) fn patched(
    (target, request): (&Target, &PatchRequest),
    fields: &FieldManager<'_>,
    live: Option<&Value>,
    now: &str,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let present = live.unwrap_or(&Value::Null);
    let mut object = match request.patch_type {
        PatchType::Apply => applied(target, fields, live, request, now, warnings)?,
        other => {
            let merge = if other == PatchType::StrategicMerge { merge_strategically } else { patch_object };
            let mut patched = merge(target, present, request, warnings)?;
            target.resource.strategy.set_times(&mut patched, now);
            target.resource.strategy.drop_empty(&mut patched);
            fields.update_sent(Some(present), patched, warnings.sent_empty(), &request.manager, now)
        }
    };
    if live.is_none() {
        check_uid_of_absent(target, &object)?;
    }
    ensure_namespace(&mut object, &target.namespace)?;
    check_name(&object, &target.name)?;
    Ok(object)
}

/// The result of an apply to the existing object, with its defaults.
pub(super) fn applied(
    target: &Target,
    fields: &FieldManager<'_>,
    live: Option<&Value>,
    request: &PatchRequest,
    now: &str,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let (applied, repeated) = decode_applied(target.version.minor, &request.bytes)?;
    let merged = fields.apply(live, &applied, &request.manager, request.force, now);
    let merged = merged.map_err(|error| apply_failed(&error))?;
    note_strict_apply(target.version.minor, request, &repeated, warnings)?;
    set_defaults(target, &applied, merged, warnings)
}

/// An applied object with a uid can't be created.
fn check_uid_of_absent(target: &Target, object: &Value) -> Result<(), Status> {
    match object.str_at(&["metadata", "uid"]) {
        "" => Ok(()),
        uid => Err(target.conflict(&format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        ))),
    }
}

/// From this version on, a patch is checked before the object: that it is not a document is reported first, with a
/// short message.
pub(super) const CHECKS_DOCUMENTS: Minor = Minor::of(37);

/// The name of the applied document in messages.
fn applied_document(minor: Minor) -> &'static str {
    if minor < CHECKS_DOCUMENTS { "YAML" } else { "patch" }
}

/// The live object with a JSON or merge patch applied, in the form of its version.
pub(super) fn patch_object(
    target: &Target,
    live: &Value,
    request: &PatchRequest,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let direct = (request.patch_type == PatchType::Merge).then(|| merge_patch::merged(live, &request.bytes)).flatten();
    // Mostly, only errors need the text.
    let text = OnceCell::new();
    let written = || text.get_or_init(|| apply_to_json(live, request).map_or_else(|_| String::new(), |(text, _)| text));
    let invalid = |detail: &str| unfit(written(), detail);
    let (mut patched, repeated, mut strict) = match direct {
        Some(patched) => (patched, Vec::new(), Vec::new()),
        None => {
            let (merged, strict) = apply_to_json(live, request)?;
            let merged = text.get_or_init(|| merged);
            let decoded = json::decode_strict(merged.as_bytes()).map_err(|error| invalid(&error.to_string()))?;
            (decoded.0, decoded.1, strict)
        }
    };
    let (api_version, kind) = type_meta(&patched).map_err(|error| invalid(&error.to_string()))?;
    if target.resource.strategy.may_leave_type_out() {
        check_convertible(target, &api_version, &kind).map_err(|error| invalid(&error.to_string()))?;
        if api_version.is_empty() {
            strict.extend(unknown_without_version(&patched));
            let refusal = tell_strict(&strict, request.field_validation, warnings);
            return refusal.map_or_else(|| Ok(object! {}), |error| Err(invalid(&error)));
        }
        patched.make_object().insert("kind", Value::from(&*target.version.names.kind));
    } else if kind.is_empty() {
        return Err(invalid(&MissingKind::of(written().as_bytes()).to_string()));
    }
    let decoded = kinds::decode(target.resource.strategy, &target.version, patched, &target.resource.versions);
    let decoded = decoded.map_err(|error| match first_misfit(target, written()) {
        Some(first) => invalid(&first.to_string()),
        None => invalid(&error.to_string()),
    })?;
    if decoded.is_typed {
        if !repeated.is_empty() || !decoded.findings.unknown.is_empty() {
            strict.extend(in_document_order(written().as_bytes(), repeated, &decoded.findings))
        }
    } else {
        strict.extend(repeated.iter().map(ToString::to_string));
        strict.extend(decoded.findings.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    }
    if let Some(error) = tell_strict(&strict, request.field_validation, warnings) {
        return Err(invalid(&error));
    }
    warnings.note_empty(decoded.findings.empty);
    Ok(decoded.object)
}

/// Go's first error for the text of a patched object that does not fit its type.
fn first_misfit(target: &Target, text: &str) -> Option<UnmarshalError> {
    let named = kinds::type_of(&target.version.api_version(), &target.version.names.kind)?;
    let tree = json::decode(text.as_bytes()).ok()?;
    first_in_document_order(text.as_bytes(), named.faults(&tree))
}

/// The findings of strict decoding for an object without a version: Go decodes it into its internal type, which has no
/// JSON fields.
fn unknown_without_version(patched: &Value) -> Vec<String> {
    let names = patched.as_object().into_iter().flat_map(Map::iter).map(|(name, _)| name);
    names
        .filter(|name| !["apiVersion", "kind"].contains(name))
        .map(|name| format!("unknown field \"{name}\""))
        .collect()
}

/// Why a patched object is not one of its kind.
#[derive(Debug, thiserror::Error)]
enum ConvertibleError {
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    #[error(transparent)]
    Scheme(#[from] SchemeError),
}

/// Checks that a patch has not changed the object's type; the apiVersion or the kind may be left out.
fn check_convertible(target: &Target, api_version: &str, kind: &str) -> Result<(), ConvertibleError> {
    split_api_version(api_version)?;
    not_convertible(&target.version, api_version, kind).map_or(Ok(()), |error| Err(error.into()))
}

/// The live object with a strategic merge patch applied, in the form of its version.
pub(super) fn merge_strategically(
    target: &Target,
    live: &Value,
    request: &PatchRequest,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let strict = request.field_validation != FieldValidation::Ignore;
    let decoded = strategic_merge::StrategicMergePatch::decode(&request.bytes, strict);
    let (patch, mut errors) = decoded.map_err(|error| Status::bad_request(&error.to_string()))?;
    let version = &target.version;
    let message = kinds::message_of(&version.api_version(), &version.names.kind);
    let message = message.ok_or_else(Status::unprocessable)?;
    let patched = patch.apply(live, message).map_err(|error| match error {
        MergeError::Malformed(message) => Status::bad_request(message),
        MergeError::Unprocessable => Status::unprocessable(),
        MergeError::Failed(message) => Status::plain(500, &message),
    })?;
    let unfit = |detail: &str| {
        let error = field::Error::invalid(&Path::new("patch"), patch.printed(live, message), detail);
        Status::invalid("", "", "", &error.into())
    };
    let named = kinds::type_of(&version.api_version(), &version.names.kind);
    if let Some(error) = named.and_then(|named| named.restore_error(&patched)) {
        return Err(unfit(&error));
    }
    let told = named.filter(|_| strict);
    let unknown = told.map(|named| named.restore_unknown(version.minor, &patched)).unwrap_or_default();
    let mut patched = restored(patched, named);
    // Go decodes the result into its own type, whatever the patch changes or removes of the apiVersion and kind.
    if let Value::Object(fields) = &mut patched {
        fields.insert("apiVersion", version.api_version().into());
        fields.insert("kind", version.names.kind.as_str().into());
    }
    let decoded = kinds::decode(target.resource.strategy, version, patched, &target.resource.versions);
    let decoded = decoded.map_err(|error| match error {
        ReadError::Internal(why) => Status::plain(500, &why),
        error => unfit(&error.to_string()),
    })?;
    errors.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    if let Some(error) = tell_strict(&errors, request.field_validation, warnings) {
        return Err(unfit(&error));
    }
    warnings.note_empty(decoded.findings.empty);
    Ok(decoded.object)
}

/// The error for a patched object, as JSON, that does not fit its kind.
fn unfit(text: &str, detail: &str) -> Status {
    Status::invalid("", "", "", &field::Error::invalid(&Path::new("patch"), text, detail).into())
}

/// Applies a JSON or merge patch and returns the JSON text of the result, and the findings of strict decoding about the
/// patch.
fn apply_to_json(live: &Value, request: &PatchRequest) -> Result<(String, Vec<String>), Status> {
    let strict = request.field_validation != FieldValidation::Ignore;
    let layout = layout::of(live);
    let failed = |error: PatchError| match error {
        PatchError::Decode(_) | PatchError::Malformed(_) => Status::bad_request(&error.to_string()),
        PatchError::TooManyOperations(message) => Status::request_entity_too_large(&message),
        PatchError::Apply(_) | PatchError::Test(_) => Status::unprocessable(),
    };
    match request.patch_type {
        PatchType::Json => {
            let (patch, errors) = json_patch::Patch::decode(&request.bytes, strict).map_err(failed)?;
            Ok((patch.apply(live, layout).map_err(failed)?, errors))
        }
        _ => {
            let (patch, errors) = merge_patch::MergePatch::decode(&request.bytes, strict).map_err(failed)?;
            Ok((patch.apply(live, layout), errors))
        }
    }
}

/// The applied configuration: YAML, of which JSON is a subset. Also the findings of strict decoding.
pub(super) fn decode_applied(minor: Minor, bytes: &[u8]) -> Result<(Value, Vec<String>), Status> {
    let decoded = yaml::decode_strict(bytes);
    let what = applied_document(minor);
    let decoded = decoded.map_err(|error| format!("error decoding {what}: error converting YAML to JSON: {error}"));
    match decoded.map_err(|message| Status::bad_request(&message))? {
        (object @ Value::Object(_), repeated) => Ok((object, repeated)),
        (Value::Null, repeated) => Ok((object! {}, repeated)),
        (other, _) => {
            let found = json_type(&other);
            let message = format!(
                "error decoding {what}: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go \
                 value of type map[string]interface {{}}"
            );
            Err(Status::bad_request(&message))
        }
    }
}

/// In an apply, strict decoding only finds duplicate keys: unknown fields have already failed.
fn note_strict_apply(
    minor: Minor,
    request: &PatchRequest,
    repeated: &[String],
    warnings: &mut Warnings,
) -> Result<(), Status> {
    if request.field_validation == FieldValidation::Ignore {
        return Ok(());
    }
    let errors: Vec<String> = repeated.iter().map(|error| format!("error converting YAML to JSON: {error}")).collect();
    match request.field_validation {
        FieldValidation::Strict if !errors.is_empty() => {
            let what = applied_document(minor);
            Err(Status::bad_request(&format!("error strict decoding {what}: {}", errors.join("\n"))))
        }
        _ => {
            errors.iter().for_each(|error| add_strict_warning(error, warnings));
            Ok(())
        }
    }
}

/// A tree as Go decodes it into an object of the type: numbers that are too large lose their upper bits.
fn restored(mut tree: Value, message: Option<&'static Message>) -> Value {
    if let Some(message) = message {
        message.truncate_numbers(&mut tree);
    }
    tree
}

/// A changed object gets the defaults of its version, which no manager owns.
fn set_defaults(target: &Target, applied: &Value, merged: Applied, warnings: &mut Warnings) -> Result<Value, Status> {
    if !merged.is_changed {
        return Ok(merged.object);
    }
    let (version, strategy) = (&target.version, &target.resource.strategy);
    let (api_version, kind) = (version.api_version(), version.names.kind.as_str());
    let message = kinds::type_of(&api_version, kind);
    let unfit = message.and_then(|message| message.restore_error(&merged.object));
    let object = restored(merged.object, message);
    let mut is_internal = false;
    let defaulted = match unfit {
        Some(why) => Err(why),
        None => strategy.set_defaults(object, &target.resource.versions).map_err(|error| {
            is_internal = matches!(error, ReadError::Internal(_));
            error.to_string()
        }),
    };
    let decoded = defaulted.map_err(|error| match message {
        None => Status::plain(500, &error),
        Some(_) => {
            let (namespace, name) = (applied.str_at(&["metadata", "namespace"]), applied.str_at(&["metadata", "name"]));
            let group_version = if version.group.is_empty() { format!("/{api_version}") } else { api_version.clone() };
            let object = format!("({namespace}/{name}; {group_version}, Kind={kind})");
            if is_internal {
                return Status::plain(500, &format!("failed to convert to unversioned {object}: {error}"));
            }
            let what = format!("failed to convert new object {object} to proper version");
            let why = format!("unable to convert unstructured object to {group_version}, Kind={kind}: {error}");
            Status::plain(500, &format!("{what}: {why}"))
        }
    })?;
    warnings.note_empty(decoded.findings.empty);
    Ok(decoded.object)
}

/// The answer to a failed apply.
pub(super) fn apply_failed(error: &ApplyError) -> Status {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let mut status = Status::plain(409, &conflicts.to_string());
            status.reason = "Conflict".into();
            let causes = conflicts.told().0.into_iter().map(|conflict| Cause {
                reason: "FieldManagerConflict".into(),
                message: conflict.message(),
                field: conflict.field,
            });
            status.details.get_or_insert_default().causes = causes.collect();
            status
        }
        ApplyError::BadRequest(message) => Status::bad_request(message),
        ApplyError::Failed(message) => Status::plain(500, message),
    }
}
