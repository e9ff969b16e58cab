//! The published documents, as libraries read them.

use openapiv3::OpenAPI;

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
