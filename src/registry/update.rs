//! PUT, and what controllers write.

use crate::auth::UserInfo;
use crate::meta::Status;
use crate::value::Value;
use crate::write::metadata::{check_name, dedup_owner_references, ensure_namespace};

use super::decode::{Body, FieldValidation, decode_object};
use super::write::{Desired, Presence, RequestedWrite, Sent, uid_precondition};
use super::{Registry, Subresource, Target, Warnings, Written};

/// The parameters of a PUT, besides its target.
pub struct UpdateRequest {
    pub body: Body,
    pub field_validation: FieldValidation,
    pub manager: String,
    pub dry_run: bool,
    /// The fields of the options that were sent, for admission.
    pub options: Value,
}

impl Registry {
    /// Replaces the object of `target` by the body.
    ///
    /// Errors: 400 for a body that can't be decoded, 404, 409 for a resourceVersion or uid that is not the object's, 422 for an
    /// invalid object or one without resourceVersion.
    pub async fn update(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &UpdateRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let object = read(target, request, warnings)?;
        let uid = uid_precondition(&object);
        let creates = creates_on_update(target);
        let again = || read(target, request, &mut Warnings::default());
        let write = RequestedWrite {
            user,
            dry_run: request.dry_run,
            options: &request.options,
            presence: if creates { Presence::Any { uid } } else { Presence::Present { uid } },
            desired: Desired::Sent {
                object: Sent::new(object, &again),
                manager: &request.manager,
                sent: Some(&request.body),
            },
        };
        self.write(target, &write, warnings).await
    }

    /// Writes the status of an object for a controller, over the revision that `object` names.
    ///
    /// Errors: 404 or 409 if the object is gone or has changed.
    pub async fn write_status(
        &self,
        target: &Target,
        user: &UserInfo,
        manager: &str,
        object: Value,
    ) -> Result<Written, Status> {
        let again = || Ok(object.clone());
        let object = Sent::new(object.clone(), &again);
        self.write_own(target, user, Desired::Sent { object, manager, sent: None }).await
    }

    /// Records that a namespace is empty: its own finalizer is removed, and with the last finalizer the namespace.
    pub async fn finalize_namespace(&self, target: &Target, user: &UserInfo) -> Result<Written, Status> {
        self.write_own(target, user, Desired::Emptied).await
    }

    /// Changes an existing object, without a client's options; warnings are dropped.
    async fn write_own(&self, target: &Target, user: &UserInfo, desired: Desired<'_>) -> Result<Written, Status> {
        let presence = Presence::Present { uid: None };
        let write = RequestedWrite { user, dry_run: false, options: &Value::Null, presence, desired };
        self.write(target, &write, &mut Warnings::default()).await
    }
}

/// The object of the body, under the name of the target.
fn read(target: &Target, request: &UpdateRequest, warnings: &mut Warnings) -> Result<Value, Status> {
    let mut object = decode_object(&request.body, target, request.field_validation, warnings)?;
    ensure_namespace(&mut object, &target.namespace)?;
    check_name(&object, &target.name)?;
    warnings.extend(dedup_owner_references(&mut object, ""));
    Ok(object)
}

/// Whether an update creates a missing object: for some kinds it does, even through their `/status`.
pub(super) fn creates_on_update(target: &Target) -> bool {
    let is_whole = matches!(target.subresource, Subresource::Main | Subresource::Status);
    is_whole && target.resource.strategy.creates_on_update()
}
