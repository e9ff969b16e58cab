//! `skiff cost`, through the real binary: what it prints and how it ends.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A definition of foos whose `spec.text` has the rule `rule`.
fn definition(rule: &str) -> String {
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: foos.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: foos, kind: Foo}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          text:
            type: string
            x-kubernetes-validations:
            - rule: {rule}
"
    )
}

/// Runs the command over a file with this content.
fn cost(name: &str, content: &str, arguments: &[&str]) -> Output {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    fs::write(folder.join(name), content).expect("the folder is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    let output = command.current_dir(folder).args(["cost", name]).args(arguments).output();
    output.expect("the binary was built with the tests")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("what is printed is UTF-8")
}

#[test]
fn rules_within_the_limit_are_fine() {
    let output = cost("cost-fine.yaml", &definition("self != 'a'"), &["-o", "json"]);
    let expected = concat!(
        r#"[{"file":"cost-fine.yaml","crd":"foos.example.com","version":"v1","rules":[{"path":"#,
        r#""spec.validation.openAPIV3Schema.properties[text].x-kubernetes-validations[0]","field":"text","line":20,"#,
        r#""rule":"self != 'a'","#,
        r#""estimatedCost":2,"cardinality":1,"limit":10000000,"percent":0.00002}],"total":2,"limit":100000000}]"#,
        "\n"
    );
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), (expected, ""));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_rule_over_the_limit_ends_with_1() {
    let output = cost("cost-dear.yaml", &definition("self.contains(self)"), &[]);
    let expected = "\
foos.example.com v1: 98,956,172,331 (OVER THE LIMIT: 989 times 100,000,000) for 1 rule

cost-dear.yaml:20: foos.example.com v1 text
    self.contains(self)
  98,956,172,331 (OVER THE LIMIT: 9,895 times 10,000,000)
  unbounded: text (maxLength)
  fits with maxLength: 7905 on text
";
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), (expected, ""));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_faulty_rule_ends_with_1_and_is_told() {
    let output = cost("cost-faulty.yaml", &definition("nope"), &[]);
    assert!(text(&output.stdout).contains("can't be priced"), "{output:?}");
    assert!(text(&output.stderr).contains("undeclared reference to 'nope'"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_can_not_be_read_hides_no_costs() {
    let content = format!("{}---\na: [\n---\n{}", definition("self != 'a'"), definition("self != 'b'"));
    let output = cost("cost-broken.yaml", &content, &["--top", "1"]);
    assert!(
        text(&output.stdout).contains("cost-broken.yaml:20: ")
            && text(&output.stdout).ends_with("\nand a cheaper one\n")
    );
    assert!(text(&output.stderr).starts_with("skiff: `cost-broken.yaml` can't be understood: "), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn nothing_to_price_ends_with_2() {
    let output = cost("cost-nothing.yaml", "kind: ConfigMap\n", &[]);
    assert!(text(&output.stderr).contains("no CustomResourceDefinition in"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}
