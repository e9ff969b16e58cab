//! CustomResourceDefinition, `apiextensions.k8s.io/v1`: its types, and how Go's decoder reads and writes them.

use std::sync::Arc;

use crate::crd::Names;
use crate::meta::gates::Gate;
use crate::meta::minor::Minor;
use crate::meta::object_meta;
use crate::meta::unmarshal::UnmarshalError;
use crate::object;
use crate::schema::json_schema::{JsonSchema, OmitEmptyFields};
use crate::schema::typed::{Findings, Stop, TypedDecoder};
use crate::value::{Value, base64};

/// Kind and version of definitions.
pub const KIND: &str = "CustomResourceDefinition";
/// The apiVersion of definitions.
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// As [`object_meta::decode`] gives it.
    pub metadata: Value,
    /// `spec`
    pub spec: Spec,
    /// `status`
    pub status: Status,
    /// The version of Kubernetes that reads it. Not a field of the object.
    pub minor: Minor,
}

/// `spec` of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// `spec.group`
    pub group: String,
    /// `spec.names`
    pub names: Names,
    /// `Cluster` or `Namespaced`, or whatever else was sent.
    pub scope: String,
    /// `spec.versions`
    pub versions: Vec<Version>,
    /// Whether a list of versions is given at all: messages tell `[]` from nothing.
    pub names_versions: bool,
    /// `spec.conversion`
    pub conversion: Option<Conversion>,
    /// `spec.preserveUnknownFields`
    pub preserve_unknown_fields: bool,
}

/// An item of `spec.versions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Version {
    /// `name`
    pub name: String,
    /// `served`
    pub served: bool,
    /// `storage`
    pub storage: bool,
    /// `deprecated`
    pub deprecated: bool,
    /// `deprecationWarning`
    pub deprecation_warning: Option<String>,
    /// `schema`; within it `openAPIV3Schema` may still be missing.
    pub schema: Option<Option<Arc<JsonSchema>>>,
    /// `subresources`
    pub subresources: Option<Subresources>,
    /// `additionalPrinterColumns`
    pub columns: Vec<super::Column>,
    /// JSON paths.
    pub selectable_fields: Vec<String>,
}

/// `subresources` of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subresources {
    /// Whether `status` is there.
    pub status: bool,
    /// `scale`
    pub scale: Option<super::Scale>,
}

/// `spec.conversion` of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// `None` or `Webhook`, or whatever else was sent.
    pub strategy: String,
    /// `webhook`
    pub webhook: Option<WebhookConversion>,
}

/// `webhook` of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookConversion {
    /// `clientConfig`
    pub client_config: Option<ClientConfig>,
    /// `conversionReviewVersions`
    pub review_versions: Vec<String>,
}

/// Where a webhook is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientConfig {
    /// `url`
    pub url: Option<String>,
    /// `service`
    pub service: Option<ServiceReference>,
    /// Base64.
    pub ca_bundle: Option<String>,
}

/// The Service that a webhook is behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceReference {
    /// `namespace`
    pub namespace: String,
    /// `name`
    pub name: String,
    /// `path`
    pub path: Option<String>,
    /// `port`
    pub port: Option<i32>,
}

/// `status` of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// `conditions`
    pub conditions: Vec<Condition>,
    /// `acceptedNames`
    pub accepted_names: Names,
    /// `storedVersions`
    pub stored_versions: Vec<String>,
    /// `observedGeneration`
    pub observed_generation: i64,
}

/// An item of `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// `type`
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// RFC 3339, or empty.
    pub last_transition_time: String,
    /// `reason`
    pub reason: String,
    /// `message`
    pub message: String,
    /// `observedGeneration`
    pub observed_generation: i64,
}

/// Reads a definition; also tells what a strict reader minds.
///
/// # Errors
///
/// Go's text for the first value of a wrong type.
pub fn decode(value: &Value) -> Result<(Definition, Findings), UnmarshalError> {
    decode_in(Minor::NEWEST, value)
}

/// [`decode`] as that version of Kubernetes does it: it does not know fields that came later.
///
/// # Errors
///
/// Go's text for the first value of a wrong type.
pub fn decode_in(minor: Minor, value: &Value) -> Result<(Definition, Findings), UnmarshalError> {
    TypedDecoder::run(|typed| {
        let mut definition = Definition { metadata: object! {}, minor, ..Definition::default() };
        typed.structure(value, KIND, |typed, name, value| {
            match name {
                "apiVersion" | "kind" => drop(typed.string(value)),
                "metadata" if value.is_null() => {}
                "metadata" => {
                    if let Some(metadata) = typed.adopt(object_meta::decode(value)) {
                        definition.metadata = metadata;
                    }
                }
                "spec" => decode_spec(typed, value, &mut definition.spec, minor)?,
                "status" => decode_status(typed, value, &mut definition.status, minor)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(definition)
    })
}

fn decode_spec<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value, spec: &mut Spec, minor: Minor) -> Result<(), Stop> {
    typed.structure(value, "CustomResourceDefinitionSpec", |typed, name, value| {
        match name {
            "group" => spec.group = typed.string(value).unwrap_or_default(),
            "names" => spec.names = decode_names(typed, value)?,
            "scope" => spec.scope = typed.string_as(value, "v1.ResourceScope").unwrap_or_default(),
            "versions" => {
                let decode = |typed: &mut TypedDecoder<'v>, value| decode_version(typed, value, minor);
                let versions = typed.list(value, "[]v1.CustomResourceDefinitionVersion", decode)?;
                spec.names_versions = versions.is_some();
                spec.versions = versions.unwrap_or_default();
            }
            "conversion" if value.is_null() => spec.conversion = None,
            "conversion" => spec.conversion = Some(decode_conversion(typed, value)?),
            "preserveUnknownFields" => spec.preserve_unknown_fields = typed.boolean(value).unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn decode_names<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Names, Stop> {
    let mut names = Names::default();
    typed.structure(value, "CustomResourceDefinitionNames", |typed, name, value| {
        match name {
            "plural" => names.plural = typed.string(value).unwrap_or_default(),
            "singular" => names.singular = typed.string(value).unwrap_or_default(),
            "kind" => names.kind = typed.string(value).unwrap_or_default(),
            "listKind" => names.list_kind = typed.string(value).unwrap_or_default(),
            "shortNames" => names.short_names = typed.strings(value)?.unwrap_or_default(),
            "categories" => names.categories = typed.strings(value)?.unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(names)
}

fn decode_version<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value, minor: Minor) -> Result<Version, Stop> {
    let mut version = Version::default();
    typed.structure(value, "CustomResourceDefinitionVersion", |typed, name, value| {
        match name {
            "name" => version.name = typed.string(value).unwrap_or_default(),
            "served" => version.served = typed.boolean(value).unwrap_or_default(),
            "storage" => version.storage = typed.boolean(value).unwrap_or_default(),
            "deprecated" => version.deprecated = typed.boolean(value).unwrap_or_default(),
            "deprecationWarning" => version.deprecation_warning = typed.string(value),
            "schema" if value.is_null() => version.schema = None,
            "schema" => {
                let mut schema = None;
                typed.structure(value, "CustomResourceValidation", |typed, name, value| {
                    match name {
                        "openAPIV3Schema" if value.is_null() => schema = None,
                        "openAPIV3Schema" => schema = Some(Arc::new(JsonSchema::decode(typed, value)?)),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                version.schema = Some(schema);
            }
            "subresources" if value.is_null() => version.subresources = None,
            "subresources" => version.subresources = Some(decode_subresources(typed, value)?),
            "additionalPrinterColumns" => {
                let columns = typed.list(value, "[]v1.CustomResourceColumnDefinition", decode_column)?;
                version.columns = columns.unwrap_or_default();
            }
            "selectableFields" if !Gate::CustomResourceFieldSelectors.is_known_in(minor) => return Ok(false),
            "selectableFields" => {
                let fields = typed.list(value, "[]v1.SelectableField", |typed, value| {
                    let mut path = String::new();
                    typed.structure(value, "SelectableField", |typed, name, value| {
                        match name {
                            "jsonPath" => path = typed.string(value).unwrap_or_default(),
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                    Ok(path)
                })?;
                version.selectable_fields = fields.unwrap_or_default();
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(version)
}

fn decode_subresources<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Subresources, Stop> {
    let mut subresources = Subresources::default();
    typed.structure(value, "CustomResourceSubresources", |typed, name, value| {
        match name {
            "status" if value.is_null() => subresources.status = false,
            "status" => {
                typed.structure(value, "CustomResourceSubresourceStatus", |_, _, _| Ok(false))?;
                subresources.status = true;
            }
            "scale" if value.is_null() => subresources.scale = None,
            "scale" => {
                let mut scale = super::Scale::default();
                typed.structure(value, "CustomResourceSubresourceScale", |typed, name, value| {
                    match name {
                        "specReplicasPath" => scale.spec_replicas_path = typed.string(value).unwrap_or_default(),
                        "statusReplicasPath" => scale.status_replicas_path = typed.string(value).unwrap_or_default(),
                        "labelSelectorPath" => scale.label_selector_path = typed.string(value),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                subresources.scale = Some(scale);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(subresources)
}

fn decode_column<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<super::Column, Stop> {
    let mut column = super::Column::default();
    typed.structure(value, "CustomResourceColumnDefinition", |typed, name, value| {
        match name {
            "name" => column.name = typed.string(value).unwrap_or_default(),
            "type" => column.type_ = typed.string(value).unwrap_or_default(),
            "format" => column.format = typed.string(value).unwrap_or_default(),
            "description" => column.description = typed.string(value).unwrap_or_default(),
            "priority" => column.priority = typed.int32(value).unwrap_or_default(),
            "jsonPath" => column.json_path = typed.string(value).unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(column)
}

fn decode_conversion<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Conversion, Stop> {
    let mut conversion = Conversion::default();
    typed.structure(value, "CustomResourceConversion", |typed, name, value| {
        match name {
            "strategy" => {
                conversion.strategy = typed.string_as(value, "v1.ConversionStrategyType").unwrap_or_default();
            }
            "webhook" if value.is_null() => conversion.webhook = None,
            "webhook" => {
                let mut webhook = WebhookConversion::default();
                let mut names_versions = false;
                typed.structure(value, "WebhookConversion", |typed, name, value| {
                    match name {
                        "clientConfig" if value.is_null() => webhook.client_config = None,
                        "clientConfig" => webhook.client_config = Some(decode_client_config(typed, value)?),
                        "conversionReviewVersions" => {
                            let versions = typed.strings(value)?;
                            names_versions = versions.is_some();
                            webhook.review_versions = versions.unwrap_or_default();
                        }
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                // An empty one is nothing: Kubernetes holds what is in it, not itself.
                conversion.webhook = (names_versions || webhook.client_config.is_some()).then_some(webhook);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(conversion)
}

fn decode_client_config<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<ClientConfig, Stop> {
    let mut config = ClientConfig::default();
    typed.structure(value, "WebhookClientConfig", |typed, name, value| {
        match name {
            "url" => config.url = typed.string(value),
            "caBundle" => config.ca_bundle = decode_bytes(typed, value),
            "service" if value.is_null() => config.service = None,
            "service" => {
                let mut service = ServiceReference::default();
                typed.structure(value, "ServiceReference", |typed, name, value| {
                    match name {
                        "namespace" => service.namespace = typed.string(value).unwrap_or_default(),
                        "name" => service.name = typed.string(value).unwrap_or_default(),
                        "path" => service.path = typed.string(value),
                        "port" => service.port = typed.int32(value),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                config.service = Some(service);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(config)
}

/// Bytes in base64; line breaks in it are dropped, as they are once it is written again.
fn decode_bytes(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<String> {
    let text = typed.string_as(value, "[]uint8")?;
    match base64::decode(&text) {
        Ok(bytes) if bytes.is_empty() => None,
        Ok(_) => Some(text.replace(['\r', '\n'], "")),
        Err(error) => {
            typed.save(error.to_string());
            None
        }
    }
}

/// The version of Kubernetes that began to tell the generation that a status is about.
const OBSERVED_GENERATION_SINCE: Minor = Minor::of(35);

fn decode_status<'v>(
    typed: &mut TypedDecoder<'v>,
    value: &'v Value,
    status: &mut Status,
    minor: Minor,
) -> Result<(), Stop> {
    typed.structure(value, "CustomResourceDefinitionStatus", |typed, name, value| {
        match name {
            "conditions" => {
                let conditions = typed.list(value, "[]v1.CustomResourceDefinitionCondition", |typed, value| {
                    decode_condition(typed, value, minor)
                })?;
                status.conditions = conditions.unwrap_or_default();
            }
            "acceptedNames" => status.accepted_names = decode_names(typed, value)?,
            "storedVersions" => status.stored_versions = typed.strings(value)?.unwrap_or_default(),
            "observedGeneration" if minor < OBSERVED_GENERATION_SINCE => return Ok(false),
            "observedGeneration" => status.observed_generation = typed.int64(value).unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn decode_condition<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value, minor: Minor) -> Result<Condition, Stop> {
    let mut condition = Condition::default();
    typed.structure(value, "CustomResourceDefinitionCondition", |typed, name, value| {
        match name {
            "type" => {
                let go_type = "v1.CustomResourceDefinitionConditionType";
                condition.type_ = typed.string_as(value, go_type).unwrap_or_default();
            }
            "status" => condition.status = typed.string_as(value, "v1.ConditionStatus").unwrap_or_default(),
            "lastTransitionTime" => {
                let time = object_meta::time_field(value).map(|time| (time, Vec::new()));
                if let Some(Some(Value::String(time))) = typed.adopt(time) {
                    condition.last_transition_time = time;
                }
            }
            "reason" => condition.reason = typed.string(value).unwrap_or_default(),
            "message" => condition.message = typed.string(value).unwrap_or_default(),
            "observedGeneration" if minor < OBSERVED_GENERATION_SINCE => return Ok(false),
            "observedGeneration" => condition.observed_generation = typed.int64(value).unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(condition)
}

impl Definition {
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.metadata.str_at(&["name"])
    }

    /// Whether it has a deletionTimestamp.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.get("deletionTimestamp").is_some()
    }

    /// The condition of a type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of this type is True.
    pub fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == "True")
    }

    /// Sets a condition; its time changes with its status.
    pub fn set_condition(&mut self, mut condition: Condition, now: &str) {
        let known = self.status.conditions.iter_mut().find(|known| known.type_ == condition.type_);
        match known {
            None => {
                condition.last_transition_time = now.to_owned();
                self.status.conditions.push(condition);
            }
            Some(known) => {
                if known.status != condition.status || known.last_transition_time.is_empty() {
                    known.last_transition_time = now.to_owned();
                }
                known.status = condition.status;
                known.reason = condition.reason;
                known.message = condition.message;
            }
        }
    }

    /// The definition with a condition set; `None` where it says so already.
    pub fn with_condition(&self, condition: Condition, now: &str) -> Option<Definition> {
        let is_known = self.condition(&condition.type_).is_some_and(|known| known.says_same(&condition));
        if is_known {
            return None;
        }
        let mut changed = self.clone();
        changed.set_condition(condition, now);
        Some(changed)
    }

    /// The definition as the API shows it.
    pub fn encode(&self) -> Value {
        object! {
            "apiVersion" => API_VERSION,
            "kind" => KIND,
            "metadata" => self.metadata.clone(),
            "spec" => self.spec.encode(),
            "status" => self.status.encode(),
        }
    }
}

impl Condition {
    /// Whether both say the same, at whatever time.
    pub fn says_same(&self, other: &Condition) -> bool {
        self.status == other.status && self.reason == other.reason && self.message == other.message
    }
}

impl Spec {
    fn encode(&self) -> Value {
        let mut fields = OmitEmptyFields::default();
        fields.set("group", self.group.as_str());
        fields.set("names", encode_names(&self.names));
        fields.set("scope", self.scope.as_str());
        fields.set(
            "versions",
            if self.versions.is_empty() && !self.names_versions {
                Value::Null
            } else {
                Value::Array(self.versions.iter().map(Version::encode).collect())
            },
        );
        fields.option("conversion", self.conversion.as_ref().map(Conversion::encode));
        fields.truth("preserveUnknownFields", self.preserve_unknown_fields);
        fields.finish()
    }
}

fn encode_names(names: &Names) -> Value {
    let mut fields = OmitEmptyFields::default();
    fields.set("plural", names.plural.as_str());
    fields.text("singular", &names.singular);
    fields.list("shortNames", names.short_names.iter().map(|name| name.as_str().into()));
    fields.set("kind", names.kind.as_str());
    fields.text("listKind", &names.list_kind);
    fields.list("categories", names.categories.iter().map(|name| name.as_str().into()));
    fields.finish()
}

impl Version {
    fn encode(&self) -> Value {
        let mut fields = OmitEmptyFields::default();
        fields.set("name", self.name.as_str());
        fields.set("served", self.served);
        fields.set("storage", self.storage);
        fields.truth("deprecated", self.deprecated);
        fields.option("deprecationWarning", self.deprecation_warning.as_deref());
        if let Some(schema) = &self.schema {
            let mut validation = OmitEmptyFields::default();
            validation.option("openAPIV3Schema", schema.as_ref().map(|schema| schema.encode()));
            fields.set("schema", validation.finish());
        }
        if let Some(subresources) = &self.subresources {
            let mut encoded = OmitEmptyFields::default();
            if subresources.status {
                encoded.set("status", object! {});
            }
            encoded.option(
                "scale",
                subresources.scale.as_ref().map(|scale| {
                    let mut fields = OmitEmptyFields::default();
                    fields.set("specReplicasPath", scale.spec_replicas_path.as_str());
                    fields.set("statusReplicasPath", scale.status_replicas_path.as_str());
                    fields.option("labelSelectorPath", scale.label_selector_path.as_deref());
                    fields.finish()
                }),
            );
            fields.set("subresources", encoded.finish());
        }
        fields.list(
            "additionalPrinterColumns",
            self.columns.iter().map(|column| {
                let mut fields = OmitEmptyFields::default();
                fields.set("name", column.name.as_str());
                fields.set("type", column.type_.as_str());
                fields.text("format", &column.format);
                fields.text("description", &column.description);
                if column.priority != 0 {
                    fields.set("priority", i64::from(column.priority));
                }
                fields.set("jsonPath", column.json_path.as_str());
                fields.finish()
            }),
        );
        let selectable = self.selectable_fields.iter().map(|path| object! { "jsonPath" => path.as_str() });
        fields.list("selectableFields", selectable);
        fields.finish()
    }
}

impl Conversion {
    /// The conversion as the API shows it.
    pub fn encode(&self) -> Value {
        let mut fields = OmitEmptyFields::default();
        fields.set("strategy", self.strategy.as_str());
        fields.option(
            "webhook",
            self.webhook.as_ref().map(|webhook| {
                let mut fields = OmitEmptyFields::default();
                fields.option(
                    "clientConfig",
                    webhook.client_config.as_ref().map(|config| {
                        let mut fields = OmitEmptyFields::default();
                        fields.option("url", config.url.as_deref());
                        fields.option(
                            "service",
                            config.service.as_ref().map(|service| {
                                let mut fields = OmitEmptyFields::default();
                                fields.set("namespace", service.namespace.as_str());
                                fields.set("name", service.name.as_str());
                                fields.option("path", service.path.as_deref());
                                fields.option("port", service.port.map(i64::from));
                                fields.finish()
                            }),
                        );
                        fields.option("caBundle", config.ca_bundle.as_deref());
                        fields.finish()
                    }),
                );
                let versions = webhook.review_versions.iter().map(|version| Value::from(version.as_str()));
                fields.set("conversionReviewVersions", versions.collect::<Vec<_>>());
                fields.finish()
            }),
        );
        fields.finish()
    }
}

impl Status {
    fn encode(&self) -> Value {
        let conditions = self.conditions.iter().map(|condition| {
            let mut fields = OmitEmptyFields::default();
            fields.set("type", condition.type_.as_str());
            fields.set("status", condition.status.as_str());
            match condition.last_transition_time.as_str() {
                "" => fields.set("lastTransitionTime", Value::Null),
                time => fields.set("lastTransitionTime", time),
            }
            fields.text("reason", &condition.reason);
            fields.text("message", &condition.message);
            if condition.observed_generation != 0 {
                fields.set("observedGeneration", condition.observed_generation);
            }
            fields.finish()
        });
        let mut fields = OmitEmptyFields::default();
        fields.set(
            "conditions",
            if self.conditions.is_empty() { Value::Null } else { Value::Array(conditions.collect()) },
        );
        fields.set("acceptedNames", encode_names(&self.accepted_names));
        let stored: Vec<Value> = self.stored_versions.iter().map(|version| version.as_str().into()).collect();
        fields.set("storedVersions", if stored.is_empty() { Value::Null } else { Value::Array(stored) });
        if self.observed_generation != 0 {
            fields.set("observedGeneration", self.observed_generation);
        }
        fields.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::{defaults, strategy};
    use crate::value::json;

    fn value(text: &str) -> Value {
        json::decode(text.as_bytes()).expect("the text is JSON")
    }

    fn check_error(text: &str, expected: &str) {
        let error = decode(&value(text)).map(drop).map_err(|error| error.to_string());
        assert_eq!(error, Err(expected.to_owned()));
    }

    #[test]
    fn a_new_definition_has_an_empty_status_but_for_its_storage_version() {
        let text = r#"{
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
                     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {}}]},
            "status": {"storedVersions": ["v0"]}
        }"#;
        let text = value(text);
        let (mut definition, _) = decode(&text).expect("the definition is of the right types");
        defaults::set_defaults(&mut definition);
        strategy::prepare_create(&mut definition);
        let expected = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{"generation":1,"name":"foos.example.com"},
            "spec":{"conversion":{"strategy":"None"},"group":"example.com",
                "names":{"kind":"Foo","listKind":"FooList","plural":"foos","singular":"foo"},"scope":"Cluster",
                "versions":[{"name":"v1","schema":{},"served":true,"storage":true}]},
            "status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}}"#;
        assert_eq!(json::encode_to_string(&definition.encode()), json::encode_to_string(&value(expected)));
    }

    #[test]
    fn wrong_types_are_told_in_gos_words() {
        check_error(
            r#"{"spec": {"names": []}}"#,
            "json: cannot unmarshal array into Go struct field CustomResourceDefinitionSpec.spec.names of type \
             v1.CustomResourceDefinitionNames",
        );
        check_error(
            r#"{"metadata": {"name": 5}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        );
        check_error(
            r#"{"spec": {"versions": [{"additionalPrinterColumns": [{"priority": "x"}]}]}}"#,
            "json: cannot unmarshal string into Go struct field \
             CustomResourceColumnDefinition.spec.versions.additionalPrinterColumns.priority of type int32",
        );
    }

    #[test]
    fn a_webhook_with_nothing_in_it_is_dropped() {
        let text = value(r#"{"spec": {"conversion": {"strategy": "None", "webhook": {}}}}"#);
        let (definition, _) = decode(&text).expect("the definition is of the right types");
        assert_eq!(definition.spec.conversion, Some(Conversion { strategy: "None".to_owned(), webhook: None }));
    }

    #[test]
    fn the_time_of_a_condition_changes_with_its_status_only() {
        let condition = |status: &str, reason: &str| super::super::names::condition("Mine", status, reason, "");
        let mut definition = Definition::default();
        for (status, reason, now) in [("True", "A", "1"), ("True", "B", "2"), ("False", "C", "3")] {
            definition.set_condition(condition(status, reason), now);
            let expected = if status == "True" { "1" } else { "3" };
            let known = definition.condition("Mine").expect("the condition was set");
            assert_eq!((known.reason.as_str(), known.last_transition_time.as_str()), (reason, expected));
        }
    }
}
