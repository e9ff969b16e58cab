//! What older versions of Kubernetes refuse or ignore of an object of a built-in kind that the newest one accepts: of a
//! policy, a Deployment, or any other kind that the server has from the start.

use super::Finding;
use super::lints::{OLDER_IGNORES, OLDER_REFUSES};
use super::older::{OlderFault, findings, note, remedy};
use crate::author::{BuiltIn, Checked};
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

/// Returns what the minor versions `older` refuse or ignore of `object`: a finding for each path, with the minor
/// versions concerned. There are none if the object is not of a kind that `newest` serves by default, or cannot be
/// decoded.
pub fn older_object(older: &[Minor], newest: Minor, object: &Value) -> Vec<Finding> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let written = |minor| Some(BuiltIn::of_in(minor, api_version, kind)?.write(object, None));
    let Some(Ok(taken)) = written(newest) else { return Vec::new() };
    let mut told: Vec<OlderFault> = Vec::new();
    for &minor in older {
        match written(minor) {
            None => {
                let message = format!("{kind} is not served in {api_version}");
                note(&mut told, minor, &OLDER_REFUSES, "apiVersion", message, &other_versions(minor, object));
            }
            Some(Err(why)) => note(&mut told, minor, &OLDER_REFUSES, "", why.to_string(), OLDER_REFUSES.remedy),
            Some(Ok(checked)) => compare(&mut told, minor, &checked, &taken, object),
        }
    }
    findings(told, object.get("metadata").unwrap_or(&Value::Null))
}

/// Adds what that version reports and the newest one does not.
fn compare(told: &mut Vec<OlderFault>, minor: Minor, older: &Checked, newest: &Checked, written: &Value) {
    let is_new = |field: &str| !newest.errors.iter().any(|known| known.error.field == field);
    for rejected in older.errors.iter().filter(|rejected| is_new(&rejected.error.field)) {
        let error = &rejected.error;
        // Consequential faults follow in the detail's other lines.
        let detail = error.detail.lines().next().unwrap_or_default();
        note(told, minor, &OLDER_REFUSES, &error.field, format!("{}: {detail}", error.field), &remedy(error));
    }
    let unknown: Vec<&String> = older.unknown.iter().filter(|field| !newest.unknown.contains(field)).collect();
    for field in &unknown {
        let message = format!("the field `{field}` is not known");
        note(told, minor, &OLDER_IGNORES, field, message, OLDER_IGNORES.remedy);
    }
    let mut dropped = Vec::new();
    collect_dropped(&newest.prepared, &older.prepared, written, "", &mut dropped);
    // Unknown fields have already been reported.
    for field in dropped.into_iter().filter(|field| !unknown.iter().any(|known| is_within(field, known))) {
        let message = format!("`{field}` is dropped unless its feature gate is open");
        note(told, minor, &OLDER_IGNORES, &field, message, OLDER_IGNORES.remedy);
    }
}

/// Whether a field is the other one, or within it.
fn is_within(field: &str, other: &str) -> bool {
    field.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Collects the paths of written fields that `newest` has and `older` lacks; only the outermost path of each.
fn collect_dropped(newest: &Value, older: &Value, written: &Value, path: &str, dropped: &mut Vec<String>) {
    work::step();
    match (newest, older) {
        (Value::Object(newest), Value::Object(older)) => {
            for (name, value) in newest.iter() {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                // Fields that the server sets itself are not lost.
                let Some(written) = written.get(name) else { continue };
                match older.get(name) {
                    Some(other) => collect_dropped(value, other, written, &path, dropped),
                    None => dropped.push(path),
                }
            }
        }
        (Value::Array(newest), Value::Array(older)) if newest.len() == older.len() => {
            let written = written.as_array().unwrap_or_default();
            for (index, ((value, other), written)) in newest.iter().zip(older).zip(written).enumerate() {
                collect_dropped(value, other, written, &format!("{path}[{index}]"), dropped);
            }
        }
        _ => {}
    }
}

/// The remedy if a version is not served: the versions that are, and the first release that serves this one.
fn other_versions(minor: Minor, object: &Value) -> String {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let since = Minor::all().find(|later| *later > minor && BuiltIn::of_in(*later, api_version, kind).is_some());
    match since {
        Some(since) => format!("name {since} as the oldest, which has it, or leave it out for older clusters"),
        None => OLDER_REFUSES.remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[track_caller]
    fn check(oldest: u16, object: &str, expected: &[&str]) {
        let object = yaml::decode(object.as_bytes()).expect("the test is YAML");
        let older: Vec<Minor> =
            Minor::all().filter(|minor| (Minor::of(oldest)..Minor::NEWEST).contains(minor)).collect();
        let found = older_object(&older, Minor::NEWEST, &object);
        let told: Vec<String> = found.iter().map(|it| format!("{}: {}: {}", it.lint.id, it.message, it.fix)).collect();
        assert_eq!(told, expected);
    }

    const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: \"isIP(object.metadata.name)\"}]
";

    #[test]
    fn policies_are_held_to_what_older_minors_know() {
        let refused = "older-refuses: refused in Kubernetes 1.30: spec.validations[0].expression: compilation failed: ERROR: \
                       <input>:1:5: undeclared reference to 'isIP' (in container ''): do without `isIP`, which new \
                       expressions may use since 1.31";
        check(30, POLICY, &[refused]);
        check(31, POLICY, &[]);
    }

    #[test]
    fn kinds_that_an_older_minor_does_not_serve_are_told() {
        let binding = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: a, validationActions: [Deny]}
";
        let refused = "older-refuses: refused in Kubernetes 1.29: ValidatingAdmissionPolicyBinding is not served in \
                       admissionregistration.k8s.io/v1: name 1.30 as the oldest, which has it, or leave it out for older \
                       clusters";
        check(29, binding, &[refused]);
    }

    #[test]
    fn fields_that_an_older_minor_drops_are_told() {
        let pod = "
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b}
spec: {hostnameOverride: x, containers: [{name: c, image: i}]}
";
        let fix = "say the same in a way that the older one understands, too, or name a later minor as the oldest";
        let unknown = "older-ignores: ignored in Kubernetes 1.33: the field `spec.hostnameOverride` is not known";
        let dropped = "older-ignores: ignored in Kubernetes 1.34: `spec.hostnameOverride` is dropped unless its feature gate is open";
        check(33, pod, &[&format!("{unknown}: {fix}"), &format!("{dropped}: {fix}")]);
        check(35, pod, &[]);
        check(29, "{apiVersion: example.com/v1, kind: A, metadata: {name: a}}", &[]);
    }

    #[test]
    fn what_a_newer_server_sets_by_itself_is_not_lost() {
        // Pods have a generation since 1.33, and the spread selectors include the keys beside them since 1.34.
        let pod = "
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b, labels: {app: x}}
spec:
  containers: [{name: c, image: i}]
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [app], labelSelector: {}}
";
        check(29, pod, &[]);
    }
}
