//! What controllers read of nodes: which pods may be there, by labels, taints and conditions.
//!
//! Source: `k8s.io/component-helpers/scheduling/corev1`, release 1.37.

use crate::value::{Map, Value};

/// The taints of a node with one of `effects` that none of `tolerations` tolerates.
pub(super) fn untolerated<'n>(taints: &'n [Value], tolerations: &[Value], effects: &[&str]) -> Option<&'n Value> {
    let mut with_effect = taints.iter().filter(|taint| effects.contains(&taint.str_at(&["effect"])));
    with_effect.find(|taint| !tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// Whether a toleration is about a taint.
pub(super) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let [key, effect, value] = ["key", "effect", "value"].map(|field| toleration.str_at(&[field]));
    let is_of = |text: &str, field: &str| text.is_empty() || text == taint.str_at(&[field]);
    let operator = toleration.str_at(&["operator"]);
    let fits = match operator {
        "" | "Equal" => value == taint.str_at(&["value"]),
        "Exists" => true,
        "Lt" | "Gt" => {
            let numbers = (taint.str_at(&["value"]).parse::<i64>(), value.parse::<i64>());
            matches!(numbers, (Ok(tainted), Ok(wanted)) if if operator == "Lt" { tainted < wanted } else { tainted > wanted })
        }
        _ => false,
    };
    is_of(effect, "effect") && is_of(key, "key") && fits
}

/// Whether the node selector and the required node affinity of a pod's spec allow a node.
pub(super) fn is_selected(spec: &Value, name: &str, labels: &Map) -> bool {
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    let by_labels = selector.is_none_or(|selector| selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
    let required = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = spec.at(&required).filter(|required| !required.is_null());
    by_labels
        && terms.is_none_or(|terms| {
            terms.items_at(&["nodeSelectorTerms"]).iter().any(|term| matches_term(term, name, labels))
        })
}

/// Whether a term of a node selector matches a node; an empty one matches none.
pub(super) fn matches_term(term: &Value, name: &str, labels: &Map) -> bool {
    let (expressions, fields) = (term.items_at(&["matchExpressions"]), term.items_at(&["matchFields"]));
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let field = |key: &str| (key == "metadata.name").then_some(name);
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|requirement| holds(requirement, label(requirement.str_at(&["key"]))))
        && fields.iter().all(|requirement| holds(requirement, field(requirement.str_at(&["key"]))))
}

fn holds(requirement: &Value, value: Option<&str>) -> bool {
    let values = requirement.items_at(&["values"]);
    let is_in = |value: &str| values.iter().any(|known| known.as_str() == Some(value));
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
    let than = || number(values.first().and_then(Value::as_str));
    match requirement.str_at(&["operator"]) {
        "In" => value.is_some_and(is_in),
        "NotIn" => !value.is_some_and(is_in),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => number(value).zip(than()).is_some_and(|(value, than)| value > than),
        "Lt" => number(value).zip(than()).is_some_and(|(value, than)| value < than),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn tolerations_are_about_taints() {
        let check = |toleration: &str, expected: bool| {
            let taint = read("{key: k, value: '5', effect: NoSchedule}");
            assert_eq!(tolerates(&read(toleration), &taint), expected, "{toleration}");
        };
        check("{operator: Exists}", true);
        check("{key: k, operator: Exists, effect: NoExecute}", false);
        check("{key: k, value: '5'}", true);
        check("{key: k, operator: Equal, value: '6'}", false);
        check("{key: j, operator: Exists}", false);
        check("{key: k, operator: Lt, value: '6'}", true);
        check("{key: k, operator: Gt, value: '6'}", false);
    }

    #[test]
    fn selectors_allow_nodes() {
        let check = |spec: &str, expected: bool| {
            let labels = read("{zone: a, size: '7'}");
            let labels = labels.as_object().expect("labels");
            assert_eq!(is_selected(&read(spec), "n", labels), expected, "{spec}");
        };
        let required = |term: &str| {
            format!(
                "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{term}]}}}}}}"
            )
        };
        check("{}", true);
        check("nodeSelector: {zone: a}", true);
        check("nodeSelector: {zone: b}", false);
        check(
            &required(
                "{matchExpressions: [{key: zone, operator: In, values: [b, a]}, {key: size, operator: Gt, values: ['5']}]}",
            ),
            true,
        );
        check(&required("{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}"), false);
        check(&required("{matchExpressions: [{key: none, operator: DoesNotExist}]}"), true);
        check(&required("{matchFields: [{key: metadata.name, operator: In, values: ['n']}]}"), true);
        check(&required("{matchFields: [{key: metadata.name, operator: In, values: [m]}]}"), false);
        check(&required("{}"), false);
    }
}
