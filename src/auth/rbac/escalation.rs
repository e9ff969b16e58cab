//! Privilege escalation: users can't grant permissions that they do not hold.

use super::cover::{MISSING_BYTES_MAX, uncovered};
use super::policy::aggregate;
use super::{PolicyRule, RbacPolicy, quote_list};
use crate::auth::UserInfo;
use crate::value::go_quote;

/// The permissions that a user would grant without holding them.
#[derive(Debug, thiserror::Error)]
#[error(
    "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{missing}{}",
    go_quote(user),
    quote_list(groups.iter().map(String::as_str)),
    resolution(errors)
)]
pub struct Escalation {
    user: String,
    groups: Vec<String>,
    /// The missing permissions, as lines of the message.
    missing: String,
    /// Errors for roles of the user that do not exist.
    errors: Vec<String>,
}

fn resolution(errors: &[String]) -> String {
    match errors {
        [] => String::new(),
        errors => format!("; resolution errors: [{}]", aggregate(errors.to_vec())),
    }
}

impl RbacPolicy {
    /// Checks that a user holds all that `rules` allow, in the namespace of the request; the error
    /// lists what is missing.
    pub fn confirm_no_escalation(
        &self,
        user: &UserInfo,
        namespace: &str,
        rules: &[PolicyRule],
    ) -> Result<(), Escalation> {
        let (own, errors) = self.own_rules(user, namespace);
        let missing = uncovered(&own, rules, MISSING_BYTES_MAX);
        if missing.is_nothing() {
            return Ok(());
        }
        // Here Kubernetes reads the roles from the store, whose errors name resources by their
        // plural.
        let errors = errors.into_iter().map(|error| error.replacen(".rbac.", "s.rbac.", 1)).collect();
        let (user, groups) = (user.name.clone(), user.groups.clone());
        Err(Escalation { user, groups, missing: missing.describe(), errors })
    }
}
