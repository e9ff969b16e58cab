//! The roles and bindings that a cluster has from the start.
//!
//! At a start with RBAC each is compared with the stored one, by a look-up in memory, since the index needs these
//! collections anyway. Missing ones are queued at once and go to disk in a transaction or two; the second start writes
//! nothing, which a test ensures. Then aggregated roles are filled by the controller's own function, so that `admin` is
//! complete at the first request. Without RBAC they are not created: they would grant nothing, and cost each test
//! server some thirty writes before it is ready.
//!
//! Those of the scheduler and of the controllers of workloads ([`workloads`]) are made where such controllers run. Roles of
//! programs that never run here (kubelet, proxy) are left out.
//!
//! Source: the bootstrap policy of Kubernetes, release 1.36.

mod workloads;

use crate::object;
use crate::value::{Map, Value};

use super::rbac::GROUP;

/// The label of roles and bindings that a server made by itself.
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");
/// With `false`, an object is left as it is.
pub const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const ALL: &str = "create delete deletecollection get list patch update watch";
const RECORD: &str = "create patch update";

/// A cluster role, and the subjects that it is bound to.
struct Role {
    name: &'static str,
    /// The role that aggregates this one's rules.
    aggregated_to: Option<&'static str>,
    /// Whether its rules are those of the roles aggregated to it.
    aggregates: bool,
    rules: &'static [Rule],
    subjects: &'static [Subject],
}

/// Verbs, and the resources or paths that they are about; words apart by blanks.
enum Rule {
    Resources { verbs: &'static str, groups: &'static [&'static str], resources: &'static str },
    Named { verbs: &'static str, groups: &'static [&'static str], resources: &'static str, names: &'static str },
    Paths { verbs: &'static str, paths: &'static str },
}

enum Subject {
    Group(&'static str),
    User(&'static str),
    /// An account of the namespace `kube-system`.
    Controller(&'static str),
}

use Subject::{Controller, Group, User};

const fn resources(verbs: &'static str, groups: &'static [&'static str], resources: &'static str) -> Rule {
    Rule::Resources { verbs, groups, resources }
}

/// Objects of these names.
const fn named(
    verbs: &'static str,
    groups: &'static [&'static str],
    resources: &'static str,
    names: &'static str,
) -> Rule {
    Rule::Named { verbs, groups, resources, names }
}

const fn paths(verbs: &'static str, paths: &'static str) -> Rule {
    Rule::Paths { verbs, paths }
}

const fn role(name: &'static str, rules: &'static [Rule], subjects: &'static [Subject]) -> Role {
    Role { name, aggregated_to: None, aggregates: false, rules, subjects }
}

/// A role that aggregates others.
const fn aggregate(name: &'static str, aggregated_to: Option<&'static str>) -> Role {
    Role { aggregated_to, aggregates: true, ..role(name, &[], &[]) }
}

const fn part(name: &'static str, of: &'static str, rules: &'static [Rule]) -> Role {
    Role { aggregated_to: Some(of), ..role(name, rules, &[]) }
}

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const EVENTS: Rule = resources(RECORD, &["", "events.k8s.io"], "events");

static ROLES: &[Role] = &[
    role("cluster-admin", &[resources("*", &["*"], "*"), paths("*", "*")], &[Group("system:masters")]),
    aggregate("admin", None),
    aggregate("edit", Some("admin")),
    aggregate("view", Some("edit")),
    part(
        "system:aggregate-to-admin",
        "admin",
        &[
            resources("create", &[AUTHORIZATION], "localsubjectaccessreviews"),
            resources(ALL, &[GROUP], "rolebindings roles"),
        ],
    ),
    part(
        "system:aggregate-to-edit",
        "edit",
        &[
            resources(READ, &[""], "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
            resources("impersonate", &[""], "serviceaccounts"),
            resources(WRITE, &[""], "pods pods/attach pods/exec pods/portforward pods/proxy"),
            resources("create", &[""], "pods/eviction"),
            resources(
                WRITE,
                &[""],
                "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets \
                 serviceaccounts services services/proxy",
            ),
            resources("create", &[""], "serviceaccounts/token"),
            resources(WRITE, &["", "events.k8s.io"], "events"),
            resources(
                WRITE,
                &["apps"],
                "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets \
                 statefulsets/scale",
            ),
            resources(WRITE, &["autoscaling"], "horizontalpodautoscalers"),
            resources(WRITE, &["batch"], "cronjobs jobs"),
            resources(
                WRITE,
                &["extensions"],
                "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets \
                 replicasets/scale replicationcontrollers/scale",
            ),
            resources(WRITE, &["policy"], "poddisruptionbudgets"),
            resources(WRITE, &["networking.k8s.io"], "ingresses networkpolicies"),
            resources(ALL, &["coordination.k8s.io"], "leases"),
            resources(WRITE, &["resource.k8s.io"], "resourceclaims resourceclaimtemplates"),
        ],
    ),
    part(
        "system:aggregate-to-view",
        "view",
        &[
            resources(
                READ,
                &[""],
                "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
                 replicationcontrollers/scale serviceaccounts services services/status",
            ),
            resources(
                READ,
                &[""],
                "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status \
                 resourcequotas resourcequotas/status",
            ),
            resources(READ, &[""], "namespaces"),
            resources(READ, &["", "events.k8s.io"], "events"),
            resources(READ, &["discovery.k8s.io"], "endpointslices"),
            resources(
                READ,
                &["apps"],
                "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status \
                 replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            ),
            resources(READ, &["autoscaling"], "horizontalpodautoscalers horizontalpodautoscalers/status"),
            resources(READ, &["batch"], "cronjobs cronjobs/status jobs jobs/status"),
            resources(
                READ,
                &["extensions"],
                "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses \
                 ingresses/status networkpolicies replicasets replicasets/scale replicasets/status \
                 replicationcontrollers/scale",
            ),
            resources(READ, &["policy"], "poddisruptionbudgets poddisruptionbudgets/status"),
            resources(READ, &["networking.k8s.io"], "ingresses ingresses/status networkpolicies"),
            resources(READ, &["resource.k8s.io"], "resourceclaims resourceclaims/status resourceclaimtemplates"),
        ],
    ),
    role(
        "system:auth-delegator",
        &[
            resources("create", &[AUTHENTICATION], "tokenreviews"),
            resources("create", &[AUTHORIZATION], "subjectaccessreviews"),
        ],
        &[],
    ),
    role(
        "system:basic-user",
        &[
            resources("create", &[AUTHORIZATION], "selfsubjectaccessreviews selfsubjectrulesreviews"),
            resources("create", &[AUTHENTICATION], "selfsubjectreviews"),
        ],
        &[Group("system:authenticated")],
    ),
    role(
        "system:discovery",
        &[paths("get", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/")],
        &[Group("system:authenticated")],
    ),
    role(
        "system:monitoring",
        &[
            paths(
                "get",
                "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
            ),
            resources("get", &[""], "nodes/metrics"),
        ],
        &[Group("system:monitoring")],
    ),
    role(
        "system:public-info-viewer",
        &[paths("get", "/healthz /livez /readyz /version /version/")],
        &[Group("system:authenticated"), Group("system:unauthenticated")],
    ),
    role(
        "system:service-account-issuer-discovery",
        &[paths(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        )],
        &[Group("system:serviceaccounts")],
    ),
    role(
        "system:controller:clusterrole-aggregation-controller",
        &[resources("escalate get list patch update watch", &[GROUP], "clusterroles")],
        &[Controller("clusterrole-aggregation-controller")],
    ),
    role(
        "system:controller:generic-garbage-collector",
        &[resources("delete get list patch update watch", &["*"], "*"), EVENTS],
        &[Controller("generic-garbage-collector")],
    ),
    role(
        "system:controller:namespace-controller",
        &[
            resources("delete get list watch", &[""], "namespaces"),
            resources("update", &[""], "namespaces/finalize namespaces/status"),
            resources("delete deletecollection get list watch", &["*"], "*"),
        ],
        &[Controller("namespace-controller")],
    ),
    role(
        "system:controller:root-ca-cert-publisher",
        &[resources("create update", &[""], "configmaps"), EVENTS],
        &[Controller("root-ca-cert-publisher")],
    ),
    role(
        "system:controller:service-account-controller",
        &[resources("create", &[""], "serviceaccounts"), EVENTS],
        &[Controller("service-account-controller")],
    ),
];

/// Whose roles are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Those of users, and of the controllers that an API server needs.
    Server,
    /// Those of the controllers of workloads, too.
    Workloads,
}

impl Extent {
    fn roles(self) -> impl Iterator<Item = &'static Role> {
        let of_workloads = (self == Extent::Workloads).then_some(workloads::ROLES);
        ROLES.iter().chain(of_workloads.into_iter().flatten())
    }
}

/// The cluster roles, as they are to be written.
pub fn cluster_roles(extent: Extent) -> impl Iterator<Item = Value> {
    extent.roles().map(Role::object)
}

/// The bindings of cluster roles.
pub fn cluster_role_bindings(extent: Extent) -> impl Iterator<Item = Value> {
    extent.roles().filter(|role| !role.subjects.is_empty()).map(Role::binding)
}

impl Role {
    fn object(&self) -> Value {
        let mut labels = Map::new();
        labels.insert(BOOTSTRAPPING.0, Value::from(BOOTSTRAPPING.1));
        if let Some(whole) = self.aggregated_to {
            labels.insert(aggregation_label(whole), Value::from("true"));
        }
        let mut role = object! {
            "apiVersion" => format!("{GROUP}/v1"),
            "kind" => "ClusterRole",
            "metadata" => metadata(self.name, labels),
        };
        if self.aggregates {
            let mut labels = Map::new();
            labels.insert(aggregation_label(self.name), Value::from("true"));
            let selector = object! { "matchLabels" => Value::Object(labels) };
            let rule = object! { "clusterRoleSelectors" => vec![selector] };
            role.make_object().insert("aggregationRule", rule);
        } else {
            let rules: Vec<_> = self.rules.iter().map(Rule::object).collect();
            role.make_object().insert("rules", Value::Array(rules));
        }
        role
    }

    fn binding(&self) -> Value {
        let mut labels = Map::new();
        labels.insert(BOOTSTRAPPING.0, Value::from(BOOTSTRAPPING.1));
        let subjects: Vec<_> = self.subjects.iter().map(Subject::object).collect();
        object! {
            "apiVersion" => format!("{GROUP}/v1"),
            "kind" => "ClusterRoleBinding",
            "metadata" => metadata(self.name, labels),
            "subjects" => subjects,
            "roleRef" => object! { "apiGroup" => GROUP, "kind" => "ClusterRole", "name" => self.name },
        }
    }
}

impl Rule {
    fn object(&self) -> Value {
        match self {
            Rule::Resources { verbs, groups, resources } => object! {
                "verbs" => words(verbs),
                "apiGroups" => groups.iter().map(|group| Value::from(*group)).collect::<Vec<_>>(),
                "resources" => words(resources),
            },
            Rule::Named { verbs, groups, resources: of, names } => {
                let mut rule = resources(verbs, groups, of).object();
                rule.make_object().insert("resourceNames", Value::Array(words(names)));
                rule
            }
            Rule::Paths { verbs, paths } => object! { "verbs" => words(verbs), "nonResourceURLs" => words(paths) },
        }
    }
}

impl Subject {
    fn object(&self) -> Value {
        match self {
            Group(name) => object! { "kind" => "Group", "apiGroup" => GROUP, "name" => *name },
            User(name) => object! { "kind" => "User", "apiGroup" => GROUP, "name" => *name },
            Controller(name) => {
                object! { "kind" => "ServiceAccount", "name" => *name, "namespace" => "kube-system" }
            }
        }
    }
}

fn aggregation_label(whole: &str) -> String {
    format!("{GROUP}/aggregate-to-{whole}")
}

fn metadata(name: &str, labels: Map) -> Value {
    let mut annotations = Map::new();
    annotations.insert(AUTO_UPDATE, Value::from("true"));
    object! { "name" => name, "labels" => Value::Object(labels), "annotations" => Value::Object(annotations) }
}

fn words(words: &str) -> Vec<Value> {
    words.split(' ').map(Value::from).collect()
}
