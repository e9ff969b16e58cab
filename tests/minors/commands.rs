//! The commands and the server, for minors that differ.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.address}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              address: {type: string, maxLength: 1000}
              name: {type: string, format: k8s-short-name}
            x-kubernetes-validations:
            - rule: isIP(self.address)
"#;

const SUITE: &str = "
crds: [crd.yaml]
cases:
- name: an address
  object: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: d}, spec: {address: 10.0.0.1}}
";

/// A folder for one test, with the definition of widgets.
fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    fs::write(folder.join("crd.yaml"), WIDGETS).expect("the folder for tests is writable");
    folder
}

fn skiff(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(folder).args(arguments).output().expect("the binary was built with the tests")
}

/// What `skiff` prints, and its exit code.
fn told(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = skiff(folder, arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

#[test]
fn one_minor_is_answered_for_as_the_newest_is() {
    let folder = folder("minors-one");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.30", "crd.yaml"]);
    assert!(text.contains("undeclared reference to 'isIP'"), "{text}");
    assert_eq!(code, Some(1));
    assert_eq!(told(&folder, &["validate", "--kubernetes-version", "1.35", "crd.yaml"]).1, Some(0));
    assert_eq!(told(&folder, &["validate", "--kubernetes-version", "v1.37.2", "crd.yaml"]).1, Some(0));
}

#[test]
fn a_list_of_minors_is_one_table() {
    let folder = folder("minors-table");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.29-1.37", "crd.yaml"]);
    let crd = "crd.yaml: CustomResourceDefinition widgets.example.com";
    for (minors, line) in [
        ("from 1.31", format!("{crd}: valid")),
        ("until 1.30", format!("{crd}: INVALID")),
        ("1.29", format!("{crd}: unknown field \"spec.versions[0].selectableFields\"")),
        ("1.34", format!("{crd}: warning: unrecognized format \"k8s-short-name\"")),
    ] {
        let is_it =
            |told: &str| told.split_once("  ").is_some_and(|(cell, rest)| cell == minors && rest.trim() == line);
        assert!(text.lines().any(is_it), "{minors} {line}: {text}");
    }
    assert!(text.ends_with("fine from 1.31 on\n"), "{text}");
    assert_eq!(code, Some(1));
    let (json, _) = told(&folder, &["validate", "--kubernetes-version", "1.30,1.31", "-o", "json", "crd.yaml"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["fineFrom"], "1.31");
    assert_eq!(json["minors"][0], serde_json::json!({"minor": "1.30", "fine": false}));
}

#[test]
fn fields_of_built_in_kinds_are_those_of_the_minor() {
    let folder = folder("minors-fields");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostnameOverride: x, containers: [{name: c, image: i}]}\n";
    fs::write(folder.join("pod.yaml"), pod).expect("the folder is writable");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.33-1.35", "pod.yaml"]);
    let is_told = |cell: &str, what: &str| text.lines().any(|line| line.starts_with(cell) && line.contains(what));
    assert!(is_told("1.33 ", "unknown field \"spec.hostnameOverride\""), "{text}");
    assert!(is_told("from 1.34", "Pod a: valid") && text.ends_with("fine from 1.34 on\n"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn the_price_of_a_rule_is_that_of_the_minor() {
    let folder = folder("minors-cost");
    let of_quantities = WIDGETS.replace("isIP(", "isQuantity(");
    fs::write(folder.join("quantities.yaml"), of_quantities).expect("the folder is writable");
    let (text, _) = told(&folder, &["cost", "--kubernetes-version", "1.29..1.31", "quantities.yaml"]);
    let prices: Vec<&str> = text.lines().filter(|line| line.contains("widgets.example.com v1: ")).collect();
    assert_eq!(prices.len(), 2, "{text}");
    assert!(prices.iter().any(|line| line.starts_with("1.29 ") && line.contains(" v1: 3 (")), "{text}");
    assert!(prices.iter().any(|line| line.starts_with("from 1.30 ") && line.contains(" v1: 402 (")), "{text}");
}

#[test]
fn a_lint_names_what_older_clusters_refuse_and_ignore() {
    let folder = folder("minors-lint");
    let (text, code) = told(
        &folder,
        &["lint", "--min-kubernetes-version", "1.30", "--only", "older-refuses,older-ignores", "crd.yaml"],
    );
    assert_eq!(code, Some(1));
    for expected in [
        "error older-refuses: widgets.example.com: refused in Kubernetes 1.30: ",
        "fix: do without `isIP`, which new rules may use since 1.31\n",
        "`spec.versions[0].selectableFields` is dropped unless the feature gate CustomResourceFieldSelectors is open",
        "ignored in Kubernetes 1.30 to 1.34: the format `k8s-short-name` is not checked",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (text, code) = told(
        &folder,
        &["lint", "--min-kubernetes-version", "1.35", "--only", "older-refuses,older-ignores", "crd.yaml"],
    );
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn other_commands_take_minors_too() {
    let folder = folder("minors-others");
    let (text, _) = told(&folder, &["explain", "--kubernetes-version", "1.30,1.31", "crd.yaml", "spec"]);
    assert!(text.contains("refused: ") && text.ends_with("fine from 1.31 on\n"), "{text}");
    let (text, _) = told(&folder, &["diff", "--kubernetes-version", "1.30,1.31", "crd.yaml", "crd.yaml"]);
    assert!(text.starts_with("KUBERNETES"), "{text}");
    fs::write(folder.join("a.suite.yaml"), SUITE).expect("the folder is writable");
    let (text, code) = told(&folder, &["test", "--kubernetes-version", "1.30,1.31", "a.suite.yaml"]);
    assert!(text.contains("isIP") && text.ends_with("fine from 1.31 on\n"), "{text}");
    assert_eq!(code, Some(2));
}

#[test]
fn what_is_no_minor_is_refused() {
    let folder = folder("minors-wrong");
    for wrong in ["1.28", "1.38", "1.31-1.30", "newest"] {
        let output = skiff(&folder, &["validate", "--kubernetes-version", wrong, "crd.yaml"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let output = skiff(&folder, &["serve", "--emulated-version", "wardle=1.31"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("component not registered: wardle"), "{output:?}");
}

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
        let mut child = Command::new(env!("CARGO_BIN_EXE_skiff"))
            .args(["serve", "--store", "memory", "--listen", "127.0.0.1:0", "--insecure-listen", "127.0.0.1:0"])
            .args(["--data-dir", env!("CARGO_TARGET_TMPDIR"), "--emulated-version", emulated, "--feature-gates", gates])
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
