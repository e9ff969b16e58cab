//! What the two kinds of `admissionregistration.k8s.io` with webhooks have in common: types, defaults, validation.
//!
//! Source: the types of `k8s.io/api/admissionregistration/v1`, defaults and validation of Kubernetes 1.37.

use std::collections::BTreeSet;

use super::strategy::{Cell, Strategy, Subresource, Table};
use super::{metadata, static_names};
use crate::cel::env::Expressions;
use crate::crd::definition::ServiceReference;
use crate::crd::validate::conversion::{
    KNOWN_REVIEW_VERSIONS, names_known_review_version, validate_review_versions, validate_service, validate_url,
};
use crate::crd::{Column, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::meta::selector::LabelSelector;
use crate::meta::{names, object_meta};
use crate::object;
use crate::policy::conditions;
use crate::policy::expression::CompileError;
use crate::value::Value;

pub const GROUP: &str = "admissionregistration.k8s.io";

/// A valid configuration.
pub const EXAMPLE: &str = r"
metadata: {name: example}
webhooks:
- name: check.example.com
  clientConfig: {url: 'https://example.com/check'}
  rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: ['*'], resources: [widgets]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Ignore
";

/// The valid values, sorted, as validation lists them.
const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
/// The side effects that a new webhook may declare.
const NO_SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const MATCH_CONDITIONS_MAX: usize = 64;
const TIMEOUT_SECONDS_MAX: i64 = 30;

/// The strategy of both kinds.
pub struct WebhookConfiguration {
    /// Whether its webhooks may change objects.
    pub is_mutating: bool,
}

impl Strategy for WebhookConfiguration {
    fn set_typed_defaults(&self, object: &mut Value) {
        set_defaults(object, self.is_mutating);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        object.make_object().entry("metadata").make_object().insert("generation", Value::Int(1));
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(version.minor, object);
        errors.extend(static_names::check_new_name(version, object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        count_generation(new, old);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        validate_update(version.minor, new, old)
    }

    fn counts_empty(&self) -> bool {
        true
    }

    fn warnings(&self, version: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        static_names::warnings(version, new, old)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }
}

/// The webhooks of a configuration.
fn webhooks(configuration: &Value) -> &[Value] {
    configuration.items_at(&["webhooks"])
}

fn texts<'v>(object: &'v Value, field: &str) -> Vec<&'v str> {
    object.items_at(&[field]).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// Sets the defaults of the webhooks in a configuration.
pub(super) fn set_defaults(configuration: &mut Value, is_mutating: bool) {
    const TIMEOUT_SECONDS: i64 = 10;
    const PORT: i64 = 443;
    let Some(Value::Array(webhooks)) = configuration.get_mut("webhooks") else { return };
    for webhook in webhooks {
        let fields = webhook.make_object();
        let mut set = |name: &str, value: Value| {
            if !fields.contains_key(name) {
                fields.insert(name, value);
            }
        };
        set("failurePolicy", Value::from("Fail"));
        set("matchPolicy", Value::from("Equivalent"));
        set("namespaceSelector", object! {});
        set("objectSelector", object! {});
        set("timeoutSeconds", Value::Int(TIMEOUT_SECONDS));
        if is_mutating {
            set("reinvocationPolicy", Value::from("Never"));
        }
        if let Some(Value::Array(rules)) = fields.get_mut("rules") {
            for rule in rules.iter_mut().map(Value::make_object).filter(|rule| !rule.contains_key("scope")) {
                rule.insert("scope", Value::from("*"));
            }
        }
        let service = webhook.at_mut(&["clientConfig", "service"]).and_then(Value::as_object_mut);
        if let Some(service) = service.filter(|service| !service.contains_key("port")) {
            service.insert("port", Value::Int(PORT));
        }
    }
}

/// The requirements of a configuration. Faults that the stored object has are not reported.
struct Requirements {
    no_side_effects: bool,
    known_review_version: bool,
    unique_names: bool,
    valid_label_values: bool,
    match_conditions: bool,
    /// The expressions that may continue to use what was available when they were written.
    expressions: BTreeSet<String>,
    /// The version of Kubernetes whose rules apply.
    minor: Minor,
}

impl Requirements {
    const OF_NEW: Requirements = Requirements {
        no_side_effects: true,
        known_review_version: true,
        unique_names: true,
        valid_label_values: true,
        match_conditions: true,
        expressions: BTreeSet::new(),
        minor: Minor::NEWEST,
    };

    /// Makes the requirements of an update: those that `old` does not meet itself are dropped.
    fn after(minor: Minor, old: &Value, new: &Value) -> Self {
        let hooks = webhooks(old);
        let mut seen = BTreeSet::new();
        let conditions = |configuration: &Value| -> Vec<Option<Value>> {
            webhooks(configuration).iter().map(|hook| hook.get("matchConditions").cloned()).collect()
        };
        Requirements {
            no_side_effects: hooks.iter().all(|hook| NO_SIDE_EFFECTS.contains(&hook.str_at(&["sideEffects"]))),
            known_review_version: hooks.iter().all(|hook| {
                let versions = review_versions(hook);
                versions.is_empty() || names_known_review_version(&versions)
            }),
            unique_names: hooks.iter().all(|hook| seen.insert(hook.str_at(&["name"]))),
            valid_label_values: !hooks.iter().any(|hook| {
                let path = Path::new("");
                let mut selectors = ["namespaceSelector", "objectSelector"].iter().filter_map(|name| hook.get(name));
                selectors.any(|selector| !LabelSelector::validate(selector, true, &path).is_empty())
            }),
            match_conditions: conditions(old) != conditions(new),
            expressions: hooks
                .iter()
                .flat_map(|hook| hook.items_at(&["matchConditions"]))
                .map(|condition| condition.str_at(&["expression"]).to_owned())
                .collect(),
            minor,
        }
    }
}

fn review_versions(webhook: &Value) -> Vec<String> {
    texts(webhook, "admissionReviewVersions").into_iter().map(str::to_owned).collect()
}

/// Validates a new configuration.
fn validate(minor: Minor, configuration: &Value) -> ErrorList {
    validate_to(configuration, &Requirements { minor, ..Requirements::OF_NEW })
}

/// Validates an update of a configuration.
fn validate_update(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    validate_to(new, &Requirements::after(minor, old, new))
}

fn validate_to(configuration: &Value, required: &Requirements) -> ErrorList {
    let name_check = names::name_is_dns1123_subdomain;
    let mut errors = object_meta::validate(metadata::of(configuration), false, name_check, &metadata::METADATA);
    let path = Path::new("webhooks");
    let mut seen = BTreeSet::new();
    let if_none = format!("must specify one of {}", KNOWN_REVIEW_VERSIONS.join(", "));
    for (index, webhook) in webhooks(configuration).iter().enumerate() {
        let path = path.index(index);
        errors.extend(validate_webhook(webhook, required, &path));
        let at = path.child("admissionReviewVersions");
        let versions = review_versions(webhook);
        errors.extend(validate_review_versions(&versions, required.known_review_version, &if_none, &at));
        let name = webhook.str_at(&["name"]);
        if required.unique_names && !name.is_empty() && !seen.insert(name) {
            errors.push(Error::duplicate(&path.child("name"), name));
        }
    }
    errors
}

fn validate_webhook(webhook: &Value, required: &Requirements, path: &Path<'_>) -> ErrorList {
    let mut errors = validate_name(webhook.str_at(&["name"]), &path.child("name"));
    let rules = path.child("rules");
    for (index, rule) in webhook.items_at(&["rules"]).iter().enumerate() {
        errors.extend(validate_rule(rule, &rules.index(index)));
    }
    let choice = |name: &str, choices: &[&str]| {
        let found = webhook.get(name).and_then(Value::as_str)?;
        (!choices.contains(&found)).then(|| Error::not_supported(&path.child(name), found, choices))
    };
    errors.extend(choice("failurePolicy", &FAILURE_POLICIES));
    errors.extend(choice("matchPolicy", &MATCH_POLICIES));
    let classes: &[&str] = if required.no_side_effects { &NO_SIDE_EFFECTS } else { &SIDE_EFFECTS };
    if webhook.get("sideEffects").is_none_or(Value::is_null) {
        let why = format!("must specify one of {}", classes.join(", "));
        errors.push(Error::required(&path.child("sideEffects"), why));
    }
    errors.extend(choice("sideEffects", classes));
    let timeout = webhook.get("timeoutSeconds").and_then(Value::as_i64);
    if let Some(seconds) = timeout.filter(|seconds| !(1..=TIMEOUT_SECONDS_MAX).contains(seconds)) {
        let why = format!("the timeout value must be between 1 and {TIMEOUT_SECONDS_MAX} seconds");
        errors.push(Error::invalid(&path.child("timeoutSeconds"), seconds, why));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = webhook.get(name) {
            errors.extend(LabelSelector::validate(selector, required.valid_label_values, &path.child(name)));
        }
    }
    errors.extend(choice("reinvocationPolicy", &REINVOCATION_POLICIES));
    errors.extend(validate_client_config(webhook, &path.child("clientConfig")));
    if required.match_conditions {
        let conditions = webhook.items_at(&["matchConditions"]);
        let fault = |text: &str| {
            let is_known = required.expressions.contains(text);
            conditions::fault(required.minor, text, if is_known { Expressions::Stored } else { Expressions::New })
        };
        errors.extend(validate_match_conditions(conditions, &fault, &path.child("matchConditions")));
    }
    errors
}

/// Validates the name of a webhook, which must have at least three segments.
fn validate_name(name: &str, path: &Path<'_>) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    let faults = names::is_dns1123_subdomain(name);
    if !faults.is_empty() {
        return Error::invalid(path, name, faults.join(",")).into();
    }
    let why = "should be a domain with at least three segments separated by dots";
    if name.split('.').count() < 3 { Error::invalid(path, name, why).into() } else { ErrorList::new() }
}

pub(super) fn validate_rule(rule: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, others) in [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let (found, at) = (texts(rule, name), path.child(name));
        if found.is_empty() {
            errors.push(Error::required(&at, ""));
        }
        if found.len() > 1 && found.contains(&"*") {
            let why = format!("if '*' is present, must not specify other {others}");
            errors.push(Error::invalid(&at, rule.items_at(&[name]).to_vec(), why));
        }
        for (index, text) in found.iter().enumerate() {
            match name {
                "operations" if !OPERATIONS.contains(text) => {
                    errors.push(Error::not_supported(&at.index(index), *text, &OPERATIONS));
                }
                "apiVersions" if text.is_empty() => errors.push(Error::required(&at.index(index), "")),
                _ => {}
            }
        }
    }
    errors.extend(validate_resources(rule.items_at(&["resources"]), &path.child("resources")));
    let scope = rule.get("scope").and_then(Value::as_str).filter(|scope| !SCOPES.contains(scope));
    errors.extend(scope.map(|scope| Error::not_supported(&path.child("scope"), scope, &SCOPES)));
    errors
}

/// Validates the resources of a rule, and that none repeats what another one covers.
fn validate_resources(resources: &[Value], path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if resources.is_empty() {
        errors.push(Error::required(path, ""));
    }
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    let (mut all, mut all_main, mut last_is_main) = (false, false, false);
    for (index, resource) in resources.iter().map(|resource| resource.as_str().unwrap_or_default()).enumerate() {
        let at = path.index(index);
        all |= resource == "*/*";
        all_main |= resource == "*";
        let Some((main, subresource)) = resource.split_once('/') else {
            match resource {
                "" => errors.push(Error::required(&at, "")),
                // As in the reference, only the last one counts.
                _ => last_is_main = resource != "*",
            }
            continue;
        };
        if whole.contains(main) {
            let why = format!("if '{main}/*' is present, must not specify {resource}");
            errors.push(Error::invalid(&at, resource, why));
        }
        if everywhere.contains(subresource) {
            let why = format!("if '*/{subresource}' is present, must not specify {resource}");
            errors.push(Error::invalid(&at, resource, why));
        }
        if subresource == "*" {
            whole.insert(main);
        }
        if main == "*" {
            everywhere.insert(subresource);
        }
    }
    let invalid = |why: &str| Error::invalid(path, resources.to_vec(), why);
    if resources.len() > 1 && all {
        errors.push(invalid("if '*/*' is present, must not specify other resources"));
    }
    if all_main && last_is_main {
        errors.push(invalid("if '*' is present, must not specify other resources without subresources"));
    }
    errors
}

fn validate_client_config(webhook: &Value, path: &Path<'_>) -> ErrorList {
    let config = webhook.get("clientConfig").unwrap_or(&Value::Null);
    match (config.get("url").and_then(Value::as_str), config.get("service")) {
        (Some(url), None) => validate_url(url, &path.child("url")),
        (None, Some(service)) => {
            let port = service.get("port").and_then(Value::as_i64).unwrap_or_default();
            let service = ServiceReference {
                namespace: service.str_at(&["namespace"]).to_owned(),
                name: service.str_at(&["name"]).to_owned(),
                path: service.get("path").and_then(Value::as_str).map(str::to_owned),
                port: i32::try_from(port).ok(),
            };
            validate_service(&service, &path.child("service"))
        }
        _ => Error::required(path, "exactly one of url or service is required").into(),
    }
}

pub(super) fn validate_match_conditions(
    conditions: &[Value],
    fault: &dyn Fn(&str) -> Option<CompileError>,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    if conditions.len() > MATCH_CONDITIONS_MAX {
        errors.push(Error::too_many(path, conditions.len() as i64, MATCH_CONDITIONS_MAX as i64));
    }
    let mut seen = BTreeSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let (expression, at) = (condition.str_at(&["expression"]).trim(), path.child("expression"));
        match expression {
            "" => errors.push(Error::required(&at, "")),
            _ => {
                errors.extend(fault(expression).map(|error| error.into_field_error(&at, expression)));
            }
        }
        let (name, at) = (condition.str_at(&["name"]), path.child("name"));
        if name.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        let faults = names::is_qualified_name(name).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&at, name, fault)));
        if !seen.insert(name) {
            errors.push(Error::duplicate(&at, name));
        }
    }
    errors
}

/// Increments the generation if the webhooks have changed.
fn count_generation(new: &mut Value, old: &Value) {
    let generation = old.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    let is_changed = new.get("webhooks") != old.get("webhooks");
    let generation = generation.saturating_add(i64::from(is_changed));
    new.make_object().entry("metadata").make_object().insert("generation", Value::Int(generation));
}

/// The table of configurations.
fn table() -> Table {
    const WEBHOOKS: &str = "Webhooks indicates the number of webhooks registered in this configuration";
    Table::named(vec![Column { type_: "integer".to_owned(), ..Column::string("Webhooks", WEBHOOKS) }], |object| {
        Cell::named(object, vec![Cell::count(webhooks(object).len())])
    })
}
