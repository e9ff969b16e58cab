//! POST: a new object.

use crate::auth::UserInfo;
use crate::meta::Status;
use crate::value::Value;
use crate::write::metadata::{dedup_owner_references, ensure_namespace, wipe_system_fields};

use super::decode::{Body, FieldValidation, decode_object};
use super::write::{Desired, Presence, RequestedWrite, Sent};
use super::{Registry, Target, Warnings, Written};

/// How often a new name is generated if the generated one is taken. Source: Kubernetes 1.37.
const GENERATED_NAME_TRIES: usize = 8;

/// The parameters of a creation, besides its target.
pub struct CreateRequest {
    pub body: Body,
    pub field_validation: FieldValidation,
    /// The manager who owns the fields that this sets.
    pub manager: String,
    pub dry_run: bool,
    /// The fields of the options that were sent, for admission.
    pub options: Value,
}

impl Registry {
    /// Creates an object of `target`.
    ///
    /// The name is the target's, or the one in the body, or a generated one. Errors: 400 for a body that can't be
    /// decoded, 403 and 404 by admission, 409 for a name that is taken, 422 for an invalid object, 429 when too much is
    /// being written.
    pub async fn create(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &CreateRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let object = read(target, request, warnings)?;
        self.store_computed_of_client(target, user, object.str_at(&["metadata", "name"])).await?;
        let text = |name: &str| object.str_at(&["metadata", name]);
        let generates = text("name").is_empty() && !text("generateName").is_empty();
        let again = || read(target, request, &mut Warnings::default());
        let write = RequestedWrite {
            user,
            dry_run: request.dry_run,
            options: &request.options,
            presence: Presence::Absent { names_max: if generates { GENERATED_NAME_TRIES } else { 1 } },
            desired: Desired::Sent {
                object: Sent::new(object, &again),
                manager: &request.manager,
                sent: Some(&request.body),
            },
        };
        self.write(target, &write, warnings).await
    }
}

/// The object of the body, without what clients don't set.
fn read(target: &Target, request: &CreateRequest, warnings: &mut Warnings) -> Result<Value, Status> {
    let mut object = decode_object(&request.body, target, request.field_validation, warnings)?;
    wipe_system_fields(&mut object);
    ensure_namespace(&mut object, &target.namespace)?;
    warnings.extend(dedup_owner_references(&mut object, ""));
    Ok(object)
}
