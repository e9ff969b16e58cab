//! The conformance cases of the CEL standard, which stand beside the project.
//!
//! Left out, by what they are about, are cases that no rule of a CustomResourceDefinition can stand for: messages and
//! enums of the standard's own packages, containers, extensions or versions of them that Kubernetes does not enable. What
//! is left out must still parse. All libraries of rules are there, without Kubernetes' own checks of literals. Of errors
//! only that they come is compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kubeskiff::cel::cost::Cost;
use kubeskiff::cel::env::{Env, Expressions};
use kubeskiff::cel::eval::map::Map;
use kubeskiff::cel::eval::show::literal;
use kubeskiff::cel::eval::value::{Duration, Timestamp};
use kubeskiff::cel::eval::{EvalError, Program, Value};
use kubeskiff::cel::function::{Function, Overload};
use kubeskiff::cel::types::{Scalar, Type};
use serde_json::Value as Json;

use crate::beside::STANDARD;

/// Files and sections about what rules don't have.
const LEFT_OUT: [(&str, &str); 10] = [
    ("bindings_ext", "extensions"),
    ("block_ext", "extensions"),
    ("encoders_ext", "extensions"),
    ("math_ext", "extensions"),
    // Of the standard's extension; that of Kubernetes has vectors of its own.
    ("network_ext", "extensions"),
    // Strings have version 2 in Kubernetes.
    ("string_ext/reverse", "extensions"),
    ("enums", "enums"),
    ("proto2", "messages"),
    ("proto2_ext", "messages"),
    ("proto3", "messages"),
];

/// Where cel-go 0.29 departs from the standard, with the versions of the libraries that rules have, and its answers.
///
/// Of the language: any scalar is a key of a map, and the last entry of a key wins; what is not a map has no optional entries,
/// and is not an error; the milliseconds of a duration are all of it; a list of an optional and null is one of null. (Two cases
/// of bytes expect a backslash that their expression does not have.) Of strings, version 2: `indexOf` takes any start;
/// `format` writes exponents as powers of ten, and what lists and maps hold as literals, and takes neither integers for
/// doubles nor what is not a number for integers.
const OTHERWISE_THERE: [(&str, &str); 35] = [
    ("fields/qualified_identifier_resolution/map_key_float", "5"),
    ("fields/qualified_identifier_resolution/map_value_repeat_key", "3"),
    ("fields/qualified_identifier_resolution/map_value_repeat_key_heterogeneous", "1"),
    ("fields/map_fields/map_bad_key_type_or_true", "invalid qualifier type: types.Bytes"),
    ("fields/map_fields/map_bad_key_type_and_false", "invalid qualifier type: types.Bytes"),
    ("optionals/optionals/map_null_entry_no_such_key", "false"),
    ("optionals/optionals/map_present_key_invalid_field", "false"),
    ("timestamps/duration_converters/get_milliseconds", "123321"),
    ("parse/bytes_literals/triple_single_quoted_unescaped_punctuation", "[32 63 32 34 32 39 32 96 32]"),
    ("parse/bytes_literals/triple_double_quoted_unescaped_punctuation", "[32 63 32 34 32 39 32 96 32]"),
    ("type_deduction/legacy_nullable_types/null_assignable_to_abstract_parameter_candidate", "null"),
    ("string_ext/value_errors/indexof_out_of_range", "true"),
    ("string_ext/value_errors/lastindexof_out_of_range", "true"),
    ("string_ext/format/scientific notation formatting clause", r#""1.052033×10⁰³""#),
    (
        "string_ext/format/default precision for fixed-point clause with int",
        "error during formatting: fixed-point clause can only be used on doubles, was given int",
    ),
    (
        "string_ext/format/default precision for fixed-point clause with uint",
        "error during formatting: fixed-point clause can only be used on doubles, was given uint",
    ),
    ("string_ext/format/default precision for scientific notation", r#""2.718280×10⁰⁰""#),
    (
        "string_ext/format/default precision for scientific notation with int",
        "error during formatting: scientific clause can only be used on doubles, was given int",
    ),
    (
        "string_ext/format/default precision for scientific notation with uint",
        "error during formatting: scientific clause can only be used on doubles, was given uint",
    ),
    ("string_ext/format/NaN support for scientific notation", r#""   NaN""#),
    ("string_ext/format/positive infinity support for scientific notation", r#""     ∞""#),
    ("string_ext/format/negative infinity support for scientific notation", r#""    -∞""#),
    (
        "string_ext/format/NaN support for decimal",
        "error during formatting: decimal clause can only be used on integers, was given double",
    ),
    (
        "string_ext/format/positive infinity support for decimal",
        "error during formatting: decimal clause can only be used on integers, was given double",
    ),
    (
        "string_ext/format/negative infinity support for decimal",
        "error during formatting: decimal clause can only be used on integers, was given double",
    ),
    ("string_ext/format/positive infinity support for fixed-point", r#""∞""#),
    ("string_ext/format/negative infinity support for fixed-point", r#""-∞""#),
    (
        "string_ext/format/list support for string",
        r#""[\"abc\", 3.140000, null, [9, 8, 7, 6], timestamp(\"2023-02-03T23:31:20Z\")]""#,
    ),
    (
        "string_ext/format/map support for string",
        r#""{\"key1\":b\"xyz\", \"key2\":duration(\"7200s\"), \"key3\":2.718280, \"key4\":true, \"key5\":null}""#,
    ),
    ("string_ext/format/map support (all key types)", r#""{1:\"value1\", 2:\"value2\", true:\"NaN\"}""#),
    ("string_ext/format/dyntype support for scientific notation", r#""2.718280×10⁰⁰""#),
    ("string_ext/format/dyntype NaN/infinity support", r#""[\"NaN\", \"+Inf\", \"-Inf\"]""#),
    ("string_ext/format/dyntype support for lists", r#""[6, 4.200000, \"a string\"]""#),
    ("string_ext/format/dyntype support for maps", r#""{\"strKey\":\"x\", 6:duration(\"422s\"), true:42}""#),
    ("string_ext/format/scientific notation formatting clause in a string variable", r#""1.052033×10⁰³""#),
];

#[derive(Default)]
struct Tally {
    passed: usize,
    otherwise: usize,
    left_out: BTreeMap<&'static str, usize>,
    failures: Vec<String>,
}

#[test]
fn expressions_come_out_as_the_standard_says() {
    let Some(cases) = STANDARD.read() else { return };
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for case in cases {
        let tally = tallies.entry(word(&case, "file").to_owned()).or_default();
        judge(&case, tally);
    }
    for (file, Tally { passed, otherwise, left_out, failures }) in &tallies {
        let failed = failures.len();
        println!("{file}: {passed} passed, {failed} failed, {otherwise} otherwise there, left out: {left_out:?}");
    }
    let failures: Vec<String> = tallies.into_values().flat_map(|tally| tally.failures).collect();
    assert!(failures.is_empty(), "{} cases fail:\n{}", failures.len(), failures.join("\n"));
}

/// Runs a case and enters what came of it.
fn judge(case: &Json, tally: &mut Tally) {
    let name = format!("{}/{}/{}", word(case, "file"), word(case, "section"), word(case, "name"));
    let mut fail = |why: &str| tally.failures.push(format!("{name}: {}: {why}", word(case, "expr")));
    if let Some(subject) = subject_left_out(case) {
        *tally.left_out.entry(subject).or_default() += 1;
        if let Err(why) = must_parse(case) {
            fail(&why);
        }
        return;
    }
    let answer = answer(case);
    match OTHERWISE_THERE.iter().find(|(known, _)| *known == name) {
        Some((_, there)) if answer_text(&answer) == *there => tally.otherwise += 1,
        Some((_, there)) => fail(&format!("is {}, there {there}", answer_text(&answer))),
        None => match agrees(&answer, case) {
            Ok(()) => tally.passed += 1,
            Err(why) => fail(&why),
        },
    }
}

/// What of the case rules don't have.
fn subject_left_out(case: &Json) -> Option<&'static str> {
    let (file, section) = (word(case, "file"), word(case, "section"));
    let listed = LEFT_OUT.iter().find(|(place, _)| *place == file || *place == format!("{file}/{section}"));
    match listed {
        Some((_, subject)) => Some(subject),
        None if case.to_string().contains("TestAllTypes") => Some("messages"),
        None if !word(case, "container").is_empty() => Some("containers"),
        None => None,
    }
}

fn expects_error(case: &Json) -> bool {
    case.get("evalError").is_some() || case.get("anyEvalErrors").is_some()
}

/// # Errors
/// The faults of syntax of a case that is left out.
fn must_parse(case: &Json) -> Result<(), String> {
    // Blocks have macros of their own.
    if expects_error(case) || word(case, "file") == "block_ext" {
        return Ok(());
    }
    environment().parse(word(case, "expr")).map(drop).map_err(|issues| issues.to_string())
}

fn word<'c>(case: &'c Json, name: &str) -> &'c str {
    case[name].as_str().unwrap_or_default()
}

/// What a case comes to.
struct Answer {
    /// The type, of an expression that checks.
    ty: Option<Type>,
    /// The value; nothing where the case wants no more than the type.
    result: Result<Option<Value<'static>>, String>,
}

fn answer(case: &Json) -> Answer {
    let failed = |why: String| Answer { ty: None, result: Err(why) };
    let mut env = environment();
    for declaration in items(case, "typeEnv") {
        env = match declared(env, declaration) {
            Some(env) => env,
            None => return failed("a declaration is not understood".to_owned()),
        };
    }
    let is_unchecked = case["disableCheck"] == true;
    if is_unchecked {
        for name in case["bindings"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            if env.variables.iter().all(|variable| *variable.name != **name) {
                env = env.with_variable(name, Type::Dyn);
            }
        }
    }
    let expression = if is_unchecked { env.resolve(word(case, "expr")) } else { env.compile(word(case, "expr")) };
    let checked = match expression {
        Ok(checked) => checked,
        Err(issues) => return failed(issues.issues[0].message.clone()),
    };
    let ty = (!is_unchecked).then(|| checked.result_type().clone());
    if case["checkOnly"] == true {
        return Answer { ty, result: Ok(None) };
    }
    let bindings = env.variables.iter().map(|variable| {
        let written = case["bindings"].get(&*variable.name)?;
        Some(Ok(value_of(&written["value"]).expect("a binding is understood")))
    });
    let bindings: Vec<_> = bindings.collect();
    let evaluated = Program::new(&checked, &env).and_then(|program| {
        let value = program.evaluate(&bindings, u64::MAX).result?;
        Ok(value.into_static())
    });
    Answer { ty, result: evaluated.map(Some).map_err(|error| error.to_string()) }
}

/// `env` with a variable or a function that a case declares.
fn declared(env: Env, declaration: &Json) -> Option<Env> {
    let name = word(declaration, "name");
    let Some(function) = declaration.get("function") else {
        return Some(env.with_variable(name, type_of(&declaration["ident"]["type"])?));
    };
    let overload = |overload: &Json| {
        let params = items(overload, "params").iter().map(type_of).collect::<Option<Vec<Type>>>()?;
        let id = word(overload, "overloadId").to_owned().leak();
        // These cases are about types alone.
        let result = type_of(&overload["resultType"])?;
        Some(Overload::global(id, params, result, Cost::One, |_, _| Err(EvalError::no_such_overload())))
    };
    let overloads = items(function, "overloads").iter().map(overload).collect::<Option<Vec<_>>>()?;
    Some(env.with_function(Function::new(name.to_owned().leak(), overloads)))
}

/// The value as an expression would have it, or the type where there is no more, or the error.
fn answer_text(answer: &Answer) -> String {
    match (&answer.result, &answer.ty) {
        (Ok(Some(value)), _) => literal(value),
        (Ok(None), ty) => ty.as_ref().map(Type::to_string).unwrap_or_default(),
        (Err(error), _) => error.clone(),
    }
}

/// # Errors
/// In what the answer differs from what the case expects.
fn agrees(answer: &Answer, case: &Json) -> Result<(), String> {
    if let (Some(expected), Some(ty)) = (case["typedResult"].get("deducedType"), &answer.ty) {
        let expected = type_of(expected).ok_or("the expected type is not understood")?;
        if *ty != expected {
            return Err(format!("is {ty}, not {expected}"));
        }
    }
    match (&answer.result, expects_error(case)) {
        (Err(_), true) | (Ok(None), false) => Ok(()),
        (Ok(Some(value)), false) => matches_expected(value, case),
        (Err(error), false) => Err(format!("fails: {error}")),
        (Ok(_), true) => Err("does not fail".to_owned()),
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
        "typeParam" => Type::Param(of.as_str()?.into()),
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
