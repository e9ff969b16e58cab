//! The objects that a node needs: those that lead to it by the references of pods and volumes.
//!
//! Input: pods, PersistentVolumes and objects that name a node, one by one, as they are stored. Out:
//! whether an object leads to a node. The longest path is: a secret of a volume, the volume, its
//! claim, the node of a pod that uses the claim.
//!
//! Source: `plugin/pkg/auth/authorizer/node/graph.go`, release 1.36.

use std::collections::{HashMap, HashSet};

use super::references::{config_maps, resource_claims, secrets, secrets_of_volume, volume_claims};
use crate::value::Value;
use crate::work;

/// The annotation of a mirror pod: it was created by its node, and so grants the node nothing.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// An object: its plural, its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vertex {
    plural: &'static str,
    namespace: String,
    name: String,
}

impl Vertex {
    pub fn new(plural: &'static str, namespace: &str, name: &str) -> Self {
        Vertex { plural, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub fn node(name: &str) -> Self {
        Vertex::new("nodes", "", name)
    }
}

/// The edges that an object contributes.
#[derive(Debug, Default)]
pub struct Edges(Vec<(Vertex, Vertex)>);

impl Edges {
    /// Those of an object of `plural`; none without an object.
    pub fn of(plural: &'static str, object: Option<&Value>) -> Self {
        Edges(object.map(|object| edges(plural, object)).unwrap_or_default())
    }
}

/// The objects, and where each of them leads to.
#[derive(Debug, Default)]
pub struct Graph {
    /// For each edge, how many stored objects contribute it.
    edges: HashMap<Vertex, HashMap<Vertex, usize>>,
    /// The edges that each stored object contributes.
    said: HashMap<(&'static str, String), Edges>,
}

impl Graph {
    /// Records what the object of `plural` contributes that is stored under `key`: nothing if it was deleted. It is to
    /// run as a whole, as [`work::essential`].
    pub fn set(&mut self, plural: &'static str, key: String, edges: Edges) {
        let source = (plural, key);
        for (from, to) in self.said.remove(&source).unwrap_or_default().0 {
            self.remove_edge(&from, &to);
        }
        if edges.0.is_empty() {
            return;
        }
        for (from, to) in &edges.0 {
            work::bytes(from.name.len() + to.name.len());
            *self.edges.entry(from.clone()).or_default().entry(to.clone()).or_default() += 1;
        }
        self.said.insert(source, edges);
    }

    fn remove_edge(&mut self, from: &Vertex, to: &Vertex) {
        let Some(ends) = self.edges.get_mut(from) else { return };
        if let Some(count) = ends.get_mut(to) {
            *count -= 1;
            if *count == 0 {
                ends.remove(to);
            }
        }
        if ends.is_empty() {
            self.edges.remove(from);
        }
    }

    /// Whether there is a path from an object to a node.
    pub fn leads(&self, from: &Vertex, node: &Vertex) -> bool {
        let (mut seen, mut left) = (HashSet::new(), vec![from]);
        while let Some(vertex) = left.pop() {
            let Some(ends) = self.edges.get(vertex) else { continue };
            if ends.contains_key(node) {
                return true;
            }
            let further = ends.keys().filter(|end| end.plural != node.plural && seen.insert(*end));
            left.extend(further.inspect(|end| work::bytes(end.name.len())));
        }
        false
    }
}

fn edges(plural: &'static str, object: &Value) -> Vec<(Vertex, Vertex)> {
    let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
    let itself = Vertex::new(plural, namespace, name);
    match plural {
        "persistentvolumes" => of_volume(itself, object),
        "pods" => of_pod(itself, object),
        _ => match object.str_at(&["spec", "nodeName"]) {
            "" => Vec::new(),
            node => vec![(itself, Vertex::node(node))],
        },
    }
}

fn of_pod(pod: Vertex, object: &Value) -> Vec<(Vertex, Vertex)> {
    let node = match object.str_at(&["spec", "nodeName"]) {
        "" => return Vec::new(),
        node => Vertex::node(node),
    };
    let mut needed = Vec::new();
    if object.at(&["metadata", "annotations", MIRROR]).is_none() {
        let of = |plural, name: &str| Vertex::new(plural, &pod.namespace, name);
        let account = object.str_at(&["spec", "serviceAccountName"]);
        needed.extend(Some(account).filter(|name| !name.is_empty()).map(|name| of("serviceaccounts", name)));
        needed.extend(secrets(object).map(|name| of("secrets", name)));
        needed.extend(config_maps(object).map(|name| of("configmaps", name)));
        needed.extend(volume_claims(object).map(|name| of("persistentvolumeclaims", &name)));
        needed.extend(resource_claims(object).map(|name| of("resourceclaims", name)));
    }
    needed.push(pod);
    needed.into_iter().map(|from| (from, node.clone())).collect()
}

fn of_volume(volume: Vertex, object: &Value) -> Vec<(Vertex, Vertex)> {
    let claim = |name: &str| object.str_at(&["spec", "claimRef", name]);
    if claim("name").is_empty() {
        return Vec::new();
    }
    let claim = Vertex::new("persistentvolumeclaims", claim("namespace"), claim("name"));
    let secrets = secrets_of_volume(object).map(|(namespace, name)| Vertex::new("secrets", namespace, name));
    let mut edges: Vec<_> = secrets.map(|secret| (secret, volume.clone())).collect();
    edges.push((volume, claim));
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn object(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    fn set(graph: &mut Graph, plural: &'static str, key: &str, object: Option<&Value>) {
        graph.set(plural, key.to_owned(), Edges::of(plural, object));
    }

    fn pod(spec: &str) -> Value {
        object(&format!("{{metadata: {{namespace: ns, name: p}}, spec: {{nodeName: a, {spec}}}}}"))
    }

    #[test]
    fn what_a_pod_names_leads_to_its_node_while_it_is_there() {
        let volumes = "volumes: [{name: v, ephemeral: {}}, {name: w, persistentVolumeClaim: {claimName: c}}, \
                       {name: x, projected: {sources: [{configMap: {name: m}}]}}]";
        let named = "serviceAccountName: s, imagePullSecrets: [{name: k}], resourceClaims: [{resourceClaimName: r}]";
        let mut graph = Graph::default();
        set(&mut graph, "pods", "ns/p", Some(&pod(&format!("{named}, {volumes}"))));
        let all = [
            ("pods", "p"),
            ("serviceaccounts", "s"),
            ("secrets", "k"),
            ("configmaps", "m"),
            ("resourceclaims", "r"),
            ("persistentvolumeclaims", "c"),
            ("persistentvolumeclaims", "p-v"),
        ];
        let (a, b) = (Vertex::node("a"), Vertex::node("b"));
        for (plural, name) in all {
            assert!(graph.leads(&Vertex::new(plural, "ns", name), &a), "{plural}/{name}");
            assert!(!graph.leads(&Vertex::new(plural, "ns", name), &b), "{plural}/{name}");
            assert!(!graph.leads(&Vertex::new(plural, "other", name), &a), "{plural}/{name}");
        }
        set(&mut graph, "pods", "ns/p", None);
        assert!(all.iter().all(|(plural, name)| !graph.leads(&Vertex::new(plural, "ns", name), &a)));
        assert!(graph.edges.is_empty() && graph.said.is_empty());
    }

    #[test]
    fn the_secret_of_a_volume_leads_to_the_nodes_of_its_claim() {
        let volume = "{metadata: {name: v}, spec: {claimRef: {namespace: ns, name: c}, \
                      csi: {nodeStageSecretRef: {namespace: z, name: k}, controllerExpandSecretRef: {name: hidden}}}}";
        let mut graph = Graph::default();
        set(&mut graph, "persistentvolumes", "v", Some(&object(volume)));
        let a = Vertex::node("a");
        let leads = |graph: &Graph| {
            [Vertex::new("persistentvolumes", "", "v"), Vertex::new("secrets", "z", "k")]
                .map(|vertex| graph.leads(&vertex, &a))
        };
        assert_eq!(leads(&graph), [false, false]);
        set(&mut graph, "pods", "ns/p", Some(&pod("volumes: [{name: w, persistentVolumeClaim: {claimName: c}}]")));
        assert_eq!(leads(&graph), [true, true]);
        assert!(!graph.leads(&Vertex::new("secrets", "ns", "hidden"), &a));
    }

    #[test]
    fn a_pod_that_its_node_shows_gives_it_nothing() {
        let mirror = "{metadata: {namespace: ns, name: p, annotations: {kubernetes.io/config.mirror: x}}, \
                      spec: {nodeName: a, serviceAccountName: s}}";
        let mut graph = Graph::default();
        set(&mut graph, "pods", "ns/p", Some(&object(mirror)));
        assert!(graph.leads(&Vertex::new("pods", "ns", "p"), &Vertex::node("a")));
        assert!(!graph.leads(&Vertex::new("serviceaccounts", "ns", "s"), &Vertex::node("a")));
    }
}
