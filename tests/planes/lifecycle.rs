//! How a control plane begins and ends, and what is refused.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::server::{MAPS, Plane, Server, WAIT_MAX};

const PLANES: &str = "/skiff/v1/planes";

#[tokio::test]
async fn a_plane_is_made_listed_and_deleted() {
    let server = Server::start(&[]).await;
    let (code, made) = server.main.call("POST", PLANES, Some(json!({ "name": "a" }))).await;
    assert_eq!((code, &made["name"], &made["from"]), (201, &json!("a"), &Value::Null));
    let authority = made["certificateAuthority"].as_str().expect("it has one");
    assert!(authority.starts_with("-----BEGIN CERTIFICATE-----"));
    let plane = Plane::new("a", made["kubeconfig"].as_str().expect("it has one").to_owned()).await;
    assert_eq!(made["url"], plane.url());
    let namespaces = plane.get("/api/v1/namespaces").await;
    let names = namespaces["items"].as_array().expect("it is a list").iter().map(|item| &item["metadata"]["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    assert_eq!(server.main.get(PLANES).await["items"], json!([made]));
    assert_eq!(server.main.get("/skiff/v1/planes/a").await, made);
    server.delete(&plane).await;
    assert_eq!(server.main.get(PLANES).await["items"], json!([]));
    assert!(std::net::TcpStream::connect(plane.url().trim_start_matches("https://")).is_err(), "nobody listens");
}

#[tokio::test]
async fn an_empty_plane_gets_what_controllers_make() {
    let server = Server::start(&[]).await;
    let plane = server.create(json!({})).await;
    plane.until("/api/v1/namespaces/default/serviceaccounts/default", 200).await;
    plane.until(&format!("{MAPS}/kube-root-ca.crt"), 200).await;
    assert!(plane.has("/api/v1/namespaces/default/services/kubernetes").await);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let server = Server::start(&[]).await;
    let a = server.create(json!({ "name": "a" })).await;
    let refused = async |body: Value| {
        let (code, status) = server.main.call("POST", PLANES, Some(body)).await;
        (code, status["reason"].as_str().unwrap_or_default().to_owned())
    };
    let answer = |code: u16, reason: &str| (code, reason.to_owned());
    assert_eq!(refused(json!({ "from": "nobody" })).await, answer(404, "NotFound"));
    assert_eq!(refused(json!({ "name": "a" })).await, answer(409, "AlreadyExists"));
    assert_eq!(refused(json!({ "name": "main" })).await, answer(409, "AlreadyExists"));
    assert_eq!(refused(json!({ "name": "A" })).await, answer(400, "BadRequest"));
    assert_eq!(refused(json!({ "nme": "b" })).await, answer(400, "BadRequest"));
    assert_eq!(refused(json!({ "name": 1 })).await, answer(400, "BadRequest"));
    assert_eq!(refused(json!([])).await, answer(400, "BadRequest"));
    let missing = std::env::temp_dir().join("skiff-no-such-folder/state.db");
    assert_eq!(refused(json!({ "path": missing })).await, answer(400, "BadRequest"));
    for (method, path, code) in [
        ("GET", "/skiff/v1/planes/b", 404),
        ("DELETE", "/skiff/v1/planes/b", 404),
        ("DELETE", "/skiff/v1/planes/main", 404),
        ("PUT", PLANES, 405),
        ("GET", "/skiff/v1/plans", 404),
    ] {
        assert_eq!(server.main.call(method, path, None).await.0, code, "{method} {path}");
    }
    // A plane beside the main one has none.
    for (method, path) in [("POST", PLANES), ("GET", PLANES), ("DELETE", "/skiff/v1/planes/a")] {
        assert_eq!(a.call(method, path, None).await.0, 404, "{method} {path}");
    }
    // What failed has left no name taken.
    server.create(json!({ "name": "b", "from": "a" })).await;
}

#[tokio::test]
async fn a_plane_waits_for_another_to_end_once_there_is_no_memory_for_more() {
    // An eighth of the limit, 128 KiB for each.
    const PLANES_MAX: usize = 32;
    let server = Server::start(&["--memory-limit", "32Mi"]).await;
    let mut made = Vec::new();
    for _ in 0..PLANES_MAX {
        made.push(server.create(json!({})).await);
    }
    // Its client tries again as long as it is answered with 429.
    let mut more = Box::pin(server.create(json!({})));
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut more).await.is_err());
    assert_eq!(server.main.get(PLANES).await["items"].as_array().map(Vec::len), Some(PLANES_MAX));
    server.delete(&made[0]).await;
    tokio::time::timeout(WAIT_MAX, more).await.expect("there is memory again");
}

#[tokio::test]
async fn with_roles_planes_are_for_those_who_may() {
    let folder = std::env::temp_dir().join(format!("skiff-planes-tokens-{}.csv", std::process::id()));
    std::fs::write(&folder, "s3cret,jane,u-1\n").expect("it writes");
    let path = folder.to_str().expect("it is UTF-8");
    let server = Server::start(&["--authorization-mode", "RBAC", "--token-auth-file", path]).await;
    let jane = server.main.asked_with("s3cret").await;
    assert_eq!(jane.call("POST", PLANES, Some(json!({}))).await.0, 403);
    assert_eq!(jane.call("PUT", "/skiff/v1/clock", Some(json!({}))).await.0, 403);
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{ "nonResourceURLs": [PLANES], "verbs": ["post"] }]);
    server.main.post(&format!("{RBAC}/clusterroles"), json!({ "metadata": { "name": "forks" }, "rules": rules })).await;
    let binding = json!({
        "metadata": { "name": "forks" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "forks" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane" }],
    });
    server.main.post(&format!("{RBAC}/clusterrolebindings"), binding).await;
    assert_eq!(jane.call("POST", PLANES, Some(json!({ "name": "copy", "from": "main" }))).await.0, 201);
    assert_eq!(jane.call("DELETE", "/skiff/v1/planes/copy", None).await.0, 403);
    // Roles are copied, and from then on each plane's own.
    let copy = server.main.get("/skiff/v1/planes/copy").await;
    let copy = Plane::new("copy", copy["kubeconfig"].as_str().expect("it has one").to_owned()).await;
    assert!(copy.has(&format!("{RBAC}/clusterroles/forks")).await);
    let as_jane = copy.asked_with("s3cret").await;
    assert_eq!(as_jane.call("GET", MAPS, None).await.0, 403);
    let wide = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }]);
    let (code, _) = copy.call("PATCH", &format!("{RBAC}/clusterroles/forks"), Some(json!({ "rules": wide }))).await;
    assert_eq!(code, 200);
    assert_eq!(as_jane.call("GET", MAPS, None).await.0, 200);
    assert_eq!(jane.call("GET", MAPS, None).await.0, 403);
    std::fs::remove_file(&folder).expect("it was written");
}

#[tokio::test]
async fn watches_end_with_their_plane() {
    let server = Server::start(&[]).await;
    let plane = server.create(json!({})).await;
    let mut watches = join_all((0..5).map(async |_| plane.watch(&format!("{MAPS}?watch=1")).await)).await;
    server.delete(&plane).await;
    for watch in &mut watches {
        while watch.next().await.is_some() {}
    }
}

#[tokio::test]
async fn a_deletion_that_nobody_waits_for_gives_the_file_back() {
    let server = Server::start(&[]).await;
    let file = json!(server.folder.join("kept.db"));
    let plane = server.create(json!({ "name": "kept", "path": file })).await;
    plane.put_map("a", "1").await;
    // A request that is at work holds the deletion up for as long as requests may take to finish.
    let fault = json!({ "match": { "resource": "configmaps" }, "delay": "10m" });
    plane.post("/skiff/v1/faults", fault).await;
    let waiting = plane.clone();
    let waiting = tokio::spawn(async move { waiting.try_call("GET", &format!("{MAPS}/a")).await });
    plane.until_hit(1).await;
    // The client is gone as soon as the deletion has begun.
    tokio::select! {
        _ = server.main.call("DELETE", "/skiff/v1/planes/kept", None) => {}
        () = server.main.until("/skiff/v1/planes/kept", 404) => {}
    }
    let again = async {
        loop {
            match server.main.call("POST", PLANES, Some(json!({ "name": "again", "path": file }))).await {
                (201, made) => return made,
                (code, status) => assert!(code == 400 && !status.to_string().contains("process"), "{code} {status}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let made = tokio::time::timeout(WAIT_MAX, again).await.expect("the file is given back");
    let again = Plane::new("again", made["kubeconfig"].as_str().expect("it has one").to_owned()).await;
    assert_eq!(again.map("a").await.as_deref(), Some("1"));
    assert_eq!(waiting.await.expect("it does not panic"), None, "the request was cut off");
}

#[tokio::test]
async fn a_creation_that_nobody_waits_for_is_made_or_leaves_nothing() {
    let server = Server::start(&[]).await;
    let file = json!(server.folder.join("made.db"));
    let wanted = json!({ "name": "made", "path": file });
    let call = server.main.call("POST", PLANES, Some(wanted.clone()));
    // It may be answered, be at work, or not have arrived.
    _ = tokio::time::timeout(Duration::from_millis(20), call).await;
    if server.main.call("POST", PLANES, Some(wanted)).await.0 != 201 {
        server.main.until("/skiff/v1/planes/made", 200).await;
    }
    assert_eq!(server.main.call("DELETE", "/skiff/v1/planes/made", None).await.0, 200);
    server.create(json!({ "name": "again", "path": file })).await;
}

/// On Linux, which tells what a process has.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_a_plane_held_is_given_back() {
    const PLANES: usize = 20;
    const MAPS_EACH: usize = 10;
    // With a limit, the allocator keeps no pages that are free; a page with anything in it stays.
    let server = Server::start(&["--memory-limit", "4Gi"]).await;
    let text = "x".repeat(200_000);
    let fill = async || {
        let planes = join_all((0..PLANES).map(|_| server.create(json!({ "from": "main" })))).await;
        join_all(planes.iter().map(async |plane| {
            for at in 0..MAPS_EACH {
                plane.put_map(&format!("m-{at}"), &text).await;
            }
        }))
        .await;
        let full = server.memory_kib();
        join_all(planes.iter().map(|plane| server.delete(plane))).await;
        full
    };
    let held_kib = (PLANES * MAPS_EACH * text.len() / 1024) as u64;
    // The second time also shows that nothing adds up.
    let mut full = fill().await;
    for _ in 0..2 {
        let given_back = async {
            while server.memory_kib() + held_kib / 2 > full {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let in_time = tokio::time::timeout(WAIT_MAX, given_back).await;
        assert!(in_time.is_ok(), "{} KiB are left of {full} with 20 planes", server.memory_kib());
        full = full.min(fill().await);
    }
}

/// Loosely: it is a third of this, and more with a debug build.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_thousand_planes_stay_within_300_mib() {
    const AT_ONCE: usize = 50;
    let server = Server::start(&[]).await;
    server.main.put_map("a", "1").await;
    let create = async |_| {
        let (code, made) = server.main.call("POST", PLANES, Some(json!({ "from": "main" }))).await;
        assert_eq!(code, 201, "{made}");
    };
    for _ in 0..1_000 / AT_ONCE {
        join_all((0..AT_ONCE).map(create)).await;
    }
    assert_eq!(server.main.get(PLANES).await["items"].as_array().map(Vec::len), Some(1_000));
    let held = server.memory_kib();
    assert!(held < 300 * 1024, "{held} KiB");
}
