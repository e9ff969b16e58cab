//! What can be written at a position of a document: of custom and built-in kinds, of definitions and of suites.
//!
//! Input: a schema in one of its forms, and a path. Output: the fields and values that can be written there, with their
//! documentation.

use std::sync::LazyLock;

use super::outline::OutlineStep;
use crate::author::explain::{self, Explained, explain_node};
use crate::object;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::{Map, Value, json};

/// The JSON schemas of definitions and suites, written for editors.
static DEFINITION: LazyLock<Value> = LazyLock::new(|| read(include_str!(concat!(env!("SCHEMAS"), "/crd.json"))));
static SUITE: LazyLock<Value> = LazyLock::new(|| read(include_str!(concat!(env!("SCHEMAS"), "/suite.json"))));
/// The schema of a request: the fields of a suite's case that describe it.
static REQUEST: LazyLock<Value> = LazyLock::new(|| {
    let fields = SUITE.at(&["properties", "cases", "items", "properties"]).and_then(Value::as_object);
    let is_of_request = |name: &str| ["user", "namespace", "params", "operation", "subresource"].contains(&name);
    let fields = fields.into_iter().flat_map(Map::iter).filter(|(name, _)| is_of_request(name));
    object! { "type" => "object", "properties" => fields.map(|(name, field)| (name, field.clone())).collect::<Map>() }
});

fn read(text: &str) -> Value {
    // A test ensures that they are JSON.
    json::decode(text.as_bytes()).unwrap_or_default()
}

/// The schema of a value.
#[derive(Clone, Copy)]
pub enum ValueShape<'s> {
    /// The structural schema of a kind; the root of an object also has the standard fields.
    Structural { schema: &'s Structural, is_root: bool },
    /// A JSON schema, with the root document for its references.
    Json { root: &'static Value, schema: &'static Value },
}

/// A field that can be written at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeField {
    pub name: String,
    /// `string`, `object`, `[]integer`, …
    pub type_: String,
    pub is_required: bool,
    /// The description, the constraints and the rules, one per line.
    pub description: String,
}

/// The metadata of an object, as authors write it.
static METADATA: LazyLock<Structural> = LazyLock::new(|| {
    let of_type = |type_: &str, description: &str| {
        let mut node = Structural::default();
        (node.generic.type_, node.generic.description) = (type_.to_owned(), description.into());
        node
    };
    let map = |description: &str| {
        let mut node = of_type("object", description);
        node.additional_properties = Some(StructuralOrBool::Structural(Box::new(of_type("string", ""))));
        node
    };
    let list = |description: &str| {
        let mut node = of_type("array", description);
        node.items = Some(Box::new(of_type("string", "")));
        node
    };
    let fields = [
        ("annotations", map("what tools note of the object")),
        ("finalizers", list("who must let it go before it is deleted")),
        ("generateName", of_type("string", "what a name that the server makes begins with")),
        ("labels", map("what selectors select by")),
        ("name", of_type("string", "unique among the objects of the kind in the namespace")),
        ("namespace", of_type("string", "where the object is; default if it does not say so")),
    ];
    let mut metadata = of_type("object", "names, labels and annotations");
    metadata.properties = fields.into_iter().map(|(name, node)| (name.to_owned(), node)).collect();
    metadata
});

impl<'s> ValueShape<'s> {
    /// The shape of an object of a kind.
    pub fn of_kind(schema: &'s Structural) -> Self {
        ValueShape::Structural { schema, is_root: true }
    }

    /// The shape of a definition.
    pub fn definition() -> ValueShape<'static> {
        ValueShape::Json { root: &DEFINITION, schema: &DEFINITION }
    }

    /// The shape of a suite.
    pub fn suite() -> ValueShape<'static> {
        ValueShape::Json { root: &SUITE, schema: &SUITE }
    }

    /// The shape of the request in a suite's case.
    pub fn request() -> ValueShape<'static> {
        ValueShape::Json { root: &REQUEST, schema: &REQUEST }
    }

    /// The shape of the value at a path.
    pub fn at(self, path: &[OutlineStep]) -> Option<ValueShape<'s>> {
        path.iter().try_fold(self, |shape, step| shape.child(step))
    }

    fn child(self, step: &OutlineStep) -> Option<ValueShape<'s>> {
        match self {
            ValueShape::Structural { schema, is_root } => {
                let next = match step {
                    OutlineStep::Key(name) if is_root && name == "metadata" => &*METADATA,
                    OutlineStep::Key(name) => match schema.properties.get(name) {
                        Some(below) => below,
                        None => schema.additional_properties.as_ref()?.structural()?,
                    },
                    OutlineStep::Item(_) => schema.items.as_deref()?,
                };
                Some(ValueShape::Structural { schema: next, is_root: next.extensions.embedded_resource })
            }
            ValueShape::Json { root, schema } => {
                let next = match step {
                    OutlineStep::Key(name) => schema
                        .get("properties")
                        .and_then(|fields| fields.get(name))
                        .or_else(|| schema.get("additionalProperties"))?,
                    OutlineStep::Item(_) => schema.get("items")?,
                };
                Some(ValueShape::Json { root, schema: resolved(root, next) })
            }
        }
    }

    /// The structural schema, if it is one.
    pub fn structural(self) -> Option<&'s Structural> {
        match self {
            ValueShape::Structural { schema, .. } => Some(schema),
            ValueShape::Json { .. } => None,
        }
    }

    /// The fields that the value may have.
    pub fn fields(self) -> Vec<ShapeField> {
        match self {
            ValueShape::Structural { schema, is_root } => {
                let field = |(name, below): (&str, &Structural)| ShapeField {
                    name: name.to_owned(),
                    type_: explain::type_of(below),
                    is_required: explain::requires(schema, name),
                    description: said(&explain_node(below)),
                };
                let mut fields: Vec<ShapeField> = schema.properties.iter().map(field).collect();
                if is_root {
                    let standard = [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")];
                    fields.retain(|field| standard.iter().all(|(name, _)| *name != field.name));
                    let standard = standard.map(|(name, type_)| ShapeField {
                        name: name.to_owned(),
                        type_: type_.to_owned(),
                        is_required: true,
                        description: String::new(),
                    });
                    fields.splice(0..0, standard);
                }
                fields
            }
            ValueShape::Json { root, schema } => {
                let required = schema.items_at(&["required"]);
                let fields =
                    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|fields| fields.iter());
                let field = |(name, field): (&str, &'static Value)| ShapeField {
                    name: name.to_owned(),
                    type_: type_of(root, field),
                    is_required: required.iter().any(|required| required.as_str() == Some(name)),
                    description: resolved(root, field).str_at(&["description"]).to_owned(),
                };
                fields.map(field).collect()
            }
        }
    }

    /// The possible values, if there are few.
    pub fn values(self) -> Vec<Value> {
        match self {
            ValueShape::Structural { schema, .. } => {
                let listed = schema.value_validation.as_deref().map_or(&[][..], |values| &values.enum_);
                match (listed, schema.generic.type_.as_str()) {
                    ([], "boolean") => vec![Value::Bool(true), Value::Bool(false)],
                    (listed, _) => listed.to_vec(),
                }
            }
            ValueShape::Json { schema, .. } => match (schema.items_at(&["enum"]), schema.get("const")) {
                ([], Some(only)) => vec![only.clone()],
                ([], None) if schema.str_at(&["type"]) == "boolean" => vec![Value::Bool(true), Value::Bool(false)],
                (listed, _) => listed.to_vec(),
            },
        }
    }

    /// The default value.
    pub fn default(self) -> Option<Value> {
        self.structural()?.generic.default.as_deref().cloned()
    }

    /// The type: `string`, `object`, `[]integer`, …
    pub fn type_(self) -> String {
        match self {
            ValueShape::Structural { schema, .. } => explain::type_of(schema),
            ValueShape::Json { root, schema } => type_of(root, schema),
        }
    }

    /// The explanation of the value.
    pub fn explained(self) -> Explained {
        match self {
            ValueShape::Structural { schema, .. } => explain_node(schema),
            ValueShape::Json { schema, .. } => {
                let values: Vec<String> = self.values().iter().map(json::encode_to_string).collect();
                let constraints =
                    if values.is_empty() { Vec::new() } else { vec![format!("one of {}", values.join(", "))] };
                Explained {
                    type_: self.type_(),
                    is_required: false,
                    description: schema.str_at(&["description"]).to_owned(),
                    constraints,
                    rules: Vec::new(),
                    fields: Vec::new(),
                }
            }
        }
    }
}

/// Formats the description, the constraints and the rules of a field, one per line.
fn said(explained: &Explained) -> String {
    let Explained { description, constraints, rules, .. } = explained;
    let rules = rules.iter().map(|rule| format!("rule: {}", rule.words.as_ref().unwrap_or(&rule.rule)));
    let lines = [description.trim().to_owned()].into_iter().chain(constraints.iter().cloned()).chain(rules);
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Resolves the reference of a schema.
fn resolved(root: &'static Value, schema: &'static Value) -> &'static Value {
    let schema = schema.items_at(&["anyOf"]).first().unwrap_or(schema);
    let Some(name) = schema.str_at(&["$ref"]).strip_prefix("#/definitions/") else { return schema };
    root.at(&["definitions", name]).unwrap_or(schema)
}

fn type_of(root: &'static Value, schema: &'static Value) -> String {
    let schema = resolved(root, schema);
    match schema.str_at(&["type"]) {
        "array" => format!(
            "[]{}",
            schema
                .get("items")
                .map_or_else(|| "any".to_owned(), |items| resolved(root, items).str_at(&["type"]).to_owned())
        ),
        "" => match schema.items_at(&["enum"]).first().or_else(|| schema.get("const")) {
            Some(Value::Bool(_)) => "boolean".to_owned(),
            Some(_) => "string".to_owned(),
            None => "any".to_owned(),
        },
        type_ => type_.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_suites_have_shapes() {
        let path = |names: &[&str]| names.iter().map(|name| OutlineStep::Key((*name).to_owned())).collect::<Vec<_>>();
        let mut way = path(&["spec", "versions"]);
        way.push(OutlineStep::Item(0));
        way.extend(path(&["schema", "openAPIV3Schema", "properties", "spec", "properties", "size", "type"]));
        let found = ValueShape::definition().at(&way).expect("it is there");
        assert!(found.values().contains(&Value::from("integer")), "{:?}", found.values());
        let suite =
            ValueShape::suite().at(&[OutlineStep::Key("cases".to_owned()), OutlineStep::Item(3)]).expect("it is there");
        assert!(suite.fields().iter().any(|field| field.name == "oldPatch" && field.type_ == "[]object"));
    }
}
