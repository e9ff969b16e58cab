//! All roles and bindings, indexed by subject.
//!
//! A decision looks only at the bindings of the user and of their groups, in the order of the
//! bindings' names. The maps are persistent: a copy of a policy costs nothing, so a new one is
//! built while the old one is read.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::{GROUP, PolicyRule};
use crate::auth::{Attributes, Decision, Rules, UserInfo};
use crate::value::{Value, go_quote};
use crate::work;

/// The maximum size of an aggregated error, in bytes; further missing roles are only counted.
const ERRORS_BYTES_MAX: usize = 16 << 10;
/// The maximum size of the rules that are listed for a user, in bytes.
const RULES_BYTES_MAX: usize = 3 << 20;

/// What a role or a binding takes beside its texts, in bytes: its key, and its place in the maps.
const ENTRY_BYTES: usize = 160;
/// What a subject takes beside its name, in bytes: its place in the index, and the key of its binding there.
const SUBJECT_BYTES: usize = 160;

/// All roles and bindings.
#[derive(Clone, Default)]
pub struct RbacPolicy {
    /// By `namespace/name`; cluster roles by their name alone.
    roles: OrdMap<Box<str>, Arc<[PolicyRule]>>,
    /// By `namespace/name`; those of the whole cluster by their name alone.
    bindings: OrdMap<Arc<str>, Arc<Binding>>,
    /// The keys of the bindings of a subject in a namespace, by [`SubjectKey`].
    by_subject: OrdMap<Box<str>, BindingKeys>,
    /// What all of that takes in memory, about.
    bytes: usize,
}

/// `namespace/` and who it is.
struct SubjectKey(String);

/// The keys of the bindings of a subject in a namespace. Most have one, and a set takes some 500 bytes.
#[derive(Clone)]
enum BindingKeys {
    One(Arc<str>),
    Many(OrdSet<Arc<str>>),
}

struct Binding {
    role: Reference,
    subjects: Box<[RbacSubject]>,
}

/// The role that a binding refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub kind: String,
    pub name: String,
}

enum RbacSubject {
    User(Box<str>),
    Group(Box<str>),
    /// A service account, by its user name.
    Account(Box<str>),
}

/// A binding that applies to a user, with the role's rules; `None` if the role does not exist.
struct Grant<'p> {
    namespace: &'p str,
    name: &'p str,
    role: &'p Reference,
    subject: &'p RbacSubject,
    rules: Option<&'p [PolicyRule]>,
}

impl Reference {
    /// The role that a binding grants.
    pub fn of(binding: &Value) -> Self {
        let text = |name: &str| binding.str_at(&["roleRef", name]).to_owned();
        Reference { kind: text("kind"), name: text("name") }
    }

    /// The role's key in `roles`, for a binding in `namespace`.
    fn key(&self, namespace: &str) -> Option<String> {
        match self.kind.as_str() {
            "ClusterRole" => Some(self.name.clone()),
            "Role" => Some(format!("{namespace}/{}", self.name)),
            _ => None,
        }
    }

    /// The error for a missing role.
    fn not_found(&self) -> String {
        format!("{}.{GROUP} {} not found", self.kind.to_lowercase(), go_quote(&self.name))
    }
}

impl RbacSubject {
    /// Decodes a subject of a binding in `namespace`; `None` if it is invalid.
    fn decode(subject: &Value, namespace: &str) -> Option<Self> {
        let name = subject.str_at(&["name"]);
        match subject.str_at(&["kind"]) {
            "User" => Some(RbacSubject::User(name.into())),
            "Group" => Some(RbacSubject::Group(name.into())),
            "ServiceAccount" => {
                let own = subject.str_at(&["namespace"]);
                let namespace = if own.is_empty() { namespace } else { own };
                (!namespace.is_empty()).then(|| RbacSubject::Account(UserInfo::account_name(namespace, name).into()))
            }
            _ => None,
        }
    }

    fn is(&self, user: &UserInfo, groups: &UserGroups<'_>) -> bool {
        match self {
            RbacSubject::User(name) | RbacSubject::Account(name) => **name == user.name,
            RbacSubject::Group(name) => groups.has(name),
        }
    }

    fn name(&self) -> &str {
        match self {
            RbacSubject::User(name) | RbacSubject::Account(name) | RbacSubject::Group(name) => name,
        }
    }

    /// Its key in the index.
    fn key(&self, namespace: &str) -> SubjectKey {
        let mut key = SubjectKey::of(namespace);
        match self {
            RbacSubject::User(name) | RbacSubject::Account(name) => key.set(SubjectKey::USER, name),
            RbacSubject::Group(name) => key.set(SubjectKey::GROUP, name),
        }
        key
    }
}

impl fmt::Display for RbacSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RbacSubject::User(name) => write!(f, "User {}", go_quote(name)),
            RbacSubject::Group(name) => write!(f, "Group {}", go_quote(name)),
            // Kubernetes prints the name before the namespace.
            RbacSubject::Account(user) => {
                let (namespace, name) = UserInfo::account_of(user).unwrap_or_default();
                write!(f, "ServiceAccount {}", go_quote(&format!("{name}/{namespace}")))
            }
        }
    }
}

impl SubjectKey {
    const USER: char = 'u';
    const GROUP: char = 'g';

    /// The beginning of the keys of a namespace, which has no slash in its name.
    fn of(namespace: &str) -> Self {
        SubjectKey(format!("{namespace}/"))
    }

    /// Sets who it is.
    fn set(&mut self, kind: char, name: &str) {
        let namespace = self.0.find('/').map_or(0, |slash| slash + 1);
        self.0.truncate(namespace);
        self.0.push(kind);
        self.0.push_str(name);
    }
}

impl BindingKeys {
    fn insert(&mut self, key: &Arc<str>) {
        match self {
            BindingKeys::One(known) if known == key => {}
            BindingKeys::One(known) => {
                *self = BindingKeys::Many([Arc::clone(known), Arc::clone(key)].into_iter().collect());
            }
            BindingKeys::Many(keys) => _ = keys.insert(Arc::clone(key)),
        }
    }

    /// Removes a key; returns whether none is left.
    fn remove(&mut self, key: &str) -> bool {
        match self {
            BindingKeys::One(known) => **known == *key,
            BindingKeys::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        let (one, many) = match self {
            BindingKeys::One(key) => (Some(key), None),
            BindingKeys::Many(keys) => (None, Some(keys)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl fmt::Display for Grant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { namespace, name, role, subject, .. } = self;
        let (kind, binding) = if namespace.is_empty() {
            ("ClusterRoleBinding", (*name).to_owned())
        } else {
            ("RoleBinding", format!("{name}/{namespace}"))
        };
        write!(f, "{kind} {} of {} {} to {subject}", go_quote(&binding), role.kind, go_quote(&role.name))
    }
}

impl RbacPolicy {
    /// Records a role under its key: `namespace/name`, or the name of a cluster role.
    pub fn set_role(&mut self, key: &str, role: &Value) {
        self.remove_role(key);
        let rules: Arc<[PolicyRule]> = PolicyRule::all_of(role).into();
        self.bytes += ENTRY_BYTES + PolicyRule::memory_bytes(&rules);
        self.roles.insert(key.into(), rules);
    }

    pub fn remove_role(&mut self, key: &str) {
        if let Some(rules) = self.roles.remove(key) {
            self.bytes = self.bytes.saturating_sub(ENTRY_BYTES + PolicyRule::memory_bytes(&rules));
        }
    }

    /// Records a binding under its key: `namespace/name`, or the name of a cluster role binding.
    pub fn set_binding(&mut self, key: &str, binding: &Value) {
        self.remove_binding(key);
        let (namespace, _) = split_key(key);
        let subjects = binding.items_at(&["subjects"]).iter();
        let subjects: Box<[_]> = subjects.filter_map(|subject| RbacSubject::decode(subject, namespace)).collect();
        let key: Arc<str> = key.into();
        for subject in &subjects {
            work::step();
            let SubjectKey(subject) = subject.key(namespace);
            match self.by_subject.get_mut(subject.as_str()) {
                Some(keys) => keys.insert(&key),
                None => _ = self.by_subject.insert(subject.into(), BindingKeys::One(Arc::clone(&key))),
            }
        }
        let binding = Binding { role: Reference::of(binding), subjects };
        self.bytes += binding.memory_bytes();
        self.bindings.insert(key, Arc::new(binding));
    }

    pub fn remove_binding(&mut self, key: &str) {
        let (namespace, _) = split_key(key);
        let Some(binding) = self.bindings.remove(key) else { return };
        self.bytes = self.bytes.saturating_sub(binding.memory_bytes());
        for subject in &binding.subjects {
            work::step();
            let SubjectKey(subject) = subject.key(namespace);
            if self.by_subject.get_mut(subject.as_str()).is_some_and(|keys| keys.remove(key)) {
                self.by_subject.remove(subject.as_str());
            }
        }
    }

    /// How many bytes it takes in memory, about.
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Decides whether a user may do what a request asks for. Members of `system:masters` may do
    /// everything.
    pub fn decide(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        if user.is_in(UserInfo::MASTERS) {
            return Decision::ALLOW;
        }
        let namespace = match attributes {
            Attributes::Resource(wanted) => wanted.namespace,
            Attributes::Path { .. } => "",
        };
        let (mut missing, mut seen) = (Vec::new(), SeenRoles::default());
        for grant in self.grants(user, namespace) {
            let Some(rules) = grant.rules else {
                missing.push(grant.role.not_found());
                continue;
            };
            if seen.is_new(rules) && rules.iter().any(|rule| rule.allows(attributes)) {
                return Decision::allow(format!("RBAC: allowed by {grant}"));
            }
        }
        let reason = if missing.is_empty() { String::new() } else { format!("RBAC: {}", aggregate(missing)) };
        Decision::no_opinion(reason)
    }

    /// The rules for a user in a namespace.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        let (mut rules, mut missing) = (Rules::default(), Vec::new());
        let mut room = RULES_BYTES_MAX;
        for grant in self.grants(user, namespace) {
            work::step();
            let Some(own) = grant.rules else {
                missing.push(grant.role.not_found());
                continue;
            };
            for rule in own.iter().take_while(|_| !rules.incomplete) {
                let Some(left) = room.checked_sub(rule.bytes()) else {
                    rules.incomplete = true;
                    break;
                };
                room = left;
                work::bytes(rule.bytes());
                let (resource, other) = rule.split();
                rules.resource.extend(resource);
                rules.non_resource.extend(other);
            }
        }
        rules.error = aggregate(missing);
        rules
    }

    /// How many bytes [`RbacPolicy::rules_for`] takes in memory until it is sent, about.
    pub fn rules_bytes(&self, user: &UserInfo, namespace: &str) -> usize {
        let (mut room, mut bytes) = (RULES_BYTES_MAX, 0);
        for rule in self.grants(user, namespace).filter_map(|grant| grant.rules).flatten() {
            work::bytes(rule.bytes());
            let Some(left) = room.checked_sub(rule.bytes()) else { break };
            room = left;
            bytes += rule.listed_bytes();
        }
        bytes
    }

    /// The rules that hold for a user in a namespace, those of each role once, and the errors for missing roles.
    pub(super) fn own_rules(&self, user: &UserInfo, namespace: &str) -> (Vec<&PolicyRule>, Vec<String>) {
        let (mut own, mut missing, mut seen) = (Vec::new(), Vec::new(), SeenRoles::default());
        for grant in self.grants(user, namespace) {
            match grant.rules {
                Some(rules) if seen.is_new(rules) => own.extend(rules),
                Some(_) => {}
                None => missing.push(grant.role.not_found()),
            }
            work::step();
        }
        (own, missing)
    }

    /// The rules of a role that a binding in `namespace` refers to; `None` if the role does not
    /// exist.
    pub fn rules_of(&self, role: &Reference, namespace: &str) -> Option<&[PolicyRule]> {
        self.roles.get(role.key(namespace)?.as_str()).map(|rules| &**rules)
    }

    /// The bindings that apply to a user: those of the cluster, then those of the namespace.
    fn grants<'p>(&'p self, user: &UserInfo, namespace: &str) -> impl Iterator<Item = Grant<'p>> {
        // A review may ask for a namespace that there can't be.
        let own = Some(namespace).filter(|namespace| !namespace.is_empty() && !namespace.contains('/'));
        let groups = UserGroups::of(user);
        let mut grants = Vec::new();
        for place in std::iter::once("").chain(own) {
            for key in self.keys_of(user, place) {
                work::step();
                let binding = &self.bindings[key];
                work::steps(binding.subjects.len());
                let Some(subject) = binding.subjects.iter().find(|subject| subject.is(user, &groups)) else { continue };
                grants.push((split_key(key), binding, subject));
            }
        }
        grants.into_iter().map(|((namespace, name), binding, subject)| {
            let rules = self.rules_of(&binding.role, namespace);
            Grant { namespace, name, role: &binding.role, subject, rules }
        })
    }

    /// The keys of the bindings in a namespace that concern a user, in order, each once.
    fn keys_of(&self, user: &UserInfo, namespace: &str) -> BTreeSet<&Arc<str>> {
        let mut subject = SubjectKey::of(namespace);
        let mut found = BTreeSet::new();
        let users = std::iter::once((SubjectKey::USER, &user.name));
        for (kind, name) in users.chain(user.groups.iter().map(|group| (SubjectKey::GROUP, group))) {
            subject.set(kind, name);
            found.extend(self.by_subject.get(subject.0.as_str()).into_iter().flat_map(BindingKeys::iter));
        }
        found
    }
}

impl Binding {
    /// How many bytes it takes in memory, about.
    fn memory_bytes(&self) -> usize {
        // A name is in the index, too.
        let subjects = self.subjects.iter().map(|subject| SUBJECT_BYTES + 2 * subject.name().len());
        ENTRY_BYTES + self.role.kind.len() + self.role.name.len() + subjects.sum::<usize>()
    }
}

/// The roles whose rules were looked at: a role may be bound thousands of times.
#[derive(Default)]
struct SeenRoles(HashSet<usize>);

impl SeenRoles {
    /// Whether these rules of a role were not looked at before.
    fn is_new(&mut self, rules: &[PolicyRule]) -> bool {
        self.0.insert(rules.as_ptr().addr())
    }
}

/// The groups of a user, sorted: a review may list as many groups as a binding has subjects.
struct UserGroups<'u>(Vec<&'u str>);

impl<'u> UserGroups<'u> {
    fn of(user: &'u UserInfo) -> Self {
        work::steps(user.groups.len());
        let mut groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
        groups.sort_unstable();
        UserGroups(groups)
    }

    fn has(&self, group: &str) -> bool {
        self.0.binary_search(&group).is_ok()
    }
}

/// Splits a key into namespace and name.
fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// Joins errors as Go does, each once, as far as there is room. The first is included however long
/// it is.
pub(super) fn aggregate(mut errors: Vec<String>) -> String {
    work::steps(errors.len());
    let mut seen = BTreeSet::new();
    errors.retain(|error| seen.insert(error.clone()));
    let mut room = ERRORS_BYTES_MAX;
    let fits = |error: &&String| room.checked_sub(error.len()).inspect(|left| room = *left).is_some();
    let told = errors.iter().take_while(fits).count().max(1);
    if told < errors.len() {
        let more = format!("and {} more", errors.len() - told);
        errors.truncate(told);
        errors.push(more);
    }
    match errors.len() {
        0 | 1 => errors.pop().unwrap_or_default(),
        _ => format!("[{}]", errors.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ResourceAttributes;
    use crate::value::yaml;

    fn yaml(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("it is YAML")
    }

    fn policy() -> RbacPolicy {
        let mut policy = RbacPolicy::default();
        policy.set_role("reader", &yaml("rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"));
        policy.set_role("n/writer", &yaml("rules: [{apiGroups: [''], resources: [pods], verbs: [create]}]"));
        policy.set_role("n/paths", &yaml("rules: [{nonResourceURLs: ['*'], verbs: ['*']}]"));
        let bind = |subjects: &str, kind: &str, name: &str| {
            yaml(&format!("{{subjects: [{subjects}], roleRef: {{kind: {kind}, name: {name}}}}}"))
        };
        policy.set_binding("readers", &bind("{kind: Group, name: dev}", "ClusterRole", "reader"));
        policy.set_binding("n/ci", &bind("{kind: ServiceAccount, name: ci}", "Role", "writer"));
        policy.set_binding("n/gone", &bind("{kind: User, name: jane}", "Role", "gone"));
        policy.set_binding("n/paths", &bind("{kind: User, name: jane}", "Role", "paths"));
        policy
    }

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo::authenticated(name, groups.iter().map(|group| (*group).to_owned()).collect())
    }

    fn pods<'a>(verb: &'a str, namespace: &'a str) -> Attributes<'a> {
        Attributes::Resource(ResourceAttributes { verb, resource: "pods", namespace, ..ResourceAttributes::default() })
    }

    #[track_caller]
    fn check(user: &UserInfo, wanted: Attributes<'_>, expected: Result<&str, &str>) {
        let expected = match expected {
            Ok(reason) => Decision::allow(reason),
            Err(reason) => Decision::no_opinion(reason),
        };
        assert_eq!(policy().decide(user, &wanted), expected);
    }

    #[test]
    fn a_decision_says_what_it_follows_from() {
        let dev = user("joe", &["dev"]);
        let reason = r#"RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "dev""#;
        check(&dev, pods("get", "n"), Ok(reason));
        check(&dev, pods("get", ""), Ok(reason));
        check(&dev, pods("create", "n"), Err(""));
        let ci = user("system:serviceaccount:n:ci", &[]);
        let reason = r#"RBAC: allowed by RoleBinding "ci/n" of Role "writer" to ServiceAccount "ci/n""#;
        check(&ci, pods("create", "n"), Ok(reason));
        for other in ["m", "n/", "n/m", "/n", ""] {
            check(&ci, pods("create", other), Err(""));
        }
    }

    #[test]
    fn roles_of_a_namespace_say_nothing_of_paths() {
        check(&user("jane", &[]), Attributes::Path { verb: "get", path: "/x" }, Err(""));
    }

    #[test]
    fn a_role_that_is_not_there_is_told() {
        let reason = r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#;
        check(&user("jane", &[]), pods("get", "n"), Err(reason));
        check(&user("jane", &["dev"]), pods("create", "n"), Err(reason));
    }

    #[test]
    fn a_role_that_is_bound_often_is_looked_at_once() {
        const TIMES: usize = 200;
        let rules = vec!["{apiGroups: [''], resources: [pods], verbs: [get]}"; TIMES].join(", ");
        let jane = user("jane", &[]);
        let steps = |bindings: usize| {
            let mut policy = RbacPolicy::default();
            policy.set_role("reader", &yaml(&format!("rules: [{rules}]")));
            for at in 0..bindings {
                let binding = "{subjects: [{kind: User, name: jane}], roleRef: {kind: ClusterRole, name: reader}}";
                policy.set_binding(&format!("b{at}"), &yaml(binding));
            }
            let (decision, steps) = work::counted(|| policy.decide(&jane, &pods("create", "n")));
            assert_eq!(decision, Decision::NO_OPINION);
            assert_eq!(policy.own_rules(&jane, "n").0.len(), TIMES);
            assert_eq!(policy.rules_for(&jane, "n").resource.len(), TIMES * bindings, "as Kubernetes lists them");
            let bytes = policy.rules_bytes(&jane, "n") / (TIMES * bindings);
            assert!((500..2_000).contains(&bytes), "{bytes} bytes a rule");
            steps
        };
        let (once, often) = (steps(1), steps(TIMES));
        assert!(often < 2 * once, "{once} and {often} steps");
    }

    #[test]
    fn what_it_takes_is_told_and_given_back() {
        let mut policy = RbacPolicy::default();
        let names: Vec<_> = (0..1000).map(|at| format!("n{at}")).collect();
        let role = format!(
            "rules: [{{apiGroups: [''], resources: [pods], verbs: [get], resourceNames: [{}]}}]",
            names.join(",")
        );
        let subjects: Vec<_> = names.iter().map(|name| format!("{{kind: User, name: {name}}}")).collect();
        let binding = format!("{{subjects: [{}], roleRef: {{kind: Role, name: r}}}}", subjects.join(","));
        for _ in 0..2 {
            policy.set_role("n/r", &yaml(&role));
            policy.set_binding("n/b", &yaml(&binding));
            policy.set_binding("n/c", &yaml(&binding));
        }
        let of_each = policy.memory_bytes() / 1000;
        assert!((2 * SUBJECT_BYTES..2 * SUBJECT_BYTES + 30).contains(&of_each), "{of_each}");
        let may = |policy: &RbacPolicy| policy.decide(&user("n7", &[]), &pods("get", "n"));
        let expected = r#"RBAC: role.rbac.authorization.k8s.io "r" not found"#;
        assert_eq!(may(&policy), Decision::NO_OPINION);
        policy.remove_role("n/r");
        assert_eq!(may(&policy), Decision::no_opinion(expected));
        policy.remove_binding("n/b");
        assert_eq!(may(&policy), Decision::no_opinion(expected));
        policy.remove_binding("n/c");
        assert_eq!((may(&policy), policy.memory_bytes()), (Decision::NO_OPINION, 0));
        assert!(policy.by_subject.is_empty());
    }

    #[test]
    fn masters_may_do_everything() {
        check(&UserInfo::unsecured(), pods("explode", "n"), Ok(""));
    }

    #[test]
    fn what_is_taken_away_holds_no_more() {
        let mut policy = policy();
        let dev = user("joe", &["dev"]);
        policy.set_role("reader", &yaml("rules: []"));
        assert_eq!(policy.decide(&dev, &pods("get", "n")), Decision::NO_OPINION);
        policy.set_role("reader", &yaml("rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]"));
        assert!(policy.decide(&dev, &pods("get", "n")).is_allowed());
        policy.remove_binding("readers");
        assert!(!policy.decide(&dev, &pods("get", "n")).is_allowed());
    }
}
