//! Objects that the server applies for who started it.

use std::sync::Arc;

use super::definitions::{OWN_MANAGER, own_user};
use super::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::crd::write::split_api_version;
use crate::meta::Status;
use crate::value::{Value, json};

impl Registry {
    /// Applies `object` as `kubectl apply --server-side --force-conflicts` does, in the namespace that it names or else in
    /// `default`; unknown fields are errors. Returns what the server warns of.
    ///
    /// # Errors
    /// 404 for a kind that is not served, and what any apply is refused with.
    pub async fn apply_own(&self, object: &Value) -> Result<Warnings, Status> {
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let (group, version) = split_api_version(api_version).map_err(|_| Status::not_found_generic())?;
        let resource = self.resolve_kind(group, version, kind).await?;
        let resource = resource.ok_or_else(Status::not_found_generic)?;
        let version = resource.served(version).cloned().ok_or_else(Status::not_found_generic)?;
        let namespace = match (version.is_namespaced(), object.str_at(&["metadata", "namespace"])) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        let (namespace, name) = (namespace.to_owned(), object.str_at(&["metadata", "name"]).to_owned());
        let target =
            Target { resource: Arc::clone(&resource), version, subresource: Subresource::Main, namespace, name };
        let request = PatchRequest {
            patch_type: PatchType::Apply,
            bytes: json::encode(object).into(),
            field_validation: FieldValidation::Strict,
            manager: OWN_MANAGER.to_owned(),
            force: true,
            dry_run: false,
            options: Value::Null,
        };
        let mut warnings = Warnings::default();
        self.patch(&target, &own_user(), &request, &mut warnings).await?;
        Ok(warnings)
    }
}
