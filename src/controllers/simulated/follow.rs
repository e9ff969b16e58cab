//! Objects on their way through stages: the stage of each object, since when it is in it, and the actions at the end of
//! a stage.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::pod::deletion_since;
use super::stages::{self, Stage, StageAction, StageEvent};
use super::template::TemplateContext;
use crate::controllers::client::{Client, time_at};
use crate::controllers::finalizers;
use crate::controllers::queue::Progress;
use crate::meta::Status;
use crate::registry::{PatchType, Subresource};
use crate::value::{Value, json};

/// The stages of a kind, and the objects that are in one.
#[derive(Default)]
pub(super) struct Followed {
    stages: Vec<Stage>,
    /// When it began to follow them.
    begun: Timestamp,
    stays: Mutex<Stays>,
    /// The stages that a warning was logged for, because they patch a subresource that their kind does not have.
    warned: Mutex<HashSet<usize>>,
}

/// The objects that are in a stage, by their keys.
#[derive(Default)]
struct Stays {
    known: HashMap<String, Stay>,
    /// Entries from before the last restart that have not been used since. Objects that are gone are dropped at the
    /// next restart.
    before: HashMap<String, Stay>,
}

impl Stays {
    /// Nothing is known about an object that was recreated under its name.
    fn of(&self, key: &str, uid: &str) -> Option<&Stay> {
        self.known.get(key).or_else(|| self.before.get(key)).filter(|stay| stay.uid == uid)
    }

    /// Records how much of a stage is done; does nothing for an object that is gone.
    fn note_done(&mut self, key: &str, done: usize) {
        if let Some(stay) = self.known.get_mut(key).or_else(|| self.before.get_mut(key)) {
            stay.done = done;
        }
    }

    fn set(&mut self, key: &str, stay: Option<Stay>) {
        self.before.remove(key);
        match stay {
            Some(stay) => _ = self.known.insert(key.to_owned(), stay),
            None => _ = self.known.remove(key),
        }
    }
}

/// An object in a stage.
#[derive(Clone)]
struct Stay {
    uid: String,
    stage: usize,
    since: Timestamp,
    /// How many actions of the stage are done: after an error the rest follows, and nothing is done twice.
    done: usize,
}

impl Followed {
    pub fn new(stages: Vec<Stage>, begun: Timestamp) -> Self {
        // The times of changes are whole seconds.
        let begun = Timestamp::from_second(begun.as_second()).unwrap_or(begun);
        Followed { stages, begun, ..Followed::default() }
    }

    fn stays(&self) -> MutexGuard<'_, Stays> {
        self.stays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets an object that is gone.
    pub fn release(&self, key: &str) {
        self.stays().set(key, None);
    }

    /// Starts over, as changes were missed: an object that still exists stays in its stage, with the time that it has
    /// already spent there.
    pub fn begin_anew(&self) {
        let mut stays = self.stays();
        stays.before = std::mem::take(&mut stays.known);
    }

    /// Lets an object stay in its stage, or go on from it; `None` if it is in none.
    pub async fn follow(
        &self,
        client: &Client,
        key: &str,
        object: &Value,
        context: &TemplateContext,
    ) -> Result<Option<Progress>, Status> {
        if self.stages.is_empty() {
            return Ok(None);
        }
        let now = context.now;
        let Some(stay) = self.stay(key, object, now) else { return Ok(None) };
        let stage = &self.stages[stay.stage];
        let spent = Duration::try_from(now.duration_since(stay.since)).unwrap_or_default();
        let left = stage.delay(object, now).checked_sub(spent).filter(|left| !left.is_zero());
        if let Some(left) = left.filter(|_| stay.done == 0) {
            return Ok(Some(Progress::After(left)));
        }
        match stage.actions(object, context) {
            Ok(actions) => self.carry_out(client, key, object, &stay, actions).await?,
            Err(why) => tracing::warn!(key, "{why}"),
        }
        // The change shows its next stage; if that is the same one, it starts again.
        self.release(key);
        Ok(Some(Progress::Done))
    }

    /// The stage that an object is in, and since when: its previous stage, as long as it may stay there. An object that
    /// was last changed before the server started entered the stage at that change.
    fn stay(&self, key: &str, object: &Value, now: Timestamp) -> Option<Stay> {
        let mut stays = self.stays();
        let uid = object.str_at(&["metadata", "uid"]);
        let known = stays.of(key, uid).filter(|stay| stages::may_stay(&self.stages, stay.stage, object)).cloned();
        let enter = |stage| {
            let since = last_change(object).filter(|changed| *changed < self.begun).unwrap_or(now);
            Stay { uid: uid.to_owned(), stage, since, done: 0 }
        };
        let stay = known.or_else(|| stages::stage_of(&self.stages, object).map(enter));
        stays.set(key, stay.clone());
        stay
    }

    /// Carries out the remaining actions of a stage, step by step, each on the result of the one before. Once the
    /// object is deleted, only events are left.
    async fn carry_out(
        &self,
        client: &Client,
        key: &str,
        object: &Value,
        stay: &Stay,
        actions: Vec<StageAction>,
    ) -> Result<(), Status> {
        let mut object = object.clone();
        let mut is_deleted = false;
        for (at, action) in actions.into_iter().enumerate().skip(stay.done) {
            match action {
                StageAction::Event(StageEvent { is_warning, reason, message }) => {
                    let type_ = if is_warning { "Warning" } else { "Normal" };
                    client.tell(&object, type_, reason, message);
                }
                _ if is_deleted => {}
                StageAction::Finalizers(change) => {
                    if let Some(names) = change.of(&object) {
                        let patch = json::encode(&finalizers::patch(&object, names));
                        object = client.patch(&object, Subresource::Main, (PatchType::Merge, patch)).await?;
                    }
                }
                StageAction::Patch(Subresource::Status, ..) if !client.has_status(&object).await? => {
                    self.warn(stay.stage, &object);
                }
                StageAction::Patch(part, type_, bytes) => object = client.patch(&object, part, (type_, bytes)).await?,
                StageAction::Delete => {
                    client.delete_at_once(&object).await?;
                    is_deleted = true;
                }
            }
            self.stays().note_done(key, at + 1);
        }
        Ok(())
    }

    /// Warns, once for a stage, that its status patches are skipped.
    fn warn(&self, stage: usize, object: &Value) {
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(stage) {
            let (stage, kind) = (self.stages[stage].name(), object.str_at(&["kind"]));
            tracing::warn!(stage, kind, "a stage patches the status, which its kind has not as a subresource");
        }
    }
}

/// When an object was last changed, according to its own managedFields and deletion time; `None` without those.
fn last_change(object: &Value) -> Option<Timestamp> {
    let managed = object.items_at(&["metadata", "managedFields"]).iter().filter_map(|entry| time_at(entry, &["time"]));
    Some(managed.max()?).into_iter().chain(deletion_since(object)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::client::Kind;
    use crate::controllers::recorder::Recorder;
    use crate::registry::fixture;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    /// The stage of all objects of a kind, and one of these.
    async fn first(kind: Kind, object: &str, steps: &str) -> (Client, Value, Followed) {
        let registry = fixture::registry().await;
        let client = Client::new(&registry, &Recorder::start(&registry), "kubelet");
        let object = client.create(kind, &read(object)).await.expect("it is made");
        let stage = format!(
            "{{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Stage, metadata: {{name: s}}, spec: {{resourceRef: {{kind: {}}}, selector: {{}}, \
             steps: [{steps}]}}}}",
            object.str_at(&["kind"])
        );
        let stage = Stage::read(&read(&stage)).expect("it is understood").expect("it is a stage");
        (client, object, Followed::new(vec![stage], Timestamp::UNIX_EPOCH))
    }

    #[tokio::test]
    async fn what_is_done_is_not_done_again_after_an_error() {
        const ACCOUNTS: Kind = Kind("", "serviceaccounts");
        let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: default}, imagePullSecrets: [{name: x}]}";
        let steps = "{patch: {type: json, template: '[{op: add, path: /imagePullSecrets/-, value: {name: z}}]'}}, \
                     {patch: {template: 'metadata: {labels: {l: not/a/label}}'}}";
        let (client, mut account, followed) = first(ACCOUNTS, account, steps).await;
        let context = TemplateContext { now: client.now(), addresses: None };
        for _ in 0..3 {
            let outcome = followed.follow(&client, "default/a", &account, &context).await;
            assert_eq!(outcome.expect_err("a label is refused").code, 422);
            account = client.get(ACCOUNTS, "default/a").await.expect("it is read").expect("it is there");
        }
        assert_eq!(account.items_at(&["imagePullSecrets"]), [read("{name: x}"), read("{name: z}")]);
    }

    #[tokio::test]
    async fn a_status_that_is_not_served_is_told_and_left_out() {
        const MAPS: Kind = Kind("", "configmaps");
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: default}}";
        let (client, map, followed) =
            first(MAPS, map, "{statusTemplate: 'phase: Done'}, {patch: {template: 'data: {k: v}'}}").await;
        let context = TemplateContext { now: client.now(), addresses: None };
        let outcome = followed.follow(&client, "default/m", &map, &context).await;
        assert_eq!(outcome.ok().flatten(), Some(Progress::Done));
        assert_eq!(followed.warned.lock().expect("nothing panicked").len(), 1);
        let map = client.get(MAPS, "default/m").await.expect("it is read").expect("it is there");
        assert_eq!(map.str_at(&["data", "k"]), "v");
    }

    #[test]
    fn what_changed_before_the_start_came_into_its_stage_then() {
        let stage = "{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Stage, metadata: {name: s}, spec: {resourceRef: {kind: Pod}, selector: {}}}";
        let stage = Stage::read(&read(stage)).expect("it is understood").expect("it is a stage");
        let time = |text: &str| format!("2026-01-01T00:00:{text}Z").parse().expect("a time");
        let since = |metadata: &str| {
            let followed = Followed::new(vec![stage.clone()], time("40"));
            followed.stay("d/p", &read(&format!("metadata: {{{metadata}}}")), time("50")).expect("it fits").since
        };
        let created = "creationTimestamp: '2026-01-01T00:00:10Z'";
        assert_eq!(since(created), time("50"), "nobody says when it was changed");
        let managed =
            format!("{created}, managedFields: [{{time: '2026-01-01T00:00:30Z'}}, {{time: '2026-01-01T00:00:20Z'}}]");
        assert_eq!(since(&managed), time("30"));
        // After the start, changes count from when they arrive.
        assert_eq!(since(&managed.replace(":20Z", ":45Z")), time("50"));
        let deleted = "deletionTimestamp: '2026-01-01T00:00:45Z', deletionGracePeriodSeconds: 12";
        assert_eq!(since(&format!("{managed}, {deleted}")), time("33"));
    }

    #[test]
    fn an_object_stays_in_its_stage_as_long_as_it_fits() {
        let stage = |name: &str, phase: &str| {
            let weight = usize::from(name == "heavy");
            let text = format!(
                "{{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Stage, metadata: {{name: {name}}}, spec: {{resourceRef: {{kind: Pod}}, \
                 weight: {weight}, selector: {{matchExpressions: [{{key: .status.phase, operator: In, values: [{phase}]}}]}}}}}}"
            );
            Stage::read(&read(&text)).expect("it is understood").expect("it is a stage")
        };
        let followed = Followed::new(
            vec![stage("a", "Pending"), stage("b", "Running, Bad"), stage("heavy", "Bad")],
            Timestamp::UNIX_EPOCH,
        );
        let stay = |phase: &str, second: i64| {
            let pod = crate::object! { "status" => crate::object! { "phase" => phase } };
            let stay = followed.stay("d/p", &pod, Timestamp::from_second(second).expect("a time"));
            stay.map(|stay| (stay.stage, stay.since.as_second()))
        };
        assert_eq!([stay("Pending", 1), stay("Pending", 2)], [Some((0, 1)), Some((0, 1))]);
        assert_eq!([stay("Running", 3), stay("Failed", 4), stay("Running", 5)], [Some((1, 3)), None, Some((1, 5))]);
        // What is of no weight is left for what has come to fit, too, and has some.
        assert_eq!(stay("Bad", 6), Some((2, 6)));
        // Changes were missed, but this object still exists.
        followed.begin_anew();
        assert_eq!(stay("Bad", 7), Some((2, 6)));
        // An object that was not seen in between is forgotten.
        followed.begin_anew();
        followed.begin_anew();
        assert_eq!(stay("Bad", 8), Some((2, 8)));
        let other = read("{metadata: {uid: other}, status: {phase: Bad}}");
        let stay = followed.stay("d/p", &other, Timestamp::from_second(9).expect("a time"));
        assert_eq!(stay.map(|stay| stay.since.as_second()), Some(9));
        followed.release("d/p");
        assert!(followed.stays().known.is_empty());
    }
}
