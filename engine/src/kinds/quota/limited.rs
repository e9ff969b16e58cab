//! Resources that may only be used if a quota of the namespace limits them.
//!
//! Input: `limitedResources` of the configuration, and the quotas that count an object. Output: the resources that no
//! quota covers.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, release 1.36.

use std::collections::BTreeSet;

use crate::value::Value;
use crate::work;

use super::object::CountedObject;
use super::scopes::{Scope, scopes_of};
use super::{Refusal, hard};

/// The items of `limitedResources`; `resource` is set in each.
#[derive(Clone, Debug, Default)]
pub struct LimitedResources(pub Vec<Value>);

impl LimitedResources {
    /// Checks that quotas cover all limited resources that the object uses.
    ///
    /// # Errors
    ///
    /// The resources or scopes that no quota covers.
    pub(super) fn check_covered(
        &self,
        quotas: &[&Value],
        matching: &[&Value],
        counted: &CountedObject<'_>,
    ) -> Result<(), Refusal> {
        let covered: BTreeSet<&str> =
            matching.iter().flat_map(|quota| hard(quota)).filter(|name| counted.resource.counts(name)).collect();
        let uncovered: BTreeSet<&str> = self.limits(counted).filter(|name| !covered.contains(name)).collect();
        if !uncovered.is_empty() {
            let names: Vec<&str> = uncovered.into_iter().collect();
            return Err(Refusal::Forbidden(format!("insufficient quota to consume: {}", names.join(","))));
        }
        let has = |scope: &Scope<'_>| scope.has(counted);
        let covered: Vec<&str> =
            quotas.iter().flat_map(|quota| scopes_of(quota)).filter(has).map(|scope| scope.name).collect();
        let limited = self.0.iter().flat_map(|item| item.items_at(&["matchScopes"])).map(Scope::of).filter(has);
        let uncovered: Vec<String> =
            limited.filter(|scope| !covered.contains(&scope.name)).map(|scope| print(&scope)).collect();
        if uncovered.is_empty() {
            return Ok(());
        }
        let why = format!("insufficient quota to match these scopes: [{}]", uncovered.join(" "));
        Err(Refusal::Internal(why))
    }

    /// The resources that the object uses and whose names contain a limited part.
    fn limits<'a>(&'a self, counted: &'a CountedObject<'_>) -> impl Iterator<Item = &'a str> {
        let (group, plural) = (counted.resource.group, counted.resource.plural);
        let is_it = move |item: &&Value| item.str_at(&["apiGroup"]) == group && item.str_at(&["resource"]) == plural;
        self.0
            .iter()
            .filter(is_it)
            .flat_map(move |item| {
                let parts = item.items_at(&["matchContains"]);
                counted.usage().iter().filter(move |(name, amount)| {
                    work::step();
                    let has_part = |part: &Value| part.as_str().is_some_and(|part| name.contains(part));
                    amount.signum() > 0 && parts.iter().any(has_part)
                })
            })
            .map(|(name, _)| name.as_str())
    }
}

/// Formats a scope as Go prints a ScopedResourceSelectorRequirement.
fn print(scope: &Scope<'_>) -> String {
    let values: Vec<&str> = scope.values.iter().filter_map(Value::as_str).collect();
    format!("{{{} {} [{}]}}", scope.name, scope.operator, values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::{Counted, Request, charge};
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("it is YAML")
    }

    #[track_caller]
    fn check(limited: &str, quotas: &str, pod: &str, expected: Result<(), Refusal>) {
        let limited = LimitedResources(read(limited).as_array().expect("a list").to_vec());
        let quotas = read(quotas).as_array().expect("a list").to_vec();
        let counted = Counted { group: "", plural: "pods", subresource: "" };
        let request = Request { counted, object: &read(pod), old: None };
        assert_eq!(charge(&quotas, &request, &limited).map(drop), expected);
    }

    #[test]
    fn what_is_limited_needs_a_quota() {
        let limited = "[{resource: pods, matchContains: [cpu]}, {resource: services, matchContains: [services]}]";
        let pod = "spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}";
        let why = "insufficient quota to consume: cpu,requests.cpu".to_owned();
        check(limited, "[]", pod, Err(Refusal::Forbidden(why)));
        check(limited, "[]", "spec: {containers: [{name: c}]}", Ok(()));
        let of_cpu = "[{status: {hard: {cpu: '1', requests.cpu: '1'}, used: {cpu: '0', requests.cpu: '0'}}}]";
        check(limited, of_cpu, pod, Ok(()));
    }

    #[test]
    fn a_limited_scope_needs_a_quota_of_that_scope() {
        let limited =
            "[{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [high, higher]}]}]";
        let pod = "spec: {priorityClassName: high, containers: [{name: c}]}";
        let why = "insufficient quota to match these scopes: [{PriorityClass In [high higher]}]".to_owned();
        check(limited, "[]", pod, Err(Refusal::Internal(why)));
        check(limited, "[]", "spec: {containers: [{name: c}]}", Ok(()));
        check(limited, "[{spec: {scopes: [PriorityClass]}}]", pod, Ok(()));
    }
}
