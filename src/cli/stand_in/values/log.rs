//! Validates the flags about kube-apiserver's log, which are checked first.
//!
//! Source: `k8s.io/component-base/logs/api/v1`, release 1.36.

use super::super::flags::Flags;
use crate::value::go_quote;

/// Flags about log formats that need a feature gate, with their fields.
const ALPHA: [(&str, &str); 4] = [
    ("log-text-split-stream", "options.text.splitStream"),
    ("log-text-info-buffer-size", "options.text.infoBufferSize"),
    ("log-json-split-stream", "options.json.splitStream"),
    ("log-json-info-buffer-size", "options.json.infoBufferSize"),
];
const ALPHA_GATE: &str = "LoggingAlphaOptions";

pub fn faults(flags: &Flags) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(text) = flags.text("log-flush-frequency")
        && flags.duration("log-flush-frequency").is_none_or(|frequency| frequency.is_zero())
    {
        faults.push(format!("flushFrequency: Invalid value: {}: Must be greater than zero", go_quote(text)));
    }
    let formats = flags.texts("logging-format");
    let format = formats.last().map_or("text", String::as_str);
    if !["text", "json"].contains(&format) {
        faults.push(format!("format: Invalid value: {}: Unsupported log format", go_quote(format)));
    }
    if flags.text("vmodule").is_some() && !["", "text"].contains(&format) {
        faults.push("vmodule: Forbidden: Only supported for text log format".to_owned());
    }
    let is_open = |text: &str| [ALPHA_GATE, "AllAlpha"].iter().any(|gate| text == format!("{gate}=true"));
    if !flags.list("feature-gates").iter().any(|text| is_open(text.trim_start_matches("kube:"))) {
        let is_set = |name: &str| flags.text(name).is_some_and(|text| !["false", "0"].contains(&text));
        let set = ALPHA.iter().filter(|(name, _)| is_set(name));
        faults.extend(set.map(|(_, field)| format!("{field}: Forbidden: Feature {ALPHA_GATE} is disabled")));
    }
    faults
}
