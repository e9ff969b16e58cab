//! Built-in kinds offline: the verdicts are those that a full server gave when it was recorded.

use kubeskiff::author::BuiltIn;
use kubeskiff::value::{Value, yaml};

use super::corpus::converted;
use super::{folder, skiff, text};
use crate::golden::kinds;

/// What stands for the namespace of a conversation.
const NAMESPACE: &str = "${suffix}";

#[test]
fn offline_verdicts_on_built_in_kinds_are_those_of_the_server() {
    let mut equal = 0;
    let mut different = Vec::new();
    for conversation in ["objects", "faults"].into_iter().flat_map(kinds::read) {
        for step in conversation["steps"].as_array().into_iter().flatten() {
            let Some(creation) = Creation::of(step) else { continue };
            let Some(is_taken) = creation.is_taken() else { continue };
            if is_taken == creation.was_taken {
                equal += 1;
            } else {
                different.push(format!("{}: {}: taken: {is_taken}", conversation["name"], step["about"]));
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(equal > 900, "only {equal} objects");
}

/// A creation that was answered by the kind, and not by admission.
struct Creation {
    object: Value,
    is_strict: bool,
    was_taken: bool,
}

impl Creation {
    fn of(step: &serde_json::Value) -> Option<Creation> {
        let request =
            step.get("request").filter(|request| request["method"] == "POST" && request["headers"].is_null())?;
        let (path, query) = request["path"].as_str().map(|path| path.split_once('?').unwrap_or((path, "")))?;
        let parts: Vec<&str> = path.split('/').skip(if path.starts_with("/api/") { 3 } else { 4 }).collect();
        let namespace = match parts[..] {
            ["namespaces", namespace, _] => Some(namespace),
            [_] => None,
            _ => return None,
        };
        let was_taken = match step["expect"]["status"].as_u64()? {
            200 | 201 => true,
            400 | 422 => false,
            _ => return None,
        };
        let mut object = request["body"].clone();
        if let Some(namespace) = namespace {
            object["metadata"].as_object_mut()?.entry("namespace").or_insert_with(|| namespace.into());
        }
        let object = object.to_string().replace(NAMESPACE, "ns");
        let object = converted(&serde_json::from_str(&object).expect("a name does not change that it is JSON"));
        Some(Creation { object, is_strict: query.contains("fieldValidation=Strict"), was_taken })
    }

    /// The verdict offline; `None` for a kind that is not served by default.
    fn is_taken(&self) -> Option<bool> {
        let kind = BuiltIn::of(self.object.str_at(&["apiVersion"]), self.object.str_at(&["kind"]))?;
        let Ok(checked) = kind.write(&self.object, None) else { return Some(false) };
        Some(checked.errors.is_empty() && (!self.is_strict || checked.unknown.is_empty()))
    }
}

const HEADLESS: &str = "\
apiVersion: v1
kind: Service
metadata: {name: boats}
spec: {clusterIP: None, selector: {app: boats}}
";

#[test]
fn a_headless_service_is_valid_and_may_be_changed() {
    let changed = HEADLESS.replace("app: boats", "app: ships");
    let folder = folder("built-in-headless", &[("old.yaml", HEADLESS), ("new.yaml", &changed)]);
    for arguments in [vec!["validate", "old.yaml"], vec!["validate", "--old", "old.yaml", "new.yaml"]] {
        let output = skiff(&folder, &arguments);
        assert_eq!(text(&output.stdout), "1 document: 1 valid\n", "{arguments:?}");
    }
}

#[test]
fn a_service_that_gives_back_its_address_is_refused() {
    let decode = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
    let kind = BuiltIn::of("v1", "Service").expect("it is served");
    let old = decode(&HEADLESS.replace("None", "10.0.0.7, ports: [{port: 80}]"));
    let moved = decode(&HEADLESS.replace("None", "10.0.0.8, ports: [{port: 80}]"));
    let checked = kind.write(&moved, Some(&old)).expect("the type holds it");
    let errors: Vec<String> = checked.errors.iter().map(|refused| refused.error.to_string()).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains("may not change once set"), "{errors:?}");
}
