//! ServiceAccount, core/v1.

use crate::crd::ServedVersion;
use crate::meta::field::ErrorList;
use crate::meta::names;
use crate::value::Value;

use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::token_request::TOKEN_REQUEST;
use crate::kinds::{Action, Kind, Part, metadata};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    parts: &[Part::new("token", &["create"], Some(&TOKEN_REQUEST), Action::IssueToken)],
    example: "metadata: {name: example}\nsecrets: [{name: a}, {name: b}]",
    ..Kind::new("", "v1", "ServiceAccount", &ServiceAccount)
}];

struct ServiceAccount;

/// Removes everything but the name from references to secrets.
fn keep_names(object: &mut Value) {
    let Some(Value::Array(secrets)) = object.get_mut("secrets") else { return };
    for secret in secrets {
        secret.make_object().retain(|field, _| field == "name");
    }
}

impl Strategy for ServiceAccount {
    fn returns_deleted(&self) -> bool {
        true
    }

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
        Some(Table::named(Vec::new(), |object| Cell::named(object, Vec::new())))
    }
}
