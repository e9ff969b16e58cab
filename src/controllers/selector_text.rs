//! Selectors as Go prints them, in events and in conditions.

use crate::value::{Map, Value};

/// The selector as Go prints a pointer to it.
pub(super) fn go_selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else { return "nil".to_owned() };
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let labels: String =
        labels.map(|(name, value)| format!("{name}: {},", value.as_str().unwrap_or_default())).collect();
    let requirement = |it: &Value| {
        let values: Vec<&str> = it.items_at(&["values"]).iter().filter_map(Value::as_str).collect();
        let (key, operator, values) = (it.str_at(&["key"]), it.str_at(&["operator"]), values.join(" "));
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
    };
    let requirements: String = selector.items_at(&["matchExpressions"]).iter().map(requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn selectors_are_printed_as_go_prints_them() {
        let selector = yaml::decode(
            b"{matchLabels: {b: x, a.b/c: v, a: z}, matchExpressions: [{key: k, operator: In, values: [v, w]}]}",
        );
        assert_eq!(
            go_selector(selector.ok().as_ref()),
            "&LabelSelector{MatchLabels:map[string]string{a: z,a.b/c: v,b: x,},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:k,Operator:In,Values:[v w],},},}"
        );
        assert_eq!([go_selector(None), go_selector(Some(&Value::Null))], ["nil", "nil"]);
    }
}
