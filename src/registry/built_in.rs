//! The resources of the built-in kinds, each made when it is first asked for.

use std::sync::{Arc, LazyLock, OnceLock};

use super::{Resource, resource};
use crate::apply::TypeSchema;
use crate::kinds::{self, Form, Kind};
use crate::store::Collection;
use crate::work;

/// A built-in kind and its resource.
pub struct BuiltIn {
    pub kind: &'static Kind,
    made: OnceLock<Arc<Resource>>,
}

impl BuiltIn {
    /// Every built-in kind, in the order of discovery.
    pub fn all() -> Vec<BuiltIn> {
        let mut all: Vec<_> = kinds::all().map(|kind| BuiltIn { kind, made: OnceLock::new() }).collect();
        all.sort_by_key(|built_in| (built_in.kind.group, built_in.kind.plural));
        all
    }

    pub fn resource(&self) -> &Arc<Resource> {
        self.made.get_or_init(|| Arc::new(make(self.kind)))
    }
}

/// Scale, as the verbs take it.
pub static SCALE: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(make(&kinds::SCALE)));

/// TokenRequest, as `/token` of a service account takes it.
pub static TOKEN_REQUEST: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(make(&kinds::TOKEN_REQUEST)));

/// The kind is served in its own form, and stored in one of its forms.
fn make(kind: &'static Kind) -> Resource {
    work::essential(|| make_resource(kind))
}

fn make_resource(kind: &'static Kind) -> Resource {
    let mut versions = Vec::new();
    let mut types = Vec::new();
    for form in kind.forms() {
        let version = form.served_version();
        let structural = Arc::clone(&version.structural);
        types.push(resource::lazily(move || match form.form {
            Form::Typed => TypeSchema::of_built_in(&structural),
            Form::Definition => TypeSchema::of_custom_resource_definition(),
        }));
        let served = std::ptr::eq(form, kind);
        versions.push(crate::crd::ServedVersion { served, ..version }.into());
    }
    let stored = kind.forms().find(|form| form.is_stored()).unwrap_or(kind);
    Resource::new(Collection::new(stored.group, stored.plural), versions, types, kind.strategy)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::auth::UserInfo;
    use crate::object;
    use crate::registry::{Body, CreateRequest, FieldValidation, Format, Warnings, fixture};
    use crate::value::json;

    #[tokio::test]
    async fn an_event_is_gone_after_an_hour() {
        let start = Timestamp::now();
        let registry = fixture::registry_at(Arc::new(move || start)).await;
        let mut events = fixture::target(&registry, "", "events").await;
        events.namespace = "default".to_owned();
        let event = object! {
            "metadata" => object! { "name" => "a" },
            "involvedObject" => object! { "namespace" => "default" },
        };
        let request = CreateRequest {
            body: Body { bytes: json::encode(&event).into(), format: Format::Json },
            field_validation: FieldValidation::Strict,
            manager: "test".to_owned(),
            dry_run: false,
            options: crate::value::Value::Null,
        };
        let user = UserInfo::unsecured();
        registry.create(&events, &user, &request, &mut Warnings::default()).await.expect("it is valid");
        let remaining = async |after: SignedDuration| {
            let now = start.checked_add(after).expect("it is within the calendar");
            registry.storage.expire(now.as_millisecond()).await.expect("the database is there");
            let listed = registry.list(&events, &Default::default()).await.expect("events are listed");
            listed.items.len()
        };
        assert_eq!(remaining(SignedDuration::from_secs(3599)).await, 1);
        assert_eq!(remaining(SignedDuration::from_secs(3600)).await, 0);
    }
}
