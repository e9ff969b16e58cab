//! `/binding` of a pod, and `bindings`: a pod gets a node.
//!
//! Source: `BindingREST` of `pkg/registry/core/pod/storage`, release 1.36.

use crate::admission::Operation;
use crate::auth::UserInfo;
use crate::kinds::{BINDING, pod_object};
use crate::meta::Status;
use crate::value::Value;

use super::admit::Admitted;
use super::create::{ensure_namespace, wipe_system_fields};
use super::decode::decode_object;
use super::sent::as_sent;
use super::{CreateRequest, Registry, Subresource, Target, Warnings, Written};

impl Registry {
    /// Gives the pod that a Binding names its node. `target` is `/binding` of the pod, or the resource of bindings.
    ///
    /// Errors: 400 for another name, 404 for no such pod, 409 for one that has a node, 500 for a target that is none.
    pub async fn create_binding(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &CreateRequest,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        let mut binding = decode_object(&request.body, &as_sent(target, &BINDING), request.field_validation, warnings)?;
        let is_part = target.subresource != Subresource::Main;
        if !is_part {
            wipe_system_fields(&mut binding);
        }
        ensure_namespace(&mut binding, &target.namespace)?;
        let own_name = binding.str_at(&["metadata", "name"]).to_owned();
        let name = if is_part { &target.name } else { &own_name };
        let write = Admitted {
            operation: Operation::Create,
            target,
            name,
            old: None,
            user,
            dry_run: request.dry_run,
            options: &request.options,
        };
        self.admit_mutating(&write, &mut binding, warnings).await?;
        pod_object::binding::check(&binding, name)?;
        self.admit_validating(&write, &binding, warnings).await?;
        if name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let pods = self.pod(target, name).await?;
        while self.bind_once(&pods, &binding, request.dry_run).await?.is_none() {}
        Ok(())
    }

    /// One attempt; `None` where the pod has changed meanwhile.
    async fn bind_once(&self, target: &Target, binding: &Value, dry_run: bool) -> Result<Option<Written>, Status> {
        let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
        let pod = self.derive_live(&target.resource, &target.version, &stored).await?;
        check_preconditions(target, binding, &pod)?;
        let bound = pod_object::binding::bind(&pod, binding, &self.now());
        let bound = bound.map_err(|why| pod_object::binding::conflict(&target.name, &why))?;
        let guards = self.guards(target).await?;
        self.commit_change(target, bound, stored, (guards, Vec::new()), dry_run).await
    }

    /// The pod `name`, which a part of it or another resource in its namespace is about.
    pub(super) async fn pod(&self, target: &Target, name: &str) -> Result<Target, Status> {
        let resource = self.resolve("", "pods").await?.ok_or_else(Status::not_found_generic)?;
        let version = resource.served("v1").cloned().ok_or_else(Status::not_found_generic)?;
        let namespace = target.namespace.clone();
        Ok(Target { resource, version, subresource: Subresource::Main, namespace, name: name.to_owned() })
    }
}

/// A binding that names a uid or a resourceVersion means the pod that has it.
fn check_preconditions(target: &Target, binding: &Value, pod: &Value) -> Result<(), Status> {
    for (what, field) in [("UID", "uid"), ("ResourceVersion", "resourceVersion")] {
        let (wanted, found) = (binding.str_at(&["metadata", field]), pod.str_at(&["metadata", field]));
        if !wanted.is_empty() && wanted != found {
            return Err(target.conflict(&format!(
                "StorageError: invalid object, Code: 4, Key: /registry/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
                target.key()
            )));
        }
    }
    Ok(())
}
