//! The objects that a node needs: those that lead to it by the references of pods and volumes.
//!
//! Input: pods, PersistentVolumes and objects that name a node, one by one, as they are stored. Out:
//! whether an object leads to a node. The longest path is: a secret of a volume, the volume, its
//! claim, the node of a pod that uses the claim.
//!
//! A pod may name a hundred thousand objects, in a few bytes each. So the graph knows an object by 128 bits that are made of
//! its name with random keys: nobody can find two names that give the same.
//!
//! Source: `plugin/pkg/auth/authorizer/node/graph.go`, release 1.36.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher as _;

use super::references::{config_maps, resource_claims, secrets, secrets_of_volume, volume_claims};
use crate::value::Value;
use crate::work;

/// The annotation of a mirror pod: it was created by its node, and so grants the node nothing.
const MIRROR: &str = "kubernetes.io/config.mirror";
const NODES: &str = "nodes";
/// What an edge takes, in bytes, and what an object takes beside its edges and its key. Measured with a million.
const EDGE_BYTES: usize = 112;
const SOURCE_BYTES: usize = 96;

/// An object: its plural, its namespace and its name.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Vertex<'a> {
    plural: &'static str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Vertex<'a> {
    pub fn new(plural: &'static str, namespace: &'a str, name: &'a str) -> Self {
        Vertex { plural, namespace, name }
    }

    pub fn node(name: &'a str) -> Self {
        Vertex::new(NODES, "", name)
    }
}

/// What the graph knows of a vertex: keyed hashes, of which the last bit says whether it is a node.
type VertexId = u128;
const NODE_BIT: VertexId = 1;

/// The keys that give each vertex its id.
#[derive(Clone, Debug, Default)]
pub struct VertexKeys([RandomState; 2]);

impl VertexKeys {
    fn id(&self, vertex: Vertex<'_>) -> VertexId {
        work::bytes(vertex.name.len());
        let [high, low] = self.0.each_ref().map(|key| VertexId::from(key.hash_one(vertex)));
        let node = if vertex.plural == NODES { NODE_BIT } else { 0 };
        (high << u64::BITS | low) & !NODE_BIT | node
    }

    /// The edges that an object of `plural` contributes; none without an object.
    pub fn edges(&self, plural: &'static str, object: Option<&Value>) -> Edges {
        let mut edges = object.map(|object| edges(self, plural, object)).unwrap_or_default();
        edges.sort_unstable();
        edges.dedup();
        Edges(edges.into())
    }
}

/// The edges that an object contributes, each of them once, in order.
#[derive(Debug, Default)]
pub struct Edges(Box<[(VertexId, VertexId)]>);

impl Edges {
    /// How much memory they take in the graph, of an object that is stored under `key`.
    pub fn bytes(&self, key: &str) -> usize {
        if self.0.is_empty() { 0 } else { SOURCE_BYTES + key.len() + self.0.len() * EDGE_BYTES }
    }
}

/// The objects, and where each of them leads to.
#[derive(Debug, Default)]
pub struct Graph {
    keys: VertexKeys,
    /// How many stored objects contribute each edge.
    edges: BTreeMap<(VertexId, VertexId), usize>,
    /// The edges that each stored object contributes.
    said: HashMap<(&'static str, Box<str>), Edges>,
    /// The memory that all of it takes.
    bytes: usize,
}

impl Graph {
    pub fn keys(&self) -> &VertexKeys {
        &self.keys
    }

    /// Records what the object of `plural` contributes that is stored under `key`: nothing if it was deleted. It is to
    /// run as a whole, as [`work::essential`].
    pub fn set(&mut self, plural: &'static str, key: &str, edges: Edges) {
        let source = (plural, Box::from(key));
        let before = self.said.remove(&source).unwrap_or_default();
        self.bytes -= before.bytes(key);
        before.0.iter().for_each(|edge| self.remove_edge(edge));
        if edges.0.is_empty() {
            return;
        }
        for edge in &edges.0 {
            work::step();
            *self.edges.entry(*edge).or_default() += 1;
        }
        self.bytes += edges.bytes(key);
        self.said.insert(source, edges);
    }

    /// Forgets all objects; the keys stay.
    pub fn forget_objects(&mut self) {
        *self = Graph { keys: self.keys.clone(), ..Graph::default() };
    }

    fn remove_edge(&mut self, edge: &(VertexId, VertexId)) {
        let Some(count) = self.edges.get_mut(edge) else { return };
        *count -= 1;
        if *count == 0 {
            self.edges.remove(edge);
        }
    }

    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How much of it is for the object of `plural` that is stored under `key`.
    pub fn bytes_of(&self, plural: &'static str, key: &str) -> usize {
        self.said.get(&(plural, Box::from(key))).map_or(0, |edges| edges.bytes(key))
    }

    /// Whether there is a path from an object to a node.
    pub fn leads(&self, from: Vertex<'_>, node: Vertex<'_>) -> bool {
        let (from, node) = (self.keys.id(from), self.keys.id(node));
        let (mut seen, mut left) = (HashSet::new(), vec![from]);
        while let Some(vertex) = left.pop() {
            if self.edges.contains_key(&(vertex, node)) {
                return true;
            }
            let ends = self.edges.range((vertex, VertexId::MIN)..=(vertex, VertexId::MAX));
            let ends = ends.inspect(|_| work::step()).map(|((_, end), _)| *end);
            left.extend(ends.filter(|end| end & NODE_BIT == 0 && seen.insert(*end)));
        }
        false
    }
}

fn edges(keys: &VertexKeys, plural: &'static str, object: &Value) -> Vec<(VertexId, VertexId)> {
    let (namespace, name) = (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]));
    let itself = Vertex::new(plural, namespace, name);
    match plural {
        "persistentvolumes" => of_volume(keys, itself, object),
        "pods" => of_pod(keys, itself, object),
        _ => match object.str_at(&["spec", "nodeName"]) {
            "" => Vec::new(),
            node => vec![(keys.id(itself), keys.id(Vertex::node(node)))],
        },
    }
}

fn of_pod(keys: &VertexKeys, pod: Vertex<'_>, object: &Value) -> Vec<(VertexId, VertexId)> {
    let node = match object.str_at(&["spec", "nodeName"]) {
        "" => return Vec::new(),
        node => keys.id(Vertex::node(node)),
    };
    let mut needed = vec![keys.id(pod)];
    if object.at(&["metadata", "annotations", MIRROR]).is_none() {
        let of = |plural, name: &str| keys.id(Vertex::new(plural, pod.namespace, name));
        let account = object.str_at(&["spec", "serviceAccountName"]);
        needed.extend(Some(account).filter(|name| !name.is_empty()).map(|name| of("serviceaccounts", name)));
        needed.extend(secrets(object).map(|name| of("secrets", name)));
        needed.extend(config_maps(object).map(|name| of("configmaps", name)));
        needed.extend(volume_claims(object).map(|name| of("persistentvolumeclaims", &name)));
        needed.extend(resource_claims(object).map(|name| of("resourceclaims", name)));
    }
    needed.into_iter().map(|from| (from, node)).collect()
}

fn of_volume(keys: &VertexKeys, volume: Vertex<'_>, object: &Value) -> Vec<(VertexId, VertexId)> {
    let claim = |name: &str| object.str_at(&["spec", "claimRef", name]);
    if claim("name").is_empty() {
        return Vec::new();
    }
    let volume = keys.id(volume);
    let claim = keys.id(Vertex::new("persistentvolumeclaims", claim("namespace"), claim("name")));
    let secrets = secrets_of_volume(object).map(|(namespace, name)| Vertex::new("secrets", namespace, name));
    let mut edges: Vec<_> = secrets.map(|secret| (keys.id(secret), volume)).collect();
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
        let edges = graph.keys().edges(plural, object);
        graph.set(plural, key, edges);
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
            assert!(graph.leads(Vertex::new(plural, "ns", name), a), "{plural}/{name}");
            assert!(!graph.leads(Vertex::new(plural, "ns", name), b), "{plural}/{name}");
            assert!(!graph.leads(Vertex::new(plural, "other", name), a), "{plural}/{name}");
        }
        set(&mut graph, "pods", "ns/p", None);
        assert!(all.iter().all(|(plural, name)| !graph.leads(Vertex::new(plural, "ns", name), a)));
        assert!(graph.edges.is_empty() && graph.said.is_empty() && graph.bytes() == 0);
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
                .map(|vertex| graph.leads(vertex, a))
        };
        assert_eq!(leads(&graph), [false, false]);
        set(&mut graph, "pods", "ns/p", Some(&pod("volumes: [{name: w, persistentVolumeClaim: {claimName: c}}]")));
        assert_eq!(leads(&graph), [true, true]);
        assert!(!graph.leads(Vertex::new("secrets", "ns", "hidden"), a));
    }

    #[test]
    fn a_pod_that_its_node_shows_gives_it_nothing() {
        let mirror = "{metadata: {namespace: ns, name: p, annotations: {kubernetes.io/config.mirror: x}}, \
                      spec: {nodeName: a, serviceAccountName: s}}";
        let mut graph = Graph::default();
        set(&mut graph, "pods", "ns/p", Some(&object(mirror)));
        assert!(graph.leads(Vertex::new("pods", "ns", "p"), Vertex::node("a")));
        assert!(!graph.leads(Vertex::new("serviceaccounts", "ns", "s"), Vertex::node("a")));
    }
}
