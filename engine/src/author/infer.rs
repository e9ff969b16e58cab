//! A first definition from examples.
//!
//! Input: objects of one kind, as somebody wrote them. Output: a definition that takes each of them, as tight as the
//! examples allow without guessing: types, required fields, bounds with room to grow. It is a draft for its author to
//! go over.
//!
//! What is taken for what:
//! - A field that every one of several holders has is required.
//! - An object whose names are not field names, or that is called as maps are (`labels`), is a map.
//! - A list of objects that all have a name of their own is a list map by `name`.
//! - Texts, lists and maps are bounded by a round limit of at least twice, four times what was seen; numbers by the sign
//!   and the 32 or 53 bits that they have.
//! - What has several types keeps unknown fields; a number or a text is an int-or-string.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::author::DefinedKind;
use crate::author::check::{CheckOptions, create};
use crate::meta::api_version::{ApiVersionError, split_api_version};
use crate::meta::format::Format;
use crate::object;
use crate::value::{Map, Value};

/// How many different texts are remembered: more are not an enumeration.
const TEXTS_MAX: usize = 5;
/// Each value of an enumeration stands so often on average, at least.
const TEXT_USES_MIN: usize = 4;
/// Names of fields whose objects are maps.
const MAPS: [&str; 12] = [
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "limits",
    "requests",
    "data",
    "stringData",
    "parameters",
    "env",
    "headers",
    "selector",
];
/// Bounds to choose from.
const LENGTHS: [i64; 6] = [63, 253, 1024, 4096, 32_768, 262_144];
const COUNTS: [i64; 6] = [16, 64, 256, 1024, 8192, 65_536];
/// Integers up to here are exact as JSON numbers of any reader.
const EXACT_MAX: i64 = 9_007_199_254_740_991;

/// What objects do not say of their kind.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// The plural; made of the kind where it is empty.
    pub plural: String,
    /// Whether objects have no namespace; where it is not said, the objects tell, and none of them means one each.
    pub is_cluster_scoped: bool,
}

/// Why no definition can be inferred.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InferError {
    /// Nothing to infer it from.
    #[error("there is no object")]
    NoObject,
    /// An `apiVersion` that is not one.
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    /// An object without a kind, or of a kind of the core group.
    #[error("an object of a kind of your own has a kind, and an apiVersion with a group")]
    NotCustom,
    /// Objects of more than one kind; each with its group.
    #[error("the objects are of several kinds: {first} and {other}; name the files of one")]
    SeveralKinds {
        /// The kind of the first object.
        first: String,
        /// A kind of another object.
        other: String,
    },
}

/// A definition that takes all of `objects`, which are of one kind, the first version stored.
///
/// # Errors
/// An object has no kind, or another than the first, or an `apiVersion` that is not one.
pub fn infer(objects: &[Value], hints: &Hints) -> Result<Value, InferError> {
    let first = objects.first().ok_or(InferError::NoObject)?;
    let kind = first.str_at(&["kind"]);
    let (group, _) = split_api_version(first.str_at(&["apiVersion"]))?;
    if kind.is_empty() || group.is_empty() {
        return Err(InferError::NotCustom);
    }
    let mut versions: Vec<(String, Observations)> = Vec::new();
    for object in objects {
        let (own_group, version) = split_api_version(object.str_at(&["apiVersion"]))?;
        let own_kind = object.str_at(&["kind"]);
        if (own_group, own_kind) != (group, kind) {
            let (first, other) = (format!("{kind}.{group}"), format!("{own_kind}.{own_group}"));
            return Err(InferError::SeveralKinds { first, other });
        }
        match versions.iter_mut().find(|(known, _)| known == version) {
            Some((_, seen)) => seen.note(object),
            None => {
                let mut seen = Observations::default();
                seen.note(object);
                versions.push((version.to_owned(), seen));
            }
        }
    }
    Ok(definition(group, kind, &versions, hints))
}

/// Why `definition`, which was inferred, does not take the objects that it was inferred from: nothing, if all is well.
pub fn faults(definition: &Value, objects: &[Value]) -> Vec<String> {
    let kind = match DefinedKind::new(definition) {
        Ok(kind) => kind,
        Err(error) => return vec![error.to_string()],
    };
    let of_definition = kind.errors.iter().map(ToString::to_string);
    let of_objects = objects.iter().flat_map(|object| {
        let checked = create(&kind, object, CheckOptions::default());
        let errors = checked.errors.iter().map(|rejected| rejected.error.to_string());
        let unknown = checked.unknown.iter().map(|path| format!("unknown field \"{path}\""));
        let name = object.str_at(&["metadata", "name"]);
        errors.chain(unknown).map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>()
    });
    of_definition.chain(of_objects).collect()
}

fn definition(group: &str, kind: &str, versions: &[(String, Observations)], hints: &Hints) -> Value {
    let singular = kind.to_ascii_lowercase();
    let plural = if hints.plural.is_empty() { plural_of(&singular) } else { hints.plural.clone() };
    let served = versions.iter().enumerate().map(|(index, (name, seen))| {
        let mut version = object! {
            "name" => name.as_str(),
            "served" => true,
            "storage" => index == 0,
            "schema" => object! { "openAPIV3Schema" => root(seen) },
        };
        if seen.fields.contains_key("status") {
            version.make_object().insert("subresources", object! { "status" => object! {} });
        }
        version
    });
    object! {
        "apiVersion" => "apiextensions.k8s.io/v1",
        "kind" => "CustomResourceDefinition",
        "metadata" => object! { "name" => format!("{plural}.{group}") },
        "spec" => object! {
            "group" => group,
            "names" => object! {
                "kind" => kind,
                "listKind" => format!("{kind}List"),
                "plural" => plural.as_str(),
                "singular" => singular.as_str(),
            },
            "scope" => if hints.is_cluster_scoped { "Cluster" } else { "Namespaced" },
            "versions" => served.collect::<Vec<_>>(),
        },
    }
}

/// As English has most words.
fn plural_of(singular: &str) -> String {
    let is_vowel = |letter: Option<char>| letter.is_some_and(|letter| "aeiou".contains(letter));
    match singular.strip_suffix('y') {
        Some(stem) if !is_vowel(stem.chars().last()) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end)) => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

/// The schema of a whole object: what every object has is not described.
fn root(seen: &Observations) -> Value {
    let mut properties = Map::new();
    for (name, below) in &seen.fields {
        let schema = match name.as_str() {
            "apiVersion" | "kind" => object! { "type" => "string" },
            "metadata" => object! { "type" => "object" },
            name => schema(below, name),
        };
        properties.insert(name.as_str(), schema);
    }
    let required =
        required(seen).into_iter().filter(|name| !["apiVersion", "kind", "metadata", "status"].contains(name));
    let required: Vec<Value> = required.map(Value::from).collect();
    let mut schema = object! { "type" => "object", "properties" => Value::Object(properties) };
    if !required.is_empty() {
        schema.make_object().insert("required", required.into());
    }
    schema
}

/// What stood at one place of all examples.
#[derive(Clone, Debug, Default)]
struct Observations {
    nulls: usize,
    booleans: usize,
    integers: Option<(i64, i64)>,
    floats: usize,
    texts: Option<Texts>,
    lists: Option<Lists>,
    /// How many objects there were, and with how many fields at most.
    objects: usize,
    fields_max: usize,
    fields: BTreeMap<String, Observations>,
    /// How often it was there at all.
    count: usize,
}

#[derive(Clone, Debug, Default)]
struct Texts {
    longest: usize,
    are_times: bool,
    /// As many different ones as there may be values of an enumeration, and one more.
    different: Vec<String>,
}

#[derive(Clone, Debug)]
struct Lists {
    longest: usize,
    items: Box<Observations>,
    /// Whether all items are objects, with a `name` that no other item of their list has.
    are_named: bool,
}

impl Observations {
    fn note(&mut self, value: &Value) {
        self.count += 1;
        match value {
            Value::Null => self.nulls += 1,
            Value::Bool(_) => self.booleans += 1,
            Value::Float(_) => self.floats += 1,
            Value::Int(number) => {
                let (least, most) = self.integers.unwrap_or((*number, *number));
                self.integers = Some((least.min(*number), most.max(*number)));
            }
            Value::String(text) => self.note_text(text),
            Value::Array(items) => self.note_list(items),
            Value::Object(fields) => {
                self.objects += 1;
                self.fields_max = self.fields_max.max(fields.len());
                fields.iter().for_each(|(name, below)| self.fields.entry(name.to_owned()).or_default().note(below));
            }
        }
    }

    fn note_text(&mut self, text: &str) {
        let texts = self.texts.get_or_insert_with(|| Texts { are_times: true, ..Texts::default() });
        texts.longest = texts.longest.max(text.chars().count());
        texts.are_times &= Format::DateTime.accepts(text);
        if texts.different.len() <= TEXTS_MAX && !texts.different.iter().any(|known| known == text) {
            texts.different.push(text.to_owned());
        }
    }

    fn note_list(&mut self, items: &[Value]) {
        let new = Lists { longest: 0, items: Box::default(), are_named: true };
        let lists = self.lists.get_or_insert(new);
        lists.longest = lists.longest.max(items.len());
        let mut names = BTreeSet::new();
        for item in items {
            lists.items.note(item);
            let name = item.str_at(&["name"]);
            lists.are_named &= !name.is_empty() && names.insert(name);
        }
    }

    /// The types that were seen, null apart.
    fn types(&self) -> Vec<&'static str> {
        let types = [
            (self.booleans > 0, "boolean"),
            (self.integers.is_some() && self.floats == 0, "integer"),
            (self.floats > 0, "number"),
            (self.texts.is_some(), "string"),
            (self.lists.is_some(), "array"),
            (self.objects > 0, "object"),
        ];
        types.into_iter().filter_map(|(is_seen, name)| is_seen.then_some(name)).collect()
    }
}

/// The schema of what was seen in a field called `name`, or in items and entries, which have no name.
fn schema(seen: &Observations, name: &str) -> Value {
    let mut schema = match seen.types().as_slice() {
        ["boolean"] => object! { "type" => "boolean" },
        ["integer"] => integer(seen.integers.unwrap_or_default()),
        ["number"] => object! { "type" => "number" },
        ["string"] => text(seen),
        ["integer", "string"] => object! { "x-kubernetes-int-or-string" => true },
        ["array"] => list(seen),
        ["object"] => fields(seen, name),
        _ => return object! { "x-kubernetes-preserve-unknown-fields" => true },
    };
    if seen.nulls > 0 {
        schema.make_object().insert("nullable", true.into());
    }
    schema
}

fn integer((least, most): (i64, i64)) -> Value {
    let fits = i32::try_from(least).is_ok() && i32::try_from(most).is_ok();
    let (format, bound) = if fits { ("int32", i64::from(i32::MAX)) } else { ("int64", EXACT_MAX) };
    let mut schema = object! { "type" => "integer", "format" => format };
    // Beyond what readers hold exactly, nothing is known of the limits.
    if most <= EXACT_MAX && least >= -EXACT_MAX {
        let fields = schema.make_object();
        fields.insert("minimum", Value::Int(if least >= 0 { 0 } else { -bound }));
        fields.insert("maximum", Value::Int(bound));
    }
    schema
}

fn text(seen: &Observations) -> Value {
    let none = Texts::default();
    let texts = seen.texts.as_ref().unwrap_or(&none);
    if texts.are_times {
        return object! { "type" => "string", "format" => "date-time" };
    }
    let is_word = |text: &String| {
        text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let is_choice = texts.different.len() > 1
        && texts.different.len() <= TEXTS_MAX
        && seen.count >= TEXT_USES_MIN * texts.different.len()
        && texts.different.iter().all(is_word);
    if is_choice {
        let mut values = texts.different.clone();
        values.sort();
        let values: Vec<Value> = values.into_iter().map(Value::from).collect();
        return object! { "type" => "string", "enum" => values };
    }
    bounded(object! { "type" => "string" }, "maxLength", texts.longest * 2, &LENGTHS)
}

fn list(seen: &Observations) -> Value {
    let Some(lists) = &seen.lists else { return Value::Null };
    let mut schema = object! { "type" => "array" };
    let mut items = self::schema(&lists.items, "");
    if lists.are_named && lists.items.count > 0 {
        let fields = items.make_object();
        let mut required = fields.get("required").and_then(Value::as_array).unwrap_or_default().to_vec();
        if !required.contains(&"name".into()) {
            required.push("name".into());
        }
        fields.insert("required", required.into());
        schema.make_object().insert("x-kubernetes-list-type", "map".into());
        schema.make_object().insert("x-kubernetes-list-map-keys", vec![Value::from("name")].into());
    } else {
        schema.make_object().insert("x-kubernetes-list-type", "atomic".into());
    }
    schema.make_object().insert("items", items);
    bounded(schema, "maxItems", lists.longest * 4, &COUNTS)
}

fn fields(seen: &Observations, name: &str) -> Value {
    if seen.fields.is_empty() {
        return object! { "type" => "object", "x-kubernetes-preserve-unknown-fields" => true };
    }
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric())
    };
    if MAPS.contains(&name) || !seen.fields.keys().all(|name| is_name(name)) {
        return map(seen);
    }
    let properties: Map = seen.fields.iter().map(|(name, below)| (name.clone(), schema(below, name))).collect();
    let mut schema = object! { "type" => "object", "properties" => Value::Object(properties) };
    let required: Vec<Value> = required(seen).into_iter().map(Value::from).collect();
    if !required.is_empty() {
        schema.make_object().insert("required", required.into());
    }
    schema
}

/// The fields that each of several objects had.
fn required(seen: &Observations) -> Vec<&str> {
    let is_there =
        |(_, below): &(&String, &Observations)| seen.objects > 1 && below.count == seen.objects && below.nulls == 0;
    seen.fields.iter().filter(is_there).map(|(name, _)| name.as_str()).collect()
}

fn map(seen: &Observations) -> Value {
    let mut values = Observations::default();
    seen.fields.values().for_each(|below| values.merge(below));
    let schema = object! { "type" => "object", "additionalProperties" => schema(&values, "") };
    bounded(schema, "maxProperties", seen.fields_max * 4, &COUNTS)
}

/// With the first of `bounds` that leaves room for `wanted`, if one does.
fn bounded(mut schema: Value, keyword: &str, wanted: usize, bounds: &[i64]) -> Value {
    let wanted = i64::try_from(wanted).unwrap_or(i64::MAX);
    if let Some(bound) = bounds.iter().find(|bound| **bound >= wanted) {
        schema.make_object().insert(keyword, Value::Int(*bound));
    }
    schema
}

impl Observations {
    /// Adds what was seen elsewhere.
    fn merge(&mut self, other: &Observations) {
        self.nulls += other.nulls;
        self.booleans += other.booleans;
        self.floats += other.floats;
        self.count += other.count;
        self.objects += other.objects;
        self.fields_max = self.fields_max.max(other.fields_max);
        if let Some((least, most)) = other.integers {
            let (own_least, own_most) = self.integers.unwrap_or((least, most));
            self.integers = Some((own_least.min(least), own_most.max(most)));
        }
        if let Some(texts) = &other.texts {
            let own = self.texts.get_or_insert_with(|| Texts { are_times: true, ..Texts::default() });
            own.longest = own.longest.max(texts.longest);
            own.are_times &= texts.are_times;
            let new: Vec<String> =
                texts.different.iter().filter(|text| !own.different.contains(text)).cloned().collect();
            own.different.extend(new);
        }
        if let Some(lists) = &other.lists {
            let new = Lists { longest: 0, items: Box::default(), are_named: true };
            let own = self.lists.get_or_insert(new);
            own.longest = own.longest.max(lists.longest);
            own.are_named &= lists.are_named;
            own.items.merge(&lists.items);
        }
        for (name, below) in &other.fields {
            self.fields.entry(name.clone()).or_default().merge(below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    const EXAMPLES: &[u8] = b"
apiVersion: harbour.example.com/v1
kind: Ferry
metadata: {name: swan}
spec:
  seats: 200
  line: {from: Kiel, to: Oslo}
  ports: [{name: a, berth: 3}, {name: b}]
  labels: {example.com/a: x}
  limit: 10%
---
apiVersion: harbour.example.com/v1
kind: Ferry
metadata: {name: heron}
spec:
  seats: 150
  ratio: 0.5
  line: {from: Kiel}
  ports: []
  since: '2026-01-02T03:04:05Z'
  limit: 3
status: {ready: true}
";

    #[test]
    fn examples_become_a_definition_that_takes_them() {
        let objects = yaml::decode_all(EXAMPLES).expect("the test is YAML");
        let definition = infer(&objects, &Hints::default()).expect("they are of one kind");
        assert_eq!(faults(&definition, &objects), Vec::<String>::new());
        let expected = "
required: [spec]
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  status: {type: object, properties: {ready: {type: boolean}}}
  spec:
    type: object
    required: [limit, line, ports, seats]
    properties:
      seats: {type: integer, format: int32, minimum: 0, maximum: 2147483647}
      ratio: {type: number}
      limit: {x-kubernetes-int-or-string: true}
      since: {type: string, format: date-time}
      labels: {type: object, maxProperties: 16, additionalProperties: {type: string, maxLength: 63}}
      line:
        type: object
        required: [from]
        properties: {from: {type: string, maxLength: 63}, to: {type: string, maxLength: 63}}
      ports:
        type: array
        maxItems: 16
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties:
            name: {type: string, maxLength: 63}
            berth: {type: integer, format: int32, minimum: 0, maximum: 2147483647}
";
        let schema = definition.items_at(&["spec", "versions"])[0].at(&["schema", "openAPIV3Schema"]);
        assert_eq!(schema, yaml::decode(expected.as_bytes()).ok().as_ref());
        assert_eq!(definition.str_at(&["metadata", "name"]), "ferries.harbour.example.com");
    }

    #[test]
    fn words_that_come_again_are_a_choice() {
        let object = |rig: &str| {
            let text = format!("{{apiVersion: a.example.com/v1, kind: Box, spec: {{rig: {rig}}}}}");
            yaml::decode(text.as_bytes()).expect("the test is YAML")
        };
        let objects: Vec<Value> = ["Ketch", "Sloop"].into_iter().cycle().take(8).map(object).collect();
        let definition = infer(&objects, &Hints::default()).expect("they are of one kind");
        let shown = crate::value::json::encode_to_string(&definition);
        assert!(shown.contains(r#"{"enum":["Ketch","Sloop"],"type":"string"}"#), "{shown}");
        assert!(shown.contains(r#""name":"boxes.a.example.com""#), "{shown}");
    }

    #[test]
    fn objects_of_several_kinds_are_refused() {
        let objects = yaml::decode_all(b"{apiVersion: a.b/v1, kind: A}\n---\n{apiVersion: a.b/v1, kind: B}");
        let refused = infer(&objects.expect("the test is YAML"), &Hints::default());
        assert!(matches!(refused, Err(InferError::SeveralKinds { .. })));
        assert!(infer(&[], &Hints::default()).is_err());
    }
}
