//! Faults of watches: how they end, and which of them.

use std::time::Duration;

use serde_json::json;

use crate::asking::{CONFIG_MAPS, Events, VERSIONS, add, clear, create, hits, serve, sure};
use crate::server::Folder;

/// How long nothing comes of a watch that is stalled.
const SILENCE: Duration = Duration::from_millis(300);
const FROM_NOW: &str = "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

#[tokio::test]
async fn a_watch_ends_after_so_many_events() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    for (round, version) in VERSIONS.into_iter().enumerate() {
        let ends =
            [("closed", "end"), ("cut", "broken"), ("expired", "ERROR 410 \"Expired\" ")].into_iter().enumerate();
        for (at, (end, expected)) in ends {
            let matching = json!({"resource": "configmaps"});
            let fault =
                add(&server, json!({"match": matching, "watch": {"end": end, "afterEvents": 2}, "times": 1})).await;
            let mut events = Events::open(&server, version, FROM_NOW).await;
            let mut other = Events::open(&server, version, FROM_NOW).await;
            let names: Vec<_> = (0..3).map(|count| format!("w-{round}-{at}-{count}")).collect();
            for name in &names {
                create(&server, name).await;
            }
            let added = |name: &String| format!("ADDED {name}");
            assert_eq!(events.take(2).await, names[..2].iter().map(added).collect::<Vec<_>>());
            let [ended] = &events.take(1).await[..] else { panic!("one was asked for") };
            let expected = expected.replace('"', "");
            assert!(ended.starts_with(&expected), "{end} over {version:?}: {ended}");
            if end == "expired" {
                assert_eq!(ended, "ERROR 410 Expired The resourceVersion for the provided watch is too old.");
                assert_eq!(events.take(1).await, ["end"]);
            }
            assert_eq!(other.take(3).await, names.iter().map(added).collect::<Vec<_>>());
            assert_eq!(hits(&server, &fault).await, 1);
            clear(&server).await;
        }
    }
}

#[tokio::test]
async fn an_open_watch_stalls_and_goes_on_without_a_gap() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    for (version, name) in VERSIONS.into_iter().zip(["a", "b"]) {
        let mut events = Events::open(&server, version, FROM_NOW).await;
        let fault = add(&server, json!({"watch": {"end": "stalled"}})).await;
        create(&server, name).await;
        assert_eq!(events.next(SILENCE).await, None);
        assert_eq!(hits(&server, &fault).await, 1);
        clear(&server).await;
        assert_eq!(events.take(1).await, [format!("ADDED {name}")]);
    }
}

#[tokio::test]
async fn an_open_watch_ends_in_time() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let mut events = Events::open(&server, VERSIONS[0], FROM_NOW).await;
    add(&server, json!({"match": {"resource": "secrets"}, "watch": {"end": "closed"}})).await;
    let fault = add(&server, json!({"match": {"name": ""}, "watch": {"end": "closed", "after": "100ms"}})).await;
    assert_eq!(events.take(1).await, ["end"]);
    assert_eq!(hits(&server, &fault).await, 1);
}

#[tokio::test]
async fn a_watch_that_goes_leaves_its_fault_to_the_next() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let fault = add(&server, json!({"watch": {"end": "closed", "afterEvents": 1}, "times": 1})).await;
    drop(Events::open(&server, VERSIONS[0], FROM_NOW).await);
    // Once the server has seen that the first is gone, another one is chosen.
    let mut next = Events::open(&server, VERSIONS[0], FROM_NOW).await;
    for count in 0.. {
        create(&server, &format!("a-{count}")).await;
        assert_eq!(next.take(1).await, [format!("ADDED a-{count}")]);
        if hits(&server, &fault).await > 0 {
            break;
        }
        next = Events::open(&server, VERSIONS[0], FROM_NOW).await;
    }
    assert_eq!(next.take(1).await, ["end"]);
}

#[tokio::test]
async fn a_watch_of_any_revision_begins_in_the_past() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let mut object = create(&server, "a").await;
    object["data"]["at"] = json!("1");
    assert_eq!(sure(&server, ("PUT", &format!("{CONFIG_MAPS}/a")), Some(&object)).await.code, 200);
    add(&server, json!({"match": {"resource": "configmaps", "verbs": ["watch"]}, "stale": 1})).await;
    let mut events = Events::open(&server, VERSIONS[0], "&resourceVersion=0").await;
    assert_eq!(events.take(2).await, ["ADDED a", "MODIFIED a"]);
}
