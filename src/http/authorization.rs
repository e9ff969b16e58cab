//! Whether the user of a request may do what it asks for: decided once, counted, and recorded in the audit log.

use std::time::Instant;

use crate::auth::{Attributes, Decision};

use super::app::App;
use super::exchange::Exchange;

/// Decides about a request.
pub(super) async fn decide(app: &App, exchange: &Exchange, attributes: &Attributes<'_>) -> Decision {
    let began = Instant::now();
    let decision = app.authorizer.authorize(&exchange.user, attributes).await;
    let took = began.elapsed();
    if let Some(figures) = app.authorizer.figures() {
        figures.attempted(decision.result(), took);
    }
    exchange.observe(|observed| {
        observed.decided(&decision);
        observed.took(|latencies| latencies.authorization = latencies.authorization.max(took));
    });
    decision
}
