//! Nothing of one control plane is good for anything in another.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::server::{MAPS, Plane, Server};

async fn token(plane: &Plane) -> String {
    const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/default/token";
    plane.until("/api/v1/namespaces/default/serviceaccounts/default", 200).await;
    let made = plane.post(TOKENS, json!({ "spec": { "expirationSeconds": 3600 } })).await;
    made["status"]["token"].as_str().expect("it is issued").to_owned()
}

/// Whether a plane lets in who shows a certificate or a token.
async fn lets_in(plane: &Plane, credentials: &str) -> bool {
    let code = plane.asked_with(credentials).await.call("GET", "/version", None).await.0;
    assert!(matches!(code, 200 | 401), "{code}");
    code == 200
}

#[tokio::test]
async fn a_certificate_is_good_in_its_own_plane_alone() {
    let server = Server::start(&[]).await;
    let copy = server.fork(&server.main).await;
    let again = server.fork(&copy).await;
    let planes = [&server.main, &copy, &again];
    for (at, plane) in planes.iter().enumerate() {
        for (other, shown) in planes.iter().enumerate() {
            assert_eq!(lets_in(plane, &shown.kubeconfig).await, at == other, "{at} {other}");
        }
    }
}

#[tokio::test]
async fn a_token_is_good_where_it_was_issued_and_in_later_copies() {
    for store in ["memory", "sqlite"] {
        let server = Server::start(&["--store", store]).await;
        let before = token(&server.main).await;
        let copy = server.fork(&server.main).await;
        let (after, own) = (token(&server.main).await, token(&copy).await);
        let again = server.fork(&copy).await;
        let empty = server.create(json!({})).await;
        let mut found = Vec::new();
        for plane in [&server.main, &copy, &again, &empty] {
            let mut row = Vec::new();
            for token in [&before, &after, &own] {
                row.push(lets_in(plane, token).await);
            }
            found.push(row);
        }
        assert_eq!(found, [[true, true, false], [true, false, true], [true, false, true], [false; 3]], "{store}");
    }
}

#[tokio::test]
async fn a_watch_sees_its_own_plane() {
    let server = Server::start(&[]).await;
    let copy = server.fork(&server.main).await;
    let mut watch = copy.watch(&format!("{MAPS}?watch=1&fieldSelector=metadata.name!=kube-root-ca.crt")).await;
    server.main.put_map("theirs", "1").await;
    copy.put_map("mine", "1").await;
    assert_eq!(watch.next().await, Some(("ADDED".to_owned(), "mine".to_owned())));
}

#[tokio::test]
async fn namespaces_and_services_are_each_planes_own() {
    let server = Server::start(&[]).await;
    let copy = server.fork(&server.main).await;
    copy.post("/api/v1/namespaces", json!({ "metadata": { "name": "mine" } })).await;
    let (code, _) = server.main.call("POST", "/api/v1/namespaces/mine/configmaps", Some(map())).await;
    assert_eq!(code, 404);
    copy.post("/api/v1/namespaces/mine/configmaps", map()).await;
    // Both have the whole range of addresses for themselves.
    let service = json!({
        "metadata": { "name": "s" },
        "spec": { "clusterIP": "10.0.0.77", "ports": [{ "port": 80 }] },
    });
    for plane in [&server.main, &copy] {
        plane.post("/api/v1/namespaces/default/services", service.clone()).await;
    }
    assert_eq!(copy.call("DELETE", "/api/v1/namespaces/mine", None).await.0, 200);
    copy.until("/api/v1/namespaces/mine", 404).await;
}

fn map() -> Value {
    json!({ "metadata": { "name": "m" } })
}

/// A client keeps a connection of its own open, and never has nothing to do.
#[cfg(unix)]
#[tokio::test]
async fn one_plane_leaves_connections_for_others() {
    // Half of the descriptors are for connections, of which a plane may have half.
    const DESCRIPTORS: usize = 128;
    const SHARE: usize = DESCRIPTORS / 4;
    let server = Server::start_with_descriptors(DESCRIPTORS).await;
    let (greedy, other) = (server.create(json!({})).await, server.create(json!({})).await);
    let path = format!("{MAPS}?watch=1");
    let watches = (0..SHARE).map(async |_| greedy.with_a_connection_of_its_own().await.watch(&path).await);
    let held = join_all(watches).await;
    // As many again wait, and would have all places.
    let more = join_all((0..SHARE).map(async |_| greedy.with_a_connection_of_its_own().await.watch(&path).await));
    tokio::select! {
        _ = more => panic!("one plane has all connections"),
        () = async {
            for name in ["a", "b", "c"] {
                other.with_a_connection_of_its_own().await.put_map(name, "1").await;
                server.main.with_a_connection_of_its_own().await.put_map(name, "1").await;
            }
        } => {}
    }
    drop(held);
    assert!(greedy.has(MAPS).await, "there is a place again");
}
