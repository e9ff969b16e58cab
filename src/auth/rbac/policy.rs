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

/// All roles and bindings.
#[derive(Clone, Default)]
pub struct RbacPolicy {
    /// By `namespace/name`; cluster roles by their name alone.
    roles: OrdMap<Box<str>, Arc<[PolicyRule]>>,
    /// By namespace; those of the whole cluster under `""`.
    bindings: OrdMap<Box<str>, Bindings>,
}

/// The bindings of one namespace.
#[derive(Clone, Default)]
struct Bindings {
    by_name: OrdMap<Arc<str>, Arc<Binding>>,
    /// The names of the bindings of a user or service account.
    of_user: SubjectIndex,
    of_group: SubjectIndex,
}

/// Names of bindings, by subject.
type SubjectIndex = OrdMap<Box<str>, OrdSet<Arc<str>>>;

struct Binding {
    role: Reference,
    subjects: Vec<RbacSubject>,
}

/// The role that a binding refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub kind: String,
    pub name: String,
}

enum RbacSubject {
    User(String),
    Group(String),
    /// A service account, with its user name.
    Account {
        namespace: String,
        name: String,
        user: String,
    },
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
        let name = subject.str_at(&["name"]).to_owned();
        match subject.str_at(&["kind"]) {
            "User" => Some(RbacSubject::User(name)),
            "Group" => Some(RbacSubject::Group(name)),
            "ServiceAccount" => {
                let own = subject.str_at(&["namespace"]);
                let namespace = if own.is_empty() { namespace } else { own }.to_owned();
                let user = UserInfo::account_name(&namespace, &name);
                (!namespace.is_empty()).then_some(RbacSubject::Account { namespace, name, user })
            }
            _ => None,
        }
    }

    fn is(&self, user: &UserInfo, groups: &UserGroups<'_>) -> bool {
        match self {
            RbacSubject::User(name) | RbacSubject::Account { user: name, .. } => *name == user.name,
            RbacSubject::Group(name) => groups.has(name),
        }
    }
}

impl fmt::Display for RbacSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RbacSubject::User(name) => write!(f, "User {}", go_quote(name)),
            RbacSubject::Group(name) => write!(f, "Group {}", go_quote(name)),
            // Kubernetes prints the name before the namespace.
            RbacSubject::Account { namespace, name, .. } => {
                write!(f, "ServiceAccount {}", go_quote(&format!("{name}/{namespace}")))
            }
        }
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
        self.roles.insert(key.into(), PolicyRule::all_of(role).into());
    }

    pub fn remove_role(&mut self, key: &str) {
        self.roles.remove(key);
    }

    /// Records a binding under its key: `namespace/name`, or the name of a cluster role binding.
    pub fn set_binding(&mut self, key: &str, binding: &Value) {
        self.remove_binding(key);
        let (namespace, name) = split_key(key);
        let subjects = binding.items_at(&["subjects"]).iter();
        let subjects: Vec<_> = subjects.filter_map(|subject| RbacSubject::decode(subject, namespace)).collect();
        let name: Arc<str> = name.into();
        let bindings = self.bindings.entry(namespace.into()).or_default();
        for subject in &subjects {
            work::step();
            let (index, who) = bindings.index(subject);
            index.entry(who.into()).or_default().insert(Arc::clone(&name));
        }
        bindings.by_name.insert(name, Arc::new(Binding { role: Reference::of(binding), subjects }));
    }

    pub fn remove_binding(&mut self, key: &str) {
        let (namespace, name) = split_key(key);
        let Some(bindings) = self.bindings.get_mut(namespace) else { return };
        let Some(binding) = bindings.by_name.remove(name) else { return };
        for subject in &binding.subjects {
            let (index, who) = bindings.index(subject);
            if let Some(names) = index.get_mut(who) {
                names.remove(name);
                if names.is_empty() {
                    index.remove(who);
                }
            }
        }
        if bindings.by_name.is_empty() {
            self.bindings.remove(namespace);
        }
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
        let own = Some(namespace).filter(|namespace| !namespace.is_empty());
        let groups = UserGroups::of(user);
        let mut grants = Vec::new();
        for place in std::iter::once("").chain(own) {
            let Some((namespace, bindings)) = self.bindings.get_key_value(place) else { continue };
            for name in bindings.names_of(user) {
                work::step();
                let binding = &bindings.by_name[name];
                work::steps(binding.subjects.len());
                let Some(subject) = binding.subjects.iter().find(|subject| subject.is(user, &groups)) else { continue };
                grants.push((&**namespace, &**name, binding, subject));
            }
        }
        grants.into_iter().map(|(namespace, name, binding, subject)| {
            let rules = self.rules_of(&binding.role, namespace);
            Grant { namespace, name, role: &binding.role, subject, rules }
        })
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

impl Bindings {
    /// The index that lists the bindings of a subject, and the subject's key in it.
    fn index<'s>(&mut self, subject: &'s RbacSubject) -> (&mut SubjectIndex, &'s str) {
        match subject {
            RbacSubject::User(name) | RbacSubject::Account { user: name, .. } => (&mut self.of_user, name),
            RbacSubject::Group(name) => (&mut self.of_group, name),
        }
    }

    /// The names of the bindings that concern a user, in order, each once.
    fn names_of(&self, user: &UserInfo) -> BTreeSet<&Arc<str>> {
        let own = self.of_user.get(user.name.as_str()).into_iter();
        let of_groups = user.groups.iter().filter_map(|group| self.of_group.get(group.as_str()));
        own.chain(of_groups).flatten().collect()
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
        check(&ci, pods("create", "m"), Err(""));
        check(&ci, pods("create", ""), Err(""));
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
            steps
        };
        let (once, often) = (steps(1), steps(TIMES));
        assert!(often < 2 * once, "{once} and {often} steps");
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
