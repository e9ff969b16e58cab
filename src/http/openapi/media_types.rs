//! The media types of requests and answers, as documents list them.

use crate::http::negotiate::PatchMediaType;
use crate::object;
use crate::value::{Map, Value};

/// Answers about custom resources.
const CUSTOM: &[&str] = &["application/json", "application/yaml"];
/// Answers about objects of built-in kinds, and discovery.
pub(super) const BUILT_IN: &[&str] = &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// The same, for resources that can be watched.
const WATCHED: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// A container's log.
const LOG: &[&str] = &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// Whatever both sides agree on.
const ANY: &[&str] = &["*/*"];

/// The media types that an operation accepts.
pub(super) fn consumed(action: &str, is_built_in: bool) -> Vec<&'static str> {
    let patches = if is_built_in { PatchMediaType::BUILT_IN } else { PatchMediaType::CUSTOM };
    match action {
        "patch" => patches.iter().map(|patch_type| patch_type.content_type()).collect(),
        _ if is_built_in => ANY.to_vec(),
        _ => CUSTOM.to_vec(),
    }
}

/// The media types that an operation answers with.
pub(super) fn produced(action: &str, is_built_in: bool) -> &'static [&'static str] {
    match action {
        _ if !is_built_in => CUSTOM,
        "list" | "watch" | "watchlist" => WATCHED,
        "log" => LOG,
        "connect" => ANY,
        _ => BUILT_IN,
    }
}

/// One schema in each of the media types.
pub(super) fn content(media_types: &[&'static str], schema: &Value) -> Value {
    let content = media_types.iter().map(|&name| (name.to_owned(), object! { "schema" => schema.clone() }));
    content.collect::<Map>().into()
}

pub(super) fn texts(texts: &[&'static str]) -> Value {
    texts.iter().map(|&text| Value::from(text)).collect::<Vec<_>>().into()
}
