//! The memory for what a controller has decoded while it reconciles a key: a template with hundreds of thousands of
//! values takes ten times as much decoded as stored, and each of its pods has a copy of it.
//!
//! Input: the objects, before they are decoded or while they are kept. Output: an error if there is no memory for them
//! now: the key is tried again after a pause. Only what holds nothing waits, and not for long. What is decoded and
//! dropped without waiting for anything is not counted: there is one of it for each thread.
//!
//! The account is task-local instead of an argument: it would pass through everything that reads an object, and none of
//! that decides anything by it. A task without one is not limited.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::memory::{Full, Memory, Reservation, decoded_bytes};
use crate::meta::Status;
use crate::value::Value;

/// How many bytes of decoded objects a key may have that are not counted.
const FREE_BYTES: usize = 64 << 10;
/// How long a key that holds nothing waits for memory.
const WAIT: Duration = Duration::from_millis(250);
/// What a value takes that is not in a text, in bytes, and the name of a field beside its text.
const VALUE_BYTES: usize = size_of::<Value>();
const NAME_BYTES: usize = 24;

tokio::task_local! {
    static ACCOUNT: Arc<Account>;
}

/// What was decoded for one key.
struct Account {
    memory: Arc<Memory>,
    namespace: Box<str>,
    decoded: Mutex<DecodedObjects>,
}

#[derive(Default)]
struct DecodedObjects {
    /// The largest one that was decoded alone.
    largest_bytes: usize,
    /// Those that are kept together.
    kept_bytes: usize,
    /// For how many bytes there is memory.
    granted_bytes: usize,
    reserved: Vec<Reservation>,
}

/// Counts what is decoded to reconcile a key of a namespace, which is empty in cluster scope.
pub(super) fn counted<F: Future>(
    memory: &Arc<Memory>,
    namespace: &str,
    reconciled: F,
) -> impl Future<Output = F::Output> {
    let account = Account { memory: Arc::clone(memory), namespace: namespace.into(), decoded: Mutex::default() };
    ACCOUNT.scope(Arc::new(account), reconciled)
}

/// Before an object is decoded that is kept until the next one is.
///
/// # Errors
///
/// 429 if there is no memory for it beside those that are kept.
pub(super) async fn begin(text: &[u8]) -> Result<(), Status> {
    let Ok(account) = ACCOUNT.try_with(Arc::clone) else { return Ok(()) };
    let bytes = decoded_bytes(text);
    account.change(|decoded| decoded.largest_bytes = decoded.largest_bytes.max(bytes)).await
}

/// While an object is kept beside others.
///
/// # Errors
///
/// As of [`begin`].
pub(super) async fn keep(object: &Value) -> Result<(), Status> {
    let Ok(account) = ACCOUNT.try_with(Arc::clone) else { return Ok(()) };
    let bytes = bytes_of(object);
    let kept = account.change(|decoded| decoded.kept_bytes += bytes).await;
    if kept.is_err() {
        account.decoded().kept_bytes -= bytes;
    }
    kept
}

/// Once an object that was kept is dropped.
pub(super) fn drop_kept(object: &Value) {
    if let Ok(account) = ACCOUNT.try_with(Arc::clone) {
        let mut decoded = account.decoded();
        decoded.kept_bytes = decoded.kept_bytes.saturating_sub(bytes_of(object));
    }
}

impl Account {
    fn decoded(&self) -> MutexGuard<'_, DecodedObjects> {
        self.decoded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts something, and reserves what is missing then.
    async fn change(&self, count: impl FnOnce(&mut DecodedObjects)) -> Result<(), Status> {
        let missing_bytes = {
            let mut decoded = self.decoded();
            count(&mut decoded);
            let missing_bytes = decoded.missing_bytes();
            if missing_bytes == 0 {
                return Ok(());
            }
            if let Some(first) = decoded.reserved.first() {
                let reserved = first.more(missing_bytes).map_err(no_memory)?;
                decoded.take_in(missing_bytes, reserved);
                return Ok(());
            }
            missing_bytes
        };
        // What holds nothing may wait, in line with other namespaces.
        let reserved = self.memory.for_reconciled(&self.namespace, missing_bytes, WAIT).await.map_err(no_memory)?;
        self.decoded().take_in(missing_bytes, reserved);
        Ok(())
    }
}

impl DecodedObjects {
    /// How much more is to be reserved: 0, or some more than what is missing.
    fn missing_bytes(&self) -> usize {
        let wanted_bytes = (self.largest_bytes + self.kept_bytes).saturating_sub(FREE_BYTES);
        match wanted_bytes.saturating_sub(self.granted_bytes) {
            0 => 0,
            missing_bytes => missing_bytes.max(FREE_BYTES),
        }
    }

    /// Takes what was reserved for so many bytes. If it is less, then it is all that a namespace may have, and nothing
    /// else of the namespace is decoded: as much again may be kept.
    fn take_in(&mut self, bytes: usize, reserved: Reservation) {
        let is_all = reserved.bytes() < bytes;
        self.granted_bytes += bytes + if is_all { reserved.bytes() } else { 0 };
        self.reserved.push(reserved);
    }
}

fn no_memory(full: Full) -> Status {
    let mut status = Status::from(full);
    "there is no memory for all objects that it depends on".clone_into(&mut status.message);
    status
}

/// How many bytes a value takes, about.
pub(super) fn bytes_of(object: &Value) -> usize {
    let (mut bytes, mut left) = (0, vec![object]);
    while let Some(value) = left.pop() {
        bytes += VALUE_BYTES;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => {
                bytes += fields.iter().map(|(name, _)| NAME_BYTES + name.len()).sum::<usize>();
                left.extend(fields.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::value::json;

    /// Half of its quarter is for one namespace.
    const LIMIT_BYTES: usize = 64 << 20;

    fn list_of(count: usize) -> Value {
        Value::Array(vec![Value::Null; count])
    }

    #[tokio::test]
    async fn what_is_decoded_one_after_the_other_counts_once_and_what_is_kept_each_time() {
        let memory = Arc::new(Memory::new(LIMIT_BYTES));
        let (text, list) = (json::encode(&list_of(20_000)), list_of(20_000));
        let reconciled = counted(&memory, "a", async {
            for _ in 0..1_000 {
                begin(&text).await.expect("there is memory for one");
            }
            let mut kept = 0;
            while keep(&list).await.is_ok() {
                kept += 1;
            }
            drop_kept(&list);
            assert_eq!(keep(&list).await, Ok(()), "one was dropped");
            kept
        });
        let kept_bytes = reconciled.await * bytes_of(&list);
        assert!((LIMIT_BYTES / 16..LIMIT_BYTES / 8).contains(&kept_bytes), "{kept_bytes}");
        let all = memory.for_reconciled("a", LIMIT_BYTES, WAIT).await;
        assert!(all.is_ok_and(|all| all.bytes() == LIMIT_BYTES / 8), "it is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_that_is_larger_than_the_share_is_decoded_alone() {
        let memory = Arc::new(Memory::new(LIMIT_BYTES));
        let text = json::encode(&list_of(1_000_000));
        let other = counted(&memory, "a", begin(&text));
        let reconciled = counted(&memory, "a", async {
            assert_eq!(begin(&text).await, Ok(()));
            assert_eq!(other.await.map_err(|status| status.code), Err(429), "of the same namespace");
            assert_eq!(counted(&memory, "b", keep(&list_of(50_000))).await, Ok(()));
            assert_eq!(keep(&list_of(100_000)).await, Ok(()));
            keep(&list_of(1_000_000)).await
        });
        assert_eq!(reconciled.await.map_err(|status| status.code), Err(429));
        assert_eq!(begin(&text).await, Ok(()), "nobody counts");
    }

    #[tokio::test]
    async fn who_holds_nothing_waits() {
        let memory = Arc::new(Memory::new(LIMIT_BYTES));
        let text = json::encode(&list_of(1_000_000));
        let list = list_of(50_000);
        let held = memory.for_reconciled("a", LIMIT_BYTES, WAIT).await;
        let mut waiting = [
            Box::pin(counted(&memory, "a", begin(&text))) as BoxFuture<'_, Result<(), Status>>,
            Box::pin(counted(&memory, "a", keep(&list))),
        ];
        assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
        drop(held);
        for waiting in waiting {
            assert_eq!(waiting.await, Ok(()));
        }
    }
}
