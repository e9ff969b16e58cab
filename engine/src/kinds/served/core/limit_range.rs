//! LimitRange, core/v1: how much each pod, container or claim of a namespace may request.
//!
//! Source: `pkg/apis/core` and `pkg/registry/core/limitrange` of Kubernetes 1.36, with the types of 1.37.

use std::collections::{BTreeSet, HashSet};

use crate::crd::ServedVersion;
use crate::kinds::storage::columns;
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::{Kind, defaults, metadata, resources};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::quantity::Quantity;
use crate::value::Value;

const TYPES: [&str; 3] = ["Container", "PersistentVolumeClaim", "Pod"];
const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
/// The largest amount that can be expressed in thousandths.
const MILLI_MAX: i64 = i64::MAX / 1000;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "limitranges",
    singular: "limitrange",
    short_names: &["limits"],
    example: "metadata: {name: example}\nspec: {limits: [{type: Container, max: {cpu: '2'}, default: {cpu: '1'}}]}",
    ..Kind::new("", "v1", "LimitRange", &LimitRange)
}];

struct LimitRange;

impl Strategy for LimitRange {
    fn set_typed_defaults(&self, object: &mut Value) {
        let Some(spec) = defaults::field(object, "spec") else { return };
        for limit in defaults::items(spec, "limits") {
            if limit.str_at(&["type"]) == "Container" {
                inherit(limit, "default", "max");
                inherit(limit, "defaultRequest", "default");
                inherit(limit, "defaultRequest", "min");
            }
            LISTS.iter().for_each(|list| resources::set_list_defaults(defaults::field(limit, list)));
        }
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let mut types = HashSet::new();
        for limit in FieldRef::root(object).field("spec").field("limits").items() {
            let type_ = limit.field("type");
            errors.extend(validate_type(&type_));
            if !types.insert(type_.text().to_owned()) {
                errors.push(type_.duplicate_as_json());
            }
            errors.extend(validate_limit(&limit));
        }
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, _: &Value) -> ErrorList {
        self.validate_create(version, new)
    }

    fn names_nameless(&self) -> bool {
        true
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(columns::plain_table())
    }
}

/// Copies to the list `to` the amounts of `from` that it lacks.
fn inherit(limit: &mut Value, to: &str, from: &str) {
    let Some(amounts) = limit.get(from).and_then(Value::as_object).filter(|amounts| !amounts.is_empty()).cloned()
    else {
        return;
    };
    let list = defaults::structure(limit, to).make_object();
    for (name, amount) in amounts {
        if !list.contains_key(&name) {
            list.insert(name, amount);
        }
    }
}

fn validate_type(type_: &FieldRef<'_>) -> ErrorList {
    let faults = names::is_qualified_name(type_.text());
    if faults.is_empty() && !type_.text().contains('/') && !TYPES.contains(&type_.text()) {
        return [type_.invalid_as_json("must be a standard limit type or fully qualified")].into_iter().collect();
    }
    faults.into_iter().map(|fault| type_.invalid_as_json(fault)).collect()
}

fn validate_limit(limit: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let type_ = limit.field("type").text().to_owned();
    let mut used = BTreeSet::new();
    for list in LISTS {
        if list == "maxLimitRequestRatio" {
            errors.extend(validate_claim(limit, &type_));
        }
        let amounts = limit.field(list);
        if type_ == "Pod" && matches!(list, "default" | "defaultRequest") {
            if !amounts.is_empty() {
                errors.push(amounts.forbidden("may not be specified when `type` is 'Pod'"));
            }
            continue;
        }
        for (name, amount) in amounts.entries() {
            errors.extend(validate_name(&type_, name, amount.path()));
            used.insert(name.to_owned());
        }
    }
    for name in &used {
        errors.extend(Amounts::of(limit, name, &type_).validate(limit, name));
    }
    errors
}

fn validate_name(type_: &str, name: &str, path: &Path<'_>) -> ErrorList {
    match type_ {
        "Pod" | "Container" => resources::validate_container_name(name, path),
        _ => resources::validate_name(name, path),
    }
}

/// Checks that a limit for claims limits their storage.
fn validate_claim(limit: &FieldRef<'_>, type_: &str) -> Option<Error> {
    let has = |list: &str| limit.field(list).field("storage").is_set();
    let why = "either minimum or maximum storage value is required, but neither was provided";
    let is_unlimited = type_ == "PersistentVolumeClaim" && !has("min") && !has("max");
    is_unlimited.then(|| Error::required(&limit.path().child("limits"), why))
}

/// A limit's amounts for one resource.
struct Amounts {
    min: Option<Quantity>,
    max: Option<Quantity>,
    default: Option<Quantity>,
    request: Option<Quantity>,
    ratio: Option<Quantity>,
}

impl Amounts {
    fn of(limit: &FieldRef<'_>, name: &str, type_: &str) -> Self {
        let amount = |list: &str| {
            let list = limit.field(list);
            list.value().and_then(|amounts| amounts.get(name)).map(|amount| resources::parse(Some(amount)))
        };
        let of_container = |list: &str| amount(list).filter(|_| type_ != "Pod");
        Amounts {
            min: amount("min"),
            max: amount("max"),
            default: of_container("default"),
            request: of_container("defaultRequest"),
            ratio: amount("maxLimitRequestRatio"),
        }
    }

    /// Checks the order of the amounts: min, default request, default, max.
    fn validate(&self, limit: &FieldRef<'_>, name: &str) -> ErrorList {
        let mut errors = ErrorList::new();
        let mut check =
            |list: &str, low: (&Option<Quantity>, &str), high: (&Option<Quantity>, &str), shows_low: bool| {
                let ((Some(low), low_name), (Some(high), high_name)) = (low, high) else { return };
                if low > high {
                    let why = format!("{low_name} value {low} is greater than {high_name} value {high}");
                    let shown = if shows_low { low } else { high };
                    errors.push(Error::invalid(&limit.path().child(list).key(name), shown.to_string(), why));
                }
            };
        let (min, max) = ((&self.min, "min"), (&self.max, "max"));
        let (default, request) = ((&self.default, "default"), (&self.request, "default request"));
        check("min", min, max, true);
        check("defaultRequest", min, request, false);
        check("defaultRequest", request, max, true);
        check("defaultRequest", request, (&self.default, "default limit"), true);
        check("default", min, default, true);
        check("default", default, max, false);
        errors.extend(self.validate_ratio(limit, name));
        if let (Some(default), Some(request)) = (&self.default, &self.request)
            && !resources::is_overcommit_allowed(name)
            && default != request
        {
            let why = format!("default value {default} must equal to defaultRequest value {request} in {name}");
            errors.push(Error::invalid(&limit.path().child("defaultRequest").key(name), request.to_string(), why));
        }
        errors
    }

    /// Checks that the ratio of limits to requests is at least one, and not more than max divided by min.
    fn validate_ratio(&self, limit: &FieldRef<'_>, name: &str) -> ErrorList {
        let mut errors = ErrorList::new();
        let Some(ratio) = &self.ratio else { return errors };
        let list = limit.path().child("maxLimitRequestRatio");
        let at = list.key(name);
        if *ratio < Quantity::from_i64(1) {
            errors.push(Error::invalid(&at, ratio.to_string(), format!("ratio {ratio} is less than 1")));
        }
        let (Some(min), Some(max)) = (&self.min, &self.max) else { return errors };
        let are_small = [ratio, min, max].iter().all(|amount| amount.value() < MILLI_MAX);
        let (value, bound) = if are_small {
            (ratio.milli_value() as f64 / 1000.0, max.milli_value() as f64 / min.milli_value() as f64)
        } else {
            (ratio.value() as f64, max.value() as f64 / min.value() as f64)
        };
        if value > bound {
            let why = format!("ratio {ratio} is greater than max/min = {bound:.6}");
            errors.push(Error::invalid(&at, ratio.to_string(), why));
        }
        errors
    }
}
