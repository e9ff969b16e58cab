//! The tokens that a node may request: those of pods that run on it, for audiences that these pods
//! request.
//!
//! Source: `admitServiceAccount` of `plugin/pkg/admission/noderestriction`, release 1.36.

use super::{NodeRefusal, NodeRestriction, in_namespace, quoted};
use crate::admission::{Attributes, ScopedResource};
use crate::auth::{self, ResourceAttributes};
use crate::meta::Status;
use crate::value::Value;

/// The CSI drivers that replace former in-tree volume types, by the volumes' fields.
const DRIVERS: [(&str, &str); 7] = [
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
    ("portworxVolume", "pxd.portworx.com"),
];

/// Why the drivers of volumes could not be looked up, each reason once.
#[derive(Debug, thiserror::Error)]
#[error("{}", if let [only] = &.0[..] { only.clone() } else { format!("[{}]", .0.join(", ")) })]
struct DriverErrors(Vec<String>);

impl NodeRestriction {
    pub(super) async fn token(
        &self,
        node: &str,
        attributes: &Attributes<'_>,
        request: &Value,
    ) -> Result<(), NodeRefusal> {
        let bound = request.at(&["spec", "boundObjectRef"]).unwrap_or(&Value::Null);
        let (name, uid) = (bound.str_at(&["name"]), bound.str_at(&["uid"]));
        if bound.str_at(&["apiVersion"]) != "v1" || bound.str_at(&["kind"]) != "Pod" || name.is_empty() {
            return Err(NodeRefusal::forbidden("node requested token not bound to a pod"));
        }
        if uid.is_empty() {
            return Err(NodeRefusal::forbidden("node requested token with a pod binding without a uid"));
        }
        let pod = self.pod_named(attributes.namespace, name).await?;
        if uid != pod.str_at(&["metadata", "uid"]) {
            return Err(NodeRefusal::Forbidden(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
                 deleted and then recreated"
            )));
        }
        if pod.str_at(&["spec", "nodeName"]) != node {
            return Err(NodeRefusal::forbidden("node requested token bound to a pod scheduled on a different node"));
        }
        self.audience(attributes, request, &pod).await
    }

    /// Checks that the audience is one that the pod requests, or that the node may request.
    async fn audience(&self, attributes: &Attributes<'_>, request: &Value, pod: &Value) -> Result<(), NodeRefusal> {
        let audience = match request.items_at(&["spec", "audiences"]) {
            [] => "",
            [audience] => audience.as_str().unwrap_or_default(),
            _ => return Err(NodeRefusal::forbidden("node may only request 0 or 1 audiences")),
        };
        let shown = quoted(audience);
        let is_named = self.names_audience(pod, audience).await;
        if is_named.map_err(|why| NodeRefusal::Forbidden(format!("error validating audience {shown}: {why}")))? {
            return Ok(());
        }
        let wanted = ResourceAttributes {
            verb: "request-serviceaccounts-token-audience",
            version: "v1",
            resource: audience,
            namespace: attributes.namespace,
            name: attributes.name,
            ..ResourceAttributes::default()
        };
        if self.authorizer.authorize(attributes.user, &auth::Attributes::Resource(wanted)).await.is_allowed() {
            return Ok(());
        }
        let user = &attributes.user.name;
        Err(NodeRefusal::Forbidden(format!(
            "audience {shown} not found in pod spec volume, {user} is not authorized to request tokens for this audience"
        )))
    }

    /// Whether a volume of the pod requests tokens for the audience, itself or through its driver.
    ///
    /// # Errors
    ///
    /// A driver could not be looked up, and no other volume requests the audience.
    async fn names_audience(&self, pod: &Value, audience: &str) -> Result<bool, DriverErrors> {
        let mut faults: Vec<String> = Vec::new();
        for volume in pod.items_at(&["spec", "volumes"]) {
            let asks = |source: &Value| {
                let token = source.get("serviceAccountToken").filter(|token| !token.is_null());
                token.is_some_and(|token| token.str_at(&["audience"]) == audience)
            };
            if volume.items_at(&["projected", "sources"]).iter().any(asks) {
                return Ok(true);
            }
            match self.driver_names(pod, volume, audience).await {
                Ok(true) => return Ok(true),
                Ok(false) => (),
                Err(status) if faults.contains(&status.message) => (),
                Err(status) => faults.push(status.message),
            }
        }
        if faults.is_empty() { Ok(false) } else { Err(DriverErrors(faults)) }
    }

    /// Whether the driver of a volume requests tokens for the audience.
    async fn driver_names(&self, pod: &Value, volume: &Value, audience: &str) -> Result<bool, Status> {
        let name = self.driver(pod, volume).await?;
        if name.is_empty() {
            return Ok(false);
        }
        let place = ScopedResource { group: "storage.k8s.io", plural: "csidrivers", namespace: "" };
        let driver = self.objects.get(place, &name).await?;
        let driver = driver.ok_or_else(|| Status::not_found("storage.k8s.io", "csidriver", &name))?;
        let mut requests = driver.items_at(&["spec", "tokenRequests"]).iter();
        Ok(requests.any(|request| request.str_at(&["audience"]) == audience))
    }

    /// The driver of a volume; empty if there is none.
    async fn driver(&self, pod: &Value, volume: &Value) -> Result<String, Status> {
        let namespace = pod.str_at(&["metadata", "namespace"]);
        if volume.at(&["ephemeral", "volumeClaimTemplate"]).is_some_and(|template| !template.is_null()) {
            let claim = format!("{}-{}", pod.str_at(&["metadata", "name"]), volume.str_at(&["name"]));
            return self.driver_of_claim(namespace, &claim).await;
        }
        if let Some(claim) = volume.get("persistentVolumeClaim").filter(|claim| !claim.is_null()) {
            return self.driver_of_claim(namespace, claim.str_at(&["claimName"])).await;
        }
        Ok(own_driver(volume).to_owned())
    }

    async fn driver_of_claim(&self, namespace: &str, claim: &str) -> Result<String, Status> {
        let found = self.objects.get(in_namespace("persistentvolumeclaims", namespace), claim).await?;
        let found = found.ok_or_else(|| Status::not_found("", "persistentvolumeclaim", claim))?;
        let name = found.str_at(&["spec", "volumeName"]);
        let volume = self.objects.get(in_namespace("persistentvolumes", ""), name).await?;
        let volume = volume.ok_or_else(|| Status::not_found("", "persistentvolume", name))?;
        Ok(own_driver(volume.get("spec").unwrap_or(&Value::Null)).to_owned())
    }
}

/// The driver that a volume names, or that its type implies.
fn own_driver(volume: &Value) -> &str {
    let is_set = |kind: &str| volume.get(kind).is_some_and(|source| !source.is_null());
    if is_set("csi") {
        return volume.str_at(&["csi", "driver"]);
    }
    DRIVERS.iter().find(|(kind, _)| is_set(kind)).map_or("", |(_, driver)| driver)
}
