//! The work queue of a controller: each key is in it once, with its due time, and is never handled twice at the same
//! time. Of keys whose time has come, each namespace has one taken after the other: those of others wait for one of a
//! namespace that has many.
//!
//! Pure except for its contents: the time is a parameter.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// How long a key waits after its first failure; twice as long after each further failure in a row.
const RETRY_FIRST: Duration = Duration::from_millis(5);
/// How long a key waits at most after a failure.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How long a key is delayed after a change, so that a burst of changes is handled once.
const GATHERED_FOR: Duration = Duration::from_millis(20);

/// The progress of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is left to be done.
    Done,
    /// It waits for a change elsewhere, which wakes it.
    Waits,
    /// It must be handled again after this time, or earlier if something changes.
    After(Duration),
    /// It must be retried after a pause.
    Failed,
}

/// What a key says about the thing that it names.
pub(super) trait InNamespace {
    /// Empty in cluster scope.
    fn namespace(&self) -> &str;
}

impl InNamespace for String {
    fn namespace(&self) -> &str {
        namespace_of(self)
    }
}

#[cfg(test)]
impl InNamespace for &'static str {
    fn namespace(&self) -> &str {
        namespace_of(self)
    }
}

/// The namespace in `namespace/name`.
pub(super) fn namespace_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(namespace, _)| namespace)
}

/// The keys, each in one state.
pub(super) struct Queue<K> {
    keys: BTreeMap<K, Entry>,
    /// Those that wait for their time.
    due: BTreeSet<(Instant, K)>,
    /// Those whose time has come, by namespace, in the order of their times.
    ready: HashMap<Box<str>, VecDeque<K>>,
    /// The namespaces that have some, in the order of their turns.
    turns: VecDeque<Box<str>>,
}

struct Entry {
    place: QueueState,
    /// How often it failed in a row.
    failures: u32,
}

enum QueueState {
    Due(Instant),
    Ready,
    /// `again`: something has changed since it was taken.
    UnderWay {
        again: bool,
    },
    Waiting,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Queue { keys: BTreeMap::new(), due: BTreeSet::new(), ready: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<K: Ord + Clone + InNamespace> Queue<K> {
    /// Queues a key to be handled as soon as possible.
    pub fn add(&mut self, key: K, now: Instant) {
        self.set_due(key, now);
    }

    /// Queues a key to be handled soon, together with further changes until then.
    pub fn add_soon(&mut self, key: K, now: Instant) {
        self.set_due(key, now + GATHERED_FOR);
    }

    /// Queues a key again, soon, if it waits or is being handled.
    pub fn wake<Q: Ord + ?Sized>(&mut self, key: &Q, now: Instant)
    where
        K: Borrow<Q>,
    {
        if let Some((key, entry)) = self.keys.get_key_value(key)
            && !matches!(entry.place, QueueState::Due(_) | QueueState::Ready)
        {
            self.set_due(key.clone(), now + GATHERED_FOR);
        }
    }

    /// [`Queue::wake`], also for a key that is due later.
    pub fn wake_early<Q: Ord + ?Sized>(&mut self, key: &Q, now: Instant)
    where
        K: Borrow<Q>,
    {
        if let Some((key, _)) = self.keys.get_key_value(key) {
            self.set_due(key.clone(), now + GATHERED_FOR);
        }
    }

    /// [`Queue::wake`] for every key.
    pub fn wake_all(&mut self, now: Instant) {
        let keys: Vec<K> = self.keys.keys().cloned().collect();
        keys.iter().for_each(|key| self.wake(key, now));
    }

    /// Queues every key that waits for its time or for a change, because the clock was moved.
    pub fn hasten(&mut self, now: Instant) {
        let waiting = self.keys.iter().filter(|(_, entry)| !matches!(entry.place, QueueState::UnderWay { .. }));
        let waiting: Vec<K> = waiting.map(|(key, _)| key.clone()).collect();
        waiting.into_iter().for_each(|key| self.set_due(key, now));
    }

    /// Takes the key whose time has come first, of the namespace whose turn it is.
    pub fn take(&mut self, now: Instant) -> Option<K> {
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let (_, key) = self.due.pop_first()?;
            self.make_ready(key);
        }
        let namespace = self.turns.pop_front()?;
        let of_namespace = self.ready.get_mut(&namespace)?;
        let key = of_namespace.pop_front()?;
        if of_namespace.is_empty() {
            self.ready.remove(&namespace);
        } else {
            self.turns.push_back(namespace);
        }
        self.keys.get_mut(&key)?.place = QueueState::UnderWay { again: false };
        Some(key)
    }

    fn make_ready(&mut self, key: K) {
        if let Some(entry) = self.keys.get_mut(&key) {
            entry.place = QueueState::Ready;
        }
        match self.ready.get_mut(key.namespace()) {
            Some(of_namespace) => of_namespace.push_back(key),
            None => {
                let namespace: Box<str> = key.namespace().into();
                self.turns.push_back(namespace.clone());
                self.ready.insert(namespace, VecDeque::from([key]));
            }
        }
    }

    /// Puts back a key that was taken, according to its progress.
    pub fn put_back(&mut self, key: K, progress: Progress, now: Instant) {
        let Some(entry) = self.keys.get_mut(&key) else { return };
        let again = matches!(entry.place, QueueState::UnderWay { again: true });
        entry.failures = if progress == Progress::Failed { entry.failures.saturating_add(1) } else { 0 };
        entry.place = QueueState::Waiting;
        let failures = entry.failures;
        match progress {
            _ if again => self.set_due(key, now),
            Progress::Done => _ = self.keys.remove(&key),
            Progress::Waits => {}
            Progress::After(pause) => self.set_due(key, now + pause),
            Progress::Failed => self.set_due(key, now + pause(failures)),
        }
    }

    /// When the time of the next key comes.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Makes a key due at `at`, or earlier if it already is.
    fn set_due(&mut self, key: K, at: Instant) {
        let entry = self.keys.entry(key.clone()).or_insert(Entry { place: QueueState::Waiting, failures: 0 });
        match &mut entry.place {
            QueueState::Due(known) if *known <= at => return,
            QueueState::Due(known) => _ = self.due.remove(&(*known, key.clone())),
            QueueState::Ready => return,
            QueueState::UnderWay { again } => return *again = true,
            QueueState::Waiting => {}
        }
        entry.place = QueueState::Due(at);
        self.due.insert((at, key));
    }
}

/// How long a key waits after this many failures in a row.
fn pause(failures: u32) -> Duration {
    let doubled = 2_u32.checked_pow(failures.saturating_sub(1)).and_then(|times| RETRY_FIRST.checked_mul(times));
    doubled.map_or(RETRY_MAX, |pause| pause.min(RETRY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> (Queue<&'static str>, Instant) {
        (Queue::default(), Instant::now())
    }

    #[test]
    fn a_key_is_taken_once_however_often_it_is_added() {
        let (mut queue, now) = queue();
        queue.add("a", now);
        queue.add("b", now);
        queue.add("a", now);
        assert_eq!([queue.take(now), queue.take(now), queue.take(now)], [Some("a"), Some("b"), None]);
    }

    #[test]
    fn namespaces_take_turns() {
        let (mut queue, now) = queue();
        for key in ["many/1", "many/2", "many/3", "many/4"] {
            queue.add(key, now);
        }
        assert_eq!(queue.take(now), Some("many/1"));
        let later = now + Duration::from_millis(1);
        for key in ["few/1", "node", "many/1", "many/2"] {
            queue.add(key, later);
        }
        let taken: Vec<_> = std::iter::from_fn(|| queue.take(later)).collect();
        assert_eq!(taken, ["many/2", "few/1", "node", "many/3", "many/4"]);
        queue.put_back("many/1", Progress::Done, later);
        assert_eq!([queue.take(later), queue.take(later)], [Some("many/1"), None]);
        assert!(queue.ready.is_empty() && queue.turns.is_empty());
    }

    #[test]
    fn a_change_meanwhile_has_a_key_looked_at_again() {
        for progress in [Progress::Done, Progress::Waits, Progress::Failed] {
            let (mut queue, now) = queue();
            queue.add("a", now);
            queue.take(now);
            queue.wake("a", now);
            queue.add("a", now);
            assert_eq!(queue.take(now), None);
            queue.put_back("a", progress, now);
            assert_eq!([queue.take(now), queue.take(now)], [Some("a"), None]);
        }
    }

    #[test]
    fn a_key_that_waits_is_woken_and_one_that_is_done_is_not() {
        let (mut queue, now) = queue();
        for (key, progress) in [("done", Progress::Done), ("waits", Progress::Waits)] {
            queue.add(key, now);
            queue.take(now);
            queue.put_back(key, progress, now);
            assert_eq!(queue.next_due(), None);
        }
        queue.wake_all(now);
        assert_eq!(queue.take(now), None);
        let later = now + GATHERED_FOR;
        assert_eq!([queue.take(later), queue.take(later)], [Some("waits"), None]);
    }

    #[test]
    fn a_key_that_has_time_is_looked_at_then_or_at_a_change() {
        let (mut queue, now) = queue();
        let minute = Duration::from_secs(60);
        for change in [false, true] {
            queue.add("a", now);
            assert_eq!(queue.take(now), Some("a"));
            queue.put_back("a", Progress::After(minute), now);
            assert_eq!((queue.take(now), queue.next_due()), (None, Some(now + minute)));
            let then = if change { now + GATHERED_FOR } else { now + minute };
            if change {
                queue.add_soon("a", now);
            }
            assert_eq!(queue.take(then), Some("a"));
            queue.put_back("a", Progress::Done, then);
        }
    }

    #[test]
    fn a_clock_that_is_moved_hastens_what_waits() {
        let (mut queue, now) = queue();
        for (key, progress) in [("waits", Progress::Waits), ("has time", Progress::After(Duration::from_secs(60)))] {
            queue.add(key, now);
            queue.take(now);
            queue.put_back(key, progress, now);
        }
        assert_eq!(queue.take(now), None);
        queue.hasten(now);
        assert_eq!([queue.take(now), queue.take(now), queue.take(now)], [Some("has time"), Some("waits"), None]);
    }

    #[test]
    fn each_failure_in_a_row_waits_longer_up_to_a_limit() {
        let (mut queue, mut now) = queue();
        queue.add("a", now);
        let mut pauses = Vec::new();
        for _ in 0..20 {
            queue.take(now);
            queue.put_back("a", Progress::Failed, now);
            let due = queue.next_due().expect("it is tried again");
            pauses.push((due - now).as_millis());
            now = due;
        }
        assert_eq!(pauses[..5], [5, 10, 20, 40, 80]);
        assert_eq!(pauses.last(), Some(&60_000));
        // A change cancels the wait.
        queue.add("a", now);
        assert_eq!(queue.take(now), Some("a"));
        queue.put_back("a", Progress::Done, now);
        assert_eq!(queue.next_due(), None);
    }
}
