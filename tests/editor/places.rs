//! Places in documents of each kind: where they lead, what is told of them, and what may be written there.

use serde_json::Value;

use crate::client::{Client, Folder};
use crate::session::{BOAT, BOATS, POLICY, harbour};

/// Where `‸` stands in a text of which the rest is given; its line and column.
#[track_caller]
fn place(text: &str, mark: &str) -> (u64, u64) {
    let (before, behind) = mark.split_once('‸').expect("it has a place");
    let start = text.find(&format!("{before}{behind}")).expect("it is there") + before.len();
    let line = text[..start].rfind('\n').map_or(0, |end| end + 1);
    (text[..start].matches('\n').count() as u64, text[line..start].encode_utf16().count() as u64)
}

/// Where a place leads: the name of the file, and its line there.
#[track_caller]
fn leads(client: &mut Client, uri: &str, place: (u64, u64)) -> (String, String) {
    let target = client.at("textDocument/definition", uri, place);
    let uri = target["uri"].as_str().expect("it leads somewhere");
    let text = std::fs::read_to_string(uri.trim_start_matches("file://")).expect("the file is there");
    let line = target["range"]["start"]["line"].as_u64().expect("it is a number") as usize;
    let name = uri.rsplit('/').next().unwrap_or_default();
    (name.to_owned(), text.lines().nth(line).unwrap_or_default().trim().to_owned())
}

#[track_caller]
fn hover(client: &mut Client, uri: &str, position: (u64, u64)) -> String {
    let told = client.at("textDocument/hover", uri, position);
    told["contents"]["value"].as_str().unwrap_or_default().to_owned()
}

const BOUND: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}
  variables:
  - {name: crew, expression: 'object.spec.crew.map(c, c.name)'}
  validations:
  - expression: size(variables.crew) < int(params.data.most) || object.spec.crew.exists(c, c.name == 'ann')
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short}
spec:
  policyName: short
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}
  validationActions: [Deny]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: default}
data: {most: '3'}
";

#[test]
fn names_of_expressions_lead_to_what_they_stand_for() {
    let rule = BOATS.replace("self.rig != 'ketch' || self.length >= 9", "self.crew.all(c, c.name != 'ann')");
    let list =
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: harbour.example.com/v1\n  kind: Boat\n  spec: {length: 7}\n";
    let suite = "crds: [../crds/boats.yaml]\ncases: []\n";
    let files = [
        ("crds/boats.yaml", rule.as_str()),
        ("policy.yaml", BOUND),
        ("list.yaml", list),
        ("tests/a.suite.yaml", suite),
    ];
    let folder = Folder::new("ways", &files);
    let mut client = Client::start(Some(&folder.0));
    files.iter().for_each(|(name, text)| client.open(&folder.uri(name), text));
    let mut check = |file: usize, mark: &str, (name, line): (&str, &str)| {
        let (own, text) = files[file];
        let found = leads(&mut client, &folder.uri(own), place(text, mark));
        assert_eq!((found.0.as_str(), found.1.as_str()), (name, line), "{mark}");
    };
    check(0, "c.na‸me != 'ann'", ("boats.yaml", "name:"));
    check(1, "size(variables.cr‸ew)", ("policy.yaml", "- {name: crew, expression: 'object.spec.crew.map(c, c.name)'}"));
    check(1, "|| object.spec.cr‸ew", ("boats.yaml", "crew:"));
    check(1, "c.na‸me == 'ann'", ("boats.yaml", "name:"));
    check(1, "policyName: sh‸ort", ("policy.yaml", "metadata: {name: short}"));
    check(1, "paramRef: {name: lim‸its", ("policy.yaml", "metadata: {name: limits, namespace: default}"));
    check(2, "{len‸gth: 7}", ("boats.yaml", "length:"));
    check(3, "crds/boa‸ts.yaml", ("boats.yaml", "apiVersion: apiextensions.k8s.io/v1"));
}

#[test]
fn names_of_expressions_are_explained() {
    let (folder, mut client) = harbour("names");
    let crd = folder.uri("crds/boats.yaml");
    let rule =
        "size(self.rig) > 1 && self.crew.all(c, string(c.name) != '' && c.name.startsWith('a')) && has(self.rig)";
    let text = BOATS.replace("self.rig != 'ketch' || self.length >= 9", rule);
    client.open(&crd, &text);
    let mut check = |mark: &str, expected: &str| {
        let told = hover(&mut client, &crd, place(&text, mark));
        assert_eq!(told.lines().next(), Some(expected), "{mark}");
    };
    let size = "`size(bytes): int`, `size(list(A)): int`, `size(map(A, B)): int`, `size(string): int`";
    check("si‸ze(self.rig)", size);
    check("self.cr‸ew.all", "`crew: list(object)`");
    check("al‸l(c,", "`all(x, predicate)`");
    check("starts‸With('a')", "`startsWith(string): bool`");
    check("ha‸s(self.rig)", "`has(x.field)`: whether it is set");
    check("c.na‸me)", "`name: string`");
    let told = hover(&mut client, &crd, place(&text, "mini‸mum: 2"));
    assert!(told.ends_with("\n\nThe least number."), "{told}");
}

#[test]
fn descriptions_keep_their_paragraphs_and_lists() {
    let description = "how many masts:\\n\\n* `sloop`: one\\n* _ketch_: two";
    let crd = BOATS.replace(
        "type: string\n                enum",
        &format!("type: string\n                description: \"{description}\"\n                enum"),
    );
    let folder = Folder::new("prose", &[("crds/boats.yaml", &crd)]);
    let mut client = Client::start(Some(&folder.0));
    let uri = folder.uri("a.yaml");
    client.open(&uri, &BOAT.replace('𝄞', ""));
    let told = hover(&mut client, &uri, (6, 3));
    let list = "how many masts:\n\n* `sloop`: one\n* \\_ketch\\_: two\n\n- defaults to `\"sloop\"`\n- one of `\"ketch\"`, `\"sloop\"`";
    assert!(told.ends_with(list), "{told}");
}

#[test]
fn built_in_kinds_have_their_values() {
    let (folder, mut client) = harbour("built-in");
    let uri = folder.uri("pod.yaml");
    client.open(
        &uri,
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  restartPolicy: \n  containers:\n  - image: a\n    \n",
    );
    assert_eq!(client.completions(&uri, (4, 17)), ["Always", "OnFailure", "Never"]);
    assert_eq!(hover(&mut client, &uri, (5, 4)).lines().next(), Some("**spec.containers** `[]object`, required"));
    let uri = folder.uri("policy.yaml");
    let text = POLICY.replace("[Deny]", "[Deny, ");
    client.open(&uri, &text);
    assert_eq!(client.completions(&uri, place(&text, "[Deny, ‸")), ["Deny", "Warn", "Audit"]);
}

#[test]
fn names_in_json_stand_in_quotes() {
    let (folder, mut client) = harbour("json");
    let uri = folder.uri("a.json");
    let text = "{\"apiVersion\": \"harbour.example.com/v1\", \"kind\": \"Boat\",\n \"metadata\": {\"name\": \"a\"},\n \"spec\": {\"length\": 7, \n }}\n";
    client.open(&uri, text);
    let edits = |client: &mut Client, position| -> Vec<Value> {
        let items = client.at("textDocument/completion", &uri, position);
        items.as_array().expect("it is a list").iter().map(|item| item["textEdit"].clone()).collect()
    };
    let texts = |edits: Vec<Value>| edits.iter().map(|edit| edit["newText"].clone()).collect::<Vec<_>>();
    assert_eq!(texts(edits(&mut client, (2, 23))), ["\"crew\": ", "\"rig\": "]);
    // An editor has closed the quotes already.
    client.edit(&uri, ((2, 23), (2, 23)), "\"\"");
    let edit = edits(&mut client, (2, 24)).swap_remove(1);
    assert_eq!((&edit["newText"], &edit["range"]["end"]["character"]), (&Value::from("\"rig\": "), &Value::from(25)));
    client.edit(&uri, ((2, 23), (2, 25)), "\"rig\": ");
    assert_eq!(texts(edits(&mut client, (2, 30))), ["\"ketch\"", "\"sloop\""]);
}

#[test]
fn required_fields_and_keys_of_lists_are_names_of_fields() {
    let (folder, mut client) = harbour("required");
    let crd = folder.uri("crds/boats.yaml");
    client.open(&crd, &BOATS.replace("required: [length]", "required: [length, ]"));
    assert_eq!(client.completions(&crd, (18, 31)), ["rig", "crew"]);
    let keys =
        "type: array\n                x-kubernetes-list-type: map\n                x-kubernetes-list-map-keys: [";
    client.replace(&crd, &BOATS.replace("type: array", keys));
    assert_eq!(client.completions(&crd, (31, 45)), ["name"]);
}

#[test]
fn a_binding_of_a_policy_that_is_refused_has_its_policy() {
    let (folder, mut client) = harbour("refused");
    let uri = folder.uri("policy.yaml");
    client.open(&uri, &POLICY.replace("object.spec.length < 20", "object.spec.length <"));
    let faults = client.faults(&uri);
    assert!(!faults.is_empty() && !faults.iter().any(|fault| fault.contains("there is no policy")), "{faults:?}");
}
