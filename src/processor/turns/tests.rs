//! Tests of turns, user by user.

use std::task::Waker;

use super::*;

/// Threads beside those that serve sockets.
const MANY: usize = 512;

/// Turns of which none is free.
fn none() -> Turns {
    let turns = Turns::new(1, MANY);
    turns.queue().free = 0;
    turns
}

fn poll(waiting: &mut WaitingTurn) -> Option<Turn> {
    match Pin::new(waiting).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => None,
    }
}

fn take(turns: &Arc<Turns>, user: &str) -> WaitingTurn {
    turns.take(&Arc::from(user), WaiterKind::ToBegin).expect("few wait")
}

#[test]
fn users_take_turns() {
    let turns = Arc::new(Turns::new(1, MANY));
    let mut turn = poll(&mut take(&turns, "a"));
    assert!(turn.is_some());
    let mut waiting: Vec<_> = ["a", "a", "a", "b", "b"].map(|user| take(&turns, user)).into();
    let mut order = Vec::new();
    while !waiting.is_empty() {
        assert!(waiting.iter_mut().all(|waiting| poll(waiting).is_none()));
        drop(turn.take());
        let mut turns = waiting.iter_mut().map(poll);
        let (at, granted) = turns.by_ref().enumerate().find(|(_, turn)| turn.is_some()).expect("it is passed on");
        turn = granted;
        order.push(waiting.remove(at).user.to_string());
    }
    assert_eq!(order, ["a", "b", "a", "b", "a"]);
}

#[test]
fn a_turn_outlives_those_who_gave_up_waiting() {
    let turns = Arc::new(Turns::new(1, MANY));
    let turn = poll(&mut take(&turns, "a"));
    let (first, second, mut third) = (take(&turns, "b"), take(&turns, "b"), take(&turns, "c"));
    drop(first);
    drop(turn);
    // The second one was granted the turn, and gives up.
    drop(second);
    assert!(poll(&mut third).is_some());
    assert!(!turns.are_wanted(&Arc::from("a")));
    assert_eq!(turns.queue().free, 1);
}

#[test]
fn once_many_hold_threads_none_gives_up_its_turn_for_more_of_its_user() {
    let turns = Arc::new(none());
    let [jane, joe] = ["jane", "joe"].map(Arc::from);
    let mut to_begin = take(&turns, "jane");
    assert!(turns.are_wanted(&jane) && turns.are_wanted(&joe));
    turns.queue().threads = turns.bounds.begun_max;
    assert!(!turns.are_wanted(&jane) && turns.are_wanted(&joe));
    let mut short = turns.take(&jane, WaiterKind::ToGoOn).expect("few wait");
    assert!(turns.are_wanted(&jane));
    turns.pass_on();
    assert!(poll(&mut to_begin).is_none());
    let turn = poll(&mut short);
    assert!(turn.is_some(), "it came later");
    drop(turn);
    assert!(poll(&mut to_begin).is_some());
}

#[test]
fn only_so_many_of_a_user_wait() {
    let turns = Arc::new(none());
    let user = Arc::from("a");
    let waiting: Vec<_> = (0..WAITING_PER_USER_MAX).map(|_| turns.take(&user, WaiterKind::ToBegin)).collect();
    assert!(waiting.iter().all(Result::is_ok));
    assert_eq!(turns.take(&user, WaiterKind::ToBegin).err(), Some(Ended::Overload));
    assert!(turns.take(&user, WaiterKind::ToGoOn).is_ok(), "what is short is not refused for what is long");
    assert!(turns.take(&Arc::from("b"), WaiterKind::ToBegin).is_ok());
}

#[test]
fn where_threads_are_few_one_is_left_to_what_blocks() {
    for (beside, turns, asking, half) in [
        (512, 4, 32, 32),
        (16, 4, 4, 3),
        (6, 4, 1, 0),
        (5, 3, 1, 0),
        (3, 1, 1, 0),
        (2, 1, 0, 0),
        (1, 1, 0, 0),
        (0, 1, 0, 0),
    ] {
        let bounds = Bounds::of(4, beside);
        assert_eq!((bounds.turns, bounds.threads_asking_max), (turns, asking));
        assert_eq!((bounds.threads_waiting_max, bounds.alone_max, bounds.begun_max), (half, half, half / 2));
        assert!(beside < 2 || turns + asking + 2 * half < beside);
    }
    let turns = Arc::new(Turns::new(2, 4));
    let asking = turns.ask().expect("one may");
    assert_eq!(turns.ask().err(), Some(Ended::Overload));
    drop(asking);
    assert!(turns.ask().is_ok());
    let user = Arc::from("a");
    let held = [turns.take_on_thread(&user, || Ok(())), turns.take_on_thread(&user, || Ok(()))];
    assert!(held.iter().all(Result::is_ok) && turns.are_short_for(&Arc::from("b")));
    assert_eq!(turns.take_on_thread(&user, || Ok(())).err(), Some(Ended::Overload));
    drop(held);
    assert!(!turns.are_short_for(&Arc::from("b")));
}

#[test]
fn a_user_with_others_waiting_begins_nothing_without_a_turn_once_threads_are_short() {
    let turns = Arc::new(none());
    let [jane, joe] = ["jane", "joe"].map(Arc::from);
    turns.queue().threads = THREADS_WAITING_MAX;
    assert!(!turns.are_short_for(&jane));
    let _waiting = take(&turns, "jane");
    assert!(turns.are_short_for(&jane) && !turns.are_short_for(&joe));
    let alone: Vec<_> = (0..turns.bounds.alone_max).map(|_| turns.go_alone()).collect();
    assert!(turns.are_short_for(&joe));
    drop(alone);
    assert!(!turns.are_short_for(&joe));
}

#[test]
fn a_thread_waits_for_as_long_as_it_is_wanted() {
    let turns = Arc::new(Turns::new(1, MANY));
    let user: Arc<str> = Arc::from("a");
    let turn = turns.take_on_thread(&user, || Err(Ended::Cancelled));
    assert!(turn.is_ok(), "it is free");
    assert_eq!(turns.take_on_thread(&user, || Err(Ended::Deadline)).err(), Some(Ended::Deadline));
    let other = thread::spawn({
        let turns = Arc::clone(&turns);
        move || turns.take_on_thread(&user, || Ok(())).is_ok()
    });
    drop(turn);
    assert!(other.join().expect("it does not panic"));
    assert_eq!(turns.queue().free, 1);
}
