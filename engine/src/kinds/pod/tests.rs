//! Rules that the recorded conversations don't show. Texts are those of kube-apiserver 1.36.

use super::*;
use crate::meta::minor::Minor;
use crate::value::json;

fn read(text: &str) -> Value {
    json::decode(text.as_bytes()).expect("the test is JSON")
}

/// A template with one container, which has the required fields and those of `container`; and the fields of `spec`.
fn template(container: &str, spec: &str) -> Value {
    let comma = |text: &str| if text.is_empty() { String::new() } else { format!(", {text}") };
    let mut template = read(&format!(
        r#"{{"spec": {{"containers": [{{"name": "c", "image": "i:1"{}}}]{}}}}}"#,
        comma(container),
        comma(spec),
    ));
    set_template_defaults(&mut template);
    template
}

/// The errors of a template that replaces another.
fn errors_of(template: &Value, old: Option<&Value>) -> String {
    errors_in(Minor::NEWEST, template, old)
}

fn errors_in(minor: Minor, template: &Value, old: Option<&Value>) -> String {
    validate_template(&FieldRef::root(template), &PodValidationOptions::for_template(minor, Some(template), old))
        .aggregate()
}

#[track_caller]
fn check(container: &str, spec: &str, expect: &str) {
    assert_eq!(errors_of(&template(container, spec), None), expect);
}

#[test]
fn containers_have_names_images_and_ports_of_their_own() {
    check("", "", "");
    check(
        r#""ports": [{"containerPort": 80, "name": "a", "hostPort": 8}, {"containerPort": 81, "name": "a", "hostPort": 8}]"#,
        "",
        r#"[spec.containers[0].ports[1].name: Duplicate value: "a", spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8"]"#,
    );
    check(
        "",
        r#""initContainers": [{"name": "c", "image": "i", "lifecycle": {}}]"#,
        r#"[spec.initContainers[0].name: Duplicate value: "c", spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always]"#,
    );
    check(
        "",
        r#""ephemeralContainers": [{"name": "e", "image": " i", "targetContainerName": "x", "resources": {}, "ports": [{"containerPort": 1}]}]"#,
        r#"[spec.ephemeralContainers[0].image: Invalid value: " i": must not have leading or trailing whitespace, spec.ephemeralContainers[0].targetContainerName: Not found: "x", spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container, spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template]"#,
    );
}

#[test]
fn a_variable_is_from_one_place() {
    check(
        r#""env": [{"name": "a=", "valueFrom": {}}, {"name": "b", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "spec.host"}}}]"#,
        "",
        "[spec.containers[0].env[0].name: Invalid value: \"a=\": a valid environment variable name must consist only of printable ASCII characters other than '=', spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`, spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty]",
    );
    check(
        r#""env": [{"name": "a", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}]"#,
        r#""volumes": [{"name": "v", "hostPath": {"path": "/"}}]"#,
        r#"spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "v": referenced volume must be of type emptyDir"#,
    );
}

#[test]
fn mounts_and_devices_keep_apart() {
    check(
        r#""volumeMounts": [{"name": "p", "mountPath": "/a", "subPath": "../x", "mountPropagation": "Bidirectional"}], "volumeDevices": [{"name": "p", "devicePath": "/a"}]"#,
        r#""volumes": [{"name": "p", "persistentVolumeClaim": {"claimName": "c"}}]"#,
        "[spec.containers[0].volumeMounts[0].name: Invalid value: \"p\": must not already exist in volumeDevices, \
         spec.containers[0].volumeMounts[0].mountPath: Invalid value: \"/a\": must not already exist as a path in volumeDevices, \
         spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain '..', \
         spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers, \
         spec.containers[0].volumeDevices[0].name: Invalid value: \"p\": must not already exist in volumeMounts, \
         spec.containers[0].volumeDevices[0].devicePath: Invalid value: \"/a\": must not already exist as a path in volumeMounts]",
    );
}

#[test]
fn requests_stay_within_limits() {
    check(
        r#""resources": {"limits": {"cpu": "1", "example.com/gpu": "1"}, "requests": {"cpu": "2", "example.com/gpu": "2", "hugepages-2Mi": "3Mi"}}"#,
        "",
        r#"[spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1, spec.containers[0].resources.requests: Invalid value: "2": must be equal to example.com/gpu limit of 1, spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources, spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi]"#,
    );
    check(
        r#""resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}"#,
        r#""resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "storage": "1"}}"#,
        r#"[spec.resources.requests[storage]: Unsupported value: "storage": supported values: "cpu", "hugepages-", "memory", spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2, spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1]"#,
    );
    check(
        r#""resources": {"claims": [{"name": "a", "request": "r"}, {"name": "a"}, {"name": "z"}]}"#,
        r#""resourceClaims": [{"name": "a", "resourceClaimName": "x"}]"#,
        r#"[spec.containers[0].resources.claims[1]: Duplicate value: "a", spec.containers[0].resources.claims[2]: Not found: "z": must be one of the names in pod.spec.resourceClaims: a]"#,
    );
}

#[test]
fn windows_and_linux_know_other_fields() {
    check(
        r#""securityContext": {"privileged": false, "windowsOptions": {"runAsUserName": "a\\b\\c"}}"#,
        r#""os": {"name": "windows"}, "hostIPC": true, "securityContext": {"fsGroup": 1}"#,
        r#"[spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: "a\\b\\c": runAsUserName cannot contain more than one backslash, spec.hostIPC: Forbidden: cannot be set for a windows pod, spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod, spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod]"#,
    );
    check(
        "",
        r#""os": {"name": "linux"}, "securityContext": {"windowsOptions": {}}"#,
        "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
    );
    check("", r#""os": {"name": "bsd"}"#, r#"spec.os: Unsupported value: "bsd": supported values: "linux", "windows""#);
}

#[test]
fn a_new_rule_spares_what_was_there_before_it() {
    let spread = |extra: &str| {
        let constraint = r#"{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway""#;
        template("", &format!(r#""topologySpreadConstraints": [{constraint}, {extra}}}]"#))
    };
    let toleration = |operator: &str| {
        template("", &format!(r#""tolerations": [{{"key": "k", "operator": "{operator}", "value": "5"}}]"#))
    };
    let policy = |policy: &str| template("", &format!(r#""securityContext": {{"seLinuxChangePolicy": "{policy}"}}"#));
    let invalid = spread(r#""labelSelector": {"matchLabels": {"a": "b c"}}"#);
    for (old, new, expect) in [
        (&invalid, &invalid, ""),
        (&toleration("Gt"), &toleration("Lt"), ""),
        (
            &toleration("Equal"),
            &toleration("Lt"),
            r#"spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt""#,
        ),
        (&policy("Recursive"), &policy("MountOption"), ""),
        (&template("", ""), &policy("MountOption"), ""),
        (
            &template("", ""),
            &policy("Never"),
            r#"spec.securityContext.seLinuxChangePolicy: Unsupported value: "Never": supported values: "MountOption", "Recursive""#,
        ),
    ] {
        assert_eq!(errors_of(new, Some(old)), expect);
    }
    assert!(!errors_of(&invalid, None).is_empty());
}

#[test]
fn a_pod_has_defaults_that_templates_do_not_have() {
    let mut pod = read(
        r#"{"spec": {"hostNetwork": true, "serviceAccount": "s", "terminationGracePeriodSeconds": -1, "volumes": [{"name": "v"}, {"name": "t", "projected": {"sources": [{"serviceAccountToken": {}}]}}],
        "resources": {"limits": {"cpu": "2"}},
        "containers": [{"name": "a", "image": "a", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi", "memory": "100u"}}}]}}"#,
    );
    set_pod_defaults(&mut pod);
    let spec = pod.get("spec").expect("it has one");
    let show = |path: &[&str]| spec.at(path).map(json::encode_to_string).unwrap_or_default();
    assert_eq!(
        show(&["resources"]),
        r#"{"limits":{"cpu":"2","hugepages-2Mi":"2Mi"},"requests":{"cpu":"1","hugepages-2Mi":"2Mi","memory":"1m"}}"#
    );
    assert_eq!(
        show(&["containers"]),
        r#"[{"image":"a","imagePullPolicy":"Always","name":"a","ports":[{"containerPort":80,"hostPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1","hugepages-2Mi":"2Mi","memory":"1m"},"requests":{"cpu":"1","hugepages-2Mi":"2Mi","memory":"1m"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]"#
    );
    assert_eq!(
        show(&["volumes"]),
        r#"[{"emptyDir":{},"name":"v"},{"name":"t","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3600}}]}}]"#
    );
    assert_eq!((show(&["serviceAccountName"]).as_str(), show(&["enableServiceLinks"]).as_str()), (r#""s""#, "true"));
    assert_eq!(show(&["terminationGracePeriodSeconds"]), "1");
    let template = template("", r#""terminationGracePeriodSeconds": -1"#);
    assert_eq!(template.at(&["spec", "terminationGracePeriodSeconds"]), Some(&Value::Int(-1)));
    assert_eq!(template.at(&["spec", "enableServiceLinks"]), None);
}

/// A loop within a loop over what clients send would take hundredfold.
#[test]
fn ten_times_the_pod_takes_ten_times_the_steps() {
    let steps = |count: usize| {
        let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(",");
        let ports = list(&|at| format!(r#"{{"containerPort": 80, "hostPort": {}, "name": "n{at}"}}"#, at % 60_000 + 1));
        let mounts = list(&|at| format!(r#"{{"name": "v{at}", "mountPath": "/{at}"}}"#));
        let volumes = list(&|at| format!(r#"{{"name": "v{at}", "emptyDir": {{}}}}"#));
        let claims = list(&|at| format!(r#"{{"name": "c{at}", "resourceClaimName": "x"}}"#));
        let references = list(&|at| format!(r#"{{"name": "d{at}", "request": "r"}}"#));
        let spread =
            list(&|at| format!(r#"{{"maxSkew": 1, "topologyKey": "k{at}", "whenUnsatisfiable": "DoNotSchedule"}}"#));
        let template = template(
            &format!(r#""ports": [{ports}], "volumeMounts": [{mounts}], "resources": {{"claims": [{references}]}}"#),
            &format!(
                r#""volumes": [{volumes}], "resourceClaims": [{claims}], "topologySpreadConstraints": [{spread}]"#
            ),
        );
        let (_, steps) = crate::work::counted(|| errors_of(&template, Some(&template)).len());
        steps
    };
    let (few, many) = (steps(300), steps(3000));
    assert!(many < 13 * few, "{few} steps, then {many}");
}

/// Texts are those of the modules of 1.31.
#[test]
fn names_of_variables_and_search_paths_are_those_of_the_minor() {
    let odd = template(
        r#""env": [{"name": "1 a"}, {"name": "..b"}], "envFrom": [{"prefix": "%", "secretRef": {"name": "s"}}]"#,
        "",
    );
    let words = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start \
                 with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is \
                 '[-._a-zA-Z][-._a-zA-Z0-9]*')";
    let expected = format!(
        "[spec.containers[0].env[0].name: Invalid value: \"1 a\": {words}, spec.containers[0].env[1].name: Invalid value: \"..b\": \
         must not start with '..', spec.containers[0].envFrom[0].prefix: Invalid value: \"%\": {words}]"
    );
    assert_eq!(errors_in(Minor::of(31), &odd, None), expected);
    assert_eq!(errors_in(Minor::of(32), &odd, None), "");
    // Existing values may stay.
    assert_eq!(errors_in(Minor::of(31), &odd, Some(&odd)), "");
    // Only existing values are forgiven, not other ones of the kind.
    let other = template(r#""env": [{"name": "c d"}]"#, "");
    assert!(errors_in(Minor::of(31), &other, Some(&odd)).contains("c d"));
    let search = |path: &str| template("", &format!(r#""dnsConfig": {{"searches": ["{path}"]}}"#));
    for path in [".", "a_b.c"] {
        let template = search(path);
        assert!(errors_in(Minor::of(32), &template, None).contains("lowercase RFC 1123 subdomain"), "{path}");
        assert_eq!(errors_in(Minor::of(33), &template, None), "", "{path}");
        assert_eq!(errors_in(Minor::of(32), &template, Some(&template)), "", "{path}");
    }
}

/// Texts are those of Go's `encoding/json`.
#[test]
fn tolerations_in_an_annotation_are_read_as_go_reads_them() {
    let told = |text: &str| {
        let mut template = template("", "");
        let annotations = crate::object! { "scheduler.alpha.kubernetes.io/tolerations" => text };
        template.make_object().entry("metadata").make_object().insert("annotations", annotations);
        errors_of(&template, None)
    };
    let unfit = |what: &str| {
        format!(
            "annotations: Invalid value: \"scheduler.alpha.kubernetes.io/tolerations\": json: cannot unmarshal {what}"
        )
    };
    assert_eq!(told(r#"{"a": 1}"#), unfit("object into Go value of type []core.Toleration"));
    assert_eq!(told(r#""x""#), unfit("string into Go value of type []core.Toleration"));
    assert_eq!(told("[1]"), unfit("number into Go value of type core.Toleration"));
    assert_eq!(told(r#"[{"key": 1}]"#), unfit("number into Go struct field Toleration.Key of type string"));
    assert_eq!(
        told(r#"[{"effect": true}]"#),
        unfit("bool into Go struct field Toleration.Effect of type core.TaintEffect")
    );
    for valid in ["null", "[]", r#"[{"KEY": "a", "operator": "Exists", "unknown": 1}]"#] {
        assert_eq!(told(valid), "", "{valid}");
    }
    assert!(told(r#"[{"key": "a", "operator": "Any"}]"#).contains("supported values"));
}

#[test]
fn rules_of_containers_beside_the_others_stay_where_they_were() {
    let spec = |label: &str| {
        let rules = r#""restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]"#;
        let sidecar = format!(r#"{{"name": "s", "image": "{label}", "restartPolicy": "Always", {rules}}}"#);
        template("", &format!(r#""initContainers": [{sidecar}]"#))
    };
    let minor = Minor::of(35);
    assert!(errors_in(minor, &spec("i"), None).contains("restartPolicyRules are not allowed for init containers"));
    assert_eq!(errors_in(minor, &spec("j"), Some(&spec("i"))), "");
}

#[test]
fn the_images_of_volumes_are_reported_while_their_gate_is_open() {
    use crate::meta::gate::Gates;
    let keeps = |gates: &str| {
        let minor = Minor::NEWEST.with_gates(Gates::parse(gates, Minor::NEWEST).expect("it is known"));
        let mut pod = read(
            r#"{"status": {"containerStatuses": [{"volumeMounts": [{"name": "v", "volumeStatus": {"image": {"imageRef": "a"}}}]}]}}"#,
        );
        drop_disabled_pod_fields(minor, &mut pod, None);
        let mounts = pod.items_at(&["status", "containerStatuses"])[0].items_at(&["volumeMounts"]);
        mounts[0].get("volumeStatus").is_some()
    };
    assert!(!keeps(""));
    assert!(keeps("ImageVolumeWithDigest=true"));
}
