//! Answers with their volatile values replaced, and where two of them differ.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is well formed")
}

static TIME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"));
static TIME_IN_TEXT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static CLIENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"127\.0\.0\.1:\d+->"));
static UUID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static RV_IN_TEXT: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(resourceVersion"?: ?")[1-9]\d*""#));

/// What is replaced in messages, in this order.
static MESSAGES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    vec![
        (pattern(r"\bselfType\d+"), "selfType<n>"),
        (pattern(r"(object not decodable revision=)\d+"), "${1}<rv>"),
        (pattern(r"Key: /\S+, ResourceVersion"), "Key: <key>, ResourceVersion"),
        (pattern(r"(ResourceVersion in (?:the precondition|record) \()\d+"), "${1}<rv>"),
        (pattern(r#"(\\?"resourceVersion\\?":\\?")\d+"#), "${1}<rv>"),
        (pattern(r#"(\\?"(?:creationTimestamp|deletionTimestamp|time)\\?":\\?")\d{4}-[-0-9T:.]+Z"#), "${1}<time>"),
        (pattern(r"(too old resource version: )\d+ \(\d+\)"), "${1}<rv> (<rv>)"),
        (pattern(r"(resource version: |resourceVersion |current: |ResourceVersion in object meta: )\d+"), "${1}<rv>"),
    ]
});

/// Stable names for volatile values, in the order of their first appearance in one conversation.
#[derive(Default)]
pub struct Placeholders {
    uids: HashMap<String, String>,
    /// Texts of this run (ports, certificates), and what stands for them.
    known: Vec<(String, String)>,
}

impl Placeholders {
    /// From now on `placeholder` stands for `text`.
    pub fn stands_for(&mut self, text: String, placeholder: String) {
        self.known.retain(|(known, _)| *known != text);
        self.known.push((text, placeholder));
    }

    fn known_in(&self, text: &str) -> String {
        if self.known.is_empty() {
            return text.to_owned();
        }
        let known = self.known.iter();
        let text = known.fold(text.to_owned(), |text, (known, placeholder)| text.replace(known, placeholder));
        CLIENT.replace_all(&text, "<client>->").into_owned()
    }

    fn uid(&mut self, value: &str) -> String {
        let next = format!("<uid{}>", self.uids.len() + 1);
        self.uids.entry(value.to_owned()).or_insert(next).clone()
    }

    fn uids_in(&mut self, text: &str) -> String {
        let text = self.known_in(text);
        UUID.replace_all(&text, |found: &Captures<'_>| self.uid(&found[0])).into_owned()
    }

    /// `value` with placeholders; `key` is the field that it is in.
    pub fn normal(&mut self, value: &Value, key: Option<&str>) -> Value {
        match value {
            Value::Object(fields) => {
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_by(|left, right| left.0.cmp(right.0));
                let normal = sorted.into_iter().map(|(name, value)| {
                    let short = if name.starts_with('/') { name.rsplit('/').next().unwrap_or_default() } else { name };
                    (name.clone(), self.normal(value, Some(short)))
                });
                Value::Object(normal.collect::<Map<_, _>>())
            }
            Value::Array(items) => Value::Array(items.iter().map(|item| self.normal(item, None)).collect()),
            Value::String(text) => Value::String(self.text(text, key)),
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str, key: Option<&str>) -> String {
        const TIMES: [&str; 5] = ["creationTimestamp", "deletionTimestamp", "lastTransitionTime", "time", "renewTime"];
        match key {
            Some("uid") if !text.is_empty() => return self.uid(text),
            Some("resourceVersion") => {
                return if matches!(text, "" | "0") { text.to_owned() } else { "<rv>".to_owned() };
            }
            Some("field") if text.starts_with('/') => return "<key>".to_owned(),
            Some("continue") if !text.is_empty() => return "<continue>".to_owned(),
            Some("manager") if ["crdserver", "kube-apiserver", "skiff"].contains(&text) => {
                return "<server>".to_owned();
            }
            Some(key) if TIMES.contains(&key) && TIME.is_match(text) => return "<time>".to_owned(),
            _ => {}
        }
        let mut text = self.uids_in(text);
        for (pattern, replacement) in MESSAGES.iter() {
            text = pattern.replace_all(&text, *replacement).into_owned();
        }
        text
    }

    /// An answer compared as text.
    pub fn whole_text(&mut self, text: &str) -> String {
        let text = self.uids_in(text);
        let text = RV_IN_TEXT.replace_all(&text, "${1}<rv>\"");
        TIME_IN_TEXT.replace_all(&text, "<time>").into_owned()
    }
}

/// The value behind a JSON pointer; a segment `a=b` picks the first list item whose `a` is `b`.
pub fn pointer<'v>(document: &'v Value, path: &str) -> &'v Value {
    const NULL: &Value = &Value::Null;
    let mut at = document;
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        at = match at {
            Value::Array(items) => match segment.split_once('=') {
                Some((key, wanted)) => {
                    items.iter().find(|item| item.is_object() && as_text(dotted(item, key)) == wanted).unwrap_or(NULL)
                }
                None => segment.parse().ok().and_then(|at: usize| items.get(at)).unwrap_or(NULL),
            },
            Value::Object(fields) => fields.get(&segment).unwrap_or(NULL),
            _ => return NULL,
        };
    }
    at
}

fn dotted<'v>(item: &'v Value, key: &str) -> &'v Value {
    match item.get(key) {
        Some(value) => value,
        None => key.split('.').fold(item, |item, name| item.get(name).unwrap_or(&Value::Null)),
    }
}

/// A value as the recorder prints it in comparisons.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

/// Removes what is not compared; `*` stands for every item.
pub fn ignore(document: &mut Value, path: &str) {
    let segments: Vec<String> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .map(|segment| segment.replace("~1", "/").replace("~0", "~"))
        .collect();
    remove(document, &segments);
}

fn remove(value: &mut Value, segments: &[String]) {
    let Some((first, rest)) = segments.split_first() else { return };
    match (value, rest.is_empty()) {
        (Value::Object(fields), true) => _ = fields.remove(first),
        (Value::Array(items), true) => {
            if let Some(at) = first.parse::<usize>().ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        (Value::Object(fields), false) if first == "*" => fields.values_mut().for_each(|value| remove(value, rest)),
        (Value::Object(fields), false) => {
            if let Some(value) = fields.get_mut(first) {
                remove(value, rest);
            }
        }
        (Value::Array(items), false) if first == "*" => items.iter_mut().for_each(|item| remove(item, rest)),
        (Value::Array(items), false) => {
            if let Some(item) = first.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                remove(item, rest);
            }
        }
        _ => {}
    }
}

/// Where two values differ first; numbers count by their value.
pub fn first_difference(want: &Value, got: &Value, path: &str) -> Option<String> {
    let shown = if path.is_empty() { "/" } else { path };
    let differs = || {
        let cut = |value: &Value| value.to_string().chars().take(300).collect::<String>();
        Some(format!("{shown}: expected {}, got {}", cut(want), cut(got)))
    };
    match (want, got) {
        (Value::Object(want), Value::Object(got)) => {
            let mut names: Vec<&String> = want.keys().chain(got.keys()).collect();
            names.sort();
            names.dedup();
            names.into_iter().find_map(|name| match (want.get(name), got.get(name)) {
                (Some(want), Some(got)) => first_difference(want, got, &format!("{path}/{name}")),
                (Some(want), None) => Some(format!("{path}/{name}: missing (expected {want})")),
                (None, got) => Some(format!("{path}/{name}: not expected (got {})", got.unwrap_or(&json!(null)))),
            })
        }
        (Value::Array(want), Value::Array(got)) => {
            let longest = want.len().max(got.len());
            (0..longest).find_map(|at| match (want.get(at), got.get(at)) {
                (Some(want), Some(got)) => first_difference(want, got, &format!("{path}/{at}")),
                (Some(want), None) => Some(format!("{path}/{at}: missing (expected {want})")),
                (None, got) => Some(format!("{path}/{at}: not expected (got {})", got.unwrap_or(&json!(null)))),
            })
        }
        (Value::Number(want), Value::Number(got)) if want.as_f64() == got.as_f64() => None,
        _ if want == got => None,
        _ => differs(),
    }
}
