//! `OwnerReferencesPermissionEnforcement`: a user who sets an owner reference needs the permission
//! to delete the object, and one who blocks the owner's deletion needs the permission to update its
//! finalizers.
//!
//! Disabled by default, as in kube-apiserver.
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/gc`, release 1.37.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Admission, Attributes, Operation, forbidden};
use crate::auth::{self, Authorizer, ResourceAttributes};
use crate::meta::Status;
use crate::meta::api_version::group_version;
use crate::value::Value;

pub struct OwnerReferences {
    pub authorizer: Arc<dyn Authorizer>,
}

#[async_trait]
impl Admission for OwnerReferences {
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_status_of_pod = attributes.subresource == "status"
            && (attributes.version.group.as_str(), attributes.version.names.plural.as_str()) == ("", "pods");
        let is_unchanged = references(object) == attributes.old.map_or(&[][..], references);
        if attributes.operation == Operation::Delete || is_status_of_pod || is_unchanged {
            return Ok(());
        }
        if attributes.operation == Operation::Update {
            self.check_delete(attributes, object).await?;
        }
        let mut blocking = newly_blocking(object, attributes.old).peekable();
        if blocking.peek().is_none() || self.may_finalize_all(attributes).await {
            return Ok(());
        }
        for reference in blocking {
            self.check_owner(attributes, object, reference).await?;
        }
        Ok(())
    }
}

impl OwnerReferences {
    async fn check_delete(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let wanted = ResourceAttributes {
            verb: "delete",
            group: &attributes.version.group,
            version: &attributes.version.version,
            resource: &attributes.version.names.plural,
            subresource: attributes.subresource,
            namespace: attributes.namespace,
            name: attributes.name,
            ..ResourceAttributes::default()
        };
        let what = "cannot set an ownerRef on a resource you can't delete";
        self.check(attributes, object, wanted, what).await
    }

    /// Whether the user may update the finalizers of all objects, so the owners need not be looked
    /// up.
    async fn may_finalize_all(&self, attributes: &Attributes<'_>) -> bool {
        let wanted = ResourceAttributes {
            verb: "update",
            group: "*",
            version: "*",
            resource: "*",
            subresource: "finalizers",
            name: "*",
            ..ResourceAttributes::default()
        };
        self.authorizer.authorize(attributes.user, &auth::Attributes::Resource(wanted)).await.is_allowed()
    }

    async fn check_owner(&self, attributes: &Attributes<'_>, object: &Value, reference: &Value) -> Result<(), Status> {
        let (api_version, kind) = (reference.str_at(&["apiVersion"]), reference.str_at(&["kind"]));
        let (group, version) = group_version(api_version);
        let Some(owner) = attributes.forms.version_of(group, version, kind).await? else {
            return Err(forbidden(
                attributes,
                object,
                &format!(
                    "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                     {api_version} Kind {kind}: no matches for kind \"{kind}\" in version \"{api_version}\""
                ),
            ));
        };
        let wanted = ResourceAttributes {
            verb: "update",
            group,
            version,
            resource: &owner.names.plural,
            subresource: "finalizers",
            // A namespaced owner is in the namespace of its dependents.
            namespace: if owner.is_namespaced() { attributes.namespace } else { "" },
            name: reference.str_at(&["name"]),
            ..ResourceAttributes::default()
        };
        let what =
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on";
        self.check(attributes, object, wanted, what).await
    }

    async fn check(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        wanted: ResourceAttributes<'_>,
        what: &str,
    ) -> Result<(), Status> {
        let decision = self.authorizer.authorize(attributes.user, &auth::Attributes::Resource(wanted)).await;
        if decision.is_allowed() {
            return Ok(());
        }
        let error = if decision.error.is_empty() { "<nil>" } else { &decision.error };
        Err(forbidden(attributes, object, &format!("{what}: {}, {error}", decision.reason)))
    }
}

fn references(object: &Value) -> &[Value] {
    object.items_at(&["metadata", "ownerReferences"])
}

/// The references of `new` that block the owner's deletion and did not do so in `old`, compared by
/// uid.
fn newly_blocking<'n>(new: &'n Value, old: Option<&Value>) -> impl Iterator<Item = &'n Value> {
    let is_blocking = |reference: &Value| reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
    let known = old.map_or(&[][..], references).iter();
    let known: HashMap<String, bool> =
        known.map(|reference| (reference.str_at(&["uid"]).to_owned(), is_blocking(reference))).collect();
    let is_new = move |reference: &&Value| {
        crate::work::step();
        is_blocking(reference) && known.get(reference.str_at(&["uid"])) != Some(&true)
    };
    references(new).iter().filter(is_new)
}
