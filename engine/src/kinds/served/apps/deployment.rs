//! Deployment, apps/v1.
//!
//! Source: defaults, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::write::ReadError;
use crate::crd::{Column, SelectorForm, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, percent, selector, status, template};
use crate::kinds::{Kind, Part, checks, defaults, metadata, prepare};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::{names, parse_int};
use crate::value::Value;

/// The annotation with the revision to roll back to, which is a field in older API versions.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";
const RECREATE: &str = "Recreate";
const ROLLING_UPDATE: &str = "RollingUpdate";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "deployments",
    singular: "deployment",
    short_names: &["deploy"],
    categories: &["all"],
    status: true,
    parts: &[Part::scale(SelectorForm::Requirements)],
    example: r"
metadata: {name: example}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}]}}
",
    ..Kind::new("apps", "v1", "Deployment", &Deployment)
}];

struct Deployment;

impl Strategy for Deployment {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "replicas", 1);
        set_strategy_defaults(defaults::structure(spec, "strategy"));
        defaults::set(spec, "revisionHistoryLimit", 10);
        defaults::set(spec, "progressDeadlineSeconds", 600);
        template::set_defaults(spec);
    }

    fn internalize(&self, object: &mut Value) -> Result<(), ReadError> {
        let revision = object.str_at(&["metadata", "annotations", ROLLBACK]).to_owned();
        if revision.is_empty() {
            workloads::remove_annotation(object, ROLLBACK);
            return Ok(());
        }
        let failed =
            |error| ReadError::Internal(format!("failed to parse annotation[{ROLLBACK}]={revision} as int64: {error}"));
        let number = parse_int(&revision).map_err(failed)?;
        workloads::set_annotation(object, ROLLBACK, &number.to_string());
        Ok(())
    }

    fn internal_annotations(&self) -> &'static [&'static str] {
        &[ROLLBACK]
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        template::keep_empty_labels(sent, decoded);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
        template::drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let name_check = names::name_is_dns1123_subdomain;
        let mut errors = metadata::validate(object, true, name_check);
        errors.extend(validate_spec(object, &template::options(version.minor, object, None)));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            workloads::status::drop_disabled(version.minor, new, old);
            workloads::copy_labels(new, old);
            workloads::copy_annotation(new, old, ROLLBACK);
            return;
        }
        template::drop_disabled_fields(version.minor, new, Some(old));
        workloads::prepare_update(new, old);
        // Annotations are copied to the replica sets.
        let annotations = |object: &Value| object.at(&["metadata", "annotations"]).cloned();
        if annotations(new) != annotations(old) {
            prepare::raise_generation(new, old);
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
        errors.extend(validate_spec(new, &template::options(version.minor, new, Some(old))));
        let (new_spec, old_spec) = (new_root.field("spec"), old_root.field("spec"));
        errors.extend(selector::immutable(&new_spec.field("selector"), &old_spec.field("selector")));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        workloads::warnings(subresource, new, old)
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Main => &[&["status"]],
            Subresource::Status => &[&["spec"], &["metadata", "labels"]],
            _ => &[],
        }
    }
}

fn set_strategy_defaults(strategy: &mut Value) {
    defaults::set(strategy, "type", ROLLING_UPDATE);
    if strategy.str_at(&["type"]) == ROLLING_UPDATE {
        let rolling = defaults::structure(strategy, "rollingUpdate");
        defaults::set_pointer(rolling, "maxUnavailable", "25%");
        defaults::set_pointer(rolling, "maxSurge", "25%");
    }
}

fn validate_spec(deployment: &Value, options: &template::PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = FieldRef::root(deployment);
    let spec = root.field("spec");
    errors.extend(checks::not_negative(&spec.field("replicas")));
    errors.extend(workloads::validate_selected_template(&spec, options, "ReplicaSet"));
    errors.extend(validate_strategy(&spec.field("strategy")));
    errors.extend(checks::not_negative(&spec.field("minReadySeconds")));
    errors.extend(checks::not_negative(&spec.field("revisionHistoryLimit")));
    errors.extend(check_rollback(deployment, &spec));
    errors.extend(check_deadline(&spec));
    errors
}

fn check_rollback(deployment: &Value, spec: &FieldRef<'_>) -> Option<Error> {
    let revision = parse_int(deployment.str_at(&["metadata", "annotations", ROLLBACK])).ok()?;
    let path = spec.path().child("rollback");
    let why = "must be greater than or equal to 0";
    (revision < 0).then(|| Error::invalid(&path.child("version"), revision, why))
}

fn check_deadline(spec: &FieldRef<'_>) -> Vec<Error> {
    let seconds = spec.field("progressDeadlineSeconds");
    if !seconds.is_set() {
        return Vec::new();
    }
    let is_short = seconds.int() <= spec.field("minReadySeconds").int();
    let short = is_short.then(|| seconds.invalid("must be greater than minReadySeconds"));
    checks::not_negative(&seconds).into_iter().chain(short).collect()
}

fn validate_strategy(strategy: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        RECREATE if rolling.is_set() => {
            errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        RECREATE => {}
        ROLLING_UPDATE if rolling.is_set() => errors.extend(validate_rolling_update(&rolling)),
        ROLLING_UPDATE => errors.push(rolling.required("this should be defaulted and never be nil")),
        _ => {
            let error = strategy.not_supported(&[RECREATE, ROLLING_UPDATE]);
            errors.push(error.shown_as(workloads::show(strategy, "apps.v1.DeploymentStrategy")));
        }
    }
    errors
}

fn validate_rolling_update(rolling: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    errors.extend(percent::validate(&unavailable));
    errors.extend(percent::validate(&surge));
    if percent::amount(&unavailable) == 0 && percent::amount(&surge) == 0 {
        errors.push(percent::shown(&unavailable, "may not be 0 when `maxSurge` is 0"));
    }
    errors.extend(percent::not_above_all(&unavailable));
    errors
}

fn validate_status(new: &FieldRef<'_>, old: &FieldRef<'_>) -> ErrorList {
    const COUNTERS: [&str; 8] = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    const PARTS: [&str; 3] = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let mut errors = status::not_negative(new, &COUNTERS);
    errors.extend(status::not_above(new, &PARTS, "replicas", "cannot be greater than status.replicas"));
    errors.extend(status::not_above(
        new,
        &["availableReplicas"],
        "readyReplicas",
        "cannot be greater than readyReplicas",
    ));
    errors.extend(status::not_decremented(new, old, "collisionCount"));
    errors
}

fn table() -> Table {
    let mut columns = vec![
        cells::name(),
        Column::string("Ready", "Number of the pod with ready state"),
        Column::string("Up-to-date", "How many pods are as the template says now."),
        Column::string("Available", "How many pods have been ready for long enough."),
        cells::age(),
    ];
    columns.extend(cells::containers());
    columns.push(cells::wide("Selector", "Which pods belong to the deployment."));
    Table {
        columns,
        cells: |deployment| {
            let ready = cells::int(deployment, &["status", "readyReplicas"]);
            let wanted = cells::int(deployment, &["spec", "replicas"]);
            let mut row = vec![
                cells::of_name(deployment),
                Cell::text(&format!("{ready}/{wanted}")),
                cells::of_int(deployment, &["status", "updatedReplicas"]),
                cells::of_int(deployment, &["status", "availableReplicas"]),
                cells::of_age(deployment),
            ];
            row.extend(cells::of_containers(deployment.at(&["spec", "template", "spec"])));
            let text = selector::text(deployment.at(&["spec", "selector"]));
            row.push(Cell::text(text.as_deref().unwrap_or("<invalid>")));
            row
        },
    }
}
