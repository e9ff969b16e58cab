//! The claims of resources that were made for a pod.
//!
//! Source: `validatePodResourceClaimStatuses` and `validatePodExtendedResourceClaimStatus`.

use std::collections::{HashMap, HashSet};

use crate::kinds::{checks, declared};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types;
use crate::value::Value;

/// The errors of the claims in a status.
pub fn validate(minor: Minor, status: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = validate_claims(&status.field("resourceClaimStatuses"), spec);
    errors.extend(validate_extended(&status.field("extendedResourceClaimStatus"), spec));
    errors.extend(validate_allocatable(minor, status, spec));
    errors
}

/// Texts of the field `name` in the items of a list.
fn texts<'v>(list: Option<&'v Value>, name: &str) -> HashSet<&'v str> {
    let items = list.and_then(Value::as_array).unwrap_or_default().iter();
    items.filter_map(|item| item.get(name).and_then(Value::as_str)).collect()
}

fn validate_claims(statuses: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let claims = texts(spec.field("resourceClaims").value(), "name");
    let mut seen = HashSet::new();
    for status in statuses.items() {
        let name = status.field("name");
        if !claims.contains(name.text()) {
            errors.push(name.invalid("must match the name of an entry in `spec.resourceClaims`"));
        }
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        let claim = status.field("resourceClaimName");
        if claim.is_set() {
            errors.extend(checks::named(&claim, names::is_dns1123_subdomain));
        }
    }
    errors
}

fn validate_extended(status: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    const NO_CONTAINER: &str = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
    const NO_RESOURCE: &str = "must match the extended resource name of an entry in spec.initContainers.resources.requests or \
                               spec.containers.resources.requests";
    let mut errors = ErrorList::new();
    if !status.is_set() {
        return errors;
    }
    let spec_value = spec.value().unwrap_or(&Value::Null);
    let lists = ["initContainers", "containers"].iter().flat_map(|name| spec_value.items_at(&[name]));
    let containers: HashMap<&str, &Value> = lists.map(|container| (container.str_at(&["name"]), container)).collect();
    let mappings = status.field("requestMappings");
    if mappings.is_empty() {
        errors.push(mappings.required("at least one request mapping is required"));
    }
    let mut seen = HashSet::new();
    for mapping in mappings.items() {
        let (container, resource) = (mapping.field("containerName"), mapping.field("resourceName"));
        let request = mapping.field("requestName");
        match containers.get(container.text()) {
            Some(found) if found.at(&["resources", "requests", resource.text()]).is_none() => {
                errors.push(resource.invalid(NO_RESOURCE));
            }
            Some(_) => {}
            None => errors.push(container.invalid(NO_CONTAINER)),
        }
        // The reference omits the position of the request.
        let path = status.path().child("requestName");
        let faults = names::is_dns1123_label(request.text()).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path, request.text(), fault)).collect::<ErrorList>());
        let key = [container.text(), resource.text(), request.text()].map(str::to_owned);
        if !seen.insert(key) {
            [container, resource, request].iter().for_each(|field| errors.push(field.duplicate()));
        }
    }
    let claim = status.field("resourceClaimName");
    if claim.is_empty() {
        errors.push(claim.required(""));
    } else {
        errors.extend(checks::named(&claim, names::is_dns1123_subdomain));
    }
    errors
}

/// The node resources that claims use: the rules of the type's markers, as 1.37 has other fields than the releases
/// before it; and the pod must have these claims.
fn validate_allocatable(minor: Minor, status: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    let message = types::message_named("core.v1", "PodStatus");
    let mut errors = declared::validate_field(message, "nodeAllocatableResourceClaimStatuses", status, None, minor);
    let mut claims = texts(spec.field("resourceClaims").value(), "resourceClaimName");
    claims.extend(texts(status.field("resourceClaimStatuses").value(), "resourceClaimName"));
    let statuses = status.field("nodeAllocatableResourceClaimStatuses");
    for status in statuses.items() {
        let name = status.field("resourceClaimName");
        if !claims.contains(name.text()) {
            errors.push(Error::invalid(name.path(), name.text(), "no mapping found in pod reference"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn claims_stand_in_the_spec() {
        let pod = yaml::decode(
            b"spec: {resourceClaims: [{name: a}]}\n\
              status: {resourceClaimStatuses: [{name: a, resourceClaimName: x}, {name: b}, {name: b, resourceClaimName: ''}],\n\
              extendedResourceClaimStatus: {requestMappings: [{containerName: c, resourceName: r, requestName: q}]}}",
        )
        .expect("YAML");
        let root = FieldRef::root(&pod);
        let errors = validate(Minor::NEWEST, &root.field("status"), &root.field("spec")).into_vec();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let unknown = "Invalid value: \"b\": must match the name of an entry in `spec.resourceClaims`";
        assert_eq!(errors[0], format!("status.resourceClaimStatuses[1].name: {unknown}"));
        assert_eq!(errors[2], "status.resourceClaimStatuses[2].name: Duplicate value: \"b\"");
        assert!(errors[3].starts_with("status.resourceClaimStatuses[2].resourceClaimName: Invalid value: \"\""));
        assert_eq!(
            errors[4],
            "status.extendedResourceClaimStatus.requestMappings[0].containerName: Invalid value: \"c\": must match the name of an \
             entry in spec.initContainers.name or spec.containers.name"
        );
        assert_eq!(errors[5], "status.extendedResourceClaimStatus.resourceClaimName: Required value");
    }
    #[test]
    fn what_claims_take_of_a_node_has_names_and_quantities() {
        let pod = yaml::decode(
            b"spec: {resourceClaims: [{name: a, resourceClaimName: x}]}\n\
              status: {nodeAllocatableResourceClaimStatuses: [{resourceClaimName: x, mapping: [{name: cpu, quantity: '1'}]},\n\
              {resourceClaimName: z, containers: [c, c], mapping: [{name: cpu}]}]}",
        )
        .expect("YAML");
        let root = FieldRef::root(&pod);
        let errors = validate(Minor::NEWEST, &root.field("status"), &root.field("spec")).into_vec();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let second = "status.nodeAllocatableResourceClaimStatuses[1]";
        assert_eq!(
            errors,
            [
                format!("{second}.containers[1]: Duplicate value: \"c\""),
                format!("{second}.mapping[0].quantity: Required value"),
                format!("{second}.resourceClaimName: Invalid value: \"z\": no mapping found in pod reference"),
            ]
        );
    }
}
