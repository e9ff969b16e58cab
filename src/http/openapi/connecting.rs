//! The subresources by which a client connects to an object: `exec`, `portforward`, `proxy`, `log`.

use super::media_types::{consumed, produced, texts};
use super::path_writer::{PathWriter, sort_by_name};
use super::words::{identifier, tag};
use crate::kinds::{Action, Part};
use crate::object;
use crate::schema::openapi::Dialect;
use crate::types;
use crate::value::{Map, Value};

/// Methods by the verb that allows them.
const METHODS: [(&str, &str); 7] = [
    ("get", "get"),
    ("create", "post"),
    ("update", "put"),
    ("delete", "delete"),
    ("patch", "patch"),
    ("update", "options"),
    ("update", "head"),
];

/// Whether the subresource is a connection, with options in its query.
pub(super) fn is_connection(part: &Part) -> bool {
    matches!(part.action, Action::Connect | Action::Proxy | Action::ConnectService | Action::ConnectNode)
}

/// Adds the paths of a connection; one that passes all methods on also has a path for whatever follows it.
pub(super) fn insert_connecting(writer: &PathWriter<'_>, root: &str, part: &Part, paths: &mut Map) {
    let path = format!("{root}/{{name}}/{}", part.name);
    if part.verbs.contains(&"update") {
        paths.insert(format!("{path}/{{path}}"), connection(writer, part, &["path"], "WithPath"));
    }
    paths.insert(path, connection(writer, part, &[], ""));
}

fn connection(writer: &PathWriter<'_>, part: &Part, beside: &[&str], suffix: &str) -> Value {
    let names = &writer.version.names;
    let options = part.kind.map_or(names.kind.as_str(), |options| options.kind);
    let mut fields = Map::new();
    for (_, method) in METHODS.iter().filter(|(verb, _)| part.verbs.contains(verb)) {
        let description = format!("connect {} requests to {} of {}", method.to_uppercase(), part.name, names.kind);
        let object = [writer.scope(), &names.kind, &identifier(part.name, true), suffix].concat();
        let id = writer.id("connect", "");
        let id = [&id, &identifier(method, true), &object].map(String::as_str).concat();
        fields.insert(*method, operation(writer, "connect", (description, id), options).into());
    }
    let path = writer.path_parameters().1.iter().chain(beside);
    let mut parameters: Vec<Value> = path.map(|name| writer.path_parameter(name, options)).collect();
    parameters.extend(query_parameters(writer, options));
    sort_by_name(&mut parameters);
    fields.insert("parameters", parameters.into());
    fields.into()
}

/// Adds the path of a container's log.
pub(super) fn insert_log(writer: &PathWriter<'_>, root: &str, part: &Part, paths: &mut Map) {
    let kind = &writer.version.names.kind;
    let id = writer.id("read", &[writer.scope(), kind, &identifier(part.name, true)].concat());
    let description = format!("read {} of the specified {kind}", part.name);
    let mut parameters: Vec<Value> =
        writer.path_parameters().1.iter().map(|name| writer.path_parameter(name, kind)).collect();
    parameters.extend(writer.parameters("pretty"));
    parameters.extend(query_parameters(writer, "PodLogOptions"));
    sort_by_name(&mut parameters);
    let get = operation(writer, "log", (description, id), kind);
    let path = object! { "get" => get, "parameters" => parameters };
    paths.insert(format!("{root}/{{name}}/{}", part.name), path);
}

/// An operation that answers with a text; `action` says how.
fn operation(writer: &PathWriter<'_>, action: &str, (description, id): (String, String), kind: &str) -> Map {
    let (group, version) = (writer.version.group.as_str(), writer.version.version.as_str());
    let text = object! { "type" => "string" };
    let mut fields = Map::new();
    fields.insert("tags", vec![Value::from(tag(group, version))].into());
    fields.insert("description", description.into());
    fields.insert("operationId", id.into());
    fields.insert("responses", writer.responses_of(&[("200", "OK")], action, &text));
    fields.insert("x-kubernetes-action", if action == "log" { "get" } else { action }.into());
    let kind = object! { "group" => group, "version" => version, "kind" => kind };
    fields.insert("x-kubernetes-group-version-kind", kind);
    if writer.dialect == Dialect::V2 {
        fields.insert("consumes", texts(&consumed(action, true)));
        fields.insert("produces", texts(produced(action, true)));
        fields.insert("schemes", texts(&["https"]));
    }
    fields
}

/// The query parameters of a connection.
fn query_parameters(writer: &PathWriter<'_>, options: &str) -> Vec<Value> {
    let (group, version) = (&writer.version.group, &writer.version.version);
    let known = types::of_kind(group, version, options).into_iter().flat_map(|named| named.query_parameters());
    let is_in =
        |parameter: &Value| types::is_field_in(writer.version.minor, "core.v1", options, parameter.str_at(&["name"]));
    known.filter(is_in).map(|parameter| writer.in_dialect(parameter)).collect()
}
