//! A registry for tests: in memory, with the first namespaces, everything allowed.

use std::sync::Arc;

use jiff::Timestamp;

use crate::admission::Chain;
use crate::auth::UserInfo;
use crate::object;
use crate::store::{Config, Storage};
use crate::webhook;

use super::{
    Body, Converter, CreateRequest, Definitions, FieldValidation, Format, Registry, Subresource, Target, Warnings,
    kinds,
};

/// A registry without definitions.
pub(crate) async fn registry() -> Arc<Registry> {
    let storage = Storage::open(&Config::memory()).await.expect("a database in memory opens");
    let registry = Arc::new(Registry {
        storage,
        definitions: Definitions::new(kinds::all()),
        admission: Arc::new(Chain::default()),
        convert: Arc::new(Converter(webhook::Client::new(Vec::new()))),
        clock: Arc::new(Timestamp::now),
        guards_namespaces: false,
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
    let request = CreateRequest {
        body: Body { bytes: crate::value::json::encode(&body).into(), format: Format::Json },
        field_validation: FieldValidation::Strict,
        manager: "test".to_owned(),
        dry_run: false,
    };
    let user = UserInfo::unsecured();
    registry.create(&namespaces, &user, &request, &mut Warnings::default()).await.expect("it is valid");
}
