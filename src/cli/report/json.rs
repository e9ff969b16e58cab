//! The stable interface: an array with an item for each document.

use super::{Fault, Item, Verdict};
use crate::author::RuleRun;
use crate::object;
use crate::value::{Value, json};

pub fn show(items: &[Item]) -> String {
    let items: Vec<Value> = items.iter().map(item).collect();
    format!("{}\n", json::encode_to_string(&Value::Array(items)))
}

fn item(item: &Item) -> Value {
    let list = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
    object! {
        "file" => item.file.as_str(),
        "index" => integer(item.index as u64),
        "apiVersion" => item.api_version.as_str(),
        "kind" => item.kind.as_str(),
        "name" => item.name.as_str(),
        "namespace" => item.namespace.as_str(),
        "valid" => match item.verdict {
            Verdict::Valid => Value::Bool(true),
            Verdict::Invalid => Value::Bool(false),
            Verdict::Unchecked => Value::Null,
        },
        "errors" => item.faults.iter().map(error).collect::<Vec<_>>(),
        "warnings" => list(&item.warnings),
        "object" => item.object.clone(),
        "rules" => item.runs.iter().filter(|run| !run.is_message).map(rule).collect::<Vec<_>>(),
        "cost" => integer(item.cost),
    }
}

fn error(fault: &Fault) -> Value {
    let error = &fault.rejected.error;
    let mut shown = object! {
        "type" => error.kind.reason(),
        "field" => error.field.as_str(),
        "detail" => error.detail.as_str(),
        "badValue" => error.bad_value.clone().unwrap_or_default(),
    };
    if let Some(place) = fault.place {
        let fields = shown.make_object();
        fields.insert("line", integer(place.line as u64));
        fields.insert("column", integer(place.column as u64));
    }
    shown
}

fn rule(run: &RuleRun) -> Value {
    object! { "path" => run.path.as_str(), "rule" => run.rule.as_str(), "cost" => integer(run.cost) }
}

fn integer(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
