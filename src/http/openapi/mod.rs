//! OpenAPI documents of what is served, for `kubectl explain`, `apply` and `diff`.
//!
//! Input: served versions. Output: whole documents as JSON, for the caller to cache and tag. Building one walks every
//! schema, so nothing here runs before a client asks. The documents are plain values, not `openapiv3` types: Kubernetes
//! publishes `uniqueItems` on strings and numbers, which those types can't express, and every schema is
//! already a value.
//! Source: documents recorded from apiextensions-apiserver 1.37; the shared definitions stand in `schemas/openapi.json`.

mod names;
mod words;
mod media_types;
mod parameters;
mod path_writer;
mod connecting;
mod paths;
mod discovery;
mod pieces;
mod shared;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha512};

use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::minor::Minor;
use crate::object;
use crate::schema::openapi::{self, Dialect, OpenApiOptions, PublishedKind};
use crate::types;
use crate::value::{Map, Value};
use crate::work;
use names::{built_in, definition_name, is_built_in};
use parameters::share_parameters;
use paths::insert_paths;
use pieces::{DocumentField, Pieces};
use shared::{SHARED, WholeVersions};

pub use discovery::DiscoveryPath;
pub use names::document_path;

/// The size limit of a document, without the definitions that all kinds share: kinds beyond it are left out. The
/// reference has no such limit.
pub const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// The document of one group and version, as JSON: all of its resources. Each version is dropped before the next one is
/// asked for.
pub fn v3_document(versions: impl IntoIterator<Item = Arc<ServedVersion>>, minor: Minor) -> Vec<u8> {
    let (mut paths, mut schemas, mut wanted) = (Pieces::default(), Pieces::default(), HashSet::new());
    let mut of_built_in = None;
    for version in versions {
        if of_built_in.is_none() && built_in(&version).is_some() {
            of_built_in = Some((version.group.clone(), version.version.clone()));
        }
        let (mut own_schemas, mut own_paths) = (Map::new(), Map::new());
        insert_definitions(&version, Dialect::V3, &mut own_schemas);
        insert_paths(&version, Dialect::V3, &mut own_paths);
        let (own_schemas, own_paths) = (Pieces::of(own_schemas, &mut wanted), Pieces::of(own_paths, &mut wanted));
        if schemas.bytes() + paths.bytes() + own_schemas.bytes() + own_paths.bytes() <= DOCUMENT_BYTES_MAX {
            schemas.append(own_schemas);
            paths.append(own_paths);
        }
    }
    let Some((group, version)) = of_built_in else {
        insert_shared(wanted, minor, (Dialect::V3, WholeVersions::OfDefinitions), &mut schemas);
        let info = object! { "title" => "Kubernetes CRD Swagger", "version" => "v0.1.0" };
        return document([
            ("openapi", Value::from("3.0.0").into()),
            ("info", info.into()),
            ("paths", paths.into()),
            ("components", DocumentField::Object([("schemas", schemas.into())].into())),
        ]);
    };
    paths.append(Pieces::of(discovery_path(&group, &version, Dialect::V3), &mut wanted));
    let named = WholeVersions::Of { group: &group, version: &version };
    insert_shared(wanted, minor, (Dialect::V3, named), &mut schemas);
    built_in_v3_document(paths, schemas, minor)
}

/// The document of a path by which clients learn what is served, as JSON.
pub fn v3_discovery_document(path: &DiscoveryPath, minor: Minor) -> Vec<u8> {
    let (mut paths, mut schemas, mut wanted) = (Map::new(), Pieces::default(), HashSet::new());
    path.insert(Dialect::V3, &mut paths);
    let paths = Pieces::of(paths, &mut wanted);
    insert_shared(wanted, minor, (Dialect::V3, WholeVersions::OfDefinitions), &mut schemas);
    built_in_v3_document(paths, schemas, minor)
}

fn discovery_path(group: &str, version: &str, dialect: Dialect) -> Map {
    let mut paths = Map::new();
    DiscoveryPath::of_version(group, version).insert(dialect, &mut paths);
    paths
}

fn document<const FIELDS: usize>(fields: [(&'static str, DocumentField); FIELDS]) -> Vec<u8> {
    DocumentField::Object(fields.into()).text()
}

/// The paths of discovery for these versions, except those of the versions themselves.
pub fn discovery_paths<'v>(versions: impl IntoIterator<Item = &'v ServedVersion>) -> Vec<DiscoveryPath> {
    let own = versions.into_iter().filter(|version| built_in(version).is_some());
    DiscoveryPath::of_groups(own.map(|version| version.group.as_str()))
}

fn built_in_v3_document(paths: Pieces, schemas: Pieces, minor: Minor) -> Vec<u8> {
    let mut components = BTreeMap::from([("securitySchemes", bearer_token().into())]);
    if !schemas.is_empty() {
        components.insert("schemas", schemas.into());
    }
    document([
        ("openapi", Value::from("3.0.0").into()),
        ("info", info(minor).into()),
        ("paths", paths.into()),
        ("components", DocumentField::Object(components)),
    ])
}

fn info(minor: Minor) -> Value {
    object! { "title" => "Kubernetes", "version" => format!("1.{}", minor.number()) }
}

fn bearer_token() -> Value {
    let token = object! {
        "description" => "Bearer Token authentication", "type" => "apiKey", "name" => "authorization", "in" => "header",
    };
    object! { "BearerToken" => token }
}

/// The one v2 document of everything that is served, as JSON. Defaults are left out, and parameters stand in one place.
/// Each version is dropped before the next one is asked for.
pub fn v2_document(versions: impl IntoIterator<Item = Arc<ServedVersion>>, minor: Minor) -> Vec<u8> {
    let (mut paths, mut definitions, mut wanted) = (Pieces::default(), Pieces::default(), HashSet::new());
    let mut parameters = Map::new();
    let mut of_built_in = BTreeSet::new();
    for version in versions {
        if built_in(&version).is_some() {
            of_built_in.insert((version.group.clone(), version.version.clone()));
        }
        let (mut own_definitions, mut own_paths) = (Map::new(), Map::new());
        insert_definitions(&version, Dialect::V2, &mut own_definitions);
        own_definitions.values_mut().for_each(remove_defaults);
        insert_paths(&version, Dialect::V2, &mut own_paths);
        // Shared at once, as parameters make up most of a document until then.
        let shared = share_parameters(&mut own_paths);
        let own_definitions = Pieces::of(own_definitions, &mut wanted);
        let own_paths = Pieces::of(own_paths, &mut wanted);
        if definitions.bytes() + paths.bytes() + own_definitions.bytes() + own_paths.bytes() <= DOCUMENT_BYTES_MAX {
            definitions.append(own_definitions);
            paths.append(own_paths);
            shared.into_iter().for_each(|(name, parameter)| _ = parameters.insert(name, parameter));
        }
    }
    let mut discovery = Map::new();
    let groups = DiscoveryPath::of_groups(of_built_in.iter().map(|(group, _)| group.as_str()));
    groups.iter().for_each(|path| path.insert(Dialect::V2, &mut discovery));
    for (group, version) in &of_built_in {
        DiscoveryPath::of_version(group, version).insert(Dialect::V2, &mut discovery);
    }
    paths.append(Pieces::of(discovery, &mut wanted));
    let parameters = Pieces::of(parameters, &mut wanted);
    insert_shared(wanted, minor, (Dialect::V2, WholeVersions::All), &mut definitions);
    document([
        ("swagger", Value::from("2.0").into()),
        ("info", info(minor).into()),
        ("paths", paths.into()),
        ("definitions", definitions.into()),
        ("parameters", parameters.into()),
        ("securityDefinitions", bearer_token().into()),
        ("security", Value::from(vec![object! { "BearerToken" => Vec::new() }]).into()),
    ])
}

/// The index of v3 documents: `path` is `apis/GROUP/VERSION` or `api/v1`, `hash` changes whenever the document does.
pub fn v3_index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let paths = documents
        .into_iter()
        .map(|(path, hash)| (path.to_owned(), object! { "serverRelativeURL" => v3_url(path, hash) }));
    object! { "paths" => paths.collect::<Map>() }
}

/// The URL of a document. A request with another hash is redirected to it with 301.
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
        let mut definition = named.definition_in(minor);
        if let Some(unions) = SHARED.unions.get(&name) {
            definition.schema.make_object().insert("x-kubernetes-unions", unions.clone());
        }
        waiting.extend(definition.references);
        let schema = match dialect {
            Dialect::V2 => reduce_to_v2(&definition.schema),
            Dialect::V3 => definition.schema,
        };
        definitions.insert(name, schema);
    }
}

fn insert_definitions(version: &ServedVersion, dialect: Dialect, definitions: &mut Map) {
    if let Some(kind) = built_in(version) {
        insert_published(kind, version.minor, dialect, definitions);
        let sent = kind.parts_in(version.minor).filter(|part| !connecting::is_connection(part));
        for kind in sent.filter_map(|part| part.kind) {
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
        // The selectable fields of built-in kinds are not published.
        selectable_fields: if is_built_in(&version.group) { &[] } else { &version.selectable_fields },
    };
    let name = definition_name(kind.group, kind.version, kind.kind);
    if SHARED.definitions.contains_key(&name) {
        return;
    }
    let schema = Some(&*version.structural);
    let definition = openapi::publish(schema, &kind, version.preserve_unknown_fields, OpenApiOptions::all(dialect));
    let mut list = openapi::publish_list(&kind, dialect);
    if let Some(items) = list.at_mut(&["properties", "items", "items"]) {
        *items = dialect.reference(&name);
    }
    definitions.insert(name, definition);
    definitions.insert(definition_name(kind.group, kind.version, kind.list_kind), list);
}

/// Adds the shared definitions that are `wanted`, and those that they refer to, directly or indirectly.
fn insert_shared(
    wanted: HashSet<String>,
    minor: Minor,
    (dialect, versions): (Dialect, WholeVersions<'_>),
    definitions: &mut Pieces,
) {
    let mut waiting: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = waiting.pop() {
        if definitions.has(&name) {
            continue;
        }
        let Some(mut definition) = SHARED.definitions.get(&name).cloned() else { continue };
        types::make_older(minor, &name, &mut definition);
        versions.name_in(&mut definition);
        if dialect == Dialect::V2 {
            definition = reduce_to_v2(&definition);
            remove_defaults(&mut definition);
        }
        let mut wanted = HashSet::new();
        definitions.append(Pieces::of(Map::from_fields(vec![(name.into(), definition)]), &mut wanted));
        waiting.extend(wanted);
    }
}

/// A shared definition in v2, where a reference stands next to its description.
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
                    // Quantities, and numbers that may be strings: in v2 a value has one type.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::{Names, Scope};
    use crate::types::collect_references;
    use crate::value::json;

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
            structural: Default::default(),
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

    fn v3(scope: Scope) -> Value {
        json::decode(&v3_document(widgets(scope), Minor::NEWEST)).expect("it is JSON")
    }

    fn v2(scope: Scope) -> Value {
        json::decode(&v2_document(widgets(scope), Minor::NEWEST)).expect("it is JSON")
    }

    #[test]
    fn operations_are_named_by_verb_group_version_and_kind() {
        let document = v3(Scope::Namespaced);
        let root = "/apis/a.example.com/v1/namespaces/{namespace}/widgets";
        let item = format!("{root}/{{name}}/status");
        let id = |path: &str, method| document.str_at(&["paths", path, method, "operationId"]).to_owned();
        assert_eq!(id(root, "delete"), "deleteAExampleComV1CollectionNamespacedWidget");
        assert_eq!(id(&item, "patch"), "patchAExampleComV1NamespacedWidgetStatus");
        assert_eq!(id("/apis/a.example.com/v1/widgets", "get"), "listAExampleComV1WidgetForAllNamespaces");
    }

    #[test]
    fn writes_take_a_parameter_for_field_validation() {
        let document = v3(Scope::Cluster);
        let parameters = document.at(&["paths", "/apis/a.example.com/v1/widgets", "post", "parameters"]);
        let names: Vec<&str> =
            parameters.and_then(Value::as_array).into_iter().flatten().map(|it| it.str_at(&["name"])).collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation"]);
    }

    #[test]
    fn every_reference_has_its_definition() {
        for (document, at) in
            [(v3(Scope::Namespaced), &["components", "schemas"][..]), (v2(Scope::Namespaced), &["definitions"])]
        {
            let definitions = document.at(at).and_then(Value::as_object).expect("definitions");
            let mut names = HashSet::new();
            collect_references(&document, &mut names);
            names.retain(|name| name.contains('.'));
            assert!(names.len() > 10 && names.iter().all(|name| definitions.contains_key(name)));
        }
    }

    /// What is published for a built-in kind, at a path within its definitions.
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
        let document = v2(Scope::Namespaced);
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
