//! The selectors of a request that a review of access asks about.
//!
//! Input: the review. Output: what is wrong with them, the form that authorizers get them in, and which of them can't
//! be parsed. Webhooks and the node authorizer use them.
//!
//! Source: `pkg/apis/authorization/validation` and `pkg/registry/authorization/util`, release 1.37.

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names::{is_qualified_name, is_valid_label_value};
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::object;
use crate::value::Value;

const FIELDS: &str = "fieldSelector";
const LABELS: &str = "labelSelector";

/// What is wrong with the selectors: each is given either as a text or as requirements.
pub(super) fn validate(review: &Value) -> ErrorList {
    let outer = Path::new("spec.resourceAttributes");
    let mut errors = ErrorList::new();
    for name in [FIELDS, LABELS] {
        let Some(selector) = selector(review, name) else { continue };
        let path = outer.child(name);
        let (text, requirements) = (selector.str_at(&["rawSelector"]), selector.items_at(&["requirements"]));
        if !text.is_empty() && !requirements.is_empty() {
            let why = "may not specified at the same time as requirements";
            errors.push(Error::invalid(&path.child("rawSelector"), text, why));
        }
        let at = path.child("requirements");
        if text.is_empty() && requirements.is_empty() {
            let why = format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(Error::required(&at, why));
        }
        for (index, requirement) in requirements.iter().enumerate() {
            errors.extend(validate_requirement(requirement, name == LABELS, &at.index(index)));
        }
    }
    errors
}

/// Unknown operators may be those of a newer server.
fn validate_requirement(requirement: &Value, is_of_labels: bool, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (key, values) = (requirement.str_at(&["key"]), requirement.items_at(&["values"]));
    if !is_of_labels && key.is_empty() {
        errors.push(Error::required(&path.child("key"), "must be specified"));
    }
    let at = path.child("values");
    match requirement.str_at(&["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(Error::required(&at, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.push(Error::forbidden(&at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        _ => {}
    }
    if is_of_labels {
        let faults = is_qualified_name(key).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("key"), key, fault)));
        for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
            let faults = is_valid_label_value(value).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&at.index(index), value, fault)));
        }
    }
    errors
}

/// The evaluation error for unreadable selectors of a valid review; empty if all can be read.
pub(super) fn evaluation_error(review: &Value) -> String {
    let told = [FIELDS, LABELS].into_iter().filter_map(|name| {
        let how = ignored(selector(review, name)?, name == LABELS)?;
        Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// The selectors, of fields and of labels, as far as they can be read.
pub(super) fn read(review: &Value) -> (Option<FieldSelector>, Option<LabelSelector>) {
    let fields = selector(review, FIELDS).and_then(|selector| match selector.str_at(&["rawSelector"]) {
        "" => {
            let requirements = selector.items_at(&["requirements"]).iter();
            Some(FieldSelector::of_requirements(requirements.filter(|requirement| is_read(requirement, false))))
        }
        text => FieldSelector::parse(text).ok(),
    });
    let labels = selector(review, LABELS).and_then(|selector| match selector.str_at(&["rawSelector"]) {
        "" => {
            let requirements = selector.items_at(&["requirements"]).iter();
            let readable: Vec<Value> = requirements.filter(|requirement| is_read(requirement, true)).cloned().collect();
            LabelSelector::decode(&object! { "matchExpressions" => readable }).ok()
        }
        text => LabelSelector::parse(text).ok(),
    });
    (fields, labels)
}

/// Whether a requirement can be read.
fn is_read(requirement: &Value, is_of_labels: bool) -> bool {
    match requirement.str_at(&["operator"]) {
        "In" | "NotIn" => is_of_labels || requirement.items_at(&["values"]).len() == 1,
        "Exists" | "DoesNotExist" => is_of_labels,
        _ => false,
    }
}

/// How much of a selector is ignored; `None` if nothing is.
fn ignored(selector: &Value, is_of_labels: bool) -> Option<&'static str> {
    let (text, requirements) = (selector.str_at(&["rawSelector"]), selector.items_at(&["requirements"]));
    if !text.is_empty() {
        let is_read =
            if is_of_labels { LabelSelector::parse(text).is_ok() } else { FieldSelector::parse(text).is_ok() };
        return (!is_read).then_some("ignored");
    }
    match requirements.iter().filter(|requirement| is_read(requirement, is_of_labels)).count() {
        read if read == requirements.len() => None,
        0 => Some("ignored"),
        _ => Some("partially ignored"),
    }
}

fn selector<'r>(review: &'r Value, name: &str) -> Option<&'r Value> {
    review.at(&["spec", "resourceAttributes", name]).filter(|selector| !selector.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn check(attributes: &str, errors: &str, told: &str) {
        let review = format!("spec: {{resourceAttributes: {{{attributes}}}}}");
        let review = yaml::decode(review.as_bytes()).expect("the test is YAML");
        assert_eq!(validate(&review).aggregate(), errors, "{attributes}");
        assert_eq!(evaluation_error(&review), told, "{attributes}");
    }

    #[test]
    fn selectors_that_cannot_be_read_are_told() {
        check("labelSelector: {rawSelector: 'a=b'}, fieldSelector: {rawSelector: 'a=b'}", "", "");
        let [fields, labels] = ["field", "label"].map(|of| format!("spec.resourceAttributes.{of}Selector"));
        let told = format!("{fields} ignored due to parse error; {labels} ignored due to parse error");
        check("labelSelector: {rawSelector: 'a in (b'}, fieldSelector: {rawSelector: 'a'}", "", &told);
        let newer = "[{key: a, operator: In, values: [b]}, {key: c, operator: Newer}]";
        let told = format!("{labels} partially ignored due to parse error");
        check(&format!("labelSelector: {{requirements: {newer}}}"), "", &told);
    }

    #[test]
    fn requirements_are_checked() {
        let at = "spec.resourceAttributes.fieldSelector.requirements[0]";
        let told = "spec.resourceAttributes.fieldSelector ignored due to parse error";
        let errors = format!(
            "[{at}.key: Required value: must be specified, {at}.values: Required value: must be specified when `operator` \
             is 'In' or 'NotIn']"
        );
        check("fieldSelector: {requirements: [{operator: In}]}", &errors, told);
    }
}
