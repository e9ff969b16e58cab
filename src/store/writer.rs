//! Group commit: one task takes what is waiting, commits it in one transaction, and makes it visible.

use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::health::Health;
use super::sql::{BATCH_MAX, Outcome, Store};
use super::view::{Applied, View};
use super::{Committed, Op, StoreError, Stored, Write, WriteError, log};

/// How many writes may wait; one more is refused.
pub(super) const QUEUE_MAX: usize = 1_024;
/// How many KiB of objects may wait.
pub(super) const QUEUE_KIB_MAX: usize = 64 << 10;

/// A write and who waits for it.
pub(super) struct Waiting {
    pub write: Write,
    pub done: oneshot::Sender<Result<Committed, WriteError>>,
    /// The write's share of the queue.
    pub _share: OwnedSemaphorePermit,
}

/// How many KiB of the queue a write takes.
pub(super) fn share_kib(write: &Write) -> u32 {
    let bytes = match &write.op {
        Op::Put(put) => put.bytes.len(),
        Op::Delete => 0,
    };
    u32::try_from((bytes >> 10).saturating_add(1).min(QUEUE_KIB_MAX)).unwrap_or(u32::MAX)
}

/// Commits until nobody can write any more.
pub(super) async fn run(
    mut queue: mpsc::Receiver<Waiting>,
    store: Arc<dyn Store>,
    view: Arc<View>,
    health: Arc<Health>,
) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while queue.recv_many(&mut batch, BATCH_MAX).await > 0 {
        match commit(&mut batch, &*store, &view).await {
            Err(StoreError::DiskFull) if !batch.is_empty() && store.make_room().await => {
                // Deletions alone: they make room.
                let deleted = commit(&mut batch, &*store, &view).await;
                refuse(&mut batch, &deleted.err().unwrap_or(StoreError::DiskFull));
                health.note(Some(&StoreError::DiskFull));
            }
            committed => {
                health.note(committed.as_ref().err());
                refuse(&mut batch, &committed.err().unwrap_or(StoreError::Closed));
            }
        }
        gather(&queue).await;
    }
}

/// Lets those who were answered have their turn for as long as more writes come of it: they share the next transaction.
async fn gather(queue: &mpsc::Receiver<Waiting>) {
    let mut waiting = 0;
    while waiting < BATCH_MAX {
        tokio::task::yield_now().await;
        if queue.len() == waiting {
            return;
        }
        waiting = queue.len();
    }
}

/// Answers those who wait with what failed.
fn refuse(batch: &mut Vec<Waiting>, error: &StoreError) {
    for Waiting { done, .. } in batch.drain(..) {
        // Who no longer waits has hung up.
        _ = done.send(Err(WriteError::Store(error.clone())));
    }
}

/// Commits a batch and answers it. Errors: nothing of it is made; where the disk is full its deletions are left to be tried
/// again, and all others are answered.
async fn commit(batch: &mut Vec<Waiting>, store: &dyn Store, view: &View) -> Result<(), StoreError> {
    let mut writes = Vec::with_capacity(batch.len());
    let mut waiting = Vec::with_capacity(batch.len());
    for Waiting { write, done, _share } in batch.drain(..) {
        writes.push(write);
        waiting.push((done, _share));
    }
    let outcomes = match store.commit(&writes, view.foresee(&writes)).await {
        Ok(outcomes) => outcomes,
        Err(error) => {
            tracing::error!(%error, writes = writes.len(), "a batch of writes failed");
            // A commit may have failed after it was made. Then its changes are in the log.
            if let Err(error) = log::poll(view, store).await {
                tracing::error!(%error, "the log can't be read");
            }
            batch.extend(writes.into_iter().zip(waiting).map(|(write, (done, _share))| Waiting {
                write,
                done,
                _share,
            }));
            if matches!(error, StoreError::DiskFull) {
                let mut others: Vec<_> =
                    batch.extract_if(.., |waiting| !matches!(waiting.write.op, Op::Delete)).collect();
                refuse(&mut others, &error);
            }
            return Err(error);
        }
    };
    let mut applied = Vec::with_capacity(writes.len());
    for (write, outcome) in writes.into_iter().zip(&outcomes) {
        if let Outcome::Committed { revision, created, uid } = outcome {
            let (revision, uid) = (*revision, Arc::clone(uid));
            let stored = match write.op {
                Op::Put(put) => Some(Arc::new(Stored {
                    key: Arc::clone(&write.key),
                    revision,
                    created: *created,
                    uid: put.uid,
                    stored_version: put.stored_version,
                    schema_generation: put.schema_generation,
                    bytes: put.bytes,
                    expires_at_ms: put.expires_at_ms,
                    labels: OnceLock::new(),
                    derived: Default::default(),
                })),
                Op::Delete => None,
            };
            applied.push((write.collection, Applied { key: write.key, uid, revision, stored }));
        }
    }
    // Visible before it is acknowledged: who wrote reads what they wrote. What this process committed need not be read
    // back from the log, unless another process has written in between.
    if !view.publish_next(applied)
        && let Err(error) = log::poll(view, store).await
    {
        tracing::error!(%error, "the log can't be read");
    }
    for ((done, _), outcome) in waiting.into_iter().zip(outcomes) {
        let result = match outcome {
            Outcome::Committed { revision, .. } => Ok(Committed { revision }),
            Outcome::GuardFailed => Err(WriteError::GuardFailed),
        };
        _ = done.send(result);
    }
    Ok(())
}
