//! What holds for every kind, whoever adds it.

mod minors;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::crd::Scope;
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{json, yaml};

#[test]
fn every_file_in_the_folder_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kinds/served");
    let entries =
        |folder: &Path| fs::read_dir(folder).expect("the folder is there").map(|it| it.expect("it is readable").path());
    let files = entries(&folder).map(|group| entries(&group).count()).sum::<usize>();
    assert_eq!(served::KINDS.len(), files);
}

#[test]
fn every_kind_has_names_of_its_own() {
    let mut seen = BTreeSet::new();
    for kind in all() {
        assert!(!kind.plural.is_empty() && !kind.singular.is_empty(), "{}", kind.kind);
        assert!(seen.insert((kind.group, kind.version, kind.plural)), "{} is there twice", kind.plural);
        assert!(kind.list().is_none_or(|list| list.name == format!("{}List", kind.kind)));
        assert!(kind.verbs.is_sorted() && kind.can("list") == kind.list().is_some());
    }
}

#[test]
fn every_published_type_can_be_read() {
    for package in types::packages() {
        for named in types::objects(package) {
            let mut waiting = vec![named.message()];
            let mut seen = BTreeSet::new();
            while let Some(message) = waiting.pop() {
                assert!(!message.name.is_empty() || message.fields.len() == 1, "{package}: {}", named.name());
                assert!(message.fields.is_sorted_by(|a, b| a.number != b.number || a.number == 0 || b.number == 0));
                if !seen.insert(std::ptr::from_ref(message)) {
                    continue;
                }
                let inner = message.fields.iter().filter_map(|field| match field.kind {
                    types::FieldKind::Message(inner) => Some(inner.get()),
                    _ => None,
                });
                waiting.extend(inner);
            }
        }
    }
}

#[test]
fn every_kind_has_a_message_and_a_layout() {
    for kind in all() {
        let api_version = kind.api_version();
        for message in std::iter::once(kind.message()).chain(kind.list()) {
            let name = message.name;
            let found = message_of(&api_version, name).expect("the kind has a message");
            assert!(std::ptr::eq(found, message) && message.is_object, "{name}");
            let object = object! { "apiVersion" => api_version.as_str(), "kind" => name, "metadata" => object! {} };
            let text = json::encode_as(&object, layout::of(&object));
            assert!(text.starts_with(b"{\"kind\":"), "{name} is not laid out as Go does");
            assert_eq!(layout::lay_out(json::encode(&object)), text);
        }
    }
}

#[test]
fn every_example_is_valid_and_goes_over_the_wire() {
    for kind in all() {
        let mut object = yaml::decode(kind.example.as_bytes()).expect("the example is YAML");
        object.make_object().insert("apiVersion", Value::from(kind.api_version()));
        object.make_object().insert("kind", Value::from(kind.kind));
        let metadata = object.make_object().entry("metadata").make_object();
        if kind.scope == Scope::Namespaced {
            metadata.insert("namespace", Value::from("default"));
        }
        metadata.insert("uid", Value::from("00000000-0000-4000-8000-000000000000"));
        let version = Arc::new(kind.served_version());
        let versions = [Arc::clone(&version)];
        let decoded = kind.strategy.decode(object, &versions).expect("the example is of its type");
        assert!(decoded.findings.unknown.is_empty(), "{}: {:?}", kind.kind, decoded.findings);
        let mut object = decoded.object;
        kind.strategy.prepare_create(&version, &mut object);
        let errors = kind.strategy.validate_create(&version, &object);
        assert!(errors.is_empty(), "{}: {errors:?}", kind.kind);
        kind.strategy.complete(&mut object);
        let read =
            protobuf::decode(kind.message(), &protobuf::encode(kind.message(), &object)).expect("it was written");
        let mut read = Value::Object(read.as_object().cloned().unwrap_or_default());
        read.make_object().insert("apiVersion", Value::from(kind.api_version()));
        read.make_object().insert("kind", Value::from(kind.kind));
        let again = kind.strategy.decode(read, &versions).expect("it is of its type").object;
        assert_eq!(again, object, "{}", kind.kind);
    }
}

#[test]
fn a_new_object_has_what_go_always_writes() {
    for kind in all().filter(|kind| kind.form == Form::Typed) {
        let zero = kind.strategy.zero(&kind.served_version());
        assert_eq!(zero.get("metadata"), Some(&object! {}), "{}", kind.kind);
        let api_version = kind.api_version();
        let text = object! { "apiVersion" => api_version.as_str(), "kind" => kind.kind };
        let (decoded, findings) = kind.message().decode(&text).expect("nothing is there to be wrong");
        assert!(findings.unknown.is_empty(), "{}", kind.kind);
        let (again, _) = kind.message().decode(&decoded).expect("it is what Go writes");
        assert_eq!(again, decoded);
    }
}

/// What validation says of an object in YAML, or of a change from `old` to `new`; its type stands in front, as in
/// `v1 Node`. Texts are those of Kubernetes 1.37.
#[track_caller]
fn check_errors(of: &str, old: Option<&str>, new: &str, expected: &[&str]) {
    let (api_version, kind) = of.split_once(' ').expect("the test names a type");
    let found = all().find(|known| known.kind == kind && known.api_version() == api_version);
    let found = found.expect("the kind is built in");
    let version = Arc::new(found.served_version());
    let read = |text: &str| {
        let mut object = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let fields = object.make_object();
        fields.insert("apiVersion", Value::from(api_version));
        fields.insert("kind", Value::from(kind));
        let metadata = fields.entry("metadata").make_object();
        metadata.insert("name", Value::from("a"));
        metadata.insert("resourceVersion", Value::from("1"));
        if found.scope == Scope::Namespaced {
            metadata.insert("namespace", Value::from("default"));
        }
        let versions = [Arc::clone(&version)];
        found.strategy.decode(object, &versions).expect("the test is of its type").object
    };
    let mut new = read(new);
    let errors = match old.map(read) {
        None => found.strategy.validate_create(&version, &new),
        Some(old) => {
            found.strategy.prepare_update(&version, strategy::Subresource::Main, &mut new, &old);
            found.strategy.validate_update(&version, strategy::Subresource::Main, &new, &old)
        }
    };
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{of}");
}

#[test]
fn amounts_may_be_spelled_anew_in_what_is_kept() {
    const STATEFUL_SET: &str = "apps/v1 StatefulSet";
    let set = |amount: &str| {
        format!(
            "spec: {{serviceName: a, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, \
             spec: {{containers: [{{name: c, image: i}}]}}}}, volumeClaimTemplates: [{{metadata: {{name: c}}, spec: \
             {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {amount}}}}}}}}}]}}"
        )
    };
    check_errors(STATEFUL_SET, Some(&set("1Gi")), &set("'1073741824'"), &[]);
    let refused = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
    check_errors(STATEFUL_SET, Some(&set("1Gi")), &set("2Gi"), &[refused]);
}

#[test]
fn a_template_of_a_daemon_set_with_the_same_amounts_is_the_same() {
    let kind = find("apps", "daemonsets").expect("the kind is there");
    let version = Arc::new(kind.served_version());
    let set = |amount: &str| {
        let text = format!(
            "{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: a}}, spec: {{template: {{spec: {{containers: \
             [{{name: c, image: i, resources: {{limits: {{memory: {amount}}}}}}}]}}}}}}}}"
        );
        let object = yaml::decode(text.as_bytes()).expect("the test is YAML");
        kind.strategy.decode(object, std::slice::from_ref(&version)).expect("it is a set").object
    };
    let generation = |amount: &str| {
        let mut new = set(amount);
        kind.strategy.prepare_update(&version, strategy::Subresource::Main, &mut new, &set("1Gi"));
        new.str_at(&["metadata", "annotations", "deprecated.daemonset.template.generation"]).to_owned()
    };
    assert_eq!(generation("'1073741824'"), generation("1Gi"));
    assert_ne!(generation("2Gi"), generation("1Gi"));
}

#[test]
fn annotations_of_a_pod_are_validated_with_its_status_too() {
    let kind = find("", "pods").expect("the kind is there");
    let version = Arc::new(kind.served_version());
    let pod = |cost: &str| {
        let text = format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: default, resourceVersion: '1', annotations: \
             {{controller.kubernetes.io/pod-deletion-cost: '{cost}'}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}"
        );
        let object = yaml::decode(text.as_bytes()).expect("the test is YAML");
        kind.strategy.decode(object, std::slice::from_ref(&version)).expect("it is a pod").object
    };
    let told = |subresource| {
        let errors = kind.strategy.validate_update(&version, subresource, &pod("x"), &pod("1"));
        errors.iter().filter(|error| error.to_string().contains("must be a 32bit integer")).count()
    };
    assert_eq!(told(strategy::Subresource::Status), 1);
    assert_eq!(told(strategy::Subresource::Main), 2);
}

#[test]
fn a_pod_may_mount_with_labels_since_1_37() {
    let kind = find("", "pods").expect("the kind is there");
    let text = "{metadata: {name: a, namespace: default}, spec: {securityContext: {seLinuxChangePolicy: MountOption}, \
                containers: [{name: c, image: i}]}}";
    let pod = yaml::decode(text.as_bytes()).expect("the test is YAML");
    let is_told = |minor: u16| {
        let version = Arc::new(kind.served_version_in(Minor::of(minor)));
        let pod = kind.strategy.decode(pod.clone(), std::slice::from_ref(&version)).expect("it is a pod").object;
        let errors = kind.strategy.validate_create(&version, &pod);
        errors.iter().any(|error| error.to_string().contains("seLinuxChangePolicy"))
    };
    assert!(is_told(36) && !is_told(37));
}

#[test]
fn warnings_of_expressions_name_their_field_by_a_path() {
    let kind = find("admissionregistration.k8s.io", "validatingadmissionpolicies").expect("the kind is there");
    let version = kind.served_version();
    let check = |warning: &str, expected: &[&str]| {
        let text = format!("{{metadata: {{name: a}}, status: {{typeChecking: {{expressionWarnings: [{warning}]}}}}}}");
        let object = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let errors = kind.strategy.validate_update(&version, strategy::Subresource::Status, &object, &object);
        let errors = errors.iter().map(ToString::to_string).filter(|error| error.starts_with("status"));
        assert_eq!(errors.collect::<Vec<_>>(), expected, "{warning}");
    };
    check("{fieldRef: 'spec.validations[0].expression', warning: ' '}", &[]);
    let warning = "status.typeChecking.expressionWarnings[0]";
    check("{}", &[&format!("{warning}.warning: Required value"), &format!("{warning}.fieldRef: Required value")]);
    let refused = "Invalid value: \"spec.validations[0\": invalid JSONPath: unterminated array";
    check("{fieldRef: ' spec.validations[0', warning: w}", &[&format!("{warning}.fieldRef: {refused}")]);
}

#[test]
fn rules_speak_of_resources_or_of_paths() {
    const ROLE: &str = "rbac.authorization.k8s.io/v1 Role";
    const CLUSTER_ROLE: &str = "rbac.authorization.k8s.io/v1 ClusterRole";
    check_errors(ROLE, None, "rules: null", &[]);
    check_errors(
        ROLE,
        None,
        "rules: [{}, {verbs: [get], nonResourceURLs: [/x], resources: [a]}]",
        &[
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            r#"rules[1].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs"#,
            r#"rules[1].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs"#,
        ],
    );
    check_errors(CLUSTER_ROLE, None, "rules: [{verbs: [get], nonResourceURLs: [/x]}]", &[]);
    check_errors(
        CLUSTER_ROLE,
        None,
        "rules: [{verbs: [get], apiGroups: [''], resources: [a, b], resourceNames: [c]}]",
        &[],
    );
}

#[test]
fn a_role_is_aggregated_by_valid_selectors() {
    const OF: &str = "rbac.authorization.k8s.io/v1 ClusterRole";
    const WRONG_VALUE: &str =
        "aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: In, values: ['-']}]}]}";
    const NOT_A_LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
        start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
        is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let wrong_value = format!(
        r#"aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values[0]: Invalid value: "-": {NOT_A_LABEL}"#
    );
    const SELECTS_NOTHING: &str =
        "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.";
    check_errors(OF, None, "aggregationRule: {clusterRoleSelectors: [{}, {matchLabels: {a: b}}]}", &[]);
    check_errors(
        OF,
        None,
        "aggregationRule: {}",
        &["aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if \
           aggregationRule is non-nil"],
    );
    check_errors(
        OF,
        None,
        "aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: Is}]}]}",
        &[
            r#"aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator"#,
            SELECTS_NOTHING,
        ],
    );
    check_errors(OF, None, WRONG_VALUE, &[&wrong_value, SELECTS_NOTHING]);
    check_errors(OF, Some("rules: null"), WRONG_VALUE, &[&wrong_value, SELECTS_NOTHING]);
    check_errors(OF, Some(WRONG_VALUE), WRONG_VALUE, &[SELECTS_NOTHING]);
}

#[test]
fn bindings_name_a_role_and_known_subjects() {
    const BINDING: &str = "rbac.authorization.k8s.io/v1 RoleBinding";
    const CLUSTER_BINDING: &str = "rbac.authorization.k8s.io/v1 ClusterRoleBinding";
    check_errors(BINDING, None, "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}]}", &[]);
    check_errors(
        BINDING,
        None,
        "{roleRef: {apiGroup: x, kind: Rule}, subjects: [{kind: User}, {kind: ServiceAccount, name: U}, {kind: Robot, name: r}]}",
        &[
            r#"roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io""#,
            r#"roleRef.kind: Unsupported value: "Rule": supported values: "Role", "ClusterRole""#,
            "roleRef.name: Required value",
            "subjects[0].name: Required value",
            r#"subjects[1].name: Invalid value: "U": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#,
            r#"subjects[2].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group""#,
        ],
    );
    check_errors(
        CLUSTER_BINDING,
        None,
        "{roleRef: {kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: s}]}",
        &[
            r#"roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole""#,
            "subjects[0].namespace: Required value",
        ],
    );
    check_errors(
        BINDING,
        Some("{roleRef: {kind: Role, name: r}}"),
        "{roleRef: {kind: ClusterRole, name: r}}",
        &[
            r#"roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"r"}: cannot change roleRef"#,
        ],
    );
}

#[test]
fn webhooks_are_named_once_and_called_for_something() {
    const MUTATING: &str = "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration";
    const VALIDATING: &str = "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration";
    let hook = |rest: &str| {
        format!(
            "webhooks: [{{name: a.example.com, sideEffects: None, admissionReviewVersions: [v1], \
             clientConfig: {{url: 'https://a'}}{rest}}}]"
        )
    };
    check_errors(VALIDATING, None, &hook(""), &[]);
    check_errors(
        VALIDATING,
        None,
        "webhooks: [{name: short, clientConfig: {}}]",
        &[
            r#"webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots"#,
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ],
    );
    check_errors(
        MUTATING,
        None,
        &hook(", timeoutSeconds: 31, failurePolicy: Maybe, matchPolicy: Like, reinvocationPolicy: Often"),
        &[
            r#"webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore""#,
            r#"webhooks[0].matchPolicy: Unsupported value: "Like": supported values: "Equivalent", "Exact""#,
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            r#"webhooks[0].reinvocationPolicy: Unsupported value: "Often": supported values: "IfNeeded", "Never""#,
        ],
    );
    check_errors(
        VALIDATING,
        None,
        &hook(
            ", rules: [{operations: ['*', CREATE], apiGroups: [''], apiVersions: [v1], resources: ['*', pods, 'a/*', a/b], scope: Some}]",
        ),
        &[
            r#"webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations"#,
            r#"webhooks[0].rules[0].resources[3]: Invalid value: "a/b": if 'a/*' is present, must not specify a/b"#,
            r#"webhooks[0].rules[0].resources: Invalid value: ["*","pods","a/*","a/b"]: if '*' is present, must not specify other resources without subresources"#,
            r#"webhooks[0].rules[0].scope: Unsupported value: "Some": supported values: "*", "Cluster", "Namespaced""#,
        ],
    );
    check_errors(
        VALIDATING,
        None,
        &hook(
            ", objectSelector: {matchExpressions: [{key: a, operator: In}]}, matchConditions: [{name: a}, {name: a, expression: 'true'}]",
        ),
        &[
            "webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
            "webhooks[0].matchConditions[0].expression: Required value",
            r#"webhooks[0].matchConditions[1].name: Duplicate value: "a""#,
        ],
    );
    let loose = hook("").replace("None", "Some");
    check_errors(VALIDATING, Some(&loose), &loose, &[]);
}

#[test]
fn webhooks_get_what_is_not_said() {
    let mut configuration = yaml::decode(
        b"webhooks: [{clientConfig: {service: {name: s}}, rules: [{operations: [CREATE]}, {scope: Cluster}]}]",
    )
    .expect("the test is YAML");
    webhooks::set_defaults(&mut configuration, true);
    let expected = r#"{"webhooks":[{"clientConfig":{"service":{"name":"s","port":443}},"failurePolicy":"Fail","matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"reinvocationPolicy":"Never","rules":[{"operations":["CREATE"],"scope":"*"},{"scope":"Cluster"}],"timeoutSeconds":10}]}"#;
    assert_eq!(json::encode_to_string(&configuration), expected);
}

#[test]
fn nodes_keep_what_they_are() {
    const NODE: &str = "v1 Node";
    check_errors(
        NODE,
        None,
        "spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}, {key: '-', effect: Never}]}\n\
         status: {capacity: {cpu: '-1'}}",
        &[
            r#"metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair"#,
            r#"metadata.taints[2].key: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
            r#"metadata.taints[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute""#,
            r#"status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0"#,
            r#"status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0"#,
        ],
    );
    check_errors(
        NODE,
        None,
        "spec: {podCIDRs: [10.0.0.0/24, 10.0.1.0/24, nothing]}",
        &[
            r#"spec.podCIDRs[2]: Invalid value: "nothing": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"#,
            "spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[2]: <nil> (invalid \
             CIDR address: nothing)",
            r#"spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24","nothing"]: may specify no more than one CIDR for each IP family"#,
        ],
    );
    check_errors(
        NODE,
        Some("spec: {podCIDR: 10.0.0.0/24, providerID: cloud:///a}"),
        "spec: {podCIDR: 10.0.1.0/24, providerID: cloud:///b, externalID: x}",
        &[
            r#"spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid"#,
            r#"spec.providerID: Forbidden: node updates may not change providerID except from "" to valid"#,
            "spec.externalID: Forbidden: may not be updated",
        ],
    );
    check_errors(NODE, Some("spec: {}"), "spec: {providerID: cloud:///b, unschedulable: true}", &[]);
}

#[test]
fn scopes_that_no_object_is_in_are_told_where_they_stand() {
    check_errors(
        "v1 ResourceQuota",
        None,
        "spec: {hard: {pods: '5'}, scopes: [BestEffort], scopeSelector: {matchExpressions: [{scopeName: Terminating, operator: Exists}, \
         {scopeName: NotTerminating, operator: Exists}]}}",
        &[r#"spec.scopeSelector.matchExpressions: Invalid value: ["BestEffort"]: conflicting scopes"#],
    );
}

#[test]
fn the_ranges_of_a_node_have_no_bits_behind_their_length() {
    check_errors(
        "v1 Node",
        None,
        "spec: {podCIDRs: [10.1.2.3/8, 'fd00::/64']}",
        &[r#"spec.podCIDRs[0]: Invalid value: "10.1.2.3/8": must not have bits set beyond the prefix length"#],
    );
}

#[test]
fn a_node_has_whole_numbers_of_what_is_counted() {
    check_errors(
        "v1 Node",
        None,
        "status: {capacity: {cpu: 100m, services: 100m, example.com/gpu: 1500m}, allocatable: {pods: '1'}}",
        &[
            r#"status.capacity.example.com/gpu: Invalid value: "1500m": must be an integer"#,
            r#"status.capacity.services: Invalid value: "100m": must be an integer"#,
        ],
    );
}

#[test]
fn huge_pages_of_an_overhead_are_whole() {
    check_errors(
        "node.k8s.io/v1 RuntimeClass",
        None,
        "handler: a\noverhead: {podFixed: {hugepages-2Mi: '1', cpu: '1'}}",
        &[r#"overhead.limits[hugepages-2Mi]: Invalid value: "1": 1 is not positive integer multiple of hugepages-2Mi"#],
    );
}

#[test]
fn a_node_warns_of_fields_that_mean_nothing_and_of_odd_ranges() {
    let nodes = find("", "nodes").expect("the kind is built in");
    let version = nodes.served_version();
    let node = yaml::decode(b"spec: {externalID: x, configSource: {}, podCIDRs: [10.1.2.3/8]}").expect("YAML");
    let check = |subresource| nodes.strategy.warnings(&version, subresource, &node, None);
    assert_eq!(
        check(strategy::Subresource::Main),
        [
            "spec.configSource: the feature is removed",
            "spec.externalID: this field is deprecated, and is unused by Kubernetes",
            "spec.podCIDRs[0]: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)",
        ]
    );
    assert!(check(strategy::Subresource::Status).is_empty());
}

#[test]
fn bindings_of_alpha_policies_deny_where_their_parameters_are_missing() {
    let check = |version: &str| {
        let text = format!(
            "{{apiVersion: admissionregistration.k8s.io/{version}, kind: MutatingAdmissionPolicyBinding, spec: {{paramRef: {{name: a}}}}}}"
        );
        let mut binding = yaml::decode(text.as_bytes()).expect("YAML");
        let kind =
            find("admissionregistration.k8s.io", "mutatingadmissionpolicybindings").expect("the kind is built in");
        kind.strategy.set_typed_defaults(&mut binding);
        binding.str_at(&["spec", "paramRef", "parameterNotFoundAction"]).to_owned()
    };
    assert_eq!((check("v1alpha1"), check("v1beta1")), ("Deny".to_owned(), String::new()));
}

#[test]
fn a_node_declares_features_of_a_form_in_their_order() {
    check_errors(
        "v1 Node",
        None,
        "status: {declaredFeatures: [B, A, a], nodeInfo: {swap: {capacity: 0}}}",
        &[
            "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero",
            r#"status.declaredFeatures[1]: Invalid value: "A": list must be sorted alphabetically"#,
            r#"status.declaredFeatures[2]: Invalid value: "a": invalid feature name "a": must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"#,
        ],
    );
}

#[test]
fn a_finalizer_of_a_namespace_is_checked_as_a_name_and_as_a_finalizer() {
    check_errors(
        "v1 Namespace",
        None,
        "spec: {finalizers: ['']}",
        &[
            r#"spec.finalizers: Invalid value: "": name part must be non-empty"#,
            r#"spec.finalizers: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
            r#"spec.finalizers: Invalid value: "": name is neither a standard finalizer name nor is it fully qualified"#,
        ],
    );
}

#[test]
fn an_empty_text_behind_a_pointer_gets_no_default() {
    check_errors(
        "storage.k8s.io/v1 StorageClass",
        None,
        "{provisioner: d.example.com, volumeBindingMode: ''}",
        &[r#"volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer""#],
    );
}

#[test]
fn a_slice_of_devices_selects_nodes_by_one_term() {
    let slice = |terms: &str| {
        format!(
            "spec: {{driver: d.example.com, pool: {{name: p, resourceSliceCount: 1, generation: 1}}, nodeSelector: {{nodeSelectorTerms: {terms}}}}}"
        )
    };
    let check =
        |terms: &str, shown: &[&str]| check_errors("resource.k8s.io/v1 ResourceSlice", None, &slice(terms), shown);
    let required = "spec.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term";
    let fault = |shown: &str| {
        format!("spec.nodeSelector.nodeSelectorTerms: Invalid value: {shown}: must have exactly one node selector term")
    };
    check("null", &[required, &fault("null")]);
    let term = r#"{"MatchExpressions":[{"Key":"a","Operator":"Exists","Values":null}],"MatchFields":null}"#;
    let two = "[{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: a, operator: Exists}]}]";
    check(two, &[&fault(&format!("[{term},{term}]"))]);
}

#[test]
fn the_metadata_of_a_claim_template_has_labels_and_annotations_alone() {
    check_errors(
        "resource.k8s.io/v1 ResourceClaimTemplate",
        None,
        "spec: {metadata: {name: x, labels: {a: b}, finalizers: [example.com/y]}, spec: {}}",
        &["spec.metadata.name: Forbidden: cannot be set", "spec.metadata.finalizers: Forbidden: cannot be set"],
    );
}

#[test]
fn a_definition_and_metadata_hold_every_published_field() {
    let published = types::message_of_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let mut sent = every_field(published, 2);
    let fields = sent.make_object();
    fields.insert("apiVersion", Value::from("apiextensions.k8s.io/v1"));
    fields.insert("kind", Value::from("CustomResourceDefinition"));
    fields.insert("metadata", object! { "name" => "a" });
    let (definition, findings) = crate::crd::definition::decode(&sent).expect("it is of the published type");
    assert_eq!(findings.unknown, [""; 0]);
    assert_eq!(json::encode_to_string(&definition.encode()), json::encode_to_string(&sent));

    let sent = every_field(types::object_meta(), 2);
    let (decoded, unknown) = crate::meta::object_meta::decode(&sent).expect("it is of the published type");
    assert_eq!(unknown, [""; 0]);
    assert_eq!(json::encode_to_string(&decoded), json::encode_to_string(&sent));
}

/// An object that has every field of a type, each with a value that is not zero. A schema is within another `depth` times.
fn every_field(message: &'static Message, depth: usize) -> Value {
    let of_field = |field: &'static types::Field| {
        let one = match field.kind {
            types::FieldKind::Bool => Value::Bool(true),
            types::FieldKind::Int32 | types::FieldKind::Int64 => Value::Int(1),
            types::FieldKind::Double => Value::Float(1.5),
            types::FieldKind::String => Value::from("a"),
            types::FieldKind::Bytes => Value::from("YQ=="),
            types::FieldKind::Message(inner) => of_message(inner.get(), depth)?,
        };
        Some(match field.shape {
            types::Shape::List => Value::Array(vec![one]),
            types::Shape::Map => object! { "a" => one },
            _ => one,
        })
    };
    let mut fields = crate::value::Map::new();
    for field in message.members() {
        if let Some(value) = of_field(field) {
            fields.insert(field.json, value);
        }
    }
    Value::Object(fields)
}

/// A value of a type; `None` for a schema below the last that is wanted.
fn of_message(message: &'static Message, depth: usize) -> Option<Value> {
    Some(match message.codec {
        types::Codec::Time => Value::from("2026-01-02T03:04:05Z"),
        types::Codec::Json | types::Codec::FieldsV1 => object! { "a" => 1 },
        types::Codec::SchemaOrStringArray => Value::Array(vec![Value::from("a")]),
        types::Codec::SchemaOrArray | types::Codec::SchemaOrBool => {
            let schema = message.fields.iter().find_map(|field| match field.kind {
                types::FieldKind::Message(inner) => Some(inner.get()),
                _ => None,
            });
            return of_message(schema?, depth);
        }
        types::Codec::List => {
            let types::FieldKind::Message(item) = message.fields.first()?.kind else { return None };
            Value::Array(vec![of_message(item.get(), depth)?])
        }
        _ if message.name == "JSONSchemaProps" => every_field(message, depth.checked_sub(1)?),
        _ => every_field(message, depth),
    })
}
