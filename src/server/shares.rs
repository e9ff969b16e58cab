//! Whose connections are open: where all slots are taken and none is idle, those of whoever has most make room.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

/// The connections that have a user, by who shares as one user.
#[derive(Clone, Default)]
pub struct ConnectionShares(Arc<Mutex<KnownConnections>>);

#[derive(Default)]
struct KnownConnections {
    next: u64,
    /// In the order in which they began.
    of_users: HashMap<Arc<str>, BTreeMap<u64, Arc<Notify>>>,
}

/// A connection, which has a user from its first request on.
pub struct SharedConnection {
    shares: ConnectionShares,
    cut: Arc<Notify>,
    /// Who shares as the user, and its number.
    entry: OnceLock<(Arc<str>, u64)>,
}

impl ConnectionShares {
    fn known(&self) -> MutexGuard<'_, KnownConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    pub fn connection(&self) -> SharedConnection {
        SharedConnection { shares: self.clone(), cut: Arc::default(), entry: OnceLock::new() }
    }

    /// Cuts off the newest connection of whoever has most of `places` slots, if that is more than one more user would
    /// find fair.
    pub fn cut_of_largest(&self, places: usize) {
        let mut known = self.known();
        let users = known.of_users.len();
        let Some(largest) = known.of_users.values_mut().max_by_key(|connections| connections.len()) else { return };
        if largest.len().saturating_mul(users + 1) > places
            && let Some((_, newest)) = largest.pop_last()
        {
            newest.notify_one();
        }
    }
}

impl SharedConnection {
    /// Records who shares as the user of a request; only the first one counts.
    pub fn note_user(&self, sharer: &str) {
        self.entry.get_or_init(|| {
            let mut known = self.shares.known();
            known.next += 1;
            let number = known.next;
            let name = known.of_users.get_key_value(sharer).map_or_else(|| sharer.into(), |(name, _)| Arc::clone(name));
            known.of_users.entry(Arc::clone(&name)).or_default().insert(number, Arc::clone(&self.cut));
            (name, number)
        });
    }

    /// Waits until this connection must end at once for another user's.
    pub async fn cut(&self) {
        self.cut.notified().await;
    }
}

impl Drop for SharedConnection {
    fn drop(&mut self) {
        let Some((name, number)) = self.entry.get() else { return };
        let mut known = self.shares.known();
        if let Some(connections) = known.of_users.get_mut(name) {
            connections.remove(number);
            if connections.is_empty() {
                known.of_users.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_newest_connection_of_whoever_has_most_is_cut_off() {
        let shares = ConnectionShares::default();
        let of = |user: &str| {
            let connection = shares.connection();
            connection.note_user(user);
            connection.note_user("somebody else later");
            connection
        };
        let mut of_jane: Vec<_> = (0..5).map(|_| of("jane")).collect();
        let of_joe = of("joe");
        let cut = |connections: &[SharedConnection]| -> Vec<bool> {
            connections.iter().map(|connection| connection.cut().now_or_never().is_some()).collect()
        };
        shares.cut_of_largest(15);
        assert_eq!(cut(&of_jane), [false; 5], "a third of the slots is fair where there are two users");
        shares.cut_of_largest(9);
        shares.cut_of_largest(9);
        assert_eq!(cut(&of_jane), [false, false, false, true, true]);
        shares.cut_of_largest(9);
        assert_eq!((cut(&of_jane), cut(&[of_joe])), (vec![false; 5], vec![false]), "three of nine are fair");
        of_jane.clear();
        assert!(shares.known().of_users.is_empty());
        shares.cut_of_largest(0);
    }
}
