//! `NodeRestriction`: a node may only write objects about itself and its own pods.
//!
//! DIFFERS: the message about forbidden changes of a claim does not include a diff.
//!
//! Source: `plugin/pkg/admission/noderestriction` and `pkg/auth/nodeidentifier`, release 1.36.

mod certificates;
mod nodes;
mod pods;
mod references;
mod tokens;

use std::sync::Arc;

use async_trait::async_trait;

use super::forbidden;
use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::auth::Authorizer;
use crate::auth::node::node_of;
use crate::kinds::semantic;
use crate::meta::Status;
use crate::value::{Value, go_quote as quoted};

const LEASES: &str = "kube-node-lease";

pub struct NodeRestriction {
    pub objects: Arc<dyn Objects>,
    pub authorizer: Arc<dyn Authorizer>,
}

/// Why a node may not write.
enum NodeRefusal {
    Forbidden(String),
    /// Returned as it is.
    Status(Status),
}

impl NodeRefusal {
    fn forbidden(why: &str) -> Self {
        NodeRefusal::Forbidden(why.to_owned())
    }
}

impl From<Status> for NodeRefusal {
    fn from(status: Status) -> Self {
        NodeRefusal::Status(status)
    }
}

#[async_trait]
impl Admission for NodeRestriction {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let Some(node) = node_of(attributes.user) else { return Ok(()) };
        let refused = self.check(node, attributes, object).await;
        refused.map_err(|refused| match refused {
            NodeRefusal::Forbidden(why) => forbidden(attributes, object, &why),
            NodeRefusal::Status(status) => status,
        })
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

impl NodeRestriction {
    async fn check(&self, node: &str, attributes: &Attributes<'_>, object: &Value) -> Result<(), NodeRefusal> {
        if node.is_empty() {
            let user = quoted(&attributes.user.name);
            return Err(NodeRefusal::Forbidden(format!("could not determine node from user {user}")));
        }
        let creates = attributes.operation == Operation::Create;
        match (attributes.version.group.as_str(), attributes.version.names.plural.as_str()) {
            ("", "pods") => self.pod(node, attributes, object).await,
            ("", "nodes") => nodes::check(node, attributes, object),
            ("", "persistentvolumeclaims") => check_claim(node, attributes, object),
            ("", "serviceaccounts") if creates && attributes.subresource == "token" => {
                self.token(node, attributes, object).await
            }
            ("certificates.k8s.io", "podcertificaterequests") => self.pod_certificate(node, attributes, object).await,
            ("certificates.k8s.io", "certificatesigningrequests") if creates => {
                certificates::check_request(node, object)
            }
            ("coordination.k8s.io", "leases") if attributes.namespace != LEASES => {
                let why = format!("can only access leases in the {} system namespace", quoted(LEASES));
                Err(NodeRefusal::Forbidden(why))
            }
            ("coordination.k8s.io", "leases") => check_name(node, attributes, object, "node lease"),
            ("storage.k8s.io", "csinodes") => check_name(node, attributes, object, "CSINode"),
            ("resource.k8s.io", "resourceslices") => check_slice(node, attributes, object),
            _ => Ok(()),
        }
    }

    /// Reads a stored object; if it does not exist, the error begins with `what`.
    async fn found(&self, place: ScopedResource<'_>, kind: &str, name: &str, what: &str) -> Result<Value, NodeRefusal> {
        let found = self.objects.get(place, name).await?;
        found.ok_or_else(|| {
            certificates::later(format!("{what}: {}", Status::not_found(place.group, kind, name).message))
        })
    }
}

fn name_of<'a>(attributes: &Attributes<'a>, object: &'a Value) -> &'a str {
    if attributes.name.is_empty() { object.str_at(&["metadata", "name"]) } else { attributes.name }
}

/// A resource of the core group.
fn in_namespace<'p>(plural: &'p str, namespace: &'p str) -> ScopedResource<'p> {
    ScopedResource { group: "", plural, namespace }
}

/// Checks that an object has the name of its node.
fn check_name(node: &str, attributes: &Attributes<'_>, object: &Value, what: &str) -> Result<(), NodeRefusal> {
    if name_of(attributes, object) == node {
        return Ok(());
    }
    Err(NodeRefusal::Forbidden(format!("can only access {what} with the same name as the requesting node")))
}

/// Checks that a node only changes the size in a claim's status.
fn check_claim(node: &str, attributes: &Attributes<'_>, object: &Value) -> Result<(), NodeRefusal> {
    if attributes.subresource != "status" {
        return Err(NodeRefusal::forbidden("may only update PVC status"));
    }
    if attributes.operation != Operation::Update {
        let operation = quoted(attributes.operation.as_str());
        return Err(NodeRefusal::Forbidden(format!("unexpected operation {operation}")));
    }
    let old = attributes.old.map(without_size);
    if semantic::equal_untyped(Some(&without_size(object)), old.as_ref()) {
        return Ok(());
    }
    let node = quoted(node);
    let why = format!("node {node} is not allowed to update fields other than status.quantity and status.conditions");
    Err(NodeRefusal::Forbidden(why))
}

/// A claim without the fields that a node may change, and without those that the server sets.
fn without_size(claim: &Value) -> Value {
    let mut rest = claim.clone();
    for (part, fields) in [
        ("metadata", &["resourceVersion", "managedFields"][..]),
        ("status", &["capacity", "conditions", "allocatedResourceStatuses", "allocatedResources"][..]),
    ] {
        if let Some(part) = rest.at_mut(&[part]).filter(|part| part.as_object().is_some()) {
            let part = part.make_object();
            fields.iter().for_each(|field| _ = part.remove(field));
        }
    }
    rest
}

fn check_slice(node: &str, attributes: &Attributes<'_>, object: &Value) -> Result<(), NodeRefusal> {
    let (slice, verb) = match attributes.operation {
        Operation::Create => (object, "create"),
        Operation::Delete => (attributes.old.unwrap_or(&Value::Null), "delete"),
        Operation::Update | Operation::Connect => return Ok(()),
    };
    if slice.str_at(&["spec", "nodeName"]) == node {
        return Ok(());
    }
    Err(NodeRefusal::Forbidden(format!("can only {verb} ResourceSlice with the same NodeName as the requesting node")))
}
