//! How a long answer learns that the server is about to stop.

use tokio::sync::watch;

/// Every request carries one among its extensions; a watch ends its stream when [`Stopping::stopped`] returns.
#[derive(Clone, Debug)]
pub struct Stopping(watch::Receiver<bool>);

/// The other end: notifies every [`Stopping`] once.
#[derive(Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// A server that is not stopping yet.
    pub fn new() -> (Self, Stopping) {
        let (sender, receiver) = watch::channel(false);
        (Stop(sender), Stopping(receiver))
    }

    /// Ends the watches. Later calls change nothing.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stopping {
    /// Waits until the server stops; also returns when its [`Stop`] is gone.
    pub async fn stopped(&mut self) {
        // An error means that the sender is gone, and the server with it.
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }

    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everyone_learns_of_the_stop() {
        let (stop, stopping) = Stop::new();
        let mut other = stopping.clone();
        assert!(!stopping.is_stopping());
        stop.stop();
        other.stopped().await;
        assert!(stopping.is_stopping());
    }
}
