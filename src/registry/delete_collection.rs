//! DELETE of a collection, and of what a page of one lists.

use futures_util::stream::{FuturesOrdered, StreamExt as _};

use crate::auth::UserInfo;
use crate::meta::Status;

use super::delete::{DeleteRequest, Named};
use super::list::{ListAt, ListPage, ListRequest};
use super::{Registry, Target, Warnings};

/// How many objects of a collection are deleted concurrently: as many as fit into one transaction.
const DELETIONS_AT_ONCE: usize = 256;

type Deleted = Result<(), Status>;

impl Registry {
    /// Deletes every object that `list` selects, and answers them as they were before; `None` if a list without a limit was
    /// read in pages, as memory can't hold them all.
    pub async fn delete_collection(
        &self,
        target: &Target,
        user: &UserInfo,
        mut list: ListRequest,
        options: &DeleteRequest,
        warnings: &mut Warnings,
    ) -> Result<Option<ListPage>, Status> {
        let exact = match &list.at {
            ListAt::Exact(revision) => Some(*revision),
            ListAt::Continue(token) => token.revision,
            ListAt::Newest | ListAt::AtLeast(_) => None,
        };
        let mut is_first = true;
        loop {
            let mut page = self.list(target, &list).await?;
            page.items.retain(|(stored, _)| exact.is_none_or(|exact| stored.created <= exact));
            self.delete_listed(target, &page, user, options, warnings).await?;
            // What has changed since a revision would be read again for each page, and that includes all deletions.
            match page.next_at_newest(target) {
                Some(next) if list.limit == 0 => (list.at, is_first) = (next, false),
                _ => return Ok(is_first.then_some(page)),
            }
        }
    }

    /// Deletes the objects of a page.
    pub async fn delete_listed(
        &self,
        target: &Target,
        page: &ListPage,
        user: &UserInfo,
        options: &DeleteRequest,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        self.delete_each(target, page, Some(user), options, warnings).await
    }

    /// Deletes every object of `page` without admission, as the definition of them all is being deleted.
    ///
    /// Source: `deleteInstances` of `pkg/controller/finalizer/crd_finalizer.go` in apiextensions-apiserver, which calls
    /// the store itself.
    pub async fn delete_all_unasked(&self, target: &Target, page: &ListPage) -> Result<(), Status> {
        self.delete_each(target, page, None, &DeleteRequest::default(), &mut Warnings::default()).await
    }

    /// Deletes the objects of `page`, up to the first that can't be deleted; without a user, admission is not asked, and those
    /// after it are deleted too.
    async fn delete_each(
        &self,
        target: &Target,
        page: &ListPage,
        user: Option<&UserInfo>,
        options: &DeleteRequest,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        // Together, they are written to disk in batches, in the order of their keys.
        let mut deletions = FuturesOrdered::new();
        let (mut objects, mut outcome) = (page.items.iter(), Ok(()));
        loop {
            if deletions.len() < DELETIONS_AT_ONCE
                && let Some((stored, _)) = objects.next()
            {
                deletions.push_back(self.delete_if_there(target.of_key(&stored.key), user, options));
                continue;
            }
            let Some((deleted, found)) = deletions.next().await else { return outcome };
            warnings.absorb(found.into_notes());
            outcome = outcome.and(deleted);
            if outcome.is_err() && user.is_some() {
                return outcome;
            }
        }
    }

    async fn delete_if_there(
        &self,
        target: Target,
        user: Option<&UserInfo>,
        options: &DeleteRequest,
    ) -> (Deleted, Warnings) {
        let mut warnings = Warnings::default();
        let deleted = match user {
            Some(user) => self.delete_one(&target, Named::Collection, user, options, &mut warnings).await.map(drop),
            None => self.delete_unasked(&target, options).await,
        };
        if deleted.is_ok() && user.is_some() {
            // Boxed: hardly any kind has one, and many are deleted at once.
            Box::pin(self.follow_up(&target, &target.name)).await;
        }
        let outcome = match deleted {
            Err(status) if status.code == 404 => Ok(()),
            other => other,
        };
        (outcome, warnings)
    }
}
