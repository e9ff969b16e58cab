//! A small object of a kind, to begin a case with.
//!
//! Input: the schema of a kind, and which of its fields matter. Output: an object with these and with all that is required, its
//! values as small as the limits allow. It may still be refused: no text is made to fit a pattern, and rules are not asked.

use crate::crd::validate::expressions::SchemaStep;
use crate::object;
use crate::schema::structural::{Structural, ValueValidation};
use crate::value::Value;

/// Levels that are made; what is below is empty.
const DEPTH_MAX: usize = 32;
/// Items and characters that are made at most, whatever the least number of them is.
const SIZE_MAX: i64 = 64;

/// An object of a kind with the fields that `ways` lead to, and with those that are required.
pub fn sample(
    api_version: &str,
    kind: &str,
    is_namespaced: bool,
    schema: &Structural,
    ways: &[Vec<SchemaStep>],
) -> Value {
    let ways: Vec<&[SchemaStep]> = ways.iter().map(Vec::as_slice).collect();
    let mut made = object! { "apiVersion" => api_version, "kind" => kind };
    let mut metadata = object! { "name" => "example" };
    if is_namespaced {
        metadata.make_object().insert("namespace", Value::from("default"));
    }
    let fields = made.make_object();
    fields.insert("metadata", metadata);
    if let Value::Object(body) = value(schema, &ways, 0) {
        for (name, value) in
            body.iter().filter(|(name, _)| !["apiVersion", "kind", "metadata", "status"].contains(name))
        {
            fields.insert(name, value.clone());
        }
    }
    made
}

fn value(schema: &Structural, ways: &[&[SchemaStep]], depth: usize) -> Value {
    let plain = ValueValidation::default();
    let limits = schema.value_validation.as_deref().unwrap_or(&plain);
    if let Some(default) = schema.generic.default.as_deref().filter(|default| !default.is_null()) {
        return default.clone();
    }
    if let Some(first) = limits.enum_.first() {
        return first.clone();
    }
    if schema.extensions.int_or_string {
        return Value::Int(1);
    }
    let least = |size: Option<i64>| size.unwrap_or_default().clamp(0, SIZE_MAX);
    match schema.generic.type_.as_str() {
        "object" if depth < DEPTH_MAX => object_of(schema, limits, ways, depth),
        "array" if depth < DEPTH_MAX => {
            let below = below(ways, &SchemaStep::Items);
            let count = least(limits.bounds.min_items).max(i64::from(!below.is_empty()));
            let items = schema.items.as_deref().filter(|_| count > 0);
            let items = items.map(|items| value(items, &below, depth + 1));
            Value::Array(items.into_iter().cycle().take(count as usize).collect())
        }
        "object" => object! {},
        "array" => Value::Array(Vec::new()),
        "integer" => Value::Int(number(limits).ceil() as i64),
        "number" => Value::Float(number(limits)),
        "boolean" => Value::Bool(true),
        _ => Value::from(text(limits, least(limits.bounds.min_length))),
    }
}

fn object_of(schema: &Structural, limits: &ValueValidation, ways: &[&[SchemaStep]], depth: usize) -> Value {
    let mut made = object! {};
    for (name, property) in schema.properties.iter() {
        let below = below(ways, &SchemaStep::Property(name.to_owned()));
        if !below.is_empty() || limits.required.iter().any(|required| required == name) {
            made.make_object().insert(name, value(property, &below, depth + 1));
        }
    }
    let values = schema.additional_properties.as_ref().and_then(|values| values.structural());
    let below = below(ways, &SchemaStep::Values);
    if let Some(values) = values.filter(|_| !below.is_empty()) {
        made.make_object().insert("key", value(values, &below, depth + 1));
    }
    made
}

/// The rest of the ways that go on with a step.
fn below<'w>(ways: &[&'w [SchemaStep]], step: &SchemaStep) -> Vec<&'w [SchemaStep]> {
    ways.iter().filter_map(|way| way.split_first().filter(|(first, _)| *first == step).map(|(_, rest)| rest)).collect()
}

/// The least number, or the one nearest to 1.
fn number(limits: &ValueValidation) -> f64 {
    let bounds = &limits.bounds;
    let least = bounds.minimum.map(|least| if bounds.exclusive_minimum { least + 1.0 } else { least });
    let most = bounds.maximum.map(|most| if bounds.exclusive_maximum { most - 1.0 } else { most });
    1.0_f64.max(least.unwrap_or(f64::NEG_INFINITY)).min(most.unwrap_or(f64::INFINITY))
}

fn text(limits: &ValueValidation, length: i64) -> String {
    let known = match limits.format.as_str() {
        "date" => "2026-01-01",
        "date-time" => "2026-01-01T00:00:00Z",
        "duration" => "1s",
        "uuid" | "uuid4" => "123e4567-e89b-42d3-a456-426614174000",
        "uri" => "https://example.com",
        "hostname" => "example.com",
        "email" => "a@example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "cidr" => "192.0.2.0/24",
        _ => "",
    };
    if known.is_empty() { "a".repeat(length.max(1) as usize) } else { known.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::value::{json, yaml};

    #[track_caller]
    fn check(schema: &str, ways: &[&[&str]], expected: &str) {
        let schema = yaml::decode(schema.as_bytes()).expect("the test is YAML");
        let schema = json_schema::decode(&schema).expect("and a schema").0;
        let schema = to_structural(&schema).expect("a structural one");
        let step =
            |step: &&str| if *step == "*" { SchemaStep::Items } else { SchemaStep::Property((*step).to_owned()) };
        let ways: Vec<Vec<SchemaStep>> = ways.iter().map(|way| way.iter().map(step).collect()).collect();
        let made = sample("example.com/v1", "Boat", false, &schema, &ways);
        assert_eq!(json::encode_to_string(made.get("spec").unwrap_or(&Value::Null)), expected);
    }

    #[test]
    fn what_is_required_or_matters_is_there() {
        let schema = "
type: object
properties:
  spec:
    type: object
    required: [length, rig]
    properties:
      length: {type: integer, minimum: 3}
      rig: {type: string, enum: [ketch, sloop]}
      berth: {type: string, minLength: 2}
      crew: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, age: {type: integer}}}}
";
        check(schema, &[], "null");
        check(schema, &[&["spec"]], r#"{"length":3,"rig":"ketch"}"#);
        check(schema, &[&["spec", "berth"]], r#"{"berth":"aa","length":3,"rig":"ketch"}"#);
        let crew = r#"{"crew":[{"age":1,"name":"a"}],"length":3,"rig":"ketch"}"#;
        check(schema, &[&["spec", "crew", "*", "age"]], crew);
    }
}
