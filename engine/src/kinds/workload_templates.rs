//! The templates of a Workload taken together: a tree, in which composite templates contain others.
//!
//! Source: `pkg/apis/scheduling/validation` of the Kubernetes release that matches the types of 1.37.

use std::collections::HashSet;

use super::show_internal;
use crate::meta::field::{Error, ErrorList, ErrorType};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;
use crate::work;

const GROUPS: &str = "podGroupTemplates";
const COMPOSITES: &str = "compositePodGroupTemplates";

const TEMPLATE: &str = "scheduling.v1alpha3.CompositePodGroupTemplate";

/// How deep templates may be nested; a template of pods is the innermost.
const DEPTH_MAX: usize = 4;

/// Validates a Workload's templates beyond their markers: names are unique, the nesting is not too deep, all have one
/// priority, and a composite template contains others. For templates that are too deep nothing else is reported.
pub fn validate(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut names: HashSet<String> = spec.field(GROUPS).items().map(|group| group.text_of("name").to_owned()).collect();
    check_names(spec, 0, &mut names, &mut errors);
    let composites = spec.field(COMPOSITES);
    for composite in composites.items() {
        check_depth(&composite, &mut errors);
    }
    errors.extend(check_priorities(spec));
    for composite in composites.items() {
        check_children(&composite, 1, &mut errors);
    }
    errors
}

/// Checks that names are unique. Duplicates within one list are reported by the markers, so a list is compared with
/// those before it. `depth` is that of the parent, 0 for the spec.
fn check_names(parent: &FieldRef<'_>, depth: usize, names: &mut HashSet<String>, errors: &mut ErrorList) {
    work::step();
    if depth == DEPTH_MAX {
        return;
    }
    let composites = parent.field(COMPOSITES);
    check_list(&composites, names, errors);
    for composite in composites.items() {
        check_list(&composite.field(GROUPS), names, errors);
        check_names(&composite, depth + 1, names, errors);
    }
}

fn check_list(templates: &FieldRef<'_>, names: &mut HashSet<String>, errors: &mut ErrorList) {
    for template in templates.items() {
        let name = template.field("name");
        if names.contains(name.text()) {
            errors.push_with(ErrorType::Duplicate, || name.duplicate());
        }
    }
    names.extend(templates.items().map(|template| template.text_of("name").to_owned()));
}

/// Reports a top-level composite template that is nested too deep, with all that is in it.
fn check_depth(composite: &FieldRef<'_>, errors: &mut ErrorList) {
    if composite.value().is_some_and(|value| !fits(value, 1)) {
        errors.push_with(ErrorType::Invalid, || too_deep(composite));
    }
}

fn too_deep(composite: &FieldRef<'_>) -> Error {
    let within = composite.value().and_then(|value| value.get(COMPOSITES)).cloned().unwrap_or_default();
    let shown: Vec<String> =
        within.as_array().unwrap_or_default().iter().map(|item| show_internal(TEMPLATE, item)).collect();
    let detail = format!("maximum template hierarchy depth is {DEPTH_MAX}");
    Error::invalid(composite.path(), within, detail).shown_as(format!("[{}]", shown.join(",")))
}

fn fits(composite: &Value, depth: usize) -> bool {
    work::step();
    depth < DEPTH_MAX && composite.items_at(&[COMPOSITES]).iter().all(|inner| fits(inner, depth + 1))
}

/// The class and the number that specify a template's priority.
type Priority<'a> = (&'a str, Option<&'a Value>);

fn check_priorities(spec: &FieldRef<'_>) -> Option<Error> {
    let mut first = None;
    let spec_value = spec.value()?;
    if !spec_value.items_at(&[GROUPS]).iter().all(|group| has_priority(group, &mut first)) {
        return Some(Error::invalid(spec.path(), Value::Null, "detected multiple priority configurations"));
    }
    let detail = "all priority and priorityClassName values must be identical, detected multiple values";
    let composites = spec_value.items_at(&[COMPOSITES]);
    let agree = composites.iter().all(|composite| have_priority(composite, 1, &mut first));
    (!agree).then(|| Error::invalid(spec.path(), Value::Null, detail))
}

/// Whether a template has the same priority as the first one.
fn has_priority<'a>(template: &'a Value, first: &mut Option<Priority<'a>>) -> bool {
    work::step();
    let number = template.get("priority").filter(|number| !number.is_null());
    let priority = (template.str_at(&["priorityClassName"]), number);
    *first.get_or_insert(priority) == priority
}

/// Whether a composite template and those within it have the same priority as the first one.
fn have_priority<'a>(composite: &'a Value, depth: usize, first: &mut Option<Priority<'a>>) -> bool {
    depth > DEPTH_MAX
        || has_priority(composite, first)
            && composite.items_at(&[COMPOSITES]).iter().all(|inner| have_priority(inner, depth + 1, first))
            && composite.items_at(&[GROUPS]).iter().all(|group| has_priority(group, first))
}

fn check_children(composite: &FieldRef<'_>, depth: usize, errors: &mut ErrorList) {
    work::step();
    if depth > DEPTH_MAX {
        return;
    }
    let composites = composite.field(COMPOSITES);
    if composite.field(GROUPS).is_empty() && composites.is_empty() {
        let detail = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate";
        errors.push_with(ErrorType::Invalid, || Error::invalid(composite.path(), composite.text_of("name"), detail));
    }
    for inner in composites.items() {
        check_children(&inner, depth + 1, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::value::yaml;

    #[track_caller]
    fn check(spec: &str, expect: &[&str]) {
        let object = yaml::decode(format!("{{spec: {spec}}}").as_bytes()).expect("the test is valid");
        let errors = validate(&FieldRef::root(&object).field("spec"));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn every_template_has_a_name_of_its_own() {
        let inner = |name: &str| format!("{{name: {name}, podGroupTemplates: [{{name: a}}, {{name: z}}]}}");
        check(
            &format!("{{podGroupTemplates: [{{name: a}}, {{name: a}}], compositePodGroupTemplates: [{}]}}", inner("a")),
            &[
                "spec.compositePodGroupTemplates[0].name: Duplicate value: \"a\"",
                "spec.compositePodGroupTemplates[0].podGroupTemplates[0].name: Duplicate value: \"a\"",
            ],
        );
        check(&format!("{{compositePodGroupTemplates: [{}]}}", inner("b")), &[]);
    }

    #[test]
    fn templates_stand_four_deep_at_most() {
        let nested = |name: &str, inner: &str| format!("{{name: {name}, compositePodGroupTemplates: [{inner}]}}");
        let leaf = "{name: d, podGroupTemplates: [{name: e}]}";
        let three = nested("b", &nested("c", leaf));
        check(&format!("{{compositePodGroupTemplates: [{three}]}}"), &[]);
        let four = nested("a", &three);
        let object = yaml::decode(format!("{{compositePodGroupTemplates: [{four}]}}").as_bytes()).expect("it is valid");
        let errors = validate(&FieldRef::root(&object));
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let [only] = texts.as_slice() else { panic!("{texts:?}") };
        assert!(only.starts_with("compositePodGroupTemplates[0]: Invalid value: [{\"Name\":\"b\","), "{only}");
        assert!(only.ends_with("]: maximum template hierarchy depth is 4"), "{only}");
    }

    #[test]
    fn templates_that_are_too_deep_are_told_once() {
        let mut within = Value::Array(vec![object! { "name" => "a" }; 1000]);
        for _ in 0..200 {
            within = Value::Array(vec![object! { "name" => "a", COMPOSITES => within }]);
        }
        let spec = object! { GROUPS => Value::Array(vec![object! { "name" => "b" }]), COMPOSITES => within };
        let errors = validate(&FieldRef::root(&spec));
        let told = |detail: &str| errors.iter().filter(|error| error.to_string().contains(detail)).count();
        assert_eq!((told("maximum template hierarchy depth is 4"), told("at least one child")), (1, 0));
        // The names on the first levels are reported; those of the thousand levels below are not.
        assert_eq!((errors.len() + errors.untold(), told("Duplicate value")), (DEPTH_MAX, DEPTH_MAX - 1));
    }

    #[test]
    fn templates_have_one_priority() {
        let groups = |priority: &str| format!("podGroupTemplates: [{{name: a}}, {{name: b{priority}}}]");
        check(&format!("{{{}}}", groups("")), &[]);
        check(
            &format!("{{{}}}", groups(", priority: 1")),
            &["spec: Invalid value: null: detected multiple priority configurations"],
        );
        check(
            &format!("{{compositePodGroupTemplates: [{{name: c, {}}}]}}", groups(", priorityClassName: high")),
            &[
                "spec: Invalid value: null: all priority and priorityClassName values must be identical, detected multiple values",
            ],
        );
    }

    #[test]
    fn a_composite_template_has_children() {
        let why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate";
        check(
            "{compositePodGroupTemplates: [{name: a, compositePodGroupTemplates: [{name: b}]}]}",
            &[&format!(
                "spec.compositePodGroupTemplates[0].compositePodGroupTemplates[0]: Invalid value: \"b\": {why}"
            )],
        );
    }
}
