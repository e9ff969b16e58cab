//! `PodNodeSelector`: pods get the node selector of an annotation of their namespace, and may not
//! contradict it.
//!
//! The configuration contains the selector for namespaces without the annotation, and for each
//! namespace the labels that its pods may select.
//! Source: `plugin/pkg/admission/podnodeselector`, release 1.37.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{is_about, namespace};
use crate::admission::configuration::ConfigurationError;
use crate::admission::{Admission, Attributes, Objects, Operation};
use crate::meta::Status;
use crate::meta::names::{is_qualified_name, is_valid_label_value};
use crate::value::{Map, Value, go_quote};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// The configuration's key for the selector of namespaces without the annotation.
const DEFAULT: &str = "clusterDefaultNodeSelector";

pub struct PodNodeSelector {
    pub objects: Arc<dyn Objects>,
    pub selectors: NodeSelectors,
}

/// Selectors by namespace, as in the configuration.
#[derive(Clone, Debug, Default)]
pub struct NodeSelectors(BTreeMap<String, String>);

impl NodeSelectors {
    /// Decodes `podNodeSelectorPluginConfig`.
    ///
    /// # Errors
    ///
    /// The field is not a mapping from names to texts.
    pub fn parse(configuration: &Value) -> Result<Self, ConfigurationError> {
        const FIELD: &str = "podNodeSelectorPluginConfig";
        let mut selectors = BTreeMap::new();
        let found = configuration.get(FIELD).filter(|found| !found.is_null());
        let Some(found) = found else { return Ok(NodeSelectors::default()) };
        let not = |path: String, wanted| ConfigurationError::Type { path, wanted };
        let fields = found.as_object().ok_or_else(|| not(FIELD.to_owned(), "a mapping"))?;
        for (name, selector) in fields.iter() {
            let selector = match selector {
                Value::Null => "",
                selector => selector.as_str().ok_or_else(|| not(format!("{FIELD}.{name}"), "a text"))?,
            };
            selectors.insert(name.to_owned(), selector.to_owned());
        }
        Ok(NodeSelectors(selectors))
    }

    fn of(&self, name: &str) -> &str {
        self.0.get(name).map(String::as_str).unwrap_or_default()
    }
}

#[async_trait]
impl Admission for PodNodeSelector {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let Some(selected) = self.selected(attributes).await? else { return Ok(()) };
        check(&selected, object)?;
        if !selected.is_empty() {
            let selector = object.make_object().entry("spec").make_object().entry("nodeSelector").make_object();
            for (key, value) in selected.iter() {
                selector.insert(key, value.clone());
            }
        }
        self.check_allowed(attributes, object)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let Some(selected) = self.selected(attributes).await? else { return Ok(()) };
        check(&selected, object)?;
        self.check_allowed(attributes, object)
    }
}

impl PodNodeSelector {
    /// Checks that the pod selects only labels that the configuration allows in its namespace.
    fn check_allowed(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
        let allowed = labels_of(self.selectors.of(attributes.namespace)).map_err(unusable)?;
        check_allowed(&allowed, pod)
    }

    /// The labels that the namespace of a new pod selects; `None` for all other requests.
    async fn selected(&self, attributes: &Attributes<'_>) -> Result<Option<Map>, Status> {
        if attributes.operation != Operation::Create || !is_about(attributes, "", "pods") {
            return Ok(None);
        }
        let namespace = namespace(&*self.objects, attributes).await?;
        let text = namespace.at(&["metadata", "annotations", ANNOTATION]).and_then(Value::as_str);
        labels_of(text.unwrap_or_else(|| self.selectors.of(DEFAULT))).map(Some).map_err(unusable)
    }
}

/// Checks that the pod's own selector has no other value for a label that the namespace selects.
fn check(selected: &Map, pod: &Value) -> Result<(), Status> {
    let contradicts = |(key, value): (&str, &Value)| {
        let own = pod.at(&["spec", "nodeSelector"]).and_then(|selector| selector.get(key));
        own.is_some_and(|own| own != value)
    };
    if !selected.iter().any(|(key, value)| contradicts((key, value))) {
        return Ok(());
    }
    let why = "pod node label selector conflicts with its namespace node label selector";
    Err(Status::forbidden("", "pods", pod.str_at(&["metadata", "name"]), why))
}

/// Checks that a pod selects only `allowed` labels; if there are none, it may select any.
fn check_allowed(allowed: &Map, pod: &Value) -> Result<(), Status> {
    let selector = pod.at(&["spec", "nodeSelector"]).and_then(Value::as_object);
    let asks_for_other = |selector: &Map| selector.iter().any(|(key, value)| allowed.get(key) != Some(value));
    if allowed.is_empty() || !selector.is_some_and(asks_for_other) {
        return Ok(());
    }
    let why = "pod node label selector labels conflict with its namespace whitelist";
    Err(Status::forbidden("", "pods", pod.str_at(&["metadata", "name"]), why))
}

/// What is wrong with a selector, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
enum SelectorError {
    #[error("invalid selector: [{}]", .0.join(" "))]
    Pair(Vec<String>),
    #[error("{field}: Invalid value: {value}: {fault}", value = go_quote(value))]
    Invalid { field: String, value: String, fault: String },
}

fn unusable(error: SelectorError) -> Status {
    Status::plain(500, &error.to_string())
}

/// Parses labels in the form `a=b,c=d`.
fn labels_of(text: &str) -> Result<Map, SelectorError> {
    let mut labels = Map::default();
    for label in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts[..] else {
            return Err(SelectorError::Pair(parts.into_iter().map(str::to_owned).collect()));
        };
        let (key, value) = (key.trim(), value.trim());
        let invalid = |field: &str, value: &str, faults: Vec<String>| {
            if faults.is_empty() {
                return Ok(());
            }
            Err(SelectorError::Invalid { field: field.to_owned(), value: value.to_owned(), fault: faults.join("; ") })
        };
        invalid("<nil>", key, is_qualified_name(key))?;
        invalid(&format!("[{key}]"), value, is_valid_label_value(value))?;
        labels.insert(key, Value::from(value));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_namespace_may_allow_some_labels_alone() {
        let allowed = labels_of("zone=a,disk=ssd").expect("they are labels");
        let pod = |selector: Value| object! { "spec" => object! { "nodeSelector" => selector } };
        assert!(check_allowed(&allowed, &pod(object! { "zone" => "a" })).is_ok());
        assert!(check_allowed(&allowed, &Value::Null).is_ok());
        assert!(check_allowed(&Map::default(), &pod(object! { "zone" => "b" })).is_ok());
        let refused = check_allowed(&allowed, &pod(object! { "zone" => "b" })).expect_err("it is refused");
        assert!(refused.message.ends_with("pod node label selector labels conflict with its namespace whitelist"));
    }

    #[test]
    fn a_configuration_has_texts() {
        let read = |value: Value| NodeSelectors::parse(&object! { "podNodeSelectorPluginConfig" => value });
        let selectors = read(object! { DEFAULT => "a=b", "n" => Value::Null }).expect("it is valid");
        assert_eq!((selectors.of(DEFAULT), selectors.of("n"), selectors.of("m")), ("a=b", "", ""));
        assert!(read(Value::from("a")).is_err() && read(object! { "n" => 1 }).is_err());
        assert!(NodeSelectors::parse(&object! {}).is_ok());
    }

    #[test]
    fn labels_are_read_or_refused() {
        assert!(labels_of("").expect("there are none").is_empty());
        let labels = labels_of("zone=a, disk = ssd").expect("they are labels");
        assert_eq!(Value::Object(labels), object! { "zone" => "a", "disk" => "ssd" });
        assert_eq!(labels_of("zone").expect_err("it is half").to_string(), "invalid selector: [zone]");
        assert_eq!(labels_of("a=b=c").expect_err("it is too much").to_string(), "invalid selector: [a b c]");
        assert!(labels_of("a b=c").is_err());
    }
}
