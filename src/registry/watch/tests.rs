//! Watches while objects are written.

use super::super::fixture::{compact, create_namespace, newest, registry, target};
use super::*;

fn request(start: Start, timeout: Duration) -> WatchRequest {
    let select = ListRequest::default();
    WatchRequest { start, select, bookmarks: true, marks_initial_end: false, timeout }
}

/// A summary of an event: its type, and the key of an object or the revision of a bookmark.
fn tell(event: Option<WatchEvent>) -> String {
    match event {
        None => "end".to_owned(),
        Some(WatchEvent::Bookmark { revision, initial_end }) => format!("BOOKMARK {revision} {initial_end}"),
        Some(WatchEvent::Error(status)) => format!("ERROR {} {}", status.code, status.message),
        Some(WatchEvent::Object { kind, object, .. }) => {
            let object = crate::value::json::decode(object.bytes()).expect("it is our JSON");
            format!("{} {}", kind.as_str(), object.str_at(&["metadata", "name"]))
        }
    }
}

#[tokio::test]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let start = Start::After(newest(&registry));
    let watch = registry.watch(&namespaces, &request(start, Duration::from_secs(150))).await;
    let mut watch = watch.expect("it starts");
    create_namespace(&registry, "team").await;
    assert_eq!(tell(watch.next().await), "ADDED team");
    let bookmark = format!("BOOKMARK {} false", newest(&registry));

    tokio::time::pause();
    let begun = Instant::now();
    for after_seconds in [60, 120, 148] {
        assert_eq!(tell(watch.next().await), bookmark);
        let after = begun.elapsed().as_secs_f64();
        assert!((after - f64::from(after_seconds)).abs() < 3.0, "{after} instead of {after_seconds}");
    }
    assert_eq!(tell(watch.next().await), "end");
}

#[tokio::test]
async fn a_watch_is_quiet_once_it_has_told_all_there_is() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let start = Start::After(newest(&registry));
    let watch = registry.watch(&namespaces, &request(start, Duration::from_secs(150))).await;
    let mut watch = watch.expect("it starts");
    assert!(!watch.is_quiet(), "it has not looked yet");
    let told = tokio::time::timeout(Duration::from_millis(10), watch.next()).await;
    assert!(told.is_err(), "there is nothing to tell");
    assert!(watch.is_quiet());
    for name in ["a", "b"] {
        create_namespace(&registry, name).await;
        assert!(!watch.is_quiet());
        assert_eq!(tell(watch.next().await), format!("ADDED {name}"));
        assert!(watch.is_quiet());
    }
}

#[tokio::test]
async fn a_quiet_watch_learns_how_far_others_are() {
    let registry = registry().await;
    let definitions = target(&registry, "apiextensions.k8s.io", "customresourcedefinitions").await;
    let begin = newest(&registry);
    let mut watches = Vec::new();
    for timeout in [90, 30] {
        let request = request(Start::After(begin), Duration::from_secs(timeout));
        watches.push(registry.watch(&definitions, &request).await.expect("it starts"));
    }
    create_namespace(&registry, "team").await;
    let newest = newest(&registry);
    assert!(newest > begin);

    tokio::time::pause();
    let [long, short] = &mut watches[..] else { panic!("there are two") };
    assert_eq!(tell(short.next().await), "end");
    assert_eq!(tell(long.next().await), format!("BOOKMARK {newest} false"));
}

#[tokio::test]
async fn a_watch_that_asks_for_no_bookmarks_gets_none() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let request = WatchRequest {
        bookmarks: false,
        marks_initial_end: true,
        ..request(Start::State(None), Duration::from_secs(200))
    };
    let mut watch = registry.watch(&namespaces, &request).await.expect("it starts");
    let mut told = Vec::new();
    for _ in 0..4 {
        told.push(tell(watch.next().await));
    }
    assert_eq!(told, ["ADDED default", "ADDED kube-node-lease", "ADDED kube-public", "ADDED kube-system"]);
    tokio::time::pause();
    assert_eq!(tell(watch.next().await), "end");
}

#[tokio::test]
async fn the_end_of_the_initial_events_is_marked() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let request = WatchRequest { marks_initial_end: true, ..request(Start::State(None), Duration::from_secs(200)) };
    let mut watch = registry.watch(&namespaces, &request).await.expect("it starts");
    for _ in 0..4 {
        assert!(tell(watch.next().await).starts_with("ADDED"));
    }
    assert_eq!(tell(watch.next().await), format!("BOOKMARK {} true", newest(&registry)));
}

#[tokio::test]
async fn a_watch_of_events_has_only_the_bookmark_after_the_initial_ones() {
    let registry = registry().await;
    let events = target(&registry, "", "events").await;
    let begin = newest(&registry);
    let request = WatchRequest { marks_initial_end: true, ..request(Start::State(None), Duration::from_secs(200)) };
    let mut watch = registry.watch(&events, &request).await.expect("it starts");
    assert_eq!(tell(watch.next().await), format!("BOOKMARK {begin} true"));
    create_namespace(&registry, "team").await;
    tokio::time::pause();
    assert_eq!(tell(watch.next().await), "end");
}

#[tokio::test]
async fn a_watch_of_events_from_a_state_that_is_gone_is_told_in_the_words_of_the_store() {
    let registry = registry().await;
    let events = target(&registry, "", "events").await;
    let begin = newest(&registry);
    create_namespace(&registry, "team").await;
    compact(&registry).await;
    let watch = registry.watch(&events, &request(Start::After(begin), Duration::from_secs(60))).await;
    let mut watch = watch.expect("it starts");
    assert_eq!(tell(watch.next().await), "ERROR 410 The resourceVersion for the provided watch is too old.");
}

#[tokio::test]
async fn a_watch_from_a_state_that_is_gone_is_told_so_and_ends() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let begin = newest(&registry);
    create_namespace(&registry, "team").await;
    let newest = newest(&registry);
    compact(&registry).await;

    let watch = registry.watch(&namespaces, &request(Start::After(begin), Duration::from_secs(60))).await;
    let mut watch = watch.expect("it starts");

    assert_eq!(tell(watch.next().await), format!("ERROR 410 too old resource version: {begin} ({newest})"));
    assert_eq!(tell(watch.next().await), "end");
}

#[tokio::test]
async fn a_watch_that_falls_behind_the_log_ends() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let start = Start::After(newest(&registry));
    let mut slow = registry.watch(&namespaces, &request(start, Duration::from_secs(600))).await.expect("it starts");
    // More changes than memory keeps; then the log is compacted after them.
    let collection = namespaces.resource.collection.clone();
    for at in 0..2_100 {
        let put = store::Put {
            object: store::Encoded::new("{}"),
            uid: "u".into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        };
        let write = store::Write {
            collection: collection.clone(),
            key: format!("n-{at}").into(),
            op: store::Op::Put(put),
            guards: Vec::new(),
        };
        registry.storage.write(write).await.expect("it is written");
    }
    compact(&registry).await;

    assert_eq!(tell(slow.next().await), "end");
}

#[tokio::test]
async fn initial_events_of_a_state_to_come_are_an_error() {
    let registry = registry().await;
    let namespaces = target(&registry, "", "namespaces").await;
    let to_come = Revision::new(newest(&registry).get() + 1_000);
    let start = Start::State(Some(to_come));
    let events = registry.watch(&namespaces, &request(start, Duration::from_secs(60))).await;
    let mut events = events.expect("it starts");
    let Some(WatchEvent::Error(status)) = events.next().await else { unreachable!("it begins with an error") };
    assert_eq!(status, Status::too_large_resource_version(to_come, newest(&registry)));
}
