//! Memory for requests. What is small has a part of it that nothing else takes, so it does not wait behind what is
//! large.

use futures_util::future::select;
use tokio::time::Instant;

use super::fair::{FairPool, FairUnits};
use super::{UNIT_BYTES, units_for};

/// What takes so many bytes at most is small, such as most writes.
pub const SMALL_BYTES_MAX: usize = 128 << 10;
/// The part of the memory that is for what is small alone, as a divisor.
const SMALL_SHARE: usize = 8;

/// Memory that requests share.
#[derive(Debug)]
pub struct RequestPool {
    of_all: FairPool,
    of_small: FairPool,
}

impl RequestPool {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        let small_bytes = bytes / SMALL_SHARE;
        let pool = |bytes: usize| FairPool::new(bytes / UNIT_BYTES);
        RequestPool { of_all: pool(bytes - small_bytes), of_small: pool(small_bytes) }
    }

    /// Takes so many bytes, as [`FairPool::take`] does: of what all share, or else of what is for small ones.
    pub async fn take(&self, user: Option<&str>, bytes: usize, until: Instant) -> Option<FairUnits> {
        let units = units_for(bytes);
        if bytes > SMALL_BYTES_MAX {
            return self.of_all.take(user, units, until).await;
        }
        let at_once = self.of_all.try_take(user, units).or_else(|| self.of_small.try_take(user, units));
        match at_once {
            Some(taken) => Some(taken),
            // Boxed, as few have to wait.
            None => Box::pin(self.take_either(user, units, until)).await,
        }
    }

    async fn take_either(&self, user: Option<&str>, units: u32, until: Instant) -> Option<FairUnits> {
        let [of_all, of_small] = [&self.of_all, &self.of_small].map(|pool| Box::pin(pool.take(user, units, until)));
        // Where both are granted, one is given back.
        select(of_all, of_small).await.factor_first().0
    }

    /// Whether none is taken.
    pub fn is_idle(&self) -> bool {
        self.of_all.is_idle() && self.of_small.is_idle()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;

    use super::*;

    const JANE: Option<&str> = Some("jane");

    #[tokio::test(start_paused = true)]
    async fn what_is_small_does_not_wait_behind_what_is_large() {
        let pool = RequestPool::new(64 << 20);
        let until = Instant::now() + Duration::from_secs(5);
        let large = pool.take(None, usize::MAX, until).await.expect("it gets all that there is for such");
        assert!(pool.take(JANE, SMALL_BYTES_MAX + 1, until).await.is_none(), "it waits, then it is refused");
        let until = Instant::now() + Duration::from_secs(5);
        let mut small = Vec::new();
        while let Some(taken) = pool.take(JANE, SMALL_BYTES_MAX, until).await {
            small.push(taken);
        }
        assert_eq!(small.len() * SMALL_BYTES_MAX, (64 << 20) / SMALL_SHARE / 2, "a user has half of it");
        let until = Instant::now() + Duration::from_secs(5);
        assert!(pool.take(Some("joe"), 1, until).await.is_some());
        assert!(!pool.is_idle());
        let until = Instant::now() + Duration::from_secs(5);
        let mut waiting = Box::pin(pool.take(JANE, SMALL_BYTES_MAX, until));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(large);
        assert!(waiting.await.is_some(), "there is some of what all share");
        drop(small);
        assert!(pool.is_idle());
    }
}
