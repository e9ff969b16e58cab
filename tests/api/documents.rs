//! The published documents, as libraries read them.

use openapiv3::OpenAPI;
use serde_json::json;

use crate::server::{Folder, Server};

#[test]
fn every_openapi_document_is_one_to_other_readers() {
    let folder = Folder::for_test();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/crd-examples");
    let server = Server::start(&folder.0, &["--store", "memory", "--crds", examples]);
    let index = server.send("GET", "/openapi/v3", &[], None).json();
    let paths = index["paths"].as_object().expect("the index has paths");
    assert!(paths.contains_key("apis/rules.example.com/v1"), "{index}");
    for (path, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().expect("each has an address");
        let document = server.send("GET", url, &[("Accept", "application/json")], None);
        if document.body.is_empty() {
            // As recorded: a version that is not served is listed, and has nothing to show.
            continue;
        }

        let read: Result<OpenAPI, _> = serde_json::from_slice(&document.body);

        let read = read.unwrap_or_else(|error| panic!("{path}: {error}"));
        let published = document.json();
        let count =
            |pointer: &str| published.pointer(pointer).and_then(|value| value.as_object()).map_or(0, |map| map.len());
        assert_eq!(read.paths.paths.len(), count("/paths"), "{path}");
        assert_eq!(
            read.components.map_or(0, |components| components.schemas.len()),
            count("/components/schemas"),
            "{path}"
        );
    }
}

#[test]
fn the_list_of_the_core_group_has_no_version_and_hashes_of_what_is_stored() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let list = server.send("GET", "/api/v1", &[], None).json();
    assert_eq!((&list["kind"], list.get("apiVersion")), (&json!("APIResourceList"), None));
    let resources = list["resources"].as_array().expect("it is a list");
    let has_hash = |name: &str| {
        let resource = resources.iter().find(|resource| resource["name"] == name).expect("it is listed");
        resource.get("storageVersionHash").is_some()
    };
    assert_eq!(["configmaps", "componentstatuses", "bindings"].map(has_hash), [true, false, false]);
}
