//! LIST: a consistent page of a collection.

use std::sync::Arc;

use crate::memory::Reservation;
use crate::meta::minor::Minor;
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::meta::{Revision, Status};
use crate::store::continue_token::ContinueToken;
use crate::store::{
    At, ChangeFindings, Collection, CollectionPart, Encoded, KeyRange, PAGE_OBJECTS, PageEnd, PartReader, PartRequest,
    PartSize, Selectable, Snapshot, SnapshotError, Stored,
};
use crate::work;

use super::derive::{UNREADABLE_BYTES_MAX, UNREADABLE_MAX, Undecodable, decode_derived, refuse_list};
use super::selection::Selection;
use super::{Registry, Target, store_failed};

/// The revision that a list shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ListAt {
    /// The newest.
    #[default]
    Newest,
    /// This one or a newer one.
    AtLeast(Revision),
    /// This one.
    Exact(Revision),
    /// The one in the token of the previous page.
    Continue(ContinueToken),
}

/// The parameters of a LIST.
#[derive(Clone, Debug, Default)]
pub struct ListRequest {
    pub at: ListAt,
    /// 0 for no limit.
    pub limit: usize,
    /// The limit for a collection that is too large for memory, if there is no other; 0 for none.
    pub limit_if_large: usize,
    /// Whose memory a page takes that is read from the database.
    pub reader: PartReader,
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
    /// The memory of items that are in memory for this page alone.
    pub reserved: Option<Reservation>,
}

impl ListPage {
    /// Where the newest state of a list of `target` goes on after this page; `None` after the last.
    pub fn next_at_newest(&self, target: &Target) -> Option<ListAt> {
        let token = ContinueToken::decode(&self.continue_token, &key_prefix(target)).ok()?;
        Some(ListAt::Continue(ContinueToken { revision: None, ..token }))
    }
}

impl Registry {
    /// The objects of `target`'s collection (and namespace) that the selectors select, in the order of their keys.
    ///
    /// Errors: 410 for a revision that has been compacted, 504 for one that does not exist yet.
    pub async fn list(&self, target: &Target, request: &ListRequest) -> Result<ListPage, Status> {
        let collection = &target.resource.collection;
        let (revision, start) = match &request.at {
            ListAt::Newest => (None, None),
            ListAt::AtLeast(revision) | ListAt::Exact(revision) => (Some(*revision), None),
            ListAt::Continue(token) => (token.revision, Some(token.start.as_str())),
        };
        self.wait_for(&target.resource, revision).await?;
        let at = match (&request.at, revision) {
            (ListAt::Exact(_) | ListAt::Continue(_), Some(revision)) => At::Exact(revision),
            _ => At::Newest,
        };
        let (range, limit) = (request.range(target, start), request.limit.max(request.limit_if_large));
        let size = match limit {
            0 => PartSize::All,
            // One more shows whether there is a next page.
            _ if request.selects_all() => PartSize::First(limit.saturating_add(1)),
            // Few may be selected.
            _ => PartSize::First(limit.saturating_add(1).max(PAGE_OBJECTS)),
        };
        let reader = request.reader.clone();
        let part = self.storage.part(collection, PartRequest { at, range, size, reader }).await;
        let mut part = part.map_err(|error| match (&request.at, error) {
            (ListAt::Continue(token), error) => continue_failed(collection, error, token, &key_prefix(target)),
            (_, error) => list_failed(collection, error),
        })?;
        let page = self.page(target, request, &part, start).await?;
        Ok(ListPage { reserved: part.take_reserved(), ..page })
    }

    /// The objects of `target`'s collection at a revision, or those of its namespace if the collection is too large for
    /// memory.
    pub(super) async fn part(
        &self,
        target: &Target,
        at: At,
        reader: PartReader,
    ) -> Result<CollectionPart, SnapshotError> {
        let (range, size) = (KeyRange::of(&key_prefix(target)), PartSize::All);
        self.storage.part(&target.resource.collection, PartRequest { at, range, size, reader }).await
    }

    /// The page of `part` from the key `start` on.
    async fn page(
        &self,
        target: &Target,
        request: &ListRequest,
        part: &CollectionPart,
        start: Option<&str>,
    ) -> Result<ListPage, Status> {
        let (snapshot, prefix) = (part.snapshot(), key_prefix(target));
        let selection = Selection::bind(&request.labels, &request.fields, target);
        let selects_all = selection.is_empty();
        let limit = request.limit_of(part);
        let (items, is_full) = self.select(target, (&selection, limit), (snapshot, start), request).await?;
        let last_key = items.last().map_or("", |(stored, _)| &*stored.key);
        let revision = snapshot.revision();
        // There is a next page if any object follows, whether it is selected or not, or any of an index.
        let next = part.next_key().filter(|_| !is_full);
        let onward = next.map_or_else(|| format!("{last_key}\0"), str::to_owned);
        let mut rest = snapshot.range(&prefix, Some(&onward));
        let follows = match indexed(target, request) {
            _ if !is_full || part.next_key().is_some() => part.next_key().is_some(),
            Some(index) => self.any_selected(target, &index, &mut rest).await,
            None => rest.next().is_some(),
        };
        if !follows {
            return Ok(ListPage { items, revision, continue_token: String::new(), remaining: None, reserved: None });
        }
        let token = ContinueToken { revision: Some(revision), start: onward.clone() };
        let continue_token = token.encode(&prefix);
        if !part.is_whole() {
            return Ok(ListPage { items, revision, continue_token, remaining: None, reserved: None });
        }
        let remaining = selects_all.then(|| {
            let from = self.count_from(snapshot, &prefix, start);
            from.map_or_else(|| rest.count() + 1, |from| from.saturating_sub(items.len()))
        });
        let page_end = remaining.map(|remaining| PageEnd {
            prefix: prefix.as_str().into(),
            start: onward.as_str().into(),
            remaining,
        });
        self.storage.pin(snapshot, page_end);
        Ok(ListPage { items, revision, continue_token, remaining, reserved: None })
    }

    /// The first objects of `snapshot` from the key `start` on that are selected, and whether the page is full: it has as
    /// many as it may, or as many bytes as may be held for a slow client.
    async fn select(
        &self,
        target: &Target,
        (selection, limit): (&Selection, usize),
        (snapshot, start): (&Snapshot, Option<&str>),
        request: &ListRequest,
    ) -> Result<(Vec<(Arc<Stored>, Encoded)>, bool), Status> {
        let (prefix, selects_all) = (key_prefix(target), selection.is_empty());
        let bytes_max = if request.limit == 0 { usize::MAX } else { self.memory.page_bytes_max() };
        let (mut items, mut bytes, mut is_full) = (Vec::new(), 0_usize, false);
        for stored in snapshot.range_of(&prefix, start, target.resource.required_labels(&request.labels)) {
            work::step();
            if !selects_all {
                match self.selects(target, selection, stored, None).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(_) => return Err(self.unreadable(target, snapshot, &prefix).await),
                }
            }
            let Ok(encoded) = self.encoded(&target.resource, &target.version, stored).await else {
                return Err(self.unreadable(target, snapshot, &prefix).await);
            };
            bytes = bytes.saturating_add(stored.bytes.len());
            items.push((Arc::clone(stored), encoded));
            is_full = items.len() == limit || bytes > bytes_max;
            if is_full {
                break;
            }
        }
        Ok((items, is_full))
    }

    /// Whether `selection` selects any of these objects; one that can't be read counts.
    async fn any_selected<'s>(
        &self,
        target: &Target,
        selection: &Selection,
        objects: &mut impl Iterator<Item = &'s Arc<Stored>>,
    ) -> bool {
        for stored in objects {
            work::step();
            if !matches!(self.selects(target, selection, stored, None).await, Ok(false)) {
                return true;
            }
        }
        false
    }

    /// How many objects of a list there are from the key `start` on, if that is known without counting: otherwise every
    /// page would walk over all the following objects.
    fn count_from(&self, snapshot: &Snapshot, prefix: &str, start: Option<&str>) -> Option<usize> {
        match start {
            None => prefix.is_empty().then(|| snapshot.len()),
            Some(start) => self.storage.remaining(snapshot, prefix, start),
        }
    }

    /// The answer to a list that found an unreadable object: it names the first ones, on whatever page they are.
    async fn unreadable(&self, target: &Target, snapshot: &Snapshot, prefix: &str) -> Status {
        let (mut unreadable, mut bytes, mut is_cut) = (Vec::new(), 0, false);
        for stored in snapshot.range(prefix, None) {
            work::step();
            if let Err(error) = self.encoded(&target.resource, &target.version, stored).await {
                bytes += error.to_string().len();
                unreadable.push((Arc::clone(stored), error));
                is_cut = unreadable.len() == UNREADABLE_MAX || bytes > UNREADABLE_BYTES_MAX;
                if is_cut {
                    break;
                }
            }
        }
        refuse_list(&target.resource, &unreadable, is_cut)
    }

    /// Whether `selection` selects `stored` in the requested version; watches share the `findings` about a change.
    pub(super) async fn selects(
        &self,
        target: &Target,
        selection: &Selection,
        stored: &Arc<Stored>,
        findings: Option<&ChangeFindings>,
    ) -> Result<bool, Undecodable> {
        let is_converted = target.resource.is_converted_by_webhook(&target.version, stored);
        if !is_converted && !selection.selects_labels(stored.sorted_labels()) {
            return Ok(false);
        }
        if !selection.selects_key(split_key(target, &stored.key)) {
            return Ok(false);
        }
        if !selection.reads(is_converted) {
            return Ok(true);
        }
        let seen = self.seen(target, selection, stored, findings).await?;
        // Those after the conversion.
        Ok((!is_converted || selection.selects_labels(&Some(&seen.labels))) && selection.selects_fields(&seen))
    }

    /// What `stored` shows to selectors in the requested version.
    async fn seen(
        &self,
        target: &Target,
        selection: &Selection,
        stored: &Arc<Stored>,
        findings: Option<&ChangeFindings>,
    ) -> Result<Arc<Selectable>, Undecodable> {
        let Target { resource, version, .. } = target;
        if let Some(known) = findings.and_then(|findings| findings.selectable(version, stored.revision)) {
            return Ok(known);
        }
        let encoded = self.encoded(resource, version, stored).await?;
        let is_converted = resource.is_converted_by_webhook(version, stored);
        let see = || Ok(selection.see(&decode_derived(&encoded)?, is_converted));
        match findings {
            Some(findings) => findings.selectable_or(version, stored.revision, see),
            None => see().map(Arc::new),
        }
    }
}

/// What a list selects by an index, if the reference's cache answers it by one: not at an exact revision, and not where it
/// goes on at a token.
///
/// Source: `waitUntilFreshAndList` of `pkg/storage/cacher/watch_cache.go` in apiserver 1.37; before 1.34 the store answers
/// lists with a limit.
fn indexed(target: &Target, request: &ListRequest) -> Option<Selection> {
    const CACHED_SINCE: Minor = Minor::of(34);
    let field = target.resource.strategy.indexed_field()?;
    let is_cached = matches!(request.at, ListAt::Newest | ListAt::AtLeast(_)) && target.version.minor >= CACHED_SINCE;
    let value = request.fields.requires_exact(field).filter(|_| is_cached)?;
    Some(Selection::bind(&LabelSelector::default(), &FieldSelector::exactly(field, value), target))
}

/// The prefix of the keys of `target`'s collection.
pub(super) fn key_prefix(target: &Target) -> String {
    if target.version.is_namespaced() && !target.namespace.is_empty() {
        format!("{}/", target.namespace)
    } else {
        String::new()
    }
}

/// The namespace and the name in a key.
pub(super) fn split_key<'k>(target: &Target, key: &'k str) -> (&'k str, &'k str) {
    if target.version.is_namespaced() { key.split_once('/').unwrap_or(("", key)) } else { ("", key) }
}

impl ListRequest {
    /// All objects, in pages if the collection is too large for memory.
    pub fn in_pages() -> Self {
        ListRequest { limit_if_large: PAGE_OBJECTS, ..ListRequest::default() }
    }

    fn selects_all(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// How many objects a page of a part may have.
    fn limit_of(&self, part: &CollectionPart) -> usize {
        let limit = if part.is_whole() { self.limit } else { self.limit.max(self.limit_if_large) };
        if limit == 0 { usize::MAX } else { limit }
    }

    /// The keys of what it lists, as far as they are known.
    fn range(&self, target: &Target, start: Option<&str>) -> KeyRange {
        let prefix = key_prefix(target);
        let has_keys = !prefix.is_empty() || !target.version.is_namespaced();
        let range = match self.fields.requires_exact("metadata.name").filter(|_| has_keys) {
            Some(name) => KeyRange::one(&format!("{prefix}{name}")),
            None => KeyRange::of(&prefix),
        };
        start.into_iter().fold(range, KeyRange::starting)
    }
}

/// The answer to a list whose state can't be read.
pub(super) fn list_failed(collection: &Collection, error: SnapshotError) -> Status {
    match error {
        SnapshotError::Expired { .. } => Status::expired("The resourceVersion for the provided list is too old."),
        SnapshotError::Store(error) => store_failed(collection, "list", error),
    }
}

/// The answer to a token whose revision is gone: the client may continue, but no longer at that revision.
fn continue_failed(collection: &Collection, error: SnapshotError, token: &ContinueToken, prefix: &str) -> Status {
    match error {
        SnapshotError::Expired { .. } => {
            let onward = ContinueToken { revision: None, start: token.start.clone() };
            Status::expired_continue(onward.encode(prefix))
        }
        SnapshotError::Store(error) => store_failed(collection, "list", error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{compact, create_namespace, newest, registry, target};
    use super::*;

    fn names(page: &ListPage) -> Vec<&str> {
        page.items.iter().map(|(stored, _)| &*stored.key).collect()
    }

    async fn page(registry: &Registry, target: &Target, at: ListAt) -> Result<ListPage, Status> {
        registry.list(target, &ListRequest { at, limit: 2, ..ListRequest::default() }).await
    }

    fn token(text: &str) -> ListAt {
        ListAt::Continue(ContinueToken::decode(text, "").expect("it is ours"))
    }

    #[tokio::test]
    async fn pages_show_the_state_of_the_first_one() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let first = page(&registry, &namespaces, ListAt::Newest).await.expect("it lists");
        assert_eq!((names(&first), first.remaining), (vec!["default", "kube-node-lease"], Some(2)));

        create_namespace(&registry, "kube-z").await;
        let second = page(&registry, &namespaces, token(&first.continue_token)).await.expect("it goes on");

        assert_eq!((names(&second), second.remaining), (vec!["kube-public", "kube-system"], None));
        assert_eq!((second.revision, second.continue_token.as_str()), (first.revision, ""));
    }

    #[test]
    fn a_page_takes_no_more_steps_where_many_follow() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
        let (registry, namespaces) = runtime.block_on(async {
            let registry = registry().await;
            for at in 0..60 {
                create_namespace(&registry, &format!("n-{at}")).await;
            }
            let namespaces = target(&registry, "", "namespaces").await;
            (registry, namespaces)
        });
        let (mut at, mut steps, mut remaining) = (ListAt::Newest, Vec::new(), Vec::new());
        loop {
            let (page, taken) = work::counted(|| runtime.block_on(page(&registry, &namespaces, at)));
            let page = page.expect("it lists");
            steps.push(taken);
            remaining.extend(page.remaining);
            if page.continue_token.is_empty() {
                break;
            }
            at = token(&page.continue_token);
        }
        // 64 in pages of two.
        assert_eq!(remaining, (1..32).rev().map(|pages| 2 * pages).collect::<Vec<_>>());
        let (first, last) = (steps[0], steps[30]);
        assert!(first.max(steps[1]) < last + 20, "{steps:?}");
    }

    #[test]
    fn ten_times_the_objects_take_ten_times_the_steps() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
        let steps = |count: usize| {
            let (registry, namespaces) = runtime.block_on(async {
                let registry = registry().await;
                for at in 0..count {
                    create_namespace(&registry, &format!("n-{at}")).await;
                }
                let namespaces = target(&registry, "", "namespaces").await;
                (registry, namespaces)
            });
            let request =
                ListRequest { labels: LabelSelector::parse("a!=b").expect("it is one"), ..Default::default() };
            let (page, steps) = work::counted(|| runtime.block_on(registry.list(&namespaces, &request)));
            assert_eq!(page.expect("it lists").items.len(), count + 4);
            steps
        };
        let (few, many) = (steps(20), steps(200));
        assert!(many > 200 && many < 13 * few, "{few} and {many} steps");
    }

    #[tokio::test]
    async fn a_token_whose_state_is_gone_comes_back_as_one_for_the_newest() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let first = page(&registry, &namespaces, ListAt::Newest).await.expect("it lists");
        create_namespace(&registry, "kube-z").await;
        compact(&registry).await;

        let gone = page(&registry, &namespaces, token(&first.continue_token)).await.err().expect("it is too old");
        assert_eq!((gone.code, gone.reason.as_str()), (410, "Expired"));
        assert!(gone.message.starts_with("The provided continue parameter is too old"), "{}", gone.message);

        let onward = page(&registry, &namespaces, token(&gone.continue_token)).await.expect("it goes on");
        assert_eq!(names(&onward), ["kube-public", "kube-system"]);
        assert!(onward.revision > first.revision);
        let last = page(&registry, &namespaces, token(&onward.continue_token)).await.expect("it goes on");
        assert_eq!((names(&last), last.revision), (vec!["kube-z"], onward.revision));
    }

    #[tokio::test]
    async fn a_token_for_the_newest_is_of_the_same_namespace() {
        let prefix = "team/";
        let token = ContinueToken { revision: Some(Revision::new(1)), start: "team/a\0".to_owned() };
        let (collection, expired) = (Collection::new("", "x"), SnapshotError::Expired { compacted: Revision::new(2) });
        let gone = continue_failed(&collection, expired, &token, prefix);
        let onward = ContinueToken::decode(&gone.continue_token, prefix);
        assert_eq!(onward, Ok(ContinueToken { revision: None, start: "team/a\0".to_owned() }));
    }

    #[tokio::test]
    async fn a_state_that_is_gone_is_too_old_and_one_to_come_too_large() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let before = newest(&registry);
        create_namespace(&registry, "team").await;

        let exact = page(&registry, &namespaces, ListAt::Exact(before)).await.expect("it is there");
        assert_eq!(exact.revision, before);
        compact(&registry).await;
        let gone = page(&registry, &namespaces, ListAt::Exact(before)).await.err().expect("it is too old");
        assert_eq!(gone, Status::expired("The resourceVersion for the provided list is too old."));

        let newest = newest(&registry);
        let to_come = Revision::new(newest.get() + 1_000);
        let token = ContinueToken { revision: Some(to_come), start: String::new() };
        for at in [ListAt::Exact(to_come), ListAt::AtLeast(to_come), ListAt::Continue(token)] {
            let early = page(&registry, &namespaces, at).await.err().expect("it is not there yet");
            assert_eq!(early, Status::too_large_resource_version(to_come, newest));
        }
    }
}
