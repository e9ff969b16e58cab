//! StorageVersion, internal.apiserver.k8s.io/v1alpha1: in which version each server stores a resource.
//!
//! Source: `pkg/apis/apiserverinternal` and `pkg/registry/apiserverinternal` of Kubernetes 1.36, with the types of 1.37.

use std::collections::{HashMap, HashSet};

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, checks, metadata, prepare};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::Value;

use crate::kinds::storage::columns;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "storageversions",
    singular: "storageversion",
    scope: Scope::Cluster,
    status: true,
    is_default: false,
    example: "metadata: {name: apps.deployments}\nspec: {}",
    ..Kind::new("internal.apiserver.k8s.io", "v1alpha1", "StorageVersion", &StorageVersion)
}];

struct StorageVersion;

impl Strategy for StorageVersion {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, name_is_group_and_resource);
        errors.extend(validate_status(&FieldRef::root(object).field("status")));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, _: &Value) -> ErrorList {
        match subresource {
            Subresource::Status => validate_status(&FieldRef::root(new).field("status")),
            _ => ErrorList::new(),
        }
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("CommonEncodingVersion", "The version that all servers store."),
            Column::string("StorageVersions", "The version that each server stores."),
        ];
        Some(Table::named(columns, cells))
    }
}

fn cells(version: &Value) -> Vec<Cell> {
    const SHOWN_MAX: usize = 3;
    let servers = version.items_at(&["status", "storageVersions"]);
    let text = |server: &Value| format!("{}={}", server.str_at(&["apiServerID"]), server.str_at(&["encodingVersion"]));
    let mut shown = servers.iter().take(SHOWN_MAX).map(text).collect::<Vec<_>>().join(",");
    if servers.len() > SHOWN_MAX {
        shown.push_str(&format!(" + {} more...", servers.len() - SHOWN_MAX));
    }
    if servers.is_empty() {
        shown.push_str("<unset>");
    }
    let common = columns::text_or(version.at(&["status", "commonEncodingVersion"]), "<unset>");
    Cell::named(version, vec![common, Cell::text(&shown)])
}

/// Checks that the name has the form `<group>.<resource>`.
fn name_is_group_and_resource(name: &str, _: bool) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let of_group = names::is_dns1123_subdomain(group).into_iter().map(|fault| format!("the group segment {fault}"));
    let of_resource =
        names::is_dns1035_label(resource).into_iter().map(|fault| format!("the resource segment {fault}"));
    of_group.chain(of_resource).collect()
}

fn validate_status(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    let servers = status.field("storageVersions");
    for server in servers.items() {
        let id = server.field("apiServerID");
        if !seen.insert(id.text().to_owned()) {
            errors.push(id.duplicate());
        }
        errors.extend(validate_server(&server));
    }
    errors.extend(validate_common(status, &servers));
    errors.extend(validate_conditions(status));
    errors
}

fn validate_server(server: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::named(&server.field("apiServerID"), names::is_dns1123_subdomain);
    let (stored, read, served) =
        (server.field("encodingVersion"), server.field("decodableVersions"), server.field("servedVersions"));
    errors.extend(validate_api_version(&stored));
    for version in read.items() {
        errors.extend(validate_api_version(&version));
    }
    let known: HashSet<&str> = read.texts().collect();
    if !known.contains(stored.text()) {
        let why = format!("decodableVersions must include encodingVersion {}", stored.text());
        errors.push(Error::invalid(read.path(), read.value().cloned().unwrap_or(Value::Null), why));
    }
    for version in served.items() {
        errors.extend(validate_api_version(&version));
        if !known.contains(version.text()) && !errors.is_full() {
            let all = read.texts().collect::<Vec<_>>().join(" ");
            let what = version.text();
            let why = format!("individual served version : {what} must be included in decodableVersions : [{all}]");
            errors.push(version.invalid(why));
        }
    }
    errors
}

/// Validates an API version such as `v1` or `apps/v1`.
fn validate_api_version(field: &FieldRef<'_>) -> Option<Error> {
    let prefixed = |faults: Vec<String>, part: &str| -> Vec<String> {
        faults.into_iter().map(|fault| format!("{part} part: {fault}")).collect()
    };
    let non_empty = |text: &str, check: fn(&str) -> Vec<String>| match text {
        "" => vec!["must be non-empty".to_owned()],
        text => check(text),
    };
    let faults = match field.text().split('/').collect::<Vec<_>>().as_slice() {
        [version] => prefixed(non_empty(version, names::is_dns1035_label), "version"),
        [group, version] => {
            let mut faults = prefixed(non_empty(group, names::is_dns1123_subdomain), "group");
            faults.extend(prefixed(non_empty(version, names::is_dns1035_label), "version"));
            faults
        }
        _ => {
            let why = "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', \
                       start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or \
                       'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain \
                       prefix and '/' (e.g. 'example.com/MyVersion')";
            vec![why.to_owned()]
        }
    };
    (!faults.is_empty()).then(|| field.invalid(faults.join(",")))
}

/// Checks that the common encoding version is set if all servers agree, and unset if they do not.
fn validate_common(status: &FieldRef<'_>, servers: &FieldRef<'_>) -> Option<Error> {
    let versions: HashSet<String> =
        servers.items().map(|server| server.field("encodingVersion").text().to_owned()).collect();
    let actual = versions.iter().next().filter(|_| versions.len() == 1);
    let told = status.field("commonEncodingVersion");
    match actual {
        None if told.is_set() => {
            let why = "should be nil if servers do not agree on the same encoding version, or if there is no server \
                       reporting the supported versions yet";
            Some(told.invalid(why))
        }
        Some(actual) if !told.is_set() => {
            Some(Error::invalid(told.path(), Value::Null, format!("the common encoding version is {actual}")))
        }
        Some(actual) if told.text() != actual => {
            Some(told.invalid(format!("the actual common encoding version is {actual}")))
        }
        _ => None,
    }
}

/// Validates the conditions. Their errors are reported at the status itself.
fn validate_conditions(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (index, condition) in status.field("conditions").items().enumerate() {
        let condition = FieldRef::new(condition.value(), status.path().index(index));
        let type_ = condition.field("type");
        if let Some(first) = seen.insert(type_.text().to_owned(), index) {
            let why = format!("the type of the condition is not unique, it also appears in conditions[{first}]");
            errors.push(type_.invalid(why));
        }
        for name in ["type", "status"] {
            errors.extend(checks::named(&condition.field(name), names::is_qualified_name));
        }
        errors.extend(checks::required_fields(&condition, &["reason", "message"]));
    }
    errors
}
