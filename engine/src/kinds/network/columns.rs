//! Texts of columns.
//!
//! Source: `pkg/printers/internalversion` and `metav1.FormatLabelSelector`, release 1.37.

use std::collections::BTreeSet;

use crate::meta::field::Path;
use crate::meta::selector::LabelSelector;
use crate::value::Value;

/// How many items of a list a column shows.
const SHOWN_MAX: usize = 3;

/// The first items with commas between them, and how many more there are; `empty` if there are none.
pub fn listed(items: impl Iterator<Item = String>, empty: &str) -> String {
    let items: Vec<String> = items.collect();
    match items.len() {
        0 => empty.to_owned(),
        count if count > SHOWN_MAX => format!("{} + {} more...", items[..SHOWN_MAX].join(","), count - SHOWN_MAX),
        _ => items.join(","),
    }
}

/// A `LabelSelector` of `meta.k8s.io` as one text: `a=b,c in (d,e),!f`.
pub fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return "<none>".to_owned() };
    if !LabelSelector::validate(selector, true, &Path::ROOT).is_empty() {
        return "<error>".to_owned();
    }
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(|map| map.iter()) {
        requirements.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector.items_at(&["matchExpressions"]) {
        let key = expression.str_at(&["key"]);
        let values: BTreeSet<&str> = expression.items_at(&["values"]).iter().filter_map(Value::as_str).collect();
        let values = values.into_iter().collect::<Vec<_>>().join(",");
        requirements.push((
            key,
            match expression.str_at(&["operator"]) {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                _ => format!("!{key}"),
            },
        ));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn selectors_are_told_in_one_line() {
        let text = |yaml: &str| selector_text(yaml::decode(yaml.as_bytes()).ok().as_ref());
        assert_eq!(text("{}"), "<none>");
        assert_eq!(
            text(
                "{matchLabels: {a: b}, matchExpressions: [{key: f, operator: DoesNotExist}, \
                 {key: c, operator: In, values: [e, d]}]}"
            ),
            "a=b,c in (d,e),!f"
        );
        assert_eq!(text("{matchExpressions: [{key: a, operator: Like}]}"), "<error>");
    }

    #[test]
    fn lists_show_three_items() {
        let items = |count: usize| listed((0..count).map(|item| item.to_string()), "<unset>");
        assert_eq!((items(0), items(3), items(5)), ("<unset>".into(), "0,1,2".into(), "0,1,2 + 2 more...".into()));
    }
}
