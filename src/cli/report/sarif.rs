//! SARIF 2.1.0, as code review systems read it.

use std::collections::BTreeSet;

use super::Item;
use crate::object;
use crate::value::{Value, json};

pub fn show(items: &[Item]) -> String {
    let faults = || items.iter().flat_map(|item| item.faults.iter().map(move |fault| (item, fault)));
    let ids: BTreeSet<&str> = faults().map(|(_, fault)| fault.rejected.error.kind.reason()).collect();
    let rules: Vec<Value> = ids.into_iter().map(|id| object! { "id" => id }).collect();
    let results: Vec<Value> = faults()
        .map(|(item, fault)| {
            let mut location = object! { "artifactLocation" => object! { "uri" => item.file.as_str() } };
            if let Some(place) = fault.place {
                let region = object! { "startLine" => place.line as i64, "startColumn" => place.column as i64 };
                location.make_object().insert("region", region);
            }
            let error = &fault.rejected.error;
            object! {
                "ruleId" => error.kind.reason(),
                "level" => "error",
                "message" => object! { "text" => format!("{}: {error}", item.title()) },
                "locations" => vec![object! { "physicalLocation" => location }],
            }
        })
        .collect();
    let driver = object! { "name" => "skiff", "version" => env!("CARGO_PKG_VERSION"), "rules" => rules };
    let log = object! {
        "$schema" => "https://json.schemastore.org/sarif-2.1.0.json",
        "version" => "2.1.0",
        "runs" => vec![object! { "tool" => object! { "driver" => driver }, "results" => results }],
    };
    format!("{}\n", json::encode_to_string(&log))
}
