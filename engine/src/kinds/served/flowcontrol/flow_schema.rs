//! FlowSchema, flowcontrol.apiserver.k8s.io/v1, and v1beta3 in older minor versions: assigns requests to priority
//! levels.
//!
//! Objects are stored and validated, but this server schedules requests in another way.
//!
//! Source: `pkg/apis/flowcontrol/validation` and `pkg/registry/flowcontrol/flowschema`, release 1.37.

use std::cmp::Ordering;

use crate::crd::{Column, Scope};
use crate::kinds::strategy::{Cell, Table};
use crate::kinds::{Kind, flow_control, metadata, semantic, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const DEFAULT_PRECEDENCE: i64 = 1000;
const PRECEDENCE_MAX: i64 = 10000;
const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const SUBJECT_KINDS: [&str; 3] = ["Group", "ServiceAccount", "User"];

pub static KINDS: [&Kind; 2] = [&V1, &V1BETA3];

static V1: Kind = form();
/// Served up to 1.31, by default.
static V1BETA3: Kind = Kind { is_default: true, ..form().former("v1beta3") };

const fn form() -> Kind {
    Kind {
        plural: "flowschemas",
        singular: "flowschema",
        scope: Scope::Cluster,
        status: true,
        example: "metadata: {name: example}\nspec:\n  priorityLevelConfiguration: {name: workload-low}\n  rules:\n  - subjects: [{kind: User, user: {name: jane}}]\n    \
                  nonResourceRules: [{verbs: [get], nonResourceURLs: [/version]}]",
        forms: &KINDS,
        ..Kind::new(flow_control::GROUP, "v1", "FlowSchema", &STRATEGY)
    }
}

static STRATEGY: flow_control::FlowControlStrategy = flow_control::FlowControlStrategy {
    set_defaults,
    convert: |_, _| None,
    validate,
    table,
    row_order: Some(by_precedence),
};

/// The order in which requests are matched: by precedence, then by name.
fn by_precedence(one: &Value, other: &Value) -> Ordering {
    let key =
        |schema: &'_ Value| schema.at(&["spec", "matchingPrecedence"]).and_then(Value::as_i64).unwrap_or_default();
    let name = |schema| Value::str_at(schema, &["metadata", "name"]);
    key(one).cmp(&key(other)).then_with(|| name(one).cmp(name(other)))
}

fn set_defaults(object: &mut Value) {
    let spec = object.make_object().entry("spec").make_object();
    let precedence = spec.entry("matchingPrecedence");
    if matches!(precedence, Value::Null | Value::Int(0)) {
        *precedence = Value::Int(DEFAULT_PRECEDENCE);
    }
}

fn table() -> Table {
    let columns = ["PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"];
    let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
    let columns = std::iter::once(name).chain(columns.map(|name| Column::string(name, "")));
    Table { columns: columns.collect(), cells }
}

fn cells(object: &Value) -> Vec<Cell> {
    let method = object.at(&["spec", "distinguisherMethod"]).map_or("<none>", |method| method.str_at(&["type"]));
    let conditions = object.items_at(&["status", "conditions"]);
    let dangling = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Dangling");
    let row = vec![
        Cell::text(object.str_at(&["spec", "priorityLevelConfiguration", "name"])),
        Cell::Value(object.at(&["spec", "matchingPrecedence"]).cloned().unwrap_or(Value::Int(0))),
        Cell::text(method),
    ];
    let mut cells = Cell::named(object, row);
    cells.push(Cell::text(dangling.map_or("?", |condition| condition.str_at(&["status"]))));
    cells
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let name = object.str_at(&["metadata", "name"]);
    errors.extend(validate_spec(name, &spec));
    let fixed = flow_control::mandatory_spec("FlowSchema", name);
    if fixed.is_some_and(|fixed| !semantic::equal_untyped(spec.value(), Some(fixed))) {
        let shown = spec.value().map(|spec| show_internal("flowcontrol.v1.FlowSchemaSpec", spec)).unwrap_or_default();
        errors.push(spec.invalid(format!("spec of '{name}' must equal the fixed value")).shown_as(shown));
    }
    errors.extend(flow_control::validate_conditions(&root.field("status")));
    errors
}

fn validate_spec(name: &str, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let precedence = spec.field("matchingPrecedence");
    if precedence.int() <= 0 {
        errors.push(precedence.invalid("must be a positive value"));
    }
    if precedence.int() > PRECEDENCE_MAX {
        errors.push(precedence.invalid(format!("must not be greater than {PRECEDENCE_MAX}")));
    }
    if precedence.int() == 1 && name != "exempt" {
        errors.push(precedence.invalid("only the schema named 'exempt' may have matchingPrecedence 1"));
    }
    errors.extend(validate_method(&spec.field("distinguisherMethod")));
    let level = spec.field("priorityLevelConfiguration");
    let level = level.field("name");
    match level.text() {
        "" => errors.push(level.required("must reference a priority level")),
        text => errors.extend(names::is_dns1123_subdomain(text).into_iter().map(|fault| level.invalid(fault))),
    }
    for rule in spec.field("rules").items() {
        errors.extend(validate_rule(&rule));
    }
    errors
}

fn validate_method(method: &FieldRef<'_>) -> Option<Error> {
    const METHODS: [&str; 2] = ["ByNamespace", "ByUser"];
    let value = method.value()?;
    let kind = method.field("type");
    // As in the reference, the error shows the struct that contains the type.
    let shown = || show_internal("flowcontrol.v1.FlowDistinguisherMethod", value);
    (!METHODS.contains(&kind.text())).then(|| kind.not_supported(&METHODS).shown_as(shown()))
}

fn validate_rule(rule: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let subjects = rule.field("subjects");
    if subjects.is_empty() {
        errors.push(subjects.required("subjects must contain at least one value"));
    }
    for subject in subjects.items() {
        errors.extend(validate_subject(&subject));
    }
    let (resources, paths) = (rule.field("resourceRules"), rule.field("nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        errors.push(rule.required("at least one of resourceRules and nonResourceRules has to be non-empty"));
    }
    for rule in resources.items() {
        errors.extend(validate_resources(&rule));
    }
    for rule in paths.items() {
        errors.extend(validate_paths(&rule));
    }
    errors
}

fn validate_subject(subject: &FieldRef<'_>) -> ErrorList {
    const WAYS: [(&str, &str); 3] = [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")];
    let mut errors = ErrorList::new();
    let kind = subject.field("kind");
    let Some((own, _)) = WAYS.iter().find(|(_, way)| *way == kind.text()) else {
        errors.push(kind.not_supported(&SUBJECT_KINDS));
        return errors;
    };
    let who = subject.field(own);
    if who.is_set() {
        errors.extend(validate_who(&who, *own == "serviceAccount"));
    } else {
        errors.push(who.required(format!("{own} is required when subject kind is '{}'", kind.text())));
    }
    for (name, way) in WAYS.iter().filter(|(name, _)| name != own) {
        let other = subject.field(name);
        if other.is_set() {
            errors.push(other.forbidden(format!("{name} is forbidden when subject kind is not '{way}'")));
        }
    }
    errors
}

fn validate_who(who: &FieldRef<'_>, is_account: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = who.field("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else if is_account && name.text() != "*" {
        errors.extend(names::is_dns1123_subdomain(name.text()).into_iter().map(|fault| name.invalid(fault)));
    }
    if is_account {
        let namespace = who.field("namespace");
        match namespace.text() {
            "" => errors.push(namespace.required("must specify namespace for service account")),
            text => errors.extend(names::is_dns1123_label(text).into_iter().map(|fault| namespace.invalid(fault))),
        }
    }
    errors
}

/// Checks that a list with a star has no other items.
fn validate_star(list: &FieldRef<'_>, others: &str) -> Option<Error> {
    let has_more = list.len() > 1 && list.texts().any(|text| text == "*");
    has_more.then(|| list.invalid(format!("if '*' is present, must not specify other {others}")))
}

fn has_star(list: &FieldRef<'_>) -> bool {
    list.texts().any(|text| text == "*")
}

fn validate_verbs(verbs: &FieldRef<'_>) -> Option<Error> {
    if verbs.is_empty() {
        return Some(verbs.required("verbs must contain at least one value"));
    }
    if has_star(verbs) {
        return validate_star(verbs, "verbs");
    }
    let unknown = verbs.texts().any(|verb| !VERBS.contains(&verb));
    unknown.then(|| verbs.not_supported(&VERBS))
}

fn validate_resources(rule: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(validate_verbs(&rule.field("verbs")));
    for (name, one, others) in [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")] {
        let list = rule.field(name);
        if list.is_empty() {
            errors.push(list.required(format!("resource rules must supply at least one {one}")));
        } else {
            errors.extend(validate_star(&list, others));
        }
    }
    let namespaces = rule.field("namespaces");
    if namespaces.is_empty() && !rule.field("clusterScope").is_true() {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(namespaces.required(why));
    } else if has_star(&namespaces) {
        errors.extend(validate_star(&namespaces, "namespaces"));
    } else {
        for namespace in namespaces.items() {
            for fault in names::is_dns1123_label(namespace.text()) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
                errors.push(namespace.invalid(why));
            }
        }
    }
    errors
}

fn validate_paths(rule: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.extend(validate_verbs(&rule.field("verbs")));
    let urls = rule.field("nonResourceURLs");
    if urls.is_empty() {
        errors.push(urls.required("nonResourceURLs must contain at least one value"));
    } else if has_star(&urls) {
        errors.extend(validate_star(&urls, "non-resource URLs"));
    } else {
        for url in urls.items() {
            errors.extend(path_fault(url.text()).map(|fault| url.invalid(fault)));
        }
    }
    errors
}

/// The fault of a path, which may end in a star.
fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("must not be empty");
    }
    if path == "/" {
        return None;
    }
    if !path.starts_with('/') {
        return Some("must start with slash");
    }
    if path.contains(' ') {
        return Some("must not contain white-space");
    }
    if path.contains("//") {
        return Some("must not contain double slash");
    }
    let stars = path.matches('*').count();
    let is_odd = stars > 1 || (stars == 1 && !path.ends_with("/*"));
    is_odd.then_some("wildcard can only do suffix matching")
}
