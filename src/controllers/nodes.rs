//! Which pods may be on a node, by its labels, taints and conditions.
//!
//! Source: `k8s.io/component-helpers/scheduling/corev1`, release 1.37.

use std::collections::{BTreeSet, HashMap};

use crate::value::{Map, Value};
use crate::work;

/// The taints of a node with one of `effects` that none of `tolerations` tolerates.
pub(super) fn untolerated<'n>(taints: &'n [Value], tolerations: &[Value], effects: &[&str]) -> Option<&'n Value> {
    work::steps(taints.len());
    let mut with_effect = taints.iter().filter(|taint| effects.contains(&taint.str_at(&["effect"]))).peekable();
    with_effect.peek()?;
    let tolerations = Tolerations::of(tolerations);
    with_effect.find(|taint| tolerations.about(taint).next().is_none())
}

/// The tolerations of a pod by key and effect: of many, only a few are checked for each of many taints. Those without a
/// key are equivalent, so only the one that ends first is kept.
pub(super) struct Tolerations<'t>(HashMap<[&'t str; 2], Vec<&'t Value>>);

impl<'t> Tolerations<'t> {
    pub fn of(tolerations: &'t [Value]) -> Self {
        work::steps(tolerations.len());
        let seconds = |toleration: &Value| {
            let seconds = toleration.get("tolerationSeconds").and_then(Value::as_i64);
            seconds.unwrap_or(i64::MAX)
        };
        let mut by_key: HashMap<_, Vec<&Value>> = HashMap::new();
        for toleration in tolerations {
            let [key, effect] = ["key", "effect"].map(|field| toleration.str_at(&[field]));
            let alike = by_key.entry([key, effect]).or_default();
            match alike.first_mut() {
                Some(first) if key.is_empty() => {
                    if seconds(toleration) < seconds(first) {
                        *first = toleration;
                    }
                }
                _ => alike.push(toleration),
            }
        }
        Tolerations(by_key)
    }

    /// The tolerations that tolerate a taint.
    pub fn about<'s>(&'s self, taint: &'s Value) -> impl Iterator<Item = &'s Value> {
        let [key, effect] = ["key", "effect"].map(|field| taint.str_at(&[field]));
        let ways = [[key, effect], [key, ""], ["", effect], ["", ""]];
        ways.into_iter().filter_map(|way| self.0.get(&way)).flatten().copied().filter(move |toleration| {
            work::step();
            tolerates(toleration, taint)
        })
    }
}

/// Whether a toleration tolerates a taint.
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

const NODE_TERMS: [&str; 4] =
    ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"];

/// The requirements of a term of a node selector that list the names of nodes.
fn lists_of_names(term: &Value) -> impl Iterator<Item = &[Value]> {
    let is_by_name = |field: &&Value| field.str_at(&["key"]) == "metadata.name" && field.str_at(&["operator"]) == "In";
    term.items_at(&["matchFields"]).iter().filter(is_by_name).map(|field| {
        let names = field.items_at(&["values"]);
        work::steps(1 + names.len());
        names
    })
}

/// Whether a pod's spec selects nodes by their names, in each term of its required node affinity, and not for this one.
pub(super) fn is_ruled_out_by_name(spec: &Value, name: &str) -> bool {
    let terms = spec.items_at(&NODE_TERMS);
    let rules_out = |term: &Value| {
        let has = |names: &[Value]| names.iter().any(|value| value.as_str() == Some(name));
        lists_of_names(term).next().is_some() && !lists_of_names(term).all(has)
    };
    !terms.is_empty() && terms.iter().all(rules_out)
}

/// Whether a pod's spec selects nodes by their names, in each term of its required node affinity, and no name is in all
/// lists of a term.
pub(super) fn has_conflicting_names(spec: &Value) -> bool {
    let terms = spec.items_at(&NODE_TERMS);
    let conflicts = |term: &Value| {
        let names = |names: &[Value]| names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let common = lists_of_names(term).map(names).reduce(|one: BTreeSet<String>, other| &one & &other);
        common.is_some_and(|common| common.is_empty())
    };
    !terms.is_empty() && terms.iter().all(conflicts)
}

/// Whether a term of a node selector matches a node; an empty one matches none.
pub(super) fn matches_term(term: &Value, name: &str, labels: &Map) -> bool {
    let (expressions, fields) = (term.items_at(&["matchExpressions"]), term.items_at(&["matchFields"]));
    work::steps(1 + expressions.len() + fields.len());
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
    fn ten_times_the_taints_and_tolerations_take_ten_times_the_steps() {
        let all = |count: usize, rest: &str| -> Vec<Value> {
            (0..count).map(|at| read(&format!("{{key: k{at}, effect: NoSchedule, {rest}}}"))).collect()
        };
        let steps = |count: usize| {
            let (taints, tolerations) = (all(count, ""), all(count, "operator: Exists"));
            let (found, steps) = work::counted(|| untolerated(&taints, &tolerations, &["NoSchedule"]).is_some());
            assert!(!found && steps > count as u64, "{steps} steps");
            assert!(untolerated(&taints, &tolerations[1..], &["NoSchedule"]).is_some());
            steps
        };
        let (few, many) = (steps(50), steps(500));
        assert!(many < 11 * few, "{few} steps, then {many}");
    }

    #[test]
    fn of_those_without_a_key_the_one_that_ends_first_counts() {
        let tolerations = read(
            "[{operator: Exists, tolerationSeconds: 9}, {operator: Exists}, {operator: Exists, tolerationSeconds: 3}]",
        );
        let tolerations = Tolerations::of(tolerations.as_array().expect("it is a list"));
        let taint = read("{key: k, effect: NoExecute}");
        let seconds: Vec<_> =
            tolerations.about(&taint).map(|it| it.get("tolerationSeconds").and_then(Value::as_i64)).collect();
        assert_eq!(seconds, [Some(3)]);
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
