//! CronJob, batch/v1.
//!
//! Source: defaults, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, selector, template};
use crate::kinds::{Kind, checks, declared, defaults, jobs, metadata, pod, prepare};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::{cron, names, time_zone};
use crate::types;
use crate::value::Value;

/// The maximum length of a name. The names of its jobs are eleven characters longer, for the time.
const NAME_BYTES_MAX: usize = 52;
const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];
const JOB_SPEC: [&str; 3] = ["spec", "jobTemplate", "spec"];
const POD_TEMPLATE: [&str; 4] = ["spec", "jobTemplate", "spec", "template"];

/// The fields of features, beside those of the pod template.
const FEATURES: [Feature; 1] = [Feature::new(Gate::WorkloadWithJob, &["spec.jobTemplate.spec.scheduling"])];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "cronjobs",
    singular: "cronjob",
    short_names: &["cj"],
    categories: &["all"],
    status: true,
    example: r"
metadata: {name: example}
spec:
  schedule: 0 3 * * *
  jobTemplate:
    spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: work, image: example.com/work}]}}}
",
    ..Kind::new("batch", "v1", "CronJob", &CronJob)
}];

struct CronJob;

impl Strategy for CronJob {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "concurrencyPolicy", "Allow");
        defaults::set(spec, "suspend", false);
        defaults::set(spec, "successfulJobsHistoryLimit", 3);
        defaults::set(spec, "failedJobsHistoryLimit", 1);
        let job = defaults::structure(defaults::structure(spec, "jobTemplate"), "spec");
        jobs::set_template_defaults(job);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
        drop_disabled_fields(version.minor, object, None);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(version.minor, object, None));
        let root = FieldRef::root(object);
        let of_metadata = root.field("metadata");
        let name = of_metadata.field("name");
        if name.text().len() > NAME_BYTES_MAX {
            errors.push(name.invalid(format!("must be no more than {NAME_BYTES_MAX} characters")));
        }
        errors.extend(validate_scheduling(version.minor, object, None));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
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
        // The reference does not validate the status at all.
        if subresource == Subresource::Status {
            return ErrorList::new();
        }
        let mut errors = metadata::validate_update(new, old);
        errors.extend(validate_spec(version.minor, new, Some(old)));
        errors.extend(validate_scheduling(version.minor, new, Some(old)));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        if subresource == Subresource::Status {
            return Vec::new();
        }
        let mut warnings = if old.is_none() { workloads::name_warnings(new) } else { Vec::new() };
        if old.is_none_or(|old| workloads::generation_differs(new, old)) {
            let root = FieldRef::root(new);
            let spec = root.field("spec");
            let template = spec.field("jobTemplate");
            warnings.extend(jobs::warnings(&template.field("spec"), old.and_then(|old| old.at(&JOB_SPEC))));
        }
        if old.is_some() && new.str_at(&["spec", "schedule"]).contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

fn drop_disabled_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    features::drop_fields(&FEATURES, minor, new, old);
    if let Some(template) = new.at_mut(&POD_TEMPLATE) {
        pod::drop_disabled_template_fields(minor, template, old.and_then(|old| old.at(&POD_TEMPLATE)));
    }
}

fn validate_spec(minor: Minor, cron_job: &Value, old: Option<&Value>) -> ErrorList {
    let root = FieldRef::root(cron_job);
    let spec = root.field("spec");
    let mut errors = validate_schedule(&spec, old.map(|old| old.str_at(&["spec", "schedule"])));
    errors.extend(checks::not_negative(&spec.field("startingDeadlineSeconds")));
    let zone = spec.field("timeZone");
    if old.is_none_or(|old| old.at(&["spec", "timeZone"]) != zone.value()) {
        errors.extend(validate_zone(&zone));
    }
    let policy = spec.field("concurrencyPolicy");
    errors.extend(if policy.is_empty() { Some(policy.required("")) } else { checks::one_of(&policy, &POLICIES) });
    let old_template = old.and_then(|old| old.at(&POD_TEMPLATE));
    let options = template::PodValidationOptions::for_template(minor, cron_job.at(&POD_TEMPLATE), old_template);
    errors.extend(validate_job(&spec.field("jobTemplate").field("spec"), &options));
    errors.extend(checks::not_negative(&spec.field("successfulJobsHistoryLimit")));
    errors.extend(checks::not_negative(&spec.field("failedJobsHistoryLimit")));
    errors
}

/// Validates how the pods of a job are scheduled together, by the markers of the type.
fn validate_scheduling(minor: Minor, new: &Value, old: Option<&Value>) -> ErrorList {
    let message = types::message_named("batch.v1", "JobSpec");
    let (root, old_root) = (FieldRef::root(new), old.map(FieldRef::root));
    let (spec, old_spec) = (root.field("spec"), old_root.as_ref().map(|old| old.field("spec")));
    let (template, old_template) = (spec.field("jobTemplate"), old_spec.as_ref().map(|old| old.field("jobTemplate")));
    let (job, old_job) = (template.field("spec"), old_template.as_ref().map(|old| old.field("spec")));
    declared::validate_field(message, "scheduling", &job, old_job.as_ref(), minor)
}

/// Validates the schedule; `old` is the schedule before the update, if any.
fn validate_schedule(spec: &FieldRef<'_>, old: Option<&str>) -> ErrorList {
    let schedule = spec.field("schedule");
    let text = schedule.text();
    if text.is_empty() {
        return schedule.required("").into();
    }
    let mut errors: ErrorList =
        cron::check(text).err().map(|error| schedule.invalid(error.to_string())).into_iter().collect();
    let had_zone = old.is_some_and(|old| old.contains("TZ"));
    if text.contains("TZ") && !had_zone {
        errors.push(schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    }
    if text.contains("TZ") && had_zone && spec.field("timeZone").is_set() {
        errors.push(schedule.invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
    }
    errors
}

fn validate_zone(zone: &FieldRef<'_>) -> ErrorList {
    const PART_BYTES_MAX: usize = 14;
    let mut errors = ErrorList::new();
    if !zone.is_set() {
        return errors;
    }
    let name = zone.text();
    if name.is_empty() {
        return zone.invalid_as_json("timeZone must be nil or non-empty string").into();
    }
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let is_part = |part: &str| {
        (1..=PART_BYTES_MAX).contains(&part.len())
            && part.bytes().all(is_fit)
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
    };
    if !name.split('/').all(is_part) {
        return zone.invalid_as_json(format!("unknown time zone {name}")).into();
    }
    if name.eq_ignore_ascii_case("Local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(zone.invalid_as_json(why));
    }
    errors.extend(time_zone::check(name).err().map(|error| zone.invalid_as_json(error.to_string())));
    errors
}

/// Validates the spec of the job template, which must not set a selector: it will be generated.
fn validate_job(spec: &FieldRef<'_>, options: &template::PodValidationOptions) -> ErrorList {
    let mut errors = jobs::spec::validate(spec, options);
    let (field, by_hand) = (spec.field("selector"), spec.field("manualSelector"));
    if field.is_set() {
        errors.push(selector::invalid(&field, "`selector` will be auto-generated"));
    }
    if by_hand.is_true() {
        errors.push(Error::not_supported(by_hand.path(), true, &["nil", "false"]));
    }
    errors
}

fn table() -> Table {
    let mut columns = vec![
        cells::name(),
        Column::string("Schedule", "When jobs are made, as cron has it."),
        Column::string("Timezone", "The time zone of the schedule."),
        Column { type_: "boolean".to_owned(), ..Column::string("Suspend", "Whether no jobs are made for now.") },
        cells::integer("Active", "How many jobs run."),
        Column::string("Last Schedule", "How long ago a job was last made."),
        cells::age(),
    ];
    columns.extend(cells::containers());
    columns.push(cells::wide("Selector", "Which pods belong to the jobs."));
    Table {
        columns,
        cells: |cron_job| {
            let spec = |name: &str| cron_job.at(&["spec", name]);
            let suspend = match spec("suspend").and_then(Value::as_bool) {
                None => "<unset>",
                Some(true) => "True",
                Some(false) => "False",
            };
            let last = cron_job.str_at(&["status", "lastScheduleTime"]);
            let job = cron_job.at(&JOB_SPEC);
            let mut row = vec![
                cells::of_name(cron_job),
                Cell::text(cron_job.str_at(&["spec", "schedule"])),
                Cell::text(spec("timeZone").and_then(Value::as_str).unwrap_or("<none>")),
                Cell::text(suspend),
                Cell::count(cron_job.items_at(&["status", "active"]).len()),
                if last.is_empty() { Cell::text("<none>") } else { Cell::Since(last.to_owned()) },
                cells::of_age(cron_job),
            ];
            row.extend(cells::of_containers(job.and_then(|job| job.at(&["template", "spec"]))));
            row.push(Cell::text(&selector::cell(job.and_then(|job| job.get("selector")))));
            row
        },
    }
}
