//! What the reader of stdin passes to the worker.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lsp_server::{Message, Notification, RequestId};

use super::super::cluster::ClusterError;
use crate::value::Value;

/// How many ids of cancelled requests are remembered.
const CANCELLED_MAX: usize = 1024;

/// An incoming event.
pub enum Incoming {
    Message(Message),
    /// The answer to input that is not a message.
    Malformed(serde_json::Value),
    /// The definitions of a live server, or why they can't be read.
    Definitions(Result<Vec<Value>, ClusterError>),
    End,
}

/// The state that the reader and the worker share.
#[derive(Default)]
pub struct SharedState {
    /// How many messages have arrived.
    come: AtomicU64,
    cancelled: Mutex<VecDeque<RequestId>>,
}

impl SharedState {
    /// Records an incoming message.
    pub fn note(&self, incoming: &Incoming) {
        if let Incoming::Message(Message::Notification(Notification { method, params })) = incoming
            && method == "$/cancelRequest"
        {
            let id = params.get("id").cloned().and_then(|id| serde_json::from_value(id).ok());
            let mut cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
            cancelled.extend(id);
            if cancelled.len() > CANCELLED_MAX {
                cancelled.pop_front();
            }
        }
        self.come.fetch_add(1, Ordering::Release);
    }

    /// Whether a request was cancelled.
    pub fn is_cancelled(&self, id: &RequestId) -> bool {
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }

    /// Whether more messages have arrived than `taken`.
    pub fn has_come_after(&self, taken: u64) -> bool {
        self.come.load(Ordering::Acquire) > taken
    }
}
