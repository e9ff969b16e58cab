//! `CertificateApproval`, `CertificateSigning`, `CertificateSubjectRestriction` and
//! `ClusterTrustBundleAttest`: who may act for a signer, and which subject no signer may be asked
//! for.
//!
//! Source: `plugin/pkg/admission/certificates` and `pkg/certauthorization`, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::forbidden;
use crate::admission::{Admission, Attributes, Operation};
use crate::auth::{self, Authorizer, ResourceAttributes, UserInfo};
use crate::kinds::certificates::Request;
use crate::kinds::semantic;
use crate::meta::Status;
use crate::meta::field::{Error, ErrorList, Path};
use crate::value::{Value, base64, go_quote};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const POD_REQUESTS: &str = "podcertificaterequests";
/// The metadata that the garbage collector may change.
const OF_COLLECTOR: [&str; 4] = ["ownerReferences", "finalizers", "selfLink", "managedFields"];
/// The signer of the client certificates of this server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Whether the request is about a subresource of a resource in this group.
fn is_part(attributes: &Attributes<'_>, plural: &str, part: &str) -> bool {
    let version = attributes.version;
    version.group == GROUP && version.names.plural == plural && attributes.subresource == part
}

/// Whether `user` may do `verb` for a signer, or for all signers of its domain.
async fn may(authorizer: &dyn Authorizer, user: &UserInfo, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let wanted = ResourceAttributes {
            verb,
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..ResourceAttributes::default()
        };
        if authorizer.authorize(user, &auth::Attributes::Resource(wanted)).await.is_allowed() {
            return true;
        }
    }
    false
}

fn signer(object: &Value) -> &str {
    object.str_at(&["spec", "signerName"])
}

fn refused(attributes: &Attributes<'_>, object: &Value, what: &str, signer: &str) -> Status {
    forbidden(attributes, object, &format!("user not permitted to {what} signerName {}", go_quote(signer)))
}

pub struct CertificateApproval {
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Admission for CertificateApproval {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        let Some(old) = attributes.old.filter(|_| is_part(attributes, REQUESTS, "approval")) else { return Ok(()) };
        if may(&*self.authorizer, attributes.user, "approve", signer(old)).await {
            Ok(())
        } else {
            Err(refused(attributes, old, "approve requests with", signer(old)))
        }
    }
}

pub struct CertificateSigning {
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Admission for CertificateSigning {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        self.check_pod_request(attributes, object).await?;
        let Some(old) = attributes.old.filter(|_| is_part(attributes, REQUESTS, "status")) else { return Ok(()) };
        let is_same = |name: &str| semantic::equal_untyped(object.at(&["status", name]), old.at(&["status", name]));
        if is_same("certificate") && is_same("conditions") {
            return Ok(());
        }
        if may(&*self.authorizer, attributes.user, "sign", signer(old)).await {
            Ok(())
        } else {
            Err(refused(attributes, old, "sign requests with", signer(old)))
        }
    }
}

impl CertificateSigning {
    /// Checks that a user who changes the status of a PodCertificateRequest may sign for its
    /// signer. In Kubernetes this is a part of validation.
    async fn check_pod_request(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let old = attributes.old.filter(|_| is_part(attributes, POD_REQUESTS, "status"));
        let Some(old) = old.filter(|old| !semantic::equal_untyped(object.get("status"), old.get("status"))) else {
            return Ok(());
        };
        if may(&*self.authorizer, attributes.user, "sign", signer(old)).await {
            return Ok(());
        }
        let (user, signer) = (go_quote(&attributes.user.name), go_quote(signer(old)));
        let why = format!("User {user} is not permitted to \"sign\" for signer {signer}");
        let spec = Path::new("spec");
        let errors = ErrorList::from(Error::forbidden(&spec.child("signerName"), why));
        Err(Status::invalid(GROUP, "PodCertificateRequest", old.str_at(&["metadata", "name"]), &errors))
    }
}

pub struct CertificateSubjectRestriction;

#[async_trait]
impl Admission for CertificateSubjectRestriction {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_new = attributes.operation == Operation::Create && is_part(attributes, REQUESTS, "");
        if !is_new || signer(object) != CLIENT_SIGNER {
            return Ok(());
        }
        let pem = base64::decode(object.str_at(&["spec", "request"])).unwrap_or_default();
        let request = Request::parse(&pem)
            .map_err(|why| forbidden(attributes, object, &format!("failed to parse CSR: {why}")))?;
        if request.organizations.iter().any(|group| group == UserInfo::MASTERS) {
            let why = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
            return Err(forbidden(attributes, object, &why));
        }
        Ok(())
    }
}

/// Whether an update changes only what the garbage collector changes: owners and finalizers.
fn is_collected(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(metadata) = rest.get_mut("metadata").and_then(Value::as_object_mut) {
            OF_COLLECTOR.iter().for_each(|name| _ = metadata.remove(name));
        }
        rest
    };
    semantic::equal_untyped(Some(&rest(new)), Some(&rest(old)))
}

pub struct ClusterTrustBundleAttest {
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Admission for ClusterTrustBundleAttest {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let signer = signer(object);
        if !is_part(attributes, "clustertrustbundles", "") || signer.is_empty() {
            return Ok(());
        }
        // An update by the garbage collector attests nothing new.
        if attributes.old.is_some_and(|old| is_collected(object, old)) {
            return Ok(());
        }
        if may(&*self.authorizer, attributes.user, "attest", signer).await {
            Ok(())
        } else {
            Err(refused(attributes, object, "attest for", signer))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn the_garbage_collector_changes_owners_and_finalizers_alone() {
        let is_collected = |new: &str, old: &str| {
            let [new, old] = [new, old].map(|text| yaml::decode(text.as_bytes()).expect("the test is YAML"));
            is_collected(&new, &old)
        };
        let old = "{metadata: {name: a, finalizers: [x/y], labels: {}}, spec: {signerName: s}}";
        assert!(is_collected("{metadata: {name: a, managedFields: [{}]}, spec: {signerName: s}}", old));
        assert!(!is_collected("{metadata: {name: a, labels: {k: v}}, spec: {signerName: s}}", old));
        assert!(!is_collected("{metadata: {name: a}, spec: {signerName: t}}", old));
    }
}
