//! Nobody grants what they do not have.

use super::cover::{MISSING_BYTES_MAX, uncovered};
use super::policy::aggregate;
use super::{Policy, PolicyRule, quote_list};
use crate::auth::UserInfo;
use crate::value::go_quote;

impl Policy {
    /// Whether a user has all that `rules` allow, in the namespace of the request; the error tells what is missing.
    pub fn confirm_no_escalation(&self, user: &UserInfo, namespace: &str, rules: &[PolicyRule]) -> Result<(), String> {
        let (own, errors) = self.own_rules(user, namespace);
        let missing = uncovered(&own, rules, MISSING_BYTES_MAX);
        if missing.is_nothing() {
            return Ok(());
        }
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            go_quote(&user.name),
            quote_list(&user.groups),
            missing.describe()
        );
        if !errors.is_empty() {
            // Here the reference asks the store, which names resources by their plural.
            let errors = errors.into_iter().map(|error| error.replacen(".rbac.", "s.rbac.", 1)).collect();
            text.push_str(&format!("; resolution errors: [{}]", aggregate(errors)));
        }
        Err(text)
    }
}
