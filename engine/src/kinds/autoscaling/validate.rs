//! The errors of an autoscaler, in v2.
//!
//! Source: `pkg/apis/autoscaling/validation` of Kubernetes 1.37.

use crate::kinds::{checks, resources};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::meta::quantity::Quantity;
use crate::value::Value;

/// Older minors take a reference of any apiVersion.
const FIRST_WITH_CHECKED_REFERENCES: Minor = Minor::of(34);
const PERIOD_SECONDS_MAX: i64 = 1800;
const STABILIZATION_SECONDS_MAX: i64 = 3600;

const SELECT_POLICIES: [&str; 3] = ["Disabled", "Max", "Min"];
const POLICIES: [&str; 2] = ["Percent", "Pods"];
const SOURCES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
/// The field of each source, in the order in which they are checked.
const SOURCE_FIELDS: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];
const TARGETS: [&str; 3] = ["Utilization", "Value", "AverageValue"];

/// The faults that are forgiven, as they were there before.
struct AutoscalerValidationOptions {
    min_replicas: i64,
    target: References,
    objects: References,
}

/// Which apiVersions a reference may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum References {
    Any,
    WithGroup,
    WellFormed,
}

impl AutoscalerValidationOptions {
    /// For `new`, which replaces `old`.
    fn of(minor: Minor, new: &Value, old: Option<&Value>) -> Self {
        let min_replicas = |hpa: &Value| hpa.at(&["spec", "minReplicas"]).and_then(Value::as_i64);
        let min_replicas = if old.and_then(min_replicas) == Some(0) { 0 } else { 1 };
        if minor < FIRST_WITH_CHECKED_REFERENCES {
            return AutoscalerValidationOptions { min_replicas, target: References::Any, objects: References::Any };
        }
        let target = |hpa: &Value, name: &str| hpa.str_at(&["spec", "scaleTargetRef", name]).to_owned();
        let is_same = |old: &&Value| ["apiVersion", "kind"].iter().all(|name| target(old, name) == target(new, name));
        let target = match old.filter(is_same) {
            Some(_) => References::Any,
            None if target(new, "kind") == "ReplicationController" => References::WellFormed,
            None => References::WithGroup,
        };
        let is_odd = |metric: &Value| {
            let version = metric.str_at(&["object", "describedObject", "apiVersion"]);
            metric.str_at(&["type"]) == "Object"
                && metric.get("object").is_some_and(|object| !object.is_null())
                && version_fault(version, References::WellFormed).is_some()
        };
        let had_odd = old.is_some_and(|old| old.items_at(&["spec", "metrics"]).iter().any(is_odd));
        AutoscalerValidationOptions {
            min_replicas,
            target,
            objects: if had_odd { References::Any } else { References::WellFormed },
        }
    }
}

/// The errors of `new`'s spec in `minor`, where `new` replaces `old`. Both are in v2.
pub fn spec(minor: Minor, new: &Value, old: Option<&Value>) -> ErrorList {
    let options = AutoscalerValidationOptions::of(minor, new, old);
    let root = FieldRef::root(new);
    let spec = root.field("spec");
    let mut errors = replicas(&spec, options.min_replicas);
    errors.extend(reference(&spec.field("scaleTargetRef"), options.target));
    errors.extend(metrics(&spec, options.objects));
    let behavior = spec.field("behavior");
    errors.extend(rules(&behavior.field("scaleUp")));
    errors.extend(rules(&behavior.field("scaleDown")));
    errors
}

fn replicas(spec: &FieldRef<'_>, least: i64) -> ErrorList {
    let mut errors = ErrorList::new();
    let (min, max) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    if min.is_set() && min.int() < least {
        errors.push(min.invalid(format!("must be greater than or equal to {least}")));
    }
    match max.int() {
        0 => errors.push(max.required("must be set and greater than 0")),
        ..0 => errors.push(max.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if min.is_set() && max.int() < min.int() {
        errors.push(Error::invalid(max.path(), max.int(), "must be greater than or equal to `minReplicas`"));
    }
    errors
}

fn reference(reference: &FieldRef<'_>, allowed: References) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["kind", "name"] {
        errors.extend(path_segment(&reference.field(name), ""));
    }
    let version = reference.field("apiVersion");
    errors.extend(version_fault(version.text(), allowed).map(|fault| version.invalid(fault)));
    errors
}

/// A text that is required, and must be valid as a path segment.
fn path_segment(field: &FieldRef<'_>, why: &str) -> ErrorList {
    if field.is_empty() {
        return field.required(why).into();
    }
    checks::named(field, |text| names::is_path_segment(text, false))
}

fn version_fault(version: &str, allowed: References) -> Option<String> {
    if allowed == References::Any {
        return None;
    }
    if version != "/" && version.matches('/').count() > 1 {
        return Some(format!("unexpected GroupVersion string: {version}"));
    }
    let has_group = version.split_once('/').is_some_and(|(group, _)| !group.is_empty());
    (allowed == References::WithGroup && !has_group).then(|| "apiVersion must specify API group".to_owned())
}

fn metrics(spec: &FieldRef<'_>, objects: References) -> ErrorList {
    let metrics = spec.field("metrics");
    let mut errors = ErrorList::new();
    let mut measures_others = false;
    for metric in metrics.items() {
        errors.extend(self::metric(&metric, objects));
        measures_others |= matches!(metric.field("type").text(), "Object" | "External");
    }
    let min = spec.field("minReplicas");
    if min.is_set() && min.int() == 0 && !measures_others {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(metrics.forbidden(why));
    }
    errors
}

fn metric(metric: &FieldRef<'_>, objects: References) -> ErrorList {
    let mut errors = ErrorList::new();
    let type_ = metric.field("type");
    if type_.is_empty() {
        errors.push(type_.required("must specify a metric source type"));
    }
    let unknown = || Error::not_supported(type_.path(), type_.text(), &SOURCES);
    let expected = SOURCE_FIELDS.iter().find(|(_, source)| *source == type_.text()).map(|(field, _)| *field);
    if expected.is_none() {
        errors.push(unknown());
    }
    let present: Vec<&str> =
        SOURCE_FIELDS.iter().map(|(field, _)| *field).filter(|field| metric.field(field).is_set()).collect();
    if let Some(first) = present.first() {
        errors.extend(source(first, &metric.field(first), objects));
    }
    match expected.map(|name| metric.field(name)) {
        Some(field) if !field.is_set() => {
            errors.push(field.required("must populate information for the given metric source"));
        }
        Some(_) => {}
        None => errors.push(unknown()),
    }
    if present.len() > 1 {
        let others = present.iter().filter(|name| Some(**name) != expected);
        errors.extend(others.map(|name| metric.field(name).forbidden("must populate the given metric source only")));
    }
    errors
}

fn source(name: &str, source: &FieldRef<'_>, objects: References) -> ErrorList {
    const NEITHER: &str = "must set either a target raw value or a target utilization";
    let target = source.field("target");
    let (value, average) = (target.field("value"), target.field("averageValue"));
    let utilization = target.field("averageUtilization");
    let mut errors = identity(name, source, objects);
    errors.extend(self::target(&target));
    match name {
        "object" if !value.is_set() && !average.is_set() => {
            errors.push(average.required("must set either a target value or averageValue"));
        }
        "external" if !value.is_set() && !average.is_set() => {
            errors.push(average.required("must set either a target value for metric or a per-pod target"));
        }
        "external" if value.is_set() && average.is_set() => {
            errors.push(value.forbidden("may not set both a target value for metric and a per-pod target"));
        }
        "pods" if !average.is_set() => errors.push(average.required("must specify a positive target averageValue")),
        "resource" | "containerResource" if !utilization.is_set() && !average.is_set() => {
            errors.push(utilization.required(NEITHER));
        }
        "resource" | "containerResource" if utilization.is_set() && average.is_set() => {
            errors.push(average.forbidden("may not set both a target raw value and a target utilization"));
        }
        _ => {}
    }
    errors
}

/// What is measured.
fn identity(name: &str, source: &FieldRef<'_>, objects: References) -> ErrorList {
    let resource = source.field("name");
    let mut errors = ErrorList::new();
    match name {
        "resource" => errors.extend(resource.is_empty().then(|| resource.required("must specify a resource name"))),
        "containerResource" => {
            if resource.is_empty() {
                errors.push(resource.required("must specify a resource name"))
            } else {
                errors.extend(resources::validate_container_name(resource.text(), resource.path()))
            }
            let container = source.field("container");
            if container.is_empty() {
                errors.push(container.required("must specify a container"))
            } else {
                errors.extend(checks::named(&container, names::is_dns1123_label))
            }
        }
        _ => {
            if name == "object" {
                errors.extend(reference(&source.field("describedObject"), objects));
            }
            let metric = source.field("metric");
            errors.extend(path_segment(&metric.field("name"), "must specify a metric name"));
        }
    }
    errors
}

fn target(target: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let type_ = target.field("type");
    if type_.is_empty() {
        errors.push(type_.required("must specify a metric target type"));
    }
    if !TARGETS.contains(&type_.text()) {
        errors.push(type_.invalid_as_json("must be either Utilization, Value, or AverageValue"));
    }
    for name in ["value", "averageValue"] {
        let amount = target.field(name);
        let is_positive = Quantity::parse(amount.text()).is_ok_and(|quantity| quantity.signum() > 0);
        if amount.is_set() && !is_positive {
            errors.push(amount.invalid("must be positive"));
        }
    }
    let utilization = target.field("averageUtilization");
    if utilization.is_set() && utilization.int() < 1 {
        errors.push(utilization.invalid("must be greater than 0"));
    }
    errors
}

fn rules(rules: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !rules.is_set() {
        return errors;
    }
    let window = rules.field("stabilizationWindowSeconds");
    if window.int() < 0 {
        errors.push(window.invalid("must be greater than or equal to zero"));
    }
    if window.int() > STABILIZATION_SECONDS_MAX {
        errors.push(window.invalid(format!("must be less than or equal to {STABILIZATION_SECONDS_MAX}")));
    }
    let select = rules.field("selectPolicy");
    if select.is_set() {
        errors.extend(checks::one_of(&select, &SELECT_POLICIES));
    }
    let policies = rules.field("policies");
    if policies.is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        errors.extend(self::policy(&policy));
    }
    let tolerance = rules.field("tolerance");
    let is_negative = Quantity::parse(tolerance.text()).is_ok_and(|quantity| quantity.signum() < 0);
    errors.extend(is_negative.then(|| tolerance.invalid("must be greater than or equal to 0")));
    errors
}

fn policy(policy: &FieldRef<'_>) -> ErrorList {
    let mut errors: ErrorList = checks::one_of(&policy.field("type"), &POLICIES).into_iter().collect();
    for name in ["value", "periodSeconds"] {
        let number = policy.field(name);
        if number.int() <= 0 {
            errors.push(Error::invalid(number.path(), number.int(), "must be greater than zero"));
        }
    }
    let period = policy.field("periodSeconds");
    if period.int() > PERIOD_SECONDS_MAX {
        errors.push(period.invalid(format!("must be less than or equal to {PERIOD_SECONDS_MAX}")));
    }
    errors
}
