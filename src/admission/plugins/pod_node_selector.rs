//! `PodNodeSelector`: pods get the node labels that an annotation of their namespace selects, and may not contradict them.
//!
//! Source: `plugin/pkg/admission/podnodeselector`, release 1.37, without its file of defaults and allowed labels.

use std::sync::Arc;

use async_trait::async_trait;

use super::{is_about, namespace};
use crate::admission::{Admission, Attributes, Objects, Operation};
use crate::meta::Status;
use crate::meta::names::{is_qualified_name, is_valid_label_value};
use crate::value::{Map, Value, go_quote};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

pub struct PodNodeSelector {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for PodNodeSelector {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let Some(selected) = self.selected(attributes).await? else { return Ok(()) };
        check(&selected, object)?;
        if !selected.is_empty() {
            let selector = object.make_object().entry("spec").make_object().entry("nodeSelector").make_object();
            for (key, value) in selected.iter() {
                selector.insert(key, value.clone());
            }
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        self.selected(attributes).await?.map_or(Ok(()), |selected| check(&selected, object))
    }
}

impl PodNodeSelector {
    /// The labels that the namespace of a new pod selects; `None` for all other requests.
    async fn selected(&self, attributes: &Attributes<'_>) -> Result<Option<Map>, Status> {
        if attributes.operation != Operation::Create || !is_about(attributes, "", "pods") {
            return Ok(None);
        }
        let namespace = namespace(&*self.objects, attributes).await?;
        let text = namespace.at(&["metadata", "annotations", ANNOTATION]).and_then(Value::as_str);
        labels_of(text.unwrap_or_default()).map(Some).map_err(|why| Status::plain(500, &why))
    }
}

/// A label of the pod's own selector may be one that the namespace selects, with the same value.
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

/// The labels in `a=b,c=d`.
fn labels_of(text: &str) -> Result<Map, String> {
    let mut labels = Map::default();
    for label in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts[..] else { return Err(format!("invalid selector: [{}]", parts.join(" "))) };
        let (key, value) = (key.trim(), value.trim());
        let invalid = |field: &str, value: &str, faults: Vec<String>| {
            if faults.is_empty() {
                return Ok(());
            }
            Err(format!("{field}: Invalid value: {}: {}", go_quote(value), faults.join("; ")))
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
    fn labels_are_read_or_refused() {
        assert_eq!(labels_of(""), Ok(Map::default()));
        let labels = labels_of("zone=a, disk = ssd").expect("they are labels");
        assert_eq!(Value::Object(labels), object! { "zone" => "a", "disk" => "ssd" });
        assert_eq!(labels_of("zone").as_ref().map_err(String::as_str), Err("invalid selector: [zone]"));
        assert_eq!(labels_of("a=b=c").as_ref().map_err(String::as_str), Err("invalid selector: [a b c]"));
        assert!(labels_of("a b=c").is_err());
    }
}
