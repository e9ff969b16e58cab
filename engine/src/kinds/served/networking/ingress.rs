//! Ingress, networking.k8s.io/v1.
//!
//! Source: `pkg/registry/networking/ingress` and `pkg/apis/networking/validation` of Kubernetes 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::checks::{named, port_number};
use crate::kinds::ingress_classes::{CLASS_ANNOTATION, class, class_annotation};
use crate::kinds::network::addresses::parse_lenient;
use crate::kinds::network::names::{is_port_name, is_wildcard_subdomain};
use crate::kinds::network::{check_balancer, ingress_warnings, shown_addresses};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata, prepare};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::object;
use crate::value::{Value, go_quote};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "ingresses",
    singular: "ingress",
    short_names: &["ing"],
    status: true,
    example: r"
metadata: {name: example}
spec:
  ingressClassName: nginx
  rules:
  - host: example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
",
    ..Kind::new("networking.k8s.io", "v1", "Ingress", &Ingress)
}];

/// The number of hosts that the table shows.
pub const HOSTS_SHOWN_MAX: usize = 3;

struct Ingress;

impl Strategy for Ingress {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        object.make_object().insert("status", object! { "loadBalancer" => object! {} });
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(version.minor, object, None);
        errors.extend(check_class_annotation(object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let kept = if subresource == Subresource::Status { "spec" } else { "status" };
        new.make_object().insert(kept, old.get(kept).cloned().unwrap_or_else(|| object! {}));
        if subresource != Subresource::Status && new.get("spec") != old.get("spec") {
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
        if subresource == Subresource::Status {
            let root = FieldRef::root(new);
            let status = root.field("status");
            let balancer = status.field("loadBalancer");
            let known = old.items_at(&["status", "loadBalancer", "ingress"]);
            errors.extend(check_balancer(version.minor, &balancer.field("ingress"), known, |_| ErrorList::new()));
            return errors;
        }
        errors.extend(validate(version.minor, new, Some(old)));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        if subresource == Subresource::Status {
            return ingress_warnings(new);
        }
        let is_old_way = class_annotation(new).is_some() && class(new).is_none() && old.is_none();
        let name = go_quote(CLASS_ANNOTATION);
        let warning = || format!("annotation {name} is deprecated, please use 'spec.ingressClassName' instead");
        is_old_way.then(warning).into_iter().collect()
    }

    fn stored_as(&self) -> Option<&'static str> {
        Some("ingress")
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }
}

fn check_class_annotation(ingress: &Value) -> Option<Error> {
    let (annotation, class) = (class_annotation(ingress)?, class(ingress)?);
    let annotations = Path::new("annotations");
    let why = "must match `ingressClassName` when both are specified";
    (annotation != class).then(|| Error::invalid(&annotations.child(CLASS_ANNOTATION), annotation, why))
}

/// The faults that an older object may keep.
struct Forgiven {
    secret_names: bool,
    wildcard_rules: bool,
    service_names: NameCheck,
}

/// A check that returns the errors of a name.
type NameCheck = fn(&str) -> Vec<String>;

impl Forgiven {
    fn of(minor: Minor, old: Option<&Value>) -> Self {
        let is_relaxed = minor.opens(Gate::RelaxedServiceNameValidation) || old.is_some_and(names_relaxed);
        let service_names: NameCheck = if is_relaxed { names::is_dns1123_label } else { names::is_dns1035_label };
        let Some(old) = old else { return Forgiven { secret_names: false, wildcard_rules: false, service_names } };
        let root = FieldRef::root(old);
        let spec = root.field("spec");
        let has_bad_secret = |tls: FieldRef<'_>| !check_secret_name(&tls.field("secretName")).is_empty();
        // By the strict names of services, whichever are allowed otherwise, as in the reference.
        let is_bad_wildcard = |rule: FieldRef<'_>| {
            let is_wildcard = rule.field("host").text().contains('*');
            is_wildcard && !check_http(&rule.field("http"), names::is_dns1035_label).is_empty()
        };
        let (secrets, rules) = (spec.field("tls"), spec.field("rules"));
        Forgiven {
            secret_names: secrets.items().any(has_bad_secret),
            wildcard_rules: rules.items().any(is_bad_wildcard),
            service_names,
        }
    }
}

/// Whether a backend of `ingress` is a service whose name is only valid under the relaxed rule, such as one that begins
/// with a digit.
fn names_relaxed(ingress: &Value) -> bool {
    let root = FieldRef::root(ingress);
    let spec = root.field("spec");
    let is_relaxed = |backend: FieldRef<'_>| {
        let service = backend.field("service");
        let name = service.field("name");
        let name = name.text();
        names::is_dns1123_label(name).is_empty() && !names::is_dns1035_label(name).is_empty()
    };
    is_relaxed(spec.field("defaultBackend"))
        || spec.field("rules").items().any(|rule| {
            let http = rule.field("http");
            http.field("paths").items().any(|path| is_relaxed(path.field("backend")))
        })
}

fn validate(minor: Minor, object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
    let forgiven = Forgiven::of(minor, old);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let (rules, backend, class) = (spec.field("rules"), spec.field("defaultBackend"), spec.field("ingressClassName"));
    if rules.is_empty() && !backend.is_set() {
        let shown = rules.value().cloned().unwrap_or_default();
        errors.push(Error::invalid(spec.path(), shown, "either `defaultBackend` or `rules` must be specified"));
    }
    if backend.is_set() {
        errors.extend(check_backend(&backend, forgiven.service_names));
    }
    for rule in rules.items() {
        errors.extend(check_rule(&rule, &forgiven));
    }
    for tls in spec.field("tls").items() {
        let hosts = tls.field("hosts");
        for host in hosts.items() {
            errors.extend(check_host(&host));
        }
        if !forgiven.secret_names {
            errors.extend(check_secret_name(&tls.field("secretName")));
        }
    }
    if class.is_set() {
        errors.extend(named(&class, names::is_dns1123_subdomain));
    }
    errors
}

fn check_host(host: &FieldRef<'_>) -> ErrorList {
    if host.text().contains('*') {
        named(host, is_wildcard_subdomain)
    } else {
        named(host, names::is_dns1123_subdomain)
    }
}

fn check_secret_name(name: &FieldRef<'_>) -> ErrorList {
    match name.text() {
        "" => ErrorList::new(),
        _ => named(name, names::is_dns1123_subdomain),
    }
}

fn check_rule(rule: &FieldRef<'_>, forgiven: &Forgiven) -> ErrorList {
    let host = rule.field("host");
    let mut errors = ErrorList::new();
    if !host.text().is_empty() {
        if parse_lenient(host.text()).is_some() {
            errors.push(host.invalid("must be a DNS name, not an IP address"));
        }
        errors.extend(check_host(&host));
    }
    if !(host.text().contains('*') && forgiven.wildcard_rules) {
        errors.extend(check_http(&rule.field("http"), forgiven.service_names));
    }
    errors
}

fn check_http(http: &FieldRef<'_>, service_names: NameCheck) -> ErrorList {
    let mut errors = ErrorList::new();
    if !http.is_set() {
        return errors;
    }
    let paths = http.field("paths");
    if paths.is_empty() {
        errors.push(paths.required(""));
    }
    for path in paths.items() {
        errors.extend(check_path(&path, service_names));
    }
    errors
}

fn check_path(item: &FieldRef<'_>, service_names: NameCheck) -> ErrorList {
    let (path, kind) = (item.field("path"), item.field("pathType"));
    if !kind.is_set() {
        return kind.required("pathType must be specified").into();
    }
    let text = path.text();
    let invalid = |why: String| Error::invalid(path.path(), text, why);
    let mut errors = ErrorList::new();
    let is_absolute = text.starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.push(invalid("must be an absolute path".to_owned()));
            }
            let parts = ["//", "/./", "/../", "%2f", "%2F"].into_iter().filter(|part| text.contains(part));
            errors.extend(parts.map(|part| invalid(format!("must not contain '{part}'"))));
            let ends = ["/..", "/."].into_iter().filter(|end| text.ends_with(end));
            errors.extend(ends.map(|end| invalid(format!("cannot end with '{end}'"))));
        }
        "ImplementationSpecific" if !text.is_empty() && !is_absolute => {
            errors.push(invalid("must be an absolute path".to_owned()));
        }
        "ImplementationSpecific" => {}
        _ => errors.push(kind.not_supported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    errors.extend(check_backend(&item.field("backend"), service_names));
    errors
}

fn check_backend(backend: &FieldRef<'_>, service_names: NameCheck) -> ErrorList {
    let (service, resource) = (backend.field("service"), backend.field("resource"));
    let invalid = |why: &str| Error::invalid(backend.path(), "", why);
    match (resource.is_set(), service.is_set()) {
        (true, true) => invalid("cannot set both resource and service backends").into(),
        (true, false) => check_resource(&resource),
        (false, true) => {
            let mut errors = check_required(&service.field("name"), service_names);
            errors.extend(check_backend_port(backend, &service.field("port")));
            errors
        }
        (false, false) => invalid("resource or service backend is required").into(),
    }
}

fn check_backend_port(backend: &FieldRef<'_>, port: &FieldRef<'_>) -> ErrorList {
    let (name, number) = (port.field("name"), port.field("number"));
    match (name.text(), number.int()) {
        ("", 0) => backend.required("port name or number is required").into(),
        ("", _) => port_number(&number).into_iter().collect(),
        (_, 0) => named(&name, is_port_name),
        _ => Error::invalid(backend.path(), "", "cannot set both port name & port number").into(),
    }
}

/// Validates a backend's reference to an object.
fn check_resource(resource: &FieldRef<'_>) -> ErrorList {
    let group = resource.field("apiGroup");
    let mut errors = ErrorList::new();
    if group.is_set() {
        errors.extend(named(&group, names::is_dns1123_subdomain));
    }
    for name in ["kind", "name"] {
        errors.extend(check_required(&resource.field(name), |name| names::is_path_segment(name, false)));
    }
    errors
}

fn check_required(text: &FieldRef<'_>, check: NameCheck) -> ErrorList {
    match text.text() {
        "" => text.required("").into(),
        _ => named(text, check),
    }
}

fn table() -> Table {
    let columns = vec![
        Column::string("Class", "The class of ingresses, which says who acts on it."),
        Column::string("Hosts", "The hosts that it has rules for."),
        Column::string("Address", "Where its load balancer is reached."),
        Column::string("Ports", "The ports that it is reached on."),
    ];
    Table::named(columns, |object| {
        let ports = if object.items_at(&["spec", "tls"]).is_empty() { "80" } else { "80, 443" };
        let shown = vec![
            Cell::text(class(object).unwrap_or("<none>")),
            Cell::text(&hosts(object)),
            Cell::text(&shown_addresses(object)),
            Cell::text(ports),
        ];
        Cell::named(object, shown)
    })
}

/// The first hosts, and the number of further rules, for the table.
fn hosts(object: &Value) -> String {
    let rules = object.items_at(&["spec", "rules"]);
    let mut hosts: Vec<&str> = Vec::new();
    let mut has_more = false;
    for host in rules.iter().map(|rule| rule.str_at(&["host"])) {
        has_more |= hosts.len() == HOSTS_SHOWN_MAX;
        if !has_more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match hosts.join(",") {
        text if text.is_empty() => "*".to_owned(),
        text if has_more => format!("{text} + {} more...", rules.len() - HOSTS_SHOWN_MAX),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn rules_for_wildcards_are_forgiven_by_strict_names() {
        let read = |host: &str, service: &str, path: &str| {
            let text = format!(
                "{{metadata: {{name: a, namespace: b}}, spec: {{rules: [{{host: '{host}', http: {{paths: [{{path: '{path}', \
                 pathType: Exact, backend: {{service: {{name: {service}, port: {{number: 80}}}}}}}}]}}}}]}}}}"
            );
            yaml::decode(text.as_bytes()).expect("YAML")
        };
        let is_forgiven = |host: &str, service: &str| {
            let old = read(host, service, "/");
            validate(Minor::NEWEST, &read(host, service, "x"), Some(&old)).is_empty()
        };
        assert!(is_forgiven("*.a.b", "1a"));
        assert!(!is_forgiven("*.a.b", "a"));
        assert!(!is_forgiven("a.b", "1a"));
    }
}
