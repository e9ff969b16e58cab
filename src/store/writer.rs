//! Group commit: one task takes the waiting writes, commits them in one transaction, and makes them visible.

use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::backend::{BATCH_MAX, Store};
use super::batch::WriteOutcome;
use super::changes::Applied;
use super::health::Health;
use super::view::View;
use super::{Collection, Committed, Op, StoreError, Stored, Write, WriteError, log};

/// How many writes may wait; further ones are refused.
pub(super) const QUEUE_MAX: usize = 1_024;
/// How many KiB of objects may wait.
pub(super) const QUEUE_KIB_MAX: usize = 64 << 10;

/// Writes that are made together, and the caller that waits for them.
pub(super) struct WaitingWrites {
    /// One write, and those that are joined to it.
    pub writes: Vec<Write>,
    pub done: oneshot::Sender<Result<Committed, WriteError>>,
    /// Their share of the queue.
    pub _share: OwnedSemaphorePermit,
}

/// How many KiB of the queue some writes take.
pub(super) fn share_kib(writes: &[Write]) -> u32 {
    let bytes: usize = writes.iter().filter_map(Write::put).map(|put| put.object.bytes().len()).sum();
    u32::try_from((bytes >> 10).saturating_add(1).min(QUEUE_KIB_MAX)).unwrap_or(u32::MAX)
}

/// Commits until there are no more writers.
pub(super) async fn run(
    mut queue: mpsc::Receiver<WaitingWrites>,
    store: Arc<dyn Store>,
    view: Arc<View>,
    health: Arc<Health>,
) {
    // Memory for a batch is allocated with the first write: most control planes of a process have nothing to write.
    let mut received = Vec::new();
    while !received.is_empty() || queue.recv_many(&mut received, BATCH_MAX).await > 0 {
        let mut batch = take_batch(&mut received);
        match commit(&mut batch, &*store, &view).await {
            Err(full @ StoreError::DiskFull) if !batch.is_empty() && store.make_room().await => {
                // Only the deletions: they free space.
                let deleted = commit(&mut batch, &*store, &view).await;
                refuse(&mut batch, &deleted.err().unwrap_or_else(|| full.clone()));
                health.note(Some(&full));
            }
            committed => {
                health.note(match &committed {
                    Ok(refused) => *refused,
                    Err(error) => Some(error),
                });
                refuse(&mut batch, &committed.err().unwrap_or(StoreError::Closed));
            }
        }
        if received.is_empty() {
            gather(&queue).await;
        }
    }
}

/// The first waiting writes that fit into one transaction.
fn take_batch(received: &mut Vec<WaitingWrites>) -> Vec<WaitingWrites> {
    let mut writes = 0;
    let mut fits = |waiting: &WaitingWrites| {
        writes += waiting.writes.len();
        writes <= BATCH_MAX
    };
    let count = received.iter().take_while(|waiting| fits(waiting)).count();
    received.drain(..count).collect()
}

/// Lets callers that were answered run as long as that brings more writes: they share the next transaction.
async fn gather(queue: &mpsc::Receiver<WaitingWrites>) {
    let mut waiting = 0;
    while waiting < BATCH_MAX {
        tokio::task::yield_now().await;
        if queue.len() == waiting {
            return;
        }
        waiting = queue.len();
    }
}

/// Answers the waiting callers with the error.
fn refuse(batch: &mut Vec<WaitingWrites>, error: &StoreError) {
    for WaitingWrites { done, .. } in batch.drain(..) {
        // A caller that no longer waits has hung up.
        _ = done.send(Err(WriteError::Store(error.clone())));
    }
}

/// Commits a batch and answers it. Returns why some of its writes were refused, if the others were made.
///
/// Errors: none of it was written; if the disk is full, its deletions are left in `batch` to be tried again, and all
/// others are answered.
async fn commit(
    batch: &mut Vec<WaitingWrites>,
    store: &dyn Store,
    view: &View,
) -> Result<Option<&'static StoreError>, StoreError> {
    let mut writes = Vec::with_capacity(batch.len());
    let mut waiting = Vec::with_capacity(batch.len());
    for WaitingWrites { writes: together, done, _share } in batch.drain(..) {
        waiting.push((together.len(), done, _share));
        writes.extend(together);
    }
    let outcomes = match store.commit(&writes, view.foresee(&writes)).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::error!(%error, writes = writes.len(), "a batch of writes failed");
            // A commit may have failed after it was made. Then its changes are in the log.
            if let Err(error) = log::poll(view, store).await {
                tracing::error!(%error, "the log can't be read");
            }
            let mut writes = writes.into_iter();
            batch.extend(waiting.into_iter().map(|(count, done, _share)| WaitingWrites {
                writes: writes.by_ref().take(count).collect(),
                done,
                _share,
            }));
            if matches!(error, StoreError::DiskFull) {
                let adds = |waiting: &mut WaitingWrites| waiting.writes.iter().any(|write| write.put().is_some());
                let mut others: Vec<_> = batch.extract_if(.., adds).collect();
                refuse(&mut others, &error);
            }
            return Err(error);
        }
    };
    let applied = writes.into_iter().zip(&outcomes).filter_map(|(write, outcome)| apply(write, outcome)).collect();
    // Visible before it is acknowledged, so that clients can read their own writes. What this process committed need
    // not be read back from the log, unless another process has written in between.
    if !view.publish_next(applied)
        && let Err(error) = log::poll(view, store).await
    {
        tracing::error!(%error, "the log can't be read");
    }
    let refused = outcomes.contains(&WriteOutcome::NoSpace).then_some(&StoreError::NoSpace);
    let mut outcomes = outcomes.into_iter();
    for (count, done, _) in waiting {
        // Joined writes have the outcome of the first.
        let result = match outcomes.next() {
            Some(WriteOutcome::Committed { revision, .. }) => Ok(Committed { revision }),
            Some(WriteOutcome::GuardFailed) => Err(WriteError::GuardFailed),
            Some(WriteOutcome::NoSpace) => Err(WriteError::Store(StoreError::NoSpace)),
            None => Err(WriteError::Store(StoreError::Closed)),
        };
        (1..count).for_each(|_| _ = outcomes.next());
        _ = done.send(result);
    }
    Ok(refused)
}

/// The change that becomes visible, if a write was made.
fn apply(write: Write, outcome: &WriteOutcome) -> Option<(Collection, Applied)> {
    let WriteOutcome::Committed { revision, created, uid } = outcome else { return None };
    let (revision, uid) = (*revision, Arc::clone(uid));
    let stored = match write.op {
        Op::Put(put) => Some(Arc::new(Stored {
            key: Arc::clone(&write.key),
            revision,
            created: *created,
            uid: put.uid,
            stored_version: put.stored_version,
            schema_generation: put.schema_generation,
            splice: OnceLock::from(put.object.splice()),
            bytes: put.object.into_bytes(),
            expires_at_ms: put.expires_at_ms,
            served_under: put.served_under.into(),
            labels: OnceLock::new(),
            derived: Default::default(),
        })),
        Op::Delete => None,
    };
    Some((write.collection, Applied { key: write.key, uid, revision, stored }))
}
