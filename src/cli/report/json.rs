//! JSON with a stable schema: an array with an item for each document.

use super::{DocumentVerdict, Print, ReportedDocument, ReportedError};
use crate::author::RuleRun;
use crate::object;
use crate::value::{Value, json};

/// The number of items so far.
#[derive(Default)]
pub struct Json(usize);

impl Print for Json {
    fn item(&mut self, out: &mut String, shown: &ReportedDocument) {
        out.push(if self.0 == 0 { '[' } else { ',' });
        out.push_str(&json::encode_to_string(&item(shown)));
        self.0 += 1;
    }

    fn end(&mut self, out: &mut String) {
        out.push_str(if self.0 == 0 { "[]\n" } else { "]\n" });
    }
}

fn item(item: &ReportedDocument) -> Value {
    let list = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
    object! {
        "file" => item.file.as_str(),
        "index" => integer(item.index as u64),
        "apiVersion" => item.api_version.as_str(),
        "kind" => item.kind.as_str(),
        "name" => item.name.as_str(),
        "namespace" => item.namespace.as_str(),
        "valid" => match item.verdict {
            DocumentVerdict::Valid => Value::Bool(true),
            DocumentVerdict::Invalid | DocumentVerdict::Unreadable => Value::Bool(false),
            DocumentVerdict::Unchecked => Value::Null,
        },
        "errors" => item.faults.iter().map(error).collect::<Vec<_>>(),
        "warnings" => list(&item.warnings),
        "object" => item.object.clone(),
        "rules" => item.runs.iter().filter(|run| !run.is_message).map(rule).collect::<Vec<_>>(),
        "cost" => integer(item.cost),
    }
}

fn error(fault: &ReportedError) -> Value {
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
