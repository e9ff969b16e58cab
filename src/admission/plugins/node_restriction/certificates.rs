//! The certificates that a node may request: its own, and those of pods that run on it.
//!
//! Source: `admitCSR` and `admitPodCertificateRequest` of `plugin/pkg/admission/noderestriction`,
//! release 1.36.

use super::pods::MIRROR;
use super::{NodeRefusal, NodeRestriction, in_namespace, quoted};
use crate::admission::{Attributes, Operation};
use crate::auth::node::USER_PREFIX;
use crate::kinds::certificates::Request;
use crate::meta::Status;
use crate::value::{Value, base64};

/// The signers of nodes' certificates.
const SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

/// Checks a new CertificateSigningRequest.
pub fn check_request(node: &str, object: &Value) -> Result<(), NodeRefusal> {
    if !SIGNERS.contains(&object.str_at(&["spec", "signerName"])) {
        return Ok(());
    }
    let pem = base64::decode(object.str_at(&["spec", "request"])).unwrap_or_default();
    let request =
        Request::parse(&pem).map_err(|error| NodeRefusal::Forbidden(format!("unable to parse csr: {error}")))?;
    let wanted = format!("{USER_PREFIX}{node}");
    if request.common_name == wanted {
        return Ok(());
    }
    Err(NodeRefusal::Forbidden(format!("can only create a node CSR with CN={wanted}")))
}

impl NodeRestriction {
    /// Checks a new PodCertificateRequest: it must match a pod that runs on the node, and the pod's
    /// service account.
    pub(super) async fn pod_certificate(
        &self,
        node: &str,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), NodeRefusal> {
        if attributes.operation != Operation::Create {
            return Err(NodeRefusal::Forbidden(format!("unexpected operation {}", attributes.operation.as_str())));
        }
        if !attributes.subresource.is_empty() {
            return Err(NodeRefusal::Forbidden(format!("unexpected subresource {}", attributes.subresource)));
        }
        let asked = |field: &str| object.str_at(&["spec", field]);
        let pod_shown = quoted(&format!("{}/{}", attributes.namespace, asked("podName")));
        self.check_node(node, asked("nodeName"), asked("nodeUID"), &pod_shown).await?;
        let named = |what: &str| format!("while retrieving {what} named in the PodCertificateRequest");
        let place = in_namespace("pods", attributes.namespace);
        let pod = self.found(place, "pod", asked("podName"), &named(&format!("pod {pod_shown}"))).await?;
        let uid = pod.str_at(&["metadata", "uid"]);
        if asked("podUID") != uid {
            return Err(later(format!(
                "PodCertificateRequest for pod {pod_shown} contains pod UID ({}) which differs from running pod {}",
                quoted(asked("podUID")),
                quoted(uid)
            )));
        }
        if pod.str_at(&["spec", "nodeName"]) != asked("nodeName") {
            return Err(NodeRefusal::Forbidden(format!(
                "pod {pod_shown} is not running on node {} named in the PodCertificateRequest",
                quoted(asked("nodeName"))
            )));
        }
        if pod.at(&["metadata", "annotations", MIRROR]).is_some() {
            return Err(NodeRefusal::Forbidden(format!("pod {pod_shown} is a mirror pod")));
        }
        let (account, own) = (asked("serviceAccountName"), pod.str_at(&["spec", "serviceAccountName"]));
        if account != own {
            return Err(NodeRefusal::Forbidden(format!(
                "PodCertificateRequest for pod {pod_shown} contains serviceAccountName ({}) that differs from running pod ({})",
                quoted(account),
                quoted(own)
            )));
        }
        let shown = quoted(&format!("{}/{account}", attributes.namespace));
        let place = in_namespace("serviceaccounts", attributes.namespace);
        let found = self.found(place, "serviceaccount", account, &named(&format!("service account {shown}"))).await?;
        let uid = found.str_at(&["metadata", "uid"]);
        if asked("serviceAccountUID") == uid {
            return Ok(());
        }
        Err(later(format!(
            "PodCertificateRequest for pod {pod_shown} names service account UID {}, which differs from the running service \
             account ({})",
            quoted(asked("serviceAccountUID")),
            quoted(uid)
        )))
    }

    async fn check_node(&self, node: &str, name: &str, uid: &str, pod: &str) -> Result<(), NodeRefusal> {
        let shown = quoted(name);
        if name != node {
            let own = quoted(node);
            let why = format!("PodCertificateRequest.Spec.NodeName={shown}, which is not the requesting node {own}");
            return Err(NodeRefusal::Forbidden(why));
        }
        let what = format!("while retrieving node {shown} named in the PodCertificateRequest");
        let found = self.found(in_namespace("nodes", ""), "node", name, &what).await?;
        let own = found.str_at(&["metadata", "uid"]);
        if uid == own {
            return Ok(());
        }
        let (uid, own) = (quoted(uid), quoted(own));
        Err(later(format!(
            "PodCertificateRequest for pod {pod} names node UID {uid}, inconsistent with the running node ({own})"
        )))
    }
}

/// A refusal that may be temporary, which Kubernetes reports as a server error.
pub fn later(why: String) -> NodeRefusal {
    NodeRefusal::Status(Status::plain(500, &why))
}
