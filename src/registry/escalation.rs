//! Escalation checks: nobody may grant themselves or others more rights than they have.
//!
//! Source: the `policybased` storages of roles and bindings, and `withAuthorization` of apiserver, release 1.37.

use super::{Registry, StoredPolicy, Target};
use crate::auth::rbac::{GROUP, PolicyRule, Reference};
use crate::auth::{Attributes, Authorizer as _, ResourceAttributes, UserInfo};
use crate::meta::Status;
use crate::value::Value;

/// The requirement for an aggregation rule, as it can collect any rules.
const NOT_ADMIN: &str = "must have cluster-admin privileges to use the aggregationRule";

impl Registry {
    /// Whether a user who updates or applies a missing object may create it.
    ///
    /// Errors: 403 with the authorizer's reason, which is mostly empty.
    pub(super) async fn check_create(&self, target: &Target, user: &UserInfo, name: &str) -> Result<(), Status> {
        let version = &target.version;
        let wanted = ResourceAttributes {
            verb: "create",
            group: &version.group,
            version: &version.version,
            resource: &version.names.plural,
            subresource: target.subresource.name(),
            namespace: &target.namespace,
            name,
            ..ResourceAttributes::default()
        };
        let decision = self.authorizer.authorize(user, &Attributes::Resource(wanted)).await;
        if decision.is_allowed() {
            return Ok(());
        }
        Err(Status::forbidden(&version.group, &version.names.plural, name, &decision.reason))
    }

    /// Whether a user who writes a role or binding has all that it grants, or the right to grant it.
    ///
    /// Errors: 403 with what is missing; 404 for a binding to a missing role.
    pub(super) async fn check_escalation(
        &self,
        target: &Target,
        user: &UserInfo,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(policy) = self.policy.as_ref().filter(|_| target.version.group == GROUP) else { return Ok(()) };
        let is_collected = || old.is_some_and(|old| differs_in_owners_alone(new, old));
        if user.is_in(UserInfo::MASTERS) || is_collected() {
            return Ok(());
        }
        policy.refresh().await?;
        let plural = target.version.names.plural.as_str();
        match plural {
            "roles" | "clusterroles" => {
                let right = right("escalate", plural, &target.namespace, &target.name);
                if self.authorizer.authorize(user, &right).await.is_allowed() {
                    return Ok(());
                }
                check_role(policy, target, user, new, old)
            }
            "rolebindings" | "clusterrolebindings" => {
                let role = Reference::of(new);
                let right = right("bind", roles_of(&role)?, &target.namespace, &role.name);
                if self.authorizer.authorize(user, &right).await.is_allowed() {
                    return Ok(());
                }
                check_binding(policy, target, user, new)
            }
            _ => Ok(()),
        }
    }
}

fn check_role(
    policy: &StoredPolicy,
    target: &Target,
    user: &UserInfo,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let policy = policy.current();
    let resource = &target.version.names.plural;
    let refused = |why: &str| Err(Status::forbidden(GROUP, resource, new.str_at(&["metadata", "name"]), why));
    if let Err(escalation) = policy.confirm_no_escalation(user, &target.namespace, &PolicyRule::all_of(new)) {
        return refused(&escalation.to_string());
    }
    let aggregates = |role: &Value| !role.items_at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
    let all = PolicyRule::full_authority();
    if (aggregates(new) || old.is_some_and(aggregates)) && policy.confirm_no_escalation(user, "", &all).is_err() {
        return refused(NOT_ADMIN);
    }
    Ok(())
}

/// The resource that a binding's role is of.
fn roles_of(role: &Reference) -> Result<&'static str, Status> {
    match role.kind.as_str() {
        "ClusterRole" => Ok("clusterroles"),
        "Role" => Ok("roles"),
        other => {
            let message = format!("unsupported role reference kind: {}", crate::value::go_quote(other));
            Err(Status::plain(500, &message))
        }
    }
}

fn check_binding(policy: &StoredPolicy, target: &Target, user: &UserInfo, binding: &Value) -> Result<(), Status> {
    let policy = policy.current();
    let role = Reference::of(binding);
    let rules = policy.rules_of(&role, &target.namespace);
    // The error for a missing role names the resource of the request.
    let rules = rules.ok_or_else(|| Status::not_found(GROUP, &target.version.names.plural, &role.name))?;
    policy.confirm_no_escalation(user, &target.namespace, rules).map_err(|escalation| {
        let (plural, name) = (&target.version.names.plural, binding.str_at(&["metadata", "name"]));
        Status::forbidden(GROUP, plural, name, &escalation.to_string())
    })
}

/// A right on roles, not on a request.
fn right<'a>(verb: &'a str, resource: &'a str, namespace: &'a str, name: &'a str) -> Attributes<'a> {
    let of_any_version = ResourceAttributes { verb, group: GROUP, version: "*", ..ResourceAttributes::default() };
    Attributes::Resource(ResourceAttributes { resource, namespace, name, ..of_any_version })
}

/// Whether only what the garbage collector writes has changed: owners and finalizers.
fn differs_in_owners_alone(new: &Value, old: &Value) -> bool {
    let mut new = new.clone();
    let metadata = new.make_object().entry("metadata").make_object();
    for name in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
        match old.at(&["metadata", name]) {
            Some(value) => _ = metadata.insert(name, value.clone()),
            None => _ = metadata.remove(name),
        }
    }
    new == *old
}
