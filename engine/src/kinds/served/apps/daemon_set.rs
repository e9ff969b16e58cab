//! DaemonSet, apps/v1.
//!
//! Go keeps the template's generation in a field of its internal type; v1 has an annotation for it.
//!
//! Source: defaults, conversion, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::write::ReadError;
use crate::crd::{Column, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, percent, selector, status, template};
use crate::kinds::{Kind, checks, defaults, metadata, pod, prepare, semantic};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::{names, parse_int};
use crate::value::Value;

/// The annotation with the number of times that the template has changed.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const ROLLING_UPDATE: &str = "RollingUpdate";
const ON_DELETE: &str = "OnDelete";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "daemonsets",
    singular: "daemonset",
    short_names: &["ds"],
    categories: &["all"],
    status: true,
    example: r"
metadata: {name: example}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: agent, image: example.com/agent}]}}
",
    ..Kind::new("apps", "v1", "DaemonSet", &DaemonSet)
}];

struct DaemonSet;

impl Strategy for DaemonSet {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        let strategy = defaults::structure(spec, "updateStrategy");
        defaults::set(strategy, "type", ROLLING_UPDATE);
        if strategy.str_at(&["type"]) == ROLLING_UPDATE {
            let rolling = defaults::structure(strategy, "rollingUpdate");
            defaults::set_pointer(rolling, "maxUnavailable", 1);
            defaults::set_pointer(rolling, "maxSurge", 0);
        }
        defaults::set(spec, "revisionHistoryLimit", 10);
        template::set_defaults(spec);
    }

    fn internalize(&self, object: &mut Value) -> Result<(), ReadError> {
        let given = object.at(&["metadata", "annotations", TEMPLATE_GENERATION]).and_then(Value::as_str);
        let generation = given.map_or(Ok(0), parse_int).map_err(|error| ReadError::Internal(error.to_string()))?;
        set_template_generation(object, generation);
        // Absent amounts are zero in the internal type.
        if let Some(rolling) = object.at_mut(&["spec", "updateStrategy", "rollingUpdate"]).filter(|it| !it.is_null()) {
            defaults::set_pointer(rolling, "maxUnavailable", 0);
            defaults::set_pointer(rolling, "maxSurge", 0);
        }
        Ok(())
    }

    fn internal_annotations(&self) -> &'static [&'static str] {
        &[TEMPLATE_GENERATION]
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        template::keep_empty_labels(sent, decoded);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
        let generation = template_generation(object).max(1);
        set_template_generation(object, generation);
        template::drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(object, &template::options(version.minor, object, None)));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let generation = template_generation(old);
        set_template_generation(new, generation);
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            return;
        }
        template::drop_disabled_fields(version.minor, new, Some(old));
        workloads::prepare_update(new, old);
        if !semantic::equal("template", template::of(new), template::of(old)) {
            set_template_generation(new, generation.saturating_add(1));
        }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new_root, old_root) = (FieldRef::root(new), FieldRef::root(old));
        if subresource == Subresource::Status {
            errors.extend(validate_status(&new_root.field("status"), &old_root.field("status")));
            return errors;
        }
        let (new_spec, old_spec) = (new_root.field("spec"), old_root.field("spec"));
        let old_selector = old_spec.field("selector");
        errors.extend(selector::immutable(&new_spec.field("selector"), &old_selector));
        let mut options = template::options(version.minor, new, Some(old));
        options.allow_invalid_label_value_in_selector |= selector::has_invalid_value(&old_selector);
        errors.extend(validate_spec(new, &options));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        let is_new_template = old.is_none_or(|old| template_generation(new) != template_generation(old));
        if subresource == Subresource::Status || !is_new_template {
            return Vec::new();
        }
        template::warnings(new, old)
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

fn template_generation(set: &Value) -> i64 {
    parse_int(set.str_at(&["metadata", "annotations", TEMPLATE_GENERATION])).unwrap_or_default()
}

fn set_template_generation(set: &mut Value, generation: i64) {
    workloads::set_annotation(set, TEMPLATE_GENERATION, &generation.to_string());
}

fn validate_spec(set: &Value, options: &template::PodValidationOptions) -> ErrorList {
    let root = FieldRef::root(set);
    let spec = root.field("spec");
    let mut errors = validate_selector(&spec, options);
    let template = spec.field("template");
    errors.extend(pod::validate_template(&template, options));
    errors.extend(template::check_running(&template, "DaemonSet"));
    errors.extend(checks::not_negative(&spec.field("minReadySeconds")));
    let generation = template_generation(set);
    if generation < 0 {
        let path = spec.path().child("templateGeneration");
        errors.push(Error::invalid(&path, generation, "must be greater than or equal to 0"));
    }
    errors.extend(validate_strategy(&spec.field("updateStrategy")));
    errors.extend(checks::not_negative(&spec.field("revisionHistoryLimit")));
    errors
}

fn validate_selector(spec: &FieldRef<'_>, options: &template::PodValidationOptions) -> ErrorList {
    let field = spec.field("selector");
    let mut errors = selector::validate(&field, !options.allow_invalid_label_value_in_selector);
    let compiled = selector::compile(&field);
    errors.extend(compiled.and_then(|compiled| compiled.check_template(&spec.field("template"))));
    if selector::is_empty(&field) {
        errors.push(selector::invalid(&field, "empty selector is invalid for daemonset"));
    }
    errors
}

fn validate_strategy(strategy: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        ON_DELETE => {}
        ROLLING_UPDATE if rolling.is_set() => errors.extend(validate_rolling_update(&rolling)),
        ROLLING_UPDATE => errors.push(rolling.required("")),
        _ => {
            let error = strategy.not_supported(&[ROLLING_UPDATE, ON_DELETE]);
            errors.push(error.shown_as(workloads::show(strategy, "apps.v1.DaemonSetUpdateStrategy")));
        }
    }
    errors
}

fn validate_rolling_update(rolling: &FieldRef<'_>) -> ErrorList {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    let mut errors: ErrorList = [&unavailable, &surge].into_iter().filter_map(percent::validate).collect();
    errors.extend([&unavailable, &surge].into_iter().filter_map(percent::not_above_all));
    match (percent::amount(&unavailable) != 0, percent::amount(&surge) != 0) {
        (true, true) => errors.push(percent::shown(&surge, "may not be set when maxUnavailable is non-zero")),
        (false, false) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
    errors
}

fn validate_status(new: &FieldRef<'_>, old: &FieldRef<'_>) -> ErrorList {
    const COUNTERS: [&str; 9] = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut errors = status::not_negative(new, &COUNTERS);
    errors.extend(status::not_decremented(new, old, "collisionCount"));
    errors
}

/// The columns with numbers, each with the field of the status that it shows.
const NUMBERS: [(&str, &str, &str); 5] = [
    ("Desired", "desiredNumberScheduled", "How many nodes should run the pod."),
    ("Current", "currentNumberScheduled", "How many nodes run the pod that should."),
    ("Ready", "numberReady", "How many nodes should run the pod and have one that is ready."),
    ("Up-to-date", "updatedNumberScheduled", "How many nodes run the pod as the template says now."),
    ("Available", "numberAvailable", "How many nodes have a pod that has been ready for long enough."),
];

fn table() -> Table {
    let mut columns = vec![cells::name()];
    columns.extend(NUMBERS.map(|(name, _, description)| cells::integer(name, description)));
    columns.push(Column::string("Node Selector", "The labels of nodes that run the pod."));
    columns.push(cells::age());
    columns.extend(cells::containers());
    columns.push(cells::wide("Selector", "Which pods belong to the set."));
    Table {
        columns,
        cells: |set| {
            let mut row = vec![cells::of_name(set)];
            row.extend(NUMBERS.map(|(_, field, _)| cells::of_int(set, &["status", field])));
            let pod = set.at(&["spec", "template", "spec"]);
            row.push(Cell::text(&selector::set_cell(pod.and_then(|pod| pod.get("nodeSelector")))));
            row.push(cells::of_age(set));
            row.extend(cells::of_containers(pod));
            row.push(Cell::text(&selector::cell(set.at(&["spec", "selector"]))));
            row
        },
    }
}
