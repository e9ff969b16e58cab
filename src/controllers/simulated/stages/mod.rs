//! Stages that files say: which one an object is in, how long it waits there, and what is done then.
//!
//! In: `Stage` objects of `kwok.x-k8s.io/v1alpha1`. Out: for an object the stage that it is in, and the steps of it. Of several
//! that an object fits, one is chosen by their weights, and an object always has the same choice in the same state.

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
