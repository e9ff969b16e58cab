//! What time it is for a control plane.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{ControlPlane, Error};

const PATH: &str = "/skiff/v1/clock";

/// The clock of one control plane: for creation times, tokens, events and leases. Nobody has to sleep.
///
/// Each of its functions fails where the server does not answer, or can't show the time.
#[derive(Clone, Debug)]
pub struct Clock(ControlPlane);

impl ControlPlane {
    /// What time it is for this control plane alone.
    pub fn clock(&self) -> Clock {
        Clock(self.clone())
    }
}

impl Clock {
    /// The time that it shows, in RFC 3339.
    pub async fn now(&self) -> Result<String, Error> {
        Ok(self.0.send("GET", PATH, None).await?["time"].as_str().unwrap_or_default().to_owned())
    }

    /// Has it show a time, in RFC 3339, and go on from there.
    pub async fn set(&self, time: &str) -> Result<(), Error> {
        self.put(json!({ "time": time })).await
    }

    /// Moves it on.
    pub async fn advance(&self, by: Duration) -> Result<(), Error> {
        self.put(json!({ "advance": format!("{}us", by.as_micros()) })).await
    }

    /// Has it stand still, until [`Clock::run`].
    pub async fn freeze(&self) -> Result<(), Error> {
        self.put(json!({ "frozen": true })).await
    }

    /// Has it go on from what it shows.
    pub async fn run(&self) -> Result<(), Error> {
        self.put(json!({ "frozen": false })).await
    }

    /// Makes it that of the machine.
    pub async fn reset(&self) -> Result<(), Error> {
        self.put(json!({})).await
    }

    async fn put(&self, fields: Value) -> Result<(), Error> {
        self.0.send("PUT", PATH, Some(fields)).await.map(drop)
    }
}
