//! A Scale, which represents two fields of another object: read from it, changed, and written back. No I/O.
//!
//! Built-in kinds have Go's types and convert to and from Scale, which fails for custom ones.
//!
//! Source: `ScaleREST` of apiextensions-apiserver 1.37, and of `pkg/registry/apps/deployment/storage`.

use std::fmt;
use std::sync::Arc;

use crate::apply::{FieldManager, PathElement, ScaleFields};
use crate::crd::Scale;
use crate::crd::nested::{set_nested, split_path};
use crate::meta::field::{Error, Path};
use crate::meta::minor::Minor;
use crate::meta::{Status, names, object_meta};
use crate::value::{Value, go_quote};
use crate::write::metadata::{check_name, ensure_namespace, metadata_mut};
use crate::write::scale::{API_VERSION, KIND, of_object, set_replicas};

use super::built_in::SCALE;
use super::convert::Conversions;
use super::patched::{
    PatchRequest, PatchType, applied, apply_failed, decode_applied, merge_strategically, patch_object,
};
use super::{Target, Warnings};

/// The replicas of an object without replicas, while it is changed: the change must set them.
const NOT_SET: i32 = i32::MIN;
/// Go's message for a Scale that was created by an apply.
const NOT_CONVERTED: &str = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1";

/// How a Scale is changed.
pub(super) enum ScaleRequest<'a> {
    /// It is replaced.
    Put {
        scale: &'a Value,
        /// Whether the Scale has an apiVersion; true for a built-in kind, whose scheme implies it.
        names_version: bool,
        manager: &'a str,
    },
    Patch(&'a PatchRequest),
}

/// The Scale of `object`. A missing replicas field is a 500, as in the reference.
pub(super) fn read(target: &Target, object: &Value) -> Result<Value, Status> {
    let scale = declared(target)?;
    let (value, found) = of_object(scale, object).map_err(|error| Status::plain(500, &error.to_string()))?;
    if found {
        Ok(value)
    } else {
        Err(Status::internal_error(&format!(
            "the spec replicas field {} does not exist",
            go_quote(&scale.spec_replicas_path)
        )))
    }
}

/// The Scale of `object`, whether or not it has the replicas field.
pub(super) fn shown(target: &Target, object: &Value) -> Result<Value, Status> {
    of_object(declared(target)?, object).map(|(scale, _)| scale).map_err(|error| Status::plain(500, &error.to_string()))
}

/// Writes the replicas of a changed Scale into the object that it represents.
pub(super) fn write_back(target: &Target, scale: &Value, object: &mut Value) -> Result<(), Status> {
    let replicas = scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or_default();
    let path = split_path(&declared(target)?.spec_replicas_path);
    set_nested(object, &path, Value::Int(replicas)).map_err(|error| Status::plain(500, &error.to_string()))
}

pub(super) fn declared(target: &Target) -> Result<&Scale, Status> {
    target.version.scale.as_ref().ok_or_else(|| target.not_found())
}

/// The same object as a [`Target`] of the Scale kind.
pub(super) fn as_scale(target: &Target) -> Target {
    Target { resource: Arc::clone(&SCALE), version: Arc::clone(SCALE.storage()), ..target.clone() }
}

/// The object with the replicas that result from a request on its Scale.
pub(super) fn scaled(
    (target, request): (&Target, &ScaleRequest<'_>),
    live: &Value,
    now: &str,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let scale = declared(target)?;
    let paths = replicas_paths(target);
    let failed = |error: &dyn fmt::Display| Status::plain(500, &error.to_string());
    let fields = ScaleFields::of(live, &paths).map_err(|error| failed(&error))?;
    let (mut present, found) = of_object(scale, live).map_err(|error| failed(&error))?;
    if !found {
        set_replicas(&mut present, NOT_SET.into());
    }
    if let Some(entries) = fields.to_scale() {
        metadata_mut(&mut present).insert("managedFields", entries);
    }
    let wanted = make_scale(target, &present, request, now, warnings)?;
    if !is_custom(target) {
        check(target, &wanted, live)?;
    }
    let replicas = wanted.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or_default();
    if replicas == i64::from(NOT_SET) {
        let path = go_quote(&scale.spec_replicas_path);
        return Err(Status::bad_request(&format!("the spec replicas field {path} cannot be empty")));
    }
    let mut object = live.clone();
    set_nested(&mut object, &split_path(&scale.spec_replicas_path), Value::Int(replicas))
        .map_err(|error| failed(&error))?;
    let resource_version = wanted.str_at(&["metadata", "resourceVersion"]);
    if !resource_version.is_empty() {
        metadata_mut(&mut object).insert("resourceVersion", Value::from(resource_version));
    }
    let entries = fields.to_parent(&wanted, &target.version.api_version());
    match entries.map_err(|error| failed(&error))? {
        Some(entries) => _ = metadata_mut(&mut object).insert("managedFields", entries),
        None => _ = metadata_mut(&mut object).remove("managedFields"),
    }
    Ok(object)
}

pub(super) fn is_custom(target: &Target) -> bool {
    target.resource.definition.is_some()
}

/// The checks of the reference for the Scale of a built-in kind. A PUT with another uid was refused before.
fn check(target: &Target, scale: &Value, live: &Value) -> Result<(), Status> {
    let metadata = scale.get("metadata").unwrap_or(&Value::Null);
    let name_check = names::name_is_dns1123_subdomain;
    let mut errors =
        object_meta::validate(metadata, target.version.is_namespaced(), name_check, &Path::new("metadata"));
    let replicas = scale.at(&["spec", "replicas"]).and_then(Value::as_i64).unwrap_or_default();
    if replicas < 0 {
        let spec = Path::new("spec");
        errors.push(Error::invalid(&spec.child("replicas"), replicas, "must be greater than or equal to 0"));
    }
    if !errors.is_empty() {
        return Err(Status::invalid("autoscaling", KIND, &target.name, &errors));
    }
    let (wanted, found) = (scale.str_at(&["metadata", "uid"]), live.str_at(&["metadata", "uid"]));
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
    let (group, plural) = (&target.version.group, &target.version.names.plural);
    Err(Status::conflict(group, &format!("{plural}/scale"), &target.name, &why))
}

/// The Scale after the change, with its managedFields.
fn make_scale(
    target: &Target,
    present: &Value,
    request: &ScaleRequest<'_>,
    now: &str,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let is_custom = is_custom(target);
    let target = &as_scale(target);
    let conversions = Conversions::new(&target.resource);
    let fields = target.resource.field_manager(&target.version, target.subresource, &conversions);
    let request = match request {
        ScaleRequest::Put { scale, names_version: true, manager } => {
            return Ok(fields.update(Some(present), (*scale).clone(), manager, now));
        }
        // Without its version the reference can't determine who owns the replicas of a custom resource, and keeps the
        // owners.
        ScaleRequest::Put { scale, .. } => {
            let mut scale = (*scale).clone();
            let kept = present.at(&["metadata", "managedFields"]).cloned();
            metadata_mut(&mut scale).insert("managedFields", kept.unwrap_or(Value::Null));
            return Ok(scale);
        }
        ScaleRequest::Patch(request) => *request,
    };
    let mut scale = match request.patch_type {
        PatchType::Apply if is_custom => apply_scale(target.version.minor, &fields, present, request, now)?,
        PatchType::Apply => applied(target, &fields, Some(present), request, now, warnings)?,
        PatchType::StrategicMerge => {
            let patched = merge_strategically(target, present, request, warnings)?;
            fields.update(Some(present), patched, &request.manager, now)
        }
        _ => {
            let patched = patch_object(target, present, request, warnings)?;
            fields.update(Some(present), patched, &request.manager, now)
        }
    };
    ensure_namespace(&mut scale, &target.namespace)?;
    check_name(&scale, &target.name)?;
    Ok(scale)
}

/// Applies to a Scale. Go then fails to convert the result, so only an apply that changes nothing succeeds.
fn apply_scale(
    minor: Minor,
    fields: &FieldManager<'_>,
    present: &Value,
    request: &PatchRequest,
    now: &str,
) -> Result<Value, Status> {
    let (applied, _) = decode_applied(minor, &request.bytes)?;
    let is_scale = (applied.str_at(&["apiVersion"]), applied.str_at(&["kind"])) == (API_VERSION, KIND);
    if is_scale && present.at(&["metadata", "managedFields"]).is_none() {
        return Err(Status::plain(
            500,
            &format!(
                "failed to create manager for existing fields: failed to convert live object (/; {API_VERSION}, \
                 Kind={KIND}) {NOT_CONVERTED}"
            ),
        ));
    }
    let merged = fields.apply(Some(present), &applied, &request.manager, request.force, now);
    let merged = merged.map_err(|error| apply_failed(&error))?;
    if !merged.is_changed {
        return Ok(merged.object);
    }
    let (namespace, name) = (applied.str_at(&["metadata", "namespace"]), applied.str_at(&["metadata", "name"]));
    let message =
        format!("failed to convert new object ({namespace}/{name}; {API_VERSION}, Kind={KIND}) {NOT_CONVERTED}");
    Err(Status::plain(500, &message))
}

/// The path of the replicas in each version.
fn replicas_paths(target: &Target) -> Vec<(String, Option<Vec<PathElement>>)> {
    let versions = target.resource.versions.iter().map(|version| {
        let path = version
            .scale
            .as_ref()
            .map(|scale| split_path(&scale.spec_replicas_path).into_iter().map(PathElement::field).collect());
        (version.api_version(), path)
    });
    versions.collect()
}
