//! A stage, and which of several an object is in.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;

use super::error::{StageError, StageFault};
use super::kind::StagedKind;
use super::requirement::Requirement;
use super::step::{StageAction, StageStep};
use crate::controllers::simulated::query::Query;
use crate::controllers::simulated::template::TemplateContext;
use crate::meta::duration;
use crate::value::Value;

/// A stage of the objects of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub(super) name: String,
    pub(crate) of: StagedKind,
    /// The requirements for objects; `None` for a stage that no object fits.
    pub(super) selector: Option<Vec<Requirement>>,
    pub(super) weight: u64,
    pub(super) weight_from: Option<Query>,
    pub(super) delay: StageDelay,
    /// Up to how long it may be, where objects differ.
    pub(super) jitter: Option<StageDelay>,
    pub(super) steps: Vec<StageStep>,
}

/// How long a stage lasts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StageDelay {
    pub fixed: Duration,
    pub from: Option<Query>,
}

impl Stage {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether an object may be in it.
    pub(crate) fn fits(&self, object: &Value) -> bool {
        self.selector.as_ref().is_some_and(|all| all.iter().all(|one| one.holds(object)))
    }

    fn weight(&self, object: &Value) -> u64 {
        let said = self.weight_from.as_ref().and_then(|from| from.texts(object).first()?.parse().ok());
        said.unwrap_or(self.weight)
    }

    /// How long an object stays.
    pub(crate) fn delay(&self, object: &Value, now: Timestamp) -> Duration {
        let delay = self.delay.of(object, now);
        let Some(most) = self.jitter.as_ref().map(|jitter| jitter.of(object, now)) else { return delay };
        match most.checked_sub(delay).and_then(|span| u64::try_from(span.as_millis()).ok()) {
            // Less than the delay is the delay.
            None => most,
            Some(0) => delay,
            Some(span) => delay + Duration::from_millis(pseudo_random(object, &self.name) % span),
        }
    }

    /// The actions for an object at the end of its stay.
    pub(crate) fn actions(&self, object: &Value, context: &TemplateContext) -> Result<Vec<StageAction>, StageError> {
        let told = |fault: StageFault| StageError { stage: self.name.clone(), fault };
        self.steps.iter().map(|step| step.action(object, context).map_err(told)).collect()
    }
}

/// Whether an object that is in a stage may stay in it: as long as it fits, unless other stages that fit now outweigh
/// it.
pub(crate) fn may_stay(stages: &[Stage], at: usize, object: &Value) -> bool {
    let outweighs = |stage: &Stage| stage.fits(object) && stage.weight(object) > 0;
    stages[at].fits(object) && (stages[at].weight(object) > 0 || !stages.iter().any(outweighs))
}

/// Which of the stages an object is in.
pub(crate) fn stage_of(stages: &[Stage], object: &Value) -> Option<usize> {
    let fitting: Vec<(usize, u64)> = stages
        .iter()
        .enumerate()
        .filter(|(_, stage)| stage.fits(object))
        .map(|(at, stage)| (at, stage.weight(object)))
        .collect();
    let sum = fitting.iter().fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
    if sum == 0 {
        return fitting.first().map(|(at, _)| *at);
    }
    let mut left = pseudo_random(object, "") % sum;
    let chosen = fitting.iter().find(|(_, weight)| match left.checked_sub(*weight) {
        None => true,
        Some(rest) => {
            left = rest;
            false
        }
    });
    chosen.map(|(at, _)| *at)
}

/// A number that depends only on the object's current state.
fn pseudo_random(object: &Value, salt: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let field = |name: &str| object.str_at(&["metadata", name]).to_owned();
    (field("uid"), field("resourceVersion"), salt).hash(&mut hasher);
    hasher.finish()
}

impl StageDelay {
    /// What the object says, as a Go duration or a time that it lasts until; else what the stage says.
    fn of(&self, object: &Value, now: Timestamp) -> Duration {
        let said = self.from.as_ref().and_then(|from| from.texts(object).into_iter().next());
        let read = |text: &str| {
            let until = |time: Timestamp| i64::try_from(time.duration_since(now).as_nanos()).unwrap_or(i64::MAX);
            let nanos = text.parse().map(until).ok().or_else(|| duration::parse_go(text).ok())?;
            Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or_default()))
        };
        said.and_then(|text| read(&text)).unwrap_or(self.fixed)
    }
}
