//! `NodeRestriction`: a node writes about itself and its own pods alone.
//!
//! Source: `plugin/pkg/admission/noderestriction` and `pkg/auth/nodeidentifier`, release 1.36.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::forbidden;
use crate::admission::{Admission, Attributes, Objects, Operation, Place};
use crate::auth::UserInfo;
use crate::kinds::prepare;
use crate::meta::Status;
use crate::value::{Value, go_quote};

const USER_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
const MIRROR: &str = "kubernetes.io/config.mirror";
const LEASES: &str = "kube-node-lease";
/// Labels of Kubernetes' own that a kubelet sets.
const LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];
const LABEL_DOMAINS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
const RESTRICTED_DOMAIN: &str = "node-restriction.kubernetes.io";

pub struct NodeRestriction {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for NodeRestriction {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let Some(node) = node_of(attributes.user) else { return Ok(()) };
        let (group, plural) = (attributes.version.group.as_str(), attributes.version.names.plural.as_str());
        let why = match (group, plural) {
            ("", "pods") => self.pod(node, attributes, object).await?,
            ("", "nodes") => node_fault(node, attributes, object),
            ("", "persistentvolumeclaims") if attributes.subresource != "status" => {
                Some("may only update PVC status".to_owned())
            }
            ("coordination.k8s.io", "leases") if attributes.namespace != LEASES => {
                Some(format!("can only access leases in the {} system namespace", go_quote(LEASES)))
            }
            ("coordination.k8s.io", "leases") => {
                let why = "can only access node lease with the same name as the requesting node";
                (name_of(attributes, object) != node).then(|| why.to_owned())
            }
            ("storage.k8s.io", "csinodes") => {
                let why = "can only access CSINode with the same name as the requesting node";
                (name_of(attributes, object) != node).then(|| why.to_owned())
            }
            ("resource.k8s.io", "resourceslices") => slice_fault(node, attributes, object),
            _ => None,
        };
        match why {
            None => Ok(()),
            Some(why) => Err(forbidden(attributes, object, &why)),
        }
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

/// The node that a user is.
fn node_of(user: &UserInfo) -> Option<&str> {
    user.name.strip_prefix(USER_PREFIX).filter(|_| user.is_in(NODES))
}

fn name_of<'a>(attributes: &Attributes<'a>, object: &'a Value) -> &'a str {
    if attributes.name.is_empty() { object.str_at(&["metadata", "name"]) } else { attributes.name }
}

impl NodeRestriction {
    async fn pod(&self, node: &str, attributes: &Attributes<'_>, object: &Value) -> Result<Option<String>, Status> {
        let shown = go_quote(node);
        let is_own = |pod: &Value| pod.str_at(&["spec", "nodeName"]) == node;
        let is_others = |pod: Option<&Value>| !pod.is_some_and(is_own);
        Ok(match (attributes.subresource, attributes.operation) {
            ("", Operation::Create) => self.mirror_fault(node, object).await?,
            ("", Operation::Delete) => is_others(attributes.old)
                .then(|| format!("node {shown} can only delete pods with spec.nodeName set to itself")),
            ("", Operation::Update) => {
                Some(format!("unexpected operation \"UPDATE\", node {shown} can only create and delete mirror pods"))
            }
            ("status", Operation::Update) => status_fault(node, attributes.old.unwrap_or(&Value::Null), object),
            ("eviction", _) => {
                let place = Place { group: "", plural: "pods", namespace: attributes.namespace };
                let pod = self.objects.get(place, name_of(attributes, object)).await?;
                is_others(pod.as_ref())
                    .then(|| format!("node {node} can only evict pods with spec.nodeName set to itself"))
            }
            (part, _) => {
                Some(format!("unexpected pod subresource {}, only 'status' and 'eviction' are allowed", go_quote(part)))
            }
        })
    }

    /// What is wrong with a pod that a node makes to show what it runs.
    async fn mirror_fault(&self, node: &str, pod: &Value) -> Result<Option<String>, Status> {
        let shown = go_quote(node);
        if pod.at(&["metadata", "annotations", MIRROR]).is_none() {
            let mirror = go_quote(MIRROR);
            return Ok(Some(format!(
                "pod does not have {mirror} annotation, node {shown} can only create mirror pods"
            )));
        }
        if pod.str_at(&["spec", "nodeName"]) != node {
            return Ok(Some(format!("node {shown} can only create pods with spec.nodeName set to itself")));
        }
        let owner = match pod.items_at(&["metadata", "ownerReferences"]) {
            [owner] => owner,
            [] => return Ok(Some(format!("node {shown} can only create pods with an owner reference set to itself"))),
            _ => {
                let why = format!("node {shown} can only create pods with a single owner reference set to itself");
                return Ok(Some(why));
            }
        };
        if let Some(why) = owner_fault(node, owner) {
            return Ok(Some(why));
        }
        let place = Place { group: "", plural: "nodes", namespace: "" };
        let Some(own) = self.objects.get(place, node).await? else {
            return Err(Status::not_found("", "nodes", node));
        };
        let (wanted, found) = (owner.str_at(&["uid"]), own.str_at(&["metadata", "uid"]));
        Ok((wanted != found).then(|| format!("node {node} UID mismatch: expected {wanted} got {found}")))
    }
}

fn owner_fault(node: &str, owner: &Value) -> Option<String> {
    let shown = go_quote(node);
    let is_true = |name: &str| owner.get(name) == Some(&Value::Bool(true));
    let text = |name: &str| owner.str_at(&[name]);
    if (text("apiVersion"), text("kind"), text("name")) != ("v1", "Node", node) {
        return Some(format!("node {shown} can only create pods with an owner reference set to itself"));
    }
    if !is_true("controller") {
        return Some(format!("node {shown} can only create pods with a controller owner reference set to itself"));
    }
    is_true("blockOwnerDeletion").then(|| format!("node {shown} must not set blockOwnerDeletion on an owner reference"))
}

fn status_fault(node: &str, old: &Value, new: &Value) -> Option<String> {
    let shown = go_quote(node);
    if old.str_at(&["spec", "nodeName"]) != node {
        return Some(format!("node {shown} can only update pod status for pods with spec.nodeName set to itself"));
    }
    let is_other = |path: &[&str]| !prepare::equal(new.at(path), old.at(path));
    if is_other(&["metadata", "labels"]) {
        return Some(format!("node {shown} cannot update labels through pod status"));
    }
    if is_other(&["status", "resourceClaimStatuses"]) {
        return Some(format!("node {shown} cannot update resource claim statues"));
    }
    is_other(&["status", "extendedResourceClaimStatus"])
        .then(|| format!("node {shown} cannot update extended resource claim status"))
}

fn node_fault(node: &str, attributes: &Attributes<'_>, object: &Value) -> Option<String> {
    let shown = go_quote(node);
    let requested = name_of(attributes, object);
    if requested != node {
        return Some(format!("node {shown} is not allowed to modify node {}", go_quote(requested)));
    }
    if attributes.operation == Operation::Delete {
        return None;
    }
    let empty = Value::Null;
    let old = attributes.old.unwrap_or(&empty);
    let labels = forbidden_labels(object, old);
    if attributes.operation == Operation::Create {
        return (!labels.is_empty())
            .then(|| format!("node {shown} is not allowed to set the following labels: {}", labels.join(", ")));
    }
    let is_other = |path: &[&str]| !prepare::equal(object.at(path), old.at(path));
    if is_other(&["spec", "taints"]) {
        return Some(format!("node {shown} is not allowed to modify taints"));
    }
    if is_other(&["metadata", "ownerReferences"]) {
        return Some(format!("node {shown} is not allowed to modify ownerReferences"));
    }
    (!labels.is_empty()).then(|| format!("is not allowed to modify labels: {}", labels.join(", ")))
}

/// The labels that differ and are not a node's to set.
fn forbidden_labels(new: &Value, old: &Value) -> Vec<String> {
    let labels = |node: &Value| -> BTreeSet<(String, String)> {
        let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
        let entries = labels.into_iter().flat_map(|labels| labels.iter());
        entries.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    let (new, old) = (labels(new), labels(old));
    let changed: BTreeSet<String> = new.symmetric_difference(&old).map(|(key, _)| key.clone()).collect();
    changed.into_iter().filter(|label| is_forbidden(label)).collect()
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_in = |outer: &str| domain == outer || domain.ends_with(&format!(".{outer}"));
    let is_kubelets = LABELS.contains(&label) || LABEL_DOMAINS.iter().any(|outer| is_in(outer));
    is_in(RESTRICTED_DOMAIN) || ((is_in("kubernetes.io") || is_in("k8s.io")) && !is_kubelets)
}

fn slice_fault(node: &str, attributes: &Attributes<'_>, object: &Value) -> Option<String> {
    let (slice, verb) = match attributes.operation {
        Operation::Create => (object, "create"),
        Operation::Delete => (attributes.old?, "delete"),
        Operation::Update | Operation::Connect => return None,
    };
    let why = format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
    (slice.str_at(&["spec", "nodeName"]) != node).then_some(why)
}
