//! ServiceAccount, core/v1.

use crate::crd::{Column, ServedVersion};
use crate::meta::field::ErrorList;
use crate::meta::names;
use crate::object;
use crate::value::Value;

use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Action, Kind, Part, TOKEN_REQUEST, metadata};

/// The account that every namespace has.
pub fn default() -> Value {
    object! { "apiVersion" => "v1", "kind" => "ServiceAccount", "metadata" => object! { "name" => "default" } }
}

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    parts: &[Part { name: "token", verbs: &["create"], kind: Some(&TOKEN_REQUEST), action: Action::IssueToken }],
    example: "metadata: {name: example}\nsecrets: [{name: a}, {name: b}]",
    ..Kind::new("", "v1", "ServiceAccount", &ServiceAccount)
}];

struct ServiceAccount;

/// Of a reference to a secret only the name counts.
fn keep_names(object: &mut Value) {
    let Some(Value::Array(secrets)) = object.get_mut("secrets") else { return };
    for secret in secrets {
        secret.make_object().retain(|field, _| field == "name");
    }
}

impl Strategy for ServiceAccount {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        keep_names(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        metadata::validate(object, true, names::name_is_dns1123_subdomain)
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, _: &Value) {
        keep_names(new);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(self.validate_create(version, new));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
        let has = |object: &Value| object.at(&["metadata", "annotations", MOUNTABLE]).is_some();
        let text = format!(
            "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        );
        if has(new) && !old.is_some_and(has) { vec![text] } else { Vec::new() }
    }

    fn table(&self) -> Option<Table> {
        const SECRETS: &str = "Secrets is a list of the secrets in the same namespace that pods running using this \
                               ServiceAccount are allowed to use. Pods are only limited to this list if this service \
                               account has a \"kubernetes.io/enforce-mountable-secrets\" annotation set to \"true\". The \
                               \"kubernetes.io/enforce-mountable-secrets\" annotation is deprecated since v1.32. Prefer \
                               separate namespaces to isolate access to mounted secrets. This field should not be used \
                               to find auto-generated service account token secrets for use outside of pods. Instead, \
                               tokens can be requested directly using the TokenRequest API, or service account token \
                               secrets can be manually created. More info: \
                               https://kubernetes.io/docs/concepts/configuration/secret";
        Some(Table::named(vec![Column::string("Secrets", SECRETS)], |object| {
            let secrets = object.get("secrets").and_then(Value::as_array).unwrap_or_default();
            Cell::named(object, vec![Cell::count(secrets.len())])
        }))
    }
}
