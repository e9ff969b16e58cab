//! What nodes may do: access their own objects, and those that their pods need.
//!
//! Input: a node's request, and the graph of objects that lead to nodes. Output: whether the request is
//! allowed, or why this authorizer has no opinion, in which case another one may allow it. What a
//! node may write is checked by admission (NodeRestriction), which knows the object.
//!
//! Source: `plugin/pkg/auth/authorizer/node/node_authorizer.go`, release 1.36.

mod graph;
mod references;
mod rules;

use thiserror::Error;

use super::rbac::PolicyRule;
use super::{Attributes, ResourceAttributes, UserInfo};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::go_quote;

use graph::Vertex;

pub use graph::{Edges, Graph};
pub use references::{config_maps, secrets};

/// The prefix of the user names of nodes.
pub const USER_PREFIX: &str = "system:node:";
const GROUP: &str = "system:nodes";
/// The namespace of the nodes' leases.
const LEASES: &str = "kube-node-lease";
/// The first minor version whose nodes may by default read only their own node and pods: the gate
/// AuthorizeNodeWithSelectors.
const FIRST_WITH_SELECTORS: u16 = 32;
/// The first minor version whose nodes may read the service accounts of their pods: the gate
/// KubeletServiceAccountTokenForCredentialProviders.
const FIRST_WITH_ACCOUNTS: u16 = 34;

/// The node name of a user, which may be empty; `None` if the user is not a node.
pub fn node_of(user: &UserInfo) -> Option<&str> {
    user.name.strip_prefix(USER_PREFIX).filter(|_| user.is_in(GROUP))
}

/// The rules that hold for all nodes.
pub struct NodeRules {
    minor: Minor,
    rules: Vec<PolicyRule>,
}

/// Why there is no opinion on a request; mostly empty.
#[derive(Debug, Default, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoOpinion(String);

impl NodeRules {
    pub fn of(minor: Minor) -> Self {
        NodeRules { minor, rules: rules::rules(minor) }
    }

    /// Checks that a user is a node that may do this.
    ///
    /// # Errors
    ///
    /// This authorizer does not allow it.
    pub fn decide(&self, user: &UserInfo, attributes: &Attributes<'_>, graph: &Graph) -> Result<(), NoOpinion> {
        let node = match node_of(user) {
            None => return Err(NoOpinion::default()),
            Some("") => return Err(NoOpinion(format!("unknown node for user {}", go_quote(&user.name)))),
            Some(node) => node,
        };
        let by_rules = || {
            if self.rules.iter().any(|rule| rule.allows(attributes)) { Ok(()) } else { Err(NoOpinion::default()) }
        };
        let Attributes::Resource(of) = attributes else { return by_rules() };
        let asked = NodeRequest { node, of, graph };
        match (of.group, of.resource) {
            ("", "secrets") => asked.read("secrets"),
            ("", "configmaps") => asked.read("configmaps"),
            ("", "persistentvolumeclaims") if of.subresource == "status" => {
                asked.update_status("persistentvolumeclaims")
            }
            ("", "persistentvolumeclaims") => asked.get("persistentvolumeclaims"),
            ("", "persistentvolumes") => asked.get("persistentvolumes"),
            ("resource.k8s.io", "resourceclaims") => asked.get("resourceclaims"),
            ("storage.k8s.io", "volumeattachments") => asked.get("volumeattachments"),
            ("", "serviceaccounts") => self.account(&asked),
            ("coordination.k8s.io", "leases") => asked.lease(),
            ("storage.k8s.io", "csinodes") => asked.csi_node(),
            ("resource.k8s.io", "resourceslices") => asked.slice(self.has_selectors()),
            ("", "nodes") if self.has_selectors() => asked.own_node(),
            ("", "pods") if self.has_selectors() => asked.pod(),
            ("certificates.k8s.io", "podcertificaterequests") => {
                let knows = self.minor.opens(Gate::PodCertificateRequest) && self.has_selectors();
                if knows { asked.certificate_request() } else { Err(NoOpinion::default()) }
            }
            _ => by_rules(),
        }
    }

    fn has_selectors(&self) -> bool {
        self.minor.number() >= FIRST_WITH_SELECTORS
    }

    fn account(&self, asked: &NodeRequest<'_>) -> Result<(), NoOpinion> {
        if asked.of.verb != "get" || !asked.of.subresource.is_empty() {
            return asked.create_token();
        }
        if self.minor.number() < FIRST_WITH_ACCOUNTS && !self.minor.opens(Gate::PodCertificateRequest) {
            return refuse("not allowed to get service accounts");
        }
        asked.read("serviceaccounts")
    }
}

/// The request of a node.
struct NodeRequest<'a> {
    node: &'a str,
    of: &'a ResourceAttributes<'a>,
    graph: &'a Graph,
}

impl NodeRequest<'_> {
    /// Checks that the object leads to the node.
    fn related(&self, plural: &'static str) -> Result<(), NoOpinion> {
        if self.of.name.is_empty() {
            return refuse("No Object name found");
        }
        let object = Vertex::new(plural, self.of.namespace, self.of.name);
        if self.graph.leads(object, Vertex::node(self.node)) {
            return Ok(());
        }
        Err(NoOpinion(format!("no relationship found between node '{}' and this object", self.node)))
    }

    fn read(&self, plural: &'static str) -> Result<(), NoOpinion> {
        if !["get", "list", "watch"].contains(&self.of.verb) {
            return refuse("can only read resources of this type");
        }
        if !self.of.subresource.is_empty() {
            return refuse("cannot read subresource");
        }
        if self.of.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.related(plural)
    }

    fn get(&self, plural: &'static str) -> Result<(), NoOpinion> {
        if self.of.verb != "get" {
            return refuse("can only get individual resources of this type");
        }
        if !self.of.subresource.is_empty() {
            return refuse("cannot get subresource");
        }
        self.related(plural)
    }

    /// Checks a write to the subresource `status`.
    fn update_status(&self, plural: &'static str) -> Result<(), NoOpinion> {
        if !["update", "patch"].contains(&self.of.verb) {
            return refuse("can only get/update/patch this type");
        }
        self.related(plural)
    }

    fn create_token(&self) -> Result<(), NoOpinion> {
        if self.of.verb != "create" || self.of.name.is_empty() {
            return refuse("can only create tokens for individual service accounts");
        }
        if self.of.subresource != "token" {
            return refuse("can only create token subresource of serviceaccount");
        }
        self.related("serviceaccounts")
    }

    fn lease(&self) -> Result<(), NoOpinion> {
        if !["get", "create", "update", "patch", "delete"].contains(&self.of.verb) {
            return refuse("can only get, create, update, patch, or delete a node lease");
        }
        if self.of.namespace != LEASES {
            return Err(NoOpinion(format!("can only access leases in the {} system namespace", go_quote(LEASES))));
        }
        // For a new object, admission checks the name.
        if self.of.verb != "create" && self.of.name != self.node {
            return refuse("can only access node lease with the same name as the requesting node");
        }
        Ok(())
    }

    fn csi_node(&self) -> Result<(), NoOpinion> {
        if !["get", "create", "update", "patch", "delete"].contains(&self.of.verb) {
            return refuse("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.of.subresource.is_empty() {
            return refuse("cannot authorize CSINode subresources");
        }
        if self.of.verb != "create" && self.of.name != self.node {
            return refuse("can only access CSINode with the same name as the requesting node");
        }
        Ok(())
    }

    fn slice(&self, has_selectors: bool) -> Result<(), NoOpinion> {
        if !self.of.subresource.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match self.of.verb {
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related("resourceslices"),
            "watch" | "list" | "deletecollection" if !has_selectors || self.selects_by("spec.nodeName") => Ok(()),
            "watch" | "list" | "deletecollection" => {
                refuse("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    fn own_node(&self) -> Result<(), NoOpinion> {
        match (self.of.subresource, self.of.verb, self.of.name) {
            ("", "create" | "update" | "patch", _) | ("status", "update" | "patch", _) => Ok(()),
            ("", "get" | "list" | "watch", name) if name == self.node => Ok(()),
            ("", "get" | "list" | "watch", "") => {
                Err(NoOpinion(format!("node '{}' cannot read all nodes, only its own Node object", self.node)))
            }
            ("", "get" | "list" | "watch", name) => {
                Err(NoOpinion(format!("node '{}' cannot read '{name}', only its own Node object", self.node)))
            }
            _ => Err(NoOpinion::default()),
        }
    }

    fn pod(&self) -> Result<(), NoOpinion> {
        match (self.of.subresource, self.of.verb) {
            ("", "get") => self.get("pods"),
            ("", "list" | "watch") if self.selects_by("spec.nodeName") => Ok(()),
            ("", "list" | "watch") if !self.of.name.is_empty() => self.related("pods"),
            ("", "list" | "watch") => refuse("can only list/watch pods with spec.nodeName field selector"),
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Ok(()),
            _ => Err(NoOpinion::default()),
        }
    }

    fn certificate_request(&self) -> Result<(), NoOpinion> {
        if !self.of.subresource.is_empty() {
            return refuse("nodes may not access the status subresource of PodCertificateRequests");
        }
        match self.of.verb {
            "create" => Ok(()),
            "get" => self.related("podcertificaterequests"),
            "list" | "watch" if self.selects_by("spec.nodeName") => Ok(()),
            "list" | "watch" => refuse("can only list/watch podcertificaterequests with nodeName field selector"),
            verb => Err(NoOpinion(format!("nodes may not {verb} podcertificaterequests"))),
        }
    }

    /// Whether a field selector limits the request to the node's own objects.
    fn selects_by(&self, field: &str) -> bool {
        self.of.fields.and_then(|fields| fields.requires_exact(field)) == Some(self.node)
    }
}

fn refuse(why: &str) -> Result<(), NoOpinion> {
    Err(NoOpinion(why.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::selector::FieldSelector;
    use crate::value::yaml;

    fn node(name: &str) -> UserInfo {
        UserInfo::authenticated(format!("system:node:{name}"), vec![GROUP.to_owned()])
    }

    fn graph() -> Graph {
        let pod = "{metadata: {namespace: ns, name: p}, spec: {nodeName: a, serviceAccountName: s, \
                   volumes: [{name: v, secret: {secretName: k}}]}}";
        let pod = yaml::decode(pod.as_bytes()).expect("the test is YAML");
        let mut graph = Graph::default();
        let edges = graph.keys().edges("pods", Some(&pod));
        graph.set("pods", "ns/p", edges);
        graph
    }

    /// Decides a request of the node `a`, written as `verb [group:]resource[/subresource]
    /// [namespace/]name`.
    fn decided(minor: u16, request: &str, fields: &str) -> Result<(), String> {
        let mut words = request.split(' ');
        let mut next = || words.next().unwrap_or_default();
        let (verb, resource, object) = (next(), next(), next());
        let (group, resource) = resource.split_once(':').unwrap_or(("", resource));
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        let fields = FieldSelector::parse(fields).expect("it is a selector");
        let of = ResourceAttributes {
            verb,
            group,
            version: "v1",
            resource,
            subresource,
            namespace,
            name,
            fields: Some(&fields),
            labels: None,
        };
        let rules = NodeRules::of(Minor::parse(&format!("1.{minor}")).expect("it is known"));
        let decided = rules.decide(&node("a"), &Attributes::Resource(of), &graph());
        decided.map_err(|why| why.to_string())
    }

    #[test]
    fn a_node_reads_what_its_pods_need() {
        let unrelated = || Err("no relationship found between node 'a' and this object".to_owned());
        for (request, expected) in [
            ("get secrets ns/k", Ok(())),
            ("watch secrets ns/k", Ok(())),
            ("get secrets ns/other", unrelated()),
            ("get secrets m/k", unrelated()),
            ("list secrets ns/", Err("No Object name found".to_owned())),
            ("list secrets", Err("can only read namespaced object of this type".to_owned())),
            ("update secrets ns/k", Err("can only read resources of this type".to_owned())),
            ("get pods ns/p", Ok(())),
            ("get pods ns/q", unrelated()),
            ("create serviceaccounts/token ns/s", Ok(())),
            ("create serviceaccounts/token ns/t", unrelated()),
            ("get serviceaccounts ns/s", Ok(())),
            ("list persistentvolumes", Err("can only get individual resources of this type".to_owned())),
        ] {
            assert_eq!(decided(37, request, ""), expected, "{request}");
        }
    }

    #[test]
    fn what_is_a_nodes_own_is_known_by_its_name() {
        let lease = "coordination.k8s.io:leases kube-node-lease";
        for (request, allowed) in [
            (format!("update {lease}/a"), true),
            (format!("update {lease}/b"), false),
            (format!("create {lease}/"), true),
            ("update coordination.k8s.io:leases default/a".to_owned(), false),
            ("get nodes a".to_owned(), true),
            ("get nodes b".to_owned(), false),
            ("patch nodes/status b".to_owned(), true),
            ("delete nodes a".to_owned(), false),
            ("patch storage.k8s.io:csinodes a".to_owned(), true),
            ("patch storage.k8s.io:csinodes b".to_owned(), false),
            ("list services".to_owned(), true),
            ("watch storage.k8s.io:csidrivers".to_owned(), true),
            ("delete services ns/s".to_owned(), false),
        ] {
            assert_eq!(decided(37, &request, "").is_ok(), allowed, "{request}");
        }
    }

    #[test]
    fn lists_of_pods_are_limited_to_the_node_since_1_32() {
        assert!(decided(37, "list pods", "spec.nodeName=a").is_ok());
        let refused = Err("can only list/watch pods with spec.nodeName field selector".to_owned());
        assert_eq!(decided(37, "list pods", "spec.nodeName=b"), refused);
        assert_eq!(decided(32, "watch pods", ""), refused);
        assert!(decided(31, "list pods", "").is_ok());
        assert!(decided(37, "list resource.k8s.io:resourceslices", "spec.nodeName=a").is_ok());
        assert!(decided(37, "list resource.k8s.io:resourceslices", "").is_err());
    }

    #[test]
    fn others_are_not_told_why() {
        let attributes = Attributes::Path { verb: "get", path: "/api" };
        let decide = |user: UserInfo| {
            let decided = NodeRules::of(Minor::default()).decide(&user, &attributes, &graph());
            decided.map_err(|why| why.to_string())
        };
        assert_eq!(decide(UserInfo::authenticated("jane", Vec::new())), Err(String::new()));
        let nobody = Err("unknown node for user \"system:node:\"".to_owned());
        assert_eq!(decide(node("")), nobody);
    }
}
