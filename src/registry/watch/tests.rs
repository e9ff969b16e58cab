//! Watches while objects are written.

use futures_util::FutureExt as _;

use super::super::fixture::{self, compact, create_namespace, newest, registry, target};
use super::*;
use crate::meta::selector::FieldSelector;
use crate::store::{Collection, Encoded};

fn request(start: Start, timeout: Duration) -> WatchRequest {
    let select = ListRequest::default();
    WatchRequest { start, select, bookmarks: true, marks_initial_end: false, timeout, user: None }
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

/// Stores the JSON of an object, as it is.
async fn store(registry: &Registry, collection: &Collection, key: &str, object: &str) {
    fixture::store(&registry.storage, collection, (key, "u"), Encoded::new(object.to_owned())).await;
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
        store(&registry, &collection, &format!("n-{at}"), "{}").await;
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

/// A large namespace.
fn namespace(version: usize, phase: &str) -> String {
    let annotations: Vec<_> = (0..2_000).map(|at| format!(r#""a-{at:04}":"{version}""#)).collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"annotations":{{{}}},"name":"team"}},"status":{{"phase":"{phase}"}}}}"#,
        annotations.join(",")
    )
}

/// How many steps so many watches with a field selector take for a namespace that is created, changed and then no longer
/// selected.
fn steps_of_watches(watches: usize, fields: &str) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
    let (registry, mut watches) = runtime.block_on(async {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let mut request = request(Start::After(newest(&registry)), Duration::from_secs(600));
        request.select.fields = FieldSelector::parse(fields).expect("it is one");
        let mut started = Vec::new();
        for _ in 0..watches {
            started.push(registry.watch(&namespaces, &request).await.expect("it starts"));
        }
        (registry, started)
    });
    let mut taken = 0;
    for (version, (phase, event)) in
        [("Active", "ADDED team"), ("Active", "MODIFIED team"), ("Terminating", "DELETED team")].into_iter().enumerate()
    {
        let namespaces = registry.definitions.namespaces();
        runtime.block_on(store(&registry, &namespaces, "team", &namespace(version, phase)));
        let (told, steps) = work::counted(|| {
            let next = async |watch: &mut Watch| watch.next().await;
            watches.iter_mut().map(|watch| runtime.block_on(next(watch))).collect::<Vec<_>>()
        });
        assert!(told.into_iter().all(|told| tell(told) == event), "{event}");
        taken += steps;
    }
    taken
}

#[test]
fn an_object_is_read_once_for_the_field_selectors_of_all_watches() {
    let (read, steps) = work::counted(|| crate::value::json::decode(namespace(0, "Active").as_bytes()));
    assert!(read.is_ok() && steps > 2_000, "{steps} steps");
    let (few, many) = (steps_of_watches(2, "status.phase=Active"), steps_of_watches(50, "status.phase=Active"));
    assert!(many < few + steps, "{few} steps, then {many}, where an object takes {steps}");
}

#[test]
fn a_term_of_a_field_selector_takes_one_step_for_each_state_and_the_same_one_none() {
    const TERMS: usize = 2_000;
    const STATES: u64 = 5;
    let steps = |terms: Vec<String>| steps_of_watches(1, &format!("status.phase!=Terminating,{}", terms.join(",")));
    let one = steps(vec!["status.phase!=x".to_owned()]);
    assert_eq!(steps(vec!["status.phase!=x".to_owned(); TERMS]), one);
    let others = steps((0..TERMS).map(|at| format!("status.phase!=x{at}")).collect());
    assert!(others <= one + STATES * TERMS as u64, "{one} steps, then {others}");
}

#[test]
fn a_change_of_a_definition_is_compared_once_for_all_watches_of_its_kind() {
    const WATCHES: usize = 50;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
    let definition = |annotation: &str, names: &str| {
        let names: Vec<_> = (0..1_000).map(|at| format!(r#""{names}-{at}""#)).collect();
        let names = names.join(",");
        format!(r#"{{"metadata":{{"annotations":{{"a":"{annotation}"}}}},"spec":{{"names":[{names}]}},"status":{{}}}}"#)
    };
    runtime.block_on(async {
        let registry = registry().await;
        let definitions = registry.definitions.collection();
        store(&registry, &definitions, "ships", &definition("a", "x")).await;
        let mut watches = Vec::new();
        for _ in 0..WATCHES {
            let changes = registry.storage.watch(&definitions, newest(&registry)).await.expect("it starts");
            watches.push(DefinitionChanges { key: "ships".into(), changes });
        }
        let (_, steps) = work::counted(|| json::decode(definition("a", "x").as_bytes()));
        for (annotation, names, redefines) in [("b", "x", false), ("b", "y", true)] {
            store(&registry, &definitions, "ships", &definition(annotation, names)).await;
            let (ended, taken) =
                work::counted(|| watches.iter_mut().filter_map(|watch| watch.changed().now_or_never()).count());
            assert_eq!(ended, if redefines { WATCHES } else { 0 });
            assert!(taken < 10 * steps, "{taken} steps, where a definition takes {steps}");
        }
    });
}
