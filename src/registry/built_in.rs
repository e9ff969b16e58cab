//! The resources of the built-in kinds, each built on first use.

use std::sync::{Arc, LazyLock, OnceLock};

use super::{Resource, resource};
use crate::apply::TypeSchema;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::kinds::{self, Kind};
use crate::meta::minor::Minor;
use crate::store::Collection;
use crate::work;

/// A built-in kind and its resource.
pub struct BuiltIn {
    /// In the version that comes first.
    pub kind: &'static Kind,
    /// Its versions in this group that are served.
    forms: Vec<&'static Kind>,
    /// The version of Kubernetes that the server speaks for.
    minor: Minor,
    made: OnceLock<Arc<Resource>>,
}

impl BuiltIn {
    /// Every built-in kind that is served, in the order of discovery; one entry per kind covers all its versions in a
    /// group.
    pub fn all(config: &RuntimeConfig) -> Vec<BuiltIn> {
        let mut all: Vec<BuiltIn> = Vec::new();
        for kind in kinds::of_all_minors().filter(|kind| config.serves(kind)) {
            let is_known = |known: &BuiltIn| (known.kind.group, known.kind.plural) == (kind.group, kind.plural);
            if let Some(known) = all.iter_mut().find(|known| is_known(known)) {
                known.forms.push(kind);
            } else {
                all.push(BuiltIn { kind, forms: vec![kind], minor: config.minor(), made: OnceLock::new() });
            }
        }
        all.sort_by_key(|built_in| (built_in.kind.group, built_in.kind.plural));
        all
    }

    pub fn resource(&self) -> &Arc<Resource> {
        self.made.get_or_init(|| Arc::new(make_in(self.minor, self.kind, &self.forms)))
    }
}

/// Scale, as the verbs take it.
pub static SCALE: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(make(&kinds::SCALE, &[&kinds::SCALE])));

/// IPAddress: services hold their addresses by it, whether it is served or not; older minors do not have it.
pub static IP_ADDRESS: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    let kind = kinds::find("networking.k8s.io", "ipaddresses").expect("the newest minor has it");
    Arc::new(make(kind, &[kind]))
});

/// The kind is served in some of its forms, and stored in one of them.
pub(super) fn make(kind: &'static Kind, served: &[&'static Kind]) -> Resource {
    make_in(Minor::NEWEST, kind, served)
}

/// The same for a server of that version of Kubernetes.
fn make_in(minor: Minor, kind: &'static Kind, served: &[&'static Kind]) -> Resource {
    work::essential(|| make_resource(minor, kind, served))
}

fn make_resource(minor: Minor, kind: &'static Kind, served: &[&'static Kind]) -> Resource {
    let mut versions = Vec::new();
    let mut types = Vec::new();
    let is_served = |form: &Kind| served.iter().any(|served| std::ptr::eq(*served, form));
    // The other forms of this group are invisible, unless objects are stored in them.
    for form in kind.forms().filter(|form| is_served(form) || form.group != kind.group || form.is_stored()) {
        let version = form.served_version_in(minor);
        types.push(resource::lazily(move || TypeSchema::of_message_in(minor, form.message())));
        versions.push(crate::crd::ServedVersion { served: is_served(form), ..version }.into());
    }
    let stored = kind.forms().find(|form| form.is_stored()).unwrap_or(kind);
    Resource::new(Collection::new(stored.group, stored.plural), versions, types, kind.strategy)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use crate::auth::UserInfo;
    use crate::clock::Clock;
    use crate::object;
    use crate::registry::{Body, CreateRequest, FieldValidation, Format, Warnings, fixture};
    use crate::value::json;

    #[tokio::test]
    async fn an_event_is_gone_after_an_hour() {
        let start = Timestamp::now();
        let registry = fixture::registry_at(Clock::frozen_at(start)).await;
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
