//! Users can't grant rights that they do not have.

use super::cover::{MISSING_BYTES_MAX, uncovered};
use super::policy::aggregate;
use super::{PolicyRule, RbacPolicy, quote_list};
use crate::auth::UserInfo;
use crate::value::go_quote;

/// What somebody would grant without having it.
#[derive(Debug, thiserror::Error)]
#[error(
    "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{missing}{}",
    go_quote(user),
    quote_list(groups),
    resolution(errors)
)]
pub struct Escalation {
    user: String,
    groups: Vec<String>,
    /// The lines of the message.
    missing: String,
    /// Roles of the user that could not be found.
    errors: Vec<String>,
}

fn resolution(errors: &[String]) -> String {
    match errors {
        [] => String::new(),
        errors => format!("; resolution errors: [{}]", aggregate(errors.to_vec())),
    }
}

impl RbacPolicy {
    /// Whether a user has all that `rules` allow, in the namespace of the request; the error lists what is missing.
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
        // Here the reference asks the store, which names resources by their plural.
        let errors = errors.into_iter().map(|error| error.replacen(".rbac.", "s.rbac.", 1)).collect();
        let (user, groups) = (user.name.clone(), user.groups.clone());
        Err(Escalation { user, groups, missing: missing.describe(), errors })
    }
}
