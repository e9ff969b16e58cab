//! The paths of a version.

use super::connecting::{insert_connecting, insert_log, is_connection};
use super::names::{built_in, document_path};
use super::path_writer::{OpenApiOperation, PathWriter, operation};
use crate::crd::ServedVersion;
use crate::kinds::Action;
use crate::schema::openapi::Dialect;
use crate::value::Map;

const LIST: OpenApiOperation = operation("list", "get", "list", "list");
const COLLECTION: [OpenApiOperation; 3] = [
    LIST,
    operation("create", "post", "post", "create"),
    operation("deletecollection", "delete", "deletecollection", "deletecollection"),
];
const ITEM: [OpenApiOperation; 4] = [
    operation("get", "get", "get", "read"),
    operation("update", "put", "put", "replace"),
    operation("delete", "delete", "delete", "delete"),
    operation("patch", "patch", "patch", "patch"),
];
/// The operations of subresources, other than those of custom resources.
const PART: [OpenApiOperation; 4] = [
    operation("get", "get", "get", "read"),
    operation("update", "put", "put", "replace"),
    operation("patch", "patch", "patch", "patch"),
    operation("create", "post", "post", "create"),
];
const SUBRESOURCE: [OpenApiOperation; 3] = [
    operation("get", "get", "get", "read"),
    operation("update", "put", "put", "replace"),
    operation("patch", "patch", "patch", "patch"),
];
/// The deprecated watch paths below `/watch`, which only built-in kinds have.
const WATCH_LIST: OpenApiOperation = operation("watch", "get", "watchlist", "watchlist");
const WATCH: OpenApiOperation = operation("watch", "get", "watch", "watch");

/// Adds the paths of a version.
pub(super) fn insert_paths(version: &ServedVersion, dialect: Dialect, paths: &mut Map) {
    let base = format!("/{}", document_path(&version.group, &version.version));
    let plural = &version.names.plural;
    let writer = PathWriter { version, dialect, kind: built_in(version) };
    let possible = |operations: &[OpenApiOperation]| -> Vec<OpenApiOperation> {
        operations.iter().filter(|operation| writer.can(operation.name)).copied().collect()
    };
    if version.is_namespaced() && writer.can("list") {
        paths.insert(format!("{base}/{plural}"), writer.path(&[LIST], "", &[], "ForAllNamespaces"));
    }
    let root = format!("{base}{}", writer.collection());
    let (namespace, item) = writer.path_parameters();
    paths.insert(root.clone(), writer.path(&possible(&COLLECTION), "", namespace, ""));
    if writer.can("get") {
        paths.insert(format!("{root}/{{name}}"), writer.path(&possible(&ITEM), "", item, ""));
    }
    for part in writer.kind.into_iter().flat_map(|kind| kind.parts_in(version.minor)) {
        match part.action {
            Action::Log => insert_log(&writer, &root, part, paths),
            _ if is_connection(part) => insert_connecting(&writer, &root, part, paths),
            _ => {
                let operations: Vec<OpenApiOperation> =
                    PART.iter().filter(|operation| part.verbs.contains(&operation.name)).copied().collect();
                paths.insert(format!("{root}/{{name}}/{}", part.name), writer.path(&operations, part.name, item, ""));
            }
        }
    }
    if version.status {
        paths.insert(format!("{root}/{{name}}/status"), writer.path(&SUBRESOURCE, "status", item, ""));
    }
    if version.scale.is_some() {
        paths.insert(format!("{root}/{{name}}/scale"), writer.path(&SUBRESOURCE, "scale", item, ""));
    }
    if writer.is_watched() {
        insert_watches(&writer, &format!("{base}/watch"), paths);
    }
}

/// Adds the paths below `/watch`.
fn insert_watches(writer: &PathWriter<'_>, base: &str, paths: &mut Map) {
    let version = writer.version;
    if version.is_namespaced() {
        let all = writer.path(&[WATCH_LIST], "", &[], "ForAllNamespaces");
        paths.insert(format!("{base}/{}", version.names.plural), all);
    }
    let root = format!("{base}{}", writer.collection());
    let (namespace, item) = writer.path_parameters();
    paths.insert(format!("{root}/{{name}}"), writer.path(&[WATCH], "", item, ""));
    paths.insert(root, writer.path(&[WATCH_LIST], "", namespace, ""));
}
