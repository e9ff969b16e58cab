//! LIST: a consistent page of a collection.

use std::sync::Arc;

use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::meta::json_path::JsonPath;
use crate::meta::{Revision, Status};
use crate::store::continue_token::ContinueToken;
use crate::store::{At, Encoded, Snapshot, SnapshotError, Stored};
use crate::value::{Value, json};

use super::{Registry, Target, store_failed};

/// Which revision a list shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListAt {
    /// The newest.
    #[default]
    Newest,
    /// This one or a newer one.
    AtLeast(Revision),
    /// This one.
    Exact(Revision),
    /// As the token of the page before says.
    Continue(ContinueToken),
}

/// What a LIST asks for.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    pub at: ListAt,
    /// 0 for no limit.
    pub limit: usize,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

/// One page.
pub struct ListPage {
    pub items: Vec<(Arc<Stored>, Encoded)>,
    pub revision: Revision,
    /// Empty on the last page.
    pub continue_token: String,
    /// How many follow this page; unknown with selectors.
    pub remaining: Option<usize>,
}

impl Registry {
    /// The objects of `target`'s collection (and namespace) that the selectors select, in the order of their keys.
    ///
    /// Errors: 410 for a revision that is gone, 504 for one that is not there yet.
    pub async fn list(&self, target: &Target, request: &ListRequest) -> Result<ListPage, Status> {
        let collection = &target.resource.collection;
        let (snapshot, start) = match &request.at {
            ListAt::Newest => (self.snapshot(target, At::Newest).await?, None),
            ListAt::AtLeast(revision) => {
                self.wait_for(Some(*revision)).await?;
                (self.snapshot(target, At::Newest).await?, None)
            }
            ListAt::Exact(revision) => {
                self.wait_for(Some(*revision)).await?;
                (self.snapshot(target, At::Exact(*revision)).await?, None)
            }
            ListAt::Continue(token) => {
                let at = token.revision.map_or(At::Newest, At::Exact);
                let snapshot = self.storage.snapshot(collection, at).await;
                let snapshot = snapshot.map_err(|error| continue_failed(error, token))?;
                (snapshot, Some(token.start.clone()))
            }
        };
        self.page(target, request, &snapshot, start.as_deref()).await
    }

    async fn snapshot(&self, target: &Target, at: At) -> Result<Snapshot, Status> {
        let snapshot = self.storage.snapshot(&target.resource.collection, at).await;
        snapshot.map_err(|error| match error {
            SnapshotError::Expired { .. } => Status::expired("The resourceVersion for the provided list is too old."),
            SnapshotError::Store(error) => store_failed(error),
        })
    }

    /// The page of `snapshot` from the key `start` on.
    async fn page(
        &self,
        target: &Target,
        request: &ListRequest,
        snapshot: &Snapshot,
        start: Option<&str>,
    ) -> Result<ListPage, Status> {
        let prefix = match target.version.is_namespaced() && !target.namespace.is_empty() {
            true => format!("{}/", target.namespace),
            false => String::new(),
        };
        let selects_all = request.labels.is_empty() && request.fields.is_empty();
        let limit = if request.limit == 0 { usize::MAX } else { request.limit };
        let mut items = Vec::new();
        let mut last_key = "";
        let mut rows = snapshot.range(&prefix, start);
        let mut more = false;
        for stored in rows.by_ref() {
            if items.len() == limit {
                more = true;
                break;
            }
            if !selects_all && !self.selects(target, request, stored).await? {
                continue;
            }
            let encoded = self.encoded(&target.resource, &target.version, stored).await?;
            items.push((Arc::clone(stored), encoded));
            last_key = &stored.key;
        }
        let revision = snapshot.revision();
        if !more {
            return Ok(ListPage { items, revision, continue_token: String::new(), remaining: None });
        }
        let remaining = selects_all.then(|| rows.count() + 1);
        let token = ContinueToken { revision: Some(revision), start: format!("{last_key}\0") };
        let continue_token = token.encode(&prefix);
        self.storage.pin(snapshot);
        Ok(ListPage { items, revision, continue_token, remaining })
    }

    /// Whether the selectors select `stored` in the version asked for.
    pub(super) async fn selects(&self, target: &Target, request: &ListRequest, stored: &Arc<Stored>) -> Result<bool, Status> {
        if !request.labels.is_empty() && !request.labels.matches(|name| stored.label(name)) {
            return Ok(false);
        }
        if request.fields.is_empty() {
            return Ok(true);
        }
        let (namespace, name) = split_key(target, &stored.key);
        let by_key = |field: &str| match field {
            "metadata.name" => Some(name.to_owned()),
            "metadata.namespace" => Some(namespace.to_owned()),
            _ => None,
        };
        if request.fields.fields().all(|field| by_key(field).is_some()) {
            return Ok(request.fields.matches(|field| by_key(field).unwrap_or_default()));
        }
        let encoded = self.encoded(&target.resource, &target.version, stored).await?;
        let object = json::decode(&encoded.bytes()).map_err(|error| Status::internal_error(&error.to_string()))?;
        Ok(request.fields.matches(|field| by_key(field).unwrap_or_else(|| select_field(&object, field))))
    }
}

/// The text of a selectable field; a missing one is empty.
fn select_field(object: &Value, field: &str) -> String {
    let found = JsonPath::parse(&format!(".{field}")).ok().and_then(|path| {
        let found = path.find(object).ok()?;
        found.first().map(|value| crate::value::go_print(value))
    });
    found.unwrap_or_default()
}

/// The namespace and the name in a key.
pub(super) fn split_key<'k>(target: &Target, key: &'k str) -> (&'k str, &'k str) {
    match target.version.is_namespaced() {
        true => key.split_once('/').unwrap_or(("", key)),
        false => ("", key),
    }
}

/// A token whose revision is gone: the client may go on, but no longer at that revision.
fn continue_failed(error: SnapshotError, token: &ContinueToken) -> Status {
    match error {
        SnapshotError::Expired { .. } => {
            let onward = ContinueToken { revision: None, start: token.start.clone() };
            Status::expired_continue(onward.encode(""))
        }
        SnapshotError::Store(error) => store_failed(error),
    }
}
