//! A definition's versions: moving what is stored from one to another.

use serde_json::{Value, json};

use super::definitions::{self, send};
use crate::server::{Folder, Server};

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.harbour.example.com";
const OBJECTS: usize = 1_000;
const THREADS: usize = 4;

fn definition(stored: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions.iter().map(|name| definitions::version(name, *name == stored)).collect();
    definitions::definition(&versions)
}

/// Runs `act` for the number of each object, on some threads.
fn for_each_object(act: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            let act = &act;
            scope.spawn(move || (first..OBJECTS).step_by(THREADS).for_each(act));
        }
    });
}

#[test]
fn a_version_goes_once_nothing_is_stored_in_it() {
    let folder = Folder::for_test();
    let file = folder.0.join("boats.json");
    std::fs::write(&file, definition("v1", &["v1", "v2"]).to_string()).expect("the folder is ours");
    let server = Server::start(&folder.0, &["--store", "memory", "--crds", &file.to_string_lossy()]);
    let collection = |version: &str| format!("/apis/harbour.example.com/{version}/namespaces/default/boats");
    for_each_object(|at| {
        let boat = json!({
            "apiVersion": "harbour.example.com/v1", "kind": "Boat", "metadata": {"name": format!("boat-{at}")},
            "spec": {"length": at},
        });
        assert_eq!(send(&server, "POST", &collection("v1"), &boat).status, 201);
    });
    let spec_of = |stored: &str, versions: &[&str]| json!({"spec": definition(stored, versions)["spec"]});
    assert_eq!(send(&server, "PATCH", DEFINITION, &spec_of("v2", &["v1", "v2"])).status, 200);

    let refused = send(&server, "PATCH", DEFINITION, &spec_of("v2", &["v2"]));
    assert_eq!(refused.status, 422, "v1 is still among the stored versions");
    assert_eq!(refused.json()["details"]["causes"][0]["field"], "status.storedVersions[0]");

    for_each_object(|at| {
        let path = format!("{}/boat-{at}", collection("v2"));
        let boat = server.send("GET", &path, &[], None).json();
        let moved = send(&server, "PUT", &path, &boat);
        assert_eq!(moved.status, 200);
        let moved = moved.json();
        assert_ne!(moved["metadata"]["resourceVersion"], boat["metadata"]["resourceVersion"], "it was stored as v1");
        assert_eq!(moved["metadata"]["generation"], 1);
    });
    let trimmed = json!({"status": {"storedVersions": ["v2"]}});
    assert_eq!(send(&server, "PATCH", &format!("{DEFINITION}/status"), &trimmed).status, 200);
    assert_eq!(send(&server, "PATCH", DEFINITION, &spec_of("v2", &["v2"])).status, 200);

    let list = server.send("GET", &collection("v2"), &[], None).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(OBJECTS));
    assert_eq!(server.send("GET", &collection("v1"), &[], None).status, 404);
}
