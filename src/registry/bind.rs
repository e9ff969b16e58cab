//! `/binding` of a pod, and `bindings`: a pod is assigned to a node.
//!
//! Source: `BindingREST` of `pkg/registry/core/pod/storage`, release 1.36.

use crate::auth::UserInfo;
use crate::kinds::pod_object;
use crate::meta::Status;
use crate::value::Value;
use crate::write::metadata::wipe_system_fields;

use super::decode::decode_object;
use super::sent::as_sent;
use super::write::store_prefix;
use super::{CreateRequest, Registry, Subresource, Target, Warnings};

impl Registry {
    /// Assigns the pod that a Binding names to its node. `target` is `/binding` of the pod, or the
    /// resource of bindings.
    ///
    /// Errors: 400 for another name, 404 for a missing pod, 409 for a pod that has a node, 500 for a target that is not
    /// a node.
    pub async fn create_binding(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &CreateRequest,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        let mut binding = decode_object(&request.body, &as_sent(target)?, request.field_validation, warnings)?;
        let is_part = target.subresource != Subresource::Main;
        if !is_part {
            wipe_system_fields(&mut binding);
        }
        let own_name = binding.str_at(&["metadata", "name"]).to_owned();
        let name = if is_part { &target.name } else { &own_name };
        let check = |binding: &Value| pod_object::binding::check(binding, name).map(|()| binding.clone());
        let binding = self.admit_sent((target, name), user, request, binding, check, warnings).await?;
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let pods = self.pod(target, name).await?;
        let bind = |pod: &Value| {
            check_preconditions(&pods, &binding, pod, request.dry_run)?;
            let bound = pod_object::binding::bind(pods.version.minor, pod, &binding, &self.now());
            bound.map_err(|why| pod_object::binding::conflict(&pods.name, &why))
        };
        self.change_unasked(&pods, request.dry_run, bind).await.map(drop)
    }
}

/// If a binding has a uid or a resourceVersion, the pod must have the same.
fn check_preconditions(target: &Target, binding: &Value, pod: &Value, dry_run: bool) -> Result<(), Status> {
    for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
        let (wanted, found) = (binding.str_at(&["metadata", field]), pod.str_at(&["metadata", field]));
        if !wanted.is_empty() && wanted != found {
            return Err(target.conflict(&format!(
                "StorageError: invalid object, Code: 4, Key: {}/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
                store_prefix(dry_run),
                target.key()
            )));
        }
    }
    Ok(())
}
