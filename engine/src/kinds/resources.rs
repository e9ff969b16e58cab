//! Compute resources: their valid names, and the valid quantities of them.
//!
//! Shared by pods, claims, nodes, limit ranges and quotas. Input: names and quantities of a `ResourceList`. Output:
//! errors.
//!
//! Source: `pkg/apis/core/helper` and `pkg/apis/core/validation`, release 1.36.

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::quantity::Quantity;
use crate::value::{Value, json};

/// The prefix of the names of huge page resources.
const HUGE_PAGES_PREFIX: &str = "hugepages-";
const REQUESTS_PREFIX: &str = "requests.";
const NATIVE_PREFIX: &str = "kubernetes.io/";

const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources that are counted, not measured.
const OBJECTS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const LIMITS_AND_REQUESTS: [&str; 7] = [
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "requests.storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// Whether the resource is memory in huge pages: `hugepages-2Mi`.
pub fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

/// Whether the resource is a standard one of Kubernetes.
pub fn is_standard(name: &str) -> bool {
    is_standard_quota(name) || name == "storage"
}

/// Whether a quota can limit the resource by a standard name.
pub fn is_standard_quota(name: &str) -> bool {
    let is_huge_page = is_huge_page(name.strip_prefix(REQUESTS_PREFIX).unwrap_or(name));
    is_huge_page || CONTAINER.contains(&name) || OBJECTS.contains(&name) || LIMITS_AND_REQUESTS.contains(&name)
}

/// Whether a container can request the resource by a name without a domain.
pub fn is_standard_container(name: &str) -> bool {
    CONTAINER.contains(&name) || is_huge_page(name)
}

/// Whether the resource is Kubernetes' own: its name has no domain, or Kubernetes' domain.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE_PREFIX)
}

/// Whether the resource is an extended one, outside Kubernetes' domain: `example.com/gpu`.
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with(REQUESTS_PREFIX)
        && names::is_qualified_name(&format!("{REQUESTS_PREFIX}{name}")).is_empty()
}

/// Whether limits may exceed requests, that is, whether the resource can be overcommitted.
pub fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether quantities of the resource must be integers.
pub fn is_integer(name: &str) -> bool {
    OBJECTS.contains(&name) || is_extended(name)
}

/// Whether a pod as a whole can request the resource.
pub fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_page(name)
}

/// Validates the name of a resource at `path`.
pub fn validate_name(name: &str, path: &Path<'_>) -> ErrorList {
    let faults = names::is_qualified_name(name);
    if !faults.is_empty() {
        return faults.into_iter().map(|fault| invalid(path, name, &fault)).collect();
    }
    let is_unknown = !name.contains('/') && !is_standard(name);
    let why = "must be a standard resource type or fully qualified";
    is_unknown.then(|| invalid(path, name, why)).into_iter().collect()
}

/// Validates the name of a resource that a container requests.
pub fn validate_container_name(name: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = validate_name(name, path);
    if !name.contains('/') {
        if !is_standard_container(name) {
            errors.push(invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(invalid(path, name, "doesn't follow extended resource name standard"));
    }
    errors
}

/// Validates the name of a resource that a pod as a whole requests.
pub fn validate_pod_name(name: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = validate_name(name, path);
    if errors.is_empty() && !is_pod_level(name) {
        let supported = ["cpu", HUGE_PAGES_PREFIX, "memory"];
        errors.push(Error::not_supported(path, name, &supported).shown_as(quoted(name)));
    }
    errors
}

/// Validates the name of a resource that a quota limits.
pub fn validate_quota_name(name: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = validate_name(name, path);
    if !name.contains('/') && !is_standard_quota(name) {
        errors.push(invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

/// The quantity in a field; 0 if it is not set.
pub fn quantity(field: &FieldRef<'_>) -> Quantity {
    parse(field.value())
}

/// The quantity in a value; 0 if it is absent or not a quantity.
pub fn parse(value: Option<&Value>) -> Quantity {
    let text = value.and_then(Value::as_str).unwrap_or("0");
    Quantity::parse(text).unwrap_or_else(|_| Quantity::from_i64(0))
}

/// Validates a quantity of the resource `name`.
pub fn validate_quantity(name: &str, field: &FieldRef<'_>) -> ErrorList {
    let quantity = quantity(field);
    let mut errors = ErrorList::new();
    errors.extend(validate_nonnegative(field));
    if is_integer(name) && !quantity.is_whole() {
        errors.push(Error::invalid(field.path(), quantity.to_string(), "must be an integer"));
    }
    errors
}

/// Checks that a quantity is not negative.
pub fn validate_nonnegative(field: &FieldRef<'_>) -> Option<Error> {
    let quantity = quantity(field);
    let why = "must be greater than or equal to 0";
    (quantity.signum() < 0).then(|| Error::invalid(field.path(), quantity.to_string(), why))
}

/// Checks that a quantity is positive.
pub fn validate_positive(field: &FieldRef<'_>) -> Option<Error> {
    let quantity = quantity(field);
    (quantity.signum() <= 0).then(|| Error::invalid(field.path(), quantity.to_string(), "must be greater than zero"))
}

/// Checks that a quantity, rounded up to whole units, is not negative.
pub fn validate_basic(field: &FieldRef<'_>) -> Option<Error> {
    let value = quantity(field).value();
    (value < 0).then(|| Error::invalid(field.path(), value, "must be a valid resource quantity"))
}

/// Whether a quantity of huge pages is a multiple of the page size in `name`.
pub fn is_divisible_by_page(name: &str, quantity: &Quantity) -> bool {
    let size = name.strip_prefix(HUGE_PAGES_PREFIX).and_then(|size| Quantity::parse(size).ok());
    size.is_some_and(|size| {
        size.signum() > 0 && size.is_whole() && quantity.value().checked_rem(size.value()) == Some(0)
    })
}

/// Rounds the quantities of a list up to thousandths, as Go does after reading one.
pub fn set_list_defaults(list: Option<&mut Value>) {
    let Some(Value::Object(list)) = list else { return };
    for quantity in list.values_mut() {
        crate::work::step();
        if let Some(parsed) = quantity.as_str().and_then(|text| Quantity::parse(text).ok()) {
            *quantity = Value::from(parsed.round_up_to_milli().to_string());
        }
    }
}

/// Sets the defaults of both lists in `resources`.
pub fn set_requirements_defaults(object: &mut Value) {
    let Some(resources) = object.get_mut("resources") else { return };
    set_list_defaults(resources.get_mut("limits"));
    set_list_defaults(resources.get_mut("requests"));
}

/// The error for the name of a resource. Such names have their own type in Go, so errors show them as JSON.
fn invalid(path: &Path<'_>, name: &str, why: &str) -> Error {
    Error::invalid(path, name, why).shown_as(quoted(name))
}

fn quoted(name: &str) -> String {
    json::encode_to_string(&Value::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(validate: fn(&str, &Path<'_>) -> ErrorList, name: &str, expect: &str) {
        assert_eq!(validate(name, &Path::new("x").key(name)).aggregate(), expect, "{name}");
    }

    #[test]
    fn names_are_standard_or_have_a_domain() {
        for name in ["cpu", "hugepages-2Mi", "example.com/gpu", "kubernetes.io/x"] {
            check(validate_container_name, name, "");
        }
        check(
            validate_container_name,
            "cpus",
            r#"[x[cpus]: Invalid value: "cpus": must be a standard resource type or fully qualified, x[cpus]: Invalid value: "cpus": must be a standard resource for containers]"#,
        );
        check(
            validate_container_name,
            "pods",
            r#"x[pods]: Invalid value: "pods": must be a standard resource for containers"#,
        );
        check(
            validate_container_name,
            "requests.example.com/gpu",
            r#"x[requests.example.com/gpu]: Invalid value: "requests.example.com/gpu": doesn't follow extended resource name standard"#,
        );
        check(validate_pod_name, "memory", "");
        check(
            validate_pod_name,
            "storage",
            r#"x[storage]: Unsupported value: "storage": supported values: "cpu", "hugepages-", "memory""#,
        );
        check(validate_quota_name, "requests.hugepages-2Mi", "");
        check(
            validate_quota_name,
            "storage",
            r#"x[storage]: Invalid value: "storage": must be a standard resource for quota"#,
        );
    }

    #[test]
    fn quantities_are_what_their_resource_allows() {
        let check = |name: &str, quantity: &str, expect: &str| {
            let quantity = Value::from(quantity);
            let errors = validate_quantity(name, &FieldRef::new(Some(&quantity), Path::new("x")));
            assert_eq!(errors.aggregate(), expect, "{name}");
        };
        check("cpu", "100m", "");
        check("cpu", "-1", r#"x: Invalid value: "-1": must be greater than or equal to 0"#);
        check("example.com/gpu", "500m", r#"x: Invalid value: "500m": must be an integer"#);
        let huge = |text: &str| is_divisible_by_page("hugepages-2Mi", &parse(Some(&Value::from(text))));
        assert!(huge("4Mi") && !huge("3Mi") && !is_divisible_by_page("hugepages-x", &parse(None)));
    }
}
