//! Fields of features that are off by default: they are taken out of what clients write, unless the object had them before.
//!
//! Source: `dropDisabledFields` in `pkg/api/pod`, release 1.36, and the feature gates named in the types of 1.37.

use crate::value::Value;
use crate::work;

/// The fields of each feature within a spec; `*` stands for every item, and for every kind of container.
const FEATURES: [&[&str]; 9] = [
    &["volumes.*.projected.sources.*.clusterTrustBundle"],
    &["volumes.*.projected.sources.*.podCertificate"],
    &["schedulingGroup"],
    &["evictionResponders"],
    &["volumes.*.emptyDir.mode"],
    &[
        "volumes.*.secret.defaultUser",
        "volumes.*.secret.items.*.user",
        "volumes.*.configMap.defaultUser",
        "volumes.*.configMap.items.*.user",
        "volumes.*.downwardAPI.defaultUser",
        "volumes.*.downwardAPI.items.*.user",
        "volumes.*.projected.defaultUser",
        "volumes.*.projected.sources.*.secret.items.*.user",
        "volumes.*.projected.sources.*.configMap.items.*.user",
        "volumes.*.projected.sources.*.downwardAPI.items.*.user",
        "volumes.*.projected.sources.*.serviceAccountToken.user",
        "volumes.*.projected.sources.*.clusterTrustBundle.user",
        "volumes.*.projected.sources.*.podCertificate.user",
    ],
    &["CONTAINERS.*.volumeMounts.*.bindMountOptions"],
    &[
        "CONTAINERS.*.livenessProbe.httpGet.protocol",
        "CONTAINERS.*.readinessProbe.httpGet.protocol",
        "CONTAINERS.*.startupProbe.httpGet.protocol",
        "CONTAINERS.*.lifecycle.postStart.httpGet.protocol",
        "CONTAINERS.*.lifecycle.preStop.httpGet.protocol",
    ],
    &[
        "CONTAINERS.*.livenessProbe.grpc.mode",
        "CONTAINERS.*.readinessProbe.grpc.mode",
        "CONTAINERS.*.startupProbe.grpc.mode",
    ],
];

const STOP_SIGNAL: &str = "CONTAINERS.*.lifecycle.stopSignal";

/// Takes the fields out of `spec` that `old` does not have.
pub fn drop_fields(spec: &mut Value, old: Option<&Value>) {
    for paths in FEATURES {
        if !paths.iter().any(|path| old.is_some_and(|old| is_used(old, path))) {
            paths.iter().for_each(|path| remove(spec, path));
        }
    }
    if !old.is_some_and(|old| is_used(old, STOP_SIGNAL)) {
        for list in super::defaults::CONTAINER_LISTS {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            containers.for_each(drop_stop_signal);
        }
    }
}

/// Without its signal, a lifecycle that had nothing else goes as well.
fn drop_stop_signal(container: &mut Value) {
    let Some(container) = container.as_object_mut() else { return };
    let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

/// The fields that the first step of a path leads to, and the rest of the path.
fn first_step(path: &str) -> (&str, &str) {
    path.split_once('.').unwrap_or((path, ""))
}

fn is_used(value: &Value, path: &str) -> bool {
    work::step();
    let (step, rest) = first_step(path);
    match step {
        "" => !value.is_null(),
        "*" => value.as_array().unwrap_or_default().iter().any(|item| is_used(item, rest)),
        "CONTAINERS" => super::defaults::CONTAINER_LISTS
            .iter()
            .any(|list| value.get(list).is_some_and(|containers| is_used(containers, rest))),
        name => value.get(name).is_some_and(|field| is_used(field, rest)),
    }
}

fn remove(value: &mut Value, path: &str) {
    work::step();
    let (step, rest) = first_step(path);
    match step {
        "*" => value.as_array_mut().into_iter().flatten().for_each(|item| remove(item, rest)),
        "CONTAINERS" => {
            for list in super::defaults::CONTAINER_LISTS {
                if let Some(containers) = value.get_mut(list) {
                    remove(containers, rest);
                }
            }
        }
        name if rest.is_empty() => {
            if let Some(fields) = value.as_object_mut() {
                fields.remove(name);
            }
        }
        name => {
            if let Some(field) = value.get_mut(name) {
                remove(field, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[track_caller]
    fn check(new: &str, old: &str, expect: &str) {
        let read = |text: &str| json::decode(text.as_bytes()).expect("the test is JSON");
        let mut new = read(new);
        drop_fields(&mut new, Some(&read(old)));
        assert_eq!(json::encode_to_string(&new), expect);
    }

    #[test]
    fn fields_of_features_that_are_off_stay_only_where_they_were() {
        let stop = r#"{"containers":[{"lifecycle":{"stopSignal":"SIGINT"},"name":"a"}]}"#;
        check(stop, "{}", r#"{"containers":[{"name":"a"}]}"#);
        check(stop, r#"{"initContainers":[{"lifecycle":{"stopSignal":"SIGINT"}}]}"#, stop);
        check(
            r#"{"schedulingGroup":{},"volumes":[{"emptyDir":{"mode":511}}]}"#,
            r#"{"schedulingGroup":{}}"#,
            r#"{"schedulingGroup":{},"volumes":[{"emptyDir":{}}]}"#,
        );
    }
}
