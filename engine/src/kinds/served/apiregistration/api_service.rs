//! APIService, apiregistration.k8s.io/v1.
//!
//! There is one for each version of each group that the server serves itself. Others are stored and validated, but
//! never available: this server does not aggregate other servers.
//!
//! Source: `pkg/apis/apiregistration` and `pkg/registry/apiservice` of `k8s.io/kube-aggregator`, release 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::api_groups::{self, MANAGED_LABEL, available_here};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Computed, Kind, defaults, metadata, prepare};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::{names, object_meta};
use crate::object;
use crate::value::{Map, Value, base64, go_quote};

const GROUP: &str = "apiregistration.k8s.io";

const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "apiservices",
    singular: "apiservice",
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    status: true,
    computed: Some(Computed::Services(local)),
    example: r"
metadata: {name: v1beta1.metrics.example.com}
spec:
  group: metrics.example.com
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: default, name: metrics}
",
    ..Kind::new(GROUP, "v1", "APIService", &ApiService)
}];

/// The object for a version of a group that this server serves itself. `now` is RFC 3339.
fn local(group: &str, version: &str, is_built_in: bool, now: &str) -> Value {
    let group_priority = api_groups::priority(group, is_built_in);
    let version_priority = api_groups::version_priority(group, version, is_built_in);
    let mut spec = object! {
        "version" => version,
        "groupPriorityMinimum" => group_priority,
        "versionPriority" => version_priority,
    };
    if !group.is_empty() {
        spec.make_object().insert("group", Value::from(group));
    }
    let managed = if is_built_in { "onstart" } else { "true" };
    let managed_by = object! {
        "manager" => "kube-apiserver",
        "operation" => "Update",
        "apiVersion" => format!("{GROUP}/v1"),
        "time" => now,
        "fieldsType" => "FieldsV1",
        "fieldsV1" => fields_of_local(&spec),
    };
    object! {
        "apiVersion" => format!("{GROUP}/v1"),
        "kind" => "APIService",
        "metadata" => object! {
            "name" => format!("{version}.{group}"),
            "labels" => object! { MANAGED_LABEL => managed },
            "managedFields" => vec![managed_by],
        },
        "spec" => spec,
        "status" => object! { "conditions" => vec![available_here(now)] },
    }
}

/// The fields that the server owns in an object that it creates: the label and the spec, as `fieldsV1`.
fn fields_of_local(spec: &Value) -> Value {
    let label = object! { "." => object! {}, format!("f:{MANAGED_LABEL}") => object! {} };
    let mut of_spec = Map::new();
    for (name, _) in spec.as_object().into_iter().flat_map(Map::iter) {
        of_spec.insert(format!("f:{name}"), object! {});
    }
    object! { "f:metadata" => object! { "f:labels" => label }, "f:spec" => of_spec }
}

struct ApiService;

impl Strategy for ApiService {
    fn set_typed_defaults(&self, object: &mut Value) {
        let Some(spec) = object.get_mut("spec") else { return };
        if let Some(service) = spec.get_mut("service").filter(|service| service.as_object().is_some()) {
            defaults::set_pointer(service, "port", 443);
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        let now = object.str_at(&["metadata", "creationTimestamp"]).to_owned();
        let status = match object.at(&["spec", "service"]) {
            Some(_) => object! {},
            None => object! { "conditions" => vec![available_here(&now)] },
        };
        prepare::reset(object, "status", status);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_plain_update(new, old);
        match subresource {
            Subresource::Status => errors.extend(validate_conditions(new)),
            _ => errors.extend(validate(new)),
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn stored_as(&self) -> Option<&'static str> {
        Some("apiregistration.k8s.io/apiservices")
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("Service", "The reference to the service that hosts this API endpoint."),
            Column::string("Available", "Whether this service is available."),
        ];
        Some(Table::named(columns, |service| {
            let by = match service.at(&["spec", "service"]) {
                Some(by) => format!("{}/{}", by.str_at(&["namespace"]), by.str_at(&["name"])),
                None => "Local".to_owned(),
            };
            let conditions = service.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
            let available = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Available");
            let shown = match available.map(|condition| (condition.str_at(&["status"]), condition.str_at(&["reason"])))
            {
                None => "Unknown".to_owned(),
                Some(("True", _)) => "True".to_owned(),
                Some((status, "")) => status.to_owned(),
                Some((status, reason)) => format!("{status} ({reason})"),
            };
            Cell::named(service, vec![Cell::text(&by), Cell::text(&shown)])
        }))
    }
}

fn validate(object: &Value) -> ErrorList {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let (group, version) = (spec.field("group"), spec.field("version"));
    let mut errors = validate_metadata(object, &format!("{}.{}", version.text(), group.text()));
    if group.is_empty() && version.text() != "v1" {
        errors.push(group.required("only v1 may have an empty group and it better be legacy kube"));
    }
    if !group.is_empty() {
        errors.extend(names::is_dns1123_subdomain(group.text()).into_iter().map(|fault| group.invalid(fault)));
    }
    errors.extend(names::is_dns1035_label(version.text()).into_iter().map(|fault| version.invalid(fault)));
    for (name, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = spec.field(name);
        if !(1..=max).contains(&priority.int()) {
            let error =
                Error::invalid(priority.path(), priority.int(), format!("must be positive and less than {max}"));
            errors.push(error);
        }
    }
    errors.extend(validate_service(&spec));
    errors
}

/// Validates the metadata; the name must be `required`, which consists of the version and the group.
fn validate_metadata(object: &Value, required: &str) -> ErrorList {
    let check = |name: &str, _: bool| {
        let faults = names::is_path_segment(name, false);
        if !faults.is_empty() || name == required {
            return faults;
        }
        vec![format!("must be `spec.version+\".\"+spec.group`: {}", go_quote(required))]
    };
    object_meta::validate(metadata::of(object), false, check, &metadata::METADATA)
}

fn validate_service(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (service, bundle, insecure) =
        (spec.field("service"), spec.field("caBundle"), spec.field("insecureSkipTLSVerify"));
    let has_bundle = !bundle.text().is_empty();
    let is_insecure = insecure.value().and_then(Value::as_bool).unwrap_or_default();
    if service.value().is_none() {
        if has_bundle {
            let length = base64::decode(bundle.text()).map_or(0, |bytes| bytes.len());
            let shown = format!("{length} bytes");
            errors.push(Error::invalid(bundle.path(), shown, "local APIServices may not have a caBundle"));
        }
        if is_insecure {
            errors.push(insecure.invalid("local APIServices may not have insecureSkipTLSVerify"));
        }
        return errors;
    }
    for name in ["namespace", "name"] {
        let field = service.field(name);
        if field.text().is_empty() {
            errors.push(field.required(""));
        }
    }
    let port = service.field("port");
    if !(1..=65535).contains(&port.int()) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid(port.path(), port.int(), why));
    }
    if is_insecure && has_bundle {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
    errors
}

fn validate_conditions(object: &Value) -> ErrorList {
    let root = FieldRef::root(object);
    let status = root.field("status");
    let conditions = status.field("conditions");
    let mut errors = ErrorList::new();
    for condition in conditions.items() {
        let status = condition.field("status");
        if !STATUSES.contains(&status.text()) {
            errors.push(status.not_supported(&STATUSES));
        }
    }
    errors
}
