//! Job, batch/v1.
//!
//! Source: defaults, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::jobs::conditions;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, selector, template};
use crate::kinds::{Kind, declared, defaults, jobs, metadata, prepare};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::{names, time};
use crate::object;
use crate::types;
use crate::value::Value;
use crate::work;

const FEATURES: [Feature; 5] = [
    Feature::new(Gate::JobSuccessPolicy, &["spec.successPolicy"]),
    Feature::new(Gate::JobBackoffLimitPerIndex, &["spec.backoffLimitPerIndex"]),
    Feature::new(Gate::JobBackoffLimitPerIndex, &["spec.maxFailedIndexes"]),
    Feature::new(Gate::JobPodReplacementPolicy, &["spec.podReplacementPolicy"]),
    Feature::new(Gate::WorkloadWithJob, &["spec.scheduling"]),
];
/// Those that are dropped from new jobs alone: a change is refused, as the field is immutable.
const FEATURES_OF_NEW: [Feature; 1] = [Feature::new(Gate::JobManagedBy, &["spec.managedBy"])];
/// The labels with the job's name, and those with its uid: on pods, and the last one also in the selector.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", UID_LABEL];
const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "jobs",
    singular: "job",
    categories: &["all"],
    status: true,
    selectable_fields: &[".status.successful"],
    example: r"
metadata: {name: example}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: work, image: example.com/work}]}}
",
    ..Kind::new("batch", "v1", "Job", &Job)
}];

struct Job;

impl Strategy for Job {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        jobs::set_defaults(spec);
        jobs::set_template_defaults(spec);
        set_labels(object);
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        if is_selected_by_hand(sent) {
            template::keep_empty_labels(sent, decoded);
        }
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        if !is_selected_by_hand(object) {
            generate_selector(object);
        }
        prepare::for_create(object, &self.zero(version));
        features::drop_fields(&FEATURES_OF_NEW, version.minor, object, None);
        if !version.minor.opens(Gate::JobBackoffLimitPerIndex) {
            drop_index_rules(object);
        }
        drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(object, &template::options(version.minor, object, None), true);
        let root = FieldRef::root(object);
        let message = types::message_named("batch.v1", "JobSpec");
        errors.extend(declared::validate_field(message, "scheduling", &root.field("spec"), None, version.minor));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            set_labels(new);
            return;
        }
        drop_disabled_fields(version.minor, new, Some(old));
        workloads::prepare_update(new, old);
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        if subresource == Subresource::Status {
            let mut errors = metadata::validate_update(new, old);
            errors.extend(jobs::status::validate(version.minor, new, old));
            return errors;
        }
        let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
        let (spec, old_spec) = (root.field("spec"), old_root.field("spec"));
        let mut options = template::options(version.minor, new, Some(old));
        options.allow_invalid_label_value_in_selector |= selector::has_invalid_value(&old_spec.field("selector"));
        let labels = old.at(&["spec", "template", "metadata", "labels"]);
        let had = |label: &str| labels.is_some_and(|labels| labels.get(label).is_some());
        let mut errors = validate(new, &options, had(NAME_LABELS[1]) && had(UID_LABEL));
        errors.extend(metadata::validate_update(new, old));
        errors.extend(jobs::spec::validate_selected(&spec, &options));
        errors.extend(jobs::update::validate(version.minor, &spec, old));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        let is_new = old.is_none_or(|old| workloads::generation_differs(new, old));
        if subresource == Subresource::Status || !is_new {
            return Vec::new();
        }
        let mut warnings = if old.is_none() { workloads::name_warnings(new) } else { Vec::new() };
        let root = FieldRef::root(new);
        warnings.extend(jobs::warnings(&root.field("spec"), old.and_then(|old| old.get("spec"))));
        warnings
    }

    fn select(&self, object: &Value, field: &str) -> Option<String> {
        (field == "status.successful").then(|| cells::int(object, &["status", "succeeded"]).to_string())
    }

    fn unknown_field_label(&self, _: &ServedVersion, field: &str) -> String {
        format!("field label {} not supported for Job", crate::value::go_quote(field))
    }

    fn complete(&self, object: &mut Value) {
        // Go sets the labels when it decodes stored objects.
        set_labels(object);
    }

    fn shares_labels(&self, object: &Value) -> bool {
        object.at(&["spec", "template", "metadata", "labels"]).is_some()
    }

    fn share_labels(&self, object: &mut Value) {
        if let Some(labels) = object.at(&["spec", "template", "metadata", "labels"]).cloned() {
            defaults::structure(object, "metadata").make_object().insert("labels", labels);
        }
    }

    /// Older versions of Kubernetes left the pods in place.
    fn orphans_dependents(&self) -> bool {
        true
    }

    fn deletion_warning(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
             set propagationPolicy=Orphan to suppress this warning",
        )
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

/// Gives a job without labels those of its template.
fn set_labels(job: &mut Value) {
    let labels = job.at(&["spec", "template", "metadata", "labels"]).cloned();
    let metadata = defaults::structure(job, "metadata");
    if let (Some(labels), None) = (labels, metadata.get("labels")) {
        metadata.make_object().insert("labels", labels);
    }
}

fn is_selected_by_hand(job: &Value) -> bool {
    job.at(&["spec", "manualSelector"]).and_then(Value::as_bool) == Some(true)
}

/// Labels the pods with the job's name and uid, and selects them by the uid. Existing labels are kept: validation
/// reports wrong ones.
fn generate_selector(job: &mut Value) {
    let name = job.str_at(&["metadata", "name"]).to_owned();
    let uid = job.str_at(&["metadata", "uid"]).to_owned();
    let spec = defaults::structure(job, "spec");
    let template = defaults::structure(spec, "template");
    let labels = defaults::structure(defaults::structure(template, "metadata"), "labels");
    NAME_LABELS.iter().for_each(|label| defaults::set_pointer(labels, label, name.as_str()));
    UID_LABELS.iter().for_each(|label| defaults::set_pointer(labels, label, uid.as_str()));
    let selected = defaults::structure(defaults::structure(spec, "selector"), "matchLabels");
    defaults::set_pointer(selected, UID_LABEL, uid.as_str());
}

fn drop_disabled_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    features::drop_fields(&FEATURES, minor, new, old);
    template::drop_disabled_fields(minor, new, old);
}

/// Drops the rules by which a pod that fails ends its index.
fn drop_index_rules(job: &mut Value) {
    if let Some(Value::Array(rules)) = job.at_mut(&["spec", "podFailurePolicy", "rules"]) {
        rules.retain(|rule| {
            work::step();
            rule.str_at(&["action"]) != "FailIndex"
        });
    }
}

/// Validates a job. `has_new_labels` tells whether its pods must also have the labels with the prefix
/// `batch.kubernetes.io/`.
fn validate(job: &Value, options: &template::PodValidationOptions, has_new_labels: bool) -> ErrorList {
    let mut errors = metadata::validate(job, true, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(job);
    let spec = root.field("spec");
    errors.extend(validate_generated_selector(job, &spec, has_new_labels));
    errors.extend(jobs::spec::validate_selected(&spec, options));
    let completions = spec.field("completions").int();
    if jobs::is_indexed(&spec) && completions > 0 {
        errors.extend(check_host_name(&root, completions));
    }
    errors
}

/// Checks that the host name of the last pod of an indexed job is a DNS label.
fn check_host_name(root: &FieldRef<'_>, completions: i64) -> Option<Error> {
    let metadata = root.field("metadata");
    let name = metadata.field("name");
    let host = format!("{}-{}", name.text(), completions - 1);
    let why = format!("will not able to create pod with invalid DNS label: {host}");
    (!names::is_dns1123_label(&host).is_empty()).then(|| name.invalid(why))
}

/// Checks that a generated selector selects the generated labels.
fn validate_generated_selector(job: &Value, spec: &FieldRef<'_>, has_new_labels: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let field = spec.field("selector");
    if is_selected_by_hand(job) || !field.is_set() {
        return errors;
    }
    let (name, uid) = (job.str_at(&["metadata", "name"]), job.str_at(&["metadata", "uid"]));
    if uid.is_empty() {
        let metadata = crate::meta::field::Path::new("metadata");
        errors.push(Error::required(&metadata.child("uid"), ""));
    }
    let mut expected = object! {};
    let template = spec.field("template");
    let template_metadata = template.field("metadata");
    for generation in 0..=usize::from(has_new_labels) {
        for (label, value) in [(UID_LABELS[generation], uid), (NAME_LABELS[generation], name)] {
            errors.extend(check_label(&template_metadata.field("labels"), label, value));
            expected.make_object().insert(label, Value::from(value));
        }
    }
    let compiled = selector::compile(&field);
    if compiled.is_some_and(|compiled| !compiled.matches(Some(&expected))) {
        errors.push(selector::invalid(&field, "`selector` not auto-generated"));
    }
    errors
}

fn check_label(labels: &FieldRef<'_>, label: &str, expected: &str) -> Option<Error> {
    let path = labels.path().key(label);
    let why = format!("must be '{expected}'");
    match labels.value().and_then(|labels| labels.get(label)) {
        None => Some(Error::required(&path, why)),
        Some(found) if found.as_str() == Some(expected) => None,
        Some(_) => Some(Error::invalid(&path, labels.value().cloned().unwrap_or(Value::Null), why)),
    }
}

fn table() -> Table {
    let mut columns = vec![
        cells::name(),
        Column::string("Status", "Status of the job."),
        Column::string("Completions", "How many pods have succeeded, of how many."),
        Column::string("Duration", "Time required to complete the job."),
        cells::age(),
    ];
    columns.extend(cells::containers());
    columns.push(cells::wide("Selector", "Which pods belong to the job."));
    Table {
        columns,
        cells: |job| {
            let mut row = vec![
                cells::of_name(job),
                Cell::text(state(job)),
                Cell::text(&completions(job)),
                duration(job),
                cells::of_age(job),
            ];
            row.extend(cells::of_containers(job.at(&["spec", "template", "spec"])));
            row.push(Cell::text(&selector::cell(job.at(&["spec", "selector"]))));
            row
        },
    }
}

fn state(job: &Value) -> &'static str {
    const ENDS: [&str; 2] = ["Complete", "Failed"];
    const STATES: [&str; 3] = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
    let holds = |type_: &&&str| conditions::is_true(job, type_);
    if let Some(end) = ENDS.iter().find(holds) {
        return end;
    }
    if job.at(&["metadata", "deletionTimestamp"]).is_some() {
        return "Terminating";
    }
    STATES.iter().find(holds).copied().unwrap_or("Running")
}

fn completions(job: &Value) -> String {
    let succeeded = cells::int(job, &["status", "succeeded"]);
    let parallelism = cells::int(job, &["spec", "parallelism"]);
    match job.at(&["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn duration(job: &Value) -> Cell {
    let time = |name: &str| job.str_at(&["status", name]);
    let seconds = |name: &str| time::parse(time(name)).map(|moment| moment.unix_seconds).ok();
    match (seconds("startTime"), seconds("completionTime")) {
        (None, _) => Cell::text(""),
        (Some(_), None) => Cell::Since(time("startTime").to_owned()),
        (Some(start), Some(end)) => Cell::Lasting(end.saturating_sub(start)),
    }
}
