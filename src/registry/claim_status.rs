//! Whether a user may change what a change of a ResourceClaim's status touches: the allocation and its consumers, and the
//! reports of drivers.
//!
//! Source: `AuthorizedForBinding` and `AuthorizedForDeviceStatus` of `pkg/registry/resource`, release 1.36.

use super::{Registry, Subresource, Target};
use crate::auth::{Attributes, ResourceAttributes, UserInfo};
use crate::kinds;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::gate::Gate;
use crate::meta::{Status, names};
use crate::value::Value;

impl Registry {
    /// The rights that the user lacks for a change of a claim's status, with the verb of the request.
    pub(super) async fn missing_claim_rights(
        &self,
        target: &Target,
        (user, verb): (&UserInfo, &str),
        new: &Value,
        old: Option<&Value>,
    ) -> ErrorList {
        let version = &target.version;
        let is_claim = version.group == "resource.k8s.io" && version.names.plural == "resourceclaims";
        let is_checked = is_claim
            && target.subresource == Subresource::Status
            && version.minor.opens(Gate::DraResourceClaimGranularStatusAuthorization);
        let mut errors = ErrorList::new();
        let Some(old) = old.filter(|_| is_checked) else { return errors };
        let status = Path::new("status");
        if kinds::changes_binding(new, old)
            && let Err(why) = self.check_right(user, right(target, verb, "binding")).await
        {
            let why = format!(
                "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                 verb=\"{verb}\" permission: {}",
                why.message
            );
            errors.push(Error::forbidden(&status.child("allocation"), why));
        }
        if version.minor.opens(Gate::DraResourceClaimDeviceStatus) {
            let verbs = driver_verbs(user, verb, new);
            for driver in kinds::changed_drivers(new, old) {
                let Some(why) = self.lacks_driver(target, (user, &verbs), driver).await else { continue };
                let why = format!(
                    "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {}",
                    verbs.join(" "),
                    why.message
                );
                errors.push(Error::forbidden(&status.child("devices"), why));
            }
        }
        errors
    }

    /// Why the user may not change the reports of a driver by any of the verbs: the first refusal.
    async fn lacks_driver(
        &self,
        target: &Target,
        (user, verbs): (&UserInfo, &[String]),
        driver: &str,
    ) -> Option<Status> {
        let mut first = None;
        for verb in verbs {
            let namespace = &target.namespace;
            let right = ResourceAttributes { namespace, name: driver, ..right(target, verb, "driver") };
            match self.check_right(user, right).await {
                Ok(()) => return None,
                Err(why) => first = first.or(Some(why)),
            }
        }
        first
    }

    async fn check_right(&self, user: &UserInfo, right: ResourceAttributes<'_>) -> Result<(), Status> {
        let attributes = Attributes::Resource(right);
        let decision = self.authorizer.authorize(user, &attributes).await;
        if decision.is_allowed() {
            return Ok(());
        }
        let why = match (decision.error.as_str(), decision.reason.as_str()) {
            ("", reason) => reason.to_owned(),
            (error, "") => error.to_owned(),
            (error, reason) => format!("{error}: {reason}"),
        };
        Err(Status::forbidden(right.group, right.resource, right.name, &attributes.refusal(user, &why)))
    }
}

/// A right to a part of claims that only authorization knows: of all claims, everywhere.
fn right<'a>(target: &'a Target, verb: &'a str, part: &'a str) -> ResourceAttributes<'a> {
    let version = &target.version;
    ResourceAttributes {
        verb,
        group: &version.group,
        version: &version.version,
        resource: &version.names.plural,
        subresource: part,
        ..ResourceAttributes::default()
    }
}

/// The verbs that allow to change the reports of a driver: one of them is enough.
fn driver_verbs(user: &UserInfo, verb: &str, claim: &Value) -> Vec<String> {
    let own_node = kinds::allocated_node(claim).is_some_and(|node| runs_on(user, node));
    let associated = own_node.then(|| format!("associated-node:{verb}"));
    associated.into_iter().chain([format!("arbitrary-node:{verb}")]).collect()
}

/// Whether the user is a service account whose token is bound to a node.
fn runs_on(user: &UserInfo, node: &str) -> bool {
    let is_bound =
        user.extra.get(UserInfo::NODE_NAME).is_some_and(|names| matches!(names.as_slice(), [own] if own == node));
    is_bound && user.account().is_some() && names::name_is_dns1123_subdomain(node, false).is_empty()
}
