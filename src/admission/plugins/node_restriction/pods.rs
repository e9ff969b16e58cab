//! The pods of a node: it may create mirror pods, delete and evict its own pods, and write their
//! status.

use super::references::reference;
use super::{NodeRefusal, NodeRestriction, in_namespace, name_of, quoted};
use crate::admission::{Attributes, Operation};
use crate::kinds::semantic;
use crate::meta::Status;
use crate::value::Value;

/// The annotation of mirror pods, which a node creates for the pods that it runs on its own.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

impl NodeRestriction {
    pub(super) async fn pod(&self, node: &str, attributes: &Attributes<'_>, object: &Value) -> Result<(), NodeRefusal> {
        let shown = quoted(node);
        let operation = attributes.operation.as_str();
        match (attributes.subresource, attributes.operation) {
            ("", Operation::Create) => self.check_mirror(node, object).await,
            ("", Operation::Delete) => {
                let why = format!("node {shown} can only delete pods with spec.nodeName set to itself");
                self.check_own(node, attributes.namespace, attributes.name, why).await
            }
            ("", _) => {
                let shown_operation = quoted(operation);
                Err(NodeRefusal::Forbidden(format!(
                    "unexpected operation {shown_operation}, node {shown} can only create and delete mirror pods"
                )))
            }
            ("status", Operation::Update) => check_status(node, attributes.old.unwrap_or(&Value::Null), object),
            ("status", _) => Err(NodeRefusal::Forbidden(format!("unexpected operation {}", quoted(operation)))),
            ("eviction", Operation::Create) => {
                let name = name_of(attributes, object);
                if name.is_empty() {
                    return Err(NodeRefusal::forbidden("could not determine pod from request data"));
                }
                let why = format!("node {node} can only evict pods with spec.nodeName set to itself");
                self.check_own(node, attributes.namespace, name, why).await
            }
            ("eviction", _) => Err(NodeRefusal::Forbidden(format!("unexpected operation {operation}"))),
            (part, _) => Err(NodeRefusal::Forbidden(format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                quoted(part)
            ))),
        }
    }

    /// Reads a stored pod.
    pub(super) async fn pod_named(&self, namespace: &str, name: &str) -> Result<Value, NodeRefusal> {
        let found = self.objects.get(in_namespace("pods", namespace), name).await?;
        found.ok_or_else(|| NodeRefusal::Status(Status::not_found("", "pod", name)))
    }

    async fn check_own(&self, node: &str, namespace: &str, name: &str, why: String) -> Result<(), NodeRefusal> {
        let pod = self.pod_named(namespace, name).await?;
        if pod.str_at(&["spec", "nodeName"]) == node { Ok(()) } else { Err(NodeRefusal::Forbidden(why)) }
    }

    /// Checks a pod that a node creates: it must be a mirror pod of this node.
    async fn check_mirror(&self, node: &str, pod: &Value) -> Result<(), NodeRefusal> {
        let shown = quoted(node);
        if pod.at(&["metadata", "annotations", MIRROR]).is_none() {
            let mirror = quoted(MIRROR);
            let why = format!("pod does not have {mirror} annotation, node {shown} can only create mirror pods");
            return Err(NodeRefusal::Forbidden(why));
        }
        let only = |what: &str| NodeRefusal::Forbidden(format!("node {shown} can only create pods with {what}"));
        if pod.str_at(&["spec", "nodeName"]) != node {
            return Err(only("spec.nodeName set to itself"));
        }
        let owner = match pod.items_at(&["metadata", "ownerReferences"]) {
            [owner] => owner,
            [] => return Err(only("an owner reference set to itself")),
            _ => return Err(only("a single owner reference set to itself")),
        };
        check_owner(node, owner)?;
        let found = self.objects.get(in_namespace("nodes", ""), node).await?;
        let own = found.ok_or_else(|| NodeRefusal::Status(Status::not_found("", "node", node)))?;
        let (wanted, found) = (owner.str_at(&["uid"]), own.str_at(&["metadata", "uid"]));
        if wanted != found {
            return Err(NodeRefusal::Forbidden(format!("node {node} UID mismatch: expected {wanted} got {found}")));
        }
        match reference(pod) {
            Ok(None) => Ok(()),
            Ok(Some(named)) => {
                Err(NodeRefusal::Forbidden(format!("node {shown} can not create pods that reference {named}")))
            }
            Err(why) => Err(NodeRefusal::Forbidden(format!("error checking mirror pod for API references: {why}"))),
        }
    }
}

fn check_owner(node: &str, owner: &Value) -> Result<(), NodeRefusal> {
    let shown = quoted(node);
    let is_true = |name: &str| owner.get(name) == Some(&Value::Bool(true));
    let text = |name: &str| owner.str_at(&[name]);
    let why = if (text("apiVersion"), text("kind"), text("name")) != ("v1", "Node", node) {
        format!("node {shown} can only create pods with an owner reference set to itself")
    } else if !is_true("controller") {
        format!("node {shown} can only create pods with a controller owner reference set to itself")
    } else if is_true("blockOwnerDeletion") {
        format!("node {shown} must not set blockOwnerDeletion on an owner reference")
    } else {
        return Ok(());
    };
    Err(NodeRefusal::Forbidden(why))
}

fn check_status(node: &str, old: &Value, new: &Value) -> Result<(), NodeRefusal> {
    let shown = quoted(node);
    let is_other = |path: &[&str]| !semantic::equal_untyped(new.at(path), old.at(path));
    let why = if old.str_at(&["spec", "nodeName"]) != node {
        format!("node {shown} can only update pod status for pods with spec.nodeName set to itself")
    } else if is_other(&["metadata", "labels"]) {
        format!("node {shown} cannot update labels through pod status")
    } else if is_other(&["status", "resourceClaimStatuses"]) {
        format!("node {shown} cannot update resource claim statues")
    } else if is_other(&["status", "extendedResourceClaimStatus"]) {
        format!("node {shown} cannot update extended resource claim status")
    } else {
        return Ok(());
    };
    Err(NodeRefusal::Forbidden(why))
}
