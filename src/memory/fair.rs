//! Units of something scarce, of which every user gets a share.
//!
//! Input: which user asks for how many units, and until when. Output: [`FairUnits`], or nothing if they are not free in
//! time. A user who has no units gets up to half of all, rounded up, as soon as they are free. One who has some gets more
//! only if about as many are left free then as the user has: so one user has at most half of all, two who always ask for
//! more come to a third each, and however many they are, some are left for the next one.
//!
//! Users whose units are not free wait, each in a line of its own; the lines take turns, and only the first of a line can
//! be next. A line whose user has too much already is passed over. One that waits for units to become free is not, or
//! many small requests would always come before a large one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

/// A number of units that users share.
#[derive(Debug)]
pub struct FairPool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    units: u32,
    user_units_max: u32,
    state: Mutex<PoolState>,
}

/// A user; `None` for everybody whose share is not limited.
type User = Option<Arc<str>>;

/// Who has how many units, and who waits for some.
#[derive(Debug)]
struct PoolState {
    free: u32,
    unlimited: Line,
    /// The users who have units or wait for some.
    users: HashMap<Arc<str>, Line>,
    /// The users with a line, in the order of their turns.
    turns: VecDeque<User>,
}

/// What a user has, and what the user waits for.
#[derive(Debug, Default)]
struct Line {
    taken: u32,
    waiting: VecDeque<QueuedRequest>,
}

#[derive(Debug)]
struct QueuedRequest {
    units: u32,
    granted: oneshot::Sender<FairUnits>,
}

/// Units that were granted, and who is to be told.
type Grant = (oneshot::Sender<FairUnits>, FairUnits);

/// A place in a line, until this is dropped.
#[derive(Debug)]
struct Turn<'p> {
    pool: &'p Arc<Shared>,
    granted: oneshot::Receiver<FairUnits>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.granted.close();
        // It may have been in the way of others.
        self.pool.pass_on(self.pool.state());
    }
}

/// Whether a user may have more units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Fits,
    /// Once others give units back.
    NotFree,
    /// Once the user gives units back, or others give back many.
    OverShare,
}

/// Units that are taken until this is dropped.
#[derive(Debug)]
pub struct FairUnits {
    pool: Arc<Shared>,
    user: User,
    units: u32,
}

impl FairUnits {
    /// How many units these are.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Gives back all but so many units.
    pub fn shrink(&mut self, units: u32) {
        let surplus = self.units.saturating_sub(units);
        self.units -= surplus;
        self.pool.give_back(&self.user, surplus);
    }

    /// Takes more units of the same pool for the same user, at once or not at all.
    pub fn more(&self, units: u32) -> Option<FairUnits> {
        let mut state = self.pool.state();
        (state.fit(&self.user, units) == Fit::Fits).then(|| self.pool.grant(&mut state, self.user.clone(), units))
    }
}

impl Drop for FairUnits {
    fn drop(&mut self) {
        self.pool.give_back(&self.user, self.units);
    }
}

impl FairPool {
    /// A pool of so many units, at most `u32::MAX`.
    pub fn new(units: usize) -> Self {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        let (unlimited, users, turns) = Default::default();
        let state = Mutex::new(PoolState { free: units, unlimited, users, turns });
        FairPool(Arc::new(Shared { units, user_units_max: units.div_ceil(2), state }))
    }

    /// Takes units for `user`, or for somebody whose share is not limited (`None`). More units than a user may have are
    /// reduced to as many as the user may have. `None` if they are not free before `until`.
    pub async fn take(&self, user: Option<&str>, units: u32, until: Instant) -> Option<FairUnits> {
        match self.ask(user, units) {
            Ok(taken) => Some(taken),
            // Boxed, as few have to wait, and all futures around this one would carry and move it.
            Err(mut turn) => Box::pin(async move { timeout_at(until, &mut turn.granted).await.ok()?.ok() }).await,
        }
    }

    /// Takes units as [`FairPool::take`] does, at once or not at all.
    pub fn try_take(&self, user: Option<&str>, units: u32) -> Option<FairUnits> {
        let mut state = self.0.state();
        let user = state.known(user);
        self.0.grant_now(&mut state, &user, self.0.most_of(&user, units))
    }

    /// Takes units at once, or joins the user's line.
    fn ask(&self, user: Option<&str>, units: u32) -> Result<FairUnits, Turn<'_>> {
        let mut state = self.0.state();
        let user = state.known(user);
        let units = self.0.most_of(&user, units);
        self.0.grant_now(&mut state, &user, units).ok_or_else(|| {
            let (granter, granted) = oneshot::channel();
            state.join(user, QueuedRequest { units, granted: granter });
            self.0.pass_on(state);
            Turn { pool: &self.0, granted }
        })
    }

    /// How many units are free.
    pub fn free(&self) -> usize {
        self.0.state().free as usize
    }

    /// Whether none is taken.
    pub fn is_idle(&self) -> bool {
        self.free() == self.0.units as usize
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many units, or as many as the user may have.
    fn most_of(&self, user: &User, units: u32) -> u32 {
        units.min(if user.is_some() { self.user_units_max } else { self.units })
    }

    fn grant_now(self: &Arc<Self>, state: &mut PoolState, user: &User, units: u32) -> Option<FairUnits> {
        let is_next = state.may_be_next(user) && state.fit(user, units) == Fit::Fits;
        is_next.then(|| self.grant(state, user.clone(), units))
    }

    fn grant(self: &Arc<Self>, state: &mut PoolState, user: User, units: u32) -> FairUnits {
        state.free -= units;
        state.of(&user).taken += units;
        FairUnits { pool: Arc::clone(self), user, units }
    }

    fn give_back(self: &Arc<Self>, user: &User, units: u32) {
        let mut state = self.state();
        state.free += units;
        state.of(user).taken -= units;
        state.forget(user);
        self.pass_on(state);
    }

    /// Grants what fits to those who wait.
    fn pass_on(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        let mut grants = Vec::new();
        self.settle(&mut state, &mut grants);
        drop(state);
        self.deliver(grants);
    }

    /// Tells those who wait what they were granted. Whoever gave up meanwhile gives it back.
    fn deliver(self: &Arc<Self>, grants: Vec<Grant>) {
        for (granted, units) in grants {
            drop(granted.send(units));
        }
    }

    /// Grants what fits to the first of the lines in turn. The first line that waits for units to become free stays in
    /// front, and ends this.
    fn settle(self: &Arc<Self>, state: &mut PoolState, grants: &mut Vec<Grant>) {
        let mut passed_over = 0;
        while passed_over < state.turns.len() {
            let Some(user) = state.turns.pop_front() else { break };
            let Some(units) = state.first_waiting(&user) else {
                state.forget(&user);
                continue;
            };
            match state.fit(&user, units) {
                Fit::Fits => {
                    let units = self.grant(state, user.clone(), units);
                    let line = &mut state.of(&user).waiting;
                    grants.extend(line.pop_front().map(|first| (first.granted, units)));
                    if !line.is_empty() {
                        state.turns.push_back(user);
                    }
                    passed_over = 0;
                }
                Fit::OverShare => {
                    state.turns.push_back(user);
                    passed_over += 1;
                }
                Fit::NotFree => {
                    state.turns.push_front(user);
                    break;
                }
            }
        }
    }
}

impl PoolState {
    /// The user with this name.
    fn known(&self, name: Option<&str>) -> User {
        name.map(|name| self.users.get_key_value(name).map_or_else(|| name.into(), |(user, _)| Arc::clone(user)))
    }

    fn get(&self, user: &User) -> Option<&Line> {
        match user {
            Some(user) => self.users.get(user),
            None => Some(&self.unlimited),
        }
    }

    fn of(&mut self, user: &User) -> &mut Line {
        match user {
            Some(user) => self.users.entry(Arc::clone(user)).or_default(),
            None => &mut self.unlimited,
        }
    }

    /// Forgets a user who has nothing and waits for nothing.
    fn forget(&mut self, user: &User) {
        let is_idle = |line: &Line| line.taken == 0 && line.waiting.is_empty();
        if let Some(user) = user
            && self.users.get(user).is_some_and(is_idle)
        {
            self.users.remove(user);
        }
    }

    fn fit(&self, user: &User, units: u32) -> Fit {
        let taken = self.get(user).map_or(0, |line| line.taken);
        let is_limited = user.is_some() && taken > 0;
        match self.free.checked_sub(units) {
            Some(left) if !is_limited || u64::from(taken) + u64::from(units) <= u64::from(left) + 1 => Fit::Fits,
            _ if is_limited => Fit::OverShare,
            _ => Fit::NotFree,
        }
    }

    /// Whether nobody comes before a user who asks now: no other in the user's line, and none for whom units must become
    /// free.
    fn may_be_next(&self, user: &User) -> bool {
        let first = |user: &User| self.get(user).and_then(|line| line.waiting.front());
        let is_blocking = |user: &User| first(user).is_some_and(|first| self.fit(user, first.units) == Fit::NotFree);
        first(user).is_none() && !self.turns.front().is_some_and(is_blocking)
    }

    fn join(&mut self, user: User, waiting: QueuedRequest) {
        let line = &mut self.of(&user).waiting;
        let is_new = line.is_empty();
        line.push_back(waiting);
        if is_new {
            self.turns.push_back(user);
        }
    }

    /// How many units the first in a line waits for, without those who gave up; `None` if nobody is left.
    fn first_waiting(&mut self, user: &User) -> Option<u32> {
        let line = &mut self.of(user).waiting;
        while line.front().is_some_and(|first| first.granted.is_closed()) {
            line.pop_front();
        }
        line.front().map(|first| first.units)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    const JANE: Option<&str> = Some("jane");
    const BOB: Option<&str> = Some("bob");

    /// As many single units as `user` can get.
    fn all_of(pool: &FairPool, user: Option<&str>) -> Vec<FairUnits> {
        std::iter::from_fn(|| pool.try_take(user, 1)).collect()
    }

    #[test]
    fn a_user_has_at_most_half_and_the_rest_is_for_others() {
        let pool = FairPool::new(5);
        let mut taken = all_of(&pool, JANE);
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

    #[test]
    fn however_many_users_take_all_they_get_as_much_is_left_for_the_next() {
        let pool = FairPool::new(120);
        let mut taken = Vec::new();
        for (user, free) in [("a", 60), ("b", 30), ("c", 15), ("d", 7)] {
            taken.push(all_of(&pool, Some(user)));
            assert_eq!(pool.free(), free, "{user}");
        }
        let rest = pool.try_take(JANE, 7).expect("a user without any gets what is free");
        assert_eq!(pool.free(), 0);
        drop((taken, rest));
        assert!(pool.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn two_users_who_want_all_come_to_the_same_share() {
        let pool = Arc::new(FairPool::new(30));
        let until = Instant::now() + Duration::from_secs(600);
        for user in ["jane", "bob"] {
            for _ in 0..100 {
                let pool = Arc::clone(&pool);
                tokio::spawn(async move {
                    while let Some(units) = pool.take(Some(user), 1, until).await {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        drop(units);
                    }
                });
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let state = pool.0.state();
        let taken = |user: &str| state.users.get(user).map_or(0, |line| line.taken);
        assert!((9..=11).contains(&taken("jane")) && (9..=11).contains(&taken("bob")), "{state:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_user_waits_for_is_in_nobodys_way() {
        let pool = Arc::new(FairPool::new(4));
        let until = Instant::now() + Duration::from_secs(5);
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

    #[tokio::test(start_paused = true)]
    async fn a_large_request_is_not_passed_by_small_ones_and_does_not_block_after_it_gave_up() {
        let pool = Arc::new(FairPool::new(4));
        let until = Instant::now() + Duration::from_secs(5);
        let small = pool.take(None, 3, until).await.expect("they are free");
        let large = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move { pool.take(JANE, 2, until).await }
        });
        tokio::task::yield_now().await;
        assert!(pool.try_take(BOB, 1).is_none(), "it is for the large one");
        drop(small);
        let large = large.await.expect("it does not panic").expect("it has its turn");
        let beside = [pool.try_take(BOB, 1), pool.try_take(None, 1)];
        assert!(pool.take(Some("joe"), 1, until).await.is_none());
        drop(beside);
        assert!(pool.try_take(BOB, 2).is_some(), "nobody waits any more");
        drop(large);
        assert!(pool.is_idle());
    }

    #[test]
    fn users_who_have_nothing_are_forgotten() {
        let pool = FairPool::new(4);
        let kept = pool.try_take(JANE, 2);
        for at in 0..100 {
            assert!(pool.try_take(Some(&at.to_string()), at % 3).is_some());
        }
        let waits = pool.ask(JANE, 1).expect_err("the user has enough");
        assert_eq!(pool.0.state().users.len(), 1);
        drop((kept, waits));
        assert!(pool.is_idle() && pool.0.state().users.is_empty());
    }

    proptest! {
        /// Whatever users take, wait for, give up and give back, each unit is free or taken, and nobody who fits waits.
        #[test]
        fn no_unit_is_lost_and_nobody_waits_in_vain(
            units in 1_usize..20,
            steps in prop::collection::vec((0_usize..4, 0_usize..4, 1_u32..12), 0..80),
        ) {
            let pool = FairPool::new(units);
            let users = [None, Some("a"), Some("b"), Some("c")];
            let (mut taken, mut waiting) = (Vec::new(), Vec::new());
            for (what, who, count) in steps {
                match what {
                    0 | 1 => match pool.ask(users[who], count) {
                        Ok(units) => taken.push(units),
                        Err(granted) => waiting.push(granted),
                    },
                    2 if !taken.is_empty() => drop(taken.remove(count as usize % taken.len())),
                    3 if !waiting.is_empty() => drop(waiting.remove(count as usize % waiting.len())),
                    _ => {}
                }
                waiting.retain_mut(|turn: &mut Turn<'_>| turn.granted.try_recv().map(|units| taken.push(units)).is_err());
                let state = pool.0.state();
                let of_users: u32 = state.users.values().map(|line| line.taken).sum();
                prop_assert_eq!(state.free + state.unlimited.taken + of_users, units as u32);
                prop_assert_eq!(taken.iter().map(|units| units.units).sum::<u32>() + state.free, units as u32);
                let fits = |user: &User| {
                    let first = state.get(user).and_then(|line| line.waiting.front());
                    first.is_some_and(|first| state.fit(user, first.units) == Fit::Fits)
                };
                let is_blocked = !state.may_be_next(&Some("somebody else".into()));
                prop_assert!(is_blocked || !state.turns.iter().any(fits), "{state:?}");
            }
            drop((taken, waiting));
            prop_assert!(pool.is_idle());
            let state = pool.0.state();
            prop_assert!(state.users.is_empty() && state.turns.is_empty(), "{state:?}");
        }
    }
}
