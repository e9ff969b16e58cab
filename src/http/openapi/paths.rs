//! The paths of a document: each with the operations on it, their parameters and their answers.

use super::super::negotiate::PatchMediaType;
use super::names::{definition_name, document_path, is_built_in};
use super::shared::SHARED;
use crate::crd::ServedVersion;
use crate::kinds;
use crate::object;
use crate::schema::openapi::Dialect;
use crate::types;
use crate::value::{Map, Value};

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

/// Adds the paths of a version.
pub(super) fn insert_paths(version: &ServedVersion, dialect: Dialect, paths: &mut Map) {
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
pub(super) fn share_parameters(paths: &mut Map) -> Map {
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
