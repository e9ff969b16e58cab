//! A registry for tests: in memory, with the first namespaces, everything allowed.

use std::sync::Arc;

use crate::admission::Chain;
use crate::auth::{AlwaysAllow, UserInfo};
use crate::clock::Clock;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::memory::Memory;
use crate::meta::Revision;
use crate::object;
use crate::processor::BackgroundTurns;
use crate::store::{Collection, Config, Encoded, Op, Put, Storage, Write};
use crate::webhook;

use super::{
    Body, Converter, CreateRequest, Definitions, FieldValidation, Format, Registry, Subresource, Target, Warnings,
};

/// A registry without definitions.
pub(crate) async fn registry() -> Arc<Registry> {
    registry_at(Clock::default()).await
}

/// A registry that reads the time from `clock`.
pub(crate) async fn registry_at(clock: Clock) -> Arc<Registry> {
    registry_of(clock, &RuntimeConfig::default()).await
}

/// A registry that serves the versions that `config` asks for.
pub(crate) async fn registry_of(clock: Clock, config: &RuntimeConfig) -> Arc<Registry> {
    let storage =
        Storage::open(&Config { clock: clock.clone(), ..Config::memory() }).await.expect("a database in memory opens");
    let memory = Arc::new(Memory::of_system());
    let client = webhook::WebhookClient::new(Vec::new(), Vec::new(), Arc::clone(&memory));
    let registry = Arc::new(Registry {
        storage,
        definitions: Definitions::new(config),
        admission: Arc::new(Chain::default()),
        convert: Arc::new(Converter(Arc::new(client))),
        authorizer: Arc::new(AlwaysAllow),
        policy: None,
        clock,
        memory,
        background: BackgroundTurns::default(),
        guards_namespaces: false,
        network: Default::default(),
        lifetimes: Default::default(),
        deferred: Default::default(),
    });
    registry.make_initial_namespaces().await.expect("nothing stands in the way");
    registry
}

/// The collection of a built-in resource.
pub(crate) async fn target(registry: &Registry, group: &str, plural: &str) -> Target {
    let resource = registry.resolve(group, plural).await.expect("it resolves").expect("it is built in");
    let version = Arc::clone(resource.storage());
    Target { resource, version, subresource: Subresource::Main, namespace: String::new(), name: String::new() }
}

/// Makes a namespace.
pub(crate) async fn create_namespace(registry: &Registry, name: &str) {
    let namespaces = target(registry, "", "namespaces").await;
    let body = object! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => object! { "name" => name } };
    let request = creation(crate::value::json::encode(&body));
    let user = UserInfo::unsecured();
    registry.create(&namespaces, &user, &request, &mut Warnings::default()).await.expect("it is valid");
}

/// A request to create an object from its JSON.
pub(crate) fn creation(text: impl Into<bytes::Bytes>) -> CreateRequest {
    CreateRequest {
        body: Body { bytes: text.into(), format: Format::Json },
        field_validation: FieldValidation::Strict,
        manager: "test".to_owned(),
        dry_run: false,
        options: crate::value::Value::Null,
    }
}

/// Stores an object as it is, unasked; `uid` is the one that the store notes.
pub(crate) async fn store(storage: &Storage, collection: &Collection, (key, uid): (&str, &str), object: Encoded) {
    let put = Put {
        object,
        uid: uid.into(),
        stored_version: "v1".into(),
        schema_generation: 0,
        expires_at_ms: None,
        served_under: None,
    };
    let write = Write { collection: collection.clone(), key: key.into(), op: Op::Put(put), guards: Vec::new() };
    storage.write(write).await.expect("it is stored");
}

/// The newest revision of what a registry of tests stores, in one database.
pub(crate) fn newest(registry: &Registry) -> Revision {
    registry.storage.revision(&registry.definitions.namespaces())
}

/// Forgets everything before the newest revision.
pub(crate) async fn compact(registry: &Registry) {
    let newest = newest(registry);
    registry.storage.compact(&registry.definitions.namespaces(), newest).await.expect("it compacts");
}
