//! Protobuf over HTTP, written and read with the messages of `k8s-pb`, not with ours.

use k8s_pb::api::apidiscovery::v2::APIGroupDiscoveryList;
use k8s_pb::api::apps::v1::ControllerRevision;
use k8s_pb::api::core::v1::{Namespace, NamespaceList};
use k8s_pb::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_pb::apimachinery::pkg::apis::meta::v1::{
    APIGroupList, APIResourceList, APIVersions, DeleteOptions, ObjectMeta, PartialObjectMetadataList, Preconditions,
    Status, WatchEvent,
};
use k8s_pb::apimachinery::pkg::runtime::{RawExtension, TypeMeta, Unknown};
use prost::Message;

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A body: the object in its envelope.
fn seal(api_version: &str, kind: &str, object: &impl Message) -> Vec<u8> {
    let type_meta = TypeMeta { api_version: Some(api_version.to_owned()), kind: Some(kind.to_owned()) };
    let unknown = Unknown { type_meta: Some(type_meta), raw: Some(object.encode_to_vec()), ..Unknown::default() };
    [&b"k8s\0"[..], &unknown.encode_to_vec()].concat()
}

/// The object in a body, and its `apiVersion/kind`.
fn open<M: Message + Default>(body: &[u8]) -> (String, M) {
    let body = body.strip_prefix(b"k8s\0").expect("a body begins with its mark");
    let unknown = Unknown::decode(body).expect("an envelope follows");
    let type_meta = unknown.type_meta.unwrap_or_default();
    let type_ = format!("{}/{}", type_meta.api_version.unwrap_or_default(), type_meta.kind.unwrap_or_default());
    (type_, M::decode(&*unknown.raw.unwrap_or_default()).expect("the object is of its type"))
}

/// Sends a request in protobuf, and wants its answer so.
fn send(server: &Server, method: &str, path: &str, body: Option<&[u8]>) -> Answer {
    server.send(method, path, &[("Content-Type", PROTOBUF), ("Accept", PROTOBUF)], body)
}

#[track_caller]
fn check_type(answer: &Answer, status: u16, content_type: &str) {
    let found = answer.headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.as_str());
    assert_eq!((answer.status, found), (status, Some(content_type)), "{}", String::from_utf8_lossy(&answer.body));
}

fn namespace(name: &str) -> Namespace {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    Namespace { metadata: Some(metadata), ..Namespace::default() }
}

#[test]
fn a_built_in_kind_lives_in_protobuf() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let created = send(&server, "POST", NAMESPACES, Some(&seal("v1", "Namespace", &namespace("a"))));
    check_type(&created, 201, PROTOBUF);
    let (type_, created) = open::<Namespace>(&created.body);
    assert_eq!(type_, "v1/Namespace");
    assert_eq!(created.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Active"));

    let mut changed = created.clone();
    let metadata = changed.metadata.get_or_insert_default();
    metadata.labels.insert("team".to_owned(), "b".to_owned());
    let path = format!("{NAMESPACES}/a");
    let updated = send(&server, "PUT", &path, Some(&seal("", "", &changed)));
    check_type(&updated, 200, PROTOBUF);
    let (_, list) =
        open::<NamespaceList>(&send(&server, "GET", &format!("{NAMESPACES}?labelSelector=team%3Db"), None).body);
    let [listed] = &list.items[..] else { panic!("one namespace has the label: {list:?}") };
    assert_eq!(Some(listed), Some(&open::<Namespace>(&updated.body).1));

    let wrong = Preconditions { uid: Some("x".to_owned()), ..Preconditions::default() };
    let options = DeleteOptions { preconditions: Some(wrong), ..DeleteOptions::default() };
    let refused = send(&server, "DELETE", &path, Some(&seal("v1", "DeleteOptions", &options)));
    check_type(&refused, 409, PROTOBUF);
    let (type_, status) = open::<Status>(&refused.body);
    assert_eq!((type_.as_str(), status.reason.as_deref()), ("v1/Status", Some("Conflict")));
    check_type(&send(&server, "DELETE", &path, None), 200, PROTOBUF);
}

#[test]
fn a_definition_keeps_its_schema_in_protobuf() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let (_, mut definition) = open::<CustomResourceDefinition>(&send(&server, "GET", &path, None).body);
    let version = &mut definition.spec.get_or_insert_default().versions[0];
    let schema = version.schema.as_mut().and_then(|schema| schema.open_apiv3_schema.as_mut()).expect("it has one");
    let spec = schema.properties.get_mut("spec").expect("objects have a spec");
    spec.description = Some("written in protobuf".to_owned());
    check_type(&send(&server, "PUT", &path, Some(&seal("", "", &definition))), 200, PROTOBUF);
    let json = server.send("GET", &path, &[], None).json();
    let spec = &json["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["description"], "written in protobuf");
    assert_eq!(spec["type"], "object");
}

#[test]
fn a_watch_has_frames_behind_their_length() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let path = format!("{NAMESPACES}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Ddefault");
    let answer = server.send("GET", &path, &[("Accept", PROTOBUF)], None);
    check_type(&answer, 200, "application/vnd.kubernetes.protobuf;stream=watch");
    let (length, frame) = answer.body.split_first_chunk().expect("there is an event");
    let frame = &frame[..u32::from_be_bytes(*length) as usize];
    let event = WatchEvent::decode(frame).expect("a frame is an event");
    let object = event.object.and_then(|object| object.raw).unwrap_or_default();
    assert_eq!(event.r#type.as_deref(), Some("ADDED"));
    assert_eq!(open::<Namespace>(&object).1.metadata.unwrap_or_default().name.as_deref(), Some("default"));
}

#[test]
fn of_a_custom_object_only_metadata_goes_out() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let created = server.send("POST", CRONTABS, &[], Some(crontab("a").to_string().as_bytes()));
    assert_eq!(created.status, 201);
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
    let listed = server.send("GET", CRONTABS, &[("Accept", &metadata)], None);
    check_type(&listed, 200, PROTOBUF);
    let (type_, list) = open::<PartialObjectMetadataList>(&listed.body);
    assert_eq!(type_, "meta.k8s.io/v1/PartialObjectMetadataList");
    let names = list.items.iter().filter_map(|item| item.metadata.as_ref()?.name.as_deref());
    assert_eq!(names.collect::<Vec<_>>(), ["a"]);
    let refused = send(&server, "GET", &format!("{CRONTABS}/a"), None);
    check_type(&refused, 406, PROTOBUF);
    assert_eq!(open::<Status>(&refused.body).1.reason.as_deref(), Some("NotAcceptable"));
    let fallback = server.send("GET", CRONTABS, &[("Accept", &format!("{PROTOBUF}, application/json"))], None);
    check_type(&fallback, 200, "application/json");
    let body = seal("stable.example.com/v1", "CronTab", &namespace("b"));
    let refused = server.send("POST", CRONTABS, &[("Content-Type", PROTOBUF)], Some(&body));
    let message = "CronTab in version \"v1\" cannot be handled as a CronTab: \
                   Object 'Kind' is missing in 'object has no kind field '";
    assert_eq!((refused.status, refused.json()["message"].as_str()), (400, Some(message)));
}

#[test]
fn malformed_bodies_are_told_as_the_reference_does() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let check = |body: &[u8], expected: &str| {
        let answer = server.send("POST", DEFINITIONS, &[("Content-Type", PROTOBUF)], Some(body));
        assert_eq!((answer.status, answer.json()["message"].as_str()), (400, Some(expected)));
    };
    let unrecognized = "the object provided is unrecognized (must be of type CustomResourceDefinition): ";
    check(b"", &format!("{unrecognized}empty data (<empty>)"));
    check(b"k8s\0", &format!("{unrecognized}empty body (6b387300)"));
    check(
        b"garbage",
        &format!(
            "{unrecognized}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] \
             (67617262616765)"
        ),
    );
    check(b"k8s\0\x0a\xff", &format!("{unrecognized}unexpected EOF (6b3873000aff)"));
    let kind = "CustomResourceDefinition";
    check(
        b"k8s\0\x0a\x00\x12\x03\x08\x80\x01",
        &format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: proto: wrong wireType = 0 for field ObjectMeta"
        ),
    );
    check(
        b"k8s\0\x0a\x0a\x12\x08Nonsense\x12\x00",
        &format!(
            "Nonsense in version \"v1\" cannot be handled as a {kind}: no kind \"Nonsense\" is registered for version \
             \"apiextensions.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\""
        ),
    );
}

#[test]
fn every_built_in_kind_speaks_protobuf() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let (_, core) = open::<APIVersions>(&send(&server, "GET", "/api", None).body);
    let (_, groups) = open::<APIGroupList>(&send(&server, "GET", "/apis", None).body);
    let groups = groups.groups.iter().flat_map(|group| &group.versions);
    let documents =
        groups.filter_map(|version| version.group_version.as_ref()).map(|version| format!("/apis/{version}"));
    let mut kinds = 0;
    for document in core.versions.iter().map(|version| format!("/api/{version}")).chain(documents) {
        let answer = send(&server, "GET", &document, None);
        check_type(&answer, 200, PROTOBUF);
        let (type_, list) = open::<APIResourceList>(&answer.body);
        assert_eq!(type_, if document == "/api/v1" { "/APIResourceList" } else { "v1/APIResourceList" });
        let listed = list.resources.iter().filter(|resource| {
            resource.verbs.as_ref().is_some_and(|verbs| verbs.items.iter().any(|verb| verb == "list"))
        });
        for resource in listed.filter_map(|resource| resource.name.as_deref()) {
            if !resource.contains('/') {
                check_type(&send(&server, "GET", &format!("{document}/{resource}"), None), 200, PROTOBUF);
                kinds += 1;
            }
        }
    }
    assert!(kinds >= 2, "{kinds}");
}

#[test]
fn the_space_in_json_that_came_in_protobuf_is_kept() {
    const COLLECTION: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
    let data = RawExtension { raw: Some(br#"{"b": 1}"#.to_vec()) };
    let revision = ControllerRevision { metadata: Some(metadata), data: Some(data), revision: Some(1) };
    let created = send(&server, "POST", COLLECTION, Some(&seal("apps/v1", "ControllerRevision", &revision)));
    assert_eq!(created.status, 201);
    let put = |data: &str| {
        let body = format!(r#"{{"metadata":{{"name":"a"}},"data":{data},"revision":2}}"#);
        server.send("PUT", &format!("{COLLECTION}/a"), &[], Some(body.as_bytes())).status
    };
    assert_eq!((put(r#"{"b": 1}"#), put(r#"{"b":1}"#)), (200, 422));
}

#[test]
fn aggregated_discovery_is_there_in_protobuf() {
    const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let accepted = format!("application/json,{PROTOBUF}{AGGREGATED}");
    let answer = server.send("GET", "/api", &[("Accept", &accepted)], None);
    check_type(&answer, 200, &format!("{PROTOBUF}{AGGREGATED}"));
    let (type_, list) = open::<APIGroupDiscoveryList>(&answer.body);
    assert_eq!(type_, "apidiscovery.k8s.io/v2/APIGroupDiscoveryList");
    let resources = &list.items[0].versions[0].resources;
    assert_eq!((list.items.len(), resources[0].resource()), (1, "bindings"));
    let yaml = server.send("GET", "/api", &[("Accept", &format!("application/yaml{AGGREGATED}"))], None);
    check_type(&yaml, 200, &format!("application/yaml{AGGREGATED}"));
    assert_eq!(yaml.header("etag"), answer.header("etag"), "all forms have one tag");
    assert_eq!(yaml.header("cache-control"), "public");
    let streamed = format!("application/yaml;stream=watch{AGGREGATED},application/json");
    let plain = server.send("GET", "/api", &[("Accept", &streamed)], None);
    check_type(&plain, 200, "application/json");
}
