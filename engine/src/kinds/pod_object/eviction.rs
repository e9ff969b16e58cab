//! `/eviction`: a pod is deleted, if the budgets for disruptions of its like allow it.
//!
//! Source: `pkg/registry/core/pod/storage/eviction.go`.

use crate::meta::field::{Error, Path};
use crate::meta::selector::LabelSelector;
use crate::meta::{Cause, Status};
use crate::object;
use crate::value::{Value, go_print};

use super::conditions::{self, Condition};

/// Evicted pods that the controller of budgets does not know of yet.
const DISRUPTED_MAX: usize = 2000;
const ALLOWED: &str = "DisruptionAllowed";
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Checks an eviction that was sent for the pod `name`.
///
/// # Errors
///
/// 400 for another name, 422 for options that evictions can't have.
pub fn check(eviction: &Value, name: &str) -> Result<(), Status> {
    if eviction.str_at(&["metadata", "name"]) != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let option = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if eviction.at(&["deleteOptions", option]).and_then(Value::as_bool) == Some(true) {
        let path = Path::new("deleteOptions");
        let why = "can not be set for pod eviction, try after removing the option";
        let error = Error::invalid(&path.child(option), true, why);
        return Err(Status::invalid("policy", "Eviction", name, &error.into()));
    }
    Ok(())
}

/// The options of the deletion: those of the eviction, with the request's dry run if they have none.
///
/// # Errors
///
/// 500 if both have one, and these differ.
pub fn delete_options(eviction: &Value, dry_run: &[Value]) -> Result<Value, Status> {
    let mut options = eviction.get("deleteOptions").filter(|options| !options.is_null()).cloned().unwrap_or(object! {});
    let own = options.items_at(&["dryRun"]).to_vec();
    if own.is_empty() && !dry_run.is_empty() {
        options.make_object().insert("dryRun", Value::Array(dry_run.to_vec()));
    } else if !own.is_empty() && !dry_run.is_empty() && own != dry_run {
        let shown = |list: &[Value]| go_print(&Value::Array(list.to_vec()));
        let (request, content) = (shown(dry_run), shown(&own));
        let why = format!("Non-matching dry-run options in request and content: {request} and {content}");
        return Err(Status::plain(500, &why));
    }
    Ok(options)
}

/// Whether the pod may go whatever budgets say: it does not run yet, or no longer.
pub fn ignores_budgets(pod: &Value) -> bool {
    is_terminal(pod) || pod.str_at(&["status", "phase"]) == "Pending"
}

/// Whether the pod must be unchanged since it was checked: it could have become ready since.
pub fn enforces_version(pod: &Value) -> bool {
    !is_terminal(pod)
}

fn is_terminal(pod: &Value) -> bool {
    matches!(pod.str_at(&["status", "phase"]), "Succeeded" | "Failed")
        || pod.at(&["metadata", "deletionTimestamp"]).is_some()
}

/// Whether a budget is about the pod.
pub fn covers(budget: &Value, pod: &Value) -> bool {
    selector(budget).is_some_and(|selector| selector.matches(&pod.at(&["metadata", "labels"])))
}

/// The selector of a budget; `None` if it selects nothing.
pub fn selector(budget: &Value) -> Option<LabelSelector> {
    let selector = budget.at(&["spec", "selector"]).filter(|selector| !selector.is_null())?;
    LabelSelector::decode(selector).ok()
}

/// The decision of the budgets.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// There is no budget.
    Free,
    /// The pod is not ready, so that nothing is disrupted: it is evicted if it stays unchanged.
    Unhealthy,
    /// The budget allows it, and has this status afterwards.
    Spent(Value),
}

/// Checks the budgets that cover the pod. `now` is RFC 3339.
///
/// # Errors
///
/// 429 if the budget allows no disruption, 403 for an outdated budget, and 500 for several.
pub fn ask(pod: &Value, budgets: &[&Value], now: &str) -> Result<Verdict, Status> {
    const SEVERAL: &str =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    let budget = match budgets {
        [] => return Ok(Verdict::Free),
        [budget] => budget,
        _ => return Err(Status::plain(500, SEVERAL)),
    };
    if !conditions::is_true(pod, conditions::READY) {
        let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
        let always = budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
        if always || (healthy >= desired && desired > 0) {
            return Ok(Verdict::Unhealthy);
        }
    }
    spend(budget, pod.str_at(&["metadata", "name"]), now).map(Verdict::Spent)
}

fn count(budget: &Value, name: &str) -> i64 {
    budget.at(&["status", name]).and_then(Value::as_i64).unwrap_or_default()
}

/// The status of a budget from which one disruption was taken.
fn spend(budget: &Value, pod: &str, now: &str) -> Result<Value, Status> {
    let name = budget.str_at(&["metadata", "name"]);
    let generation = budget.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    let forbidden = |why: &str| Err(Status::forbidden("policy", "poddisruptionbudget", name, why));
    if count(budget, "observedGeneration") < generation {
        return Err(being_processed(name));
    }
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|disrupted| disrupted.len() > DISRUPTED_MAX) {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        return Err(refused(0, reason(budget)));
    }
    let mut status = budget.get("status").cloned().unwrap_or_default();
    let fields = status.make_object();
    fields.insert("disruptionsAllowed", Value::Int(allowed - 1));
    fields.entry("disruptedPods").make_object().insert(pod, Value::from(now));
    if allowed == 1 {
        set_insufficient(&mut status, now);
    }
    Ok(status)
}

/// The condition of a budget that allows nothing more.
fn set_insufficient(status: &mut Value, now: &str) {
    let generation = status.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    let list = status.make_object().entry("conditions");
    if !matches!(list, Value::Array(_)) {
        *list = Value::Array(Vec::new());
    }
    let Value::Array(list) = list else { return };
    let is_it = |condition: &&mut Value| condition.str_at(&["type"]) == ALLOWED;
    let mut condition = object! { "type" => ALLOWED, "status" => "False", "lastTransitionTime" => now };
    let fields = condition.make_object();
    fields.insert("reason", Value::from("InsufficientPods"));
    fields.insert("message", Value::from(""));
    if generation != 0 {
        fields.insert("observedGeneration", Value::Int(generation));
    }
    match list.iter_mut().find(is_it) {
        Some(old) => {
            if let Some(time) = old.get("lastTransitionTime").filter(|_| old.str_at(&["status"]) == "False") {
                fields.insert("lastTransitionTime", time.clone());
            }
            *old = condition;
        }
        None => list.push(condition),
    }
}

/// Why a budget allows nothing.
fn reason(budget: &Value) -> String {
    let name = budget.str_at(&["metadata", "name"]);
    let mut conditions = budget.items_at(&["status", "conditions"]).iter();
    let condition = conditions.find(|condition| condition.str_at(&["type"]) == ALLOWED);
    let text = |field: &str| condition.map(|condition| condition.str_at(&[field])).unwrap_or_default();
    let (message, reason) = (text("message"), text("reason"));
    let is_told = text("status") == "False" && !message.is_empty();
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    let start = format!("The disruption budget {name}");
    if is_told && reason == "SyncFailed" {
        format!("{start} does not allow evicting pods currently because it failed sync: {message}")
    } else if healthy <= desired {
        format!("{start} needs {desired} healthy pods and has {healthy} currently")
    } else if is_told {
        format!("{start} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("{start} does not allow evicting pods currently")
    }
}

/// The budget is not yet what was seen of it.
pub fn being_processed(budget: &str) -> Status {
    refused(10, format!("The disruption budget {budget} is still being processed by the server."))
}

fn refused(retry_after_seconds: u32, message: String) -> Status {
    let mut status = Status::too_many_requests(VIOLATES, retry_after_seconds);
    if let Some(details) = &mut status.details {
        details.causes.push(Cause { reason: "DisruptionBudget".to_owned(), message, field: String::new() });
    }
    status
}

/// The pod with a condition that it is being evicted. `now` is RFC 3339.
pub fn mark(pod: &Value, now: &str) -> Value {
    let mut marked = pod.clone();
    let condition = Condition {
        kind: "DisruptionTarget",
        status: "True",
        reason: "EvictionByEvictionAPI",
        message: "Eviction API: evicting",
    };
    conditions::set(&mut marked, &condition, now);
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn told(pod: &str, budget: &str) -> Result<Verdict, String> {
        let budget = read(&format!("metadata: {{name: p, generation: 1}}\n{budget}"));
        ask(&read(&format!("metadata: {{name: a}}\n{pod}")), &[&budget], "now").map_err(|status| {
            let cause = status.details.as_ref().and_then(|details| details.causes.first());
            cause.map_or(status.message.clone(), |cause| format!("{} {}", status.code, cause.message))
        })
    }

    #[test]
    fn a_budget_is_spent() {
        let ready = "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}";
        let is = |budget: &str| told(ready, &format!("status: {{observedGeneration: 1, {budget}}}"));
        assert_eq!(
            told(ready, "spec: {}"),
            Err("429 The disruption budget p is still being processed by the server.".to_owned())
        );
        let needs = "429 The disruption budget p needs 2 healthy pods and has 1 currently";
        assert_eq!(is("desiredHealthy: 2, currentHealthy: 1"), Err(needs.to_owned()));
        let synced = "conditions: [{type: DisruptionAllowed, status: 'False', reason: SyncFailed, message: m}]";
        let failed = "429 The disruption budget p does not allow evicting pods currently because it failed sync: m";
        assert_eq!(is(synced), Err(failed.to_owned()));
        let negative = "poddisruptionbudget.policy \"p\" is forbidden: pdb disruptions allowed is negative";
        assert_eq!(is("disruptionsAllowed: -1"), Err(negative.to_owned()));
        let Ok(Verdict::Spent(status)) = is("disruptionsAllowed: 1") else { panic!("it is allowed") };
        assert_eq!(status.str_at(&["disruptedPods", "a"]), "now");
        assert_eq!(status.items_at(&["conditions"])[0].str_at(&["reason"]), "InsufficientPods");
    }

    #[test]
    fn what_is_not_ready_may_go_where_enough_are() {
        let healthy = "status: {observedGeneration: 1, desiredHealthy: 1, currentHealthy: 1}";
        assert_eq!(told("status: {phase: Running}", healthy), Ok(Verdict::Unhealthy));
        assert_eq!(
            told("status: {phase: Running}", "spec: {unhealthyPodEvictionPolicy: AlwaysAllow}"),
            Ok(Verdict::Unhealthy)
        );
        assert!(told("status: {phase: Running}", "status: {observedGeneration: 1}").is_err());
    }

    #[test]
    fn a_budget_covers_what_it_selects() {
        let pod = read("metadata: {labels: {a: b}}");
        let covers = |spec: &str| super::covers(&read(&format!("spec: {spec}")), &pod);
        assert!(covers("{selector: {}}") && covers("{selector: {matchLabels: {a: b}}}"));
        assert!(!covers("{}") && !covers("{selector: {matchLabels: {a: c}}}"));
    }
}
