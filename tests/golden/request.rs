//! Requests as the recorder sent them, to the byte.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The headers that the recorder sent: its own, and those of the step; null takes one away.
pub fn headers_of(request: &Value) -> Vec<(String, String)> {
    let mut headers: BTreeMap<String, Option<String>> = BTreeMap::from([
        ("User-Agent".to_owned(), Some("replay/1".to_owned())),
        ("Accept".to_owned(), Some("application/json".to_owned())),
        ("Accept-Encoding".to_owned(), Some("identity".to_owned())),
    ]);
    for (name, value) in request.get("headers").and_then(Value::as_object).into_iter().flatten() {
        headers.insert(name.clone(), value.as_str().map(str::to_owned));
    }
    headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The headers and the body of a request step.
pub fn encode(request: &Value) -> (Vec<(String, String)>, Option<Vec<u8>>) {
    let mut headers = headers_of(request);
    if let Some(text) = request.get("bodyBase64").and_then(Value::as_str) {
        return (headers, Some(STANDARD.decode(text).expect("the body is base64")));
    }
    if let Some(text) = request.get("bodyText").and_then(Value::as_str) {
        return (headers, Some(text.as_bytes().to_vec()));
    }
    if let Some(parts) = request.get("bodyParts").and_then(Value::as_array) {
        let mut body = String::new();
        for part in parts {
            match part.as_str() {
                Some(text) => body.push_str(text),
                None => {
                    let times = part["times"].as_u64().unwrap_or_default();
                    let repeat = part["repeat"].as_str().unwrap_or_default();
                    let texts: Vec<String> = (0..times).map(|at| repeat.replace("%d", &at.to_string())).collect();
                    body.push_str(&texts.join(part["sep"].as_str().unwrap_or_default()));
                }
            }
        }
        return (headers, Some(body.into_bytes()));
    }
    match request.get("body") {
        None => (headers, None),
        Some(body) => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            (headers, Some(python_json(body).into_bytes()))
        }
    }
}

/// JSON with the spaces of the recorder, since messages quote the first bytes of a body.
pub fn python_json(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(python_json).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", ascii_json(&json!(name)), python_json(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => ascii_json(other),
    }
}

/// Compact JSON in ASCII.
pub fn ascii_json(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            out.push(character)
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// Percent-escapes what may not stand in a path or query.
pub fn quote(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"_.-~/?&=%:,()!+*'@$;".contains(&byte) {
            out.push(char::from(byte))
        } else {
            out.push_str(&format!("%{byte:02X}"))
        }
    }
    out
}
