//! Reading and writing definitions by the published type.

use super::{
    API_VERSION, ClientConfig, Condition, Conversion, Definition, KIND, ServiceReference, Spec, Status, Subresources,
    Version, WebhookConversion,
};
use crate::crd::{Column, Names, Scale};
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::meta::{object_meta, time};
use crate::object;
use crate::types::decoder::Findings;
use crate::types::field_value::{FieldValue, GivenEmpty, WrittenFields, read};
use crate::types::{self, Message};
use crate::value::{Value, base64};

/// The package of the published types.
const PACKAGE: &str = "apiextensions.v1";

/// Reads a definition; also returns the findings for strict validation.
///
/// # Errors
///
/// Go's text for the first value of a wrong type.
pub fn decode(value: &Value) -> Result<(Definition, Findings), UnmarshalError> {
    decode_in(Minor::NEWEST, value)
}

/// [`decode`] as that version of Kubernetes does it: later fields are unknown.
///
/// The value is read twice: by the published types for Go's errors, then into a [`Definition`].
///
/// # Errors
///
/// Go's text for the first value of a wrong type.
pub fn decode_in(minor: Minor, value: &Value) -> Result<(Definition, Findings), UnmarshalError> {
    let findings = published(KIND).check(minor, value)?;
    // Ownership of empty lists in a definition is not tracked.
    Ok((read_in(minor, value), Findings { empty: Vec::new(), ..findings }))
}

/// Reads a definition that [`decode_in`] accepted before.
pub fn read_in(minor: Minor, value: &Value) -> Definition {
    let metadata = value.get("metadata").and_then(|metadata| object_meta::decode(metadata).ok());
    Definition {
        metadata: metadata.map_or_else(|| object! {}, |(metadata, _)| metadata),
        spec: value.get("spec").map(|spec| Spec::read(minor, spec)).unwrap_or_default(),
        status: value.get("status").map(|status| Status::read(minor, status)).unwrap_or_default(),
        minor,
    }
}

/// A published type of this group and version.
fn published(name: &str) -> &'static Message {
    types::message_named(PACKAGE, name)
}

/// Reads a field, unless the version of Kubernetes does not know it.
fn read_known<T: FieldValue + Default>(minor: Minor, type_: &str, object: &Value, name: &str) -> T {
    if types::is_field_in(minor, PACKAGE, type_, name) { read(object, name) } else { T::default() }
}

impl Spec {
    fn read(minor: Minor, value: &Value) -> Self {
        let versions = value.get("versions").and_then(Value::as_array);
        Spec {
            group: read(value, "group"),
            names: read(value, "names"),
            scope: read(value, "scope"),
            names_versions: versions.is_some(),
            versions: versions.unwrap_or_default().iter().map(|version| Version::read(minor, version)).collect(),
            conversion: read(value, "conversion"),
            preserve_unknown_fields: read(value, "preserveUnknownFields"),
        }
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("group", &self.group);
        fields.put("names", &self.names);
        fields.put("scope", &self.scope);
        if !self.versions.is_empty() || self.names_versions {
            fields.set("versions", self.versions.iter().map(|version| version.write(given_empty)).collect::<Vec<_>>());
        }
        fields.put("conversion", &self.conversion);
        fields.put("preserveUnknownFields", &self.preserve_unknown_fields);
        fields.of(published("CustomResourceDefinitionSpec"))
    }
}

impl FieldValue for Names {
    fn read(value: &Value) -> Self {
        Names {
            plural: read(value, "plural"),
            singular: read(value, "singular"),
            kind: read(value, "kind"),
            list_kind: read(value, "listKind"),
            short_names: read(value, "shortNames"),
            categories: read(value, "categories"),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("plural", &self.plural);
        fields.put("singular", &self.singular);
        fields.put("kind", &self.kind);
        fields.put("listKind", &self.list_kind);
        fields.put("shortNames", &self.short_names);
        fields.put("categories", &self.categories);
        fields.of(published("CustomResourceDefinitionNames"))
    }
}

impl Version {
    fn read(minor: Minor, value: &Value) -> Self {
        let paths: Vec<SelectableField> =
            read_known(minor, "CustomResourceDefinitionVersion", value, "selectableFields");
        let schema = value.get("schema").filter(|schema| !schema.is_null());
        Version {
            name: read(value, "name"),
            served: read(value, "served"),
            storage: read(value, "storage"),
            deprecated: read(value, "deprecated"),
            deprecation_warning: read(value, "deprecationWarning"),
            schema: schema.map(|schema| read(schema, "openAPIV3Schema")),
            subresources: read(value, "subresources"),
            columns: read(value, "additionalPrinterColumns"),
            selectable_fields: paths.into_iter().map(|field| field.0).collect(),
        }
    }

    /// The version as the API shows it.
    pub(in crate::crd) fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("name", &self.name);
        fields.put("served", &self.served);
        fields.put("storage", &self.storage);
        fields.put("deprecated", &self.deprecated);
        fields.put("deprecationWarning", &self.deprecation_warning);
        if let Some(schema) = &self.schema {
            let mut validation = WrittenFields::new(given_empty);
            validation.put("openAPIV3Schema", schema);
            fields.set("schema", validation.of(published("CustomResourceValidation")));
        }
        fields.put("subresources", &self.subresources);
        fields.put("additionalPrinterColumns", &self.columns);
        let paths: Vec<_> = self.selectable_fields.iter().cloned().map(SelectableField).collect();
        fields.put("selectableFields", &paths);
        fields.of(published("CustomResourceDefinitionVersion"))
    }
}

/// An item of `selectableFields`.
struct SelectableField(String);

impl FieldValue for SelectableField {
    fn read(value: &Value) -> Self {
        SelectableField(read(value, "jsonPath"))
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, _: GivenEmpty) -> Value {
        object! { "jsonPath" => self.0.as_str() }
    }
}

impl FieldValue for Subresources {
    fn read(value: &Value) -> Self {
        let status = value.get("status").is_some_and(|status| !status.is_null());
        Subresources { status, scale: read(value, "scale") }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        if self.status {
            fields.set("status", object! {});
        }
        fields.put("scale", &self.scale);
        fields.of(published("CustomResourceSubresources"))
    }
}

impl FieldValue for Scale {
    fn read(value: &Value) -> Self {
        Scale {
            spec_replicas_path: read(value, "specReplicasPath"),
            status_replicas_path: read(value, "statusReplicasPath"),
            label_selector_path: read(value, "labelSelectorPath"),
            ..Scale::default()
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("specReplicasPath", &self.spec_replicas_path);
        fields.put("statusReplicasPath", &self.status_replicas_path);
        fields.put("labelSelectorPath", &self.label_selector_path);
        fields.of(published("CustomResourceSubresourceScale"))
    }
}

impl FieldValue for Column {
    fn read(value: &Value) -> Self {
        Column {
            name: read(value, "name"),
            type_: read(value, "type"),
            format: read(value, "format"),
            description: read(value, "description"),
            priority: read(value, "priority"),
            json_path: read(value, "jsonPath"),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("name", &self.name);
        fields.put("type", &self.type_);
        fields.put("format", &self.format);
        fields.put("description", &self.description);
        fields.put("priority", &self.priority);
        fields.put("jsonPath", &self.json_path);
        fields.of(published("CustomResourceColumnDefinition"))
    }
}

impl FieldValue for Conversion {
    fn read(value: &Value) -> Self {
        let webhook = value.get("webhook");
        let names_versions =
            webhook.is_some_and(|webhook| webhook.get("conversionReviewVersions").is_some_and(|it| !it.is_null()));
        let webhook: Option<WebhookConversion> = webhook.map(FieldValue::read).unwrap_or_default();
        // An empty webhook counts as none: Kubernetes keeps its parts, not the webhook itself.
        let webhook = webhook.filter(|webhook| names_versions || webhook.client_config.is_some());
        Conversion { strategy: read(value, "strategy"), webhook }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("strategy", &self.strategy);
        fields.put("webhook", &self.webhook);
        fields.of(published("CustomResourceConversion"))
    }
}

impl FieldValue for WebhookConversion {
    fn read(value: &Value) -> Self {
        WebhookConversion {
            client_config: read(value, "clientConfig"),
            review_versions: read(value, "conversionReviewVersions"),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("clientConfig", &self.client_config);
        fields.set("conversionReviewVersions", self.review_versions.write(given_empty));
        fields.of(published("WebhookConversion"))
    }
}

impl FieldValue for ClientConfig {
    fn read(value: &Value) -> Self {
        let url = read(value, "url");
        ClientConfig { url, service: read(value, "service"), ca_bundle: value.get("caBundle").and_then(read_bytes) }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("url", &self.url);
        fields.put("service", &self.service);
        fields.put("caBundle", &self.ca_bundle);
        fields.of(published("WebhookClientConfig"))
    }
}

/// Bytes in base64, without line breaks, which are dropped when it is written; `None` if there are no bytes.
fn read_bytes(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.replace(['\r', '\n'], ""),
        Value::Array(items) => {
            let byte = |item: &Value| item.as_i64().and_then(|byte| u8::try_from(byte).ok()).unwrap_or_default();
            base64::encode(&items.iter().map(byte).collect::<Vec<u8>>())
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}

impl FieldValue for ServiceReference {
    fn read(value: &Value) -> Self {
        ServiceReference {
            namespace: read(value, "namespace"),
            name: read(value, "name"),
            path: read(value, "path"),
            port: read(value, "port"),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("namespace", &self.namespace);
        fields.put("name", &self.name);
        fields.put("path", &self.path);
        fields.put("port", &self.port);
        fields.of(published("ServiceReference"))
    }
}

impl Status {
    fn read(minor: Minor, value: &Value) -> Self {
        let conditions = value.items_at(&["conditions"]);
        Status {
            conditions: conditions.iter().map(|condition| Condition::read(minor, condition)).collect(),
            accepted_names: read(value, "acceptedNames"),
            stored_versions: read(value, "storedVersions"),
            observed_generation: read_known(minor, "CustomResourceDefinitionStatus", value, "observedGeneration"),
        }
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        if !self.conditions.is_empty() {
            fields.set(
                "conditions",
                self.conditions.iter().map(|condition| condition.write(given_empty)).collect::<Vec<_>>(),
            );
        }
        fields.put("acceptedNames", &self.accepted_names);
        fields.put("storedVersions", &self.stored_versions);
        fields.put("observedGeneration", &self.observed_generation);
        fields.of(published("CustomResourceDefinitionStatus"))
    }
}

impl Condition {
    fn read(minor: Minor, value: &Value) -> Self {
        let time = value.get("lastTransitionTime").and_then(Value::as_str).map(time::normalize);
        Condition {
            type_: read(value, "type"),
            status: read(value, "status"),
            last_transition_time: time.and_then(|time| time.ok().flatten()).unwrap_or_default(),
            reason: read(value, "reason"),
            message: read(value, "message"),
            observed_generation: read_known(minor, "CustomResourceDefinitionCondition", value, "observedGeneration"),
        }
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("type", &self.type_);
        fields.put("status", &self.status);
        fields.put("lastTransitionTime", &self.last_transition_time);
        fields.put("reason", &self.reason);
        fields.put("message", &self.message);
        fields.put("observedGeneration", &self.observed_generation);
        fields.of(published("CustomResourceDefinitionCondition"))
    }
}

impl Definition {
    /// The definition as the API shows it.
    pub fn encode(&self) -> Value {
        object! {
            "apiVersion" => API_VERSION,
            "kind" => KIND,
            "metadata" => self.metadata.clone(),
            "spec" => self.spec.write(GivenEmpty::LeftOut),
            "status" => self.status.write(GivenEmpty::LeftOut),
        }
    }
}

#[cfg(test)]
mod tests;
