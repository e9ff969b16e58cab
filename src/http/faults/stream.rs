//! Applies faults to a watch while it is open.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::fault::{Effect, WatchEnd};
use super::matching::FaultSubject;
use super::{Active, Draw, Faults};

/// The faults that apply to an open watch.
pub struct WatchFaults {
    faults: Arc<Faults>,
    subject: FaultSubject,
    changed: watch::Receiver<()>,
    /// Set if faults may have been added since the last look.
    is_new: bool,
    /// Faults that turned out not to be for this watch.
    passed: BTreeSet<u64>,
    claim: Option<Claim>,
}

/// A fault that was chosen for a watch.
struct Claim {
    active: Arc<Active>,
    end: WatchEnd,
    events_left: u64,
    /// Takes effect no earlier than this.
    due: Instant,
    has_hit: bool,
}

/// The state of a watch with respect to faults.
pub enum WatchFault {
    /// Events may be sent; if an instant is given, only until then.
    Free(Option<Instant>),
    /// Nothing is sent until the set of faults changes.
    Stalled,
    /// The watch ends; reported once, with the fault's text for the log.
    Ends(WatchEnd, String),
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.has_hit {
            self.active.give_back();
        }
    }
}

impl WatchFaults {
    pub(super) fn new(faults: Arc<Faults>, subject: FaultSubject, changed: watch::Receiver<()>) -> Self {
        WatchFaults { faults, subject, changed, is_new: true, passed: BTreeSet::new(), claim: None }
    }

    /// The current state of the watch.
    pub fn look(&mut self) -> WatchFault {
        if std::mem::take(&mut self.is_new) || self.changed.has_changed().unwrap_or(false) {
            self.changed.mark_unchanged();
            self.find();
        }
        let Some(claim) = &mut self.claim else { return WatchFault::Free(None) };
        if claim.events_left > 0 {
            return WatchFault::Free(None);
        }
        if claim.due > Instant::now() {
            return WatchFault::Free(Some(claim.due));
        }
        if !std::mem::replace(&mut claim.has_hit, true) {
            claim.active.hit();
        }
        match claim.end {
            WatchEnd::Stalled => WatchFault::Stalled,
            end => WatchFault::Ends(end, claim.active.label()),
        }
    }

    /// Waits until the state of the watch may have changed. Cancel-safe.
    pub async fn changed(&mut self, until: Option<Instant>) {
        let changed = async {
            // The set of faults lives as long as this does.
            _ = self.changed.changed().await;
        };
        match until {
            Some(until) => tokio::select! {
                () = changed => {}
                () = sleep_until(until) => return,
            },
            None => changed.await,
        }
        self.is_new = true;
    }

    /// Records that an object was sent.
    pub fn sent(&mut self) {
        if let Some(claim) = &mut self.claim {
            claim.events_left = claim.events_left.saturating_sub(1);
        }
    }

    /// Looks for a fault for this watch, if it has none yet.
    fn find(&mut self) {
        if self.claim.as_ref().is_some_and(|claim| claim.active.is_deleted()) {
            self.claim = None;
        }
        if self.claim.is_some() {
            return;
        }
        let all = self.faults.list();
        // They are in the order of their ids.
        self.passed.retain(|id| all.binary_search_by_key(id, |active| active.id()).is_ok());
        for active in all {
            if self.passed.contains(&active.id()) || !active.fault().meets_watch(&self.subject) {
                continue;
            }
            let Some(Effect::Watch { end, after_events, after }) = active.fault().effect else { continue };
            match active.draw() {
                Draw::Exhausted => {}
                Draw::Passed => _ = self.passed.insert(active.id()),
                Draw::Taken => {
                    let (events_left, due) = (after_events, Instant::now() + after);
                    self.claim = Some(Claim { active, end, events_left, due, has_hit: false });
                    return;
                }
            }
        }
    }
}
