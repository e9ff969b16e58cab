//! Leases of a database that belongs to one process: they live as long as the process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Leases: their holders, and until when each is held.
#[derive(Default)]
pub(super) struct Leases(Mutex<HashMap<String, Lease>>);

struct Lease {
    holder: String,
    expires_at_ms: i64,
}

impl Leases {
    /// Takes or keeps the lease `name` until `expires_at_ms`; false while another holder has it.
    pub fn take(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> bool {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = |lease: &Lease| runs(lease.expires_at_ms, now_ms, expires_at_ms);
        if leases.get(name).is_some_and(|lease| lease.holder != holder && runs(lease)) {
            return false;
        }
        leases.insert(name.to_owned(), Lease { holder: holder.to_owned(), expires_at_ms });
        true
    }
}

/// Whether a lease that ends at `ends_ms` is still valid, if a new one would end at `expires_at_ms`. One that ends even
/// later was taken before the clock was set back.
pub(super) fn runs(ends_ms: i64, now_ms: i64, expires_at_ms: i64) -> bool {
    let latest_ms = expires_at_ms.saturating_add(expires_at_ms.saturating_sub(now_ms));
    (now_ms + 1..=latest_ms).contains(&ends_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_from_before_the_clock_was_set_back_is_over() {
        let leases = Leases::default();
        let take = |holder: &str, now_ms: i64| leases.take("controllers", holder, now_ms, now_ms + 15_000);
        assert!(take("one", 7_200_000));
        assert!(!take("two", 7_201_000));
        assert!(!take("two", 7_199_000), "a second is not a reason");
        assert!(take("two", 0));
    }
}
