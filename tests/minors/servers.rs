//! Servers that speak for a minor: what a client is told by one is not what it is told by another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::commands::{WIDGETS, folder, skiff};

/// A server that is killed when it goes out of scope, and the address of its plain HTTP.
struct Server(Child, String);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Server {
    fn start(emulated: &str) -> Server {
        Server::gated(emulated, "")
    }

    /// The same with feature gates.
    fn gated(emulated: &str, gates: &str) -> Server {
        Server::configured(emulated, gates, "")
    }

    /// The same with versions of built-in kinds that are served.
    fn configured(emulated: &str, gates: &str, runtime_config: &str) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_skiff"))
            .args(["serve", "--store", "memory", "--listen", "127.0.0.1:0", "--insecure-listen", "127.0.0.1:0"])
            .args(["--data-dir", env!("CARGO_TARGET_TMPDIR"), "--emulated-version", emulated, "--feature-gates", gates])
            .args(["--runtime-config", runtime_config])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with the tests");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is a pipe")).read_line(&mut line).expect("it can be read");
        assert!(line.starts_with("ready "), "{line}");
        let stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let plain = stderr.lines().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("http://")?;
            Some(rest.split(|char: char| !char.is_ascii_digit() && !matches!(char, '.' | ':')).next()?.to_owned())
        });
        Server(child, plain.expect("it tells where plain HTTP is served"))
    }

    /// The body of an answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        self.send(method, path, ("application/yaml", body))
    }

    /// The answer to an applied configuration.
    fn apply(&self, path: &str, body: &str) -> String {
        self.send("PATCH", path, ("application/apply-patch+yaml", body))
    }

    fn send(&self, method: &str, path: &str, (content_type, body): (&str, &str)) -> String {
        let mut stream = TcpStream::connect(&self.1).expect("the server listens");
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        answer
    }
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[test]
fn a_server_speaks_for_an_older_minor() {
    let server = Server::start("kube=1.30");
    let version = server.ask("GET", "/version", "");
    assert!(version.contains("\"minor\": \"30\"") && version.contains("\"gitVersion\": \"v1.30.0+skiff-"), "{version}");
    // resource.k8s.io/v1 came with 1.34, and deviceclasses with it.
    let groups = server.ask("GET", "/apis", "");
    assert!(!groups.contains("resource.k8s.io") && groups.contains("apps/v1"), "{groups}");
    let answer = server.ask("POST", DEFINITIONS, WIDGETS);
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("undeclared reference to 'isIP'"), "{answer}");
    let without_rule = WIDGETS.replace("isIP(self.address)", "self.address != ''");
    let answer = server.ask("POST", DEFINITIONS, &without_rule);
    assert!(answer.starts_with("HTTP/1.1 201") && !answer.contains("selectableFields"), "{answer}");
}

#[test]
fn fields_of_a_server_are_those_of_the_minor_that_it_speaks_for() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let pod = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{hostnameOverride: x, containers: [{{name: c, image: i}}]}}\n"
        )
    };
    let server = Server::start("1.33");
    let answer = server.ask("POST", &format!("{PODS}?fieldValidation=Strict"), &pod("a"));
    let unknown = "unknown field \\\"spec.hostnameOverride\\\"";
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(unknown), "{answer}");
    let answer = server.ask("POST", PODS, &pod("a"));
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("warning: 299"), "{answer}");
    let stored = |name: &str| server.ask("GET", &format!("{PODS}/{name}"), "");
    assert!(!stored("a").contains("hostnameOverride"), "{}", stored("a"));
    // The type that apply works on does not have it either.
    let applied = server.apply(&format!("{PODS}/b?fieldManager=m"), &pod("b"));
    assert!(applied.contains(".spec.hostnameOverride: field not declared in schema"), "{applied}");
    let newer = Server::start("1.34");
    let answer = newer.ask("POST", &format!("{PODS}?fieldValidation=Strict"), &pod("a"));
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("hostnameOverride"), "{answer}");
    let metrics = newer.ask("GET", "/metrics", "");
    assert!(metrics.contains("kubernetes_build_info{") && metrics.contains("minor=\"34\""), "{metrics}");
}

#[test]
fn tokens_are_bound_to_nodes_with_the_gate_of_the_minor() {
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}";
    let request = "{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {boundObjectRef: {apiVersion: v1, kind: Node, name: x}}}";
    let told = |server: &Server| {
        server.ask("POST", ACCOUNTS, account);
        server.ask("POST", &format!("{ACCOUNTS}/a/token"), request)
    };
    let shut =
        "cannot bind token to a Node object as the \\\"ServiceAccountTokenNodeBinding\\\" feature-gate is disabled";
    let answer = told(&Server::start("1.30"));
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(shut), "{answer}");
    let missing = "nodes \\\"x\\\" not found";
    for server in [Server::gated("1.30", "ServiceAccountTokenNodeBinding=true"), Server::start("1.31")] {
        let answer = told(&server);
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains(missing), "{answer}");
    }
}

#[test]
fn addresses_are_read_by_a_server_as_the_minor_reads_them() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let service = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}], externalIPs: [192.168.000.001]}}";
    let code = |server: &Server| server.ask("POST", SERVICES, service).get(9..12).map(str::to_owned);
    for (minor, gates, expected) in [
        ("1.30", "", "201"),
        ("1.35", "", "201"),
        ("1.35", "StrictIPCIDRValidation=true", "422"),
        ("1.36", "", "422"),
        ("1.36", "StrictIPCIDRValidation=false", "201"),
    ] {
        assert_eq!(code(&Server::gated(minor, gates)).as_deref(), Some(expected), "{minor} {gates}");
    }
}

#[test]
fn services_have_addresses_before_there_were_objects_for_them() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let server = Server::start("1.29");
    assert!(server.ask("GET", &format!("{SERVICES}/kubernetes"), "").contains("\"clusterIP\":\"10.0.0.1\""));
    let service = |name: &str, ip: &str| {
        let text = format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: {name}}}, spec: {{clusterIP: '{ip}', ports: [{{port: 80}}]}}}}"
        );
        server.ask("POST", SERVICES, &text)
    };
    let answer = service("a", "10.0.0.7");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let answer = service("b", "10.0.0.7");
    assert!(answer.contains("provided IP is already allocated"), "{answer}");
    server.ask("DELETE", &format!("{SERVICES}/a"), "");
    let answer = service("b", "10.0.0.7");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(server.ask("GET", "/apis/networking.k8s.io/v1/ipaddresses", "").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_broken_patch_is_told_in_the_words_of_the_minor() {
    // Those before 1.37 are of kube-apiserver 1.36.2.
    const PATH: &str = "/api/v1/namespaces/default";
    let told = |minor: &str| {
        let server = Server::start(minor);
        let patch = |content_type: &str, body: &str| {
            let answer = server.send("PATCH", &format!("{PATH}?fieldManager=m"), (content_type, body));
            let (_, rest) = answer.split_once("\"message\":\"").expect("it is a Status");
            rest.split("\",\"reason").next().unwrap_or_default().to_owned()
        };
        [
            patch("application/merge-patch+json", "{"),
            patch("application/strategic-merge-patch+json", "{"),
            patch("application/json-patch+json", "x"),
            patch("application/apply-patch+yaml", "a: b: c"),
        ]
    };
    let json = "invalid JSON patch";
    let yaml = "yaml: mapping values are not allowed in this context";
    assert_eq!(told("1.37"), [json, json, json, &format!("error encoding patch: {yaml}")]);
    assert_eq!(
        told("1.36"),
        [
            "error decoding patch: unexpected end of JSON input",
            "unexpected end of JSON input",
            "error decoding patch: invalid character 'x' looking for beginning of value",
            &format!("error decoding YAML: error converting YAML to JSON: {yaml}"),
        ]
    );
}

#[test]
fn a_document_has_another_hash_where_the_minor_is_another() {
    // Clients keep documents by their hash.
    let index = |minor: &str| {
        let answer = Server::start(minor).ask("GET", "/openapi/v3", "");
        let (_, rest) = answer.split_once("/openapi/v3/api/v1?hash=").expect("the index has the document");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    assert_ne!(index("1.30"), index("1.34"));
    assert_eq!(index("1.34"), index("1.34"));
}

#[test]
fn without_a_word_a_server_speaks_for_the_newest_minor() {
    let server = Server::start("1.37");
    assert!(server.ask("GET", "/version", "").contains("\"minor\": \"37\""));
    assert!(server.ask("GET", "/apis", "").contains("resource.k8s.io"));
    assert!(server.ask("POST", DEFINITIONS, WIDGETS).starts_with("HTTP/1.1 201"));
}

#[test]
fn feature_gates_are_those_of_the_minor() {
    let folder = folder("minors-gates");
    let refused = |minor: &str, gates: &str| {
        let output = skiff(&folder, &["serve", "--emulated-version", minor, "--feature-gates", gates]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = refused("1.29", "CustomResourceFieldSelectors=true");
    assert!(text.contains("unrecognized feature gate: CustomResourceFieldSelectors"), "{text}");
    let text = refused("1.34", "CRDValidationRatcheting=false");
    let locked = "cannot set feature gate CRDValidationRatcheting to false, feature is locked to true";
    assert!(text.contains(locked), "{text}");
}

const LENGTHS: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: ADDRESS}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: \"EXPRESSION\"}]
";

const BOUND: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: a, validationActions: [Deny]}
";

#[test]
fn gates_change_what_a_minor_does() {
    let server =
        Server::gated("1.30", "CustomResourceFieldSelectors=true,CRDValidationRatcheting=false,WatchList=true");
    let definition = WIDGETS.replace("isIP(self.address)", "self.address != ''");
    let answer = server.ask("POST", DEFINITIONS, &definition);
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("selectableFields"), "{answer}");
    let watch =
        "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1";
    assert!(server.ask("GET", watch, "").starts_with("HTTP/1.1 200"));
    let server = Server::start("1.30");
    let answer = server.ask("GET", watch, "");
    let told = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains(told), "{answer}");
}

#[test]
fn expressions_of_policies_are_those_of_the_minor() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let write = |minor: &str, expression: &str| {
        let text = LENGTHS.replace("ADDRESS", "a").replace("EXPRESSION", expression);
        Server::start(minor).ask("POST", POLICIES, &text)
    };
    let answer = write("1.30", "isIP(object.metadata.name)");
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("undeclared reference to 'isIP'"), "{answer}");
    let answer = write("1.31", "isIP(object.metadata.name)");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[test]
fn policies_decide_as_those_of_the_minor() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let create = |minor: &str| {
        let server = Server::start(minor);
        let text = LENGTHS.replace("ADDRESS", "a").replace("EXPRESSION", "object.metadata.name.orValue('') == 'a'");
        for (path, body) in [(POLICIES, text.as_str()), (BINDINGS, BOUND)] {
            let answer = server.ask("POST", path, body);
            assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        }
        server.ask(
            "POST",
            "/api/v1/namespaces/default/configmaps?dryRun=All",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
        )
    };
    let answer = create("1.36");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let answer = create("1.37");
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("no such overload"), "{answer}");
}

const STATEFUL_SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: a}
spec:
  serviceName: a
  selector: {matchLabels: {a: b}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}
";

#[test]
fn fields_and_kinds_follow_the_minor_and_its_gates() {
    let keeps = |server: &Server| {
        let answer = server.ask("POST", "/apis/apps/v1/namespaces/default/statefulsets?dryRun=All", STATEFUL_SET);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        answer.contains("maxUnavailable\":2")
    };
    let serves = |server: &Server| server.ask("GET", "/apis", "").contains("storagemigration.k8s.io/v1");
    let newest = Server::start("1.37");
    assert!(keeps(&newest) && serves(&newest));
    let older = Server::start("1.36");
    assert!(!keeps(&older) && !serves(&older));
    assert!(keeps(&Server::gated("1.36", "MaxUnavailableStatefulSet=true")));
    let without = Server::gated("1.37", "MaxUnavailableStatefulSet=false,StorageVersionMigrator=false");
    assert!(!keeps(&without) && !serves(&without));
}

const FLOW: &str = "/apis/flowcontrol.apiserver.k8s.io";

#[test]
fn priority_levels_are_there_in_v1beta3_up_to_1_31() {
    let level = |version: &str, name: &str, shares: &str| {
        format!(
            "apiVersion: flowcontrol.apiserver.k8s.io/{version}\nkind: PriorityLevelConfiguration\nmetadata: {{name: {name}}}\n\
             spec: {{type: Limited, limited: {{nominalConcurrencyShares: {shares}, limitResponse: {{type: Reject}}}}}}\n"
        )
    };
    let server = Server::start("1.31");
    let versions = server.ask("GET", FLOW, "");
    assert!(
        versions.contains("/v1beta3")
            && versions.contains("\"preferredVersion\":{\"groupVersion\":\"flowcontrol.apiserver.k8s.io/v1\""),
        "{versions}"
    );
    let levels = format!("{FLOW}/v1beta3/prioritylevelconfigurations");
    let answer = server.ask("POST", &levels, &level("v1beta3", "few", "0"));
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("\"nominalConcurrencyShares\":30"), "{answer}");
    let warning = "flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfiguration is deprecated in v1.29+, unavailable in v1.32+; \
                   use flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration";
    assert!(answer.contains(warning), "{answer}");
    // Zero shares are zero in v1, which v1beta3 says by an annotation.
    let newer = format!("{FLOW}/v1/prioritylevelconfigurations");
    let answer = server.ask("POST", &newer, &level("v1", "none", "0"));
    assert!(answer.starts_with("HTTP/1.1 201") && !answer.contains("preserve-zero"), "{answer}");
    let answer = server.ask("GET", &format!("{levels}/none"), "");
    assert!(answer.contains("v1beta3-preserve-zero-concurrency-shares"), "{answer}");
    assert!(server.ask("GET", &format!("{levels}/exempt"), "").starts_with("HTTP/1.1 200"));
    let later = Server::start("1.32");
    assert!(!later.ask("GET", FLOW, "").contains("v1beta3"));
    assert!(later.ask("GET", &levels, "").starts_with("HTTP/1.1 404"));
}

#[test]
fn older_versions_of_kinds_are_served_where_they_are_asked_for() {
    const V1BETA1: &str = "/apis/admissionregistration.k8s.io/v1beta1/validatingadmissionpolicies";
    let asked = "admissionregistration.k8s.io/v1beta1=true,storage.k8s.io/v1beta1=true";
    let policy = LENGTHS.replace("ADDRESS", "a").replace("EXPRESSION", "object.metadata.name != 'x'");
    let older = policy.replace("admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1");
    let server = Server::configured("1.30", "", asked);
    assert!(server.ask("POST", V1BETA1, &older).starts_with("HTTP/1.1 201"));
    let newer = V1BETA1.replace("v1beta1", "v1");
    let answer = server.ask("GET", &format!("{newer}/a"), "");
    assert!(answer.contains("\"apiVersion\":\"admissionregistration.k8s.io/v1\""), "{answer}");
    // In 1.29 there is v1beta1 alone, behind a gate that is shut.
    let oldest = Server::configured("1.29", "ValidatingAdmissionPolicy=true", asked);
    assert!(oldest.ask("POST", V1BETA1, &older).starts_with("HTTP/1.1 201"));
    assert!(oldest.ask("POST", &newer, &policy).starts_with("HTTP/1.1 404"));
    // Gone with 1.34, as every beta version is after six minors; and never there without being asked for.
    assert!(Server::configured("1.34", "", asked).ask("GET", V1BETA1, "").starts_with("HTTP/1.1 404"));
    assert!(Server::start("1.30").ask("GET", V1BETA1, "").starts_with("HTTP/1.1 404"));
    // The gate of a kind counts, too.
    let classes = "/apis/storage.k8s.io/v1beta1/volumeattributesclasses";
    let gated = Server::configured("1.31", "VolumeAttributesClass=true", asked);
    assert!(gated.ask("GET", classes, "").starts_with("HTTP/1.1 200"));
    assert!(Server::configured("1.31", "", asked).ask("GET", classes, "").starts_with("HTTP/1.1 404"));
}

#[test]
fn documents_tell_what_the_minor_has() {
    let core = |server: &Server| server.ask("GET", "/openapi/v3/api/v1", "");
    let (older, newer) = (Server::start("1.33"), Server::start("1.36"));
    let (before, now) = (core(&older), core(&newer));
    for newer in ["hostnameOverride", "PodSchedulingGroup", "shardSelector"] {
        assert!(!before.contains(newer) && now.contains(newer), "{newer}");
    }
    assert!(before.contains("ignoreStoreReadErrorWithClusterBreakingPotential"));
    assert!(!core(&Server::start("1.31")).contains("ignoreStoreReadErrorWithClusterBreakingPotential"));
    let whole = |server: &Server| server.ask("GET", "/openapi/v2", "");
    let (before, now) = (whole(&older), whole(&newer));
    for newer in ["hostnameOverride", "io.k8s.api.resource.v1.DeviceClass\"", "shardInfo", "VolumeAttributesClassList"]
    {
        assert!(!before.contains(newer) && now.contains(newer), "{newer}");
    }
    let definitions = |server: &Server| server.ask("GET", "/openapi/v3/apis/apiextensions.k8s.io/v1", "");
    assert!(definitions(&newer).contains("observedGeneration") && !definitions(&older).contains("observedGeneration"));
    assert!(older.ask("GET", "/openapi/v3/apis/resource.k8s.io/v1", "").starts_with("HTTP/1.1 404"));
}

#[test]
fn subresources_are_those_of_the_minor_and_its_gates() {
    let resizes = |server: &Server| {
        let listed = server.ask("GET", "/api/v1", "").contains("\"pods/resize\"");
        let answer = server.ask("GET", "/api/v1/namespaces/default/pods/a/resize", "");
        // Without the pod, its part is missed in other words than a part that there is not.
        assert_eq!(listed, answer.contains("pods \\\"a\\\" not found"), "{answer}");
        listed
    };
    assert!(!resizes(&Server::start("1.31")) && !resizes(&Server::start("1.32")));
    assert!(resizes(&Server::gated("1.32", "InPlacePodVerticalScaling=true")) && resizes(&Server::start("1.33")));
}

#[test]
fn values_are_checked_as_the_minor_checks_them() {
    const SERVICES: &str = "/api/v1/namespaces/default/services?dryRun=All";
    const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses?dryRun=All";
    let service = |name: &str, more: &str| {
        format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]{more}}}\n")
    };
    let ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\n\
                   spec: {defaultBackend: {service: {name: 1a, port: {number: 80}}}}\n";
    let takes = |server: &Server, path: &str, body: &str| server.ask("POST", path, body).starts_with("HTTP/1.1 201");
    let older = Server::start("1.33");
    let answer = older.ask("POST", SERVICES, &service("1a", ""));
    let told = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character";
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains(told), "{answer}");
    assert!(older.ask("POST", INGRESSES, ingress).contains(told));
    let answer = older.ask("POST", SERVICES, &service("a", ", trafficDistribution: PreferSameZone"));
    assert!(
        answer.contains("Unsupported value: \\\"PreferSameZone\\\": supported values: \\\"PreferClose\\\""),
        "{answer}"
    );
    let newer = Server::start("1.36");
    assert!(takes(&newer, SERVICES, &service("1a", ", trafficDistribution: PreferSameZone")));
    assert!(takes(&newer, INGRESSES, ingress));
    let gated = Server::gated("1.34", "RelaxedServiceNameValidation=true");
    assert!(takes(&gated, SERVICES, &service("1a", "")) && takes(&gated, INGRESSES, ingress));
}

const CLAIM: &str = "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a}
spec: {accessModes: [ReadWriteOnce], volumeAttributesClassName: fast, resources: {requests: {storage: 1Gi}}}
";

const DERIVED: &str = "
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec:
  devices:
    requests:
    - name: gpu
      exactly: {deviceClassName: gpu.example.com, derivedAttributes: [{name: a.example.com/b, expression: '1'}]}
";

#[test]
fn gates_of_beta_and_alpha_features_are_asked() {
    const CONFIG_MAPS: &str =
        "/api/v1/namespaces/default/configmaps?ignoreStoreReadErrorWithClusterBreakingPotential=true";
    const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims?dryRun=All";
    const DEVICES: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims?dryRun=All";
    let (older, newest) = (Server::start("1.33"), Server::start("1.37"));
    assert!(older.ask("DELETE", CONFIG_MAPS, "").starts_with("HTTP/1.1 200"));
    assert!(newest.ask("DELETE", CONFIG_MAPS, "").starts_with("HTTP/1.1 422"));
    let keeps_class =
        |server: &Server| server.ask("POST", CLAIMS, CLAIM).contains("volumeAttributesClassName\":\"fast\"");
    assert!(!keeps_class(&older) && keeps_class(&newest));
    assert!(keeps_class(&Server::gated("1.33", "VolumeAttributesClass=true")));
    let keeps_derived = |server: &Server| {
        let answer = server.ask("POST", DEVICES, DERIVED);
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        answer.contains("derivedAttributes\":[")
    };
    assert!(!keeps_derived(&newest) && keeps_derived(&Server::gated("1.37", "DRADerivedAttributes=true")));
    // What is dropped is not refused.
    let admin = DERIVED.replace("derivedAttributes: [{name: a.example.com/b, expression: '1'}]", "adminAccess: true");
    let refused = Server::start("1.34").ask("POST", DEVICES, &admin);
    assert!(refused.starts_with("HTTP/1.1 422") && refused.contains("admin access to devices"), "{refused}");
    let dropped = Server::gated("1.34", "DRAAdminAccess=false").ask("POST", DEVICES, &admin);
    assert!(dropped.starts_with("HTTP/1.1 201") && !dropped.contains("adminAccess"), "{dropped}");
}

#[test]
fn fields_that_a_minor_does_not_know_are_dropped_from_protobuf_without_a_word() {
    let server = Server::start("1.36");
    // A CSINode with `status`, which came in 1.37.
    let body = "k8s\0\x0a\x1c\x0a\x11storage.k8s.io/v1\x12\x07CSINode\x12\x09\x0a\x03\x0a\x01a\x12\x00\x1a\x00";
    let path = "/apis/storage.k8s.io/v1/csinodes?fieldValidation=Strict";
    let answer = server.send("POST", path, ("application/vnd.kubernetes.protobuf", body));
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
}

#[test]
fn the_document_of_all_groups_has_the_paths_of_what_a_minor_serves() {
    let server = Server::start("1.36");
    let document = server.ask("GET", "/openapi/v2", "");
    assert!(document.contains("\"/apis/certificates.k8s.io/v1/certificatesigningrequests\""));
    assert!(!document.contains("\"/apis/certificates.k8s.io/v1/clustertrustbundles\""));
}
