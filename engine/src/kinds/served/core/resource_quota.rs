//! ResourceQuota, core/v1: how much a namespace may use.
//!
//! Source: `pkg/apis/core` and `pkg/registry/core/resourcequota` of Kubernetes 1.36, with the types of 1.37.

use std::collections::{BTreeMap, BTreeSet};

use crate::crd::{Column, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, defaults, metadata, prepare, resources, show_internal};
use crate::meta::field::{Error, ErrorList, ErrorType, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::{Map, Value};

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];
/// Pairs of scopes that exclude each other.
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["NotTerminating", "Terminating"]];
const COMPUTE: [&str; 6] = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "resourcequotas",
    singular: "resourcequota",
    short_names: &["quota"],
    status: true,
    example: "metadata: {name: example}\nspec: {hard: {pods: '10', requests.cpu: '4'}}",
    ..Kind::new("", "v1", "ResourceQuota", &ResourceQuota)
}];

struct ResourceQuota;

impl Strategy for ResourceQuota {
    fn set_typed_defaults(&self, object: &mut Value) {
        for (part, list) in [("spec", "hard"), ("status", "hard"), ("status", "used")] {
            if let Some(part) = defaults::field(object, part) {
                resources::set_list_defaults(defaults::field(part, list));
            }
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let root = FieldRef::root(object);
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(&root.field("spec")));
        errors.extend(validate_status(&root.field("status")));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::keep_other(subresource, new, old);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let root = FieldRef::root(new);
        if subresource == Subresource::Status {
            if new.str_at(&["metadata", "resourceVersion"]).is_empty() {
                errors.push(Error::required(&Path::new("resourceVersion"), ""));
            }
            errors.extend(validate_status(&root.field("status")));
            return errors;
        }
        let spec = root.field("spec");
        errors.extend(validate_spec(&spec));
        let scopes = |object: &Value| -> BTreeSet<String> {
            object.items_at(&["spec", "scopes"]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if scopes(new) != scopes(old) {
            errors.push(list_error(&spec.field("scopes"), "field is immutable"));
        }
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        if old.is_some() {
            return Vec::new();
        }
        let hard = new.at(&["spec", "hard"]).and_then(Value::as_object);
        hard.map(limit_warnings).unwrap_or_default()
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        const REQUEST: &str = "Request represents a minimum amount of cpu/memory that a container may consume.";
        const LIMIT: &str = "Limits control the maximum amount of cpu/memory that a container may use independent of \
                             contention on the node.";
        Some(Table::named(vec![Column::string("Request", REQUEST), Column::string("Limit", LIMIT)], cells))
    }
}

/// The table cells: how much of each resource is used, for requests and for limits.
fn cells(quota: &Value) -> Vec<Cell> {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object);
    let amounts = hard.into_iter().flat_map(Map::iter).map(|(name, amount)| {
        let used = quota.at(&["status", "used", name]).and_then(Value::as_str).unwrap_or("0");
        (name, format!("{name}: {used}/{}", amount.as_str().unwrap_or("0")))
    });
    let (limits, requests): (Vec<_>, Vec<_>) = amounts.partition(|(name, _)| name.starts_with("limits."));
    let join =
        |amounts: Vec<(&str, String)>| amounts.into_iter().map(|(_, amount)| amount).collect::<Vec<_>>().join(", ");
    Cell::named(quota, vec![Cell::text(&join(requests)), Cell::text(&join(limits))])
}

/// The warnings about requests that exceed their limits.
fn limit_warnings(hard: &Map) -> Vec<String> {
    let mut warnings = Vec::new();
    for name in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let limit_name = format!("limits.{name}");
        let request_name = format!("requests.{name}");
        let bare = Some(name).filter(|name| matches!(*name, "cpu" | "memory") && !hard.contains_key(&request_name));
        let request_name = bare.map_or(request_name, str::to_owned);
        let (Some(request), Some(limit)) = (hard.get(&request_name), hard.get(&limit_name)) else { continue };
        let (request, limit) = (resources::parse(Some(request)), resources::parse(Some(limit)));
        if request > limit {
            let what = format!("ResourceQuota {request_name} ({request}) should be less than {limit_name} ({limit})");
            warnings.push(what);
        }
    }
    warnings
}

fn validate_spec(spec: &FieldRef<'_>) -> ErrorList {
    let hard = spec.field("hard");
    let mut errors = validate_amounts(&hard);
    errors.extend(validate_scopes(&spec.field("scopes"), &hard));
    let selector = spec.field("scopeSelector");
    if selector.is_set() {
        errors.extend(validate_selector(spec, &selector, &hard));
    }
    errors
}

fn validate_status(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = validate_amounts(&status.field("hard"));
    errors.extend(validate_amounts(&status.field("used")));
    errors
}

fn validate_amounts(amounts: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, amount) in amounts.entries() {
        errors.extend(resources::validate_quota_name(name, amount.path()));
        errors.extend(resources::validate_quantity(name, &amount));
    }
    errors
}

/// An error that shows the list's value, or null.
fn list_error(list: &FieldRef<'_>, detail: &str) -> Error {
    Error::invalid(list.path(), list.value().cloned().unwrap_or(Value::Null), detail)
}

/// For each scope, the number of limited resources that do not apply to objects in it; of unknown scopes, there are none.
fn unfit_counts(hard: &FieldRef<'_>) -> BTreeMap<&'static str, usize> {
    let standard: Vec<_> =
        hard.entries().map(|(name, _)| name).filter(|name| resources::is_standard_quota(name)).collect();
    let unfit = |scope: &str| standard.iter().filter(|name| !is_in_scope(scope, name)).count();
    SCOPES.iter().map(|scope| (*scope, unfit(scope))).collect()
}

fn is_in_scope(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ if SCOPES.contains(&scope) => resource == "pods" || COMPUTE.contains(&resource),
        _ => true,
    }
}

fn validate_scopes(scopes: &FieldRef<'_>, hard: &FieldRef<'_>) -> ErrorList {
    let (mut errors, unfit) = (ErrorList::new(), unfit_counts(hard));
    let mut seen = BTreeSet::new();
    for scope in scopes.texts() {
        if !SCOPES.contains(&scope) {
            errors.push_with(ErrorType::Invalid, || list_error(scopes, "unsupported scope"));
        }
        let unfit = unfit.get(scope).copied().unwrap_or_default();
        errors.push_times(ErrorType::Invalid, unfit, || list_error(scopes, "unsupported scope applied to resource"));
        seen.insert(scope);
    }
    errors.extend(validate_conflicts(&seen, scopes.path(), scopes));
    errors
}

/// The errors for pairs of conflicting scopes at `path`. They show `scopes`, wherever the scopes come from.
fn validate_conflicts(seen: &BTreeSet<&str>, path: &Path<'_>, scopes: &FieldRef<'_>) -> ErrorList {
    let conflicts = CONFLICTS.iter().filter(|pair| pair.iter().all(|scope| seen.contains(scope)));
    let shown = || scopes.value().cloned().unwrap_or(Value::Null);
    conflicts.map(|_| Error::invalid(path, shown(), "conflicting scopes")).collect()
}

fn validate_selector(spec: &FieldRef<'_>, selector: &FieldRef<'_>, hard: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    let shown = selector.value().map(|value| show_internal("core.v1.ScopeSelector", value)).unwrap_or_default();
    let (expressions, unfit) = (selector.field("matchExpressions"), unfit_counts(hard));
    for requirement in expressions.items() {
        // The reference does not report which of the requirements is wrong.
        let requirement = FieldRef::new(requirement.value(), *expressions.path());
        let scope = requirement.field("scopeName");
        if !SCOPES.contains(&scope.text()) {
            errors.push(scope.invalid("unsupported scope"));
        }
        let why = "unsupported scope applied to resource";
        let unfit = unfit.get(scope.text()).copied().unwrap_or_default();
        errors.push_times(ErrorType::Invalid, unfit, || {
            Error::invalid(expressions.path(), Value::Null, why).shown_as(shown.clone())
        });
        errors.extend(validate_requirement(&requirement));
        let name = requirement.value().map(|requirement| requirement.str_at(&["scopeName"]));
        seen.extend(name);
    }
    errors.extend(validate_conflicts(&seen, expressions.path(), &spec.field("scopes")));
    errors
}

fn validate_requirement(requirement: &FieldRef<'_>) -> ErrorList {
    const ONLY_EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                               ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                               ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let mut errors = ErrorList::new();
    let (scope, operator) = (requirement.field("scopeName"), requirement.field("operator"));
    let values = requirement.field("values");
    let has_no_values =
        SCOPES.contains(&scope.text()) && !matches!(scope.text(), "PriorityClass" | "VolumeAttributesClass");
    if has_no_values && operator.text() != "Exists" {
        errors.push(operator.invalid_as_json(ONLY_EXISTS));
    }
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            errors.push(values.required(why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            errors.push(values.invalid(why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        _ => errors.push(operator.invalid_as_json("not a valid selector operator")),
    }
    errors
}
