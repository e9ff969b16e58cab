//! `/scale`: an autoscaling/v1 Scale that stands for two fields of a custom resource.
//!
//! Source: `ScaleREST` of apiextensions-apiserver 1.37.

use crate::apply::{ConvertError, FieldManager, PathElement, ResetFields, ScaleFields, TypeSchema, Versions};
use crate::auth::UserInfo;
use crate::crd::Scale;
use crate::crd::nested::{nested_int, nested_str, set_nested, split_path};
use crate::meta::Status;
use crate::object;
use crate::protobuf;
use crate::value::{Value, go_quote, json};

use super::create::metadata_mut;
use super::decode::{json_type, not_registered, type_meta};
use super::patch::{apply_failed, apply_to_json, decode_applied, unfit};
use super::update::{Change, check_name};
use super::{Body, Format, PatchRequest, PatchType, Registry, Subresource, Target, UpdateRequest, Warnings, Written};

const API_VERSION: &str = "autoscaling/v1";
const KIND: &str = "Scale";
/// What Go says of a body whose type it does not find.
const NO_SCALE: &str = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";

/// What is to become of a Scale.
pub(super) enum ScaleChange<'a> {
    /// It is replaced.
    Put(&'a Value),
    Patch(&'a PatchRequest),
}

/// Scales have one version and one type.
struct ScaleTypes(TypeSchema);

impl Versions for ScaleTypes {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == API_VERSION).then_some(&self.0)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

/// The Scale of `object`. A missing field of replicas is a 500, as there.
pub(super) fn read(target: &Target, object: &Value) -> Result<Value, Status> {
    let scale = declared(target)?;
    let (value, found) = from_object(scale, object).map_err(|error| Status::plain(500, &error))?;
    match found {
        true => Ok(value),
        false => Err(Status::internal_error(&format!(
            "the spec replicas field {} does not exist",
            go_quote(&scale.spec_replicas_path)
        ))),
    }
}

fn declared(target: &Target) -> Result<&Scale, Status> {
    target.version.scale.as_ref().ok_or_else(|| target.not_found())
}

/// The Scale of `object`, and whether the field of replicas is there.
fn from_object(scale: &Scale, object: &Value) -> Result<(Value, bool), String> {
    let replicas = nested_int(object, &split_path(&scale.spec_replicas_path))?;
    let status = nested_int(object, &split_path(&scale.status_replicas_path))?;
    let selector = match &scale.label_selector_path {
        Some(path) => nested_str(object, &split_path(path))?.unwrap_or_default(),
        None => "",
    };
    let mut value = object! {
        "apiVersion" => API_VERSION,
        "kind" => KIND,
        "metadata" => object! {},
        "spec" => object! {},
        "status" => object! { "replicas" => status.unwrap_or_default() },
    };
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let (Some(found), Some(Value::Object(metadata))) =
            (object.at(&["metadata", name]), value.get_mut("metadata"))
        {
            metadata.insert(name, found.clone());
        }
    }
    // Go leaves a zero out of the spec, but not out of the status.
    if let (Some(count @ (i64::MIN..=-1 | 1..)), Some(Value::Object(spec))) = (replicas, value.get_mut("spec")) {
        spec.insert("replicas", Value::Int(count));
    }
    if let (false, Some(Value::Object(status))) = (selector.is_empty(), value.get_mut("status")) {
        status.insert("selector", Value::from(selector));
    }
    Ok((value, replicas.is_some()))
}

impl Registry {
    /// PUT of a Scale.
    pub async fn update_scale(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &UpdateRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let wanted = decode(&request.body)?;
        check_name(&wanted, target)?;
        let change = ScaleChange::Put(&wanted);
        self.change_scale(target, user, &request.manager, request.dry_run, &change, warnings).await
    }

    /// Changes the field of replicas to what `wanted` makes of the Scale, and answers the new Scale.
    pub(super) async fn change_scale(
        &self,
        target: &Target,
        user: &UserInfo,
        manager: &str,
        dry_run: bool,
        wanted: &ScaleChange<'_>,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let change = Change { user, dry_run, uid: None, creates: false };
        let now = self.now();
        let mut make = |target: &Target, _: &FieldManager<'_>, live: &Value, _: &mut Warnings| {
            let scale = declared(target)?;
            let paths = replicas_paths(target);
            let failed = |error: String| Status::plain(500, &error);
            let fields = ScaleFields::of(live, &paths).map_err(|error| failed(error.to_string()))?;
            let (mut present, found) = from_object(scale, live).map_err(failed)?;
            if let Some(entries) = fields.to_scale() {
                metadata_mut(&mut present).insert("managedFields", entries);
            }
            let wanted = make_scale(&present, wanted, manager, &now)?;
            check_name(&wanted, target)?;
            if !found && wanted.at(&["spec", "replicas"]).is_none() {
                let path = go_quote(&scale.spec_replicas_path);
                return Err(Status::bad_request(&format!("the spec replicas field {path} cannot be empty")));
            }
            let mut object = live.clone();
            let replicas = Value::Int(wanted_replicas(&wanted)?);
            set_nested(&mut object, &split_path(&scale.spec_replicas_path), replicas).map_err(failed)?;
            let resource_version = wanted.str_at(&["metadata", "resourceVersion"]);
            if !resource_version.is_empty() {
                metadata_mut(&mut object).insert("resourceVersion", Value::from(resource_version));
            }
            let entries = fields.to_parent(&wanted, &target.version.api_version());
            match entries.map_err(|error| failed(error.to_string()))? {
                Some(entries) => _ = metadata_mut(&mut object).insert("managedFields", entries),
                None => _ = metadata_mut(&mut object).remove("managedFields"),
            }
            Ok(object)
        };
        let written = self.change(target, &change, &mut make, warnings).await?;
        let (object, _) =
            from_object(declared(target)?, &written.object).map_err(|error| Status::bad_request(&error))?;
        Ok(Written { created: false, object })
    }
}

/// The Scale after the change, with its managedFields.
fn make_scale(present: &Value, wanted: &ScaleChange<'_>, manager: &str, now: &str) -> Result<Value, Status> {
    let (versions, reset_fields) = (ScaleTypes(TypeSchema::of_scale()), ResetFields::default());
    let fields = FieldManager {
        versions: &versions,
        version: API_VERSION,
        kind: KIND,
        subresource: Subresource::Scale.name(),
        reset_fields: &reset_fields,
    };
    match wanted {
        ScaleChange::Put(scale) => Ok(fields.update(Some(present), (*scale).clone(), manager, now)),
        ScaleChange::Patch(request) if request.patch_type == PatchType::Apply => {
            let applied = decode_applied(&request.bytes)?;
            let merged = fields.apply(Some(present), &applied, manager, request.force, now);
            merged.map_err(|error| apply_failed(&error))
        }
        ScaleChange::Patch(request) => {
            let (text, _) = apply_to_json(present, request)?;
            let patched = json::decode(text.as_bytes()).map_err(|error| unfit(&text, &error.to_string()))?;
            wanted_replicas(&patched)?;
            Ok(fields.update(Some(present), patched, manager, now))
        }
    }
}

/// Where the replicas are in each version.
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

/// The body of a PUT: a Scale.
fn decode(body: &Body) -> Result<Value, Status> {
    let decoded = match body.format {
        Format::Json => {
            json::decode(&body.bytes).map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))
        }
        Format::Yaml => crate::value::yaml::decode(&body.bytes).map_err(|error| error.to_string()),
        Format::Protobuf => decode_protobuf(&body.bytes),
    };
    let object = decoded.map_err(|error| Status::bad_request(&error))?;
    let (api_version, kind) = type_meta(&object).map_err(|error| Status::bad_request(&error))?;
    if !is_scale(&api_version, &kind) {
        let message = match api_version.as_str() {
            "" | API_VERSION => not_registered(&kind, API_VERSION),
            _ => NO_SCALE.to_owned(),
        };
        return Err(Status::bad_request(&message));
    }
    wanted_replicas(&object)?;
    Ok(object)
}

/// A Scale in its envelope. Whatever is wrong with it, Go fails to name its type.
fn decode_protobuf(bytes: &[u8]) -> Result<Value, String> {
    let message = protobuf::message_of(API_VERSION, KIND).ok_or(NO_SCALE)?;
    let envelope = protobuf::open(bytes).map_err(|_| NO_SCALE)?;
    if !is_scale(&envelope.api_version, &envelope.kind) {
        return Err(NO_SCALE.to_owned());
    }
    protobuf::decode(message, envelope.raw).map_err(|_| NO_SCALE.to_owned())
}

/// Whether a type, either half of which may be left out, is that of a Scale.
fn is_scale(api_version: &str, kind: &str) -> bool {
    matches!(api_version, "" | API_VERSION) && matches!(kind, "" | KIND)
}

/// `spec.replicas`, 0 where it is left out.
fn wanted_replicas(scale: &Value) -> Result<i64, Status> {
    match scale.at(&["spec", "replicas"]) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::Int(replicas)) if i32::try_from(*replicas).is_ok() => Ok(*replicas),
        Some(other) => Err(Status::bad_request(&format!(
            "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal {} into Go struct field \
             ScaleSpec.spec.replicas of type int32",
            json_type(other)
        ))),
    }
}
