//! Decodes the bytes of a body into an object of the wanted kind, with Kubernetes' error messages.
//!
//! Source: apimachinery's serializers and apiserver's `transformDecodeError`, release 1.37.

use std::fmt::Display;

use bytes::Bytes;
use thiserror::Error;

use crate::crd::ServedVersion;
use crate::crd::write::ReadError;
use crate::kinds;
use crate::kinds::Foreign;
use crate::kinds::strategy::Decoded;
use crate::meta::Status;
use crate::meta::api_version::{ApiVersionError, split_api_version};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::meta::scheme::SchemeError;
use crate::meta::type_meta::{MissingKind, TypeMetaError, type_meta};
use crate::meta::unmarshal::UnmarshalError;
use crate::protobuf;
use crate::schema::strict::{first_in_document_order, in_document_order};
use crate::types::Message;
use crate::value::{Value, go_quote, json, yaml};
use crate::work;

use super::{Target, Warnings};

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
    /// An object in its envelope.
    Protobuf,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub struct Body {
    pub bytes: Bytes,
    pub format: Format,
}

/// What happens to fields that are unknown or given twice. Source: the query parameter `fieldValidation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Go's message for a custom object in protobuf.
const NO_MESSAGE: &str = "Object 'Kind' is missing in 'object has no kind field '";

/// The scheme, which Go names after the source line that creates it; clients see this name.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// The scheme of the built-in kinds.
const BUILT_IN_SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";
/// The scheme of the options in bodies.
const OPTIONS_SCHEME: &str = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
/// The scheme of APIService.
const AGGREGATOR_SCHEME: &str = "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28";

/// Decodes `body` as an object of `target`.
///
/// The findings of strict decoding are warnings or errors, depending on `validation`. Errors are 400s.
pub fn decode_object(
    body: &Body,
    target: &Target,
    validation: FieldValidation,
    warnings: &mut Warnings,
) -> Result<Value, Status> {
    let wanted = &target.version;
    let strategy = &target.resource.strategy;
    let Recognized { tree, api_version, kind } = recognize(body, target).map_err(|error| {
        let (kind, summary) = (&wanted.names.kind, summarize(&body.bytes));
        let message = format!("the object provided is unrecognized (must be of type {kind}): {error} ({summary})");
        Status::bad_request(&message)
    })?;
    let Tree { object, mut strict, repeated, unfit } = tree;
    let (_, version) = split_api_version(&api_version).unwrap_or_default();
    let cannot_be_handled = |error: &dyn Display| {
        let message =
            format!("{kind} in version {} cannot be handled as a {}: {error}", go_quote(version), wanted.names.kind);
        Status::bad_request(&message)
    };
    let foreign = strategy.may_leave_type_out().then(|| foreign(wanted, &api_version, &kind)).transpose();
    let foreign = foreign.map_err(|error| cannot_be_handled(&error))?.flatten();
    if let Some(error) = unfit {
        return Err(cannot_be_handled(&error));
    }
    let decoded = match &foreign {
        None => kinds::decode(*strategy, wanted, object, &target.resource.versions),
        Some(Foreign::Version(message) | Foreign::Kind(message, _)) => read_foreign(message, &object),
    };
    let decoded = decoded.map_err(|error| {
        if let ReadError::TooLarge(too_large) = error {
            return Status::plain(500, &too_large.to_string());
        }
        match first_in_text(body, &api_version, &kind) {
            Some(first) => cannot_be_handled(&first),
            None => cannot_be_handled(&error),
        }
    })?;
    if let Some(Foreign::Kind(_, error)) = &foreign {
        return Err(cannot_be_handled(error));
    }
    if decoded.is_typed && body.format == Format::Json {
        strict = in_document_order(&body.bytes, repeated, &decoded.findings);
    } else if body.format != Format::Protobuf {
        strict.extend(repeated.iter().map(ToString::to_string));
        strict.extend(decoded.findings.unknown.iter().map(|path| format!("unknown field {}", quote_path(path))));
    }
    if let Some(error) = tell_strict(&strict, validation, warnings) {
        return Err(cannot_be_handled(&error));
    }
    warnings.note_empty(decoded.findings.empty);
    let expected = wanted.api_version();
    if api_version != expected {
        return Err(Status::bad_request(&format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    warnings.note_object(&decoded.object);
    Ok(decoded.object)
}

/// Adds warnings for the findings of strict decoding, or returns them as an error.
pub(super) fn tell_strict(strict: &[String], validation: FieldValidation, warnings: &mut Warnings) -> Option<String> {
    match validation {
        FieldValidation::Ignore => None,
        FieldValidation::Warn => {
            strict.iter().for_each(|error| add_strict_warning(error, warnings));
            None
        }
        FieldValidation::Strict => (!strict.is_empty()).then(|| strict_error(strict)),
    }
}

/// A parsed body, and the type that it claims to have.
struct Recognized {
    tree: Tree,
    api_version: String,
    kind: String,
}

/// Why a body is not an object of any kind.
#[derive(Debug, Error)]
enum RecognizeError {
    #[error(transparent)]
    Parse(#[from] BodyError),
    #[error(transparent)]
    TypeMeta(#[from] TypeMetaError),
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    #[error(transparent)]
    Kind(#[from] MissingKind),
}

fn recognize(body: &Body, target: &Target) -> Result<Recognized, RecognizeError> {
    let mut tree = match body.format {
        Format::Json => decode_json(&body.bytes)?,
        Format::Yaml => decode_yaml(&body.bytes)?,
        Format::Protobuf => decode_protobuf(&body.bytes, target)?,
    };
    let (api_version, kind) = type_meta(&tree.object)?;
    split_api_version(&api_version)?;
    let (api_version, kind) = if target.resource.strategy.may_leave_type_out() {
        with_type(&target.version, &mut tree.object, api_version, kind)
    } else if kind.is_empty() {
        return Err(MissingKind::of(&body.bytes).into());
    } else {
        (api_version, kind)
    };
    Ok(Recognized { tree, api_version, kind })
}

/// Completes the apiVersion and kind of an object of a typed kind, and returns both.
fn with_type(wanted: &ServedVersion, object: &mut Value, api_version: String, kind: String) -> (String, String) {
    let api_version = if api_version.is_empty() { wanted.api_version() } else { api_version };
    let kind = if kind.is_empty() { wanted.names.kind.clone() } else { kind };
    if object.is_null() {
        *object = crate::object! {};
    }
    if let Value::Object(fields) = object {
        fields.insert("apiVersion", Value::from(api_version.clone()));
        fields.insert("kind", Value::from(kind.clone()));
    }
    (api_version, kind)
}

/// The type of an object of a typed kind if it is not of the version `wanted`; `None` if it is. Errors: Go does not
/// know the type.
fn foreign(wanted: &ServedVersion, api_version: &str, kind: &str) -> Result<Option<Foreign>, SchemeError> {
    if kind == wanted.names.kind && api_version == wanted.api_version() {
        return Ok(None);
    }
    let foreign = kinds::foreign((&wanted.group, &wanted.names.kind), api_version, kind);
    foreign.map(Some).ok_or_else(|| not_registered_for(wanted, kind, api_version))
}

fn read_foreign(message: &'static Message, object: &Value) -> Result<Decoded, ReadError> {
    let (object, findings) = message.decode(object)?;
    Ok(Decoded { object, findings, is_typed: true })
}

/// Why a patched object no longer has the version `wanted`, for kinds that Go has types for.
pub(super) fn not_convertible(wanted: &ServedVersion, api_version: &str, kind: &str) -> Option<SchemeError> {
    let is_unversioned = api_version.is_empty();
    let api_version = if is_unversioned { &wanted.api_version() } else { api_version };
    let kind = if kind.is_empty() { &wanted.names.kind } else { kind };
    match foreign(wanted, api_version, kind) {
        Ok(None | Some(Foreign::Version(_))) => None,
        Err(error) if is_unversioned => Some(error.without_version(&wanted.group)),
        Ok(Some(Foreign::Kind(_, error))) | Err(error) => Some(error),
    }
}

/// Go's first error for a text that does not fit its type.
fn first_in_text(body: &Body, api_version: &str, kind: &str) -> Option<UnmarshalError> {
    if body.format != Format::Json {
        return None;
    }
    let message = kinds::type_of(api_version, kind)?;
    let tree = decode_json(&body.bytes).ok()?;
    first_in_document_order(&body.bytes, message.faults(&tree.object))
}

/// Why a body can't be parsed, in Go's words.
#[derive(Debug, Error)]
enum BodyError {
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(json::JsonError),
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error(transparent)]
    Protobuf(#[from] protobuf::ProtobufError),
}

/// A parsed body.
struct Tree {
    object: Value,
    /// The findings of strict decoding, apart from duplicate fields in JSON.
    strict: Vec<String>,
    repeated: Vec<json::RepeatedField>,
    /// Why the body is not an object of its kind, found while parsing; errors about the object's type come first.
    unfit: Option<String>,
}

fn decode_json(bytes: &[u8]) -> Result<Tree, BodyError> {
    match json::decode_strict(bytes) {
        Ok((object, repeated)) => Ok(Tree { object, strict: Vec::new(), repeated, unfit: None }),
        // A number that no double can hold.
        Err(error @ json::JsonError::Range(_)) => {
            let object = json::decode_within_range(bytes).unwrap_or_default();
            Ok(Tree { object, strict: Vec::new(), repeated: Vec::new(), unfit: Some(error.to_string()) })
        }
        Err(error) => Err(BodyError::Json(error)),
    }
}

fn decode_yaml(bytes: &[u8]) -> Result<Tree, BodyError> {
    let (object, strict) = yaml::decode_strict(bytes)?;
    Ok(Tree { object, strict, repeated: Vec::new(), unfit: None })
}

/// Whether a body, which decodes, has an apiVersion.
pub(super) fn names_version(body: &Body) -> bool {
    let tree = match body.format {
        Format::Json => decode_json(&body.bytes),
        Format::Yaml => decode_yaml(&body.bytes),
        // Clients that use protobuf fill in the whole envelope.
        Format::Protobuf => return true,
    };
    tree.is_ok_and(|tree| !tree.object.str_at(&["apiVersion"]).is_empty())
}

/// Whether a body, which decodes, contains no labels.
pub(super) fn labels_are_left_out(body: &Body, target: &Target) -> bool {
    let tree = match body.format {
        Format::Json => decode_json(&body.bytes),
        Format::Yaml => decode_yaml(&body.bytes),
        Format::Protobuf => decode_protobuf(&body.bytes, target),
    };
    tree.is_ok_and(|tree| !has_labels(&tree.object))
}

/// Whether an object has labels.
pub(super) fn has_labels(object: &Value) -> bool {
    object.at(&["metadata", "labels"]).and_then(Value::as_object).is_some_and(|labels| !labels.is_empty())
}

/// An envelope may leave the type out, and an apiVersion that is not valid counts as left out. Unknown fields can't be
/// distinguished from those of a later release, so strict decoding finds nothing.
fn decode_protobuf(bytes: &[u8], target: &Target) -> Result<Tree, BodyError> {
    let wanted = &target.version;
    let envelope = protobuf::open(bytes)?;
    let api_version = match split_api_version(&envelope.api_version) {
        Ok(_) if !envelope.api_version.is_empty() => envelope.api_version,
        _ => wanted.api_version(),
    };
    let kind = if envelope.kind.is_empty() { wanted.names.kind.clone() } else { envelope.kind };
    let is_custom = target.resource.definition.is_some();
    let message = match foreign(wanted, &api_version, &kind) {
        Ok(Some(Foreign::Version(message) | Foreign::Kind(message, _))) => Some(message),
        _ => kinds::message_of(&wanted.api_version(), &wanted.names.kind),
    };
    let decoded = match message {
        Some(message) if !is_custom => protobuf::decode(message, envelope.raw).map_err(|error| error.to_string()),
        _ => Err(NO_MESSAGE.to_owned()),
    };
    let (mut object, unfit) = match decoded {
        Ok(object) => (object, None),
        Err(error) => (Value::default(), Some(error)),
    };
    let fields = object.make_object();
    fields.insert("apiVersion", Value::from(api_version));
    fields.insert("kind", Value::from(kind));
    Ok(Tree { object, strict: Vec::new(), repeated: Vec::new(), unfit })
}

/// The error for a kind that is not one of options, in a request for an object of the version `of`.
pub fn not_registered_for_options(of: &ServedVersion, kind: &str, api_version: &str) -> SchemeError {
    SchemeError::not_registered(kind, api_version, if is_of_built_in(of) { OPTIONS_SCHEME } else { SCHEME })
}

fn is_of_built_in(version: &ServedVersion) -> bool {
    kinds::type_of(&version.api_version(), &version.names.kind).is_some()
}

/// The error for a kind that the API group does not have, if an object of the version `wanted` was expected.
fn not_registered_for(wanted: &ServedVersion, kind: &str, api_version: &str) -> SchemeError {
    let scheme = match wanted.group.as_str() {
        "apiregistration.k8s.io" => AGGREGATOR_SCHEME,
        _ if is_of_built_in(wanted) => BUILT_IN_SCHEME,
        _ => SCHEME,
    };
    SchemeError::not_registered(kind, api_version, scheme)
}

/// The same if an object of a built-in kind was expected.
pub fn not_registered_in_built_in(kind: &str, api_version: &str) -> SchemeError {
    SchemeError::not_registered(kind, api_version, BUILT_IN_SCHEME)
}

/// The message of a strict decoding error; findings that do not fit into an answer are only counted.
pub fn strict_error(errors: &[String]) -> String {
    let mut message = "strict decoding error: ".to_owned();
    for (at, error) in errors.iter().enumerate() {
        work::bytes(error.len());
        if at > 0 && message.len() + error.len() > ERRORS_BYTES_MAX {
            return message + &format!(", and {} more errors", errors.len() - at);
        }
        if at > 0 {
            message.push_str(", ");
        }
        message.push_str(error);
    }
    message
}

/// Warns of one strict decoding error; the YAML reader may report several in one.
pub fn add_strict_warning(error: &str, warnings: &mut Warnings) {
    const PREFIXES: [&str; 2] =
        ["error converting YAML to JSON: yaml: unmarshal errors:\n", "yaml: unmarshal errors:\n"];
    match PREFIXES.iter().find_map(|prefix| error.strip_prefix(prefix)) {
        Some(lines) => lines.split('\n').for_each(|line| warnings.add(line.trim())),
        None => warnings.add(error),
    }
}

/// Field paths are quoted without escapes.
fn quote_path(path: &str) -> String {
    format!("\"{path}\"")
}

/// The first bytes of a body: as text if it looks like JSON, else in hexadecimal.
fn summarize(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 30;
    let head = &bytes[..bytes.len().min(BYTES_MAX)];
    let more = if bytes.len() > BYTES_MAX { " ..." } else { "" };
    match head.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => format!("{}{more}", head.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}
