//! What may be reported of a pod.
//!
//! Source: `ValidatePodStatusUpdate`.

use std::collections::HashSet;

use crate::kinds::{checks, declared, metadata, pod as template};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types;
use crate::value::{Value, json};

use super::transitions::{self, Restarts};
use super::{claim_statuses, conditions, container_statuses, ips, update};

const NOT_NEGATIVE: &str = "must be a non-negative integer";

/// The errors of a changed status.
pub fn validate(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
    let (status, old_status) = (root.field("status"), old_root.field("status"));
    let spec = root.field("spec");
    let mut errors = metadata::validate_update(new, old);
    let options = template::PodValidationOptions::for_pod(minor, new, Some(old));
    errors.extend(update::validate_annotations(new, old, &options));
    errors.extend(validate_conditions(&status.field("conditions")));
    errors.extend(validate_nodes(minor, &status, &old_status, old));
    let generation = status.field("observedGeneration");
    if generation.int() < 0 {
        errors.push(generation.invalid(NOT_NEGATIVE));
    }
    errors.extend(checks::unchanged_as_json(&status.field("qosClass"), &old_status.field("qosClass")));
    let old_spec = old.get("spec").unwrap_or(&Value::Null);
    errors.extend(transitions::validate(&status, &old_status, &Restarts { minor, options: &options, spec: old_spec }));
    errors.extend(claim_statuses::validate(minor, &status, &spec));
    let message = types::message_named("core.v1", "PodStatus");
    errors.extend(declared::validate_field(message, "volumeHealth", &status, Some(&old_status), minor));
    errors.extend(validate_ips(&status.field("podIPs"), &old_status.field("podIPs"), options.allow_legacy_ips));
    errors.extend(validate_host_ips(&status, &old_status, options.allow_legacy_ips));
    errors.extend(container_statuses::validate(&status, &spec));
    if minor.opens(Gate::ImageVolumeWithDigest) {
        errors.extend(container_statuses::validate_volumes(&status));
    }
    errors
}

/// The errors of conditions.
fn validate_conditions(list: &FieldRef<'_>) -> ErrorList {
    const KNOWN: [&str; 3] = [conditions::SCHEDULED, conditions::READY, "Initialized"];
    let mut errors = ErrorList::new();
    for condition in list.items() {
        let generation = condition.field("observedGeneration");
        if generation.int() < 0 {
            errors.push(generation.invalid(NOT_NEGATIVE));
        }
        let kind = condition.field("type");
        if !KNOWN.contains(&kind.text()) {
            // The reference writes the field's name as Go does.
            let path = condition.path().child("Type");
            let faults = names::is_qualified_name(kind.text()).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&path, kind.text(), fault)).collect::<ErrorList>());
        }
    }
    errors
}

/// The node that the pod is on, and the one that it may get.
fn validate_nodes(minor: Minor, status: &FieldRef<'_>, old_status: &FieldRef<'_>, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (nominated, before) = (status.field("nominatedNodeName"), old_status.field("nominatedNodeName"));
    if nominated.is_empty() || nominated.text() == before.text() {
        return errors;
    }
    errors.extend(checks::named(&nominated, names::is_dns1123_subdomain));
    let is_kept_clear = minor.opens(Gate::ClearingNominatedNodeNameAfterBinding);
    if is_kept_clear && !old.str_at(&["spec", "nodeName"]).is_empty() {
        errors.push(nominated.forbidden("may not be set on pods that are already bound to a node"));
    }
    errors
}

/// The addresses of a list whose items have an `ip`.
fn addresses(list: &FieldRef<'_>) -> Vec<String> {
    let text = |item: FieldRef<'_>| item.value().map(|item| item.str_at(&["ip"]).to_owned()).unwrap_or_default();
    list.items().map(text).collect()
}

fn validate_ips(list: &FieldRef<'_>, old: &FieldRef<'_>, is_lenient: bool) -> ErrorList {
    let (found, known) = (addresses(list), addresses(old));
    let known: HashSet<&str> = known.iter().map(String::as_str).collect();
    let mut errors = ErrorList::new();
    for (item, address) in list.items().zip(&found) {
        if !known.contains(address.as_str()) {
            errors.extend(ips::check(item.path(), address, is_lenient));
        }
    }
    if found.len() > 1 {
        let texts: Vec<&str> = found.iter().map(String::as_str).collect();
        let families = ips::families(&texts);
        if let Err(fault) = &families {
            let why = format!("failed to check for dual stack with error:{fault}");
            errors.push(Error::internal(list.path(), why));
        }
        if families != Ok(true) || found.len() > 2 {
            let shown: Vec<String> = texts.iter().map(|text| format!("{{\"IP\":{}}}", quoted(text))).collect();
            let error = list.invalid("may specify no more than one IP for each IP family");
            errors.push(error.shown_as(format!("[{}]", shown.join(","))));
        }
    }
    errors
}

fn quoted(text: &str) -> String {
    json::encode_to_string(&Value::from(text))
}

fn validate_host_ips(status: &FieldRef<'_>, old_status: &FieldRef<'_>, is_lenient: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let list = status.field("hostIPs");
    let Some(first) = list.items().next() else { return errors };
    let ip = first.field("ip");
    if ip.text() != status.field("hostIP").text() {
        errors.push(ip.invalid("must be equal to `hostIP`"));
    }
    errors.extend(validate_ips(&list, &old_status.field("hostIPs"), is_lenient));
    errors
}

/// Warnings about a reported status.
pub fn warnings(pod: &Value) -> Vec<String> {
    let root = FieldRef::root(pod);
    let status = root.field("status");
    let mut warnings = Vec::new();
    for name in ["podIPs", "hostIPs"] {
        let list = status.field(name);
        for item in list.items() {
            let ip = item.field("ip");
            warnings.extend(ips::warning(ip.path(), ip.text()));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    const METADATA: &str = "metadata: {name: a, namespace: b, resourceVersion: '1'}";

    fn check(old: &str, new: &str) -> String {
        let read = |text: &str| yaml::decode(format!("{METADATA}\n{text}").as_bytes()).expect("YAML");
        validate(Minor::NEWEST, &read(new), &read(old)).aggregate()
    }

    #[test]
    fn addresses_are_one_of_each_family() {
        let told = |ips: &str| check("status: {}", &format!("status: {{podIPs: {ips}}}"));
        assert_eq!(told("[{ip: 10.0.0.1}, {ip: '::1'}]"), "");
        assert_eq!(
            told("[{ip: 10.0.0.1}, {ip: 10.0.0.2}]"),
            r#"status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family"#
        );
        assert_eq!(
            told("[{ip: x}]"),
            "status.podIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        );
        assert_eq!(
            told("[{ip: 010.0.0.1}]"),
            "status.podIPs[0]: Invalid value: \"010.0.0.1\": must not have leading 0s"
        );
        assert_eq!(
            check("status: {}", "status: {hostIP: 10.0.0.2, hostIPs: [{ip: 10.0.0.1}]}"),
            "status.hostIPs[0].ip: Invalid value: \"10.0.0.1\": must be equal to `hostIP`"
        );
    }

    #[test]
    fn nodes_are_not_nominated_for_pods_that_have_one() {
        assert_eq!(
            check("spec: {nodeName: a}", "spec: {nodeName: a}\nstatus: {nominatedNodeName: m}"),
            "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
        );
        assert_eq!(
            check(
                "status: {qosClass: Burstable}",
                "status: {qosClass: BestEffort, conditions: [{type: a b, observedGeneration: -1}]}"
            ),
            "[status.conditions[0].observedGeneration: Invalid value: -1: must be a non-negative integer, status.conditions[0].Type: \
             Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
             an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), status.qosClass: Invalid value: \"BestEffort\": field is immutable]"
        );
    }
}
