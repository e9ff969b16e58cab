//! `skiff lint`.

use std::fs;
use std::path::Path;

use kubeskiff::author::lint::{Finding, Severity, lint};
use serde_json::Value;

use super::{BOATS, check, corpus, folder, skiff, text};

/// The ids and paths of what is found in a definition of boats with this in place of the field `rig` and of the rules.
fn found(name: &str, fields: &str, rules: &str) -> Vec<String> {
    let (head, _) = BOATS.split_once("                rig:").expect("boats have a rig");
    let crd = format!("{head}                {fields}\n              x-kubernetes-validations: [{rules}]\n");
    let folder = folder(&format!("lint-{name}"), &[("crd.yaml", &crd)]);
    let output = skiff(&folder, &["lint", "--severity", "advice", "-o", "json", "crd.yaml"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let found = found.as_array().expect("it is an array").iter();
    let mut found: Vec<String> = found
        .map(|finding| {
            format!("{} {}", finding["id"].as_str().unwrap_or_default(), finding["path"].as_str().unwrap_or_default())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_finding_has_a_place_a_reason_and_a_fix() {
    let folder = folder("lint", &[("crd.yaml", BOATS)]);
    let expected = "\
crd.yaml:24:17: advice enum-camel-case: boats.harbour.example.com v1 spec.rig: the values ketch, sloop, none are not CamelCase
  fix: write them as CamelCase words
1 finding in 1 definition: enum-camel-case 1
why: skiff lint --explain ID
";
    check(&folder, &["lint", "--severity", "advice", "crd.yaml"], 1, expected);
    let explained = "\
enum-camel-case (advice)

Values of an enum are not CamelCase.
Why: API conventions, \"Constants\": enum values are CamelCase.
Remedy: write them as CamelCase words.
";
    check(&folder, &["lint", "--explain", "enum-camel-case"], 0, explained);
}

#[test]
fn advice_is_told_to_who_asks() {
    let folder = folder("lint-advice", &[("crd.yaml", BOATS)]);
    check(&folder, &["lint", "crd.yaml"], 0, "0 findings in 1 definition\n1 more with --severity advice\n");
    check(&folder, &["lint", "--only", "phase", "crd.yaml"], 0, "0 findings in 1 definition\n");
    let ignored = ["lint", "--severity", "advice", "--ignore", "enum-camel-case,phase", "crd.yaml"];
    check(&folder, &ignored, 0, "0 findings in 1 definition\n");
    let output = skiff(&folder, &["lint", "--only", "enum-camel-case", "crd.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let output = skiff(&folder, &["lint", "--only", "enum-camelcase", "crd.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("'enum-camel-case'"), "{output:?}");
}

#[test]
fn what_stands_in_several_versions_is_one_finding() {
    let (head, versions) = BOATS.split_once("  versions:\n").expect("boats have versions");
    let other = versions.replacen("name: v1", "name: v2", 1).replacen("storage: true", "storage: false", 1);
    let folder = folder("lint-versions", &[("crd.yaml", &format!("{head}  versions:\n{versions}{other}"))]);
    let output = text(&skiff(&folder, &["lint", "--only", "enum-camel-case", "crd.yaml"]).stdout);
    assert!(output.contains("boats.harbour.example.com v1,v2 spec.rig:"), "{output}");
    assert!(output.contains("1 finding in 1 definition"), "{output}");
    let deprecated = other.replacen("name: v2", "name: v2\n      deprecated: true", 1);
    let folder =
        super::folder("lint-deprecated", &[("crd.yaml", &format!("{head}  versions:\n{versions}{deprecated}"))]);
    let output = text(&skiff(&folder, &["lint", "--only", "enum-camel-case", "crd.yaml"]).stdout);
    assert!(output.contains("boats.harbour.example.com v1 spec.rig:"), "{output}");
}

#[test]
fn embedded_types_of_kubernetes_are_left_out() {
    let fields = "toleration: {type: object, properties: {key: {type: string}, operator: {type: string}, value: {type: string}, \
                  effect: {type: string}, tolerationSeconds: {type: integer, format: int64}}}\n                \
                  taint: {type: object, properties: {key: {type: string}, value: {type: string}, effect: {type: string}, \
                  timeAdded: {type: string, format: date-time}}}";
    assert_eq!(found("embedded", fields, ""), Vec::<String>::new());
}

/// Of real definitions half have no more than 5 findings, and none is about a field within what Kubernetes has types for.
#[test]
fn real_definitions_have_few_findings() {
    let Some(corpus) = corpus::open() else { return };
    let findings = corpus.definitions.iter().filter_map(|definition| lint(&corpus::converted(definition)).ok());
    let findings: Vec<_> = findings.collect();
    let median = |least: Severity| {
        let told = |found: &Vec<Finding>| found.iter().filter(|finding| finding.lint.severity >= least).count();
        let mut counts: Vec<usize> = findings.iter().map(told).collect();
        counts.sort_unstable();
        counts[counts.len() / 2]
    };
    assert!(median(Severity::Warning) <= 5 && median(Severity::Advice) <= 5, "{}", median(Severity::Advice));
    for finding in findings.iter().flatten() {
        for within in ["ontainers[*].", "ffinity.", "olerations[*].", "env[*].", "Probe."] {
            assert!(!finding.path.contains(within), "{} {}", finding.lint.id, finding.path);
        }
    }
}

/// The findings that docs/lints-judged.md judges, drawn anew: as many of those that are told by default, by a hash.
fn drawn(corpus: &corpus::Corpus) -> Vec<(String, Finding)> {
    const JUDGED: usize = 100;
    let fnv = |text: &str| {
        text.bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let mut findings = Vec::new();
    for definition in &corpus.definitions {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let found = lint(&corpus::converted(definition)).unwrap_or_default();
        let told = found.into_iter().filter(|finding| finding.lint.severity >= Severity::Warning);
        for finding in told.filter(|finding| finding.lint.id != "refused") {
            let Finding { lint, versions, path, message, .. } = &finding;
            let key = format!("{name} {} {path} {} {message}", versions.join(","), lint.id);
            findings.push((fnv(&key), key, name.to_owned(), finding));
        }
    }
    findings.sort_by(|left, right| (left.0, &left.1).cmp(&(right.0, &right.1)));
    findings.truncate(JUDGED);
    findings.into_iter().map(|(_, _, name, finding)| (name, finding)).collect()
}

#[test]
fn the_findings_that_are_judged_are_those_that_are_drawn() {
    let Some(corpus) = corpus::open() else { return };
    let row = |(name, finding): &(String, Finding)| {
        let path = if finding.path.is_empty() { "-" } else { &finding.path };
        format!("| {} | {name} | {path} | true |", finding.lint.id)
    };
    let mut drawn: Vec<String> = drawn(&corpus).iter().map(row).collect();
    drawn.sort();
    let page = include_str!("../../docs/lints-judged.md");
    let judged = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| lint |"));
    let upto = |line: &str| line.rsplit_once(" | ").map_or(String::new(), |(row, _)| format!("{row} |"));
    let mut judged: Vec<String> = judged.map(upto).collect();
    judged.sort();
    assert_eq!(judged, drawn, "judge what is drawn now");
}

#[test]
fn a_field_that_the_rule_beside_demands_needs_no_has() {
    let definition = |rules: &str| {
        BOATS.replace("                - rule: self.crew", &format!("{rules}                - rule: self.crew"))
    };
    let mast = "                crew:";
    let with = |rules: &str| {
        let text = definition(rules).replace(mast, "                mast: {type: integer}\n                crew:");
        let folder = folder("lint-demanded", &[("crd.yaml", &text)]);
        super::text(&skiff(&folder, &["lint", "--only", "optional-without-has", "crd.yaml"]).stdout)
    };
    let read = "                - rule: self.mast > 2\n";
    assert!(with(read).contains("reads the optional `self.mast`"));
    let demands = "                - rule: has(self.mast) && self.length > 2\n";
    assert!(with(&format!("{read}{demands}")).starts_with("0 findings"));
    let offers = "                - rule: has(self.mast) || self.length > 2\n";
    assert!(with(&format!("{read}{offers}")).contains("reads the optional `self.mast`"));
}

#[test]
fn findings_are_annotations_for_reviewers() {
    let folder = folder("lint-annotations", &[("crd.yaml", BOATS)]);
    let shown = |format| text(&skiff(&folder, &["lint", "--severity", "advice", "-o", format, "crd.yaml"]).stdout);
    let expected = "::notice file=crd.yaml,line=24,col=17,title=enum-camel-case::boats.harbour.example.com v1 spec.rig: \
                    the values ketch, sloop, none are not CamelCase (fix: write them as CamelCase words)\n";
    assert_eq!(shown("github"), expected);
    let sarif: Value = serde_json::from_str(&shown("sarif")).expect("it is JSON");
    let run = &sarif["runs"][0];
    assert_eq!(run["results"][0]["level"], "note");
    assert_eq!(run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 24);
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "enum-camel-case");
    assert!(run["tool"]["driver"]["rules"][0]["help"]["text"].as_str().is_some_and(|help| help.contains("Why: ")));
}

#[test]
fn an_annotation_turns_findings_off() {
    let ignored = |what: &str| {
        BOATS.replace(
            "  name: boats.h",
            &format!("  annotations: {{skiff.kubeskiff.dev/lint-ignore: '{what}'}}\n  name: boats.h"),
        )
    };
    let files = [("all.yaml", &*ignored("enum-camel-case")), ("one.yaml", &ignored("phase, enum-camel-case:spec.rig"))];
    let folder = folder("lint-ignore", &files);
    check(&folder, &["lint", "--severity", "advice", "all.yaml"], 0, "0 findings in 1 definition\n");
    check(&folder, &["lint", "--severity", "advice", "one.yaml"], 0, "0 findings in 1 definition\n");
    fs::write(folder.join("odd.yaml"), ignored("enum-camelcase")).expect("the folder is writable");
    let output = text(&skiff(&folder, &["lint", "odd.yaml"]).stdout);
    assert!(
        output.contains("warning unknown-ignore: boats.harbour.example.com: no lint is called `enum-camelcase`"),
        "{output}"
    );
}

#[test]
fn rules_that_decide_nothing_are_found_by_constants_and_required_alone() {
    let rules = "{rule: 1 < 2}, {rule: '1 > 2'}, {rule: has(self.length)}, {rule: self.length > 0}, {rule: has(self.crew)}, \
                 {rule: self.length > 30}";
    let found = found("constants", "sails: {type: integer, minimum: 0, maximum: 9}", rules);
    let never_fails = ["rule-never-fails spec"; 4].to_vec();
    assert_eq!(found, [never_fails, vec!["rule-never-holds spec"; 2]].concat());
}

#[test]
fn optional_fields_are_read_with_has() {
    let fields = "sails: {type: integer, minimum: 0, maximum: 9}";
    let found_in = |name, rule: &str| found(name, fields, &format!("{{rule: '{rule}'}}"));
    assert_eq!(found_in("bare", "self.sails > 1"), ["optional-without-has spec"]);
    assert_eq!(found_in("has", "!has(self.sails) || self.sails > 1"), Vec::<String>::new());
    assert_eq!(found_in("optional", "self.?sails.orValue(1) > 0"), Vec::<String>::new());
    assert_eq!(found_in("default", "self.crew > 1"), Vec::<String>::new());
}

#[test]
fn the_headings_of_the_conventions() {
    let found = found(
        "conventions",
        "big: {type: integer, format: int64}\n                \
         ratio: {type: number}\n                \
         towed: {type: boolean}\n                \
         waitTimeout: {type: integer}\n                \
         isFast: {type: boolean}\n                \
         level: {type: integer, enum: [1, 2]}\n                \
         launched: {type: string, format: date-time}\n                \
         'x.k8s.io/y': {type: string}\n                \
         ownerReference: {type: object, properties: {name: {type: string}, namespace: {type: string}}}\n                \
         berths: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}\n                \
         names: {type: array, items: {type: string}}\n                \
         Flag_x: {type: string}",
        "",
    );
    let expected = [
        "boolean spec.isFast",
        "boolean spec.towed",
        "boolean-name spec.isFast",
        "cross-namespace-reference spec.ownerReference",
        "enum-of-numbers spec.level",
        "field-name-case spec.Flag_x",
        "float-in-spec spec.ratio",
        "int64-precision spec.big",
        "list-type-missing spec.names",
        "map-of-objects spec.berths",
        "number-unbounded spec.big",
        "number-unbounded spec.ratio",
        "number-unbounded spec.waitTimeout",
        "reference-name spec.ownerReference",
        "reserved-prefix spec.x.k8s.io/y",
        "time-name spec.launched",
        "unit-suffix spec.waitTimeout",
    ];
    assert_eq!(found, expected);
}

#[test]
fn dear_rules_have_a_remedy() {
    let fields = "names: {type: array, x-kubernetes-list-type: set, items: {type: string}}";
    let found =
        found("cost", fields, "{rule: 'has(self.names) && self.names.all(n, self.names.exists_one(m, m == n))'}");
    assert!(found.iter().any(|finding| finding.starts_with("rule-cost ")), "{found:?}");
    assert!(found.contains(&"unbounded-under-rule spec.names".to_owned()), "{found:?}");
}

#[test]
fn what_the_server_refuses_or_warns_of_is_found_too() {
    let status = "\n            status: {type: object, properties: {phase: {type: string}, conditions: {type: array, items: \
                  {type: object, properties: {type: {type: string}}}}}}";
    let crd = BOATS
        .replace("  scope:", "  preserveUnknownFields: true\n  scope:")
        .replace("kind: Boat}", "kind: boatList}")
        .replace("required: [length]", "required: [length, mast, crew]")
        .replace("                length: {type: integer,", "                length: {")
        .replace("\n            spec:", &format!("{status}\n            spec:"));
    let folder = folder("lint-refused", &[("crd.yaml", &crd)]);
    let output = skiff(&folder, &["lint", "--severity", "advice", "-o", "json", "crd.yaml"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let ids: Vec<&str> = found.as_array().into_iter().flatten().filter_map(|found| found["id"].as_str()).collect();
    for id in [
        "refused",
        "not-structural",
        "deprecated-construct",
        "kind-case",
        "required-unspecified",
        "required-with-default",
        "status-without-subresource",
        "phase",
        "conditions",
    ] {
        assert!(ids.contains(&id), "{id} is not among {ids:?}");
    }
}

#[test]
fn fixes_keep_comments_and_layout() {
    let before = "\
# boats
spec:
  preserveUnknownFields: false # from v1beta1
";
    let list = "                tags: # words\n                  type: array # many\n                  \
                items: {type: array, items: {type: string}}\n";
    let rule = "                - rule: self.length > 1\n                  # nobody needs it\n                  \
                message: too short\n";
    let text_before = BOATS
        .replace("spec:\n  group", &format!("{before}  group").replace("# boats\n", ""))
        .replace("                crew:", &format!("{list}                crew:"))
        .replace("                - rule: self.crew", &format!("{rule}                - rule: self.crew"));
    let folder = folder("lint-fix", &[("crd.yaml", &text_before)]);
    let output = skiff(&folder, &["lint", "--fix", "--severity", "advice", "crd.yaml"]);
    assert!(text(&output.stdout).contains("\n1 finding in 1 definition, 4 fixed: enum-camel-case 1\n"), "{output:?}");
    let fixed = "                tags: # words\n                  type: array # many\n                  \
                 x-kubernetes-list-type: atomic\n                  \
                 items: {type: array, x-kubernetes-list-type: atomic, items: {type: string}}\n";
    let expected = BOATS.replace("                crew:", &format!("{fixed}                crew:"));
    assert_eq!(fs::read_to_string(folder.join("crd.yaml")).expect("it is there"), expected);
}

#[test]
fn policies_and_bindings_are_fixed() {
    let before = "\
# Nobody reads this.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short}
spec:
  matchConstraints:
    resourceRules: # all of them
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [ships]}
  variables:
  - name: unread
    expression: '1'
  validations:
  - expression: 'true'
  - expression: object.metadata.name != 'a' # the rest
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short}
spec:
  policyName: short
  paramRef:
    name: limits
    parameterNotFoundAction: Deny
  validationActions: [Deny]
";
    let folder = folder("lint-fix-policies", &[("policies.yaml", before)]);
    check(&folder, &["lint", "--fix", "policies.yaml"], 0, "0 findings in 2 policies and bindings, 4 fixed\n");
    let gone = [
        "    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [ships]}\n",
        "  variables:\n  - name: unread\n    expression: '1'\n",
        "  - expression: 'true'\n",
        "  paramRef:\n    name: limits\n    parameterNotFoundAction: Deny\n",
    ];
    let expected = gone.iter().fold(before.to_owned(), |text, gone| text.replace(gone, ""));
    assert_eq!(fs::read_to_string(folder.join("policies.yaml")).expect("it is there"), expected);
    // What is left of a policy must say something.
    let only = before.replace("  - expression: object.metadata.name != 'a' # the rest\n", "");
    fs::write(folder.join("policies.yaml"), only).expect("the folder is writable");
    let output = skiff(&folder, &["lint", "--fix", "policies.yaml"]);
    assert!(text(&output.stdout).contains("1 finding in 2 policies and bindings, 3 fixed"), "{output:?}");
}

#[test]
fn fixes_of_json_stay_json() {
    let crd = kubeskiff::value::yaml::decode(BOATS.as_bytes()).expect("boats are YAML");
    let crd = String::from_utf8(kubeskiff::value::json::encode(&crd)).expect("JSON is text");
    let list = r#""properties":{"names":{"items":{"type":"string"},"type":"array"},"crew""#;
    let folder = folder("lint-fix-json", &[("crd.json", &crd.replace(r#""properties":{"crew""#, list))]);
    let output = skiff(&folder, &["lint", "--fix", "--severity", "advice", "crd.json"]);
    assert!(text(&output.stdout).contains("\n1 finding in 1 definition, 1 fixed: enum-camel-case 1\n"), "{output:?}");
    let fixed = fs::read_to_string(folder.join("crd.json")).expect("it is there");
    assert!(fixed.contains(r#""type":"array", "x-kubernetes-list-type": "atomic"}"#), "{fixed}");
}

#[test]
fn the_documentation_is_that_of_the_lints() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lints.md");
    let output = skiff(Path::new("."), &["lint", "--list"]);
    assert_eq!(fs::read_to_string(file).expect("it is there"), text(&output.stdout));
}

#[test]
fn unreadable_input_ends_with_2() {
    let folder = folder("lint-unreadable", &[("a.yaml", "kind: A\n")]);
    assert_eq!(skiff(&folder, &["lint", "a.yaml"]).status.code(), Some(2));
}

#[test]
fn a_broken_file_hides_no_other() {
    let folder = folder("lint-broken", &[("a.yaml", "kind: ["), ("crd.yaml", BOATS)]);
    let output = skiff(&folder, &["lint", "--only", "enum-camel-case", "a.yaml", "crd.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`a.yaml` can't be understood"), "{output:?}");
    assert!(text(&output.stdout).contains("crd.yaml:24:17: advice enum-camel-case"), "{output:?}");
}
