//! Decodes the file as Go decodes it into structs.

use crate::meta::duration;
use crate::meta::type_meta::{Document, TypeMetaError};
use crate::meta::unmarshal::UnmarshalError;
use crate::value::{Value, go_quote, json, json_type};

pub(super) const KIND: &str = "AuthorizationConfiguration";
const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// Other kinds of configuration in the group, which may be given by mistake.
const OTHER_KINDS: [&str; 5] = [
    "AdmissionConfiguration",
    "AuthenticationConfiguration",
    "EgressSelectorConfiguration",
    "EncryptionConfiguration",
    "TracingConfiguration",
];
const SCHEME: &str = "k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32";
const AUTHORIZED_TTL_NS: i64 = 5 * 60 * 1_000_000_000;
const UNAUTHORIZED_TTL_NS: i64 = 30_000_000_000;

/// Why a file can't be decoded, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    Document(#[from] TypeMetaError),
    #[error("Object '{field}' is missing in '{object}'")]
    Missing { field: &'static str, object: String },
    #[error("expected {KIND}, got *apiserver.{0}")]
    OtherKind(String),
    #[error("no kind {} is registered for version {} in scheme \"{SCHEME}\"", go_quote(.kind), go_quote(.version))]
    Unregistered { kind: String, version: String },
    #[error(transparent)]
    Field(#[from] UnmarshalError),
    /// The paths of unknown fields.
    #[error("strict decoding error: {}", unknown_fields(.0))]
    Unknown(Vec<String>),
}

fn unknown_fields(paths: &[String]) -> String {
    let texts: Vec<String> = paths.iter().map(|path| format!("unknown field {}", go_quote(path))).collect();
    texts.join(", ")
}

/// An authorizer in the file.
#[derive(Debug, Default)]
pub(super) struct Authorizer {
    pub kind: String,
    pub name: String,
    pub webhook: Option<Webhook>,
}

#[derive(Debug)]
pub(super) struct Webhook {
    pub timeout_ns: i64,
    pub authorized_ttl_ns: i64,
    pub caches_authorized: bool,
    pub unauthorized_ttl_ns: i64,
    pub caches_unauthorized: bool,
    pub version: String,
    pub conditions_version: String,
    pub failure_policy: String,
    pub connection: String,
    pub kubeconfig: Option<String>,
    pub conditions: Vec<String>,
}

/// Decodes the authorizers of a file.
///
/// # Errors
///
/// It is not a configuration of this kind, or has unknown fields.
pub(super) fn load(text: &[u8]) -> Result<Vec<Authorizer>, DecodeError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Document { value, api_version, kind } = Document::read(text)?;
    for (field, said) in [("Kind", &kind), ("apiVersion", &api_version)] {
        if said.is_empty() {
            return Err(DecodeError::Missing { field, object: json::encode_to_string(&value) });
        }
    }
    let is_of_group = api_version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
    let is_known = is_of_group.is_some_and(|version| VERSIONS.contains(&version));
    if is_known && OTHER_KINDS.contains(&kind.as_str()) {
        return Err(DecodeError::OtherKind(kind));
    }
    if !is_known || kind != KIND {
        return Err(DecodeError::Unregistered { kind, version: api_version });
    }
    let mut unknown = Unknown::default();
    let authorizers = Object::of(&value, KIND)
        .list("authorizers", "[]v1.AuthorizerConfiguration", |one| read_authorizer(one, &mut unknown))?;
    unknown.note(&value, "", &["apiVersion", "kind", "authorizers"]);
    unknown.refuse()?;
    Ok(authorizers)
}

/// Unknown fields, by path.
#[derive(Default)]
struct Unknown {
    /// How many authorizers were decoded.
    read: usize,
    paths: Vec<String>,
}

impl Unknown {
    fn note(&mut self, object: &Value, path: &str, known: &[&str]) {
        let unknown = object.as_object().into_iter().flat_map(|fields| fields.keys());
        let unknown = unknown.filter(|name| !known.contains(name));
        self.paths.extend(unknown.map(|name| format!("{path}{name}")));
    }

    fn refuse(self) -> Result<(), DecodeError> {
        if self.paths.is_empty() { Ok(()) } else { Err(DecodeError::Unknown(self.paths)) }
    }
}

/// An object that is decoded into a Go struct.
struct Object<'v> {
    value: &'v Value,
    structure: &'static str,
}

impl<'v> Object<'v> {
    fn of(value: &'v Value, structure: &'static str) -> Self {
        Object { value, structure }
    }

    fn field(&self, name: &str) -> Option<&'v Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    fn unfit(&self, name: &str, found: &Value, go_type: &str) -> UnmarshalError {
        UnmarshalError::of_type(json_type(found), go_type).below(self.structure, name)
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, UnmarshalError> {
        let read = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| self.unfit(name, value, "string"));
        self.field(name).map(read).transpose()
    }

    fn text(&self, name: &str) -> Result<String, UnmarshalError> {
        self.optional_text(name).map(Option::unwrap_or_default)
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, UnmarshalError> {
        let read = |value: &Value| value.as_bool().ok_or_else(|| self.unfit(name, value, "bool"));
        self.field(name).map_or(Ok(default), read)
    }

    /// A duration in nanoseconds; zero stands for the default.
    fn time(&self, name: &str, default_ns: i64) -> Result<i64, UnmarshalError> {
        let text = self.text(name)?;
        let read = if text.is_empty() { 0 } else { duration::parse_go(&text).map_err(UnmarshalError::other)? };
        Ok(if read == 0 { default_ns } else { read })
    }

    fn object(&self, name: &str, structure: &'static str) -> Result<Option<Object<'v>>, UnmarshalError> {
        match self.field(name) {
            None => Ok(None),
            Some(value) if value.as_object().is_some() => Ok(Some(Object::of(value, structure))),
            Some(other) => Err(self.unfit(name, other, &format!("v1.{structure}"))),
        }
    }

    fn list<T>(
        &self,
        name: &str,
        go_type: &str,
        mut read: impl FnMut(&'v Value) -> Result<T, UnmarshalError>,
    ) -> Result<Vec<T>, UnmarshalError> {
        match self.field(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| read(item).map_err(|error| error.below(self.structure, name))).collect()
            }
            Some(other) => Err(self.unfit(name, other, go_type)),
        }
    }
}

fn read_authorizer(value: &Value, unknown: &mut Unknown) -> Result<Authorizer, UnmarshalError> {
    let path = format!("authorizers[{}].", unknown.read);
    unknown.read += 1;
    if value.is_null() {
        return Ok(Authorizer::default());
    }
    let object = Object::of(value, "AuthorizerConfiguration");
    if value.as_object().is_none() {
        return Err(UnmarshalError::of_type(json_type(value), "v1.AuthorizerConfiguration"));
    }
    let webhook = object.object("webhook", "WebhookConfiguration")?;
    let webhook = webhook.map(|webhook| read_webhook(&webhook, &format!("{path}webhook."), unknown)).transpose();
    let webhook = webhook.map_err(|error| error.below(object.structure, "webhook"))?;
    unknown.note(value, &path, &["type", "name", "webhook"]);
    Ok(Authorizer { kind: object.text("type")?, name: object.text("name")?, webhook })
}

fn read_webhook(object: &Object<'_>, path: &str, unknown: &mut Unknown) -> Result<Webhook, UnmarshalError> {
    let connection = object.object("connectionInfo", "WebhookConnectionInfo")?;
    let connection = connection.unwrap_or(Object::of(&Value::Null, "WebhookConnectionInfo"));
    let below = |error: UnmarshalError| error.below(object.structure, "connectionInfo");
    unknown.note(connection.value, &format!("{path}connectionInfo."), &["type", "kubeConfigFile"]);
    let conditions = object.list("matchConditions", "[]v1.WebhookMatchCondition", |condition| {
        if condition.as_object().is_none() && !condition.is_null() {
            return Err(UnmarshalError::of_type(json_type(condition), "v1.WebhookMatchCondition"));
        }
        Object::of(condition, "WebhookMatchCondition").text("expression")
    })?;
    for (at, condition) in object.value.items_at(&["matchConditions"]).iter().enumerate() {
        unknown.note(condition, &format!("{path}matchConditions[{at}]."), &["expression"]);
    }
    let known = [
        "timeout",
        "authorizedTTL",
        "cacheAuthorizedRequests",
        "unauthorizedTTL",
        "cacheUnauthorizedRequests",
        "subjectAccessReviewVersion",
        "matchConditionSubjectAccessReviewVersion",
        "failurePolicy",
        "connectionInfo",
        "matchConditions",
    ];
    unknown.note(object.value, path, &known);
    Ok(Webhook {
        timeout_ns: object.time("timeout", 0)?,
        authorized_ttl_ns: object.time("authorizedTTL", AUTHORIZED_TTL_NS)?,
        caches_authorized: object.flag("cacheAuthorizedRequests", true)?,
        unauthorized_ttl_ns: object.time("unauthorizedTTL", UNAUTHORIZED_TTL_NS)?,
        caches_unauthorized: object.flag("cacheUnauthorizedRequests", true)?,
        version: object.text("subjectAccessReviewVersion")?,
        conditions_version: object.text("matchConditionSubjectAccessReviewVersion")?,
        failure_policy: object.text("failurePolicy")?,
        connection: connection.text("type").map_err(below)?,
        kubeconfig: connection.optional_text("kubeConfigFile").map_err(below)?,
        conditions,
    })
}
