//! The parameters of policies, as a form beside the text of the request.
//!
//! For the fields of its parameters that a policy reads, the form shows the value and the schema.

use std::collections::BTreeSet;

use super::inputs::{Inputs, Pane};
use super::shown::SHOWN_MAX;
use crate::author::Catalog;
use crate::author::policies::{expressions_of, is_policy, served};
use crate::cel::ast::{Constant, Expr, ExprKind, operators};
use crate::cel::env::{Env, Expressions};
use crate::crd::ServedVersion;
use crate::object;
use crate::policy::type_check;
use crate::schema::of_type::Quantities;
use crate::schema::structural::Structural;
use crate::value::{Value, json, yaml};

/// The objects with parameters, and their fields that policies read.
pub fn show(inputs: &Inputs, catalog: &Catalog) -> Value {
    let shown = |holder: Holder| {
        let fields = holder.fields.iter().take(SHOWN_MAX).map(|path| field(&holder, path));
        let fields: Vec<Value> = fields.collect();
        object! {
            "apiVersion" => holder.api_version.as_str(),
            "kind" => holder.kind.as_str(),
            "name" => holder.name(),
            "namespace" => holder.object.str_at(&["metadata", "namespace"]),
            "fields" => fields,
        }
    };
    Value::Array(holders(inputs, catalog).into_iter().take(SHOWN_MAX).map(shown).collect())
}

/// Returns the request with a field of a parameter object set: `apiVersion`, `kind` and `name` of `wanted` identify the
/// object, `path` the field, and `value` is the new value as it was typed; an empty one removes the field. Returns
/// `None` if the request cannot be changed like that.
pub fn with_param(inputs: &Inputs, catalog: &Catalog, wanted: &Value) -> Option<String> {
    let documents = inputs.documents(Pane::Request);
    if inputs.is_broken(Pane::Request) || documents.len() > 1 {
        return None;
    }
    let is_meant = |holder: &Holder| {
        [("apiVersion", holder.api_version.as_str()), ("kind", &holder.kind), ("name", holder.name())]
            .iter()
            .all(|(field, own)| wanted.str_at(&[field]) == *own)
    };
    let holder = holders(inputs, catalog).into_iter().find(is_meant)?;
    let path: Vec<&str> = wanted.items_at(&["path"]).iter().filter_map(Value::as_str).collect();
    if !holder.fields.iter().any(|known| *known == path) {
        return None;
    }
    let mut object = holder.object.clone();
    set(&mut object, &path, read(&holder, &path, wanted.str_at(&["value"])));
    let mut request = documents.first().map_or_else(|| object! {}, |document| document.value.clone());
    let mut params = request.items_at(&["params"]).to_vec();
    match holder.index {
        Some(index) => *params.get_mut(index)? = object,
        None => params.push(object),
    }
    request.as_object_mut()?.insert("params", Value::Array(params));
    Some(yaml::encode(&request))
}

/// An object with parameters, and its fields.
struct Holder {
    api_version: String,
    kind: String,
    /// Its index in the request; `None` if it does not exist yet.
    index: Option<usize>,
    object: Value,
    /// The paths of the fields that policies read.
    fields: Vec<Vec<String>>,
    schema: Option<Structural>,
}

impl Holder {
    fn name(&self) -> &str {
        self.object.str_at(&["metadata", "name"])
    }

    /// The schema of a field.
    fn schema_of(&self, path: &[impl AsRef<str>]) -> Option<&Structural> {
        path.iter().try_fold(self.schema.as_ref()?, |node, name| {
            let values = || node.additional_properties.as_ref()?.structural();
            node.properties.get(name.as_ref()).or_else(values)
        })
    }
}

/// The parameter objects of policies: those of the request, and those that a binding names and that do not exist yet.
fn holders(inputs: &Inputs, catalog: &Catalog) -> Vec<Holder> {
    let served = served(catalog);
    let request = inputs.first(Pane::Request).map(|document| &document.value);
    let params = request.map_or(&[][..], |request| request.items_at(&["params"]));
    let mut holders: Vec<Holder> = Vec::new();
    for policy in inputs.manifests().filter(|manifest| is_policy(manifest)) {
        let kind = |field: &str| policy.str_at(&["spec", "paramKind", field]);
        if kind("kind").is_empty() {
            continue;
        }
        let version =
            served.iter().find(|known| known.names.kind == kind("kind") && known.api_version() == kind("apiVersion"));
        let fields = fields_read(policy);
        let is_one =
            |object: &&Value| ["apiVersion", "kind"].iter().all(|field| object.str_at(&[field]) == kind(field));
        let written = params.iter().enumerate().filter(|(_, object)| is_one(object));
        let mut found: Vec<(Option<usize>, Value)> = written.map(|(at, object)| (Some(at), object.clone())).collect();
        let bindings = inputs.manifests().filter(|binding| {
            binding.str_at(&["kind"]) == format!("{}Binding", policy.str_at(&["kind"]))
                && binding.str_at(&["spec", "policyName"]) == policy.str_at(&["metadata", "name"])
        });
        for binding in bindings {
            let name = binding.str_at(&["spec", "paramRef", "name"]);
            let is_it = |object: &Value| object.str_at(&["metadata", "name"]) == name;
            let is_there = found.iter().any(|(_, object)| is_it(object))
                || inputs.manifests().any(|object| is_one(&object) && is_it(object));
            if !name.is_empty() && !is_there {
                found.push((None, referenced(inputs, policy, binding, version.map(|version| &**version))));
            }
        }
        for (index, object) in found {
            let known = holders.iter_mut().find(|known| match (index, known.index) {
                (None, None) => known.object == object,
                (index, known) => index == known,
            });
            match known {
                Some(known) => known
                    .fields
                    .extend(fields.iter().filter(|path| !known.fields.contains(path)).cloned().collect::<Vec<_>>()),
                None => holders.push(Holder {
                    api_version: kind("apiVersion").to_owned(),
                    kind: kind("kind").to_owned(),
                    index,
                    object,
                    fields: fields.iter().cloned().collect(),
                    schema: version.and_then(|version| type_check::schema(version, Quantities::Shown)),
                }),
            }
        }
    }
    holders
}

/// Makes the object that a binding names and that does not exist yet.
fn referenced(inputs: &Inputs, policy: &Value, binding: &Value, version: Option<&ServedVersion>) -> Value {
    let reference = |field: &str| binding.str_at(&["spec", "paramRef", field]);
    let mut metadata = object! { "name" => reference("name") };
    let of_object = inputs.first(Pane::Object).map_or("", |object| object.value.str_at(&["metadata", "namespace"]));
    let namespace = match (reference("namespace"), version) {
        ("", Some(version)) if version.is_namespaced() => of_object,
        (namespace, _) => namespace,
    };
    if !namespace.is_empty() {
        metadata.make_object().insert("namespace", Value::from(namespace));
    }
    object! {
        "apiVersion" => policy.str_at(&["spec", "paramKind", "apiVersion"]),
        "kind" => policy.str_at(&["spec", "paramKind", "kind"]),
        "metadata" => metadata,
    }
}

/// The paths of the fields of `params` that a policy's expressions read; only the longest of nested ones.
fn fields_read(policy: &Value) -> BTreeSet<Vec<String>> {
    let env = Env::kubernetes(Expressions::Stored).with_mutations();
    let mut found = BTreeSet::new();
    for text in expressions_of(policy) {
        if let Ok(ast) = env.parse(text) {
            note(&ast.expr, &mut found);
        }
    }
    let is_whole = |path: &&Vec<String>| !found.iter().any(|other| other.len() > path.len() && other.starts_with(path));
    found.iter().filter(is_whole).cloned().collect()
}

fn note(expr: &Expr, found: &mut BTreeSet<Vec<String>>) {
    match way(expr) {
        Some(path) if !path.is_empty() => _ = found.insert(path),
        _ => expr.children().into_iter().for_each(|child| note(child, found)),
    }
}

/// The path from `params` to the value that an expression selects.
fn way(expr: &Expr) -> Option<Vec<String>> {
    let (operand, name) = match &expr.kind {
        ExprKind::Ident(name) => return (name.trim_start_matches('.') == "params").then(Vec::new),
        ExprKind::Select(select) => (&select.operand, select.field.as_str()),
        ExprKind::Call(call) if [operators::INDEX, operators::OPTIONAL_INDEX].contains(&&*call.function) => {
            let [operand, index] = call.args.as_slice() else { return None };
            let ExprKind::Constant(Constant::String(name)) = &index.kind else { return None };
            (operand, name.as_str())
        }
        _ => return None,
    };
    let mut path = way(operand)?;
    path.push(name.to_owned());
    Some(path)
}

fn field(holder: &Holder, path: &[String]) -> Value {
    let schema = holder.schema_of(path);
    let limits = schema.and_then(|schema| schema.value_validation.as_deref());
    let options = limits.map_or(&[][..], |limits| &limits.enum_);
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let value = holder.object.at(&names);
    object! {
        "path" => names.iter().map(|name| Value::from(*name)).collect::<Vec<_>>(),
        "type" => schema.map_or("", |schema| schema.generic.type_.as_str()),
        "options" => options.iter().map(|option| Value::from(typed(option))).collect::<Vec<_>>(),
        "value" => value.map_or_else(String::new, typed),
    }
}

/// Formats a value as it would be typed.
fn typed(value: &Value) -> String {
    value.as_str().map_or_else(|| json::encode_to_string(value), str::to_owned)
}

/// Parses a typed value by the schema; `None` for an empty text.
fn read(holder: &Holder, path: &[&str], text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    let is_text = holder.schema_of(path).is_some_and(|schema| schema.generic.type_ == "string");
    let read = || yaml::decode(text.as_bytes()).unwrap_or_else(|_| Value::from(text));
    Some(if is_text { Value::from(text) } else { read() })
}

fn set(object: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, above)) = path.split_last() else { return };
    let holder = above.iter().fold(object, |node, name| node.make_object().entry(name));
    match value {
        Some(value) => _ = holder.make_object().insert(*last, value),
        None => _ = holder.make_object().remove(last),
    }
}
