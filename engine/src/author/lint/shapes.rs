//! Kubernetes types that schemas embed, recognised by their fields.
//!
//! Input: a node of a schema. Output: the type whose fields it has. The generators of definitions write out a Go struct
//! wherever it is used, and nothing in the result names it. So what counts is how many of the node's fields have the
//! names and types of that struct, and how rare these names are. A node that is mistaken for another type only hides
//! advice about it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::schema::structural::Structural;
use crate::types::{self, Codec, Field, FieldKind, Message, Shape};

/// The packages whose types definitions embed.
const PACKAGES: [&str; 10] = [
    "core.v1",
    "meta.v1",
    "apps.v1",
    "batch.v1",
    "networking.v1",
    "autoscaling.v2",
    "policy.v1",
    "rbac.v1",
    "storage.v1",
    "admissionregistration.v1",
];
/// A field name is rare if at most this many types have it.
const RARE_MAX: usize = 12;
/// This many matching fields are not a coincidence, however many others there are.
const MANY: usize = 10;

/// The types that may be embedded.
struct EmbeddableTypes {
    /// The types, each with the number of its fields in JSON.
    types: Vec<(&'static Message, usize)>,
    /// The types that have a field with a name, by their indices.
    by_field: HashMap<&'static str, Vec<(usize, &'static Field)>>,
}

static KNOWN: LazyLock<EmbeddableTypes> = LazyLock::new(|| {
    let mut known = EmbeddableTypes { types: Vec::new(), by_field: HashMap::new() };
    for message in PACKAGES.iter().flat_map(|package| types::structs(package)).map(types::Named::message) {
        for member in message.members() {
            // Of several fields with the same name, the first one counts.
            let Some(field) = message.member(member.json) else { continue };
            known.by_field.entry(member.json).or_default().push((known.types.len(), field));
        }
        known.types.push((message, message.members().count()));
    }
    known
});

/// The type that the node at `path` embeds. The node may have further fields if the type was embedded inline.
pub fn embedded(schema: &Structural, path: &str) -> Option<&'static Message> {
    // The spec and the status of a kind itself are the author's, however much they resemble a Deployment's.
    if schema.properties.is_empty() || ["", "status"].contains(&path) {
        return None;
    }
    // The number of matching fields of each type, and the types that have any.
    let mut counts = vec![0_usize; KNOWN.types.len()];
    let mut alike: Vec<usize> = Vec::new();
    let mut rare = 0;
    for (name, below) in schema.properties.iter() {
        let types = KNOWN.by_field.get(name).map_or(&[][..], Vec::as_slice);
        rare += usize::from((1..=RARE_MAX).contains(&types.len()));
        for &(number, _) in types.iter().filter(|(_, field)| holds(field, below)) {
            if counts[number] == 0 {
                alike.push(number);
            }
            counts[number] += 1;
        }
    }
    let number = alike.into_iter().max_by_key(|number| {
        let (message, all) = KNOWN.types[*number];
        // Of equally good types, the one that lacks the fewest fields, then the one with the shortest name; the name
        // only makes the choice deterministic.
        (counts[*number], Reverse(all), Reverse(message.name.len()), message.name)
    })?;
    let ((message, all), count) = (KNOWN.types[number], counts[number]);
    let own = schema.properties.iter().count();
    let is_whole = count == own && own == all && (own >= 3 || rare == own);
    let is_older = count == own && 2 * own >= all && (own >= 4 || rare == own);
    let is_part = count == own && path != "spec" && (own >= MANY || own >= 5 && 2 * rare >= own);
    let is_inline = count >= MANY && 2 * count >= all || count == all && all >= 4;
    (is_inline || path != "spec" && (is_whole || is_older || is_part)).then_some(message)
}

/// Whether `schema` accepts values of a field of a Go type.
fn holds(field: &Field, schema: &Structural) -> bool {
    let type_ = schema.generic.type_.as_str();
    let wanted = match (field.shape, field.kind) {
        (Shape::List, _) => "array",
        (Shape::Map | Shape::Extensions, _) => "object",
        (_, FieldKind::Bool) => "boolean",
        (_, FieldKind::Int32 | FieldKind::Int64) => "integer",
        (_, FieldKind::Double) => "number",
        (_, FieldKind::String | FieldKind::Bytes) => "string",
        (_, FieldKind::Message(message)) => match message.codec {
            Codec::Object | Codec::Members => "object",
            Codec::Time | Codec::MicroTime | Codec::Duration => "string",
            Codec::List => "array",
            _ => type_,
        },
    };
    type_.is_empty() || type_ == wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::value::yaml;

    #[track_caller]
    fn check(path: &str, properties: &str, expected: Option<&str>) {
        let text = format!("{{type: object, properties: {{{properties}}}}}");
        let schema = json_schema::decode(&yaml::decode(text.as_bytes()).expect("the test is YAML"));
        let schema = to_structural(&schema.expect("and a schema").0).expect("a structural one");
        assert_eq!(embedded(&schema, path).map(|message| message.name), expected, "{properties}");
    }

    const CONDITION: &str = "type: {type: string}, status: {type: string}, reason: {type: string}, message: {type: string}, \
                             lastTransitionTime: {type: string}, observedGeneration: {type: integer}";

    #[test]
    fn a_type_is_known_by_its_fields() {
        check("status.conditions[*]", CONDITION, Some("Condition"));
        check(
            "spec.selector",
            "matchLabels: {type: object}, matchExpressions: {type: array, items: {type: object}}",
            Some("LabelSelector"),
        );
        check("spec.resources", "limits: {type: object}, requests: {type: object}", Some("VolumeResourceRequirements"));
        check(
            "spec.env[*].valueFrom.secretKeyRef",
            "key: {type: string}, name: {type: string}, optional: {type: boolean}",
            Some("SecretKeySelector"),
        );
    }

    #[test]
    fn what_only_has_common_names_is_its_authors() {
        check("spec.owner", "name: {type: string}, namespace: {type: string}", None);
        check("spec.headers[*]", "name: {type: string}, value: {type: string}", None);
        check("spec.conditions[*]", &CONDITION.replace("reason: {type: string}", "reason: {type: object}"), None);
        check("spec.conditions[*]", &format!("{CONDITION}, errors: {{type: array}}"), Some("Condition"));
        check("status", CONDITION, None);
    }
}
