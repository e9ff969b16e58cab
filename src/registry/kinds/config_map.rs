//! ConfigMap, core/v1.

use super::super::Resource;
use super::super::strategy::{Cell, Strategy, Subresource, Table};
use super::{Kind, metadata};
use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::object;
use crate::schema::message::Message;
use crate::value::{Value, base64};

/// The data of one object, in bytes. Source: Kubernetes' `MaxSecretSize`.
pub(super) const DATA_BYTES_MAX: usize = 1 << 20;

/// The ConfigMap that every namespace has: the authority to trust, in PEM.
pub fn root_authority(authority_pem: &str) -> Value {
    const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                               endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                               guaranteed across distributions of Kubernetes clusters.";
    object! {
        "apiVersion" => "v1",
        "kind" => "ConfigMap",
        "metadata" => object! {
            "name" => "kube-root-ca.crt",
            "annotations" => object! { "kubernetes.io/description" => DESCRIPTION },
        },
        "data" => object! { "ca.crt" => authority_pem },
    }
}

pub(super) fn resource() -> Resource {
    let kind = Kind {
        plural: "configmaps",
        singular: "configmap",
        kind: "ConfigMap",
        short_names: &["cm"],
        schema: include_str!("../../../schemas/configmap.yaml"),
        ..Kind::NAMESPACED
    };
    kind.resource(|message| ConfigMap { message })
}

struct ConfigMap {
    message: Message,
}

impl Strategy for ConfigMap {
    fn message(&self, _: &str) -> Option<&Message> {
        Some(&self.message)
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let mut size_bytes = 0;
        for (field, other) in [("data", "binaryData"), ("binaryData", "data")] {
            let path = Path::new(field);
            for (key, value) in entries(object, field) {
                let at = path.key(key);
                errors.extend(names::is_config_map_key(key).into_iter().map(|fault| Error::invalid(&at, key, fault)));
                if field == "data" && object.at(&[other, key]).is_some() {
                    errors.push(Error::invalid(&at, key, format!("duplicate of key present in {other}")));
                }
                size_bytes += match field {
                    "data" => value.as_str().unwrap_or_default().len(),
                    _ => decoded_bytes(value),
                };
            }
        }
        if size_bytes > DATA_BYTES_MAX {
            errors.push(Error::too_long(&Path::new(""), DATA_BYTES_MAX as i64));
        }
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(metadata::check_immutable(new, old, &["data", "binaryData"]));
        errors.extend(self.validate_create(version, new));
        errors
    }

    fn table(&self) -> Option<Table> {
        const DATA: &str = "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', \
                            '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys \
                            stored in Data must not overlap with the keys in the BinaryData field, this is enforced \
                            during validation process.";
        Some(Table::named(vec![Column::string("Data", DATA)], |object| {
            let count = entries(object, "data").count() + entries(object, "binaryData").count();
            Cell::named(object, vec![Cell::count(count)])
        }))
    }
}

/// The entries of a map in the object.
pub(super) fn entries<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = (&'v str, &'v Value)> + use<'v> {
    object.get(field).and_then(Value::as_object).into_iter().flat_map(|entries| entries.iter())
}

/// How many bytes a value in base64 stands for.
pub(super) fn decoded_bytes(value: &Value) -> usize {
    base64::decode(value.as_str().unwrap_or_default()).map_or(0, |bytes| bytes.len())
}
