//! Units of something scarce, of which no user has more than a share.
//!
//! Input: which user asks for how many units, and until when. Output: [`FairUnits`], or nothing if they are not free in
//! time. One user has at most half of all units, rounded up. Whatever else the user asks for waits for the user's own
//! units, so it is in nobody's way. Within that bound, units go to whoever came first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// A number of units that users share.
#[derive(Debug)]
pub struct FairPool {
    free: Arc<Semaphore>,
    units: u32,
    user_units_max: u32,
    /// What each user may still take. It is kept while the user has units or waits for some.
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// Units that are taken until this is dropped.
#[derive(Debug)]
pub struct FairUnits {
    /// The user's own part; `None` for a user without a limit.
    of_user: Option<OwnedSemaphorePermit>,
    of_all: OwnedSemaphorePermit,
}

impl FairUnits {
    /// Takes more units of the same pool for the same user, at once or not at all.
    pub fn more(&self, units: u32) -> Option<FairUnits> {
        let take = |part: &OwnedSemaphorePermit| Arc::clone(part.semaphore()).try_acquire_many_owned(units).ok();
        let of_user = match &self.of_user {
            Some(of_user) => Some(take(of_user)?),
            None => None,
        };
        Some(FairUnits { of_user, of_all: take(&self.of_all)? })
    }
}

impl FairPool {
    /// A pool of so many units.
    pub fn new(units: usize) -> Self {
        let units = u32::try_from(units.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let (free, users) = (Arc::new(Semaphore::new(units as usize)), Mutex::default());
        FairPool { free, units, user_units_max: units.div_ceil(2), users }
    }

    /// Takes units for `user`, or for somebody whose share is not limited (`None`). More units than a user may have are
    /// reduced to as many as the user may have. `None` if they are not free before `until`.
    pub async fn take(&self, user: Option<&str>, units: u32, until: Instant) -> Option<FairUnits> {
        match self.try_take(user, units) {
            Some(taken) => Some(taken),
            // Boxed, as few have to wait, and all futures around this one would carry and move it.
            None => Box::pin(timeout_at(until, self.wait_for(user, units))).await.ok()?,
        }
    }

    async fn wait_for(&self, user: Option<&str>, units: u32) -> Option<FairUnits> {
        let units = units.min(self.units_max(user));
        let of_user = match user {
            Some(user) => Some(self.of(user).acquire_many_owned(units).await.ok()?),
            None => None,
        };
        let of_all = Arc::clone(&self.free).acquire_many_owned(units).await.ok()?;
        Some(FairUnits { of_user, of_all })
    }

    /// Takes units as [`FairPool::take`] does, at once or not at all.
    pub fn try_take(&self, user: Option<&str>, units: u32) -> Option<FairUnits> {
        let units = units.min(self.units_max(user));
        let of_user = match user {
            Some(user) => Some(self.of(user).try_acquire_many_owned(units).ok()?),
            None => None,
        };
        let of_all = Arc::clone(&self.free).try_acquire_many_owned(units).ok()?;
        Some(FairUnits { of_user, of_all })
    }

    /// How many units are free.
    pub fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Whether none is taken.
    pub fn is_idle(&self) -> bool {
        self.free() == self.units as usize
    }

    fn units_max(&self, user: Option<&str>) -> u32 {
        if user.is_some() { self.user_units_max } else { self.units }
    }

    /// What a user may still take.
    fn of(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = users.get(user).and_then(Weak::upgrade) {
            return known;
        }
        // Before the table grows, those who have nothing any more are forgotten.
        if users.len() == users.capacity() {
            users.retain(|_, of_user| of_user.strong_count() > 0);
        }
        let of_user = Arc::new(Semaphore::new(self.user_units_max as usize));
        users.insert(user.to_owned(), Arc::downgrade(&of_user));
        of_user
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const JANE: Option<&str> = Some("jane");
    const BOB: Option<&str> = Some("bob");

    #[test]
    fn a_user_has_at_most_half_and_the_rest_is_for_others() {
        let pool = FairPool::new(5);
        let mut taken: Vec<_> = std::iter::from_fn(|| pool.try_take(JANE, 1)).collect();
        assert_eq!((taken.len(), pool.free()), (3, 2));
        taken.push(pool.try_take(BOB, 1).expect("there is one for another user"));
        taken.push(pool.try_take(None, 1).expect("there is another one"));
        assert!(pool.try_take(None, 1).is_none(), "nobody has more than there is");
        drop(taken);
        assert_eq!(pool.free(), 5);
        let all_of_user = pool.try_take(JANE, 9).expect("it is reduced to what the user may have");
        assert_eq!(pool.free(), 2);
        drop(all_of_user);
        let all = pool.try_take(None, 9).expect("it is reduced to all");
        assert_eq!(pool.free(), 0);
        drop(all);
        assert!(pool.is_idle());
        let own = pool.try_take(JANE, 2).expect("they are free");
        let more = own.more(1).expect("the user has one left");
        assert!(own.more(1).is_none() && pool.free() == 2, "half is the most");
        drop((own, more));
        let own = pool.try_take(None, 2).expect("they are free");
        assert!(own.more(3).is_some() && own.more(4).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_user_waits_for_is_in_nobodys_way() {
        let pool = Arc::new(FairPool::new(4));
        let until = Instant::now() + std::time::Duration::from_secs(5);
        let taken = pool.take(JANE, 2, until).await.expect("they are free");
        let waiting: Vec<_> = (0..100)
            .map(|_| {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move { pool.take(JANE, 1, until).await.is_some() })
            })
            .collect();
        tokio::task::yield_now().await;
        let others = pool.take(BOB, 2, until).now_or_never().flatten().expect("they are free for another user");
        assert_eq!(pool.free(), 0);
        drop((taken, others));
        for waiting in waiting {
            assert!(waiting.await.expect("it does not panic"), "each has its turn");
        }
        let taken = pool.take(JANE, 2, until).await;
        assert!(pool.take(JANE, 1, until).await.is_none(), "it waits, then it is refused");
        drop(taken);
    }

    #[test]
    fn users_who_have_nothing_are_forgotten() {
        let pool = FairPool::new(4);
        let kept = pool.try_take(JANE, 2);
        for at in 0..10_000 {
            assert!(pool.try_take(Some(&at.to_string()), 2).is_some());
        }
        assert!(pool.users.lock().expect("no thread panics").len() < 100);
        assert!(pool.try_take(JANE, 1).is_none(), "whoever has something is not forgotten");
        drop(kept);
    }
}
