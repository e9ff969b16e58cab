//! Writes a path of a document: its operations, their parameters and their answers.

use super::media_types::{consumed, content, produced, texts};
use super::names::{META, definition_name};
use super::shared::SHARED;
use super::words::{describe, identifier, short_group, tag};
use crate::crd::ServedVersion;
use crate::kinds::Kind;
use crate::object;
use crate::schema::openapi::Dialect;
use crate::types;
use crate::value::{Map, Value};

/// One method of one path.
#[derive(Clone, Copy)]
pub(super) struct OpenApiOperation {
    /// The operation's verb, as discovery names it.
    pub name: &'static str,
    pub method: &'static str,
    /// `x-kubernetes-action`, which also names the parameters.
    pub action: &'static str,
    /// The first word of description and operation id.
    pub verb: &'static str,
}

pub(super) const fn operation(
    name: &'static str,
    method: &'static str,
    action: &'static str,
    verb: &'static str,
) -> OpenApiOperation {
    OpenApiOperation { name, method, action, verb }
}

/// Writes the operations on the objects of one version.
pub(super) struct PathWriter<'a> {
    pub version: &'a ServedVersion,
    pub dialect: Dialect,
    /// `None` for custom resources.
    pub kind: Option<&'static Kind>,
}

impl PathWriter<'_> {
    pub(super) fn can(&self, verb: &str) -> bool {
        self.kind.is_none_or(|kind| kind.can(verb))
    }

    pub(super) fn is_watched(&self) -> bool {
        self.kind.is_some_and(|kind| kind.can("watch"))
    }

    /// The path of a collection, behind the group and version.
    pub(super) fn collection(&self) -> String {
        let plural = &self.version.names.plural;
        if self.version.is_namespaced() { format!("/namespaces/{{namespace}}/{plural}") } else { format!("/{plural}") }
    }

    /// The placeholders in the paths of collections, and in those of objects.
    pub(super) fn path_parameters(&self) -> (&'static [&'static str], &'static [&'static str]) {
        if self.version.is_namespaced() { (&["namespace"], &["name", "namespace"]) } else { (&[], &["name"]) }
    }

    /// The methods of a path. Parameters that all methods share are listed on the path: with a single method, these are
    /// all of its parameters.
    pub(super) fn path(
        &self,
        operations: &[OpenApiOperation],
        subresource: &str,
        path_parameters: &[&str],
        suffix: &str,
    ) -> Value {
        let name_of = &self.version.names.kind;
        let mut shared: Vec<Value> = path_parameters.iter().map(|name| self.path_parameter(name, name_of)).collect();
        shared.extend(self.parameters("pretty"));
        let mut fields = Map::new();
        for operation in operations {
            let mut written = self.operation(operation, subresource, suffix);
            let own = match written.remove("parameters") {
                Some(Value::Array(own)) => own,
                _ => Vec::new(),
            };
            let own = match operations.len() {
                1 => {
                    let (body, others): (Vec<_>, Vec<_>) =
                        own.into_iter().partition(|parameter| parameter.str_at(&["in"]) == "body");
                    shared.extend(others);
                    body
                }
                _ => own,
            };
            if !own.is_empty() {
                written.insert("parameters", own.into());
            }
            fields.insert(operation.method, written.into());
        }
        sort_by_name(&mut shared);
        fields.insert("parameters", shared.into());
        fields.into()
    }

    fn operation(&self, operation: &OpenApiOperation, subresource: &str, suffix: &str) -> Map {
        let names = &self.version.names;
        let (group, version) = (self.version.group.as_str(), self.version.version.as_str());
        let (verb, collection, list) = match operation.verb {
            "deletecollection" => ("delete", "collection", ""),
            "watchlist" => ("watch", "", "List"),
            verb => (verb, "", ""),
        };
        let scope = if suffix.is_empty() { self.scope() } else { "" };
        let object = [collection, scope, &names.kind, &identifier(subresource, true), list, suffix].concat();

        let mut fields = Map::new();
        fields.insert("tags", vec![Value::from(tag(group, version))].into());
        fields.insert("description", describe(operation.verb, subresource, &names.kind, self.is_watched()).into());
        fields.insert("operationId", self.id(verb, &object).into());
        fields.insert("responses", self.responses(operation, subresource));
        fields.insert("x-kubernetes-action", operation.action.into());
        let kind = match self.kind_of_part(subresource) {
            Some(kind) => object! { "group" => kind.group, "version" => kind.version, "kind" => kind.kind },
            None => object! { "group" => group, "version" => version, "kind" => names.kind.as_str() },
        };
        fields.insert("x-kubernetes-group-version-kind", kind);
        let mut parameters = self.operation_parameters(operation.action);
        let consumed = consumed(operation.action, self.kind.is_some());
        match self.dialect {
            Dialect::V3 => {
                if let Some(body) = self.request_body(operation, subresource, &consumed) {
                    fields.insert("requestBody", body);
                }
            }
            Dialect::V2 => {
                fields.insert("consumes", texts(&consumed));
                fields.insert("produces", texts(produced(operation.action, self.kind.is_some())));
                fields.insert("schemes", texts(&["https"]));
                if let Some(reference) = self.body_reference(operation.action, subresource) {
                    let mut body = object! { "name" => "body", "in" => "body", "schema" => reference };
                    if let Some(body) = body.as_object_mut().filter(|_| operation.method != "delete") {
                        body.insert("required", true.into());
                    }
                    parameters.insert(0, body);
                }
            }
        }
        fields.insert("parameters", parameters.into());
        fields
    }

    /// How an object's namespace shows in identifiers.
    pub(super) fn scope(&self) -> &'static str {
        if self.version.is_namespaced() { "Namespaced" } else { "" }
    }

    /// The id of an operation: a verb, the group and version, and the object of the verb.
    pub(super) fn id(&self, verb: &str, object: &str) -> String {
        let group = identifier(short_group(&self.version.group), true);
        [verb, &group, &identifier(&self.version.version, true), &identifier(object, true)].concat()
    }

    fn body_reference(&self, action: &str, subresource: &str) -> Option<Value> {
        match action {
            "post" | "put" => Some(self.reference(&self.object_definition(subresource))),
            "patch" => Some(self.reference(&format!("{META}.Patch"))),
            "delete" => Some(self.reference(&format!("{META}.DeleteOptions"))),
            "deletecollection" if self.kind.is_some() => Some(self.reference(&format!("{META}.DeleteOptions"))),
            _ => None,
        }
    }

    fn request_body(
        &self,
        operation: &OpenApiOperation,
        subresource: &str,
        consumed: &[&'static str],
    ) -> Option<Value> {
        let reference = self.body_reference(operation.action, subresource)?;
        let mut body = object! { "content" => content(consumed, &reference) };
        if let Some(body) = body.as_object_mut().filter(|_| operation.method != "delete") {
            body.insert("required", true.into());
        }
        Some(body)
    }

    fn responses(&self, operation: &OpenApiOperation, subresource: &str) -> Value {
        let names = &self.version.names;
        let returns_deleted = || self.kind.is_some_and(|kind| kind.strategy.publishes_deleted());
        let definition = match operation.action {
            "list" => definition_name(&self.version.group, &self.version.version, &names.list_kind),
            "watch" | "watchlist" => format!("{META}.WatchEvent"),
            "delete" if returns_deleted() => self.object_definition(subresource),
            "delete" | "deletecollection" => format!("{META}.Status"),
            _ => self.object_definition(subresource),
        };
        let mut codes = vec![("200", "OK")];
        let may_make = match operation.action {
            "post" | "put" => true,
            "patch" => self.kind.is_some(),
            _ => false,
        };
        codes.extend(may_make.then_some(("201", "Created")));
        codes.extend(matches!(operation.action, "post" | "delete").then_some(("202", "Accepted")));
        self.responses_of(&codes, operation.action, &self.reference(&definition))
    }

    /// The answers of an operation, which all have one schema.
    pub(super) fn responses_of(&self, codes: &[(&str, &str)], action: &str, schema: &Value) -> Value {
        let response = |description: &str| match self.dialect {
            Dialect::V2 => object! { "description" => description, "schema" => schema.clone() },
            Dialect::V3 => {
                let content = content(produced(action, self.kind.is_some()), schema);
                object! { "description" => description, "content" => content }
            }
        };
        let mut responses = Map::new();
        codes.iter().for_each(|(code, description)| _ = responses.insert(*code, response(description)));
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

    /// The kind of the body sent to a subresource, if it is not that of the object itself.
    fn kind_of_part(&self, subresource: &str) -> Option<&'static Kind> {
        self.kind?.part(subresource)?.kind
    }

    fn reference(&self, definition: &str) -> Value {
        self.dialect.reference(definition)
    }

    /// A parameter of a path; a name is that of a `kind`.
    pub(super) fn path_parameter(&self, name: &str, kind: &str) -> Value {
        let of_path = |description: String| {
            object! {
                "name" => name,
                "in" => "path",
                "description" => description,
                "required" => true,
                "schema" => object! { "type" => "string", "uniqueItems" => true },
            }
        };
        let parameter = match name {
            "name" => of_path(format!("name of the {kind}")),
            "path" => of_path("path to the resource".to_owned()),
            name => shared_parameters(name).first().cloned().unwrap_or_default(),
        };
        self.in_dialect(parameter)
    }

    /// The query parameters of an operation.
    fn operation_parameters(&self, action: &str) -> Vec<Value> {
        match action {
            "deletecollection" if self.kind.is_some() => {
                let is_of_watches =
                    |parameter: &Value| matches!(parameter.str_at(&["name"]), "allowWatchBookmarks" | "watch");
                let mut parameters = self.parameters("list");
                parameters.retain(|parameter| !is_of_watches(parameter));
                parameters.extend(self.parameters("delete"));
                sort_by_name(&mut parameters);
                parameters
            }
            "list" | "deletecollection" | "watch" | "watchlist" => self.parameters("list"),
            "post" | "put" => self.parameters("create"),
            "get" if self.kind.is_some() => Vec::new(),
            action => self.parameters(action),
        }
    }

    pub(super) fn parameters(&self, set: &str) -> Vec<Value> {
        let is_known = |parameter: &&Value| {
            let is_in =
                |options| types::is_field_in(self.version.minor, "meta.v1", options, parameter.str_at(&["name"]));
            is_in("ListOptions") && is_in("DeleteOptions")
        };
        let known = shared_parameters(set).iter().filter(is_known);
        known.map(|parameter| self.in_dialect(parameter.clone())).collect()
    }

    /// In v2 a parameter has no `schema`: the schema's fields stand in the parameter itself.
    pub(super) fn in_dialect(&self, mut parameter: Value) -> Value {
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

fn shared_parameters(set: &str) -> &'static [Value] {
    SHARED.parameters.get(set).and_then(Value::as_array).unwrap_or_default()
}

/// Sorts parameters as documents list them.
pub(super) fn sort_by_name(parameters: &mut [Value]) {
    parameters.sort_by(|left, right| left.str_at(&["name"]).cmp(right.str_at(&["name"])));
}
