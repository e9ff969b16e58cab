//! Aggregated cluster roles: they collect the rules of other roles, selected by labels.
//!
//! Source: the cluster role aggregation controller of Kubernetes 1.37.

use std::collections::HashSet;
use std::sync::Arc;

use memchr::memmem;
use tokio::time::Instant;

use super::changes::{Controller, queue_all};
use super::decoded;
use super::identity::service_account;
use super::queue::{Progress, Queue};
use crate::kinds::RBAC_GROUP;
use crate::kinds::default_roles::{Extent, cluster_roles};
use crate::meta::selector::LabelSelector;
use crate::meta::{OBJECT_BYTES_MAX, Status};
use crate::object;
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::store::{At, ChangeEvent, Collection, Moment, Snapshot, Stored};
use crate::value::{Value, json};
use crate::work;

const PLURAL: &str = "clusterroles";
/// Its service account, and the manager of what it sets.
const NAME: &str = "clusterrole-aggregation-controller";
/// A text that the bytes of every aggregated role contain.
const MARK: &[u8] = b"\"aggregationRule\"";
/// How long a chain of roles is followed at once.
const ROUNDS_MAX: usize = 8;

/// Keeps the rules of aggregated roles up to date.
pub(super) struct Aggregation {
    pub registry: Arc<Registry>,
}

/// A key is the name of a role. Aggregated roles wait for changes of all others: only their selectors show which of
/// them a change concerns.
impl Controller for Aggregation {
    type Key = String;
    const AT_ONCE: usize = 4;
    const TASK: &str = "gathering the rules of roles";

    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        queue_all(&self.registry, &collection(), queue, str::to_owned).await
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<String>) {
        if !change.collection.is(RBAC_GROUP, PLURAL) {
            return;
        }
        let now = Instant::now();
        if change.stored.as_ref().is_some_and(|stored| is_marked(stored)) {
            queue.add(change.key.to_string(), now);
        }
        queue.wake_all(now);
    }

    async fn reconcile(&self, name: &String) -> Result<Progress, Status> {
        match decoded::counted(&self.registry.memory, "", aggregate(&self.registry, name)).await {
            Ok(Some(_)) => Ok(Progress::Waits),
            Ok(None) => Ok(Progress::Done),
            Err(status) if status == Status::too_large_to_store() => {
                tracing::warn!(name, "a role selects more rules than it can have, they are not gathered");
                Ok(Progress::Waits)
            }
            Err(status) => Err(status),
        }
    }
}

/// Gathers the rules of the default roles, so that they are there when the server is ready; all others, and what fails
/// here, are left to the controller. Default roles are aggregated in turn, so it is repeated until nothing changes.
pub async fn aggregate_default_roles(registry: &Arc<Registry>, extent: Extent) {
    let names: Vec<String> = cluster_roles(extent)
        .filter(|role| role.at(&["aggregationRule"]).is_some())
        .map(|role| role.str_at(&["metadata", "name"]).to_owned())
        .collect();
    for _ in 0..ROUNDS_MAX {
        let mut has_changed = false;
        for name in &names {
            match aggregate(registry, name).await {
                Ok(outcome) => has_changed |= outcome == Some(Gathered::Changed),
                Err(status) => tracing::warn!(message = status.message, name, "a default role can't be gathered"),
            }
        }
        if !has_changed {
            return;
        }
    }
}

fn collection() -> Collection {
    Collection::new(RBAC_GROUP, PLURAL)
}

/// Whether a role may be aggregated.
fn is_marked(stored: &Stored) -> bool {
    memmem::find(&stored.bytes, MARK).is_some()
}

/// Whether gathering its rules changed a role.
#[derive(Debug, PartialEq, Eq)]
enum Gathered {
    Unchanged,
    Changed,
}

/// Gathers the rules of a role; `None` if it is not aggregated, or has changed meanwhile: then its change is handled.
async fn aggregate(registry: &Arc<Registry>, name: &str) -> Result<Option<Gathered>, Status> {
    let snapshot = registry.storage.snapshot(&collection(), At::Newest).await;
    let snapshot = snapshot.map_err(|_| Status::internal_error("the cluster roles can't be read"))?;
    let stored = snapshot.range(name, None).find(|stored| *stored.key == *name).filter(|stored| is_marked(stored));
    let Some(stored) = stored else { return Ok(None) };
    decoded::begin(&stored.bytes).await?;
    let Some(role) = json::decode(&stored.bytes).ok().filter(|role| role.at(&["aggregationRule"]).is_some()) else {
        return Ok(None);
    };
    let mut rules = GatheredRules::of(name, &snapshot);
    for selectors in role.items_at(&["aggregationRule", "clusterRoleSelectors"]).chunks(SELECTORS_AT_ONCE) {
        rules.add(selectors)?;
        let newest = registry.storage.get(&collection(), name).await;
        let newest = newest.map_err(|error| Status::internal_error(&error.to_string()))?;
        if newest.is_none_or(|newest| newest.revision != stored.revision) {
            return Ok(None);
        }
    }
    if rules.are(role.items_at(&["rules"])) {
        return Ok(Some(Gathered::Unchanged));
    }
    let (text, before) = (rules.text(), stored.bytes.clone());
    drop((rules, role));
    apply(registry, name, &text, &before).await.map(|()| Some(Gathered::Changed))
}

/// How many selectors are asked before it is seen whether the role is still the same.
const SELECTORS_AT_ONCE: usize = 100;

/// The rules of the roles that selectors select.
struct GatheredRules<'r> {
    /// As JSON, which takes a tenth of what they take decoded.
    rules: Vec<Arc<[u8]>>,
    /// How many bytes these have.
    bytes: usize,
    /// The rules and the selectors that were seen, as JSON.
    known: HashSet<Arc<[u8]>>,
    asked: HashSet<Vec<u8>>,
    /// The roles that no selector has selected.
    left: Vec<&'r Stored>,
}

impl<'r> GatheredRules<'r> {
    /// Those of all roles but the one that is aggregated; none yet.
    fn of(name: &str, roles: &'r Snapshot) -> Self {
        let parts = roles.range("", None).filter(|part| *part.key != *name);
        let left = parts.map(|part| &**part).collect();
        GatheredRules { rules: Vec::new(), bytes: 0, known: HashSet::new(), asked: HashSet::new(), left }
    }

    /// Adds the rules that these selectors select. Equal selectors are asked once, and each role is decoded once. A
    /// selector that can't be read selects nothing.
    ///
    /// Errors: 500 if there are more than `OBJECT_BYTES_MAX` of them.
    fn add(&mut self, selectors: &[Value]) -> Result<(), Status> {
        for selector in selectors {
            if !self.asked.insert(json::encode(selector)) {
                continue;
            }
            let Ok(selector) = LabelSelector::decode(selector) else { continue };
            work::steps(self.left.len());
            let (selected, left): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.left).into_iter().partition(|part| selector.matches(part.sorted_labels()));
            self.left = left;
            for part in selected {
                let Ok(part) = json::decode(&part.bytes) else { continue };
                for rule in part.items_at(&["rules"]) {
                    self.add_rule(rule)?;
                }
            }
        }
        Ok(())
    }

    fn add_rule(&mut self, rule: &Value) -> Result<(), Status> {
        let rule: Arc<[u8]> = json::encode(rule).into();
        if self.known.insert(Arc::clone(&rule)) {
            self.bytes += rule.len();
            self.rules.push(rule);
        }
        if self.bytes > OBJECT_BYTES_MAX { Err(Status::too_large_to_store()) } else { Ok(()) }
    }

    /// Whether a role has these rules.
    fn are(&self, rules: &[Value]) -> bool {
        let mut pairs = self.rules.iter().zip(rules);
        self.rules.len() == rules.len() && pairs.all(|(own, rule)| **own == *json::encode(rule))
    }

    /// As a list in JSON.
    fn text(&self) -> Vec<u8> {
        let mut text = vec![b'['];
        text.extend(self.rules.join(&b","[..]));
        text.push(b']');
        text
    }
}

/// Sets the rules, a list in JSON, of a role that is stored as `before`.
async fn apply(registry: &Arc<Registry>, name: &str, rules: &[u8], before: &[u8]) -> Result<(), Status> {
    let resource = registry.resolve(RBAC_GROUP, PLURAL).await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.first());
    let (namespace, name) = (String::new(), name.to_owned());
    let applied = object! {
        "apiVersion" => version.api_version(),
        "kind" => version.names.kind.as_str(),
        "metadata" => object! { "name" => name.as_str() },
    };
    let mut bytes = json::encode(&applied);
    if rules != b"[]" {
        bytes.pop();
        bytes.extend([b",\"rules\":", rules, b"}"].concat());
    }
    let _room = registry.memory.for_work_of(&service_account(NAME).name, &bytes, before).await?;
    let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
    let request = PatchRequest {
        patch_type: PatchType::Apply,
        bytes: bytes.into(),
        field_validation: FieldValidation::Ignore,
        manager: NAME.to_owned(),
        force: true,
        dry_run: false,
        options: Value::Null,
    };
    registry.patch(&target, &service_account(NAME), &request, &mut Warnings::default()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::client::Kind;
    use crate::controllers::fixture::{oversized, read, store};
    use crate::registry::fixture;

    const ROLES: Kind = Kind(RBAC_GROUP, PLURAL);

    /// A role with this label, and this many rules.
    fn part(name: &str, label: &str, rules: usize) -> Value {
        let mut role = read(&format!("metadata: {{name: {name}, labels: {{of: {label}}}}}"));
        let rule = |at: usize| read(&format!("{{apiGroups: [g], resources: [r{at}], verbs: [get]}}"));
        role.make_object().insert("rules", Value::Array((0..rules).map(rule).collect()));
        role
    }

    /// A role that gathers the rules of those with a label, said this many times.
    fn whole(name: &str, label: &str, selectors: usize) -> Value {
        let mut role =
            read(&format!("{{apiVersion: {RBAC_GROUP}/v1, kind: ClusterRole, metadata: {{name: {name}, uid: u}}}}"));
        let selectors = vec![read(&format!("matchLabels: {{of: {label}}}")); selectors];
        let rule = object! { "clusterRoleSelectors" => selectors };
        role.make_object().insert("aggregationRule", rule);
        role
    }

    async fn rules_of(registry: &Registry, name: &str) -> usize {
        let stored = registry.storage.get(&collection(), name).await.expect("the store works").expect("it is there");
        json::decode(&stored.bytes).expect("JSON").items_at(&["rules"]).len()
    }

    #[tokio::test]
    async fn the_rules_of_the_selected_roles_are_gathered_in_order_and_once() {
        let registry = fixture::registry().await;
        for (name, label, rules) in [("a", "x", 2), ("b", "w", 3), ("c", "x", 4), ("d", "z", 9)] {
            store(&registry, ROLES, name, &part(name, label, rules)).await;
        }
        let roles = registry.storage.snapshot(&collection(), At::Newest).await.expect("the store works");
        let mut gathered = GatheredRules::of("whole", &roles);
        let selectors = ["w", "x", "w"].map(|label| read(&format!("matchLabels: {{of: {label}}}")));
        assert_eq!(gathered.add(&selectors), Ok(()));
        let rules = json::decode(&gathered.text()).expect("JSON");
        let rules = rules.as_array().expect("a list");
        assert!(gathered.are(rules) && !gathered.are(&rules[1..]));
        let names: Vec<&str> =
            rules.iter().map(|rule| rule.items_at(&["resources"])[0].as_str().unwrap_or_default()).collect();
        assert_eq!(names, ["r0", "r1", "r2", "r3"]);
        assert_eq!(gathered.left.len(), 1);
    }

    #[tokio::test]
    async fn more_rules_than_a_role_can_have_are_not_gathered() {
        let registry = fixture::registry().await;
        let rule =
            |part: usize, at: usize| read(&format!("{{resources: [r{part}-{at}], verbs: [{}]}}", "x".repeat(1_000)));
        for at in 0..8 {
            let mut role = part(&format!("part{at}"), "x", 0);
            role.make_object().insert("rules", Value::Array((0..1_000).map(|rule_at| rule(at, rule_at)).collect()));
            store(&registry, ROLES, &format!("part{at}"), &role).await;
        }
        store(&registry, ROLES, "whole", &whole("whole", "x", 1)).await;
        let decoded = json::tally::decoded();
        let refused = aggregate(&registry, "whole").await.expect_err("there are too many");
        assert_eq!(refused.message, "etcdserver: request is too large");
        assert_eq!(json::tally::decoded() - decoded, 8 + 1 + 5, "all labels, the role, and those with enough rules");
    }

    #[tokio::test]
    async fn many_rules_and_equal_selectors_cost_little() {
        let registry = fixture::registry().await;
        store(&registry, ROLES, "part", &part("part", "x", 5_000)).await;
        let roles = registry.storage.snapshot(&collection(), At::Newest).await.expect("the store works");
        let role = whole("whole", "x", 2_000);
        let selectors = role.items_at(&["aggregationRule", "clusterRoleSelectors"]);
        let bytes = roles.range("part", None).map(|part| part.bytes.to_vec()).next().expect("it is stored");
        let (_, steps_to_decode) = work::counted(|| json::decode(&bytes).expect("JSON"));
        let (rules, steps) = work::counted(|| {
            let mut gathered = GatheredRules::of("whole", &roles);
            assert!(selectors.chunks(SELECTORS_AT_ONCE).all(|selectors| gathered.add(selectors).is_ok()));
            gathered.rules.len()
        });
        assert_eq!(rules, 5_000);
        assert!(steps < 5 * steps_to_decode, "{steps} steps, {steps_to_decode} to decode the role");
    }

    #[tokio::test]
    async fn a_role_that_can_not_be_written_holds_up_no_start_and_no_other() {
        let registry = fixture::registry().await;
        let label = |name: &str| format!("rbac.authorization.k8s.io/aggregate-to-{name}");
        for name in ["admin", "view"] {
            let mut role = whole(name, "x", 1);
            let selector = format!("clusterRoleSelectors: [{{matchLabels: {{{}: 'true'}}}}]", label(name));
            role.make_object().insert("aggregationRule", read(&selector));
            store(&registry, ROLES, name, &if name == "admin" { oversized(role) } else { role }).await;
            let mut part = part("part", "x", 3);
            part.make_object()
                .entry("metadata")
                .make_object()
                .insert("labels", read(&format!("{}: 'true'", label(name))));
            store(&registry, ROLES, &format!("part-of-{name}"), &part).await;
        }
        store(&registry, ROLES, "users", &whole("users", "w", 1)).await;
        store(&registry, ROLES, "part-of-users", &part("part", "w", 3)).await;
        aggregate_default_roles(&registry, Extent::Server).await;
        // Those of users are left to the controller.
        assert_eq!([rules_of(&registry, "view").await, rules_of(&registry, "admin").await], [3, 0]);
        assert_eq!(rules_of(&registry, "users").await, 0);
        let aggregation = Aggregation { registry: Arc::clone(&registry) };
        assert!(aggregation.reconcile(&"admin".to_owned()).await.is_err());
        assert_eq!(aggregation.reconcile(&"users".to_owned()).await.ok(), Some(Progress::Waits));
        assert_eq!(aggregation.reconcile(&"part-of-users".to_owned()).await.ok(), Some(Progress::Done));
        assert_eq!(rules_of(&registry, "users").await, 3);
    }
}
