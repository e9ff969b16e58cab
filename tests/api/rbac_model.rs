//! What the documentation says of RBAC, written as a model that is slow and plain, and worlds of roles that are made from
//! seeds: the authoriser decides as the model does, after every change.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization".

use kubeskiff::auth::rbac::RbacPolicy;
use kubeskiff::auth::{Attributes, ResourceAttributes, UserInfo};
use kubeskiff::value::json;
use serde_json::{Value, json as object};

const WORLDS: u64 = 60;
const REQUESTS: usize = 250;
const CHANGES: usize = 40;

/// A generator of numbers that are always the same.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn some(&mut self, of: &[&str], min: usize, max: usize) -> Vec<String> {
        (0..min + self.below(max - min + 1)).map(|_| self.pick(of).to_owned()).collect()
    }
}

const VERBS: [&str; 5] = ["get", "list", "create", "delete", "deletecollection"];
const GROUPS: [&str; 2] = ["", "example.com"];
const RESOURCES: [&str; 3] = ["widgets", "secrets", "widgetsets"];
const SUBRESOURCES: [&str; 3] = ["", "", "status"];
const NAMES: [&str; 3] = ["", "a", "b"];
const NAMESPACES: [&str; 3] = ["", "n", "m"];
const PATHS: [&str; 4] = ["/version", "/apis", "/apis/example.com", "/"];
const USERS: [&str; 4] = ["jane", "joe", "system:serviceaccount:n:ci", "system:serviceaccount:m:ci"];
const TEAMS: [&str; 3] = ["dev", "ops", "system:serviceaccounts:n"];

/// One request, and who sends it.
#[derive(Clone, Debug)]
pub struct Request {
    pub user: String,
    pub groups: Vec<String>,
    pub verb: String,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Where it is not empty, the request is for no resource.
    pub path: String,
}

pub fn request(random: &mut Random) -> Request {
    let text = |random: &mut Random, of: &[&str]| random.pick(of).to_owned();
    let is_path = random.below(8) == 0;
    Request {
        user: text(random, &USERS),
        groups: random.some(&TEAMS, 0, 2),
        verb: text(random, &VERBS),
        group: text(random, &GROUPS),
        resource: text(random, &RESOURCES),
        subresource: text(random, &SUBRESOURCES),
        namespace: text(random, &NAMESPACES),
        name: text(random, &NAMES),
        path: if is_path { text(random, &PATHS) } else { String::new() },
    }
}

fn rule(random: &mut Random) -> Value {
    if random.below(6) == 0 {
        let urls = ["/version", "/apis", "/apis/*", "/ap*", "*"];
        return object!({"verbs": random.some(&["get", "list", "*"], 1, 2), "nonResourceURLs": random.some(&urls, 1, 2)});
    }
    let verbs = [&VERBS[..], &["*"]].concat();
    let resources = ["widgets", "secrets", "widgets/status", "*/status", "*", "widgetsets", "widget*"];
    let mut rule = object!({
        "verbs": random.some(&verbs, 1, 3),
        "apiGroups": random.some(&["", "example.com", "*"], 1, 2),
        "resources": random.some(&resources, 1, 2),
    });
    if random.below(3) == 0 {
        rule["resourceNames"] = object!(random.some(&["a", "b", "*"], 1, 2));
    }
    rule
}

fn rules(random: &mut Random) -> Value {
    (0..random.below(4)).map(|_| rule(random)).collect()
}

/// An object of RBAC under a key: a role, or a binding, which mostly names a role that is there.
pub fn rbac_object(random: &mut Random) -> (String, Value) {
    let namespace = random.pick(&NAMESPACES);
    let name = format!("r{}", random.below(5));
    let is_role = random.below(2) == 0;
    let kind = match (is_role, namespace) {
        (true, "") => "ClusterRole",
        (true, _) => "Role",
        (false, "") => "ClusterRoleBinding",
        (false, _) => "RoleBinding",
    };
    let mut made = object!({"kind": kind, "metadata": {"name": name, "namespace": namespace}});
    if is_role {
        made["rules"] = rules(random)
    } else {
        let of = if namespace.is_empty() || random.below(2) == 0 { "ClusterRole" } else { "Role" };
        let subject = |random: &mut Random| match random.below(3) {
            0 => object!({"kind": "User", "name": random.pick(&USERS)}),
            1 => object!({"kind": "Group", "name": random.pick(&TEAMS)}),
            _ => object!({"kind": "ServiceAccount", "name": "ci", "namespace": random.pick(&NAMESPACES)}),
        };
        made["roleRef"] = object!({"kind": of, "name": format!("r{}", random.below(5))});
        made["subjects"] = (0..random.below(3)).map(|_| subject(random)).collect();
    }
    let key = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
    (format!("{kind} {key}"), made)
}

/// What there is, by kind and key.
pub type World = std::collections::BTreeMap<String, Value>;

fn texts<'a>(object: &'a Value, field: &str) -> Vec<&'a str> {
    object[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether the request is allowed: some binding that holds where it is grants its sender a role with a rule for it.
pub fn is_allowed(world: &World, request: &Request) -> bool {
    let bindings = world.values().filter(|object| !object["roleRef"].is_null());
    bindings.into_iter().any(|binding| {
        let namespace = binding["metadata"]["namespace"].as_str().expect("it is made so");
        let holds_here = namespace.is_empty() || (request.path.is_empty() && namespace == request.namespace);
        let is_sender =
            binding["subjects"].as_array().into_iter().flatten().any(|subject| is_sender(subject, namespace, request));
        let (kind, name) = (binding["roleRef"]["kind"].as_str(), binding["roleRef"]["name"].as_str());
        let (kind, name) = (kind.expect("it is made so"), name.expect("it is made so"));
        let key = if kind == "ClusterRole" { name.to_owned() } else { format!("{namespace}/{name}") };
        let role = world.get(&format!("{kind} {key}"));
        let grants =
            role.and_then(|role| role["rules"].as_array()).into_iter().flatten().any(|rule| grants(rule, request));
        holds_here && is_sender && grants
    })
}

fn is_sender(subject: &Value, binding_namespace: &str, request: &Request) -> bool {
    let text = |name: &str| subject[name].as_str().unwrap_or_default();
    match text("kind") {
        "User" => request.user == text("name"),
        "Group" => request.groups.iter().any(|group| group == text("name")),
        _ => {
            let namespace = if text("namespace").is_empty() { binding_namespace } else { text("namespace") };
            !namespace.is_empty() && request.user == format!("system:serviceaccount:{namespace}:{}", text("name"))
        }
    }
}

fn grants(rule: &Value, request: &Request) -> bool {
    let names = |field: &str, wanted: &str| texts(rule, field).iter().any(|text| *text == "*" || *text == wanted);
    if !request.path.is_empty() {
        let urls = texts(rule, "nonResourceURLs");
        let covers = |url: &&str| match url.strip_suffix('*') {
            Some(beginning) => request.path.starts_with(beginning),
            None => request.path == *url,
        };
        return names("verbs", &request.verb) && urls.iter().any(covers);
    }
    let wanted = match request.subresource.as_str() {
        "" => vec![request.resource.clone()],
        part => vec![format!("{}/{part}", request.resource), format!("*/{part}")],
    };
    let resource =
        texts(rule, "resources").iter().any(|text| *text == "*" || wanted.iter().any(|wanted| wanted == text));
    // A star is a name like another.
    let name = texts(rule, "resourceNames").is_empty() || texts(rule, "resourceNames").contains(&request.name.as_str());
    names("verbs", &request.verb) && names("apiGroups", &request.group) && resource && name
}

/// Tells the authoriser what is under a key now.
fn tell(policy: &mut RbacPolicy, key: &str, object: Option<&Value>) {
    let (kind, key) = key.split_once(' ').expect("a kind and a key");
    let object = object.map(|object| json::decode(object.to_string().as_bytes()).expect("it is JSON"));
    match (kind.ends_with("Binding"), object) {
        (false, Some(role)) => policy.set_role(key, &role),
        (false, None) => policy.remove_role(key),
        (true, Some(binding)) => policy.set_binding(key, &binding),
        (true, None) => policy.remove_binding(key),
    }
}

/// What the authoriser says.
fn decide(policy: &RbacPolicy, request: &Request) -> bool {
    let user = UserInfo::authenticated(request.user.as_str(), request.groups.clone());
    let attributes = match request.path.as_str() {
        "" => Attributes::Resource(ResourceAttributes {
            verb: &request.verb,
            group: &request.group,
            version: "v1",
            resource: &request.resource,
            subresource: &request.subresource,
            namespace: &request.namespace,
            name: &request.name,
            fields: None,
            labels: None,
        }),
        path => Attributes::Path { verb: &request.verb, path },
    };
    policy.decide(&user, &attributes).is_allowed()
}

#[test]
fn the_authoriser_decides_as_the_documentation_says() {
    let mut allowed = 0;
    for seed in 0..WORLDS {
        let mut random = Random(seed);
        let (mut world, mut policy) = (World::new(), RbacPolicy::default());
        for _ in 0..CHANGES {
            let (key, object) = rbac_object(&mut random);
            match random.below(5) {
                0 => {
                    tell(&mut policy, &key, None);
                    world.remove(&key);
                }
                _ => {
                    tell(&mut policy, &key, Some(&object));
                    world.insert(key, object);
                }
            }
            for _ in 0..REQUESTS / CHANGES {
                let request = request(&mut random);
                let expected = is_allowed(&world, &request);
                allowed += usize::from(expected);
                assert_eq!(decide(&policy, &request), expected, "seed {seed}: {request:?} in {world:#?}");
            }
        }
    }
    // Neither answer is the rule.
    let all = WORLDS as usize * CHANGES * (REQUESTS / CHANGES);
    assert!((all / 50..all / 2).contains(&allowed), "{allowed} of {all} are allowed");
}
