//! The flow schemas and priority levels that a server creates at its start, and the rules for all objects of that
//! group.
//!
//! Mandatory objects always have these specs; administrators may change suggested ones.
//!
//! Source: `k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap`, release 1.37; `pkg/registry/flowcontrol/ensurer` of
//! Kubernetes 1.36.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::crd::ServedVersion;
use crate::meta::feature_gates;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::object;
use crate::value::Value;

use super::strategy::{Strategy, Subresource, Table, reset_beside_status};
use super::{prepare, semantic};

/// The API group of FlowSchemas and PriorityLevelConfigurations.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
/// Says that the server may bring an object up to date.
const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// The names of the mandatory objects.
const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

const ALL: &[&str] = &["*"];
const EVERYBODY: [Who; 2] = [Who::Group("system:unauthenticated"), Who::Group("system:authenticated")];
const NODES: [Who; 1] = [Who::Group("system:nodes")];

/// The initial objects; levels come before the schemas that name them.
pub static INITIAL: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let levels = LEVELS.iter().map(Level::object);
    levels.chain(SCHEMAS.iter().map(Schema::object)).collect()
});

/// The spec that the mandatory object of a kind and name must have.
pub fn mandatory_spec(kind: &str, name: &str) -> Option<&'static Value> {
    if !MANDATORY.contains(&name) {
        return None;
    }
    initial_of(kind, name)?.get("spec")
}

fn initial_of(kind: &str, name: &str) -> Option<&'static Value> {
    let is_it = |object: &&Value| object.str_at(&["kind"]) == kind && object.str_at(&["metadata", "name"]) == name;
    INITIAL.iter().find(is_it)
}

/// An initial object as the server brings it up to date; `None` if it is, or is not an initial one.
///
/// Mandatory objects get their specs again; so do suggested ones, unless their annotation or a change of their spec says
/// that they are somebody else's now.
pub fn brought_up_to_date(found: &Value) -> Option<Value> {
    let (kind, name) = (found.str_at(&["kind"]), found.str_at(&["metadata", "name"]));
    let wanted = initial_of(kind, name)?;
    let told = updates_told(found);
    let is_first = || found.at(&["metadata", "generation"]).and_then(Value::as_i64) == Some(1);
    let updates = MANDATORY.contains(&name) || told.unwrap_or_else(is_first);
    let mut object = found.clone();
    if updates && !has_spec_of(found, wanted) {
        object.make_object().insert("spec", wanted.get("spec").cloned().unwrap_or_default());
    }
    if told != Some(updates) {
        let annotations = object.make_object().entry("metadata").make_object().entry("annotations").make_object();
        annotations.insert(AUTO_UPDATE, Value::from(if updates { "true" } else { "false" }));
    }
    (object != *found).then_some(object)
}

/// Whether the server made the object, and would not make it today.
pub fn is_left_over(found: &Value) -> bool {
    let is_initial = initial_of(found.str_at(&["kind"]), found.str_at(&["metadata", "name"])).is_some();
    !is_initial && updates_told(found) == Some(true)
}

/// What the annotation says of updates of the spec; `None` without one that can be read.
fn updates_told(object: &Value) -> Option<bool> {
    feature_gates::truth(object.str_at(&["metadata", "annotations", AUTO_UPDATE]))
}

/// Whether the spec of an object is the wanted one; the shares of the exempt level are left to administrators.
fn has_spec_of(found: &Value, wanted: &Value) -> bool {
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    let (found, mut wanted) = (spec(found), spec(wanted));
    if let (Some(own), Some(exempt)) = (found.get("exempt"), wanted.get_mut("exempt")) {
        for share in ["nominalConcurrencyShares", "lendablePercent"] {
            exempt.make_object().insert(share, own.get(share).cloned().unwrap_or_default());
        }
    }
    semantic::equal_untyped(Some(&found), Some(&wanted))
}

/// The errors of the conditions of a status.
pub fn validate_conditions(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for condition in status.field("conditions").items() {
        let kind = condition.field("type");
        if !seen.insert(kind.text().to_owned()) {
            errors.push(kind.duplicate_as_json());
        }
        if kind.text().is_empty() {
            errors.push(kind.required(""));
        }
    }
    errors
}

/// The strategy of the kinds of the group.
pub struct FlowControlStrategy {
    /// Sets what Go sets in an object that it has read.
    pub set_defaults: fn(&mut Value),
    /// An object in another version, if that changes more than the `apiVersion`.
    pub convert: fn(&Value, &str) -> Option<Value>,
    /// The errors of an object.
    pub validate: fn(&Value) -> ErrorList,
    /// The columns of a Table.
    pub table: fn() -> Table,
    /// The order of its rows, if it is not that of the names.
    pub row_order: Option<fn(&Value, &Value) -> Ordering>,
}

impl Strategy for FlowControlStrategy {
    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        (self.convert)(object, api_version)
    }

    fn set_typed_defaults(&self, object: &mut Value) {
        (self.set_defaults)(object);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
        prepare::first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        (self.validate)(object)
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::keep_other(subresource, new, old);
        match subresource {
            Subresource::Status => prepare::keep_all_metadata(new, old),
            _ => prepare::count_generation(new, old, &["spec"]),
        }
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, _: &Value) -> ErrorList {
        match subresource {
            Subresource::Status => validate_conditions(&FieldRef::root(new).field("status")),
            _ => (self.validate)(new),
        }
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn table(&self) -> Option<Table> {
        Some((self.table)())
    }

    fn row_order(&self) -> Option<fn(&Value, &Value) -> Ordering> {
        self.row_order
    }
}

/// How requests are queued: queues, hand size, queue length limit.
type Queuing = (i64, i64, i64);

struct Level {
    name: &'static str,
    shares: i64,
    lendable_percent: i64,
    /// `None` for a level that rejects excess requests.
    queuing: Option<Queuing>,
}

const LEVELS: [Level; 8] = [
    Level { name: "catch-all", shares: 5, lendable_percent: 0, queuing: None },
    Level { name: "exempt", shares: 0, lendable_percent: 0, queuing: None },
    Level { name: "system", shares: 30, lendable_percent: 33, queuing: Some((64, 6, 50)) },
    Level { name: "node-high", shares: 40, lendable_percent: 25, queuing: Some((64, 6, 50)) },
    Level { name: "leader-election", shares: 10, lendable_percent: 0, queuing: Some((16, 4, 50)) },
    Level { name: "workload-high", shares: 40, lendable_percent: 50, queuing: Some((128, 6, 50)) },
    Level { name: "workload-low", shares: 100, lendable_percent: 90, queuing: Some((128, 6, 50)) },
    Level { name: "global-default", shares: 20, lendable_percent: 50, queuing: Some((128, 6, 50)) },
];

impl Level {
    fn object(&self) -> Value {
        initial("PriorityLevelConfiguration", self.name, self.spec())
    }

    fn spec(&self) -> Value {
        let mut share =
            object! { "nominalConcurrencyShares" => self.shares, "lendablePercent" => self.lendable_percent };
        if self.name == "exempt" {
            return object! { "type" => "Exempt", "exempt" => share };
        }
        let response = match self.queuing {
            None => object! { "type" => "Reject" },
            Some((queues, hand_size, length)) => object! {
                "type" => "Queue",
                "queuing" => object! { "queues" => queues, "handSize" => hand_size, "queueLengthLimit" => length },
            },
        };
        share.make_object().insert("limitResponse", response);
        object! { "type" => "Limited", "limited" => share }
    }
}

/// Whose requests a schema is about.
enum Who {
    Group(&'static str),
    User(&'static str),
    /// Every service account of a namespace.
    Accounts(&'static str),
}

impl Who {
    fn subject(&self) -> Value {
        match self {
            Who::Group(name) => object! { "kind" => "Group", "group" => object! { "name" => *name } },
            Who::User(name) => object! { "kind" => "User", "user" => object! { "name" => *name } },
            Who::Accounts(namespace) => object! {
                "kind" => "ServiceAccount",
                "serviceAccount" => object! { "namespace" => *namespace, "name" => "*" },
            },
        }
    }
}

/// Requests for resources.
struct Resources {
    verbs: &'static [&'static str],
    group: &'static str,
    resources: &'static [&'static str],
    cluster_scope: bool,
}

impl Resources {
    fn rule(&self) -> Value {
        let mut rule = object! {
            "verbs" => texts(self.verbs),
            "apiGroups" => texts(&[self.group]),
            "resources" => texts(self.resources),
            "namespaces" => texts(ALL),
        };
        if self.cluster_scope {
            rule.make_object().insert("clusterScope", Value::Bool(true));
        }
        rule
    }
}

struct Schema {
    name: &'static str,
    level: &'static str,
    precedence: i64,
    /// The criterion that separates flows: `ByUser`, `ByNamespace`, or none.
    distinguished: Option<&'static str>,
    subjects: &'static [Who],
    resources: &'static [Resources],
    /// Verbs and paths.
    paths: Option<(&'static [&'static str], &'static [&'static str])>,
}

const EVERYTHING: &[Resources] = &[Resources { verbs: ALL, group: "*", resources: ALL, cluster_scope: true }];
const EVERY_PATH: Option<(&[&str], &[&str])> = Some((ALL, ALL));

/// A schema for all requests of some subjects.
const fn of_all(
    name: &'static str,
    level: &'static str,
    precedence: i64,
    distinguished: &'static str,
    subjects: &'static [Who],
) -> Schema {
    let distinguished = Some(distinguished);
    Schema { name, level, precedence, distinguished, subjects, resources: EVERYTHING, paths: EVERY_PATH }
}

static SCHEMAS: [Schema; 11] = [
    Schema { distinguished: None, ..of_all("exempt", "exempt", 1, "", &[Who::Group("system:masters")]) },
    of_all("catch-all", "catch-all", 10000, "ByUser", &EVERYBODY),
    of_all("system-nodes", "system", 500, "ByUser", &NODES),
    Schema {
        resources: &[
            Resources { verbs: ALL, group: "", resources: &["nodes", "nodes/status"], cluster_scope: true },
            Resources { verbs: ALL, group: "coordination.k8s.io", resources: &["leases"], cluster_scope: false },
        ],
        paths: None,
        ..of_all("system-node-high", "node-high", 400, "ByUser", &NODES)
    },
    Schema {
        distinguished: None,
        resources: &[],
        paths: Some((&["get"], &["/healthz", "/readyz", "/livez"])),
        ..of_all("probes", "exempt", 2, "", &EVERYBODY)
    },
    Schema {
        resources: &[Resources {
            verbs: &["get", "create", "update"],
            group: "coordination.k8s.io",
            resources: &["leases"],
            cluster_scope: false,
        }],
        paths: None,
        ..of_all(
            "system-leader-election",
            "leader-election",
            100,
            "ByUser",
            &[
                Who::User("system:kube-controller-manager"),
                Who::User("system:kube-scheduler"),
                Who::Accounts("kube-system"),
            ],
        )
    },
    of_all(
        "kube-controller-manager",
        "workload-high",
        800,
        "ByNamespace",
        &[Who::User("system:kube-controller-manager")],
    ),
    of_all("kube-scheduler", "workload-high", 800, "ByNamespace", &[Who::User("system:kube-scheduler")]),
    of_all("kube-system-service-accounts", "workload-high", 900, "ByNamespace", &[Who::Accounts("kube-system")]),
    of_all("service-accounts", "workload-low", 9000, "ByUser", &[Who::Group("system:serviceaccounts")]),
    of_all("global-default", "global-default", 9900, "ByUser", &EVERYBODY),
];

impl Schema {
    fn object(&self) -> Value {
        let mut rule = object! { "subjects" => self.subjects.iter().map(Who::subject).collect::<Vec<_>>() };
        if !self.resources.is_empty() {
            let rules: Vec<Value> = self.resources.iter().map(Resources::rule).collect();
            rule.make_object().insert("resourceRules", Value::from(rules));
        }
        if let Some((verbs, paths)) = self.paths {
            let paths = object! { "verbs" => texts(verbs), "nonResourceURLs" => texts(paths) };
            rule.make_object().insert("nonResourceRules", Value::from(vec![paths]));
        }
        let mut spec = object! {
            "priorityLevelConfiguration" => object! { "name" => self.level },
            "matchingPrecedence" => self.precedence,
            "rules" => vec![rule],
        };
        if let Some(method) = self.distinguished {
            spec.make_object().insert("distinguisherMethod", object! { "type" => method });
        }
        initial("FlowSchema", self.name, spec)
    }
}

fn initial(kind: &str, name: &str, spec: Value) -> Value {
    object! {
        "apiVersion" => API_VERSION,
        "kind" => kind,
        "metadata" => object! { "name" => name, "annotations" => object! { AUTO_UPDATE => "true" } },
        "spec" => spec,
    }
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| Value::from(*text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Map, yaml};

    /// An initial object, changed by a merge of `change` into its parts.
    fn changed(kind: &str, name: &str, change: &str) -> Value {
        let mut object = initial_of(kind, name).expect("it is an initial one").clone();
        let change = yaml::decode(change.as_bytes()).expect("the test is YAML");
        for (part, fields) in change.as_object().into_iter().flat_map(Map::iter) {
            for (field, value) in fields.as_object().into_iter().flat_map(Map::iter) {
                object.make_object().entry(part).make_object().insert(field, value.clone());
            }
        }
        object
    }

    #[track_caller]
    fn check(kind: &str, name: &str, change: &str, expected: Option<(&str, bool)>) {
        let found = changed(kind, name, change);
        let object = brought_up_to_date(&found);
        let spec = initial_of(kind, name).and_then(|initial| initial.get("spec"));
        let told = object
            .as_ref()
            .map(|object| (object.str_at(&["metadata", "annotations", AUTO_UPDATE]), object.get("spec") == spec));
        assert_eq!(told, expected, "{name}: {change}");
    }

    #[test]
    fn what_nobody_has_changed_stays() {
        for object in INITIAL.iter() {
            assert_eq!(brought_up_to_date(object), None, "{object:?}");
        }
    }

    #[test]
    fn a_suggested_object_is_reset_unless_it_is_somebody_elses() {
        let kind = "FlowSchema";
        check(kind, "probes", "{spec: {matchingPrecedence: 7}}", Some(("true", true)));
        let note = |value: &str| format!("{{metadata: {{annotations: {{{AUTO_UPDATE}: '{value}'}}}}");
        check(kind, "probes", &format!("{}, spec: {{matchingPrecedence: 7}}}}", note("false")), None);
        check(kind, "probes", &format!("{}, spec: {{matchingPrecedence: 7}}}}", note("T")), Some(("T", true)));
        let none = "annotations: {}";
        let generation =
            |number: u8| format!("{{metadata: {{{none}, generation: {number}}}, spec: {{matchingPrecedence: 7}}}}");
        check(kind, "probes", &generation(1), Some(("true", true)));
        check(kind, "probes", &generation(2), Some(("false", false)));
    }

    #[test]
    fn a_mandatory_object_is_always_reset_but_the_shares_of_the_exempt_level() {
        let note = format!("metadata: {{annotations: {{{AUTO_UPDATE}: 'false'}}}}");
        check("FlowSchema", "catch-all", &format!("{{{note}}}"), Some(("true", true)));
        let kind = "PriorityLevelConfiguration";
        check(kind, "catch-all", "{spec: {type: Exempt}}", Some(("true", true)));
        check(kind, "exempt", "{spec: {exempt: {nominalConcurrencyShares: 9, lendablePercent: 50}}}", None);
    }

    #[test]
    fn what_the_server_would_not_make_today_is_left_over() {
        let object = |note: &str| {
            let text =
                format!("{{kind: FlowSchema, metadata: {{name: old, annotations: {{{AUTO_UPDATE}: '{note}'}}}}}}");
            yaml::decode(text.as_bytes()).expect("the test is YAML")
        };
        assert!(is_left_over(&object("true")));
        assert!(!is_left_over(&object("false")) && !is_left_over(&object("x")));
        assert!(INITIAL.iter().all(|object| !is_left_over(object)));
    }
}
