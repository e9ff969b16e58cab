//! The server's own writes: objects that it creates, and those that it applies for the user who started it.

use std::sync::Arc;

use super::identity::{OWN_MANAGER, own_user};
use super::update::UpdateRequest;
use super::{
    Body, CreateRequest, FieldValidation, Format, PatchRequest, PatchType, Registry, Subresource, Target, Warnings,
};
use crate::meta::Status;
use crate::meta::api_version::split_api_version;
use crate::value::{Value, json};

impl Registry {
    /// Creates an object for the server itself; `namespace` is empty in cluster scope.
    pub async fn create_own(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        manager: &str,
        object: Value,
    ) -> Result<(), Status> {
        let mut target = self.own_target(group, plural, "").await?;
        target.namespace = namespace.to_owned();
        let request = CreateRequest {
            body: Body { bytes: json::encode(&object).into(), format: Format::Json },
            field_validation: FieldValidation::Ignore,
            manager: manager.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        self.create(&target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    /// Updates an object for the server itself; without a `resourceVersion`, whatever is stored.
    pub(super) async fn update_own(&self, target: &Target, manager: &str, object: &Value) -> Result<(), Status> {
        let request = UpdateRequest {
            body: Body { bytes: json::encode(object).into(), format: Format::Json },
            field_validation: FieldValidation::Ignore,
            manager: manager.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        self.update(target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    pub(super) async fn own_target(&self, group: &str, plural: &str, name: &str) -> Result<Target, Status> {
        let resource = self.resolve(group, plural).await?.ok_or_else(Status::not_found_generic)?;
        let version = Arc::clone(resource.first());
        let (namespace, name) = (String::new(), name.to_owned());
        Ok(Target { resource, version, subresource: Subresource::Main, namespace, name })
    }

    /// Applies `object` as `kubectl apply --server-side --force-conflicts` does, in the namespace that it names or else
    /// in `default`; unknown fields are errors. Returns the warnings.
    ///
    /// # Errors 404 for a kind that is not served, and the errors of any apply.
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
