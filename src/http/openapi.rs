//! OpenAPI documents: what is served, as `kubectl explain`, `apply` and `diff` read it.
//!
//! In: served versions. Out: whole documents as values, for the caller to encode, cache and tag. Building one walks every
//! schema, so nothing here runs before a client asks.
//! The documents are plain values, not `openapiv3` types: Kubernetes publishes `uniqueItems` on strings and numbers, which
//! those can't say, and every schema is a value already.
//! Source: documents recorded from apiextensions-apiserver 1.37; the shared definitions stand in `schemas/openapi.json`.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use sha2::{Digest, Sha512};

use super::negotiate::PatchMediaType;
use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::minor::Minor;
use crate::object;
use crate::schema::openapi::{self, Dialect, OpenApiOptions, PublishedKind};
use crate::types::{self, collect_references};
use crate::value::{Map, Value};
use crate::work;

/// Bytes of a document, not counting what all kinds share: kinds beyond are left out. The reference has no such limit.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// The media type of an OpenAPI v2 document in protobuf, which is not served: 406.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Definitions and parameters that all kinds share, in the words of v3.
struct SharedDefinitions {
    definitions: Map,
    parameters: Map,
}

static SHARED: LazyLock<SharedDefinitions> = LazyLock::new(|| work::essential(read_shared));

fn read_shared() -> SharedDefinitions {
    let text = include_str!("../../schemas/openapi.json");
    let document = crate::value::json::decode(text.as_bytes()).expect("schemas/openapi.json is JSON");
    let part = |name| document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    SharedDefinitions { definitions: part("definitions"), parameters: part("parameters") }
}

/// The version of Kubernetes that the server of these versions speaks for.
fn minor_of(versions: &[Arc<ServedVersion>]) -> Minor {
    versions.first().map(|version| version.minor).unwrap_or_default()
}

/// The document of one group and version: all of its resources.
pub fn v3_document(versions: &[Arc<ServedVersion>]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let mut room = DOCUMENT_BYTES_MAX;
    for version in versions {
        let (mut own_schemas, mut own_paths) = (Map::new(), Map::new());
        insert_definitions(version, Dialect::V3, &mut own_schemas);
        insert_paths(version, Dialect::V3, &mut own_paths);
        let Some(left) = room.checked_sub(bytes_of(&own_schemas) + bytes_of(&own_paths)) else { continue };
        room = left;
        own_schemas.into_iter().for_each(|(name, schema)| _ = schemas.insert(name, schema));
        own_paths.into_iter().for_each(|(name, path)| _ = paths.insert(name, path));
    }
    insert_shared([&paths], minor_of(versions), Dialect::V3, &mut schemas);
    object! {
        "openapi" => "3.0.0",
        "info" => object! { "title" => "Kubernetes CRD Swagger", "version" => "v0.1.0" },
        "paths" => paths,
        "components" => object! { "schemas" => schemas },
    }
}

/// The one v2 document of everything that is served. Defaults are left out, and parameters stand in one place.
pub fn v2_document(versions: &[Arc<ServedVersion>], server_version: &str) -> Value {
    let (mut paths, mut parameters) = (Map::new(), Map::new());
    let mut definitions = Map::new();
    let mut room = DOCUMENT_BYTES_MAX;
    for version in versions {
        let (mut own_definitions, mut own_paths) = (Map::new(), Map::new());
        insert_definitions(version, Dialect::V2, &mut own_definitions);
        insert_paths(version, Dialect::V2, &mut own_paths);
        // At once, as parameters are most of a document until they are shared.
        let shared = share_parameters(&mut own_paths);
        let Some(left) = room.checked_sub(bytes_of(&own_definitions) + bytes_of(&own_paths)) else { continue };
        room = left;
        own_definitions.into_iter().for_each(|(name, definition)| _ = definitions.insert(name, definition));
        own_paths.into_iter().for_each(|(name, path)| _ = paths.insert(name, path));
        shared.into_iter().for_each(|(name, parameter)| _ = parameters.insert(name, parameter));
    }
    insert_shared([&paths, &parameters], minor_of(versions), Dialect::V2, &mut definitions);
    definitions.values_mut().for_each(remove_defaults);
    let token = object! {
        "description" => "Bearer Token authentication", "type" => "apiKey", "name" => "authorization", "in" => "header",
    };
    object! {
        "swagger" => "2.0",
        "info" => object! { "title" => "Kubernetes", "version" => server_version },
        "paths" => paths,
        "definitions" => definitions,
        "parameters" => parameters,
        "securityDefinitions" => object! { "BearerToken" => token },
        "security" => vec![object! { "BearerToken" => Vec::new() }],
    }
}

/// The index of v3 documents: `path` is `apis/GROUP/VERSION` or `api/v1`, `hash` changes whenever the document does.
pub fn v3_index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let paths = documents
        .into_iter()
        .map(|(path, hash)| (path.to_owned(), object! { "serverRelativeURL" => v3_url(path, hash) }));
    object! { "paths" => paths.collect::<Map>() }
}

/// Where a document is. Asked for with another hash, it is moved there: 301.
pub fn v3_url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// The tag of a document, without quotes: SHA-512 in upper-case hexadecimal.
pub fn etag(document: &[u8]) -> String {
    use std::fmt::Write;
    let mut tag = String::with_capacity(128);
    for byte in Sha512::digest(document) {
        // Writing to a String does not fail.
        let _ = write!(tag, "{byte:02X}");
    }
    tag
}

/// `apis/GROUP/VERSION`, or `api/VERSION` for the core group.
pub fn document_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Groups whose kinds come with the server; their definitions have names of their own.
fn is_built_in(group: &str) -> bool {
    !group.contains('.') || types::knows_group(group)
}

fn definition_name(group: &str, version: &str, kind: &str) -> String {
    match group.split('.').next().unwrap_or_default() {
        _ if !is_built_in(group) => openapi::definition_name(group, version, kind),
        "apiextensions" => {
            format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}")
        }
        "apiregistration" => format!("io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{kind}"),
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        name => format!("io.k8s.api.{name}.{version}.{kind}"),
    }
}

/// The definitions of a built-in kind and its list, and of every type within them.
fn insert_published(kind: &kinds::Kind, minor: Minor, dialect: Dialect, definitions: &mut Map) {
    let list = format!("{}List", kind.kind);
    let own = types::of_kind(kind.group, kind.version, kind.kind);
    let list = kind.can("list").then(|| types::of_kind(kind.group, kind.version, &list)).flatten();
    let mut waiting: Vec<_> = own.into_iter().chain(list).collect();
    while let Some(named) = waiting.pop() {
        let name = named.definition_name();
        if definitions.contains_key(&name) || SHARED.definitions.contains_key(&name) {
            continue;
        }
        let definition = named.definition_in(minor);
        waiting.extend(definition.references);
        let schema = match dialect {
            Dialect::V2 => reduce_to_v2(&definition.schema),
            Dialect::V3 => definition.schema,
        };
        definitions.insert(name, schema);
    }
}

fn insert_definitions(version: &ServedVersion, dialect: Dialect, definitions: &mut Map) {
    if let Some(kind) = kinds::of_all_minors().find(|kind| kind.is_form(version)) {
        insert_published(kind, version.minor, dialect, definitions);
        for kind in kind.parts_in(version.minor).filter_map(|part| part.kind) {
            insert_published(kind, version.minor, dialect, definitions);
        }
        return;
    }
    let kind = PublishedKind {
        group: &version.group,
        version: &version.version,
        kind: &version.names.kind,
        list_kind: &version.names.list_kind,
        plural: &version.names.plural,
        // What built-in kinds are selected by is not published.
        selectable_fields: if is_built_in(&version.group) { &[] } else { &version.selectable_fields },
    };
    let name = definition_name(kind.group, kind.version, kind.kind);
    if SHARED.definitions.contains_key(&name) {
        return;
    }
    let schema = Some(version.structural.as_ref());
    let definition = openapi::publish(schema, &kind, version.preserve_unknown_fields, OpenApiOptions::all(dialect));
    let mut list = openapi::publish_list(&kind, dialect);
    if let Some(items) = list.at_mut(&["properties", "items", "items"]) {
        *items = dialect.reference(&name);
    }
    definitions.insert(name, definition);
    definitions.insert(definition_name(kind.group, kind.version, kind.list_kind), list);
}

/// Adds the shared definitions that `others` and definitions refer to, and those that these refer to.
fn insert_shared<'m>(others: impl IntoIterator<Item = &'m Map>, minor: Minor, dialect: Dialect, definitions: &mut Map) {
    let mut wanted = HashSet::new();
    let others = others.into_iter().flat_map(Map::values);
    others.for_each(|other| collect_references(other, &mut wanted));
    definitions.values().for_each(|definition| collect_references(definition, &mut wanted));
    let mut waiting: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = waiting.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        let Some(mut definition) = SHARED.definitions.get(&name).cloned() else { continue };
        types::make_older(minor, &name, &mut definition);
        let definition = match dialect {
            Dialect::V2 => reduce_to_v2(&definition),
            Dialect::V3 => definition,
        };
        let mut wanted = HashSet::new();
        collect_references(&definition, &mut wanted);
        waiting.extend(wanted);
        definitions.insert(name, definition);
    }
}

/// A shared definition in v2: a reference stands beside its description.
fn reduce_to_v2(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut reduced = Map::new();
            for (name, value) in fields.iter() {
                match (name, value) {
                    ("$ref", Value::String(reference)) => {
                        let name = reference.rsplit('/').next().unwrap_or_default();
                        let reference = Dialect::V2.reference(name);
                        reduced.insert("$ref", reference.get("$ref").cloned().unwrap_or_default());
                    }
                    ("allOf", Value::Array(items)) if items.len() == 1 => {
                        if let Value::Object(reference) = reduce_to_v2(&items[0]) {
                            reference.into_iter().for_each(|(name, value)| {
                                reduced.insert(name, value);
                            });
                        }
                    }
                    // Amounts, and numbers that may be texts: v2 has one type for a value.
                    ("oneOf", Value::Array(_)) => {
                        reduced.insert("type", "string".into());
                    }
                    _ => {
                        reduced.insert(name, reduce_to_v2(value));
                    }
                }
            }
            reduced.into()
        }
        Value::Array(items) => items.iter().map(reduce_to_v2).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// About how long these are as JSON.
fn bytes_of(fields: &Map) -> usize {
    fn of(value: &Value) -> usize {
        work::step();
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => 2 + items.iter().map(|item| 1 + of(item)).sum::<usize>(),
            Value::Object(fields) => bytes_of(fields),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 4,
        }
    }
    2 + fields.iter().map(|(name, value)| name.len() + 4 + of(value)).sum::<usize>()
}

/// Removes the defaults of a schema and of the schemas within it.
fn remove_defaults(schema: &mut Value) {
    work::step();
    let Some(fields) = schema.as_object_mut() else { return };
    fields.remove("default");
    for (name, value) in fields.iter_mut() {
        match (name, value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(remove_defaults),
            ("items" | "additionalProperties" | "not", schema) => remove_defaults(schema),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(remove_defaults),
            _ => {}
        }
    }
}

/// One method of one path.
#[derive(Clone, Copy)]
struct OpenApiOperation {
    /// What it does, in the words of discovery.
    name: &'static str,
    method: &'static str,
    /// `x-kubernetes-action`, which also names the parameters.
    action: &'static str,
    /// The first word of description and operation id.
    verb: &'static str,
}

const fn operation(
    name: &'static str,
    method: &'static str,
    action: &'static str,
    verb: &'static str,
) -> OpenApiOperation {
    OpenApiOperation { name, method, action, verb }
}

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
/// Of subresources other than those of custom resources.
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

fn insert_paths(version: &ServedVersion, dialect: Dialect, paths: &mut Map) {
    let base = format!("/{}", document_path(&version.group, &version.version));
    let plural = &version.names.plural;
    let writer = PathWriter { version, dialect };
    let built_in = kinds::find(&version.group, plural);
    let can = |verb: &str| built_in.is_none_or(|kind| kind.can(verb));
    let possible = |operations: &[OpenApiOperation]| -> Vec<OpenApiOperation> {
        operations.iter().filter(|operation| can(operation.name)).copied().collect()
    };
    if version.is_namespaced() && can("list") {
        paths.insert(format!("{base}/{plural}"), writer.path(&[LIST], "", &[], "ForAllNamespaces"));
    }
    let root = if version.is_namespaced() {
        format!("{base}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{base}/{plural}")
    };
    let namespace: &[&str] = if version.is_namespaced() { &["namespace"] } else { &[] };
    let item: &[&str] = if version.is_namespaced() { &["name", "namespace"] } else { &["name"] };
    paths.insert(root.clone(), writer.path(&possible(&COLLECTION), "", namespace, ""));
    if can("get") {
        paths.insert(format!("{root}/{{name}}"), writer.path(&possible(&ITEM), "", item, ""));
    }
    for part in built_in.into_iter().flat_map(|kind| kind.parts_in(version.minor)) {
        let operations: Vec<OpenApiOperation> =
            PART.iter().filter(|operation| part.verbs.contains(&operation.name)).copied().collect();
        paths.insert(format!("{root}/{{name}}/{}", part.name), writer.path(&operations, part.name, item, ""));
    }
    if version.status {
        paths.insert(format!("{root}/{{name}}/status"), writer.path(&SUBRESOURCE, "status", item, ""));
    }
    if version.scale.is_some() {
        paths.insert(format!("{root}/{{name}}/scale"), writer.path(&SUBRESOURCE, "scale", item, ""));
    }
}

struct PathWriter<'a> {
    version: &'a ServedVersion,
    dialect: Dialect,
}

impl PathWriter<'_> {
    /// The methods of a path. Parameters that all of them have belong to the path: a single method gives it all.
    fn path(
        &self,
        operations: &[OpenApiOperation],
        subresource: &str,
        path_parameters: &[&str],
        suffix: &str,
    ) -> Value {
        let mut shared: Vec<Value> = path_parameters.iter().map(|name| self.path_parameter(name)).collect();
        shared.extend(self.parameters("pretty"));
        let mut fields = Map::new();
        for operation in operations {
            let mut written = self.operation(operation, subresource, suffix);
            let own = match written.remove("parameters") {
                Some(Value::Array(own)) => own,
                _ => Vec::new(),
            };
            match operations.len() {
                1 => shared.extend(own),
                _ => {
                    written.insert("parameters", own.into());
                }
            }
            fields.insert(operation.method, written.into());
        }
        shared.sort_by(|left, right| left.str_at(&["name"]).cmp(right.str_at(&["name"])));
        fields.insert("parameters", shared.into());
        fields.into()
    }

    fn operation(&self, operation: &OpenApiOperation, subresource: &str, suffix: &str) -> Map {
        let names = &self.version.names;
        let (group, version) = (self.version.group.as_str(), self.version.version.as_str());
        let short_group = match group {
            "" => "core",
            group => group.strip_suffix(".k8s.io").unwrap_or(group),
        };
        let is_namespaced = self.version.is_namespaced() && suffix.is_empty();
        let scope = if is_namespaced { "Namespaced" } else { "" };
        let (verb, collection) = match operation.verb {
            "deletecollection" => ("delete", "collection"),
            verb => (verb, ""),
        };
        let object = [collection, scope, &names.kind, &identifier(subresource, true), suffix].concat();
        let id =
            [verb, &identifier(short_group, true), &identifier(version, true), &identifier(&object, true)].concat();
        let tag = format!("{}_{}", identifier(short_group, false), identifier(version, false));

        let mut fields = Map::new();
        fields.insert("tags", vec![Value::from(tag)].into());
        fields.insert("description", describe(operation.verb, subresource, &names.kind).into());
        fields.insert("operationId", id.into());
        fields.insert("responses", self.responses(operation, subresource));
        fields.insert("x-kubernetes-action", operation.action.into());
        let kind = match self.kind_of_part(subresource) {
            Some(kind) => object! { "group" => kind.group, "version" => kind.version, "kind" => kind.kind },
            None => object! { "group" => group, "version" => version, "kind" => names.kind.as_str() },
        };
        fields.insert("x-kubernetes-group-version-kind", kind);
        let mut parameters = self.parameters(match operation.action {
            "list" | "deletecollection" => "list",
            "post" | "put" => "create",
            action => action,
        });
        match self.dialect {
            Dialect::V3 => {
                if let Some(body) = self.request_body(operation, subresource) {
                    fields.insert("requestBody", body);
                }
            }
            Dialect::V2 => {
                fields.insert("consumes", texts(self.consumed(operation.action)));
                fields.insert("produces", texts(JSON_AND_YAML));
                fields.insert("schemes", texts(["https"]));
                if let Some(reference) = self.body_reference(operation.action, subresource) {
                    let mut body = object! { "name" => "body", "in" => "body", "schema" => reference };
                    if let Some(body) = body.as_object_mut().filter(|_| operation.action != "delete") {
                        body.insert("required", true.into());
                    }
                    parameters.insert(0, body);
                }
            }
        }
        fields.insert("parameters", parameters.into());
        fields
    }

    fn consumed(&self, action: &str) -> Vec<&'static str> {
        match action {
            "patch" => {
                let types =
                    if is_built_in(&self.version.group) { PatchMediaType::BUILT_IN } else { PatchMediaType::CUSTOM };
                types.iter().map(|patch_type| patch_type.content_type()).collect()
            }
            _ => JSON_AND_YAML.to_vec(),
        }
    }

    fn body_reference(&self, action: &str, subresource: &str) -> Option<Value> {
        match action {
            "post" | "put" => Some(self.reference(&self.object_definition(subresource))),
            "patch" => Some(self.reference("io.k8s.apimachinery.pkg.apis.meta.v1.Patch")),
            "delete" => Some(self.reference("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")),
            _ => None,
        }
    }

    fn request_body(&self, operation: &OpenApiOperation, subresource: &str) -> Option<Value> {
        let reference = self.body_reference(operation.action, subresource)?;
        let mut body = object! { "content" => content(self.consumed(operation.action), &reference) };
        if let Some(body) = body.as_object_mut().filter(|_| operation.action != "delete") {
            body.insert("required", true.into());
        }
        Some(body)
    }

    fn responses(&self, operation: &OpenApiOperation, subresource: &str) -> Value {
        let names = &self.version.names;
        let definition = match operation.action {
            "list" => definition_name(&self.version.group, &self.version.version, &names.list_kind),
            "delete" | "deletecollection" => "io.k8s.apimachinery.pkg.apis.meta.v1.Status".to_owned(),
            _ => self.object_definition(subresource),
        };
        let reference = self.reference(&definition);
        let response = |description: &str| match self.dialect {
            Dialect::V2 => object! { "description" => description, "schema" => reference.clone() },
            Dialect::V3 => {
                object! { "description" => description, "content" => content(JSON_AND_YAML, &reference) }
            }
        };
        let mut responses = Map::new();
        responses.insert("200", response("OK"));
        if matches!(operation.action, "post" | "put") {
            responses.insert("201", response("Created"));
        }
        if matches!(operation.action, "post" | "delete") {
            responses.insert("202", response("Accepted"));
        }
        responses.insert("401", object! { "description" => "Unauthorized" });
        responses.into()
    }

    fn object_definition(&self, subresource: &str) -> String {
        match self.kind_of_part(subresource) {
            _ if subresource == "scale" => "io.k8s.api.autoscaling.v1.Scale".to_owned(),
            Some(kind) => definition_name(kind.group, kind.version, kind.kind),
            None => definition_name(&self.version.group, &self.version.version, &self.version.names.kind),
        }
    }

    /// What is sent to a subresource, where it is not the object itself.
    fn kind_of_part(&self, subresource: &str) -> Option<&'static kinds::Kind> {
        kinds::find(&self.version.group, &self.version.names.plural)?.part(subresource)?.kind
    }

    fn reference(&self, definition: &str) -> Value {
        self.dialect.reference(definition)
    }

    fn path_parameter(&self, name: &str) -> Value {
        let parameter = match name {
            "name" => object! {
                "name" => "name",
                "in" => "path",
                "description" => format!("name of the {}", self.version.names.kind),
                "required" => true,
                "schema" => object! { "type" => "string", "uniqueItems" => true },
            },
            name => shared_parameters(name).first().cloned().unwrap_or_default(),
        };
        self.in_dialect(parameter)
    }

    fn parameters(&self, set: &str) -> Vec<Value> {
        let is_known = |parameter: &&Value| {
            let is_in =
                |options| types::is_field_in(self.version.minor, "meta.v1", options, parameter.str_at(&["name"]));
            is_in("ListOptions") && is_in("DeleteOptions")
        };
        let known = shared_parameters(set).iter().filter(is_known);
        known.map(|parameter| self.in_dialect(parameter.clone())).collect()
    }

    /// v2 has no schema in a parameter: its fields stand in the parameter itself.
    fn in_dialect(&self, mut parameter: Value) -> Value {
        if let (Dialect::V2, Some(fields)) = (self.dialect, parameter.as_object_mut())
            && let Some(Value::Object(schema)) = fields.remove("schema")
        {
            for (name, value) in schema {
                fields.insert(name, value);
            }
        }
        parameter
    }
}

const JSON_AND_YAML: [&str; 2] = ["application/json", "application/yaml"];

fn shared_parameters(set: &str) -> &'static [Value] {
    SHARED.parameters.get(set).and_then(Value::as_array).unwrap_or_default()
}

fn content(media_types: impl IntoIterator<Item = &'static str>, reference: &Value) -> Value {
    let content = media_types.into_iter().map(|name| (name.to_owned(), object! { "schema" => reference.clone() }));
    content.collect::<Map>().into()
}

fn texts(texts: impl IntoIterator<Item = &'static str>) -> Value {
    texts.into_iter().map(Value::from).collect::<Vec<_>>().into()
}

/// What an operation does, in words: `partially update status of the specified Widget`.
fn describe(verb: &str, subresource: &str, kind: &str) -> String {
    let of = match subresource {
        "" => String::new(),
        subresource => format!(" {subresource} of"),
    };
    let article = match kind {
        kind if kind.ends_with('s') && !kind.ends_with("ss") => " ",
        kind if kind.starts_with(|first: char| "aeiou".contains(first.to_ascii_lowercase())) => " an ",
        _ => " a ",
    };
    match verb {
        "list" => format!("list{of} objects of kind {kind}"),
        "patch" => format!("partially update{of} the specified {kind}"),
        "deletecollection" => format!("delete collection of{of} {kind}"),
        "create" | "delete" => format!("{verb}{of}{article}{kind}"),
        verb => format!("{verb}{of} the specified {kind}"),
    }
}

/// `text` as a part of an operation id: what is not a letter or digit makes the next letter a capital.
fn identifier(text: &str, capital: bool) -> String {
    let mut capital = capital;
    let mut identifier = String::new();
    for (at, character) in text.char_indices() {
        match character {
            _ if character == '_' || character.is_alphabetic() || (at > 0 && character.is_numeric()) => {
                if std::mem::take(&mut capital) {
                    identifier.extend(character.to_uppercase())
                } else {
                    identifier.push(character)
                }
            }
            _ => capital = true,
        }
    }
    identifier
}

/// Moves v2 parameters that say nothing of a kind to one place, and leaves references. They are named by their content.
fn share_parameters(paths: &mut Map) -> Map {
    let mut shared = Map::new();
    for path in paths.values_mut().filter_map(Value::as_object_mut) {
        for (name, value) in path.iter_mut() {
            let parameters = match name {
                "parameters" => Some(value),
                _ => value.get_mut("parameters"),
            };
            for parameter in parameters.and_then(Value::as_array_mut).into_iter().flatten() {
                let Some(name) = shared_name(parameter) else { continue };
                let reference = object! { "$ref" => format!("#/parameters/{name}") };
                shared.insert(name, std::mem::replace(parameter, reference));
            }
        }
    }
    shared
}

/// `name-hash`; `None` for what belongs to a kind, and for two parameters in which kubectl up to 1.27 looks for features.
fn shared_name(parameter: &Value) -> Option<String> {
    let name = parameter.str_at(&["name"]);
    let is_own = match (parameter.str_at(&["in"]), name) {
        (_, "name") | ("query", "fieldValidation" | "dryRun") => true,
        ("body", _) => !parameter.str_at(&["schema", "$ref"]).starts_with("#/definitions/io.k8s.apimachinery"),
        _ => false,
    };
    if is_own {
        return None;
    }
    // The hash is taken of the fields in this order.
    let mut encoded = Vec::new();
    for field in ["uniqueItems", "type", "description", "name", "in", "required", "schema"] {
        let Some(value) = parameter.get(field) else { continue };
        encoded.push(if encoded.is_empty() { b'{' } else { b',' });
        encoded.extend_from_slice(format!("\"{field}\":").as_bytes());
        crate::value::json::encode_into(value, &mut encoded);
    }
    encoded.push(b'}');
    Some(format!("{name}-{}", short_hash(&encoded)))
}

/// The first six bytes of FNV-1, in the alphabet of base64 for addresses.
fn short_hash(bytes: &[u8]) -> String {
    use base64::Engine;
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| hash.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte));
    base64::engine::general_purpose::URL_SAFE.encode(&hash.to_be_bytes()[..6])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::{Names, Scope};

    fn widgets(scope: Scope) -> Vec<Arc<ServedVersion>> {
        let names = Names {
            plural: "widgets".into(),
            singular: "widget".into(),
            kind: "Widget".into(),
            list_kind: "WidgetList".into(),
            ..Names::default()
        };
        vec![Arc::new(ServedVersion {
            group: "a.example.com".into(),
            version: "v1".into(),
            names: names.into(),
            scope,
            schema_generation: 1,
            served: true,
            storage: true,
            structural: Arc::default(),
            rules: Default::default(),
            preserve_unknown_fields: false,
            status: true,
            scale: None,
            columns: Vec::new(),
            selectable_fields: Vec::new(),
            deprecation_warning: None,
            minor: Default::default(),
        })]
    }

    #[test]
    fn operations_are_named_by_verb_group_version_and_kind() {
        let document = v3_document(&widgets(Scope::Namespaced));
        let root = "/apis/a.example.com/v1/namespaces/{namespace}/widgets";
        let item = format!("{root}/{{name}}/status");
        let id = |path: &str, method| document.str_at(&["paths", path, method, "operationId"]).to_owned();
        assert_eq!(id(root, "delete"), "deleteAExampleComV1CollectionNamespacedWidget");
        assert_eq!(id(&item, "patch"), "patchAExampleComV1NamespacedWidgetStatus");
        assert_eq!(id("/apis/a.example.com/v1/widgets", "get"), "listAExampleComV1WidgetForAllNamespaces");
    }

    #[test]
    fn writes_take_a_parameter_for_field_validation() {
        let document = v3_document(&widgets(Scope::Cluster));
        let parameters = document.at(&["paths", "/apis/a.example.com/v1/widgets", "post", "parameters"]);
        let names: Vec<&str> =
            parameters.and_then(Value::as_array).into_iter().flatten().map(|it| it.str_at(&["name"])).collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation"]);
    }

    #[test]
    fn every_reference_has_its_definition() {
        for (document, at) in [
            (v3_document(&widgets(Scope::Namespaced)), &["components", "schemas"][..]),
            (v2_document(&widgets(Scope::Namespaced), "v1.37.2"), &["definitions"]),
        ] {
            let definitions = document.at(at).and_then(Value::as_object).expect("definitions");
            let mut names = HashSet::new();
            collect_references(&document, &mut names);
            names.retain(|name| name.contains('.'));
            assert!(names.len() > 10 && names.iter().all(|name| definitions.contains_key(name)));
        }
    }

    /// What is published of a built-in kind, at a path within its definitions.
    fn published(group: &str, plural: &str, dialect: Dialect, path: &[&str]) -> Value {
        let mut definitions = Map::new();
        insert_published(kinds::find(group, plural).expect("it is a kind"), Minor::NEWEST, dialect, &mut definitions);
        Value::from(definitions).at(path).cloned().unwrap_or_default()
    }

    #[test]
    fn items_of_built_in_kinds_are_references_or_types_alone() {
        const SERVICE: &str = "io.k8s.api.core.v1.ServiceSpec";
        let of = |dialect, field, part| published("", "services", dialect, &[SERVICE, "properties", field, part]);
        let reference = "#/components/schemas/io.k8s.api.core.v1.ServicePort";
        assert_eq!(of(Dialect::V3, "ports", "items"), object! { "$ref" => reference });
        assert_eq!(of(Dialect::V3, "selector", "additionalProperties"), object! { "type" => "string" });
        let reference = "#/definitions/io.k8s.api.core.v1.ServicePort";
        assert_eq!(of(Dialect::V2, "ports", "items"), object! { "$ref" => reference });
        const REQUEST: &str = "io.k8s.api.certificates.v1.CertificateSigningRequestSpec";
        let path = [REQUEST, "properties", "extra", "additionalProperties"];
        let extra = published("certificates.k8s.io", "certificatesigningrequests", Dialect::V3, &path);
        assert_eq!(extra, object! { "type" => "array", "items" => object! { "type" => "string" } });
    }

    #[test]
    fn amounts_and_numbers_that_may_be_texts_have_two_types_in_v3_and_one_in_v2() {
        const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
        const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
        let types = |names: [&str; 2]| names.map(|name| object! { "type" => name }).to_vec();
        let of = |dialect, name| published("", "pods", dialect, &[name]);
        let either = object! { "oneOf" => types(["integer", "string"]), "format" => "int-or-string" };
        assert_eq!(of(Dialect::V3, INT_OR_STRING), either);
        assert_eq!(of(Dialect::V3, QUANTITY), object! { "oneOf" => types(["string", "number"]) });
        assert_eq!(of(Dialect::V2, INT_OR_STRING), object! { "type" => "string", "format" => "int-or-string" });
        assert_eq!(of(Dialect::V2, QUANTITY), object! { "type" => "string" });
    }

    #[test]
    fn what_an_inlined_type_requires_is_required() {
        let path = ["io.k8s.api.core.v1.EphemeralContainer", "required"];
        assert_eq!(published("", "pods", Dialect::V3, &path), Value::from(vec![Value::from("name")]));
    }

    #[test]
    fn shared_parameters_of_v2_are_named_by_their_content() {
        let document = v2_document(&widgets(Scope::Namespaced), "v1.37.2");
        let parameters = document.get("parameters").and_then(Value::as_object).expect("parameters");
        for name in ["pretty-tJGM1-ng", "namespace-vgWSWtn3", "resourceVersion-5WAnf1kx", "body-78PwaGsr"] {
            assert!(parameters.contains_key(name), "{name}");
        }
    }

    #[test]
    fn an_index_says_where_documents_are() {
        let expected = object! { "serverRelativeURL" => "/openapi/v3/apis/g/v1?hash=A" };
        assert_eq!(v3_index([("apis/g/v1", "A")]).at(&["paths", "apis/g/v1"]), Some(&expected));
    }
}
