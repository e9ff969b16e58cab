//! Texts are those of kube-apiserver 1.36.

use crate::meta::field_ref::FieldRef;
use crate::value::json;

#[track_caller]
fn check(template: &str, expect: &[&str]) {
    let template = json::decode(template.as_bytes()).expect("the test is JSON");
    assert_eq!(super::of(&FieldRef::root(&template), true), expect);
}

#[test]
fn labels_that_are_no_longer_set_are_told() {
    check(
        r#"{"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}, "topologySpreadConstraints": [{"topologyKey": "beta.kubernetes.io/arch"}]}}"#,
        &[
            r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#,
            r#"spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead"#,
            "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
        ],
    );
}

#[test]
fn what_hides_something_else_is_told() {
    check(
        r#"{"spec": {"containers": [{"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}, {"name": "A", "value": "3"}],
            "ports": [{"containerPort": 80, "protocol": "TCP", "hostIP": "1.1.1.1"}, {"containerPort": 80, "protocol": "TCP"}]}]}}"#,
        &[
            r#"spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply"#,
            "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}",
            "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
        ],
    );
    check(
        r#"{"spec": {"volumes": [{"name": "v", "projected": {"sources": [{}, {"configMap": {"name": "c", "items": [{"path": "a"}]}}, {"serviceAccountToken": {"path": "a/b/"}}]}}]}}"#,
        &[
            r#"volume "v" (Projected) has no sources provided"#,
            r#"volume "v" (Projected): overlapping paths: "a/b" (ServiceAccountToken) with "a" (ConfigMap "c")"#,
        ],
    );
}

#[test]
fn numbers_and_addresses_that_are_no_longer_taken_are_told() {
    check(
        r#"{"spec": {"overhead": {"memory": "1500m"}, "hostAliases": [{"ip": "010.0.0.1"}, {"ip": "FE80::1"}], "terminationGracePeriodSeconds": -1}}"#,
        &[
            r#"spec.overhead[memory]: fractional byte value "1500m" is invalid, must be an integer"#,
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            r#"spec.hostAliases[0].ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#,
            r#"spec.hostAliases[1].ip: IPv6 address "FE80::1" should be in RFC 5952 canonical format ("fe80::1")"#,
        ],
    );
}

#[test]
fn an_annotation_is_told_unless_the_field_says_the_same() {
    let template = |profile: &str| {
        format!(
            r#"{{"metadata": {{"annotations": {{"container.apparmor.security.beta.kubernetes.io/c": "localhost/p"}}}},
                "spec": {{"securityContext": {{"appArmorProfile": {profile}}}, "containers": [{{"name": "c"}}]}}}}"#
        )
    };
    check(&template(r#"{"type": "Localhost", "localhostProfile": "p"}"#), &[]);
    check(
        &template(r#"{"type": "RuntimeDefault"}"#),
        &[
            r#"metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead"#,
        ],
    );
}
