//! Stages from files: which one an object is in, how long it stays there, and the actions at its end.
//!
//! Input: `Stage` objects of `kwok.x-k8s.io/v1alpha1`. Output: the stage of an object, and its steps. If an object fits
//! several, one is chosen by weight, and an object always has the same choice in the same state.

mod error;
mod kind;
mod requirement;
mod step;
mod stage;
mod read;

pub use self::error::StageError;
pub(super) use self::kind::StagedKind;
pub use self::stage::Stage;
pub(super) use self::stage::{may_stay, stage_of};
pub(super) use self::step::{StageAction, StageEvent};

#[cfg(test)]
mod tests;
