//! `skiff diff`.

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff, text};

fn changed() -> String {
    BOATS
        .replace("maximum: 30", "maximum: 20")
        .replace("[ketch, sloop, none]", "[ketch, none, yawl]")
        .replace(
            "{type: integer, minimum: 1, maximum: 99, default: 1}",
            "{type: integer, minimum: 1, maximum: 99, default: 1}\n                sail: {type: integer, default: 2}",
        )
        .replace("a boat does not shrink", "a boat does not shrink\n                - rule: self.length != 7")
}

const OBJECTS: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 7}
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: tern}
spec: {length: 4, colour: red}
";

#[test]
fn changes_are_breaking_or_safe_and_objects_are_replayed() {
    let files = [("old.yaml", BOATS), ("new.yaml", &changed()), ("boats.yaml", OBJECTS)];
    let folder = folder("diff", &files);
    let expected = "\
boats.harbour.example.com v1
  MAY BREAK spec: rule-added: `self.length != 7`; values that an update leaves alone are forgiven
  BREAKING  spec.length: bound-tightened: maximum 30 became 20
  BREAKING  spec.rig: enum-values-removed: without \"sloop\"
  safe      spec.rig: enum-values-added: with \"yawl\"
  safe      spec.sail: property-added: a new field
5 changes: 2 breaking, 1 may break, 2 safe
boats.yaml: Boat daisy
  existing: kept until this field changes
  new: refused: spec: Invalid value: failed rule: self.length != 7
  gains spec.sail
boats.yaml: Boat tern
  gains spec.sail
2 objects replayed: 1 refused
";
    check(&folder, &["diff", "old.yaml", "new.yaml", "--objects", "boats.yaml"], 1, expected);
}

#[test]
fn the_json_has_the_same() {
    let folder = folder("diff-json", &[("old.yaml", &changed()), ("new.yaml", BOATS), ("boats.yaml", OBJECTS)]);
    let output = skiff(&folder, &["diff", "old.yaml", "new.yaml", "--objects", "boats.yaml", "-o", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let removed = json!({
        "crd": "boats.harbour.example.com", "version": "v1", "path": "spec.sail", "change": "property-removed",
        "breaking": true, "degree": "breaking", "detail": "it is dropped from objects",
    });
    assert!(found["changes"].as_array().is_some_and(|changes| changes.contains(&removed)), "{found}");
    assert_eq!(found["objects"][0]["errors"], json!([]));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn rules_lists_names_and_versions() {
    let old = BOATS.replace(
        "                rig:",
        "                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}\n                rig:",
    );
    let new = old
        .replace("list-type: set", "list-type: atomic")
        .replace("self.crew * 2 <= self.length", "self.crew * 2 <= self.length && self.crew < 9")
        .replace("self.length >= oldSelf.length", "self.length>=oldSelf.length")
        .replace("a boat does not shrink", "no boat shrinks")
        .replace("singular: boat", "singular: boat, shortNames: [bt]")
        .replace("default: none}", "default: sloop}")
        .replace("scope: Namespaced", "scope: Cluster")
        + &beta_of(&old);
    let folder = folder("diff-more", &[("old.yaml", &old), ("new.yaml", &new)]);
    let expected = "\
boats.harbour.example.com
  REFUSED   in place of the old one: spec.scope: Invalid value: \"Cluster\": field is immutable
            at new.yaml:7:10
  BREAKING  spec.scope: scope-changed: `Namespaced` became `Cluster`
  safe      spec.names.shortNames: short-name-added: `bt` is new
boats.harbour.example.com v1
  safe      spec: rule-message-changed: `self.length >= oldSelf.length` tells its failures differently
  BREAKING  spec: rule-tightened: `self.crew * 2 <= self.length` became `self.crew * 2 <= self.length && self.crew < 9`; values that an update leaves alone are forgiven
  MAY BREAK spec.rig: default-changed: \"none\" became \"sloop\"
  MAY BREAK spec.tags: list-type-changed: set became atomic
boats.harbour.example.com v1beta1
  safe      spec.versions: version-added: a new version
boats.harbour.example.com v1beta1 to v1
  safe      spec.length: bound-loosened: maximum 9 became 30
1 refused, 8 changes: 2 breaking, 2 may break, 4 safe
";
    check(&folder, &["diff", "old.yaml", "new.yaml"], 1, expected);
}

/// The version of boats as one more of another name, in which boats are shorter and all else is as in the new definition.
fn beta_of(crd: &str) -> String {
    let (_, version) = crd.split_once("    - name: v1\n").expect("there is a version");
    let beta = version
        .replace("storage: true", "storage: false")
        .replace("maximum: 30", "maximum: 9")
        .replace("list-type: set", "list-type: atomic")
        .replace("self.crew * 2 <= self.length", "self.crew * 2 <= self.length && self.crew < 9")
        .replace("a boat does not shrink", "no boat shrinks")
        .replace("default: none}", "default: sloop}");
    format!("    - name: v1beta1\n{beta}")
}

#[test]
fn a_status_is_replayed_too() {
    let status = "\n      subresources: {status: {}}\n      schema:\n        openAPIV3Schema:\n          type: object\n          \
                  required: [spec]\n          properties:\n            status: {type: object, properties: {\
                  berth: {type: integer, maximum: 9}}}\n";
    let (head, tail) = BOATS.split_once("\n      schema:").expect("there is a schema");
    let (_, tail) = tail.split_once("properties:\n").expect("there are properties");
    let old = format!("{head}{status}{tail}");
    let boat =
        "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 7}\nstatus: {berth: 5}\n";
    let files = [("old.yaml", &*old), ("new.yaml", &old.replace("maximum: 9}", "maximum: 4}")), ("boat.yaml", boat)];
    let folder = folder("diff-status", &files);
    let expected = "\
boats.harbour.example.com v1
  BREAKING  status.berth: bound-tightened: maximum 9 became 4
1 change: 1 breaking
boat.yaml: Boat a
  existing: kept until this field changes
  new: refused: status.berth: Invalid value: 5: berth in body should be less than or equal to 4
1 object replayed: 1 refused
";
    check(&folder, &["diff", "old.yaml", "new.yaml", "--objects", "boat.yaml"], 1, expected);
}

#[test]
fn the_same_definition_has_no_changes() {
    let folder = folder("diff-none", &[("old.yaml", BOATS)]);
    check(&folder, &["diff", "old.yaml", "old.yaml"], 0, "no changes\n");
    assert_eq!(skiff(&folder, &["diff", "old.yaml", "absent.yaml"]).status.code(), Some(2));
}

/// Compares boats with boats that are changed so; what is told of each change.
#[track_caller]
fn compare(test: &str, old: &str, new: &str, expected: &[&str]) {
    let folder = folder(&format!("diff-{test}"), &[("old.yaml", old), ("new.yaml", new)]);
    let output = skiff(&folder, &["diff", "old.yaml", "new.yaml"]);
    let printed = super::text(&output.stdout);
    let lines: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("  ")).collect();
    assert_eq!(lines, expected, "{printed}");
}

const RIG: &str = "rig: {type: string, enum: [ketch, sloop, none], default: none}";
const RULE: &str = "rule: self.crew * 2 <= self.length";

#[test]
fn what_the_server_would_refuse_is_refused_first() {
    let broken = BOATS.replace(RULE, "rule: self.crew * 2 <=");
    let unbounded = BOATS
        .replace(RIG, "note: {type: array, maxItems: 100, items: {type: string, maxLength: 9}}")
        .replace(RULE, "rule: self.note.all(a, self.note.all(b, self.note.all(c, a + b != c)))");
    let dear = unbounded.replace(", maxLength: 9", "");
    let folder = folder(
        "diff-refused",
        &[("fine.yaml", BOATS), ("broken.yaml", &broken), ("dear.yaml", &dear), ("bounded.yaml", &unbounded)],
    );
    let run = |arguments: &[&str]| {
        let output = skiff(&folder, &[&["diff"], arguments].concat());
        (output.status.code(), super::text(&output.stdout))
    };
    let (code, said) = run(&["fine.yaml", "broken.yaml"]);
    assert!(said.starts_with("boats.harbour.example.com\n  REFUSED   spec.validation"), "{said}");
    assert!(!said.contains("rule-added") && code == Some(1), "{said}");
    // It is not better for having been so before.
    let (code, said) = run(&["broken.yaml", "broken.yaml"]);
    assert!(said.contains("REFUSED") && !said.contains("no changes") && code == Some(1), "{said}");
    let (code, said) = run(&["bounded.yaml", "dear.yaml"]);
    assert!(said.contains("REFUSED") && said.contains("exceeds budget"), "{said}");
    assert!(said.contains("safe      spec.note[*]: bound-loosened: maxLength 9 removed") && code == Some(1), "{said}");
}

#[test]
fn a_rule_about_what_did_not_exist_breaks_nothing() {
    let more = BOATS
        .replace("[ketch, sloop, none]", "[ketch, sloop, none, yawl]")
        .replace(
            "                crew:",
            "                mizzen: {type: integer, maximum: 9}\n                crew:",
        )
        .replace(
            &format!("                - {RULE}"),
            &format!(
                "                - rule: self.rig != 'yawl' || has(self.mizzen)\n                - rule: '!has(self.mizzen) || \
                 self.mizzen < self.length'\n                - rule: self.rig != 'sloop' || has(self.mizzen)\n                - {RULE}"
            ),
        );
    compare(
        "new-values",
        BOATS,
        &more,
        &[
            "safe      spec: rule-added: `self.rig != \"yawl\" || has(self.mizzen)`; it holds for all that passed before",
            "safe      spec: rule-added: `!has(self.mizzen) || self.mizzen < self.length`; it holds for all that passed before",
            "MAY BREAK spec: rule-added: `self.rig != \"sloop\" || has(self.mizzen)`; values that an update leaves alone are forgiven",
            "safe      spec.rig: enum-values-added: with \"yawl\"",
            "safe      spec.mizzen: property-added: a new field",
        ],
    );
}

#[test]
fn a_format_that_no_server_looks_at_breaks_nothing() {
    let sail = |format: &str| BOATS.replace(RIG, &format!("{RIG}\n                sail: {{type: string{format}}}"));
    let added = |name: &str, format: &str, change: &str| {
        compare(name, &sail(""), &sail(&format!(", format: {format}")), &[change]);
    };
    added("format-unknown", "knots", "safe      spec.sail: text-constraint-changed: format `knots` added");
    added("format-known", "uuid", "MAY BREAK spec.sail: text-constraint-changed: format `uuid` added");
}

#[test]
fn a_name_that_is_required_twice_is_one_change() {
    let new = BOATS.replace("required: [length]", "required: [length, crew, crew]");
    compare("required-twice", BOATS, &new, &["safe      spec.crew: required-added: it has a default"]);
}

#[test]
fn a_list_of_values_is_held_against_whatever_comes_instead() {
    let pattern = |pattern: &str| {
        BOATS.replace(
            RIG,
            &format!("rig: {{type: string, pattern: '{pattern}', minLength: 1, maxLength: 9, default: none}}"),
        )
    };
    compare(
        "pattern",
        BOATS,
        &pattern("^[a-z]+$"),
        &[
            "safe      spec.rig: bound-tightened: maxLength 9 added",
            "safe      spec.rig: bound-tightened: minLength 1 added",
            "safe      spec.rig: text-constraint-changed: pattern `^[a-z]+$` added",
            "safe      spec.rig: enum-removed: other values pass, too",
        ],
    );
    compare(
        "pattern-less",
        BOATS,
        &pattern("^[a-p]+$"),
        &[
            "safe      spec.rig: bound-tightened: maxLength 9 added",
            "safe      spec.rig: bound-tightened: minLength 1 added",
            "safe      spec.rig: text-constraint-changed: pattern `^[a-p]+$` added",
            "BREAKING  spec.rig: enum-values-removed: without \"ketch\", \"sloop\"",
            "safe      spec.rig: enum-removed: other values pass, too",
        ],
    );
}

/// Boats with a field of this schema in place of their rig.
fn with_note(schema: &str) -> String {
    BOATS.replace(RIG, &format!("note: {schema}"))
}

#[test]
fn what_a_schema_does_not_name_is_compared_too() {
    let check = |test: &str, old: &str, new: &str, expected: &[&str]| {
        compare(&format!("others-{test}"), &with_note(old), &with_note(new), expected);
    };
    let (any, texts) =
        ("{type: object, additionalProperties: true}", "{type: object, additionalProperties: {type: string}}");
    let kept = "{type: object, x-kubernetes-preserve-unknown-fields: true}";
    check(
        "any-text",
        any,
        "{type: object, additionalProperties: {type: string, maxLength: 3}}",
        &[
            "BREAKING  spec.note[*]: type-changed: any became string",
            "BREAKING  spec.note[*]: nullable-removed: null is dropped or refused",
            "BREAKING  spec.note[*]: bound-tightened: maxLength 3 added",
        ],
    );
    let kept_now = "safe      spec.note[*]: nullable-added: null is kept, which was dropped";
    check("text-any", texts, any, &["safe      spec.note[*]: type-changed: string became any", kept_now]);
    check("text-kept", texts, kept, &["safe      spec.note[*]: type-changed: string became any", kept_now]);
    let typed = kept.replace('}', ", properties: {a: {type: string}}}");
    check("kept-typed", kept, &typed, &["MAY BREAK spec.note.a: property-added: what was kept may be of no use here"]);
    let embedded = kept.replace('}', ", x-kubernetes-embedded-resource: true}");
    check(
        "embedded",
        kept,
        &embedded,
        &[
            "BREAKING  spec.note: embedded-resource-added: what has no apiVersion, kind and metadata of a resource is refused",
        ],
    );
    check(
        "not-embedded",
        &embedded,
        kept,
        &["safe      spec.note: embedded-resource-removed: it is a resource no longer"],
    );
    check(
        "kept-pruned",
        kept,
        "{type: object, properties: {a: {type: string}}}",
        &[
            "MAY BREAK spec.note.a: property-added: what was kept may be of no use here",
            "BREAKING  spec.note: unknown-fields-pruned: fields that are not specified are dropped",
        ],
    );
    check(
        "map-fields",
        texts,
        "{type: object, properties: {a: {type: string}}}",
        &[
            "safe      spec.note.a: property-added: it was an entry of the map",
            "BREAKING  spec.note: entries-removed: it is a map no longer",
        ],
    );
}

#[test]
fn a_default_that_rules_see_may_break() {
    let rule = BOATS.replace(RULE, "rule: '!has(self.mast) || self.mast < self.length'");
    let mast = "                crew:";
    let (old, new) = (
        rule.replace(mast, "                mast: {type: integer}\n                crew:"),
        rule.replace(mast, "                mast: {type: integer, default: 3}\n                crew:"),
    );
    compare("default-seen", &old, &new, &["MAY BREAK spec.mast: default-added: it is 3"]);
}

#[test]
fn what_resources_have_anyway_is_no_news() {
    let root = |properties: &str| {
        BOATS.replace("            spec:\n", &format!("            {properties}\n            spec:\n"))
    };
    compare(
        "meta",
        BOATS,
        &root("metadata: {type: object}"),
        &["safe      metadata: property-added: the server kept it before"],
    );
    let short = root("metadata: {type: object, properties: {name: {type: string, maxLength: 5}}}");
    compare(
        "meta-name",
        BOATS,
        &short,
        &[
            "safe      metadata: property-added: the server kept it before",
            "BREAKING  metadata.name: bound-tightened: maxLength 5 added",
        ],
    );
}

/// The form in which gateways add a filter: another value in a list that tells what a union holds, a field for it, and rules
/// that tie the two together, at each place that has filters.
#[test]
fn a_new_member_of_a_union_breaks_nothing() {
    let filters = |values: &str, more: &str, rules: &[&str]| {
        let rules: String = rules.iter().map(|rule| format!("\n  - rule: \"{rule}\"")).collect();
        let rules = if rules.is_empty() { rules } else { format!("\nx-kubernetes-validations:{rules}") };
        let filter = format!(
            "type: object\nrequired: [type]\nproperties:\n  type: {{type: string, enum: [{values}]}}\n  \
             header: {{type: string, maxLength: 9}}\n{more}{rules}"
        );
        let list = format!("type: array\nmaxItems: 4\nitems:\n{}", indented(&filter, 2));
        let backends = format!(
            "type: array\nmaxItems: 4\nitems:\n  type: object\n  properties:\n    filters:\n{}",
            indented(&list, 6)
        );
        let both = format!("filters:\n{}\nbackends:\n{}", indented(&list, 2), indented(&backends, 2));
        BOATS.replace(RIG, indented(&both, 16).trim_start())
    };
    let ties = |field: &str, value: &str| {
        [
            format!("!(has(self.{field}) && self.type != '{value}')"),
            format!("!(!has(self.{field}) && self.type == '{value}')"),
        ]
    };
    let (header, cors) = (ties("header", "Header"), ties("cors", "CORS"));
    let before: Vec<&str> = header.iter().map(String::as_str).collect();
    let after: Vec<&str> = header.iter().chain(&cors).map(String::as_str).collect();
    let old = filters("Header, Other", "", &before);
    let new = filters("Header, Other, CORS", "  cors: {type: object, properties: {age: {type: integer}}}\n", &after);
    let folder = folder("diff-union", &[("old.yaml", &old), ("new.yaml", &new)]);
    let output = skiff(&folder, &["diff", "old.yaml", "new.yaml"]);
    let printed = text(&output.stdout);
    assert!(printed.ends_with("8 changes: 8 safe\n"), "{printed}");
    assert_eq!(output.status.code(), Some(0));
}

fn indented(text: &str, spaces: usize) -> String {
    text.lines().map(|line| format!("{:spaces$}{line}\n", "")).collect::<String>().trim_end().to_owned()
}

#[test]
fn the_old_definition_may_be_that_of_a_commit() {
    let folder = folder("diff-git", &[]);
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let output = std::process::Command::new("git").current_dir(&folder).args(identity).args(arguments).output();
        output.expect("git is there")
    };
    _ = std::fs::remove_dir_all(folder.join(".git"));
    std::fs::create_dir_all(folder.join("crds")).expect("the folder is writable");
    std::fs::write(folder.join("crds/boats.yaml"), BOATS).expect("the folder is writable");
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "boats"]] {
        assert!(git(arguments).status.success());
    }
    std::fs::write(folder.join("crds/boats.yaml"), BOATS.replace("maximum: 30", "maximum: 20")).expect("writable");
    let expected = "\
boats.harbour.example.com v1
  BREAKING  spec.length: bound-tightened: maximum 30 became 20
1 change: 1 breaking
";
    for path in ["crds", "crds/boats.yaml", "./crds/"] {
        check(&folder, &["diff", "--git", "HEAD", path], 1, expected);
    }
    check(&folder.join("crds"), &["diff", "--git", "HEAD", "boats.yaml"], 1, expected);
    for (reference, path, words) in
        [("HEAD~7", "crds", "HEAD~7"), ("--all", "crds", "is not a commit"), ("HEAD", "gone", "no manifest")]
    {
        let output = skiff(&folder, &["diff", &format!("--git={reference}"), path]);
        assert!(super::text(&output.stderr).contains(words) && output.status.code() == Some(2), "{output:?}");
    }
}

#[test]
fn the_degree_that_fails_can_be_chosen() {
    let rule = BOATS.replace(RULE, &format!("rule: self.length != 7\n                - {RULE}"));
    let folder = folder("diff-fail-on", &[("old.yaml", BOATS), ("new.yaml", &rule)]);
    assert_eq!(skiff(&folder, &["diff", "old.yaml", "new.yaml"]).status.code(), Some(1));
    assert_eq!(skiff(&folder, &["diff", "old.yaml", "new.yaml", "--fail-on", "breaking"]).status.code(), Some(0));
}

#[test]
fn changes_are_annotations_for_reviewers() {
    let new = BOATS.replace("maximum: 30", "maximum: 20");
    let folder = folder("diff-annotations", &[("old.yaml", BOATS), ("new.yaml", &new)]);
    let output = skiff(&folder, &["diff", "old.yaml", "new.yaml", "-o", "github"]);
    let expected = "::error file=new.yaml,line=22,col=17,title=bound-tightened::boats.harbour.example.com: spec.length: maximum 30 \
                    became 20\n";
    assert_eq!(text(&output.stdout), expected);
    let output = skiff(&folder, &["diff", "old.yaml", "new.yaml", "-o", "sarif"]);
    let log: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "bound-tightened");
}
