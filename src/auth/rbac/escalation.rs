//! Nobody grants what they do not have.

use super::policy::aggregate;
use super::rule::{describe_all, uncovered};
use super::{Policy, PolicyRule, quote_list};
use crate::auth::UserInfo;
use crate::value::go_quote;

impl Policy {
    /// Whether a user has all that `rules` allow, in the namespace of the request; the error tells what is missing.
    pub fn confirm_no_escalation(&self, user: &UserInfo, namespace: &str, rules: &[PolicyRule]) -> Result<(), String> {
        let (own, errors) = self.own_rules(user, namespace);
        let missing = uncovered(&own, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let lines: Vec<_> = describe_all(missing).into_iter().collect();
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            go_quote(&user.name),
            quote_list(&user.groups),
            lines.join("\n")
        );
        if !errors.is_empty() {
            // Here the reference asks the store, which names resources by their plural.
            let errors = errors.into_iter().map(|error| error.replacen(".rbac.", "s.rbac.", 1)).collect();
            text.push_str(&format!("; resolution errors: [{}]", aggregate(errors)));
        }
        Err(text)
    }
}
