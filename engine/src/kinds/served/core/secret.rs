//! Secret, core/v1.

use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::{Value, base64, json, json_type};

use crate::kinds::data::{DATA_BYTES_MAX, decoded_bytes, entries};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, certificates, checks, metadata};

const DATA: Path<'static> = Path::new("data");

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "secrets",
    singular: "secret",
    selectable_fields: &[".type"],
    example: "metadata: {name: example}\nstringData: {password: secret}",
    ..Kind::new("", "v1", "Secret", &Secret)
}];

struct Secret;

impl Strategy for Secret {
    /// Adds `stringData` to the data, where it replaces existing values, and sets the default type.
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

    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        &[&["data"]]
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (now, before) = (FieldRef::root(new), FieldRef::root(old));
        errors.extend(checks::unchanged_as_json(&now.field("type"), &before.field("type")));
        errors.extend(metadata::check_immutable(new, old, &["data"]));
        errors.extend(self.validate_create(version, new));
        errors
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        if new.str_at(&["type"]) != "kubernetes.io/tls" {
            return Vec::new();
        }
        pair_fault(new).into_iter().collect()
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

/// Checks that a secret has the fields that its type requires.
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

/// Checks that the configuration of a registry client is a JSON object.
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

/// Why a server of TLS could not use a secret's certificate and key.
fn pair_fault(secret: &Value) -> Option<String> {
    let pem = |key: &str| base64::decode(secret.str_at(&["data", key])).unwrap_or_default();
    certificates::check_pair(&pem("tls.crt"), &pem("tls.key")).err().map(|error| error.to_string())
}
