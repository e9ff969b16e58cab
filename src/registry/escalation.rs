//! What a write takes beside the right to make it: nobody gives themselves or others more than they have.
//!
//! Source: the `policybased` storages of roles and bindings, and `withAuthorization` of apiserver, release 1.37.

use super::{Registry, StoredPolicy, Target};
use crate::auth::rbac::{GROUP, PolicyRule, Reference};
use crate::auth::{Attributes, Authorizer as _, Decision, ResourceAttributes, UserInfo};
use crate::meta::Status;
use crate::value::Value;

/// What an aggregation rule takes, as it can gather anything.
const NOT_ADMIN: &str = "must have cluster-admin privileges to use the aggregationRule";

impl Registry {
    /// Whether a user who changes or applies an object may create it, as it was not there.
    ///
    /// Errors: 403 with what the authoriser says, mostly nothing.
    pub(super) fn check_create(&self, target: &Target, user: &UserInfo, name: &str) -> Result<(), Status> {
        let Some(policy) = &self.policy else { return Ok(()) };
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
        match policy.current().decide(user, &Attributes::Resource(wanted)) {
            Decision::Allow { .. } => Ok(()),
            Decision::Deny { reason } => Err(Status::forbidden(&version.group, &version.names.plural, name, &reason)),
        }
    }

    /// Whether a user who writes a role or binding has all that it grants, or the right to grant it.
    ///
    /// Errors: 403 with what is missing; 404 for a binding to a role that is not there.
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
        match target.version.names.plural.as_str() {
            "roles" | "clusterroles" => check_role(policy, target, user, new, old),
            "rolebindings" | "clusterrolebindings" => check_binding(policy, target, user, new),
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
    let wanted = right("escalate", resource, &target.namespace, &target.name);
    if policy.decide(user, &wanted).is_allowed() {
        return Ok(());
    }
    let refused = |why: &str| Err(Status::forbidden(GROUP, resource, new.str_at(&["metadata", "name"]), why));
    if let Err(why) = policy.confirm_no_escalation(user, &target.namespace, &PolicyRule::all_of(new)) {
        return refused(&why);
    }
    let aggregates = |role: &Value| !role.items_at(&["aggregationRule", "clusterRoleSelectors"]).is_empty();
    let all = PolicyRule::full_authority();
    if (aggregates(new) || old.is_some_and(aggregates)) && policy.confirm_no_escalation(user, "", &all).is_err() {
        return refused(NOT_ADMIN);
    }
    Ok(())
}

fn check_binding(policy: &StoredPolicy, target: &Target, user: &UserInfo, binding: &Value) -> Result<(), Status> {
    let policy = policy.current();
    let role = Reference::of(binding);
    let roles = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        other => {
            let message = format!("unsupported role reference kind: {}", crate::value::go_quote(other));
            return Err(Status::plain(500, &message));
        }
    };
    if policy.decide(user, &right("bind", roles, &target.namespace, &role.name)).is_allowed() {
        return Ok(());
    }
    let rules = policy.rules_of(&role, &target.namespace);
    // A role that is missing is called by the resource of the request.
    let rules = rules.ok_or_else(|| Status::not_found(GROUP, &target.version.names.plural, &role.name))?;
    policy.confirm_no_escalation(user, &target.namespace, rules).map_err(|why| {
        let (plural, name) = (&target.version.names.plural, binding.str_at(&["metadata", "name"]));
        Status::forbidden(GROUP, plural, name, &why)
    })
}

/// A right that is about roles and not about requests.
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
