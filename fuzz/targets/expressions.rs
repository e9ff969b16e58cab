//! Rules: from their text to what they make of an object.

use std::sync::LazyLock;

use kubeskiff::cel::ast::SourceInfo;
use kubeskiff::cel::env::{Env, Expressions};
use kubeskiff::cel::eval::{EvalError, Program, Value as Cel};
use kubeskiff::cel::parser::parse_keeping_macros;
use kubeskiff::cel::print::print;
use kubeskiff::cel::types::Type;
use kubeskiff::meta::field::Path;
use kubeskiff::schema::json_schema::{self, ValidationRule};
use kubeskiff::schema::rules::{CostLimits, Rules};
use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{convert, validate};
use kubeskiff::value::{Value, json};

use super::{Linear, Target};

/// What one evaluation may cost, and how far a single step may lead beyond that.
const COST_MAX: u64 = 10_000;

static ENV: LazyLock<Env> = LazyLock::new(|| Env::kubernetes(Expressions::Stored));

static SCHEMA: LazyLock<Structural> = LazyLock::new(|| {
    let text = br#"{"type":"object","properties":{
        "text":{"type":"string","maxLength":20},"number":{"type":"integer"},"ratio":{"type":"number"},"flag":{"type":"boolean"},
        "day":{"type":"string","format":"date"},"time":{"type":"string","format":"date-time"},
        "wait":{"type":"string","format":"duration"},"bytes":{"type":"string","format":"byte"},
        "either":{"x-kubernetes-int-or-string":true},
        "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
        "list":{"type":"array","maxItems":9,"items":{"type":"string","maxLength":20}},
        "set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
        "map":{"type":"object","additionalProperties":{"type":"string"}},
        "entries":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{
            "type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer"}}}}}}"#;
    let schema = json::decode(text).expect("the schema is JSON");
    convert::to_structural(&json_schema::decode(&schema).expect("the schema decodes").0).expect("it is structural")
});

/// An evaluation has limits of its own: the last call within that of its cost may make a text of 64 MiB, and there are three
/// evaluations.
pub const TARGET: Target = Target {
    name: "expressions",
    run,
    steps: Linear { beside: 8 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 512 << 20, per_byte: 20_000 },
};

/// The input is a rule, a line `---`, and an object, valid or not. What is printed parses to the same tree. An evaluation
/// ends within its limit, and comes to the same a second time; one that nobody checked ends, too.
fn run(data: &[u8]) {
    let (rule, object) = super::parts(data);
    let Ok(rule) = str::from_utf8(rule) else { return };
    prints_the_same(rule);
    let mut schema = SCHEMA.clone();
    schema.validations = vec![ValidationRule { rule: rule.to_owned(), ..ValidationRule::default() }];
    let rules = Rules::compile(&schema, false);
    if let Ok(object) = json::decode(object) {
        ends_unchecked(rule, &object);
        let is_valid = validate::validate(&Path::ROOT, &object, &schema).is_empty();
        let first = evaluate(&rules, &object);
        assert_eq!(first, evaluate(&rules, &object), "an evaluation comes to the same a second time");
        assert!(!is_valid || first.iter().all(|(_, _, is_internal)| !is_internal), "a valid object is read: {first:?}");
    }
}

fn ends_unchecked(text: &str, object: &Value) {
    let env = ENV.clone().with_variable("self", Type::Dyn);
    let Ok(expression) = env.resolve(text) else { return };
    let Ok(program) = Program::new(&expression, &env) else { return };
    let evaluation = program.evaluate(&[Some(Ok(Cel::Preserved(object)))], COST_MAX);
    assert!(evaluation.result.is_err() || evaluation.cost <= COST_MAX, "who is over the limit has no result");
}

fn prints_the_same(text: &str) {
    let parse = |text: &str| parse_keeping_macros(SourceInfo::new(text), &ENV.library).ok();
    let Some(ast) = parse(text) else { return };
    let printed = print(&ast).expect("the calls of macros are kept");
    let Some(again) = parse(&printed) else {
        // Escapes take more room than what they stand for.
        assert!(printed.len() > text.len(), "what is printed parses: {printed}");
        return;
    };
    assert_eq!(without_ids(&format!("{:?}", ast.expr)), without_ids(&format!("{:?}", again.expr)), "{printed}");
}

/// A tree as text, with the numbers of its nodes left out.
fn without_ids(shown: &str) -> String {
    let mut parts = shown.split("ExprId(");
    let mut text = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| text.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit())));
    text
}

/// The result, the cost, and whether the reference would crash, of each evaluation.
fn evaluate(rules: &Rules, object: &Value) -> Vec<(String, u64, bool)> {
    let limits = CostLimits { call: COST_MAX, ..CostLimits::default() };
    let mut evaluations = Vec::new();
    rules.evaluate(&Path::ROOT, object, None, None, limits, &mut |run| {
        assert!(run.result.is_err() || run.cost <= COST_MAX, "who is over the limit has no result");
        let is_internal = matches!(run.result, Err(EvalError::Internal(_)));
        evaluations.push((format!("{:?}", run.result), run.cost, is_internal));
    });
    evaluations
}
