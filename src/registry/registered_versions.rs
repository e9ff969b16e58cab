//! APIServices of defined kinds that a client has changed, so that they are stored: while their label says that the
//! server manages them, they get its spec again, and go with the last definition that serves their version.
//!
//! Source: `pkg/controllers/autoregister` of `k8s.io/kube-aggregator`, release 1.37, and
//! `pkg/controlplane/controller/crdregistration` of Kubernetes 1.36.

use crate::kinds::ServiceObject;
use crate::kinds::api_groups::MANAGED_LABEL;
use crate::meta::Status;
use crate::store::Collection;
use crate::value::Value;

use super::computed::{GROUP, service_object};
use super::definitions::decode_definition;
use super::delete::Named;
use super::identity::{API_SERVER_MANAGER, own_user};
use super::{DeleteRequest, Registry, Warnings};

impl Registry {
    /// Sees to the stored APIServices of a group, after a definition of it has changed or is gone.
    ///
    /// # Errors
    ///
    /// They can't be read or written.
    pub async fn register_versions(&self, group: &str) -> Result<(), Status> {
        let snapshot = self.newest(&Collection::new(GROUP, "apiservices")).await?;
        let is_of_group = |name: &str| name.split_once('.').is_some_and(|(_, of)| of == group);
        let mut registered = Ok(());
        for stored in snapshot.range("", None).filter(|stored| is_of_group(&stored.key)) {
            // One that can't be written does not hold up the others.
            registered = registered.and(self.register_version(&stored.key).await);
        }
        registered
    }

    /// Sees to the stored APIService of this name, if there is one and the server manages it.
    pub(super) async fn register_version(&self, name: &str) -> Result<(), Status> {
        let target = self.own_target(GROUP, "apiservices", name).await?;
        let Some(stored) = self.stored(&target).await? else { return Ok(()) };
        let service = self.derive_live(&target.resource, &target.version, &stored).await?;
        let (group, version) = (service.str_at(&["spec", "group"]), service.str_at(&["spec", "version"]));
        let is_managed = service.str_at(&["metadata", "labels", MANAGED_LABEL]) == "true";
        let Some(object) = service_object(&target.version).filter(|_| is_managed) else { return Ok(()) };
        // What comes with the server is only looked at when it starts.
        if self.is_built_in_version(group, version).await? {
            return Ok(());
        }
        let done = match self.spec_of_version(object, group, version).await? {
            Some(spec) if service.get("spec") == Some(&spec) => return Ok(()),
            Some(spec) => {
                let mut service = service;
                let resource_version = Value::String(stored.revision.to_string());
                service.make_object().entry("metadata").make_object().insert("resourceVersion", resource_version);
                service.make_object().insert("spec", spec);
                self.update_own(&target, API_SERVER_MANAGER, &service).await
            }
            None => {
                let options = DeleteRequest { uid: Some(stored.uid.to_string()), ..DeleteRequest::default() };
                let mut warnings = Warnings::default();
                self.delete_one(&target, Named::Object, &own_user(), &options, &mut warnings).await.map(drop)
            }
        };
        match done {
            // Somebody else was faster; what they have written is looked at, too.
            Err(status) if matches!(status.code, 404 | 409) => Ok(()),
            done => done,
        }
    }

    /// The spec of the APIService for a version of a group; `None` if no definition serves it.
    async fn spec_of_version(
        &self,
        object: ServiceObject,
        group: &str,
        version: &str,
    ) -> Result<Option<Value>, Status> {
        let snapshot = self.newest(&self.definitions.collection()).await?;
        let is_of_group = |name: &str| name.split_once('.').is_some_and(|(_, of)| of == group);
        for stored in snapshot.range("", None).filter(|stored| is_of_group(&stored.key)) {
            let definition = decode_definition(stored, self.definitions.minor)?;
            if definition.spec.versions.iter().any(|one| one.served && one.name == version) {
                return Ok(object(group, version, false, "").get("spec").cloned());
            }
        }
        Ok(None)
    }

    async fn is_built_in_version(&self, group: &str, version: &str) -> Result<bool, Status> {
        if !self.definitions.is_built_in(group) {
            return Ok(false);
        }
        let resources = self.resources().await?;
        let built_in = resources.iter().filter(|one| one.definition.is_none() && one.storage().group == group);
        Ok(built_in.flat_map(|one| &one.versions).any(|one| one.served && one.version == version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::registry::fixture;
    use crate::store::Encoded;
    use crate::value::yaml;

    const NAME: &str = "v1.example.com";

    async fn register(registry: &Registry) {
        let text = "{metadata: {name: things.example.com}, spec: {group: example.com, scope: Namespaced, \
                    names: {plural: things, kind: Thing}, versions: [{name: v1, served: true, storage: true, \
                    schema: {openAPIV3Schema: {type: object}}}]}}";
        let definition = yaml::decode(text.as_bytes()).expect("the test is YAML");
        registry.register(definition).await.expect("it is valid");
    }

    /// An APIService that is stored, with this label, and another priority than the server gives.
    async fn store(registry: &Registry, managed: &str) {
        let labels = object! { MANAGED_LABEL => managed };
        let spec = object! {
            "group" => "example.com", "version" => "v1", "groupPriorityMinimum" => 7_i64, "versionPriority" => 7_i64,
        };
        let service = object! { "metadata" => object! { "name" => NAME, "labels" => labels }, "spec" => spec };
        registry.create_own(GROUP, "apiservices", "", "test", service).await.expect("it is valid");
    }

    /// The priority of the stored one; `None` if it is gone.
    async fn priority(registry: &Registry) -> Option<i64> {
        let target = registry.own_target(GROUP, "apiservices", NAME).await.expect("it is built in");
        let service = registry.found(&target).await.expect("the store works")?;
        service.at(&["spec", "groupPriorityMinimum"]).and_then(Value::as_i64)
    }

    #[tokio::test]
    async fn a_managed_service_gets_its_spec_again() {
        for (managed, expected) in [("true", 1_000), ("onstart", 7), ("", 7)] {
            let registry = fixture::registry().await;
            register(&registry).await;
            store(&registry, managed).await;
            registry.register_versions("other.com").await.expect("nothing stands in the way");
            assert_eq!(priority(&registry).await, Some(7), "{managed}");
            registry.register_versions("example.com").await.expect("nothing stands in the way");
            assert_eq!(priority(&registry).await, Some(expected), "{managed}");
        }
    }

    #[tokio::test]
    async fn a_damaged_service_does_not_hold_up_the_others() {
        let registry = fixture::registry().await;
        register(&registry).await;
        store(&registry, "true").await;
        let services = Collection::new(GROUP, "apiservices");
        fixture::store(&registry.storage, &services, ("v0.example.com", "u"), Encoded::new("")).await;
        registry.register_versions("example.com").await.expect_err("one is damaged");
        assert_eq!(priority(&registry).await, Some(1_000));
    }

    #[tokio::test]
    async fn a_managed_service_goes_with_the_last_definition() {
        for (managed, expected) in [("true", None), ("onstart", Some(7)), ("", Some(7))] {
            let registry = fixture::registry().await;
            store(&registry, managed).await;
            registry.register_versions("example.com").await.expect("nothing stands in the way");
            assert_eq!(priority(&registry).await, expected, "{managed}");
        }
    }
}
