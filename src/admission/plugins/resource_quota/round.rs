//! Checks the requests of a namespace against its quotas, one after the other, and writes the
//! resulting usage once.
//!
//! If someone else writes a quota meanwhile, for example another server on the same database,
//! everything is read and counted again after a pause.
//!
//! Source: `checkQuotas` of `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, release 1.36.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::charges::Charges;
use super::name_of;
use super::queue::{self, Serve};
use crate::admission::{Objects, ScopedResource};
use crate::kinds::quota::{self, Charge, Counted, LimitedResources, Refusal, Request};
use crate::meta::Status;
use crate::value::Value;

/// How often quotas are read again after a conflicting write.
const TRIES: u32 = 64;
/// The longest pause before that.
const PAUSE_MAX: Duration = Duration::from_millis(150);

/// A write that quotas may count.
pub struct QuotaRequest {
    pub group: String,
    pub plural: String,
    pub subresource: String,
    pub object: Value,
    pub old: Option<Value>,
    pub dry_run: bool,
    pub charges: Charges,
}

impl QuotaRequest {
    /// The group and plural of the resource.
    fn resource(&self) -> (&str, &str) {
        (&self.group, &self.plural)
    }

    fn counted(&self) -> Counted<'_> {
        Counted { group: &self.group, plural: &self.plural, subresource: &self.subresource }
    }
}

/// Why a write is refused.
#[derive(Debug)]
pub enum QuotaRefusal {
    Refused(Refusal),
    /// The quotas can't be read or written.
    Broken(Status),
}

pub type QuotaVerdict = Result<(), QuotaRefusal>;
type WaitingQuota = queue::Waiting<QuotaRequest, QuotaVerdict>;

/// Checks requests against the quotas of their namespace.
pub struct Evaluator {
    pub objects: Arc<dyn Objects>,
    pub limited: LimitedResources,
}

#[async_trait]
impl Serve<QuotaRequest, QuotaVerdict> for Evaluator {
    async fn serve(&self, namespace: &str, mut waiting: Vec<WaitingQuota>) {
        for attempt in 0..TRIES {
            match self.round(namespace, waiting).await {
                Round::Done => return,
                Round::Overtaken(left) => waiting = left,
            }
            tokio::time::sleep(pause(attempt)).await;
        }
        answer_all(waiting, || Err(QuotaRefusal::Broken(super::timed_out())));
    }
}

/// The outcome of a round.
enum Round {
    /// All requests are answered.
    Done,
    /// Someone else has written a quota: these requests must be checked again.
    Overtaken(Vec<WaitingQuota>),
}

impl Evaluator {
    async fn round(&self, namespace: &str, waiting: Vec<WaitingQuota>) -> Round {
        let place = ScopedResource { group: "", plural: "resourcequotas", namespace };
        // Limited resources are checked against all quotas of the namespace.
        let all = !self.limited.0.is_empty();
        let resources: BTreeSet<_> = waiting.iter().map(|waiting| waiting.item.resource()).collect();
        let may_limit = |quota: &[u8]| {
            let counted = |&(group, plural)| Counted { group, plural, subresource: "" };
            all || resources.iter().map(counted).any(|counted| counted.may_be_limited_by(quota))
        };
        let stored = match self.objects.list_of(place, &may_limit).await {
            Ok(stored) => stored,
            Err(status) => {
                answer_all(waiting, || Err(QuotaRefusal::Broken(status.clone())));
                return Round::Done;
            }
        };
        let mut quotas: Vec<Cow<'_, Value>> = stored.iter().map(Cow::Borrowed).collect();
        let charged = self.charge(&mut quotas, waiting);
        for quota in quotas {
            let name = name_of(&quota).to_owned();
            if let Cow::Owned(changed) = quota {
                match self.objects.replace(place, changed).await {
                    Ok(true) => (),
                    Ok(false) => return Round::Overtaken(charged.into_iter().map(|charged| charged.waiting).collect()),
                    Err(status) => {
                        let waiting = charged.into_iter().map(|charged| charged.waiting).collect();
                        answer_all(waiting, || Err(QuotaRefusal::Broken(status.clone())));
                        return Round::Done;
                    }
                }
            }
            charged.iter().for_each(|charged| charged.note(&name));
        }
        answer_all(charged.into_iter().map(|charged| charged.waiting).collect(), || Ok(()));
        Round::Done
    }

    /// Counts the requests in the quotas, one after the other, and answers those that need no
    /// write.
    fn charge(&self, quotas: &mut [Cow<'_, Value>], waiting: Vec<WaitingQuota>) -> Vec<Charged> {
        let mut charged = Vec::new();
        for waiting in waiting {
            match charge_one(quotas, &waiting.item, &self.limited) {
                Err(refusal) => waiting.answer(Err(QuotaRefusal::Refused(refusal))),
                Ok(_) if waiting.item.dry_run => waiting.answer(Ok(())),
                Ok(changed) if changed.is_empty() => waiting.answer(Ok(())),
                Ok(changed) => {
                    let mut charges = BTreeMap::new();
                    for QuotaChange { at, charge, after } in changed {
                        charges.insert(name_of(&after).to_owned(), charge);
                        quotas[at] = Cow::Owned(after);
                    }
                    charged.push(Charged { waiting, charges });
                }
            }
        }
        charged
    }
}

/// A request that is counted in quotas, and its charges by quota name.
struct Charged {
    waiting: WaitingQuota,
    charges: BTreeMap<String, Charge>,
}

impl Charged {
    /// Records the charge for a quota that has been written.
    fn note(&self, quota: &str) {
        if let Some(charge) = self.charges.get(quota) {
            self.waiting.item.charges.note(quota, charge.clone());
        }
    }
}

/// The change that a request makes to a quota.
struct QuotaChange {
    at: usize,
    charge: Charge,
    after: Value,
}

fn charge_one(
    quotas: &[Cow<'_, Value>],
    asked: &QuotaRequest,
    limited: &LimitedResources,
) -> Result<Vec<QuotaChange>, Refusal> {
    let request = Request { counted: asked.counted(), object: &asked.object, old: asked.old.as_ref() };
    let before: Vec<Cow<'_, Value>> = quotas.iter().map(|quota| asked.charges.refunded(quota)).collect();
    let charged = quota::charge(&before, &request, limited)?;
    let changed =
        before.into_iter().zip(charged).zip(quotas).enumerate().filter_map(|(at, ((before, after), quota))| {
            let charge = after.as_ref().map(|after| quota::difference_of(&before, after)).unwrap_or_default();
            let after = match (after, before) {
                (Some(after), _) | (None, Cow::Owned(after)) => after,
                (None, Cow::Borrowed(_)) => return None,
            };
            (after != **quota).then_some(QuotaChange { at, charge, after })
        });
    Ok(changed.collect())
}

fn answer_all(waiting: Vec<WaitingQuota>, answer: impl Fn() -> QuotaVerdict) {
    waiting.into_iter().for_each(|waiting| waiting.answer(answer()));
}

/// A random pause with a bound that grows with each attempt: two servers with equal pauses would
/// conflict again.
fn pause(attempt: u32) -> Duration {
    let longest = PAUSE_MAX.min(Duration::from_millis(4) * (attempt + 1));
    let random = RandomState::new().hash_one(attempt);
    longest.mul_f64((random % 1_000) as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::admission::{Listed, TextFilter};
    use crate::value::{json, yaml};

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    fn quota(name: &str, used: u32) -> Value {
        read(&format!("{{metadata: {{name: {name}}}, status: {{hard: {{pods: '3'}}, used: {{pods: '{used}'}}}}}}"))
    }

    /// Stored quotas; someone else writes the second one `overtaken` times.
    struct Stored {
        quotas: Mutex<Vec<Value>>,
        overtaken: Mutex<usize>,
        writes: Mutex<usize>,
    }

    #[async_trait]
    impl Objects for Stored {
        async fn get(&self, _: ScopedResource<'_>, _: &str) -> Result<Option<Value>, Status> {
            Ok(None)
        }

        async fn any_of(&self, _: ScopedResource<'_>, _: TextFilter<'_>) -> Result<bool, Status> {
            Ok(true)
        }

        async fn list_of(&self, _: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<Listed, Status> {
            let quotas = self.quotas.lock().expect("nothing panics");
            Ok(Listed::new(quotas.iter().filter(|quota| wanted(&json::encode(quota))).cloned().collect(), None))
        }

        async fn replace(&self, _: ScopedResource<'_>, object: Value) -> Result<bool, Status> {
            let mut quotas = self.quotas.lock().expect("nothing panics");
            let at = quotas.iter().position(|known| name_of(known) == name_of(&object)).expect("it was listed");
            let mut overtaken = self.overtaken.lock().expect("nothing panics");
            if at == 1 && *overtaken > 0 {
                *overtaken -= 1;
                return Ok(false);
            }
            *self.writes.lock().expect("nothing panics") += 1;
            quotas[at] = object;
            Ok(true)
        }
    }

    impl Stored {
        fn used(&self) -> Vec<String> {
            let used = |quota: &Value| quota.str_at(&["status", "used", "pods"]).to_owned();
            self.quotas.lock().expect("nothing panics").iter().map(used).collect()
        }
    }

    fn stored(quotas: Vec<Value>, overtaken: usize) -> (Arc<Stored>, Arc<Evaluator>) {
        let (quotas, overtaken) = (Mutex::new(quotas), Mutex::new(overtaken));
        let stored = Arc::new(Stored { quotas, overtaken, writes: Mutex::default() });
        let objects = Arc::clone(&stored) as Arc<dyn Objects>;
        (stored, Arc::new(Evaluator { objects, limited: LimitedResources::default() }))
    }

    fn pod(charges: &Charges) -> QuotaRequest {
        QuotaRequest {
            group: String::new(),
            plural: "pods".to_owned(),
            subresource: String::new(),
            object: read("spec: {containers: [{name: c}]}"),
            old: None,
            dry_run: false,
            charges: charges.clone(),
        }
    }

    #[tokio::test]
    async fn a_write_that_is_tried_again_is_charged_once() {
        let (stored, evaluator) = stored(vec![quota("q", 1), quota("r", 0)], 2);
        let charges = Charges::default();
        let queue = Arc::new(queue::Queue::default());
        // Someone else writes the second quota in between; then the whole request is retried.
        for _ in 0..3 {
            let verdict = queue.ask(&evaluator, "n", pod(&charges)).await;
            assert!(matches!(verdict, Some(Ok(()))), "{verdict:?}");
        }
        assert_eq!(stored.used(), ["2", "1"]);
    }

    #[tokio::test]
    async fn all_that_wait_are_counted_in_one_write_as_far_as_they_fit() {
        let (stored, evaluator) = stored(vec![quota("q", 1)], 0);
        let queue = Arc::new(queue::Queue::default());
        let charges: [Charges; 5] = std::array::from_fn(|_| Charges::default());
        let [a, b, c, d, e] = charges.each_ref().map(|charges| queue.ask(&evaluator, "n", pod(charges)));
        let verdicts = tokio::join!(a, b, c, d, e);
        let fits = |verdict: &Option<QuotaVerdict>| matches!(verdict, Some(Ok(())));
        let fitting = [&verdicts.0, &verdicts.1, &verdicts.2, &verdicts.3, &verdicts.4].map(fits);
        assert_eq!(fitting, [true, true, false, false, false]);
        assert_eq!((stored.used(), *stored.writes.lock().expect("nothing panics")), (vec!["3".to_owned()], 1));
    }

    #[test]
    fn pauses_are_bounded() {
        assert!((0..TRIES).all(|attempt| pause(attempt) <= PAUSE_MAX));
    }
}
