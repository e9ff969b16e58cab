//! PATCH: turns a patch as it was sent into a write; `patched` computes the patched object.

use crate::auth::UserInfo;
use crate::meta::Status;
use crate::value::{json, yaml};

use super::patched::{CHECKS_DOCUMENTS, PatchRequest, PatchType};
use super::update::creates_on_update;
use super::write::{Desired, Presence, RequestedWrite};
use super::{Registry, Subresource, Target, Warnings, Written};

impl Registry {
    /// Patches the object of `target`; server-side apply creates it if it is missing.
    ///
    /// Errors: 400 for a patch that can't be decoded, 404, 409 for conflicts of apply and of resourceVersion, 422 for a patch
    /// that does not apply and for an invalid result.
    pub async fn patch(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &PatchRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let patched = self.try_patch(target, user, request, warnings).await;
        // A malformed patch is reported before anything else. If the patch was applied, it is well-formed, so this is
        // checked only after a failure.
        if patched.is_err() && target.version.minor >= CHECKS_DOCUMENTS {
            check_document(request)?;
        }
        patched
    }

    async fn try_patch(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &PatchRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        if target.subresource == Subresource::Scale {
            return self.patch_scale(target, user, request, warnings).await;
        }
        let is_main = target.subresource == Subresource::Main;
        let creates = request.patch_type == PatchType::Apply && (is_main || creates_on_update(target));
        let write = RequestedWrite {
            user,
            dry_run: request.dry_run,
            options: &request.options,
            presence: if creates { Presence::Any { uid: None } } else { Presence::Present { uid: None } },
            desired: Desired::Patched(request),
        };
        self.write(target, &write, warnings).await
    }
}

/// A patch must be a JSON (or YAML) document before anything else is looked at. A text that begins like a JSON object
/// is parsed later.
fn check_document(request: &PatchRequest) -> Result<(), Status> {
    let begins_as_object = || String::from_utf8_lossy(&request.bytes).trim_start().starts_with('{');
    match request.patch_type {
        PatchType::Apply if begins_as_object() => Ok(()),
        PatchType::Apply => match yaml::decode(&request.bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(Status::bad_request(&format!("error encoding patch: {error}"))),
        },
        _ => match json::decode(&request.bytes) {
            Err(json::JsonError::Syntax { .. }) => Err(Status::bad_request("invalid JSON patch")),
            Ok(_) | Err(json::JsonError::Range(_)) => Ok(()),
        },
    }
}
