//! The objects that Kubernetes publishes with its types: one of each kind with every field set, in JSON, YAML and
//! protobuf. All three are read as the same object, and written as the same bytes.
//!
//! `golden/kinds/testdata.jsonl.gz` holds `testdata/HEAD` of `k8s.io/api` 1.37: a line is a file, with its `text`, or in
//! `base64` where it is protobuf. `KNOWN-TESTDATA` lists the kinds for which that does not hold.
//!
//! `golden/kinds/testdata-older.jsonl.gz` holds what 1.33 to 1.36 published of kinds that are served today, where it was
//! another object: both forms, and what is left of it `after` it was read, where fields are gone since.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeskiff::kinds;
use kubeskiff::kinds::layout;
use kubeskiff::object;
use kubeskiff::protobuf::{self, ItemTexts};
use kubeskiff::value::{Value, json, yaml};

const METADATA_LIST: &str = "PartialObjectMetadataList";

/// The files of a kind.
#[derive(Default)]
struct Files {
    json: Vec<u8>,
    yaml: Vec<u8>,
    protobuf: Vec<u8>,
}

#[test]
fn the_published_object_of_every_kind_is_read_and_written_in_all_forms() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let known = known(&folder.join("spec/KNOWN-TESTDATA"));
    let mut faults = Vec::new();
    for (name, files) in read(&folder.join("golden/kinds/testdata.jsonl.gz")) {
        match (check(&files), known.contains_key(&name)) {
            (Err(fault), false) => faults.push(format!("{name}: {fault}")),
            (Ok(()), true) => faults.push(format!("{name} holds now: take it off KNOWN-TESTDATA")),
            _ => {}
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn the_objects_of_older_minors_are_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/kinds/testdata-older.jsonl.gz");
    let mut faults = Vec::new();
    for line in lines(&path) {
        if let Err(fault) = check_older(&line) {
            faults.push(format!("{} of {:?}: {fault}", line.str_at(&["kind"]), line.items_at(&["minors"])));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn check_older(line: &Value) -> Result<(), String> {
    let read = |name: &str| json::decode(line.str_at(&[name]).as_bytes()).map_err(|error| error.to_string());
    let object = read("json")?;
    let left = if line.get("after").is_some() { read("after")? } else { object.clone() };
    let message =
        kinds::message_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"])).ok_or("it is not known")?;
    let (typed, _) = message.decode(&object).map_err(|error| error.to_string())?;
    same("JSON that is read", &json::encode(&left), &json::encode(&with_type(typed, &object)))?;
    let bytes = STANDARD.decode(line.str_at(&["protobuf"])).map_err(|error| error.to_string())?;
    let envelope = protobuf::open(&bytes).map_err(|error| error.to_string())?;
    let from_protobuf = protobuf::decode(message, envelope.raw).map_err(|error| error.to_string())?;
    same("protobuf that is read", &json::encode(&left), &json::encode(&with_type(from_protobuf, &object)))
}

/// The lines of a file.
fn lines(path: &Path) -> Vec<Value> {
    let packed = fs::read(path).expect("the file is there");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("it is gzip");
    text.lines().map(|line| json::decode(line.as_bytes()).expect("a line is JSON")).collect()
}

/// By kind: `apps.v1.Deployment`.
fn read(path: &Path) -> BTreeMap<String, Files> {
    let mut kinds: BTreeMap<String, Files> = BTreeMap::new();
    for line in lines(path) {
        let (name, form) = line.str_at(&["file"]).rsplit_once('.').expect("a file has an extension");
        let files = kinds.entry(name.to_owned()).or_default();
        let text = line.str_at(&["text"]).as_bytes().to_vec();
        match form {
            "json" => files.json = text,
            "yaml" => files.yaml = text,
            _ => files.protobuf = STANDARD.decode(line.str_at(&["base64"])).expect("it is base64"),
        }
    }
    kinds
}

/// The kinds that are known not to hold, and why.
fn known(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).expect("the list of known ones is there");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let split = |line: &str| line.split_once(": ").map(|(name, cause)| (name.to_owned(), cause.to_owned()));
    lines.map(|line| split(line).expect("a line is NAME: CAUSE")).collect()
}

fn check(files: &Files) -> Result<(), String> {
    let object = json::decode(&files.json).map_err(|error| error.to_string())?;
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let message = kinds::message_of(api_version, kind).ok_or("the kind is not known")?;
    let (typed, _) = message.decode(&object).map_err(|error| error.to_string())?;
    let typed = with_type(typed, &object);
    same("JSON that is read", &json::encode(&object), &json::encode(&typed))?;
    let from_yaml = yaml::decode(&files.yaml).map_err(|error| error.to_string())?;
    same("YAML that is read", &json::encode(&object), &json::encode(&from_yaml))?;
    let envelope = protobuf::open(&files.protobuf).map_err(|error| error.to_string())?;
    let from_protobuf = protobuf::decode(message, envelope.raw).map_err(|error| error.to_string())?;
    same("protobuf that is read", &json::encode(&object), &json::encode(&with_type(from_protobuf, &object)))?;
    same("JSON", &files.json, &json::indent(&json::encode_as(&object, layout::of(&object))))?;
    same("YAML", &files.yaml, yaml::encode(&object).as_bytes())?;
    same("protobuf", &files.protobuf, &kinds::seal(&object).ok_or("the kind has no message")?)?;
    let text = json::encode(&object);
    same("protobuf of the text", &files.protobuf, &kinds::seal_text(&text).ok_or("the kind has no message")?)?;
    same("protobuf of the indented text", &files.protobuf, &kinds::seal_text(&files.json).ok_or("it has no message")?)?;
    check_list(&object, &text)
}

/// A list of texts is that of their values, be it of the objects or of their metadata.
fn check_list(object: &Value, text: &[u8]) -> Result<(), String> {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    // An APIGroup is not listed: what is called so has other fields.
    let own = (api_version, format!("{kind}List"));
    let own = Some(own).filter(|(_, list)| list != "APIGroupList");
    for (api_version, kind) in own.into_iter().chain([("meta.k8s.io/v1", METADATA_LIST.to_owned())]) {
        let metadata = object! { "resourceVersion" => "7" };
        let mut list = object! { "apiVersion" => api_version, "kind" => kind, "metadata" => metadata };
        let write = |at: usize, out: &mut Vec<u8>| match at {
            // This one is decoded.
            1 => out.extend(json::indent(text)),
            _ => out.extend_from_slice(text),
        };
        let sealed = kinds::seal_list(&list, ItemTexts { count: 3, size_bytes: 0, write });
        list.make_object().insert("items", Value::Array(vec![object.clone(); 3]));
        same("a list", &kinds::seal(&list).unwrap_or_default(), &sealed.unwrap_or_default())?;
    }
    let partial = object! { "apiVersion" => "meta.k8s.io/v1", "kind" => "PartialObjectMetadata" };
    let partial = with_metadata(partial, object);
    let sealed = kinds::seal_metadata(text, "meta.k8s.io/v1").ok_or("the text has no tree")?;
    same("metadata", &kinds::seal(&partial).ok_or("metadata have a message")?, &sealed)
}

fn with_metadata(mut partial: Value, object: &Value) -> Value {
    partial.make_object().insert("metadata", object.get("metadata").cloned().unwrap_or_default());
    partial
}

/// What a message holds, with kind and apiVersion.
fn with_type(mut object: Value, like: &Value) -> Value {
    for name in ["apiVersion", "kind"] {
        object.make_object().insert(name, Value::from(like.str_at(&[name])));
    }
    object
}

/// Where two texts begin to differ.
fn same(what: &str, wanted: &[u8], got: &[u8]) -> Result<(), String> {
    let wanted_then = wanted.iter().map(Some).chain([None]);
    let got_then = got.iter().map(Some).chain([None]);
    let Some(at) = wanted_then.zip(got_then).position(|(wanted, got)| wanted != got) else { return Ok(()) };
    let shown =
        |text: &[u8]| String::from_utf8_lossy(&text[at.saturating_sub(60)..text.len().min(at + 60)]).into_owned();
    Err(format!("{what} differs at byte {at}: expected {:?}, got {:?}", shown(wanted), shown(got)))
}
