//! Words that no schema of the definitions has: of schemas themselves, of metadata, of the rest of a request.

use super::super::cursor::Cursor;
use super::Choice;

/// The keywords of structural schemas.
const SCHEMA: [(&str, &str); 29] = [
    ("type", "object, array, string, integer, number or boolean"),
    ("description", "what the field is for"),
    ("properties", "the fields of an object"),
    ("required", "the fields that must be there"),
    ("items", "what a list holds"),
    ("additionalProperties", "what a map holds"),
    ("default", "what an absent field gets"),
    ("enum", "the values that are allowed"),
    ("format", "date-time, duration, int32, int64, …"),
    ("pattern", "a regular expression, not anchored by itself"),
    ("nullable", "whether null is allowed"),
    ("minimum", "the least number"),
    ("maximum", "the largest number"),
    ("exclusiveMinimum", "whether the minimum itself is refused"),
    ("exclusiveMaximum", "whether the maximum itself is refused"),
    ("multipleOf", "what the number is a multiple of"),
    ("minLength", "the least number of characters"),
    ("maxLength", "the largest number of characters: makes rules cheaper"),
    ("minItems", "the least number of items"),
    ("maxItems", "the largest number of items: makes rules cheaper"),
    ("minProperties", "the least number of fields"),
    ("maxProperties", "the largest number of fields: makes rules cheaper"),
    ("x-kubernetes-validations", "rules in CEL"),
    ("x-kubernetes-list-type", "atomic, set or map"),
    ("x-kubernetes-list-map-keys", "the fields that tell items apart"),
    ("x-kubernetes-map-type", "atomic or granular"),
    ("x-kubernetes-int-or-string", "whether both are allowed"),
    ("x-kubernetes-embedded-resource", "whether it is an object with a kind of its own"),
    ("x-kubernetes-preserve-unknown-fields", "whether fields that are not specified stay"),
];
const RULE: [(&str, &str); 6] = [
    ("rule", "an expression that must be true; self is the value here, oldSelf what it was"),
    ("message", "what a user is told whose object breaks it"),
    ("messageExpression", "the same as an expression"),
    ("reason", "FieldValueInvalid, FieldValueForbidden, FieldValueRequired or FieldValueDuplicate"),
    ("fieldPath", "the field that the error is about, from here"),
    ("optionalOldSelf", "whether it runs on creation, too, with oldSelf as an optional"),
];
const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];
const FORMATS: [&str; 12] =
    ["int32", "int64", "float", "double", "byte", "date", "date-time", "duration", "uuid", "uri", "ipv4", "ipv6"];
const REASONS: [&str; 4] = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];
const OBJECT: [(&str, &str); 3] =
    [("apiVersion", "group and version"), ("kind", "the kind"), ("metadata", "name, labels, annotations and more")];
const METADATA: [(&str, &str); 6] = [
    ("name", "the name"),
    ("generateName", "what a generated name begins with"),
    ("namespace", "where it is; default unless named"),
    ("labels", "words that selectors look for"),
    ("annotations", "anything else that is noted"),
    ("finalizers", "who must let it go before it is deleted"),
];
const REQUEST: [(&str, &str); 5] = [
    ("user", "who asks: name, uid, groups, extra; without it somebody who may do everything"),
    ("namespace", "where the object is if it does not say so: name, labels, annotations"),
    ("params", "a list of parameters of policies, beside those among the definitions"),
    ("operation", "CREATE, UPDATE, DELETE or CONNECT, where that does not follow from the objects"),
    ("subresource", "status, if the write goes there"),
];
const USER: [(&str, &str); 4] = [
    ("name", "the user's name"),
    ("uid", "the user's id"),
    ("groups", "the groups of the user, as a list"),
    ("extra", "what else is known of the user"),
];
const NAMESPACE: [(&str, &str); 3] =
    [("name", "the name"), ("labels", "its labels"), ("annotations", "its annotations")];

fn properties(words: &[(&str, &str)]) -> Vec<Choice> {
    let choice = |(label, info): &(&str, &str)| Choice { info: (*info).to_owned(), ..Choice::new("property", *label) };
    words.iter().map(choice).collect()
}

fn listed(words: &[&str]) -> Vec<Choice> {
    words.iter().map(|word| Choice::new("enum", *word)).collect()
}

/// Fields that every object has.
pub fn of_object(path: &[&str]) -> Vec<Choice> {
    if path.is_empty() { properties(&OBJECT) } else { Vec::new() }
}

/// Fields of metadata.
pub fn of_metadata(path: &[&str], is_value: bool) -> Vec<Choice> {
    if path.len() == 1 && !is_value { properties(&METADATA) } else { Vec::new() }
}

/// The rest of a request, as a case of a suite has it.
pub fn of_request(cursor: &Cursor) -> Vec<Choice> {
    let path: Vec<&str> = cursor.path.iter().map(String::as_str).collect();
    match (path.as_slice(), cursor.value.is_some()) {
        ([], false) => properties(&REQUEST),
        (["user"], false) => properties(&USER),
        (["namespace"], false) => properties(&NAMESPACE),
        (["operation"], true) => listed(&["CREATE", "UPDATE", "DELETE", "CONNECT"]),
        (["subresource"], true) => listed(&["status"]),
        _ => Vec::new(),
    }
}

/// Keywords within the schema of a definition, and values of those that have few.
pub fn of_schema(path: &[&str], is_value: bool) -> Vec<Choice> {
    let Some(at) = path.iter().position(|step| *step == "openAPIV3Schema") else { return Vec::new() };
    match (&path[at + 1..], is_value) {
        ([.., "x-kubernetes-validations", "-"], false) => properties(&RULE),
        ([.., "x-kubernetes-validations", "-", "reason"], true) => listed(&REASONS),
        ([.., "type"], true) => listed(&TYPES),
        ([.., "format"], true) => listed(&FORMATS),
        ([.., "x-kubernetes-list-type"], true) => listed(&["atomic", "set", "map"]),
        ([.., "x-kubernetes-map-type"], true) => listed(&["atomic", "granular"]),
        ([.., "nullable" | "optionalOldSelf" | "exclusiveMinimum" | "exclusiveMaximum"], true) => {
            listed(&["true", "false"])
        }
        (steps, false) if is_node(steps) => properties(&SCHEMA),
        _ => Vec::new(),
    }
}

/// Whether a schema stands at these steps below the root of one.
fn is_node(steps: &[&str]) -> bool {
    let mut rest = steps;
    loop {
        rest = match rest {
            [] => return true,
            ["properties", _, rest @ ..] | ["items" | "additionalProperties", rest @ ..] => rest,
            _ => return false,
        };
    }
}
