//! Turns of answers that are made while they are sent, such as watches and long lists.
//!
//! Such an answer makes its next part whenever its client can take more. If one of its parts took long within some
//! seconds, or the first one of another stream of the user, it waits for a turn before the next one: there are as many
//! turns as processors. A user has no more parts than that before those of others, however many
//! streams the user has. Nothing holds a thread while it waits, so other streams of its connection go on.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::attend::SHORT_PART_MAX;
use super::metered::{in_background, stream_meter};

/// For how long a stream needs turns after a part that took long, as some of its parts are only the rest of another; and
/// for how long the first parts of a user's streams are taken for long ones after one that was.
const LONG_FOR: Duration = Duration::from_secs(10);
/// At how many users those without a stream are looked for at least.
const LOOK_AT_MIN: usize = 64;

/// The turns of all streams.
pub(super) struct StreamTurns {
    at_once: usize,
    of_all: Arc<Semaphore>,
    of_users: Mutex<UserTurns>,
}

#[derive(Default)]
struct UserTurns {
    known: HashMap<Box<str>, Weak<StreamUser>>,
    /// At how many users those without a stream are looked for.
    look_at: usize,
}

/// A user who has streams.
struct StreamUser {
    turns: Arc<Semaphore>,
    /// Until when the first parts of streams are taken for long ones.
    first_long_until: Mutex<Option<Instant>>,
}

impl StreamUser {
    fn first_long_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.first_long_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type HeldTurn = Result<(OwnedSemaphorePermit, OwnedSemaphorePermit), AcquireError>;

/// The turns of one stream.
pub struct StreamTurn {
    user: Arc<StreamUser>,
    of_all: Arc<Semaphore>,
    waiting: Option<Pin<Box<dyn Future<Output = HeldTurn> + Send>>>,
    is_first: bool,
    /// Until when it needs turns.
    long_until: Option<Instant>,
}

impl StreamTurns {
    pub fn new(processors: usize) -> Self {
        StreamTurns { at_once: processors, of_all: Arc::new(Semaphore::new(processors)), of_users: Mutex::default() }
    }

    /// The turns of a new stream of a user.
    pub fn of(&self, user: &str) -> StreamTurn {
        let mut users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
        let known = users.known.get(user).and_then(Weak::upgrade);
        let user = known.unwrap_or_else(|| {
            if users.known.len() >= users.look_at.max(LOOK_AT_MIN) {
                users.known.retain(|_, turns| turns.strong_count() > 0);
                users.look_at = 2 * users.known.len();
            }
            let turns = Arc::new(Semaphore::new(self.at_once));
            let made = Arc::new(StreamUser { turns, first_long_until: Mutex::default() });
            users.known.insert(user.into(), Arc::downgrade(&made));
            made
        });
        let long_until = *user.first_long_until();
        StreamTurn { user, of_all: Arc::clone(&self.of_all), waiting: None, is_first: true, long_until }
    }
}

impl StreamTurn {
    /// Makes the next part, once there is a turn if one took long lately.
    pub fn poll<T>(&mut self, context: &mut Context<'_>, part: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let begun = Instant::now();
        let needs_turn = self.waiting.is_some() || self.long_until.is_some_and(|until| begun < until);
        let _turn = if needs_turn { ready!(self.poll_turn(context)).ok() } else { None };
        let begun = Instant::now();
        let polled = part(context);
        let now = Instant::now();
        if now - begun > SHORT_PART_MAX {
            self.long_until = Some(now + LONG_FOR);
            if self.is_first {
                *self.user.first_long_until() = self.long_until;
            }
        }
        self.is_first &= polled.is_pending();
        polled
    }

    /// Runs a task that sends a stream, as background work.
    pub fn run<F: Future>(mut self, sending: F) -> impl Future<Output = F::Output> + use<F> {
        let mut sending = Box::pin(in_background(stream_meter(), sending));
        poll_fn(move |context| self.poll(context, |context| sending.as_mut().poll(context)))
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<HeldTurn> {
        let (of_user, of_all) = (&self.user.turns, &self.of_all);
        let waiting = self.waiting.get_or_insert_with(|| {
            let (of_user, of_all) = (Arc::clone(of_user), Arc::clone(of_all));
            Box::pin(async move { Ok((of_user.acquire_owned().await?, of_all.acquire_owned().await?)) })
        });
        let turn = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(turn)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::thread;

    use super::*;

    /// Makes a part that takes long, or does nothing for long; returns whether it was made.
    fn make(stream: &mut StreamTurn, is_long: bool) -> bool {
        let part = |_: &mut Context<'_>| {
            if is_long {
                thread::sleep(2 * SHORT_PART_MAX);
            }
            Poll::Ready(())
        };
        stream.poll(&mut Context::from_waker(Waker::noop()), part).is_ready()
    }

    #[test]
    fn parts_that_take_long_take_turns_and_users_get_them_in_rotation() {
        let turns = StreamTurns::new(1);
        let mut of_jane = [(); 20].map(|()| turns.of("jane"));
        let mut of_joe = turns.of("joe");
        assert!(of_jane.iter_mut().chain([&mut of_joe]).all(|stream| make(stream, true)), "the first parts are begun");
        let held = of_jane[0].poll_turn(&mut Context::from_waker(Waker::noop()));
        assert!(held.is_ready());
        assert!(!of_jane[1..].iter_mut().any(|stream| make(stream, true)), "another has the turn");
        assert!(!make(&mut of_joe, true));
        assert!(make(&mut turns.of("jim"), false), "what is short needs no turn");
        drop(held);
        assert!(!of_jane[1..].iter_mut().any(|stream| make(stream, true)), "it is the other user's turn");
        assert!(make(&mut of_joe, true) && make(&mut of_jane[1], true) && make(&mut of_jane[2], true));
    }

    #[test]
    fn a_short_part_and_a_look_that_finds_nothing_do_not_make_the_next_part_a_short_one() {
        let turns = StreamTurns::new(1);
        let [mut stream, mut other] = [(); 2].map(|()| turns.of("jane"));
        assert!(make(&mut stream, true) && make(&mut other, true) && make(&mut stream, false));
        assert!(stream.poll(&mut Context::from_waker(Waker::noop()), |_| Poll::<()>::Pending).is_pending());
        let held = other.poll_turn(&mut Context::from_waker(Waker::noop()));
        assert!(held.is_ready() && !make(&mut stream, false));
        for _ in 0..2 {
            assert!(!make(&mut turns.of("jane"), false), "the first part of another took long");
        }
        drop(held);
        assert!(make(&mut stream, false) && make(&mut stream, false));
    }

    #[tokio::test]
    async fn a_stream_that_waits_is_woken_and_one_that_is_gone_is_passed_over() {
        let turns = StreamTurns::new(1);
        let [mut holder, mut gone, mut waiting] = ["jane", "joe", "jim"].map(|user| turns.of(user));
        assert!(make(&mut holder, true) && make(&mut gone, true) && make(&mut waiting, true));
        let held = holder.poll_turn(&mut Context::from_waker(Waker::noop()));
        assert!(held.is_ready() && !make(&mut gone, true));
        let made = tokio::spawn(waiting.run(async { 7 }));
        tokio::task::yield_now().await;
        assert!(!made.is_finished());
        drop((gone, held));
        assert_eq!(made.await.expect("it ends"), 7);
    }

    #[test]
    fn users_without_streams_are_forgotten() {
        let turns = StreamTurns::new(2);
        for at in 0..10 * LOOK_AT_MIN {
            drop(turns.of(&at.to_string()));
        }
        let users = turns.of_users.lock().expect("nothing panics");
        assert!(users.known.len() <= LOOK_AT_MIN);
    }
}
