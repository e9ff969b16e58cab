//! The errors of the spec of a job.
//!
//! Source: `validateJobSpec` of Kubernetes 1.37.

use super::{COMPLETIONS_SOFT_MAX, INDEXED, NON_INDEXED, failure_policy, is_indexed, success_policy};
use crate::kinds::workloads::{self, selector, template};
use crate::kinds::{checks, pod};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

const MANAGED_BY_BYTES_MAX: i64 = 63;
/// The characters that a path may contain besides letters and digits.
const PATH_SYMBOLS: &[u8] = b"/-._~%!$&'()*+,;=:";
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Of jobs with many completions.
const LARGE_PARALLELISM_MAX: i64 = 10_000;
const LARGE_FAILED_INDEXES_MAX: i64 = 10_000;

/// The errors of the spec of a Job, whose selector must have been set.
pub fn validate_selected(spec: &FieldRef<'_>, options: &template::PodValidationOptions) -> ErrorList {
    let mut errors = validate(spec, options);
    let field = spec.field("selector");
    if field.is_set() {
        errors.extend(selector::validate(&field, !options.allow_invalid_label_value_in_selector));
    } else {
        errors.push(field.required(""));
    }
    let compiled = selector::compile(&field);
    errors.extend(compiled.and_then(|compiled| compiled.check_template(&spec.field("template"))));
    errors
}

/// The errors of the spec of a job, with or without a selector.
pub fn validate(spec: &FieldRef<'_>, options: &template::PodValidationOptions) -> ErrorList {
    let mut errors = validate_numbers(spec);
    errors.extend(validate_manager(&spec.field("managedBy")));
    errors.extend(validate_mode(spec));
    let (failure, success) = (spec.field("podFailurePolicy"), spec.field("successPolicy"));
    if failure.is_set() {
        errors.extend(failure_policy::validate(spec, &failure));
    }
    if success.is_set() && is_indexed(spec) {
        errors.extend(success_policy::validate(spec, &success));
    } else if success.is_set() {
        let detail = "requires indexed completion mode";
        errors.push(workloads::invalid_struct(&success, "batch.v1.SuccessPolicy", detail));
    }
    errors.extend(check_replacement(spec));
    let template = spec.field("template");
    errors.extend(pod::validate_template(&template, options));
    errors.extend(check_restart(&template.field("spec").field("restartPolicy"), failure.is_set()));
    errors
}

fn validate_numbers(spec: &FieldRef<'_>) -> ErrorList {
    const NUMBERS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    let mut errors: ErrorList = NUMBERS.iter().filter_map(|name| checks::not_negative(&spec.field(name))).collect();
    let limit = spec.field("backoffLimitPerIndex");
    if spec.field("maxFailedIndexes").is_set() && !limit.is_set() {
        errors.push(limit.required("when maxFailedIndexes is specified"));
    }
    errors
}

fn validate_manager(manager: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.is_set() {
        errors.extend(check_domain_path(manager));
        let bytes = i64::try_from(manager.text().len()).unwrap_or(i64::MAX);
        errors.extend((bytes > MANAGED_BY_BYTES_MAX).then(|| manager.too_long(MANAGED_BY_BYTES_MAX)));
    }
    errors
}

/// A DNS name and a path: `example.com/controller`.
fn check_domain_path(field: &FieldRef<'_>) -> ErrorList {
    let text = field.text();
    if text.is_empty() {
        return field.required("").into();
    }
    let (host, path) = match text.split_once('/') {
        Some((host, path)) if !host.is_empty() && !path.is_empty() => (host, path),
        _ => return field.invalid("must be a domain-prefixed path (such as \"acme.io/foo\")").into(),
    };
    let faults = names::is_dns1123_subdomain(host).into_iter();
    let mut errors: ErrorList = faults.map(|fault| Error::invalid(field.path(), host, fault)).collect();
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || PATH_SYMBOLS.contains(&byte);
    if !path.bytes().all(is_fit) {
        let why = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(Error::invalid(field.path(), path, why));
    }
    errors
}

fn validate_mode(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mode = spec.field("completionMode");
    if mode.is_set() {
        errors.extend(checks::one_of(&mode, &[NON_INDEXED, INDEXED]));
    }
    if is_indexed(spec) {
        errors.extend(validate_indexed(spec));
    }
    if !mode.is_set() || mode.text() == NON_INDEXED {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let field = spec.field(name);
            errors.extend(field.is_set().then(|| field.invalid("requires indexed completion mode")));
        }
    }
    errors
}

fn validate_indexed(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (completions, parallelism) = (spec.field("completions"), spec.field("parallelism"));
    let failed = spec.field("maxFailedIndexes");
    if !completions.is_set() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    if parallelism.int() > PARALLELISM_MAX {
        let why = format!("must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed");
        errors.push(parallelism.invalid(why));
    }
    if completions.is_set() && failed.is_set() && failed.int() > completions.int() {
        errors.push(failed.invalid("must be less than or equal to completions"));
    }
    if failed.int() > FAILED_INDEXES_MAX {
        errors.push(failed.invalid(format!("must be less than or equal to {FAILED_INDEXES_MAX}")));
    }
    if completions.int() > COMPLETIONS_SOFT_MAX && spec.field("backoffLimitPerIndex").is_set() {
        errors.extend(validate_large(&parallelism, &failed));
    }
    errors
}

/// The limits of jobs with many completions.
fn validate_large(parallelism: &FieldRef<'_>, failed: &FieldRef<'_>) -> Vec<Error> {
    let why = |limit: i64| {
        format!(
            "must be less than or equal to {limit} when completions are above {COMPLETIONS_SOFT_MAX} and used with \
             backoff limit per index"
        )
    };
    let mut errors = Vec::new();
    if !failed.is_set() {
        errors.push(failed.required(format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}")));
    }
    for (field, limit) in [(parallelism, LARGE_PARALLELISM_MAX), (failed, LARGE_FAILED_INDEXES_MAX)] {
        errors.extend((field.int() > limit).then(|| field.invalid(why(limit))));
    }
    errors
}

fn check_replacement(spec: &FieldRef<'_>) -> Option<Error> {
    let policy = spec.field("podReplacementPolicy");
    let supported: &[&str] =
        if spec.field("podFailurePolicy").is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    policy.is_set().then(|| checks::one_of(&policy, supported)).flatten()
}

fn check_restart(policy: &FieldRef<'_>, has_failure_policy: bool) -> Option<Error> {
    match policy.text() {
        "" | "Always" => Some(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if has_failure_policy => {
            Some(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"))
        }
        "OnFailure" | "Never" => None,
        _ => Some(policy.not_supported(&["OnFailure", "Never"])),
    }
}
