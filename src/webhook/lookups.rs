//! Looks up the host names of webhooks.
//!
//! Input: `HOST:PORT`. Output: its addresses, in the order of the system's resolver. That takes a thread for each look-up,
//! for 10 seconds and more if a name server does not answer, whether or not its caller still waits. So a bounded number
//! of names is looked up at a time, and all who ask for the same name share one look-up. Names that were found at once
//! the last time, names that were not, and new names have places of their own, and a look-up that takes long takes a
//! place of the second kind as soon as one is free: names that nobody answers for hold up others like them, new names
//! for a time, and names that are found hardly ever.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;

/// How many names are looked up at a time: of those that were found at once, and of new ones.
const PLACES: usize = 4;
/// And of those that were not.
const SLOW_PLACES: usize = 16;
/// A look-up that takes no longer than this finds its name at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// How many names wait or are looked up at most: others are not found, unless they were found at once the last time.
const RUNNING_MAX: usize = 1_000;
/// For how many names it is known whether they were found at once.
const KNOWN_MAX: usize = 1_000;

/// The addresses of a host; none if it can't be found.
type HostAddresses = Arc<[SocketAddr]>;
/// What a look-up will find.
type FoundLater = watch::Receiver<Option<HostAddresses>>;
type NameResolver = Arc<dyn Fn(&str) -> BoxFuture<'static, HostAddresses> + Send + Sync>;

/// The look-ups of the process: its threads are shared by all control planes.
static OF_PROCESS: LazyLock<HostLookups> = LazyLock::new(|| {
    HostLookups::by(Arc::new(|host| {
        let place = format!("{host}:0");
        Box::pin(async move { tokio::net::lookup_host(place).await.map(Iterator::collect).unwrap_or_default() })
    }))
});

/// The addresses of `HOST:PORT`; none if the name can't be found.
pub(super) async fn addresses(place: &str) -> Vec<SocketAddr> {
    OF_PROCESS.addresses(place).await
}

/// Look-ups that share their places, and what is known of names; so do clones.
#[derive(Clone)]
struct HostLookups {
    resolver: NameResolver,
    of_found: Arc<Semaphore>,
    of_new: Arc<Semaphore>,
    of_slow: Arc<Semaphore>,
    hosts: Arc<Mutex<KnownHosts>>,
}

#[derive(Default)]
struct KnownHosts {
    running: HashMap<String, FoundLater>,
    /// Whether each was found at once the last time.
    found_at_once: HashMap<String, bool>,
}

impl KnownHosts {
    fn note(&mut self, host: &str, is_found_at_once: bool) {
        if self.found_at_once.len() >= KNOWN_MAX && !self.found_at_once.contains_key(host) {
            let any = self.found_at_once.keys().next().cloned().unwrap_or_default();
            self.found_at_once.remove(&any);
        }
        self.found_at_once.insert(host.to_owned(), is_found_at_once);
    }
}

/// A look-up that waits for its place or runs.
struct RunningLookup {
    lookups: HostLookups,
    host: String,
    tell: watch::Sender<Option<HostAddresses>>,
}

impl Drop for RunningLookup {
    /// Also if it does not come to its end.
    fn drop(&mut self) {
        self.lookups.with_hosts(|hosts| {
            if hosts.running.get(&self.host).is_some_and(|later| later.same_channel(&self.tell.subscribe())) {
                hosts.running.remove(&self.host);
            }
        });
    }
}

impl RunningLookup {
    /// It goes on, and keeps its place, when its callers have given up: its thread can't be ended.
    async fn run(self) {
        let Ok(mut place) = self.place().await else { return };
        if self.forget_given_up() {
            return;
        }
        let mut resolving = (self.lookups.resolver)(&self.host);
        let found = match timeout(AT_ONCE, &mut resolving).await {
            Ok(found) => {
                self.note(!found.is_empty());
                found
            }
            Err(_) => {
                self.note(false);
                tokio::select! {
                    found = &mut resolving => found,
                    Ok(slow_place) = Arc::clone(&self.lookups.of_slow).acquire_owned() => {
                        drop(std::mem::replace(&mut place, slow_place));
                        resolving.await
                    }
                }
            }
        };
        self.tell.send_replace(Some(found));
        drop(place);
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        let lookups = &self.lookups;
        let places = match lookups.with_hosts(|hosts| hosts.found_at_once.get(&self.host).copied()) {
            Some(true) => &lookups.of_found,
            Some(false) => &lookups.of_slow,
            None => &lookups.of_new,
        };
        Arc::clone(places).acquire_owned().await
    }

    /// Whether nobody waits for it any more; then whoever asks next begins another one.
    fn forget_given_up(&self) -> bool {
        self.lookups.with_hosts(|hosts| {
            let is_given_up = self.tell.receiver_count() <= 1;
            if is_given_up {
                hosts.running.remove(&self.host);
            }
            is_given_up
        })
    }

    fn note(&self, is_found_at_once: bool) {
        self.lookups.with_hosts(|hosts| hosts.note(&self.host, is_found_at_once));
    }
}

impl HostLookups {
    fn by(resolver: NameResolver) -> Self {
        let [of_found, of_new, of_slow] = [PLACES, PLACES, SLOW_PLACES].map(|places| Arc::new(Semaphore::new(places)));
        HostLookups { resolver, of_found, of_new, of_slow, hosts: Arc::default() }
    }

    async fn addresses(&self, place: &str) -> Vec<SocketAddr> {
        if let Ok(address) = place.parse() {
            return vec![address];
        }
        let Some((host, port)) = place.rsplit_once(':') else { return Vec::new() };
        let (Ok(port), Some(mut later)) = (port.parse(), self.find(&host.to_ascii_lowercase())) else {
            return Vec::new();
        };
        let found = later.wait_for(Option::is_some).await.ok().and_then(|found| found.clone()).unwrap_or_default();
        found.iter().map(|address| SocketAddr::new(address.ip(), port)).collect()
    }

    /// Joins the look-up of a host, or begins it; `None` if there are too many.
    fn find(&self, host: &str) -> Option<FoundLater> {
        let (tell, later) = watch::channel(None);
        let (later, is_new) = self.with_hosts(|hosts| {
            if let Some(running) = hosts.running.get(host) {
                return Some((running.clone(), false));
            }
            if hosts.running.len() >= RUNNING_MAX && hosts.found_at_once.get(host) != Some(&true) {
                return None;
            }
            hosts.running.insert(host.to_owned(), later.clone());
            Some((later, true))
        })?;
        if is_new {
            tokio::spawn(RunningLookup { lookups: self.clone(), host: host.to_owned(), tell }.run());
        }
        Some(later)
    }

    fn with_hosts<T>(&self, with: impl FnOnce(&mut KnownHosts) -> T) -> T {
        with(&mut self.hosts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::timeout;

    use super::{HostAddresses, HostLookups, KNOWN_MAX, KnownHosts, PLACES, RUNNING_MAX, SLOW_PLACES};

    const PATIENCE: Duration = Duration::from_secs(5);

    /// What the resolver was asked.
    #[derive(Default)]
    struct Asked {
        count: AtomicUsize,
        /// Whether nobody answers any more.
        is_silent: AtomicBool,
    }

    /// Names that begin with `silent` are never answered for, and those with `none` don't exist.
    fn lookups() -> (HostLookups, Arc<Asked>) {
        let asked = Arc::new(Asked::default());
        let resolver_asked = Arc::clone(&asked);
        let lookups = HostLookups::by(Arc::new(move |host| {
            resolver_asked.count.fetch_add(1, Ordering::Relaxed);
            let is_silent = host.starts_with("silent") || resolver_asked.is_silent.load(Ordering::Relaxed);
            let is_there = !host.starts_with("none");
            Box::pin(async move {
                if is_silent {
                    std::future::pending::<()>().await;
                }
                tokio::task::yield_now().await;
                if is_there { Arc::new([SocketAddr::from(([10, 0, 0, 1], 0))]) } else { HostAddresses::default() }
            })
        }));
        (lookups, asked)
    }

    async fn is_found(lookups: &HostLookups, place: &str) -> bool {
        timeout(PATIENCE, lookups.addresses(place)).await.is_ok_and(|found| !found.is_empty())
    }

    #[tokio::test(start_paused = true)]
    async fn names_that_nobody_answers_for_hold_up_others_like_them_and_new_ones() {
        let (lookups, asked) = lookups();
        assert!(is_found(&lookups, "known:443").await);
        let silent: Vec<_> = (0..SLOW_PLACES + PLACES).map(|at| format!("silent-{at}:443")).collect();
        assert_eq!(join_all(silent.iter().map(|place| is_found(&lookups, place))).await, vec![false; silent.len()]);
        tokio::time::sleep(PATIENCE).await;
        assert_eq!(asked.count.load(Ordering::Relaxed), 1 + SLOW_PLACES + PLACES, "all have a place");
        assert!(!is_found(&lookups, "new:443").await);
        assert!(is_found(&lookups, "known:443").await);
        assert_eq!(asked.count.load(Ordering::Relaxed), 2 + SLOW_PLACES + PLACES);
    }

    #[tokio::test(start_paused = true)]
    async fn few_names_that_nobody_answers_for_hold_up_nobody() {
        let (lookups, _asked) = lookups();
        for at in 0..SLOW_PLACES {
            assert!(!is_found(&lookups, &format!("silent-{at}:443")).await);
        }
        assert!(!is_found(&lookups, "none:443").await);
        assert!(is_found(&lookups, "new:443").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_is_known_by_its_last_look_up() {
        let (lookups, asked) = lookups();
        let known: Vec<_> = (0..PLACES).map(|at| format!("known-{at}:443")).collect();
        for place in &known {
            assert!(is_found(&lookups, place).await);
        }
        assert!(is_found(&lookups, "other:443").await);
        asked.is_silent.store(true, Ordering::Relaxed);
        assert_eq!(join_all(known.iter().map(|place| is_found(&lookups, place))).await, [false; PLACES]);
        asked.is_silent.store(false, Ordering::Relaxed);
        assert!(is_found(&lookups, "other:443").await, "those have gone to places for slow names");
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_ask_for_a_host_share_a_look_up() {
        let (lookups, asked) = lookups();
        let places = ["Host:443", "host:8443"].into_iter().cycle().take(50);
        let found = join_all(places.map(|place| lookups.addresses(place))).await;
        assert_eq!(found[..2], [443, 8443].map(|port| vec![SocketAddr::from(([10, 0, 0, 1], port))]));
        assert_eq!(asked.count.load(Ordering::Relaxed), 1);
        assert_eq!(join_all((0..9).map(|_| lookups.addresses("none:443"))).await, vec![Vec::new(); 9]);
        assert_eq!(asked.count.load(Ordering::Relaxed), 2);
        tokio::task::yield_now().await;
        assert!(lookups.with_hosts(|hosts| hosts.running.is_empty()));
        assert_eq!(lookups.addresses("[::1]:443").await, [SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], 443))]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_nobody_waits_for_any_more_is_not_looked_up() {
        let (lookups, asked) = lookups();
        let silent: Vec<_> = (0..SLOW_PLACES + PLACES).map(|at| format!("silent-{at}:443")).collect();
        join_all(silent.iter().map(|place| is_found(&lookups, place))).await;
        tokio::time::sleep(PATIENCE).await;
        let more: Vec<_> = (0..2 * RUNNING_MAX).map(|at| format!("more-{at}:443")).collect();
        assert_eq!(join_all(more.iter().map(|place| is_found(&lookups, place))).await, vec![false; more.len()]);
        assert_eq!(lookups.with_hosts(|hosts| hosts.running.len()), RUNNING_MAX);
        lookups.of_new.add_permits(1);
        tokio::time::sleep(PATIENCE).await;
        assert_eq!(asked.count.load(Ordering::Relaxed), silent.len());
        assert!(is_found(&lookups, "more-7:443").await);
    }

    #[test]
    fn so_many_names_are_known() {
        let mut hosts = KnownHosts::default();
        for at in 0..3 * KNOWN_MAX {
            hosts.note(&at.to_string(), true);
            assert!(hosts.found_at_once.len() <= KNOWN_MAX);
        }
        hosts.note(&(3 * KNOWN_MAX - 1).to_string(), false);
        assert_eq!(hosts.found_at_once.len(), KNOWN_MAX);
    }
}
