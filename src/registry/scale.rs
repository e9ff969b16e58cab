//! `/scale`: PUT and PATCH of an autoscaling/v1 Scale.

use crate::auth::UserInfo;
use crate::meta::Status;
use crate::write::metadata::{check_name, ensure_namespace};
use crate::write::scale::of_object;

use super::decode::{decode_object, names_version};
use super::scaled::{ScaleRequest, as_scale, declared, is_custom};
use super::write::{Desired, Presence, RequestedWrite, uid_precondition};
use super::{PatchRequest, Registry, Target, UpdateRequest, Warnings, Written};

/// Go's message for a body that it can't decode.
const NO_SCALE: &str = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";

impl Registry {
    /// PUT of a Scale.
    pub async fn update_scale(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &UpdateRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let decoded = decode_object(&request.body, &as_scale(target), request.field_validation, warnings);
        let mut wanted =
            decoded.map_err(|error| if is_custom(target) { Status::bad_request(NO_SCALE) } else { error })?;
        ensure_namespace(&mut wanted, &target.namespace)?;
        check_name(&wanted, &target.name)?;
        let (uid, names_version) = (uid_precondition(&wanted), !is_custom(target) || names_version(&request.body));
        let put = ScaleRequest::Put { scale: &wanted, names_version, manager: &request.manager };
        let write = RequestedWrite {
            user,
            dry_run: request.dry_run,
            options: &request.options,
            presence: Presence::Present { uid },
            desired: Desired::Scaled(&put),
        };
        self.write_scale(target, &write, warnings).await
    }

    /// PATCH of a Scale.
    pub(super) async fn patch_scale(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &PatchRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let patch = ScaleRequest::Patch(request);
        let write = RequestedWrite {
            user,
            dry_run: request.dry_run,
            options: &request.options,
            presence: Presence::Present { uid: None },
            desired: Desired::Scaled(&patch),
        };
        self.write_scale(target, &write, warnings).await
    }

    /// Changes the replicas field, and returns the new Scale.
    async fn write_scale(
        &self,
        target: &Target,
        write: &RequestedWrite<'_>,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let written = self.write(target, write, warnings).await?;
        let (object, _) =
            of_object(declared(target)?, &written.object).map_err(|error| Status::bad_request(&error.to_string()))?;
        Ok(Written { created: false, object, encoded: None })
    }
}
