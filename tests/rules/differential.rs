//! The same rules over the same objects in the `cel` crate's interpreter.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::Value as Theirs;
use cel::{Context, Program};
use kubeskiff::meta::field::Path;
use kubeskiff::schema::rules::{CostLimits, Rules};
use kubeskiff::value::json;
use serde_json::Value as Json;

use super::generator::{Generator, schema};

const RULES: u64 = 1_500;
const OBJECTS: u64 = 2;

/// An integer stays one, also where it is not negative.
fn value_of(written: &Json) -> Theirs {
    match written {
        Json::Null => Theirs::Null,
        Json::Bool(truth) => Theirs::Bool(*truth),
        Json::Number(number) => number.as_i64().map_or(Theirs::Null, Theirs::Int),
        Json::String(text) => Theirs::String(Arc::new(text.clone())),
        Json::Array(items) => Theirs::List(Arc::new(items.iter().map(value_of).collect())),
        Json::Object(fields) => {
            let fields: HashMap<String, Theirs> =
                fields.iter().map(|(name, value)| (name.clone(), value_of(value))).collect();
            Theirs::Map(fields.into())
        }
    }
}

fn theirs(rule: &str, object: &str) -> Result<bool, String> {
    let object: Json = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let program = Program::compile(rule).map_err(|error| error.to_string())?;
    let mut context = Context::default();
    context.add_variable_from_value("self", value_of(&object));
    match program.execute(&context).map_err(|error| error.to_string())? {
        Theirs::Bool(truth) => Ok(truth),
        other => Err(format!("not true or false: {other:?}")),
    }
}

/// What both know and do alike, beside what seeds make.
const SAME: [&str; 66] = [
    "self.number / 2 == 1 && self.count / 2 == -3 && self.count % 3 == -1",
    "self.text.matches('^[a-c]+$')",
    "size('日本' + self.text) == 5",
    "dyn(self.number) == 3.0",
    "timestamp('2026-11-21T09:00:00Z').getHours('America/New_York') == 4",
    "timestamp('2026-11-21T09:00:00+02:00') == timestamp('2026-11-21T07:00:00Z')",
    "self.text.matches('[[:alpha:]]+') && self.text.matches('\\\\pL')",
    "duration('1.5h') > duration('1h') && duration('-1m') < duration('1ns')",
    "int(timestamp('1970-01-01T00:00:10Z')) == 10",
    "string(b'abc') == self.text",
    "{'a': 1, self.text: 2} == {'abc': 2, 'a': 1}",
    "double('1e3') == 1000.0 && double('NaN') != double('NaN')",
    "b'a' < b'b' && b'a' + b'b' == b'ab'",
    "false < self.flag",
    "[1, 2] + [self.number] == [1, 2, 3]",
    "timestamp('2026-11-21T09:00:00Z').getMilliseconds() == 0 && timestamp('2026-11-21T09:00:00Z').getDate() == 21",
    "uint(self.count) == 0u",
    "self.text.endsWith('') && 'ab'.startsWith(self.text) == false",
    "double(self.number) / 2.0 == 1.5",
    "uint(self.number) == 3u",
    "int('12') + self.number == 15",
    "string(self.number) == '3'",
    "self.number - self.count == 10 && -self.number == -3",
    "int('9223372036854775807') + self.number > 0",
    "uint(self.number) - 4u > 0u",
    "self.flag || 1 / (self.number - 3) == 0",
    "1 / (self.number - 3) == 0 || self.flag",
    "!self.flag && 1 / (self.number - 3) == 0",
    "1 / (self.number - 3) == 0 && !self.flag",
    "self.texts.all(x, x == 'a' || 1 / (self.number - 3) == 0)",
    "self.texts.exists(x, x == 'b' || 1 / (self.number - 3) == 0)",
    "self.texts.exists_one(x, x == 'b')",
    "'a' in self.labels && !('b' in self.labels)",
    "{'a': self.number}.a == 3 && {1: self.text}[1] == 'abc'",
    "[self.number, 4] == [3, 4] && {'a': [self.number]} == {'a': [3]}",
    "duration('90m') == duration('1h30m')",
    "duration(self.text + 'x') == duration('1s')",
    "timestamp('2026-11-21T09:00:00Z') - timestamp('2026-11-21T08:00:00Z') == duration('1h')",
    "timestamp('2026-11-21T09:00:00Z').getFullYear() == 2026 && timestamp('2026-11-21T09:00:00Z').getDayOfWeek() == 6",
    "timestamp('2026-11-21T09:00:00Z').getDayOfYear() == 324 && timestamp('2026-11-21T09:00:00Z').getMonth() == 10",
    "duration('90m').getMinutes() == 90 && duration('90m').getHours() == 1",
    "bytes(self.text) == b'abc' && size(bytes('é')) == 2",
    "type(self.number) == int",
    "type(self.text) == type('')",
    "dyn(self.number) == 'x'",
    "dyn(self.number) == 3u",
    "dyn(self.number) < 3.5",
    "dyn(self.text) + 1 == 2",
    "dyn(self).none == 1",
    "has(dyn(self).none)",
    "self.texts[1.0 == 1.0 ? 1 : 0] == 'b'",
    "self.texts.map(x, x == 'b', x + x) == ['bb']",
    "self.labels.map(k, k) == ['a'] && self.labels.all(k, self.labels[k] == 'x')",
    "0.0 / double(self.number - 3) == 0.0",
    "1.0 / double(self.number - 3) > 1e300",
    "int(3.99) == self.number && int(-1.5) == -1",
    "int(1e19 * double(self.number)) == 1",
    "'\\u00e9' == 'é' && '\\x41' == 'A' && r'\\d' == '\\\\d'",
    "[self.number].filter(x, x > 2).size() == 1",
    "self.text.contains('') && self.text < 'abd' && 'Z' < self.text",
    "null == null && [null] != [self.number == 3 ? 1 : 2].map(x, dyn(x))",
    "bool('true') == self.flag",
    "string(double(self.number)) == '3'",
    "string(1.5e30 * double(self.number)) == '4.5e+30'",
    "string(duration('90m')) == '5400s'",
    "string(timestamp('2026-11-21T09:00:00Z')) == '2026-11-21T09:00:00Z'",
];

/// Where they differ, and why.
const DIFFERENCES: [(&str, &str); 1] =
    [("self.?text.orValue('') == 'abc'", "the syntax of optionals is an option there, which is off")];

/// The rule over the object by both interpreters.
fn compare(rule: &str, object: &str) -> Option<(Result<bool, String>, Result<bool, String>)> {
    let rules = Rules::compile(&schema(rule).0, false);
    let decoded = json::decode(object.as_bytes()).expect("the object is JSON");
    let mut ours = None;
    rules.evaluate(&Path::ROOT, &decoded, None, None, CostLimits::default(), &mut |run| {
        ours = Some(run.result.as_ref().map(|value| value.as_bool() == Some(true)).map_err(ToString::to_string));
    });
    Some((ours?, theirs(rule, object)))
}

#[test]
fn another_interpreter_comes_to_the_same() {
    let (mut values, mut failures) = (0_u64, 0_u64);
    for seed in 1..=RULES {
        let mut generator = Generator::new(seed);
        let rule = generator.rule();
        for _ in 0..OBJECTS {
            let object = generator.object();
            match compare(&rule, &object) {
                Some((Ok(ours), Ok(theirs))) if ours == theirs => values += 1,
                Some((Err(_), Err(_))) => failures += 1,
                // A rule that fails for every object is refused before it runs.
                None => {}
                Some((ours, theirs)) => panic!("`{rule}` over {object}: {ours:?}, there {theirs:?}"),
            }
        }
    }
    assert!(values > RULES && failures > 0, "most rules come to something: {values}, and {failures} fail");
    println!("{values} values and {failures} failures are the same in the `cel` crate");
}

#[test]
fn single_expressions_come_to_the_same_but_for_what_is_listed() {
    let object = r#"{"text":"abc","number":3,"count":-7,"flag":true,"texts":["a","b"],"labels":{"a":"x"}}"#;
    let listed = |rule: &str| DIFFERENCES.iter().find(|(different, _)| *different == rule);
    let mut faults = Vec::new();
    for rule in SAME.into_iter().chain(DIFFERENCES.iter().map(|(rule, _)| *rule)) {
        let Some((ours, theirs)) = compare(rule, object) else {
            faults.push(format!("`{rule}` does not compile"));
            continue;
        };
        let is_same = match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            (ours, theirs) => ours.is_err() && theirs.is_err(),
        };
        if is_same == listed(rule).is_some() {
            faults.push(format!("`{rule}`: {ours:?}, there {theirs:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
