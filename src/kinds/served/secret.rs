//! Secret, core/v1.

use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::{Message, boolean, bytes, string};
use crate::value::{Value, base64, json, json_type};

use super::super::data::{DATA_BYTES_MAX, decoded_bytes, entries};
use super::super::strategy::{Cell, Strategy, Subresource, Table};
use super::super::{Kind, metadata};

const DATA: Path<'static> = Path::new("data");

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "secrets",
    singular: "secret",
    selectable_fields: &[".type"],
    example: "metadata: {name: example}\nstringData: {password: secret}",
    ..Kind::new(&SECRET, &LIST, &Secret)
}];

static SECRET: Message = Message::object(
    "Secret",
    &[
        METADATA,
        boolean(5, "immutable").pointer().describe("Once true, data can't be changed any more."),
        bytes(2, "data").map().describe("Bytes by key, in base64."),
        string(4, "stringData").map().describe("Texts by key, which a write puts into data. They are never read back."),
        string(3, "type")
            .go_type("v1.SecretType")
            .describe("What the secret is for, which decides on the keys that it needs. It can't be changed."),
    ],
)
.describe("Secret holds bytes of a certain type that not everybody may read.");

static LIST: Message = Message::object("SecretList", &[LIST_METADATA, items(&SECRET)]);

struct Secret;

impl Strategy for Secret {
    /// What is given as text goes into the data, over what is there.
    fn set_typed_defaults(&self, object: &mut Value) {
        let fields = object.make_object();
        if let Some(Value::Object(texts)) = fields.remove("stringData") {
            let data = fields.entry("data").make_object();
            for (key, text) in texts {
                let bytes = text.as_str().unwrap_or_default().as_bytes();
                data.insert(key, Value::String(base64::encode(bytes)));
            }
        }
        if !fields.contains_key("type") {
            fields.insert("type", Value::from("Opaque"));
        }
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let mut size_bytes = 0;
        for (key, value) in entries(object, "data") {
            let at = DATA.key(key);
            errors.extend(names::is_config_map_key(key).into_iter().map(|fault| Error::invalid(&at, key, fault)));
            size_bytes += decoded_bytes(value);
        }
        if size_bytes > DATA_BYTES_MAX {
            errors.push(Error::too_long(&DATA, DATA_BYTES_MAX as i64));
        }
        errors.extend(validate_type(object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        if new.str_at(&["type"]).is_empty()
            && let Some(type_) = old.get("type")
        {
            new.make_object().insert("type", type_.clone());
        }
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(metadata::check_unchanged(new, old, "type"));
        errors.extend(metadata::check_immutable(new, old, &["data"]));
        errors.extend(self.validate_create(version, new));
        errors
    }

    fn unknown_field_label(&self, _: &ServedVersion, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn table(&self) -> Option<Table> {
        const TYPE: &str = "Used to facilitate programmatic handling of secret data. More info: \
                            https://kubernetes.io/docs/concepts/configuration/secret/#secret-types";
        const DATA: &str = "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or \
                            '.'. The serialized form of the secret data is a base64 encoded string, representing the \
                            arbitrary (possibly non-string) data value here. Described in \
                            https://tools.ietf.org/html/rfc4648#section-4";
        let columns = vec![Column::string("Type", TYPE), Column::string("Data", DATA)];
        Some(Table::named(columns, |object| {
            let count = Cell::count(entries(object, "data").count());
            Cell::named(object, vec![Cell::text(object.str_at(&["type"])), count])
        }))
    }
}

/// What a secret lacks for its type.
fn validate_type(object: &Value) -> ErrorList {
    let data = |key: &str| object.at(&["data", key]);
    let required = |key: &str| Error::required(&DATA.key(key), "");
    match object.str_at(&["type"]) {
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            let is_named = !object.str_at(&["metadata", "annotations", ACCOUNT]).is_empty();
            let annotations = metadata::METADATA.child("annotations");
            if is_named { ErrorList::new() } else { Error::required(&annotations.key(ACCOUNT), "").into() }
        }
        "kubernetes.io/dockercfg" => validate_json(object, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => validate_json(object, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if data("username").is_none() && data("password").is_none() => {
            ErrorList::from_iter([required("username"), required("password")])
        }
        "kubernetes.io/ssh-auth" if data("ssh-privatekey").is_none_or(|value| decoded_bytes(value) == 0) => {
            required("ssh-privatekey").into()
        }
        "kubernetes.io/tls" => {
            ["tls.crt", "tls.key"].into_iter().filter(|key| data(key).is_none()).map(required).collect()
        }
        _ => ErrorList::new(),
    }
}

/// The configuration of a registry client must be a JSON object.
fn validate_json(object: &Value, key: &str) -> ErrorList {
    let at = DATA.key(key);
    let Some(value) = object.at(&["data", key]) else { return Error::required(&at, "").into() };
    let bytes = base64::decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    let fault = match json::decode(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return ErrorList::new(),
        Ok(other) => {
            let found = json_type(&other);
            format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
        }
        Err(error) => error.to_string(),
    };
    Error::invalid(&at, "<secret contents redacted>", fault).into()
}

#[cfg(test)]
mod tests {
    use k8s_pb::api::core::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::Secret, v1::SecretList>(KINDS[0]);
    }
}
