//! Checks a write against the quotas of its namespace: whether it fits, and how much is used afterwards.
//!
//! Input: the ResourceQuotas, and the object with the one that it replaces. Output: the quotas whose usage changes, or
//! why the write is refused. Without `status.hard` and `status.used` a quota limits nothing: a controller writes these.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota` and `pkg/quota/v1`, release 1.36.

mod devices;
mod limited;
mod object;
mod resized;
mod scopes;
mod usage;

use std::borrow::Borrow;
use std::collections::BTreeSet;

use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};
use crate::work;

use super::pod::aggregate::Totals;
use super::{defaults, resources};

pub use limited::LimitedResources;
use object::CountedObject;
pub use scopes::all_match;
pub use usage::{Counted, counted_until, is_terminating};

/// A write of an object.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The resource that is written.
    pub counted: Counted<'r>,
    /// The object after the write.
    pub object: &'r Value,
    /// The object that it replaces; `None` for a create.
    pub old: Option<&'r Value>,
}

/// Why quotas refuse a write, with Kubernetes' message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The write is forbidden.
    Forbidden(String),
    /// The error that Kubernetes reports as an internal one.
    Internal(String),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Refusal::Forbidden(why)
    }
}

/// Returns the quotas as they are once the object is counted, in the given order; `None` for those that do not change.
///
/// # Errors
///
/// Why the write is refused: by a quota, or because none covers what is `limited`.
pub fn charge<Q: Borrow<Value>>(
    quotas: &[Q],
    request: &Request<'_>,
    limited: &LimitedResources,
) -> Result<Vec<Option<Value>>, Refusal> {
    let write = QuotaWrite {
        after: CountedObject::new(request.counted, request.object),
        before: request.old.map(|old| CountedObject::new(request.counted, old)),
    };
    let quotas: Vec<&Value> = quotas.iter().map(Borrow::borrow).collect();
    let is_matching: Vec<bool> = quotas.iter().map(|quota| matches(quota, &write.after)).collect();
    let matching: Vec<&Value> =
        quotas.iter().zip(&is_matching).filter(|(_, matches)| **matches).map(|(quota, _)| *quota).collect();
    for quota in &matching {
        check_known(quota, &write.after)?;
    }
    let asked = write.after.usage();
    let negative: Vec<&str> =
        asked.iter().filter(|(_, amount)| amount.signum() < 0).map(|(name, _)| name.as_str()).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")).into());
    }
    if write.uses_more(&matching) {
        limited.check_covered(&quotas, &matching, &write.after)?;
    }
    let charged = quotas.iter().zip(is_matching);
    charged.map(|(quota, matches)| if matches { charge_one(quota, &write) } else { Ok(None) }).collect()
}

/// A write, and what is known about both states of its object.
struct QuotaWrite<'w> {
    after: CountedObject<'w>,
    before: Option<CountedObject<'w>>,
}

impl QuotaWrite<'_> {
    /// How much the object that is replaced uses of what a quota counts; `None` if the quota does not count it.
    fn counted_before(&self, quota: &Value) -> Option<&Totals> {
        self.before.as_ref().filter(|before| matches(quota, before)).map(CountedObject::usage)
    }

    /// Whether the write uses more of any resource than the object it replaces, for a matching quota, or if none
    /// matches.
    fn uses_more(&self, matching: &[&Value]) -> bool {
        let more = |before: Option<&Totals>| {
            let is_more = |(name, amount): (&String, &Quantity)| match before.and_then(|before| before.get(name)) {
                Some(before) => difference(amount, before).signum() > 0,
                None => amount.signum() > 0,
            };
            self.after.usage().iter().any(is_more)
        };
        if matching.is_empty() {
            return more(self.before.as_ref().map(CountedObject::usage));
        }
        matching.iter().any(|quota| more(self.counted_before(quota)))
    }
}

/// Whether a quota limits a resource that the object uses, and the object is in all its scopes.
fn matches(quota: &Value, counted: &CountedObject<'_>) -> bool {
    let is_limited = hard(quota).any(|name| counted.resource.counts(name));
    is_limited && scopes::all_have(quota, counted)
}

/// The amounts that a request was charged, by the names of resources.
pub type Charge = Totals;

/// How much more is used in `after` than in `before`, two states of the same quota.
pub fn difference_of(before: &Value, after: &Value) -> Charge {
    let used = |quota: &Value, name: &str| resources::parse(quota.at(&["status", "used", name]));
    let differs = |name: &str| {
        let more = used(after, name).sub(&used(before, name)).ok()?;
        (more.signum() != 0).then(|| (name.to_owned(), more))
    };
    hard(after).filter_map(differs).collect()
}

/// Returns the quota as if a request had not been charged. Amounts never become negative.
pub fn refunded(quota: &Value, charge: &Charge) -> Value {
    let mut refunded = quota.clone();
    for (name, amount) in charge {
        work::step();
        let used = resources::parse(quota.at(&["status", "used", name]));
        let status = defaults::structure(&mut refunded, "status");
        let left = difference(&used, amount);
        defaults::structure(status, "used").make_object().insert(name, Value::String(left.to_string()));
    }
    refunded
}

fn hard(quota: &Value) -> impl Iterator<Item = &str> {
    let hard = quota.at(&["status", "hard"]).and_then(Value::as_object);
    hard.into_iter().flat_map(Map::keys).inspect(|_| work::step())
}

/// Checks that the object specifies what the quota limits, and that the quota knows what is used already.
fn check_known(quota: &Value, counted: &CountedObject<'_>) -> Result<(), Refusal> {
    let name = quota.str_at(&["metadata", "name"]);
    let limited: BTreeSet<&str> = hard(quota).filter(|name| counted.resource.counts(name)).collect();
    if let Some(why) = counted.unspecified().among(&limited) {
        return Err(Refusal::Forbidden(format!("failed quota: {name}: {why}")));
    }
    let is_known = |resource: &&str| quota.at(&["status", "used", resource]).is_some();
    if limited.iter().all(is_known) {
        return Ok(());
    }
    let limited: Vec<&str> = limited.into_iter().collect();
    let why = format!("status unknown for quota: {name}, resources: {}", limited.join(","));
    Err(Refusal::Forbidden(why))
}

fn charge_one(quota: &Value, write: &QuotaWrite<'_>) -> Result<Option<Value>, Refusal> {
    let before = write.counted_before(quota);
    let mut requested = Totals::new();
    for name in hard(quota) {
        let Some(amount) = write.after.usage().get(name) else { continue };
        let more = before
            .and_then(|before| before.get(name))
            .map_or_else(|| amount.clone(), |before| difference(amount, before));
        if more.signum() > 0 {
            requested.insert(name.to_owned(), more);
        }
    }
    if requested.is_empty() {
        return Ok(None);
    }
    let mut charged = quota.clone();
    let mut exceeded = Vec::new();
    for (name, more) in &requested {
        work::step();
        let amount = |list: &str| resources::parse(quota.at(&["status", list, name]));
        let used = amount("used").add(more).unwrap_or_else(|_| more.clone());
        if used > amount("hard") {
            exceeded.push(name.as_str());
        }
        let status = defaults::structure(&mut charged, "status");
        defaults::structure(status, "used").make_object().insert(name, Value::String(used.to_string()));
    }
    if exceeded.is_empty() || write.after.resource.subresource == "status" {
        return Ok(Some(charged));
    }
    let list = |list: &str| {
        let amounts =
            exceeded.iter().map(|name| format!("{name}={}", resources::parse(quota.at(&["status", list, name]))));
        amounts.collect::<Vec<_>>().join(",")
    };
    let wanted = exceeded.iter().filter_map(|name| Some(format!("{name}={}", requested.get(*name)?)));
    let (name, wanted) = (quota.str_at(&["metadata", "name"]), wanted.collect::<Vec<_>>().join(","));
    let (used, hard) = (list("used"), list("hard"));
    Err(Refusal::Forbidden(format!("exceeded quota: {name}, requested: {wanted}, used: {used}, limited: {hard}")))
}

/// The difference; 0 if it is negative.
fn difference(now: &Quantity, before: &Quantity) -> Quantity {
    match now.sub(before) {
        Ok(more) if more.signum() > 0 => more,
        _ => Quantity::from_i64(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("it is YAML")
    }

    fn charge_pod(quota: &str, pod: &str) -> Result<Vec<Value>, String> {
        let counted = Counted { group: "", plural: "pods", subresource: "" };
        let charged =
            charge(&[read(quota)], &Request { counted, object: &read(pod), old: None }, &LimitedResources::default());
        let charged = charged.map(|quotas| quotas.into_iter().flatten().collect());
        charged.map_err(|refusal| match refusal {
            Refusal::Forbidden(why) | Refusal::Internal(why) => why,
        })
    }

    #[test]
    fn a_pod_is_charged_for_what_it_asks_for() {
        let quota = "{metadata: {name: q}, status: {hard: {pods: '2', requests.cpu: '1'}, used: {pods: '1', requests.cpu: 500m}}}";
        let pod = |cpu: &str| format!("spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}");
        let charged = charge_pod(quota, &pod("500m")).expect("it fits");
        assert_eq!(charged[0].at(&["status", "used"]), Some(&read("{pods: '2', requests.cpu: '1'}")));
        let why = "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=500m, limited: requests.cpu=1";
        assert_eq!(charge_pod(quota, &pod("600m")), Err(why.to_owned()));
        let why = "failed quota: q: must specify requests.cpu for: c";
        assert_eq!(charge_pod(quota, "spec: {containers: [{name: c}]}"), Err(why.to_owned()));
    }

    #[test]
    fn what_was_charged_is_given_back() {
        let quota = read(
            "{metadata: {name: q}, status: {hard: {pods: '3', requests.cpu: '1'}, used: {pods: '1', requests.cpu: 200m}}}",
        );
        let pod = "spec: {containers: [{name: c, resources: {requests: {cpu: 300m}}}]}";
        let counted = Counted { group: "", plural: "pods", subresource: "" };
        let request = Request { counted, object: &read(pod), old: None };
        let charged = charge(&[&quota], &request, &LimitedResources::default()).expect("it fits");
        let charged = charged[0].as_ref().expect("it counts the pod");
        let charge = difference_of(&quota, charged);
        assert_eq!(charge.keys().map(String::as_str).collect::<Vec<_>>(), ["pods", "requests.cpu"]);
        assert_eq!(refunded(charged, &charge), quota);
    }

    #[test]
    fn a_quota_is_for_what_is_in_its_scopes() {
        let quota =
            "{metadata: {name: q}, spec: {scopes: [BestEffort]}, status: {hard: {pods: '0'}, used: {pods: '0'}}}";
        assert!(charge_pod(quota, "spec: {containers: [{name: c}]}").is_err());
        let pod = "spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}";
        assert_eq!(charge_pod(quota, pod), Ok(Vec::new()));
        let without_usage = "{metadata: {name: q}, status: {hard: {pods: '1'}}}";
        let why = "status unknown for quota: q, resources: pods";
        assert_eq!(charge_pod(without_usage, pod), Err(why.to_owned()));
    }
}
