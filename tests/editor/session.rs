//! Sessions of somebody who writes a definition, objects, policies and suites.

use serde_json::Value;

use crate::client::{Client, Folder};

pub const BOATS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.harbour.example.com
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [length]
            properties:
              length:
                description: in metres
                type: integer
                minimum: 2
              rig:
                type: string
                enum: [ketch, sloop]
                default: sloop
              crew:
                type: array
                items:
                  type: object
                  properties:
                    name:
                      type: string
            x-kubernetes-validations:
            - rule: self.rig != 'ketch' || self.length >= 9
              message: a ketch is 9 metres long at least
";

pub const BOAT: &str = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata:\n  name: 𝄞daisy\nspec:\n  length: 7\n  rig: ketch\n  sails: 2\n";

pub fn harbour(name: &str) -> (Folder, Client) {
    let folder = Folder::new(name, &[("crds/boats.yaml", BOATS)]);
    let client = Client::start(Some(&folder.0));
    (folder, client)
}

#[test]
fn an_object_is_checked_as_it_is_typed() {
    let (folder, mut client) = harbour("object");
    let uri = folder.uri("a.yaml");
    client.open(&uri, BOAT);
    let faults = client.faults(&uri);
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert_eq!(faults[0], "7:2 unknown-field unknown field \"spec.sails\"");
    assert!(faults[1].starts_with("3:8 FieldValueInvalid metadata.name: Invalid value: "), "{faults:?}");
    assert!(faults[2].starts_with("4:0 FieldValueInvalid spec: Invalid value: "), "{faults:?}");
    assert!(faults[2].ends_with("a ketch is 9 metres long at least"), "{faults:?}");
    // The sign outside of the basic plane counts two.
    client.edit(&uri, ((3, 8), (3, 10)), "");
    client.edit(&uri, ((7, 0), (8, 0)), "");
    client.edit(&uri, ((5, 10), (5, 11)), "12");
    assert_eq!(client.faults(&uri), Vec::<String>::new());
    // Half of a line hides nothing of another document.
    client.edit(
        &uri,
        ((7, 0), (7, 0)),
        "---\napiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: b}\nspec: {length: 1}\n---\na: [\n",
    );
    let faults = client.faults(&uri);
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("spec.length in body should be greater than or equal to 2"), "{faults:?}");
    assert!(faults[1].starts_with("13:0 yaml did not find expected"), "{faults:?}");
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn a_kind_that_nothing_defines_is_told_with_what_may_have_been_meant() {
    let (folder, mut client) = harbour("unknown-kind");
    let uri = folder.uri("a.yaml");
    client.open(
        &uri,
        "apiVersion: harbour.example.com/v1\nkind: Baot\nmetadata: {name: a}\n---\nmetadata: {name: b}\nspec: {}\n---\nservices: {}\n",
    );
    let faults = client.faults(&uri);
    let told =
        "1:6 unknown-kind not checked: there is no definition of Baot in harbour.example.com/v1; did you mean Boat?";
    assert_eq!((faults.len(), faults[0].as_str()), (2, told), "{faults:?}");
    assert!(faults[1].ends_with(" unknown-kind not checked: it has no kind"), "{faults:?}");
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn a_definition_that_changes_is_what_its_objects_are_checked_against() {
    let (folder, mut client) = harbour("definition");
    let (crd, object) = (folder.uri("crds/boats.yaml"), folder.uri("a.yaml"));
    client.open(&object, "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 7}\n");
    assert_eq!(client.faults(&object), Vec::<String>::new());
    let version = client.diagnostics_version();
    client.open(&crd, BOATS);
    assert_eq!(client.faults(&crd), Vec::<String>::new());
    client.edit(&crd, ((23, 25), (23, 26)), "8");
    assert_eq!(client.faults(&crd), Vec::<String>::new());
    let told = client.diagnostics_of(&object, version);
    assert!(told[0].contains("should be greater than or equal to 8"), "{told:?}");
    // A rule that does not compile is told where it does not.
    client.edit(&crd, ((36, 25), (36, 28)), "riff");
    let faults = client.faults(&crd);
    assert_eq!(faults[0], "36:25 expression undefined field 'riff'", "{faults:?}");
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn what_may_be_written_is_offered() {
    let (folder, mut client) = harbour("complete");
    let uri = folder.uri("a.yaml");
    client.open(&uri, "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec:\n  length: 7\n  \n  crew:\n  - \n  rig: \n");
    assert_eq!(client.completions(&uri, (5, 2)), Vec::<String>::new(), "rig and crew are there");
    assert_eq!(client.completions(&uri, (7, 4)), ["name"]);
    assert_eq!(client.completions(&uri, (8, 7)), ["ketch", "sloop"]);
    assert!(client.completions(&uri, (1, 6)).contains(&"Boat".to_owned()));
    let new = folder.uri("b.yaml");
    client.open(&new, "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      con");
    assert!(client.completions(&new, (5, 9)).contains(&"containers".to_owned()));
    let crd = folder.uri("crds/boats.yaml");
    client.open(&crd, &BOATS.replace("self.rig != 'ketch' || self.length >= 9", "self.crew.all(c, c.n"));
    assert_eq!(client.completions(&crd, (36, 40))[..1], ["name"]);
    let top = client.completions(&crd, (36, 20));
    assert!(
        ["self", "oldSelf", "has", "size", "isURL"].iter().all(|name| top.contains(&(*name).to_owned())),
        "{top:?}"
    );
    client.edit(&crd, ((23, 0), (23, 0)), "                m\n");
    let words = client.completions(&crd, (23, 17));
    assert!(words.contains(&"maximum".to_owned()) && !words.contains(&"minimum".to_owned()), "{words:?}");
}

#[test]
fn a_place_is_explained_and_leads_to_its_definition() {
    let (folder, mut client) = harbour("hover");
    let uri = folder.uri("a.yaml");
    client.open(&uri, &BOAT.replace('𝄞', ""));
    let told = client.at("textDocument/hover", &uri, (5, 3));
    let told = told["contents"]["value"].as_str().unwrap_or_default().to_owned();
    assert!(
        told.contains("integer")
            && told.contains("required")
            && told.contains("in metres")
            && told.contains("at least 2"),
        "{told}"
    );
    let told = client.at("textDocument/hover", &uri, (4, 1));
    let told = told["contents"]["value"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("cost") && told.contains("ketch"), "{told}");
    let place = client.at("textDocument/definition", &uri, (6, 8));
    assert_eq!(place["uri"], folder.uri("crds/boats.yaml"));
    assert_eq!(place["range"]["start"]["line"], 24);
    let crd = folder.uri("crds/boats.yaml");
    client.open(&crd, BOATS);
    let told = client.at("textDocument/hover", &crd, (36, 26));
    let told = told["contents"]["value"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("rig: string") && told.contains("cost"), "{told}");
    let told = client.at("textDocument/hover", &crd, (24, 17));
    let told = told["contents"]["value"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("defaults to") && told.contains("one of"), "{told}");
    let place = client.at("textDocument/definition", &crd, (36, 50));
    assert_eq!(place["range"]["start"]["line"], 20, "{place}");
}

const DEAR: &str = "            - rule: self.crew.all(c, self.crew.all(d, c.name != d.name || c == d))\n";

#[test]
fn what_mends_is_offered() {
    let (folder, mut client) = harbour("actions");
    let crd = folder.uri("crds/boats.yaml");
    let text = format!("{BOATS}{DEAR}");
    client.open(&crd, &text);
    let faults = client.faults(&crd);
    assert!(faults.iter().any(|fault| fault.contains("exceeds budget")), "{faults:?}");
    let actions = client.actions(&crd, (38, 30));
    let bound = actions
        .iter()
        .find(|action| action["title"].as_str().is_some_and(|title| title.starts_with("Set ")))
        .expect("there is one");
    let edited = applied(&text, bound);
    assert!(edited.contains("maxItems: ") || edited.contains("maxLength: "), "{edited}");
    client.replace(&crd, &edited);
    std::fs::write(folder.0.join("crds/boats.yaml"), &edited).expect("the folder is ours");
    let faults = client.faults(&crd);
    assert!(!faults.iter().any(|fault| fault.contains("exceeds budget")), "{faults:?}");

    let uri = folder.uri("a.yaml");
    client.open(&uri, &BOAT.replace('𝄞', ""));
    let actions = client.actions(&uri, (0, 0));
    let test = actions.iter().find(|action| action["title"] == "Write a test").expect("there is one");
    let changes = test["edit"]["documentChanges"].as_array().expect("there are some");
    assert_eq!(changes[0]["kind"], "create");
    let suite = changes[1]["edits"][0]["newText"].as_str().expect("it is text");
    let path = folder.0.join("boat.suite.yaml");
    std::fs::write(&path, suite).expect("the folder is ours");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_skiff")).arg("test").arg(&path).output().expect("it runs");
    assert!(run.status.success(), "{suite}\n{}", String::from_utf8_lossy(&run.stdout));
    // The next one is added to it.
    let suite_uri = folder.uri("boat.suite.yaml");
    client.open(&suite_uri, suite);
    assert_eq!(client.faults(&suite_uri), Vec::<String>::new());
    let actions = client.actions(&uri, (0, 0));
    let test = actions.iter().find(|action| action["title"] == "Write a test").expect("there is one");
    assert_eq!(test["edit"]["documentChanges"].as_array().map(Vec::len), Some(1), "{test}");
}

/// A text after the edits of an action.
fn applied(text: &str, action: &Value) -> String {
    let edits = &action["edit"]["documentChanges"][0]["edits"];
    let edit = &edits[0];
    let offset = |position: &Value| {
        let line = position["line"].as_u64().expect("it is a number") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        start + position["character"].as_u64().expect("it is a number") as usize
    };
    let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
    format!("{}{}{}", &text[..start], edit["newText"].as_str().expect("it is text"), &text[end..])
}

pub const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}
  validations:
  - expression: object.spec.length < 20
    message: too long for this harbour
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short}
spec: {policyName: short, validationActions: [Deny]}
";

#[test]
fn policies_are_checked_and_asked() {
    let (folder, mut client) = harbour("policies");
    let (policy, object) = (folder.uri("policy.yaml"), folder.uri("a.yaml"));
    client.open(&policy, POLICY);
    assert_eq!(client.faults(&policy), Vec::<String>::new());
    client.open(&object, "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 30}\n");
    let faults = client.faults(&object);
    assert!(faults[0].contains("too long for this harbour"), "{faults:?}");
    let place = client.at("textDocument/definition", &policy, (14, 20));
    assert_eq!((&place["uri"], &place["range"]["start"]["line"]), (&Value::from(policy.clone()), &Value::from(2)));
    assert!(client.completions(&policy, (8, 29)).contains(&"length".to_owned()));
    client.edit(&policy, ((8, 28), (8, 34)), "lenght");
    let faults = client.faults(&policy);
    assert!(faults.iter().any(|fault| fault.contains("lenght")), "{faults:?}");
}

/// The action of that name.
#[track_caller]
fn named<'a>(actions: &'a [Value], title: &str) -> &'a Value {
    let titles: Vec<&str> = actions.iter().filter_map(|action| action["title"].as_str()).collect();
    assert!(titles.contains(&title), "not among {titles:?}: {title}");
    actions.iter().find(|action| action["title"] == title).expect("its title is there")
}

/// Runs a new suite that an action writes; what it says.
fn written_suite(folder: &Folder, file: &str, action: &Value) -> String {
    let changes = action["edit"]["documentChanges"].as_array().expect("there are some");
    let suite = changes.last().expect("there is one")["edits"][0]["newText"].as_str().expect("it is text");
    let path = folder.0.join(file);
    std::fs::write(&path, suite).expect("the folder is ours");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_skiff")).arg("test").arg(&path).output().expect("it runs");
    assert!(run.status.success(), "{suite}\n{}", String::from_utf8_lossy(&run.stdout));
    suite.to_owned()
}

#[test]
fn policies_are_mended_bound_and_tested() {
    let (folder, mut client) = harbour("policy-actions");
    let uri = folder.uri("policy.yaml");
    let (policy, binding) = POLICY.split_once("---\n").expect("there are two");
    let policy = policy.replace(
        "  validations:\n",
        "  variables:\n  - {name: unread, expression: '1'}\n  validations:\n  - expression: 'true'\n",
    );
    std::fs::write(folder.0.join("policy.yaml"), &policy).expect("the folder is ours");
    client.open(&uri, &policy);
    assert_eq!(client.faults(&uri).len(), 3);
    let text = applied(&policy, named(&client.actions(&uri, (8, 4)), "variable-unread: remove the variable"));
    assert!(!text.contains("unread"), "{text}");
    client.replace(&uri, &text);
    let title = "validation-never-fails: remove the validation, or correct it";
    let text = applied(&text, named(&client.actions(&uri, (8, 8)), title));
    client.replace(&uri, &text);
    let text = applied(&text, named(&client.actions(&uri, (2, 0)), "Add a binding"));
    assert!(text.contains("kind: ValidatingAdmissionPolicyBinding") && text.contains("policyName: short"), "{text}");
    client.replace(&uri, &text);
    assert_eq!(client.faults(&uri), Vec::<String>::new());
    std::fs::write(folder.0.join("policy.yaml"), &text).expect("the folder is ours");
    let suite = written_suite(&folder, "short.suite.yaml", named(&client.actions(&uri, (0, 0)), "Write a test"));
    assert!(suite.starts_with("crds: [\"crds/boats.yaml\"]\npolicies: [\"policy.yaml\"]\n"), "{suite}");
    assert!(suite.contains("length: 2"), "what the policy reads: {suite}");

    let other = folder.uri("binding.yaml");
    client.open(&other, &binding.replace("policyName: short", "policyName: shrt"));
    let edited = applied(&binding.replace("short", "shrt"), named(&client.actions(&other, (3, 0)), "Use policy short"));
    assert!(edited.contains("policyName: short"), "{edited}");
}

#[test]
fn a_policy_that_may_be_too_dear_gets_bounds_in_the_definition() {
    let (folder, mut client) = harbour("policy-bounds");
    let uri = folder.uri("policy.yaml");
    let dear = "object.spec.crew.all(c, object.spec.crew.all(d, c.name != d.name || c == d))";
    client.open(&uri, &POLICY.replace("object.spec.length < 20", dear));
    let actions = client.actions(&uri, (0, 0));
    let bound = actions
        .iter()
        .find(|action| action["title"].as_str().is_some_and(|title| title.starts_with("Set maxItems")))
        .expect("there is one");
    assert!(bound["title"].as_str().is_some_and(|title| title.ends_with(" in crds/boats.yaml")), "{bound}");
    assert_eq!(bound["edit"]["documentChanges"][0]["textDocument"]["uri"], folder.uri("crds/boats.yaml"));
    let edited = applied(BOATS, bound);
    assert!(edited.contains("maxItems: ") && edited.contains("maxLength: "), "{edited}");
    std::fs::write(folder.0.join("crds/boats.yaml"), &edited).expect("the folder is ours");
    client.stop();
    let mut client = Client::start(Some(&folder.0));
    client.open(&uri, &POLICY.replace("object.spec.length < 20", dear));
    let titles: Vec<Value> = client.actions(&uri, (0, 0)).iter().map(|action| action["title"].clone()).collect();
    assert_eq!(titles, ["Write a test"]);
}

#[test]
fn a_binding_gets_the_parameters_that_there_are() {
    let (folder, mut client) = harbour("params");
    let uri = folder.uri("policy.yaml");
    let limit =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: default}\ndata: {longest: '20'}\n";
    let text = POLICY.replace("spec:\n  match", "spec:\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n  match");
    let text = format!("{text}---\n{limit}");
    client.open(&uri, &text);
    let faults = client.faults(&uri);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let edited = applied(&text, named(&client.actions(&uri, (15, 3)), "Set paramRef to limits"));
    client.replace(&uri, &edited);
    assert_eq!(client.faults(&uri), Vec::<String>::new(), "{edited}");
}

#[test]
fn suites_are_told_what_they_lack_and_expect() {
    let (folder, client) = harbour("suite-actions");
    std::fs::write(folder.0.join("policy.yaml"), POLICY).expect("the folder is ours");
    client.stop();
    let mut client = Client::start(Some(&folder.0));
    let uri = folder.uri("tests/boats.suite.yaml");
    let object = "apiVersion: harbour.example.com/v1, kind: Boat, metadata: {name: a}";
    let text = format!(
        "# Boats.\ncases:\n- name: long # and wide\n  object: {{{object}, spec: {{length: 30}}}}\n  expect: {{message: too \
         long}}\n- {{name: short, object: {{{object}, spec: {{length: 1}}}}}}\n"
    );
    client.open(&uri, &text);
    let faults = client.faults(&uri);
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].ends_with("crds does not name ../crds/boats.yaml, which defines Boat"), "{faults:?}");
    let text = applied(&text, named(&client.actions(&uri, (1, 0)), "Add ../crds/boats.yaml to crds"));
    client.replace(&uri, &text);
    let text = applied(&text, named(&client.actions(&uri, (3, 4)), "Add ../policy.yaml to policies"));
    client.replace(&uri, &text);
    let faults = client.faults(&uri);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let text = applied(&text, named(&client.actions(&uri, (7, 4)), "Expect what comes of `short`"));
    client.replace(&uri, &text);
    assert_eq!(client.faults(&uri), Vec::<String>::new(), "{text}");
    assert!(text.contains("name: long # and wide"), "{text}");
    let path = folder.0.join("tests/boats.suite.yaml");
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("the folder is ours");
    std::fs::write(&path, &text).expect("the folder is ours");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_skiff")).arg("test").arg(&path).output().expect("it runs");
    assert!(run.status.success(), "{text}\n{}", String::from_utf8_lossy(&run.stdout));
    // A name that leads nowhere.
    let text = text.replace("../crds/boats.yaml", "boats.yaml");
    client.replace(&uri, &text);
    let text = applied(&text, named(&client.actions(&uri, (1, 8)), "Use ../crds/boats.yaml"));
    client.replace(&uri, &text);
    assert_eq!(client.faults(&uri), Vec::<String>::new(), "{text}");
}

#[test]
fn a_text_has_symbols_and_colours() {
    let (folder, mut client) = harbour("symbols");
    let uri = folder.uri("crds/boats.yaml");
    client.open(&uri, BOATS);
    let document = serde_json::json!({"textDocument": {"uri": uri}});
    let symbols = client.request("textDocument/documentSymbol", document.clone());
    assert_eq!(symbols[0]["name"], "CustomResourceDefinition boats.harbour.example.com");
    assert!(symbols[0]["children"].as_array().is_some_and(|children| children.len() == 4));
    let tokens = client.request("textDocument/semanticTokens/full", document);
    let data: Vec<u64> = tokens["data"].as_array().expect("it is a list").iter().filter_map(Value::as_u64).collect();
    // `self`, a variable; `rig`, a field; `!=`, an operator; `'ketch'`, a text.
    assert_eq!(data[..20], [36, 20, 4, 0, 0, 0, 5, 3, 1, 0, 0, 4, 2, 6, 0, 0, 3, 7, 4, 0]);
}
