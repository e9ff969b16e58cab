//! `PodTopologyLabels`: a pod that is bound to a node gets the node's topology labels.
//!
//! Source: `plugin/pkg/admission/podtopologylabels`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::kinds::pod_object::topology;
use crate::meta::Status;
use crate::value::Value;

pub struct PodTopologyLabels {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for PodTopologyLabels {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let is_pods = attributes.version.group.is_empty() && attributes.version.names.plural == "pods";
        let node = match attributes.subresource {
            _ if !is_write || !is_pods => return Ok(()),
            "" => object.str_at(&["spec", "nodeName"]),
            "binding" if object.str_at(&["target", "kind"]) == "Node" => object.str_at(&["target", "name"]),
            _ => return Ok(()),
        };
        if node.is_empty() {
            return Ok(());
        }
        // A missing node changes nothing.
        let place = ScopedResource { group: "", plural: "nodes", namespace: "" };
        if let Some(node) = self.objects.get(place, node).await? {
            topology::admit(object, &node);
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}
