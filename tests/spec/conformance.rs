//! The conformance cases of the CEL standard, where they are at hand: `../shared/cel-spec` beside the project.
//!
//! Left out are messages of protobuf, enums, containers and functions that a case declares itself; what must not be
//! checked before it runs; and extensions that no rule of a CustomResourceDefinition can use. What is left out must still
//! parse. All libraries of rules are there, without Kubernetes' own checks of literals. Of errors only that they come is
//! compared.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kubeskiff::cel::env::{Env, Expressions};
use kubeskiff::cel::eval::map::Map;
use kubeskiff::cel::eval::value::{Duration, Timestamp};
use kubeskiff::cel::eval::{Program, Value};
use kubeskiff::cel::types::{Scalar, Type};
use serde_json::Value as Json;

/// Files about messages, enums and name spaces, and extensions that rules don't have.
const FILES_LEFT_OUT: [&str; 9] =
    ["bindings_ext", "block_ext", "encoders_ext", "enums", "math_ext", "network_ext", "proto2", "proto2_ext", "proto3"];

/// Cases that come out otherwise in cel-go 0.29, with the versions of the libraries that rules have.
const OTHERWISE_THERE: [&str; 38] = [
    // Keys that a map literal must not have.
    "fields/qualified_identifier_resolution/map_key_float",
    "fields/qualified_identifier_resolution/map_value_repeat_key",
    "fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous",
    // A constant key that can't be one is refused before anything runs.
    "fields/map_fields/map_bad_key_type_or_true",
    "fields/map_fields/map_bad_key_type_and_false",
    // Selection from an optional value that has no fields.
    "optionals/optionals/map_null_entry_no_such_key",
    "optionals/optionals/map_present_key_invalid_field",
    // Of a duration, all of it in milliseconds.
    "timestamps/duration_converters/get_milliseconds",
    // An escape sequence that stands for a question mark.
    "parse/bytes_literals/triple_single_quoted_unescaped_punctuation",
    "parse/bytes_literals/triple_double_quoted_unescaped_punctuation",
    // The common type with null is null.
    "type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate",
    // Strings have version 2 there.
    "string_ext/reverse/empty",
    "string_ext/reverse/single_character",
    "string_ext/reverse/multiple",
    "string_ext/value_errors/indexof_out_of_range",
    "string_ext/value_errors/lastindexof_out_of_range",
    "string_ext/format/scientific notation formatting clause",
    "string_ext/format/default precision for fixed-point clause with int",
    "string_ext/format/default precision for fixed-point clause with uint",
    "string_ext/format/default precision for scientific notation",
    "string_ext/format/default precision for scientific notation with int",
    "string_ext/format/default precision for scientific notation with uint",
    "string_ext/format/NaN support for scientific notation",
    "string_ext/format/positive infinity support for scientific notation",
    "string_ext/format/negative infinity support for scientific notation",
    "string_ext/format/NaN support for decimal",
    "string_ext/format/positive infinity support for decimal",
    "string_ext/format/negative infinity support for decimal",
    "string_ext/format/positive infinity support for fixed-point",
    "string_ext/format/negative infinity support for fixed-point",
    "string_ext/format/list support for string",
    "string_ext/format/map support for string",
    "string_ext/format/map support (all key types)",
    "string_ext/format/dyntype support for scientific notation",
    "string_ext/format/dyntype NaN/infinity support",
    "string_ext/format/dyntype support for lists",
    "string_ext/format/dyntype support for maps",
    "string_ext/format/scientific notation formatting clause in a string variable",
];

#[derive(Default)]
struct Tally {
    passed: usize,
    otherwise: usize,
    left_out: usize,
    failures: Vec<String>,
}

/// What came of a case that did not fail.
enum Outcome {
    Passed,
    LeftOut,
}

#[test]
fn expressions_come_out_as_the_standard_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cel-spec/cel-spec.jsonl.gz");
    let Ok(file) = File::open(&path) else {
        println!("{} is not there: its cases are not run", path.display());
        return;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the file is text under gzip");
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for line in text.lines() {
        let case: Json = serde_json::from_str(line).expect("each line is a case");
        let name = format!("{}/{}/{}", word(&case, "file"), word(&case, "section"), word(&case, "name"));
        let tally = tallies.entry(word(&case, "file").to_owned()).or_default();
        let is_otherwise = OTHERWISE_THERE.contains(&name.as_str());
        match run(&case) {
            Ok(Outcome::Passed) if is_otherwise => tally.failures.push(format!("{name}: passes now")),
            Ok(Outcome::Passed) => tally.passed += 1,
            Ok(Outcome::LeftOut) => tally.left_out += 1,
            Err(_) if is_otherwise => tally.otherwise += 1,
            Err(why) => tally.failures.push(format!("{name}: {}: {why}", word(&case, "expr"))),
        }
    }
    for (file, Tally { passed, otherwise, left_out, failures }) in &tallies {
        let failed = failures.len();
        println!("{file}: {passed} passed, {failed} failed, {otherwise} otherwise there, {left_out} left out");
    }
    let failures: Vec<String> = tallies.into_values().flat_map(|tally| tally.failures).collect();
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

/// Whether a case needs messages of protobuf, or functions that it declares.
fn is_left_out(case: &Json) -> bool {
    let declares = |declaration: &Json| type_of(&declaration["ident"]["type"]).is_none();
    FILES_LEFT_OUT.contains(&word(case, "file"))
        || word(case, "expr").contains("TestAllTypes")
        || case["bindings"].to_string().contains("google.protobuf.Any")
        || !word(case, "container").is_empty()
        || case["typeEnv"].as_array().is_some_and(|declarations| declarations.iter().any(declares))
}

fn word<'c>(case: &'c Json, name: &str) -> &'c str {
    case[name].as_str().unwrap_or_default()
}

fn run(case: &Json) -> Result<Outcome, String> {
    let mut env = environment();
    let expects_error = case.get("evalError").is_some() || case.get("anyEvalErrors").is_some();
    if is_left_out(case) {
        // Blocks have macros of their own.
        let must_parse = !expects_error && word(case, "file") != "block_ext";
        return match env.parse(word(case, "expr")) {
            Err(issues) if must_parse => Err(issues.to_string()),
            _ => Ok(Outcome::LeftOut),
        };
    }
    for declaration in case["typeEnv"].as_array().into_iter().flatten() {
        let ty = type_of(&declaration["ident"]["type"]).ok_or("a declaration is not understood")?;
        env = env.with_variable(word(declaration, "name"), ty);
    }
    let checked = match env.compile(word(case, "expr")) {
        Ok(checked) => checked,
        Err(_) if expects_error => return Ok(Outcome::Passed),
        Err(_) if case["disableCheck"] == true => return Ok(Outcome::LeftOut),
        Err(issues) => return Err(issues.to_string()),
    };
    if let Some(expected) = case["typedResult"].get("deducedType") {
        let expected = type_of(expected).ok_or("the expected type is not understood")?;
        if *checked.result_type() != expected {
            return Err(format!("is {}, not {expected}", checked.result_type()));
        }
    }
    if case["checkOnly"] == true {
        return Ok(Outcome::Passed);
    }
    let mut bound = Vec::new();
    for variable in &env.variables {
        let binding = case["bindings"].get(&variable.name).map(|binding| value_of(&binding["value"]));
        bound.push(match binding {
            Some(None) => return Err("a binding is not understood".to_owned()),
            Some(Some(value)) => Some(Ok(value)),
            None => None,
        });
    }
    let result = match Program::new(&checked, &env) {
        Ok(program) => program.evaluate(&bound, u64::MAX).result.map(|value| matches_expected(&value, case)),
        Err(error) => Err(error),
    };
    match (result, expects_error) {
        (Err(_), true) | (Ok(Ok(())), false) => Ok(Outcome::Passed),
        (Err(error), false) => Err(format!("fails: {error}")),
        (Ok(_), true) => Err("does not fail".to_owned()),
        (Ok(Err(why)), false) => Err(why),
    }
}

/// What a case without result expects is `true`.
fn matches_expected(value: &Value<'_>, case: &Json) -> Result<(), String> {
    let truth = serde_json::json!({"boolValue": true});
    let expected = case.get("value").or_else(|| case["typedResult"].get("result")).unwrap_or(&truth);
    if is(value, expected) { Ok(()) } else { Err(format!("is {value:?}, not {expected}")) }
}

/// The functions of rules, without Kubernetes' checks.
fn environment() -> Env {
    let mut library = (*Env::kubernetes(Expressions::Stored).library).clone();
    library.homogeneous_literals = false;
    library.literal_validators = false;
    Env { library: Arc::new(library), variables: Vec::new() }
}

fn type_of(written: &Json) -> Option<Type> {
    let (kind, of) = written.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "primitive" => scalar(of)?.as_type(),
        "wrapper" => Type::Wrapper(scalar(of)?),
        "wellKnown" => match of.as_str()? {
            "DURATION" => Type::Duration,
            "TIMESTAMP" => Type::Timestamp,
            _ => Type::Any,
        },
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "listType" => Type::list(type_of(&of["elemType"])?),
        "mapType" => Type::map(type_of(&of["keyType"])?, type_of(&of["valueType"])?),
        "type" => Type::type_of(type_of(of)?),
        "abstractType" => {
            let params = of["parameterTypes"].as_array()?.iter().map(type_of).collect::<Option<Vec<Type>>>()?;
            Type::opaque(word(of, "name"), params)
        }
        "messageType" => Type::named(of.as_str()?)?,
        _ => return None,
    })
}

fn scalar(written: &Json) -> Option<Scalar> {
    Some(match written.as_str()? {
        "BOOL" => Scalar::Bool,
        "INT64" => Scalar::Int,
        "UINT64" => Scalar::Uint,
        "DOUBLE" => Scalar::Double,
        "STRING" => Scalar::String,
        "BYTES" => Scalar::Bytes,
        _ => return None,
    })
}

fn value_of(written: &Json) -> Option<Value<'static>> {
    let (kind, of) = written.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "nullValue" => Value::Null,
        "boolValue" => Value::Bool(of.as_bool()?),
        "int64Value" => Value::Int(of.as_str()?.parse().ok()?),
        "uint64Value" => Value::Uint(of.as_str()?.parse().ok()?),
        "doubleValue" => Value::Double(double(of)?),
        "stringValue" => Value::string(of.as_str()?),
        "bytesValue" => Value::bytes(BASE64_STANDARD.decode(of.as_str()?).ok()?),
        "listValue" => Value::list(items(of, "values").iter().map(value_of).collect::<Option<_>>()?),
        "mapValue" => {
            let entry = |entry: &Json| Some((value_of(&entry["key"])?, value_of(&entry["value"])?));
            Value::Map(Map::owned(items(of, "entries").iter().map(entry).collect::<Option<Vec<_>>>()?))
        }
        "objectValue" => match word(of, "@type").rsplit('/').next()? {
            "google.protobuf.Duration" => Value::Duration(duration(word(of, "value"))?),
            "google.protobuf.Timestamp" => Value::Timestamp(timestamp(word(of, "value"))?),
            "google.protobuf.Int32Value" | "google.protobuf.Int64Value" => Value::Int(number(&of["value"])?),
            "google.protobuf.UInt32Value" | "google.protobuf.UInt64Value" => Value::Uint(number(&of["value"])?),
            "google.protobuf.FloatValue" | "google.protobuf.DoubleValue" => Value::Double(double(&of["value"])?),
            "google.protobuf.BytesValue" => Value::bytes(BASE64_STANDARD.decode(word(of, "value")).ok()?),
            "google.protobuf.BoolValue"
            | "google.protobuf.StringValue"
            | "google.protobuf.Value"
            | "google.protobuf.ListValue"
            | "google.protobuf.Struct" => json_value(&of["value"]),
            _ => return None,
        },
        _ => return None,
    })
}

fn number<T: std::str::FromStr>(written: &Json) -> Option<T> {
    written.as_str().map_or_else(|| written.to_string(), str::to_owned).parse().ok()
}

/// JSON as a value: numbers are doubles.
fn json_value(written: &Json) -> Value<'static> {
    match written {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(_) => Value::Double(double(written).unwrap_or(f64::NAN)),
        Json::String(text) => Value::string(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(json_value).collect()),
        Json::Object(fields) => {
            let entry = |(name, value): (&String, &Json)| (Value::string(name.as_str()), json_value(value));
            Value::Map(Map::owned(fields.iter().map(entry)))
        }
    }
}

fn items<'j>(of: &'j Json, name: &str) -> &'j [Json] {
    of[name].as_array().map_or(&[], Vec::as_slice)
}

fn double(written: &Json) -> Option<f64> {
    match written.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some(text) => text.parse().ok(),
        None => written.as_f64(),
    }
}

/// `1.5s`
fn duration(text: &str) -> Option<Duration> {
    kubeskiff::meta::duration::parse(text).map(Duration)
}

fn timestamp(text: &str) -> Option<Timestamp> {
    let moment = kubeskiff::meta::time::parse(text).ok()?;
    Some(Timestamp { seconds: moment.unix_seconds, nanos: moment.nanos, offset_seconds: moment.offset_seconds })
}

/// Whether `value` is the expected one, of the same type.
fn is(value: &Value<'_>, expected: &Json) -> bool {
    let Some((kind, of)) = expected.as_object().and_then(|expected| expected.iter().next()) else { return false };
    match (value, kind.as_str()) {
        (Value::List(list), "listValue") => {
            let items = items(of, "values");
            list.len() == items.len()
                && items
                    .iter()
                    .enumerate()
                    .all(|(at, item)| matches!(list.get(at), Some(Ok(actual)) if is(&actual, item)))
        }
        (Value::Map(map), "mapValue") => {
            let entries = items(of, "entries");
            map.len() == entries.len()
                && entries.iter().all(|entry| {
                    let found = value_of(&entry["key"]).and_then(|key| map.find(&key).ok().flatten());
                    found.is_some_and(|actual| is(&actual, &entry["value"]))
                })
        }
        (Value::Type(ty), "typeValue") => of.as_str() == Some(ty.runtime_name()),
        (Value::Double(actual), "doubleValue") => double(of).is_some_and(|wanted| is_close(*actual, wanted)),
        (actual, _) => value_of(expected)
            .is_some_and(|wanted| wanted.type_of() == actual.type_of() && wanted.is(actual).is_ok_and(|equal| equal)),
    }
}

/// Whether two numbers are the same but for how the reader of the cases rounds them.
fn is_close(actual: f64, wanted: f64) -> bool {
    actual == wanted || (actual.is_nan() && wanted.is_nan()) || (actual - wanted).abs() < actual.abs() * 1e-15
}
