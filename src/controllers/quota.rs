//! ResourceQuotas: the usage in their namespaces, recounted when objects are deleted or use less.
//!
//! Admission counts new objects before they are stored. So a creation causes no recount here, which might not see the
//! object yet.
//!
//! Source: `pkg/controller/resourcequota` of Kubernetes 1.37.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::client::{Client, Kind, left, read, sooner};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::kinds::quota::{Counted, all_match, counted_until, is_terminating};
use crate::meta::Status;
use crate::meta::quantity::Quantity;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Map, Value};

const QUOTAS: Kind = Kind("", "resourcequotas");
const PODS: Kind = Kind("", "pods");
/// The kinds whose objects may use less after an update.
const RESIZED: [Kind; 3] =
    [Kind("", "services"), Kind("", "persistentvolumeclaims"), Kind("resource.k8s.io", "resourceclaims")];

struct Quotas {
    client: Client,
    known: Mutex<BTreeSet<String>>,
}

impl Reconciler for Quotas {
    const TASK: &str = "counting what quotas limit";

    fn collections(&self) -> Vec<Collection> {
        vec![QUOTAS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if QUOTAS.is(&change.collection) {
            match change.stored {
                Some(_) => known.insert(change.key.to_string()),
                None => known.remove(&*change.key),
            };
            let is_limited_anew =
                change.stored.as_ref().is_some_and(|stored| read(stored).map_or(true, |it| is_limited_anew(&it)));
            return if is_limited_anew { vec![change.key.to_string()] } else { Vec::new() };
        }
        let Some((namespace, _)) = change.key.split_once('/').filter(|_| !known.is_empty()) else { return Vec::new() };
        let prefix = format!("{namespace}/");
        let about = known.range(prefix.clone()..).take_while(|key| key.starts_with(&prefix));
        let about: Vec<String> = about.cloned().collect();
        // The object is decoded only if a quota may concern it.
        if about.is_empty() || frees(change) { about } else { Vec::new() }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(quota) = self.client.get(QUOTAS, key).await? else { return Ok(Progress::Done) };
        let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut used = Used::none(&hard);
        let namespace = quota.str_at(&["metadata", "namespace"]);
        let mut seen = BTreeSet::new();
        let (now, mut again) = (self.client.now(), None);
        for resource in self.client.registry.resources().await? {
            let version = resource.storage();
            let counted = Counted { group: &version.group, plural: &version.names.plural, subresource: "" };
            let is_counted = version.is_namespaced() && hard.keys().any(|name| counted.counts(name));
            if !is_counted || !seen.insert(resource.collection.clone()) {
                continue;
            }
            let mut pages = self.client.registry.storage.pages(&resource.collection, &format!("{namespace}/"));
            let unreadable = |_| Status::internal_error("what is stored can't be read");
            while let Some(page) = pages.next().await.map_err(unreadable)? {
                for stored in page.objects() {
                    let object = read(stored)?;
                    used.add(&quota, (&counted, now), &object);
                    if PODS.is(&resource.collection) {
                        again = sooner(again, uncounted_in(&object, now));
                    }
                }
            }
        }
        let status = object! { "hard" => hard, "used" => used.written() };
        self.client.update_status(QUOTAS, &quota, status).await?;
        Ok(again.map_or(Progress::Done, Progress::After))
    }
}

/// Whether the limits of a quota differ from those in its status: it is new, or has changed.
fn is_limited_anew(quota: &Value) -> bool {
    quota.at(&["spec", "hard"]) != quota.at(&["status", "hard"])
}

/// How long a pod that is being deleted is still counted; `None` if it no longer is, or is not being deleted.
fn uncounted_in(pod: &Value, now: Timestamp) -> Option<Duration> {
    // From the second after: times are compared as they are written, in whole seconds.
    counted_until(pod).and_then(|until| left(until, 1, now))
}

/// Whether a change may reduce the usage.
fn frees(change: &ChangeEvent) -> bool {
    let Some(stored) = &change.stored else { return true };
    if stored.created == stored.revision {
        return false;
    }
    if PODS.is(&change.collection) {
        return read(stored).map_or(true, |pod| is_over(&pod) || is_changed(&pod));
    }
    RESIZED.iter().any(|kind| kind.is(&change.collection))
}

/// Whether a pod has ended, or is being deleted.
fn is_over(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&pod.str_at(&["status", "phase"]))
        || pod.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

/// Whether a pod's spec was changed so that it may use less, or be in other scopes, from then on: it was resized, or has
/// a deadline.
fn is_changed(pod: &Value) -> bool {
    let was_written = pod.at(&["metadata", "generation"]).and_then(Value::as_i64).is_some_and(|times| times > 1);
    let lists = ["containerStatuses", "initContainerStatuses"];
    let mut statuses = lists.iter().flat_map(|list| pod.items_at(&["status", list]));
    was_written && (is_terminating(pod) || statuses.any(|status| status.get("resources").is_some()))
}

/// The usage of each limited resource.
struct Used(Vec<(String, Quantity)>);

impl Used {
    fn none(hard: &Map) -> Self {
        // In the format of the limit, for example with a binary suffix.
        let none = |limit: &Value| {
            let limit = limit.as_str().and_then(|limit| Quantity::parse(limit).ok());
            limit.and_then(|limit| limit.sub(&limit).ok()).unwrap_or_else(|| Quantity::from_i64(0))
        };
        Used(hard.iter().map(|(name, limit)| (name.to_owned(), none(limit))).collect())
    }

    /// Counts an object, if the quota applies to it.
    fn add(&mut self, quota: &Value, (counted, now): (&Counted<'_>, Timestamp), object: &Value) {
        if !all_match(quota, counted, object) {
            return;
        }
        let usage = counted.usage_at(object, now);
        for (name, used) in self.0.iter_mut().filter(|(name, _)| counted.counts(name)) {
            if let Some(sum) = usage.get(name.as_str()).and_then(|amount| used.add(amount).ok()) {
                *used = sum;
            }
        }
    }

    fn written(&self) -> Map {
        Map::from_fields(self.0.iter().map(|(name, used)| (name.into(), Value::String(used.to_string()))).collect())
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let quotas = Quotas { client: context.client("resourcequota-controller"), known: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), quotas))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn what_is_there_is_counted() {
        let quota = read("spec: {hard: {pods: '5', requests.cpu: '4', requests.memory: 1Gi, configmaps: '2'}}");
        let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object).cloned().expect("it limits");
        let mut used = Used::none(&hard);
        let pods = Counted { group: "", plural: "pods", subresource: "" };
        let pod = |status: &str| {
            read(&format!(
                "spec: {{containers: [{{resources: {{requests: {{cpu: 500m, memory: 64Mi}}}}}}]}}\nstatus: {{phase: {status}}}"
            ))
        };
        for status in ["Running", "Pending", "Succeeded"] {
            used.add(&quota, (&pods, Timestamp::UNIX_EPOCH), &pod(status));
        }
        let expected = read("{configmaps: '0', pods: '2', requests.cpu: '1', requests.memory: 128Mi}");
        assert_eq!(Value::from(used.written()), expected);
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_counted_for_twice_its_grace() {
        let pod =
            read("metadata: {deletionTimestamp: '2026-01-01T00:00:30Z', deletionGracePeriodSeconds: 30}\nspec: {}");
        let now: Timestamp = "2026-01-01T00:00:30Z".parse().expect("it is a time");
        assert_eq!(uncounted_in(&pod, now), Some(Duration::from_secs(31)));
        let later: Timestamp = "2026-01-01T00:01:01Z".parse().expect("it is a time");
        assert_eq!(uncounted_in(&pod, later), None);
        let mut used = Used::none(&Map::from_fields(vec![("pods".into(), Value::from("5"))]));
        used.add(&Value::Null, (&Counted { group: "", plural: "pods", subresource: "" }, later), &pod);
        assert_eq!(Value::from(used.written()), read("pods: '0'"));
    }

    #[test]
    fn a_pod_is_counted_anew_once_it_was_resized() {
        let pod = |generation: i64, status: &str| {
            read(&format!(
                "metadata: {{generation: {generation}}}\nstatus: {{containerStatuses: [{{name: c{status}}}]}}"
            ))
        };
        assert!(is_changed(&pod(2, ", resources: {requests: {cpu: 1}}")));
        assert!(!is_changed(&pod(1, ", resources: {requests: {cpu: 1}}")) && !is_changed(&pod(2, "")));
    }
}
