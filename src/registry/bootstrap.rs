//! The initial objects: namespaces and others, created if they are missing; roles and bindings, completed if something
//! was removed from them.
//!
//! Source: `EnsureRBACPolicy` and `k8s.io/component-helpers/auth/rbac/reconciliation`, release 1.37.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::identity::{API_SERVER_MANAGER, own_user};
use super::{DeleteRequest, Registry, Target, Warnings, store_failed};
use crate::auth::rbac::{GROUP, PolicyRule, uncovered};
use crate::kinds;
use crate::kinds::default_roles::{AUTO_UPDATE, Extent, cluster_role_bindings, cluster_roles};
use crate::meta::Status;
use crate::store::Collection;
use crate::value::{Map, Value, json};

const ROLES: &str = "clusterroles";
const BINDINGS: &str = "clusterrolebindings";
/// The manager of the objects for flow control.
const FLOW_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

impl Registry {
    /// Creates the namespaces that every cluster has, if they are missing.
    ///
    /// They are created together, in a task of their own, so that one disk write is enough: the writer then runs after
    /// it on the same thread, and finds all of them queued.
    pub async fn make_initial_namespaces(self: &Arc<Self>) -> Result<(), Status> {
        let registry = Arc::clone(self);
        let made = tokio::spawn(async move {
            try_join_all(kinds::namespaces::INITIAL.map(|name| registry.make_initial_namespace(name))).await
        });
        made.await.map_err(|error| Status::internal_error(&error.to_string()))?.map(drop)
    }

    async fn make_initial_namespace(&self, name: &str) -> Result<(), Status> {
        self.make_initial("", "namespaces", kinds::namespaces::new(name)).await
    }

    /// Creates or completes the default roles and bindings, all at once, so that one disk write is enough.
    pub async fn reconcile_default_roles(self: &Arc<Self>, extent: Extent) -> Result<(), Status> {
        let registry = Arc::clone(self);
        let roles = cluster_roles(extent).map(|role| (ROLES, role));
        let wanted: Vec<_> = roles.chain(cluster_role_bindings(extent).map(|binding| (BINDINGS, binding))).collect();
        // In a task of their own, like the first namespaces.
        let made = tokio::spawn(async move {
            try_join_all(wanted.into_iter().map(|(plural, wanted)| registry.reconcile(plural, wanted))).await
        });
        made.await.map_err(|error| Status::internal_error(&error.to_string()))?.map(drop)
    }

    /// Creates the other initial objects that are missing: all at once, like the roles.
    pub async fn make_initial_objects(self: &Arc<Self>) -> Result<(), Status> {
        self.make_all(kinds::initial_objects()).await
    }

    /// Creates the objects that a start need not wait for, as soon as the server is ready or a request uses their
    /// group: once, whichever comes first. If that fails, the next request tries again.
    pub async fn make_deferred_objects(self: &Arc<Self>) {
        // Boxed: every request carries this future, and all but the first find nothing to do.
        let make = || Box::pin(self.make_objects_for_flow_control());
        if let Err(status) = self.deferred.get_or_try_init(make).await {
            tracing::warn!(status.message, "the objects for flow control can't be made");
        }
    }

    /// Creates those initial objects again that were deleted since: namespaces and, once they were made, the objects for
    /// flow control, whose specs are reset, too.
    ///
    /// # Errors
    ///
    /// The error of the first object that can't be made.
    pub async fn remake_initial_objects(self: &Arc<Self>) -> Result<(), Status> {
        self.make_initial_namespaces().await?;
        if self.deferred.initialized() { self.make_objects_for_flow_control().await } else { Ok(()) }
    }

    async fn make_objects_for_flow_control(self: &Arc<Self>) -> Result<(), Status> {
        self.make_all(kinds::deferred_objects()).await?;
        for plural in ["flowschemas", "prioritylevelconfigurations"] {
            self.revise_for_flow_control(plural).await?;
        }
        self.set_initial_conditions().await
    }

    /// Brings the objects for flow control that the server has made up to date, and deletes those that it would not
    /// make today.
    async fn revise_for_flow_control(&self, plural: &str) -> Result<(), Status> {
        let target = self.own_target(kinds::flow_control::GROUP, plural, "").await?;
        let snapshot = self.newest(&target.resource.collection).await?;
        for stored in snapshot.range("", None) {
            let target = Target { name: stored.key.to_string(), ..target.clone() };
            let found = self.derive_live(&target.resource, &target.version, stored).await?;
            let revised = if kinds::flow_control::is_left_over(&found) {
                let (options, mut warnings) = (DeleteRequest::default(), Warnings::default());
                self.delete(&target, &own_user(), &options, &mut warnings).await.map(drop)
            } else if let Some(object) = kinds::flow_control::brought_up_to_date(&found) {
                self.update_own(&target, FLOW_MANAGER, &object).await
            } else {
                Ok(())
            };
            match revised {
                // If somebody else was faster, it is looked at again a minute later, as after any other error.
                Err(status) if !matches!(status.code, 404 | 409) => {
                    tracing::warn!(status.message, name = &*stored.key, "an object for flow control can't be revised");
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn make_all(self: &Arc<Self>, objects: Vec<(&'static str, &'static str, Value)>) -> Result<(), Status> {
        let registry = Arc::clone(self);
        let made = tokio::spawn(async move {
            let objects = objects.into_iter();
            try_join_all(objects.map(|(group, plural, wanted)| registry.make_initial(group, plural, wanted))).await
        });
        made.await.map_err(|error| Status::internal_error(&error.to_string()))?.map(drop)
    }

    pub(super) async fn make_initial(&self, group: &str, plural: &str, wanted: Value) -> Result<(), Status> {
        let collection = Collection::new(group, plural);
        let found = self.storage.get(&collection, wanted.str_at(&["metadata", "name"])).await;
        if found.map_err(|error| store_failed(&collection, "get", error))?.is_some() {
            return Ok(());
        }
        let manager = if group == kinds::flow_control::GROUP { FLOW_MANAGER } else { API_SERVER_MANAGER };
        match self.create_own(group, plural, "", manager, wanted).await {
            // Another server on the same database was faster.
            Err(status) if status.is_already_exists() => Ok(()),
            done => done,
        }
    }

    async fn reconcile(&self, plural: &str, wanted: Value) -> Result<(), Status> {
        let collection = Collection::new(GROUP, plural);
        let name = wanted.str_at(&["metadata", "name"]);
        let stored = self.storage.get(&collection, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&collection, "get", error))? else {
            return self.make_default(plural, wanted).await;
        };
        let found = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        if found.at(&["metadata", "annotations", AUTO_UPDATE]).and_then(Value::as_str) == Some("false") {
            return Ok(());
        }
        if plural == BINDINGS && found.get("roleRef") != wanted.get("roleRef") {
            let target = self.own_target(GROUP, plural, name).await?;
            let (options, mut warnings) = (DeleteRequest::default(), Warnings::default());
            self.delete(&target, &own_user(), &options, &mut warnings).await?;
            return self.make_default(plural, wanted).await;
        }
        let reconciled = match plural {
            ROLES => reconcile_role(&found, &wanted),
            _ => reconcile_binding(&found, &wanted),
        };
        if reconciled == found {
            return Ok(());
        }
        let target = self.own_target(GROUP, plural, name).await?;
        self.update_own(&target, API_SERVER_MANAGER, &reconciled).await
    }

    async fn make_default(&self, plural: &str, wanted: Value) -> Result<(), Status> {
        match self.create_own(GROUP, plural, "", API_SERVER_MANAGER, wanted).await {
            // Another server on the same database was faster.
            Err(status) if status.is_already_exists() => Ok(()),
            done => done,
        }
    }
}

/// The role with everything that it lacks from the wanted one. Additions stay.
fn reconcile_role(found: &Value, wanted: &Value) -> Value {
    let mut role = found.clone();
    complete_metadata(&mut role, wanted);
    let own = PolicyRule::all_of(found);
    let missing = uncovered(&own.iter().collect::<Vec<_>>(), &PolicyRule::all_of(wanted), usize::MAX);
    extend(&mut role, "rules", missing.parts.iter().map(PolicyRule::encode).collect());
    match wanted.get("aggregationRule") {
        None => _ = role.make_object().remove("aggregationRule"),
        Some(rule) => {
            let own = found.items_at(&["aggregationRule", "clusterRoleSelectors"]);
            let selectors = rule.items_at(&["clusterRoleSelectors"]);
            let missing = selectors.iter().filter(|selector| !own.contains(selector)).cloned().collect();
            extend(role.make_object().entry("aggregationRule"), "clusterRoleSelectors", missing);
        }
    }
    role
}

/// The binding with the subjects that it lacks.
fn reconcile_binding(found: &Value, wanted: &Value) -> Value {
    let mut binding = found.clone();
    complete_metadata(&mut binding, wanted);
    let own = found.items_at(&["subjects"]);
    let missing = wanted.items_at(&["subjects"]).iter().filter(|subject| !own.contains(subject)).cloned().collect();
    extend(&mut binding, "subjects", missing);
    binding
}

/// Adds missing labels and annotations.
fn complete_metadata(object: &mut Value, wanted: &Value) {
    for part in ["labels", "annotations"] {
        let wanted = wanted.at(&["metadata", part]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
        let own = object.make_object().entry("metadata").make_object().entry(part).make_object();
        for (name, value) in wanted {
            if own.get(name).is_none() {
                own.insert(name, value.clone());
            }
        }
    }
}

/// Adds items to a list, if there are any to add.
fn extend(object: &mut Value, list: &str, items: Vec<Value>) {
    if items.is_empty() {
        return;
    }
    let list = object.make_object().entry(list);
    match list {
        Value::Array(own) => own.extend(items),
        other => *other = Value::Array(items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::fixture;
    use crate::value::yaml;

    fn yaml(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("it is YAML")
    }

    #[track_caller]
    fn check(reconcile: fn(&Value, &Value) -> Value, found: &str, wanted: &str, expected: &str) {
        assert_eq!(reconcile(&yaml(found), &yaml(wanted)), yaml(expected));
    }

    #[test]
    fn a_role_gets_back_what_it_lacks_and_keeps_what_was_added() {
        check(
            reconcile_role,
            "{metadata: {labels: {a: own}}, rules: [{verbs: [get], apiGroups: [''], resources: [pods, nodes]}]}",
            "{metadata: {labels: {a: x, b: y}, annotations: {c: z}}, \
             rules: [{verbs: [get, list], apiGroups: [''], resources: [pods]}]}",
            "{metadata: {labels: {a: own, b: y}, annotations: {c: z}}, \
             rules: [{verbs: [get], apiGroups: [''], resources: [pods, nodes]}, \
             {verbs: [list], apiGroups: [''], resources: [pods]}]}",
        );
    }

    #[test]
    fn selectors_and_subjects_are_completed() {
        check(
            reconcile_role,
            "{metadata: {labels: {}, annotations: {}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
            "{aggregationRule: {clusterRoleSelectors: [{matchLabels: {c: d}}]}}",
            "{metadata: {labels: {}, annotations: {}}, \
             aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}, {matchLabels: {c: d}}]}}",
        );
        check(
            reconcile_binding,
            "{metadata: {labels: {}, annotations: {}}, subjects: [{kind: User, name: a}]}",
            "{subjects: [{kind: User, name: a}, {kind: User, name: b}]}",
            "{metadata: {labels: {}, annotations: {}}, subjects: [{kind: User, name: a}, {kind: User, name: b}]}",
        );
    }

    #[tokio::test]
    async fn the_second_start_writes_nothing() {
        let registry = fixture::registry().await;
        registry.reconcile_default_roles(Extent::Server).await.expect("nothing stands in the way");
        let before = (fixture::newest(&registry), registry.storage.counts());
        registry.reconcile_default_roles(Extent::Server).await.expect("nothing stands in the way");
        assert_eq!(before, (fixture::newest(&registry), registry.storage.counts()));
    }

    #[tokio::test]
    async fn what_a_start_does_not_wait_for_is_made_once_with_its_conditions() {
        let registry = fixture::registry().await;
        registry.make_deferred_objects().await;
        let schemas = Collection::new(kinds::flow_control::GROUP, "flowschemas");
        let stored = registry.storage.get(&schemas, "system-nodes").await.expect("the store works");
        let schema = json::decode(&stored.expect("it is made").bytes).expect("it is JSON");
        let [dangling] = schema.items_at(&["status", "conditions"]) else { panic!("it has a condition") };
        assert_eq!((dangling.str_at(&["type"]), dangling.str_at(&["status"])), ("Dangling", "False"));
        let before = fixture::newest(&registry);
        registry.make_deferred_objects().await;
        assert_eq!(fixture::newest(&registry), before);
    }

    #[tokio::test]
    async fn what_was_deleted_since_the_start_is_made_again() {
        let registry = fixture::registry().await;
        registry.make_deferred_objects().await;
        let before = fixture::newest(&registry);
        registry.remake_initial_objects().await.expect("nothing stands in the way");
        assert_eq!(fixture::newest(&registry), before);
        let target = registry.own_target(kinds::flow_control::GROUP, "flowschemas", "probes").await;
        let target = target.expect("it is built in");
        let (options, mut warnings) = (DeleteRequest::default(), Warnings::default());
        registry.delete(&target, &own_user(), &options, &mut warnings).await.expect("nothing stands in the way");
        registry.remake_initial_objects().await.expect("nothing stands in the way");
        let schemas = Collection::new(kinds::flow_control::GROUP, "flowschemas");
        let stored =
            registry.storage.get(&schemas, "probes").await.expect("the store works").expect("it is made again");
        let schema = json::decode(&stored.bytes).expect("it is JSON");
        assert_eq!(schema.items_at(&["status", "conditions"]).len(), 1);
    }

    #[tokio::test]
    async fn what_was_made_for_flow_control_is_reset_and_what_is_left_over_goes() {
        let registry = fixture::registry().await;
        registry.make_deferred_objects().await;
        let (group, plural) = (kinds::flow_control::GROUP, "flowschemas");
        let target = async |name: &str| registry.own_target(group, plural, name).await.expect("it is built in");
        let probes = target("probes").await;
        let found = async || registry.found(&probes).await.expect("the store works").expect("it is there");
        let mut changed = found().await;
        changed.make_object().entry("spec").make_object().insert("matchingPrecedence", Value::Int(7));
        registry.update_own(&probes, "test", &changed).await.expect("it is valid");
        changed
            .make_object()
            .insert("metadata", yaml("{name: old, annotations: {apf.kubernetes.io/autoupdate-spec: 'true'}}"));
        registry.create_own(group, plural, "", "test", changed).await.expect("it is valid");
        registry.remake_initial_objects().await.expect("nothing stands in the way");
        assert_eq!(found().await.at(&["spec", "matchingPrecedence"]), Some(&Value::Int(2)));
        assert_eq!(registry.found(&target("old").await).await.expect("the store works"), None);
    }

    #[tokio::test]
    async fn a_role_is_restored_unless_it_says_not_to() {
        let registry = fixture::registry().await;
        registry.reconcile_default_roles(Extent::Server).await.expect("nothing stands in the way");
        let emptied = |name: &str, auto_update: &str| {
            yaml(&format!(
                "{{apiVersion: {GROUP}/v1, kind: ClusterRole, metadata: {{name: '{name}', \
                 annotations: {{{AUTO_UPDATE}: '{auto_update}'}}}}, rules: []}}"
            ))
        };
        for (name, auto_update) in [("system:discovery", "true"), ("system:basic-user", "false")] {
            let target = registry.own_target(GROUP, ROLES, name).await.expect("it is built in");
            registry.update_own(&target, "test", &emptied(name, auto_update)).await.expect("it is valid");
        }
        registry.reconcile_default_roles(Extent::Server).await.expect("nothing stands in the way");
        let rules = async |name| {
            let stored = registry.storage.get(&Collection::new(GROUP, ROLES), name).await.expect("the store works");
            let role = json::decode(&stored.expect("it is there").bytes).expect("it is JSON");
            role.items_at(&["rules"]).len()
        };
        assert_ne!(rules("system:discovery").await, 0);
        assert_eq!(rules("system:basic-user").await, 0);
    }
}
