//! The registry: what is served, and the steps of each verb, with one straightforward function per verb.
//!
//! Input: a request that the HTTP edge has parsed. Output: an object, a list or a stream of events, or the [`Status`] to answer
//! instead. Decisions are made in the verbs' functions; what they call is pure, or a store, or admission.

mod admit;
mod conversion;
mod convert;
mod claim_status;
mod create;
mod decode;
mod definitions;
mod registration;
mod identity;
mod own_writes;
mod parameters;
mod objects;
mod delete;
mod delete_collection;
mod derive;
mod get;
mod built_in;
mod computed;
mod own_conditions;
mod known_resources;
mod lifetimes;
mod list;
mod selection;
mod mutated;
mod past;
mod patched;
mod patch;
mod policy;
mod policies;
mod in_force;
mod registered_versions;
mod required;
mod nodes;
mod escalation;
mod bootstrap;
mod accounts;
mod token_request;
mod sent;
mod stored_webhooks;
mod bind;
mod evict;
mod connect;
mod resource;
mod review;
mod asked_selectors;
mod scaled;
mod scale;
mod service_network;
mod service_repair;
mod service_location;
mod kubernetes_service;
mod update;
mod write;
mod warnings;
mod watch;

#[cfg(test)]
pub(crate) mod fixture;

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::admission::Admission;
use crate::auth::Authorizer;
use crate::clock::Clock;
use crate::crd::ServedVersion;
use crate::memory::{Memory, RETRY_AFTER_SECONDS};
use crate::meta::{Revision, Status};
use crate::processor::BackgroundTurns;
use crate::store::{Collection, Encoded, Storage, StoreError};
use crate::value::Value;

pub use crate::kinds::strategy::Subresource;
pub use accounts::StoredAccounts;
use built_in::BuiltIn;
pub use conversion::Conversion;
pub use convert::{Convert, Converter};
pub use create::CreateRequest;
pub use decode::{Body, FieldValidation, Format, not_registered_for_options};
pub use definitions::{Definitions, StoredNamespaces};
pub use delete::{DeleteRequest, Deletion, policy_errors, warn_of_orphans};
pub use derive::Undecodable;
pub use kubernetes_service::Advertised;
pub use lifetimes::Lifetimes;
pub use list::{ListAt, ListPage, ListRequest};
pub use nodes::StoredNodes;
pub use objects::StoredObjects;
pub use patched::{PatchRequest, PatchType};
pub use policies::StoredPolicies;
pub use policy::{Current, StoredPolicy};
pub use required::required_collections;
pub use resource::{Resource, StoredDefinition};
pub use review::Reviewers;
pub use sent::as_sent;
pub use service_network::{ServiceNetwork, ServiceRanges, ServiceRangesError};
pub use service_repair::{Finding, Repaired};
pub use stored_webhooks::StoredWebhooks;
pub use token_request::IssuedToken;
pub use update::UpdateRequest;
pub use warnings::{WARNING_CHARACTERS_MAX, WARNINGS_CHARACTERS_MAX, Warnings};
pub use watch::{EventType, SharedChange, Start, Watch, WatchEvent, WatchRequest};

/// The state that requests are served from.
pub struct Registry {
    pub storage: Storage,
    pub definitions: Definitions,
    pub admission: Arc<dyn Admission>,
    pub convert: Arc<dyn Convert>,
    /// The authoriser.
    pub authorizer: Arc<dyn Authorizer>,
    /// The check of what users may grant; `None` if everybody may do everything, or if roles are not used.
    pub policy: Option<Arc<StoredPolicy>>,
    /// The clock for everything that clients can see.
    pub clock: Clock,
    /// Limits the memory that requests use.
    pub memory: Arc<Memory>,
    /// The turns of controllers.
    pub background: BackgroundTurns,
    /// Whether a write into a namespace depends on that namespace in the same transaction.
    pub guards_namespaces: bool,
    /// The ranges that services are allocated from.
    pub network: ServiceNetwork,
    pub lifetimes: Lifetimes,
    /// Set once the deferred initial objects exist.
    pub deferred: OnceCell<()>,
}

/// What a request is about: a resource in a version, and perhaps one object of it.
#[derive(Clone)]
pub struct Target {
    pub resource: Arc<Resource>,
    pub version: Arc<ServedVersion>,
    pub subresource: Subresource,
    /// Empty for cluster scope and for all namespaces.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
}

/// The answer to a write.
pub struct Written {
    /// Whether the write created the object.
    pub created: bool,
    pub object: Value,
    /// The object as it is sent in JSON, with its revision, if that is known without encoding it again.
    pub encoded: Option<(Encoded, Revision)>,
}

impl Target {
    /// The key of the object in the store: `namespace/name`, or the name alone in cluster scope.
    pub fn key(&self) -> String {
        self.key_of(&self.name)
    }

    fn key_of(&self, name: &str) -> String {
        if self.version.is_namespaced() { format!("{}/{name}", self.namespace) } else { name.to_owned() }
    }

    /// The same for the object under `key`.
    fn of_key(&self, key: &str) -> Target {
        let (namespace, name) = list::split_key(self, key);
        Target { namespace: namespace.to_owned(), name: name.to_owned(), ..self.clone() }
    }

    fn not_found(&self) -> Status {
        Status::not_found(&self.version.group, &self.version.names.plural, &self.name)
    }

    fn conflict(&self, why: &str) -> Status {
        Status::conflict(&self.version.group, &self.version.names.plural, &self.name, why)
    }
}

impl Registry {
    /// Now, as the API writes times: RFC 3339 in whole seconds.
    fn now(&self) -> String {
        crate::meta::time::format_seconds(self.clock.now())
    }
}

/// The answer if the store fails during an operation (`get`, `list`, `create`, `update` or `delete`).
///
/// Clients automatically retry requests that are answered with a Retry-After. Source:
/// `k8s.io/apiserver/pkg/storage/errors`, release 1.37.
fn store_failed(collection: &Collection, operation: &str, error: StoreError) -> Status {
    let (group, plural) = collection.names();
    match error {
        // etcd's message reaches clients unchanged.
        StoreError::NoSpace | StoreError::NoSpaceForRequired => Status::plain(500, &error.to_string()),
        StoreError::Name(_) => Status::bad_request(&error.to_string()),
        StoreError::NoMemory | StoreError::NoMemoryNow => {
            Status::too_many_requests(&error.to_string(), RETRY_AFTER_SECONDS)
        }
        error if error.may_pass() => Status::server_timeout(group, plural, operation),
        error => Status::internal_error(&error.to_string()),
    }
}
