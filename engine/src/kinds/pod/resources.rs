//! Validation of what containers and pods ask for.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::BTreeSet;

use super::{PodValidationOptions, aggregate, claims};
use crate::kinds::resources::{self, parse, quantity};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

type NameCheck = fn(&str, &Path<'_>) -> ErrorList;

/// The resources of a container.
pub fn validate_container(
    requirements: &FieldRef<'_>,
    known: &BTreeSet<&str>,
    options: &PodValidationOptions,
) -> ErrorList {
    validate(requirements, resources::validate_container_name, known, options)
}

fn validate(
    requirements: &FieldRef<'_>,
    check_name: NameCheck,
    known: &BTreeSet<&str>,
    options: &PodValidationOptions,
) -> ErrorList {
    let (limits, requests) = (requirements.field("limits"), requirements.field("requests"));
    let mut errors = validate_lists(&limits, &requests, requirements, check_name, options);
    errors.extend(claims::validate_references(&requirements.field("claims"), known));
    errors
}

/// Two related lists of quantities; errors about both are reported at `holder`.
pub fn validate_lists(
    limits: &FieldRef<'_>,
    requests: &FieldRef<'_>,
    holder: &FieldRef<'_>,
    check_name: NameCheck,
    options: &PodValidationOptions,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, limit) in limits.entries() {
        errors.extend(validate_entry(name, &limit, check_name));
        errors.extend(validate_pages(name, &limit, options));
    }
    for (name, request) in requests.entries() {
        errors.extend(validate_entry(name, &request, check_name));
        errors.extend(validate_limit(name, &request, limits, requests));
        errors.extend(validate_pages(name, &request, options));
    }
    let names = || limits.entries().chain(requests.entries()).map(|(name, _)| name);
    if names().any(resources::is_huge_page) && !names().any(|name| matches!(name, "cpu" | "memory")) {
        errors.push(holder.forbidden("HugePages require cpu or memory"));
    }
    errors
}

fn validate_entry(name: &str, field: &FieldRef<'_>, check_name: NameCheck) -> ErrorList {
    let mut errors = check_name(name, field.path());
    errors.extend(resources::validate_quantity(name, field));
    errors
}

/// Huge pages must be whole pages, unless they were not before.
fn validate_pages(name: &str, field: &FieldRef<'_>, options: &PodValidationOptions) -> Option<Error> {
    if !resources::is_huge_page(name) || options.allow_indivisible_huge_pages_values {
        return None;
    }
    let quantity = quantity(field);
    let why = || format!("{quantity} is not positive integer multiple of {name}");
    (!resources::is_divisible_by_page(name, &quantity))
        .then(|| Error::invalid(field.path(), quantity.to_string(), why()))
}

/// A request must not exceed its limit, and must equal it for resources that can't be overcommitted.
fn validate_limit(name: &str, request: &FieldRef<'_>, limits: &FieldRef<'_>, requests: &FieldRef<'_>) -> Option<Error> {
    let may_differ = resources::is_overcommit_allowed(name);
    let Some(limit) = limits.value().and_then(|limits| limits.get(name)).filter(|limit| !limit.is_null()) else {
        return (!may_differ).then(|| limits.required("Limit must be set for non overcommitable resources"));
    };
    let (request, limit) = (quantity(request), parse(Some(limit)));
    let relation = if !may_differ && request != limit {
        "equal to"
    } else if request > limit {
        "less than or equal to"
    } else {
        return None;
    };
    let why = format!("must be {relation} {name} limit of {limit}");
    Some(Error::invalid(requests.path(), request.to_string(), why))
}

/// The resources of a pod as a whole.
pub fn validate_pod_level(spec: &FieldRef<'_>, known: &BTreeSet<&str>, options: &PodValidationOptions) -> ErrorList {
    let requirements = spec.field("resources");
    let mut errors = ErrorList::new();
    if !requirements.is_set() {
        return errors;
    }
    if spec.field("os").field("name").text() == "windows" {
        errors.push(requirements.forbidden("may not be set for a windows pod"));
        return errors;
    }
    let claims = requirements.field("claims");
    if claims.is_set() {
        errors.push(claims.forbidden("claims may not be set for Resources at pod-level"));
    }
    errors.extend(validate(&requirements, resources::validate_pod_name, known, options));
    errors.extend(validate_sums(spec, &requirements));
    errors.extend(validate_container_limits(spec, &requirements));
    errors
}

/// The resources of a pod must be enough for its containers.
fn validate_sums(spec: &FieldRef<'_>, requirements: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (list, is_checked) in [("requests", (|_| true) as fn(&str) -> bool), ("limits", resources::is_huge_page)] {
        let totals = aggregate::of_containers(spec.value().unwrap_or(&Value::Null), list);
        for (name, own) in requirements.field(list).entries().filter(|(name, _)| is_checked(name)) {
            let own_quantity = quantity(&own);
            if let Some(total) = totals.get(name).filter(|total| **total > own_quantity) {
                let why = format!("must be greater than or equal to aggregate container {list} of {total}");
                errors.push(Error::invalid(own.path(), own_quantity.to_string(), why));
            }
        }
    }
    errors
}

/// No container may have more than its pod.
fn validate_container_limits(spec: &FieldRef<'_>, requirements: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let limits = requirements.field("limits");
    let containers = requirements.path().child("containers");
    for (index, container) in spec.field("containers").items().enumerate() {
        let path = containers.index(index);
        for (name, limit) in container.field("resources").field("limits").entries() {
            let Some(pod_limit) = limits.value().and_then(|limits| limits.get(name)) else { continue };
            let (limit, pod_limit) = (quantity(&limit), parse(Some(pod_limit)));
            if limit > pod_limit {
                let path = path.key(name);
                let why = format!("must be less than or equal to pod limits of {pod_limit}");
                errors.push(Error::invalid(&path.child("limits"), limit.to_string(), why));
            }
        }
    }
    errors
}
