//! Tests of what stays in memory, and what makes room.

use std::sync::Arc;

use crate::meta::Revision;
use crate::store::objects::by_key;
use crate::store::{Collection, Stored};

use super::loaded::PAGE_ENDS_MAX;
use super::{Applied, HandOut, PageEnd, Revocable, StateLookup, View, ViewMax};

const MAX: ViewMax = ViewMax { object_bytes: 250, collection_bytes: 500, held_bytes: 100, pinned_bytes: 200 };

#[test]
fn collections_that_nobody_reads_or_watches_make_room() {
    const REVISION: Revision = Revision::new(1);
    let view = View::new(REVISION, REVISION, MAX);
    let collections = ["watched", "read", "unread", "new"].map(|name| Collection::new("", name));
    let [watched, read, unread, new] = &collections;
    let load = |collection: &Collection| {
        let object = Stored::fixture("a", "u", vec![b' '; 80]);
        assert!(view.begin_loading(collection));
        view.finish_loading(collection, by_key(vec![object]), REVISION);
    };
    load(watched);
    let _watching = view.follow(watched);
    load(read);
    load(unread);
    assert!(view.get(read, "a").is_some());
    load(new);
    let kept = collections.each_ref().map(|collection| view.get(collection, "a").is_some());
    assert_eq!(kept, [true, true, false, true]);
}

#[test]
fn the_bytes_of_all_that_is_loaded_are_known_whatever_happens() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let check = |expected: usize| {
        let state = view.read();
        let counted: usize = state.loaded().map(|(_, loaded)| loaded.object_bytes).sum();
        assert_eq!((state.object_bytes, counted), (expected, expected));
    };
    let [things, others] = ["things", "others"].map(|name| Collection::new("", name));
    for collection in [&things, &others] {
        assert!(view.begin_loading(collection));
        let object = Stored::fixture("a", "u", vec![b' '; 80]);
        view.finish_loading(collection, by_key(vec![object]), BEGUN);
    }
    check(160);
    let change = |revision, bytes: Option<usize>| {
        let stored = bytes.map(|bytes| Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
        let applied = Applied { key: "a".into(), uid: "u".into(), revision: Revision::new(revision), stored };
        view.publish(vec![(things.clone(), applied)]);
    };
    change(2, Some(100));
    check(180);
    change(3, None);
    check(80);
    change(4, Some(200));
    // More than the limit: the least recently read collections are gone.
    check(80);
    view.forget(&others);
    check(0);
    view.start_over(Revision::new(4), Revision::new(9), BEGUN);
    check(0);
}

#[test]
fn a_collection_that_is_larger_than_all_may_be_is_not_loaded_again_after_each_write() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let [large, small, other] = ["large", "small", "other"].map(|name| Collection::new("", name));
    let load = |collection: &Collection, bytes: usize| {
        assert!(view.begin_loading(collection));
        view.finish_loading(collection, by_key(vec![Stored::fixture("a", "u", vec![b' '; bytes])]), view.revision());
    };
    let change = |collection: &Collection, bytes: usize| {
        let (revision, stored) = (view.revision().next(), Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
        let applied = Applied { key: "a".into(), uid: "u".into(), revision, stored: Some(stored) };
        view.publish(vec![(collection.clone(), applied)]);
    };
    let is_loaded = |collection: &Collection| view.get(collection, "a").is_some();
    load(&large, 400);
    load(&small, 80);
    assert!(!is_loaded(&large), "another one is loaded");
    load(&large, 400);
    change(&small, 100);
    change(&large, 500);
    assert!(is_loaded(&large));
    change(&large, 501);
    assert!(!is_loaded(&large), "it would not be loaded any more");
    load(&large, 400);
    view.give_back();
    assert!(!is_loaded(&large), "memory is short");
    load(&other, 80);
    change(&other, 100);
    assert!(is_loaded(&other));
}

#[test]
fn what_is_small_stays_when_memory_is_short() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let [small, other] = ["small", "other"].map(|name| Collection::new("", name));
    for (collection, bytes) in [(&small, 5), (&other, 100)] {
        assert!(view.begin_loading(collection));
        let object = Stored::fixture("a", "u", vec![b' '; bytes]);
        view.finish_loading(collection, by_key(vec![object]), BEGUN);
    }
    let is_loaded = |collection: &Collection| view.get(collection, "a").is_some();
    for _ in 0..9 {
        assert!(is_loaded(&small), "it is read");
        view.give_back();
    }
    assert!(is_loaded(&small) && !is_loaded(&other));
}

#[test]
fn what_is_being_sent_is_dropped_last() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let names = ["first", "second", "third", "large", "larger"];
    let [first, second, third, large, larger] = names.map(|name| Collection::new("", name));
    let load = |collection: &Collection, bytes: usize| {
        assert!(view.begin_loading(collection));
        let object = Stored::fixture("a", "u", vec![b' '; bytes]);
        view.finish_loading(collection, by_key(vec![object]), view.revision());
    };
    let hand_out = |collection: &Collection| {
        view.hand_out(&HandOut { collection, revision: view.revision(), bytes: None, user: None }, ())
    };
    let is_loaded = |collection: &Collection| view.get(collection, "a").is_some();
    let is_held = |held: &Revocable<()>| held.with(|()| ()).is_ok();
    load(&first, 110);
    let list = hand_out(&first);
    load(&second, 110);
    load(&third, 110);
    assert!(is_held(&list) && is_loaded(&first) && !is_loaded(&second));
    load(&large, 400);
    assert!(!is_held(&list), "there is no room for both");

    let list = hand_out(&large);
    load(&first, 110);
    assert!(is_held(&list) && is_loaded(&large) && is_loaded(&first));
    load(&larger, 410);
    assert!(!is_held(&list) && !is_loaded(&large) && !is_loaded(&first));
    drop(hand_out(&larger));
    load(&first, 110);
    assert!(!is_loaded(&larger), "nobody reads it any more");

    load(&large, 400);
    let of = HandOut { collection: &large, revision: view.revision(), bytes: Some(50), user: None };
    let part = view.hand_out(&of, ());
    load(&first, 110);
    assert!(!is_loaded(&large) && is_held(&part), "it is kept in memory by its reader, who may");
}

#[test]
fn of_two_lists_that_readers_may_hold_one_by_one_the_second_is_not_cut_off() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let [first, second, third, other] = ["first", "second", "third", "other"].map(|name| Collection::new("", name));
    let load = |collection: &Collection, bytes: usize| {
        assert!(view.begin_loading(collection));
        let object = Stored::fixture("a", "u", vec![b' '; bytes]);
        view.finish_loading(collection, by_key(vec![object]), view.revision());
    };
    let lists = [&first, &second].map(|collection| {
        load(collection, 70);
        view.hand_out(&HandOut { collection, revision: view.revision(), bytes: None, user: None }, ())
    });
    load(&third, 70);
    load(&other, 120);
    assert!(lists.iter().all(|list| list.with(|()| ()).is_ok()));
    assert_eq!([&first, &second, &third].map(|of| view.get(of, "a").is_some()), [false, true, false]);
}

#[test]
fn one_large_collection_stays_whoever_reads_others() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let collections = ["first", "second", "third"].map(|name| Collection::new("", name));
    let put = |collection: &Collection, bytes: usize| {
        let (revision, stored) = (view.revision().next(), Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
        let applied = Applied { key: "a".into(), uid: "u".into(), revision, stored: Some(stored) };
        view.publish(vec![(collection.clone(), applied)]);
    };
    let mut lists = Vec::new();
    for collection in &collections {
        assert!(view.begin_loading(collection));
        let object = Stored::fixture("a", "u", vec![b' '; 110]);
        view.finish_loading(collection, by_key(vec![object]), view.revision());
        put(collection, 450);
        let of = HandOut { collection, revision: view.revision(), bytes: None, user: None };
        lists.push(view.hand_out(&of, ()));
        put(collection, 460);
    }
    let state = view.read();
    assert!(state.object_bytes <= MAX.object_bytes + MAX.collection_bytes, "{}", state.object_bytes);
}

#[test]
fn what_slow_readers_hold_is_taken_back() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let [things, others] = ["things", "others"].map(|name| Collection::new("", name));
    let load = |collection: &Collection, bytes: usize| {
        assert!(view.begin_loading(collection));
        let object = Stored::fixture("a", "u", vec![b' '; bytes]);
        view.finish_loading(collection, by_key(vec![object]), view.revision());
    };
    let change = || {
        let revision = view.revision().next();
        let stored = Stored { revision, ..Stored::fixture("a", "u", vec![b' '; 60]) };
        let applied = Applied { key: "a".into(), uid: "u".into(), revision, stored: Some(Arc::new(stored)) };
        view.publish(vec![(things.clone(), applied)]);
    };
    let is_held = |held: &Revocable<()>| held.with(|()| ()).is_ok();
    load(&things, 60);
    let hand_out = |collection: &Collection, revision: Revision| {
        view.hand_out(&HandOut { collection, revision, bytes: None, user: None }, ())
    };
    let first = hand_out(&things, view.revision());
    change();
    let second = hand_out(&things, view.revision());
    assert!(is_held(&first) && is_held(&second));
    change();
    assert!(!is_held(&first) && is_held(&second), "two states of 60 bytes were replaced since the first");
    (0..9).for_each(|_| change());
    assert!(is_held(&second), "states that came after it and are gone are not held");
    // A state whose collection is unloaded counts as a whole.
    let former = hand_out(&things, BEGUN);
    load(&others, 240);
    assert!(!is_held(&second) && is_held(&former));
    let last = hand_out(&others, view.revision());
    view.start_over(view.revision(), Revision::new(9), BEGUN);
    assert!(!is_held(&last));
}

#[test]
fn what_follows_a_page_is_known_of_the_last_places() {
    const BEGUN: Revision = Revision::new(1);
    let view = View::new(BEGUN, BEGUN, MAX);
    let things = Collection::new("", "things");
    assert!(view.begin_loading(&things));
    view.finish_loading(&things, by_key(vec![Stored::fixture("a", "u", b"{}".to_vec())]), BEGUN);
    let StateLookup::Snapshot(snapshot) = view.find(&things, None) else { unreachable!("it is loaded") };
    for remaining in 0..=PAGE_ENDS_MAX {
        let start = remaining.to_string().into();
        view.pin(&snapshot, Some(PageEnd { prefix: "team/".into(), start, remaining }));
    }
    let known = |prefix: &str, start: &str| view.remaining(&snapshot, prefix, start);
    assert_eq!([known("team/", "0"), known("team/", "1"), known("", "1")], [None, Some(1), None]);
    assert_eq!(known("team/", &PAGE_ENDS_MAX.to_string()), Some(PAGE_ENDS_MAX));
}

#[test]
fn what_was_being_loaded_when_the_view_started_over_is_to_be_loaded_anew() {
    let (begun, missed) = (Revision::new(1), Revision::new(9));
    let view = View::new(begun, begun, MAX);
    let things = Collection::new("", "things");
    assert!(view.begin_loading(&things));
    view.start_over(begun, missed, missed);
    view.finish_loading(&things, by_key(vec![Stored::fixture("a", "u", b"{}".to_vec())]), begun);
    assert!(view.get(&things, "a").is_none(), "it is not loaded");
    assert_eq!((view.revision(), view.compacted()), (missed, missed));
    // Another poll with the same result comes too late.
    view.start_over(begun, begun, begun);
    assert_eq!(view.revision(), missed);
}

#[test]
fn states_that_pages_go_on_at_are_dropped_once_they_take_too_much() {
    let (view, things) = (View::new(Revision::default(), Revision::default(), MAX), Collection::new("", "things"));
    view.begin_loading(&things);
    view.finish_loading(&things, Default::default(), Revision::default());
    let change = |revision: i64, bytes: usize| {
        let (key, uid, revision) = (Arc::from("a"), Arc::from("u"), Revision::new(revision));
        let stored = Some(Arc::new(Stored::fixture("a", "u", vec![b' '; bytes])));
        view.publish(vec![(things.clone(), Applied { key, uid, revision, stored })]);
    };
    let is_pinned =
        |revision: i64| matches!(view.find(&things, Some(Revision::new(revision))), StateLookup::Snapshot(_));
    let pin = || match view.find(&things, None) {
        StateLookup::Snapshot(snapshot) => view.pin(&snapshot, None),
        _ => panic!("it is loaded"),
    };
    change(1, 150);
    pin();
    change(2, 100);
    assert!(is_pinned(1), "150 bytes are kept for it");
    change(3, 100);
    assert!(!is_pinned(1), "250 are too many");
    pin();
    change(4, 10);
    assert!(is_pinned(3));
    view.give_back();
    assert!(!is_pinned(3), "memory is short");
}
