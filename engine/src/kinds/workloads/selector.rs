//! Selectors of pods: their validation, which pods they match, and their text.
//!
//! Input: a `LabelSelector` of `meta.k8s.io`, or a map of labels. An absent selector matches nothing.
//!
//! Source: `LabelSelectorAsSelector`, `FormatLabelSelector` and `labels.Set` of apimachinery 1.37.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::value::{Map, Value, json};
use crate::work;

/// Validates a selector; an absent one has no errors. `checks_values` tells whether the values of its expressions are
/// checked.
pub fn validate(selector: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    match selector.value() {
        Some(value) => LabelSelector::validate(value, checks_values, selector.path()),
        None => ErrorList::new(),
    }
}

/// Whether an expression of the selector has a value that is not a valid label value.
pub fn has_invalid_value(selector: &FieldRef<'_>) -> bool {
    let expressions = selector.field("matchExpressions");
    let has_fault = |value: &str| !names::is_valid_label_value(value).is_empty();
    expressions.items().any(|expression| expression.field("values").texts().any(has_fault))
}

/// Whether a selector is present, but empty.
pub fn is_empty(selector: &FieldRef<'_>) -> bool {
    let fields = ["matchLabels", "matchExpressions"];
    selector.is_set() && fields.iter().all(|name| selector.field(name).is_empty())
}

/// Compiles the selector in a field; `None` if it is invalid.
pub fn compile(selector: &FieldRef<'_>) -> Option<Compiled> {
    let Some(value) = selector.value() else { return Some(Compiled { selector: None }) };
    if !LabelSelector::validate(value, true, selector.path()).is_empty() {
        return None;
    }
    LabelSelector::decode(value).ok().map(|selector| Compiled { selector: Some(selector) })
}

/// A compiled selector, which may match nothing.
pub struct Compiled {
    selector: Option<LabelSelector>,
}

impl Compiled {
    /// Whether it matches these labels.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        self.selector.as_ref().is_some_and(|selector| selector.matches(&labels))
    }

    /// The error of the template at the field `template`, if its labels do not match.
    pub fn check_template(&self, template: &FieldRef<'_>) -> Option<Error> {
        let metadata = template.field("metadata");
        let labels = metadata.field("labels");
        (!self.matches(labels.value())).then(|| unmatched(&labels))
    }
}

/// The error that a template's labels do not match the selector.
pub fn unmatched(labels: &FieldRef<'_>) -> Error {
    let value = labels.value().cloned().unwrap_or(Value::Null);
    Error::invalid(labels.path(), value, "`selector` does not match template `labels`")
}

/// An error of a selector, which is shown with Go's order of its fields.
pub fn invalid(selector: &FieldRef<'_>, detail: &str) -> Error {
    let value = selector.value().cloned().unwrap_or(Value::Null);
    Error::invalid(selector.path(), value, detail).shown_as(shown(selector.value()))
}

/// Checks that a selector has not changed.
pub fn immutable(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    (new.value() != old.value()).then(|| invalid(new, "field is immutable"))
}

/// The JSON of a selector, with Go's order of its fields.
fn shown(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return "null".to_owned() };
    let mut fields = Vec::new();
    if let Some(labels) = selector.get("matchLabels") {
        fields.push(format!("\"matchLabels\":{}", json::encode_to_string(labels)));
    }
    let expressions = selector.items_at(&["matchExpressions"]);
    if !expressions.is_empty() {
        let texts: Vec<String> = expressions.iter().map(shown_expression).collect();
        fields.push(format!("\"matchExpressions\":[{}]", texts.join(",")));
    }
    format!("{{{}}}", fields.join(","))
}

fn shown_expression(expression: &Value) -> String {
    let part = |name: &str| expression.get(name).map(|value| format!("\"{name}\":{}", json::encode_to_string(value)));
    let parts: Vec<String> = ["key", "operator", "values"].into_iter().filter_map(part).collect();
    format!("{{{}}}", parts.join(","))
}

/// Whether `labels` contain all labels of a map, which is used as a selector of exact values.
pub fn set_matches(set: &FieldRef<'_>, labels: Option<&Value>) -> bool {
    set.entries().all(|(key, value)| {
        let label = labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        label == Some(value.text())
    })
}

/// The selector as text: `app=a,tier notin (x,y),!z`; `None` if it is invalid.
pub fn text(selector: Option<&Value>) -> Option<String> {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else { return Some(String::new()) };
    compile(&FieldRef::root(selector))?;
    let mut terms: Vec<(&str, String)> = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        terms.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.items_at(&["matchExpressions"]) {
        terms.push((expression.str_at(&["key"]), expression_text(expression)));
    }
    terms.sort_by_key(|(key, _)| *key);
    let terms: Vec<String> = terms.into_iter().map(|(_, text)| text).collect();
    Some(terms.join(","))
}

fn expression_text(expression: &Value) -> String {
    let key = expression.str_at(&["key"]);
    let mut values: Vec<&str> = expression.items_at(&["values"]).iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    work::steps(values.len());
    match expression.str_at(&["operator"]) {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}

/// The selector as a cell shows it.
pub fn cell(selector: Option<&Value>) -> String {
    match text(selector) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
    }
}

/// A map of labels as text: `a=b,c=d`.
pub fn set_text(set: Option<&Value>) -> String {
    let entries = set.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let terms = entries.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    terms.collect::<Vec<_>>().join(",")
}

/// A map of labels as a cell shows it: in the order of its texts, so that `a.b=d` stands before `a=c`.
pub fn set_cell(set: Option<&Value>) -> String {
    let entries = set.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let mut terms: Vec<String> =
        entries.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    if terms.is_empty() {
        return "<none>".to_owned();
    }
    terms.sort_unstable();
    work::steps(terms.len());
    terms.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: Option<&str>) {
        let selector = json::decode(selector.as_bytes()).expect("the test is JSON");
        assert_eq!(text(Some(&selector)).as_deref(), expected);
    }

    #[test]
    fn a_selector_is_written_in_the_order_of_its_keys() {
        check(
            r#"{"matchLabels":{"m":"1","z":""},"matchExpressions":[{"key":"b","operator":"NotIn","values":["y","x","y"]},
                {"key":"n","operator":"Exists"},{"key":"a","operator":"DoesNotExist"},{"key":"c","operator":"In","values":["v"]}]}"#,
            Some("!a,b notin (x,y,y),c in (v),m=1,n,z="),
        );
        check("{}", Some(""));
        check(r#"{"matchExpressions":[{"key":"a","operator":"In"}]}"#, None);
        assert_eq!(cell(None), "<none>");
    }

    #[test]
    fn a_cell_has_labels_in_the_order_of_their_texts() {
        let set = json::decode(br#"{"app": "y", "app.kubernetes.io/name": "x"}"#).expect("the test is JSON");
        assert_eq!(set_cell(Some(&set)), "app.kubernetes.io/name=x,app=y");
        assert_eq!(set_text(Some(&set)), "app=y,app.kubernetes.io/name=x");
        assert_eq!(set_cell(None), "<none>");
    }

    #[test]
    fn errors_show_a_selector_in_the_order_of_go() {
        let text = r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"t","operator":"NotIn"}]}"#;
        let selector = json::decode(text.as_bytes()).expect("the test is JSON");
        let error = invalid(&FieldRef::root(&selector), "x");
        assert_eq!(error.body(), format!("Invalid value: {text}: x"));
    }

    #[test]
    fn a_selector_that_is_not_there_selects_nobody() {
        let nothing = Value::Null;
        let absent = FieldRef::new(None, crate::meta::field::Path::new("selector"));
        assert!(!compile(&absent).expect("it is a selector").matches(Some(&nothing)));
        let empty = crate::object! {};
        assert!(compile(&FieldRef::root(&empty)).expect("it is a selector").matches(None));
    }
}
