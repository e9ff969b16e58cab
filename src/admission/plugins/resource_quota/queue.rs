//! A queue that processes items by namespace: the items that arrive while a namespace is being
//! served wait, and are then served together.
//!
//! Input: an item and its namespace. Output: the answer to it. Namespaces do not wait for each other. If
//! the caller goes away, work that has begun is completed all the same.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::processor::background;

/// An item, and the channel for its answer.
pub struct Waiting<T, A> {
    pub item: T,
    answer: oneshot::Sender<A>,
}

impl<T, A> Waiting<T, A> {
    pub fn answer(self, answer: A) {
        // The caller may be gone.
        _ = self.answer.send(answer);
    }
}

/// Serves waiting items.
#[async_trait]
pub trait Serve<T, A>: Send + Sync + 'static {
    /// Answers all waiting items of a namespace, in the order of their arrival.
    async fn serve(&self, namespace: &str, waiting: Vec<Waiting<T, A>>);
}

/// The waiting items by namespace. A namespace has an entry as long as a task serves it.
pub struct Queue<T, A>(Mutex<HashMap<String, Vec<Waiting<T, A>>>>);

impl<T, A> Default for Queue<T, A> {
    fn default() -> Self {
        Queue(Mutex::default())
    }
}

impl<T: Send + 'static, A: Send + 'static> Queue<T, A> {
    /// The answer of `server` to `item`; `None` if the work panicked or was aborted.
    pub async fn ask<S: Serve<T, A>>(self: &Arc<Self>, server: &Arc<S>, namespace: &str, item: T) -> Option<A> {
        let (answer, answered) = oneshot::channel();
        if self.add(namespace, Waiting { item, answer }) {
            let served = Served { queue: Arc::clone(self), namespace: namespace.to_owned(), is_left: false };
            tokio::spawn(background(served.run(Arc::clone(server))));
        }
        answered.await.ok()
    }

    /// Adds an item; returns whether it is the first one, whose caller must start a task for the
    /// namespace.
    fn add(&self, namespace: &str, waiting: Waiting<T, A>) -> bool {
        let mut queue = self.lock();
        if let Some(others) = queue.get_mut(namespace) {
            others.push(waiting);
            return false;
        }
        queue.insert(namespace.to_owned(), vec![waiting]);
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Vec<Waiting<T, A>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A namespace that is being served.
struct Served<T, A> {
    queue: Arc<Queue<T, A>>,
    namespace: String,
    /// Whether its entry is already removed.
    is_left: bool,
}

impl<T: Send + 'static, A: Send + 'static> Served<T, A> {
    async fn run<S: Serve<T, A>>(mut self, server: Arc<S>) {
        while let Some(waiting) = self.next() {
            server.serve(&self.namespace, waiting).await;
        }
    }

    /// All items that wait now; if there are none, the namespace's entry is removed.
    fn next(&mut self) -> Option<Vec<Waiting<T, A>>> {
        let mut queue = self.queue.lock();
        let waiting = queue.get_mut(&self.namespace).map(mem::take).filter(|waiting| !waiting.is_empty());
        if waiting.is_none() {
            queue.remove(&self.namespace);
            self.is_left = true;
        }
        waiting
    }
}

impl<T, A> Drop for Served<T, A> {
    /// If the work was aborted, removes the entry: the waiting callers get no answer, and the next
    /// one starts a new task.
    fn drop(&mut self) {
        if !self.is_left {
            self.queue.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// Answers with the number of items that were served together, once the semaphore has a permit.
    struct Together(Semaphore);

    #[async_trait]
    impl Serve<u32, usize> for Together {
        async fn serve(&self, _: &str, waiting: Vec<Waiting<u32, usize>>) {
            self.0.acquire().await.expect("it is not closed").forget();
            let many = waiting.len();
            for waiting in waiting {
                assert_ne!(waiting.item, 0, "the work breaks off");
                waiting.answer(many);
            }
        }
    }

    #[tokio::test]
    async fn what_comes_while_a_namespace_is_served_is_served_together() {
        let (queue, server) = (Arc::new(Queue::default()), Arc::new(Together(Semaphore::new(0))));
        let first = queue.ask(&server, "n", 1);
        let others = async {
            tokio::task::yield_now().await;
            let others = async { tokio::join!(queue.ask(&server, "n", 2), queue.ask(&server, "n", 3)) };
            let open = async { server.0.add_permits(2) };
            tokio::join!(others, open).0
        };
        assert_eq!(tokio::join!(first, others), (Some(1), (Some(2), Some(2))));
        assert!(queue.lock().is_empty());
    }

    #[tokio::test]
    async fn work_that_breaks_off_is_told_and_does_not_block_what_comes_later() {
        let (queue, server) = (Arc::new(Queue::default()), Arc::new(Together(Semaphore::new(2))));
        assert_eq!(queue.ask(&server, "n", 0).await, None);
        assert_eq!(queue.ask(&server, "n", 1).await, Some(1));
    }
}
