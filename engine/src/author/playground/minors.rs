//! A comparison of the results for the chosen minor versions of Kubernetes.

use super::inputs::Inputs;
use super::shown::{SHOWN_MAX, number, shortened};
use crate::author::minors::{Row, Said, fine, ranges, rows};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::Value;

/// Each minor version with its verdict, the cost of its rules and its findings, and what only some of them report; null
/// if there is only one. `newest` is the result for the newest, `ask` computes that for another.
pub fn show(inputs: &Inputs, newest: &Value, ask: &dyn Fn(Minor) -> Value) -> Value {
    let minors = inputs.minors();
    let [older @ .., last] = minors else { return Value::Null };
    if older.is_empty() {
        return Value::Null;
    }
    let mut each = Vec::new();
    let mut said = Vec::new();
    let mut take = |minor: Minor, answer: &Value| {
        each.push(summary(minor, answer));
        said.push((minor, say(answer)));
    };
    older.iter().for_each(|minor| take(*minor, &ask(*minor)));
    take(*last, newest);
    let differing = rows(&said).into_iter().filter(|row| row.minors.len() < minors.len()).take(SHOWN_MAX);
    let shown = |row: Row| object! { "minors" => ranges(minors, &row.minors), "what" => shortened(&row.line) };
    object! {
        "each" => each,
        "fine" => fine(&said),
        "differences" => differing.map(shown).collect::<Vec<_>>(),
    }
}

/// A summary of one result. It shows the most expensive schema, because each schema has its own limit.
fn summary(minor: Minor, answer: &Value) -> Value {
    let costs = answer.items_at(&["rules"]).iter();
    let dearest = costs.max_by_key(|costs| costs.get("total").and_then(Value::as_i64));
    let of_dearest = |field: &str| dearest.and_then(|costs| costs.get(field)).cloned().unwrap_or_default();
    object! {
        "minor" => minor.to_string(),
        "outcome" => answer.str_at(&["verdict", "outcome"]),
        "operation" => answer.str_at(&["verdict", "operation"]),
        "cost" => of_dearest("total"),
        "limit" => of_dearest("limit"),
        "findings" => number(answer.items_at(&["findings"]).len() as u64),
    }
}

/// The contents of a result, one line each.
fn say(answer: &Value) -> Said {
    let outcome = answer.str_at(&["verdict", "outcome"]);
    let mut lines = Vec::new();
    for error in answer.items_at(&["verdict", "errors"]).iter().chain(answer.items_at(&["verdict", "unknown"])) {
        let (field, message) = (error.str_at(&["field"]), error.str_at(&["message"]));
        lines.push(if message.starts_with(field) { message.to_owned() } else { format!("{field}: {message}") });
    }
    let denial = answer.str_at(&["verdict", "denial", "message"]);
    lines.extend((!denial.is_empty()).then(|| denial.to_owned()));
    for (field, what) in [("warnings", "warning"), ("ratcheted", "forgiven")] {
        let texts = answer.items_at(&["verdict", field]).iter().filter_map(Value::as_str);
        lines.extend(texts.map(|text| format!("{what}: {text}")));
    }
    let mut is_fine = matches!(outcome, "admitted" | "empty");
    for finding in answer.items_at(&["findings"]) {
        let [severity, id, field, message] = ["severity", "id", "field", "message"].map(|name| finding.str_at(&[name]));
        is_fine &= severity != "error";
        lines.push(format!("{severity} {id}: {}", [field, message].join(" ").trim()));
    }
    for costs in answer.items_at(&["rules"]) {
        let cost = |value: &Value, field: &str| value.get(field).and_then(Value::as_i64).unwrap_or_default();
        lines.push(format!("{}: all rules cost {}", costs.str_at(&["definition"]), cost(costs, "total")));
        let rules = costs.items_at(&["rules"]).iter();
        lines.extend(rules.map(|rule| format!("rule {} costs {}", rule.str_at(&["rule"]), cost(rule, "cost"))));
    }
    Said { lines, is_fine, is_readable: true }
}
