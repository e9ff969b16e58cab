//! Shared code of the kinds of resource.k8s.io: names, bounded lists, requests, selectors, taints.
//!
//! Source: `pkg/apis/resource/validation`, release 1.37.

mod names;
pub(crate) mod older;
pub(crate) mod request;
mod selector;
pub(crate) mod slice;
mod capacity;
pub(crate) mod status;
mod status_rights;
pub(crate) mod taint;

use std::collections::BTreeSet;

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::value::{Value, json};

pub use names::{driver_name, labels, pool_name, qualified_name, request_reference, uid};
pub use selector::selectors;
pub use status_rights::{allocated_node, changed_drivers, changes_binding};

pub const REQUESTS_MAX: usize = 32;
pub const CONFIGS_MAX: usize = 32;
pub const PARAMETERS_BYTES_MAX: usize = 10 << 10;

/// The faults of each item; of a list with more than `max` items, only that.
pub fn list(field: &FieldRef<'_>, max: usize, check: impl Fn(&FieldRef<'_>) -> ErrorList) -> ErrorList {
    let mut errors = ErrorList::new();
    if field.len() > max {
        errors.push(field.too_many(max as i64));
        return errors;
    }
    for item in field.items() {
        errors.extend(check(&item));
    }
    errors
}

/// [`list`] for items whose `key` must be unique.
pub fn set(
    field: &FieldRef<'_>,
    max: usize,
    key: impl Fn(&Value) -> String,
    check: impl Fn(&FieldRef<'_>) -> ErrorList,
) -> ErrorList {
    let mut errors = list(field, max, check);
    if field.len() > max {
        return errors;
    }
    let mut seen = BTreeSet::new();
    for item in field.items() {
        let key = key(item.value().unwrap_or(&Value::Null));
        if !seen.insert(key.clone()) {
            errors.push(Error::duplicate(item.path(), key));
        }
    }
    errors
}

/// The key of texts, for [`set`].
pub fn by_text(item: &Value) -> String {
    item.as_str().unwrap_or_default().to_owned()
}

/// The key of structs with a name, for [`set`].
pub fn by_name(item: &Value) -> String {
    item.str_at(&["name"]).to_owned()
}

/// How a device of a claim or of a class is set up.
pub fn configuration(field: &FieldRef<'_>, is_stored: bool) -> ErrorList {
    let opaque = field.field("opaque");
    if !opaque.is_set() {
        return [opaque.required("")].into_iter().collect();
    }
    let mut errors = driver_name(&opaque.field("driver"));
    errors.extend(raw(&opaque.field("parameters"), is_stored, PARAMETERS_BYTES_MAX));
    errors
}

/// An object that only others understand.
pub fn raw(field: &FieldRef<'_>, is_stored: bool, bytes_max: usize) -> Option<Error> {
    let value = field.value();
    match value {
        None => Some(field.required("")),
        Some(value) if !is_stored && json::encode(value).len() > bytes_max => Some(field.too_long(bytes_max as i64)),
        Some(Value::Object(_)) => None,
        Some(_) => Some(Error::invalid(field.path(), "<value omitted>", "must be a valid JSON object")),
    }
}

/// The label of a namespace in which administrative access to devices may be requested.
const ADMIN_ACCESS: &str = "resource.kubernetes.io/admin-access";

/// Administrative access to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminAccess {
    /// A claim, or a template of claims, asks for it in this request.
    Asked(usize),
    /// An allocation grants it in this result.
    Granted(usize),
}

/// The administrative access that a new object asks for, or that is first granted by the change from `old` to `object`.
pub fn admin_access(group: &str, plural: &str, object: &Value, old: Option<&Value>) -> Option<AdminAccess> {
    let is_true = |at: Option<&Value>| at.and_then(Value::as_bool) == Some(true);
    let granted = |object: &Value| {
        let results = object.items_at(&["status", "allocation", "devices", "results"]);
        results.iter().position(|result| is_true(result.get("adminAccess")))
    };
    let requests = match (group, plural, old) {
        ("resource.k8s.io", "resourceclaims", Some(old)) => {
            return granted(object).filter(|_| granted(old).is_none()).map(AdminAccess::Granted);
        }
        ("resource.k8s.io", "resourceclaims", None) => object.items_at(&["spec", "devices", "requests"]),
        ("resource.k8s.io", "resourceclaimtemplates", None) => {
            object.items_at(&["spec", "spec", "devices", "requests"])
        }
        _ => &[],
    };
    // The older versions have it in the request itself.
    let asks =
        |request: &Value| is_true(request.at(&["exactly", "adminAccess"])) || is_true(request.get("adminAccess"));
    requests.iter().position(asks).map(AdminAccess::Asked)
}

/// The error of administrative access in `namespace`, if that exists.
///
/// Source: `AuthorizedForAdmin` and `AuthorizedForAdminStatus` of `pkg/registry/resource`, release 1.36.
pub fn check_admin_access(access: AdminAccess, name: &str, namespace: Option<&Value>) -> Option<Error> {
    match access {
        AdminAccess::Asked(at) => {
            let (spec, devices) = (Path::new("spec"), "devices");
            refuse_admin_access(&spec.child(devices).child("requests").index(at), name, namespace)
        }
        AdminAccess::Granted(at) => {
            let status = Path::new("status");
            let allocation = status.child("allocation");
            refuse_admin_access(&allocation.child("devices").child("results").index(at), name, namespace)
        }
    }
}

fn refuse_admin_access(path: &Path<'_>, name: &str, namespace: Option<&Value>) -> Option<Error> {
    let path = path.child("adminAccess");
    let Some(namespace) = namespace else {
        let name = crate::value::go_quote(name);
        let why = format!("could not retrieve namespace to verify admin access: namespaces {name} not found");
        return Some(Error::internal(&path, why));
    };
    let is_allowed = namespace.str_at(&["metadata", "labels", ADMIN_ACCESS]) == "true";
    let why = format!("admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace");
    (!is_allowed).then(|| Error::forbidden(&path, why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    #[test]
    fn administrative_access_takes_a_labelled_namespace() {
        let claim = read("spec: {devices: {requests: [{name: a, exactly: {adminAccess: true}}]}}");
        let access =
            |plural: &str, object: &Value, old: Option<&Value>| admin_access("resource.k8s.io", plural, object, old);
        let asked = Some(AdminAccess::Asked(0));
        assert_eq!(access("resourceclaims", &claim, None), asked);
        assert_eq!(access("resourceclaims", &claim, Some(&claim)), None);
        assert_eq!(access("resourceclaimtemplates", &claim, None), None);
        assert_eq!(access("resourceclaimtemplates", &crate::object! { "spec" => claim.clone() }, None), asked);
        let allocated = read("status: {allocation: {devices: {results: [{request: a}, {adminAccess: true}]}}}");
        assert_eq!(access("resourceclaims", &allocated, Some(&claim)), Some(AdminAccess::Granted(1)));
        assert_eq!(access("resourceclaims", &allocated, Some(&allocated)), None);
        let told = |access: AdminAccess, labels: &str| {
            let namespace = read(&format!("metadata: {{labels: {{{labels}}}}}"));
            check_admin_access(access, "n", Some(&namespace)).map(|error| error.to_string())
        };
        assert_eq!(told(AdminAccess::Asked(0), "resource.kubernetes.io/admin-access: 'true'"), None);
        let why = "adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` \
                   label on the containing namespace";
        let [asked, granted] = ["spec.devices.requests[0]", "status.allocation.devices.results[1]"];
        assert_eq!(told(AdminAccess::Asked(0), ""), Some(format!("{asked}.{why}")));
        assert_eq!(told(AdminAccess::Granted(1), ""), Some(format!("{granted}.{why}")));
    }
}
