//! The metrics of authorization, under the names that kube-apiserver uses.
//!
//! The names of authorizers come from flags and files, never from clients, so the number of label
//! values is bounded.
//! Source: `k8s.io/apiserver/pkg/endpoints/filters/metrics.go`, `pkg/authorization/{metrics,cel}`
//! and `plugin/pkg/authorizer/webhook/metrics`, release 1.36.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The type of a webhook authorizer.
pub const WEBHOOK: &str = "Webhook";
const WEBHOOK_SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const CONDITIONS_SECONDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// The metrics of the authorizers of a process, for all its control planes together.
pub struct Figures {
    attempts: Family<Attempted, Counter>,
    attempt_seconds: Family<Attempted, Histogram, fn() -> Histogram>,
    decisions: Family<Decided, Counter>,
    calls: Family<AuthorizerCall, Counter>,
    call_seconds: Family<AuthorizerCall, Histogram, fn() -> Histogram>,
    fail_opens: Family<AuthorizerCall, Counter>,
    conditions_errors: Family<AuthorizerLabel, Counter>,
    conditions_exclusions: Family<AuthorizerLabel, Counter>,
    conditions_seconds: Family<AuthorizerLabel, Histogram, fn() -> Histogram>,
}

/// The type and the name of an authorizer.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct AuthorizerLabel {
    /// Its mode, such as `RBAC`.
    pub r#type: &'static str,
    pub name: String,
}

impl AuthorizerLabel {
    /// The label of the webhook called `name`.
    pub fn webhook(name: &str) -> Self {
        AuthorizerLabel { r#type: WEBHOOK, name: name.to_owned() }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Attempted {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Decided {
    #[prometheus(flatten)]
    by: AuthorizerLabel,
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AuthorizerCall {
    name: String,
    result: &'static str,
}

impl Default for Figures {
    fn default() -> Self {
        let attempt_seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let call_seconds: fn() -> Histogram = || Histogram::new(WEBHOOK_SECONDS);
        let conditions_seconds: fn() -> Histogram = || Histogram::new(CONDITIONS_SECONDS);
        Figures {
            attempts: Family::default(),
            attempt_seconds: Family::new_with_constructor(attempt_seconds),
            decisions: Family::default(),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(call_seconds),
            fail_opens: Family::default(),
            conditions_errors: Family::default(),
            conditions_exclusions: Family::default(),
            conditions_seconds: Family::new_with_constructor(conditions_seconds),
        }
    }
}

impl Figures {
    /// Registers the metrics in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        const PREFIX: &str = "apiserver_authorization";
        registry.register("authorization_attempts", "Requests by what was decided of them", self.attempts.clone());
        let told = "How long it took to decide about requests";
        registry.register("authorization_duration_seconds", told, self.attempt_seconds.clone());
        let told = "Decisions by the authorizer that made them";
        registry.register(format!("{PREFIX}_decisions"), told, self.decisions.clone());
        let told = "Calls of authorization webhooks";
        registry.register(format!("{PREFIX}_webhook_evaluations"), told, self.calls.clone());
        registry.register(
            format!("{PREFIX}_webhook_duration_seconds"),
            "How long they took",
            self.call_seconds.clone(),
        );
        let told = "Failures of authorization webhooks that were passed over";
        registry.register(format!("{PREFIX}_webhook_evaluations_fail_open"), told, self.fail_opens.clone());
        let name = |figure: &str| format!("{PREFIX}_match_condition_{figure}");
        let told = "Match conditions that failed";
        registry.register(name("evaluation_errors"), told, self.conditions_errors.clone());
        let told = "Webhooks that were not asked for their match conditions";
        registry.register(name("exclusions"), told, self.conditions_exclusions.clone());
        let told = "How long match conditions took";
        registry.register(name("evaluation_seconds"), told, self.conditions_seconds.clone());
    }

    /// Counts a request by the result of its authorization: `allowed`, `denied`, `no-opinion` or
    /// `error`.
    pub fn attempted(&self, result: &'static str, took: Duration) {
        let attempted = Attempted { result };
        self.attempts.get_or_create(&attempted).inc();
        self.attempt_seconds.get_or_create(&attempted).observe(took.as_secs_f64());
    }

    /// Counts the decision of an authorizer: `allowed` or `denied`.
    pub fn decided(&self, by: &AuthorizerLabel, decision: &'static str) {
        self.decisions.get_or_create(&Decided { by: by.clone(), decision }).inc();
    }

    /// Counts a call to a webhook: `success`, `timeout` or `error`.
    pub fn called(&self, webhook: &AuthorizerLabel, result: &'static str, took: Duration) {
        let called = AuthorizerCall { name: webhook.name.clone(), result };
        self.calls.get_or_create(&called).inc();
        self.call_seconds.get_or_create(&called).observe(took.as_secs_f64());
    }

    /// Counts a failed webhook for which other authorizers decide; `result` is that of its last
    /// call.
    pub fn passed_over(&self, webhook: &AuthorizerLabel, result: &'static str) {
        self.fail_opens.get_or_create(&AuthorizerCall { name: webhook.name.clone(), result }).inc();
    }

    /// Counts an evaluation of match conditions.
    pub fn evaluated(&self, webhook: &AuthorizerLabel, conditions: Conditions, took: Duration) {
        self.conditions_seconds.get_or_create(webhook).observe(took.as_secs_f64());
        match conditions {
            Conditions::Hold => {}
            Conditions::Exclude => _ = self.conditions_exclusions.get_or_create(webhook).inc(),
            Conditions::Fail => _ = self.conditions_errors.get_or_create(webhook).inc(),
        }
    }
}

/// The outcome of match conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditions {
    /// All are true.
    Hold,
    /// One is false.
    Exclude,
    /// One failed, and none is false.
    Fail,
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn figures_have_the_names_and_labels_of_kube_apiserver() {
        let (figures, mut registry) = (Figures::default(), Registry::default());
        figures.register(&mut registry);
        let (took, webhook) = (Duration::from_millis(20), AuthorizerLabel::webhook("w"));
        figures.attempted("allowed", took);
        figures.decided(&AuthorizerLabel { r#type: "RBAC", name: "rbac".to_owned() }, "allowed");
        figures.called(&webhook, "timeout", took);
        figures.passed_over(&webhook, "timeout");
        for conditions in [Conditions::Hold, Conditions::Exclude, Conditions::Fail] {
            figures.evaluated(&webhook, conditions, took);
        }
        let mut text = String::new();
        encode(&mut text, &registry).expect("a text takes everything");
        let by = r#"type="Webhook",name="w""#;
        for line in [
            r#"authorization_attempts_total{result="allowed"} 1"#,
            r#"authorization_duration_seconds_bucket{le="0.032",result="allowed"} 1"#,
            r#"apiserver_authorization_decisions_total{type="RBAC",name="rbac",decision="allowed"} 1"#,
            r#"apiserver_authorization_webhook_evaluations_total{name="w",result="timeout"} 1"#,
            r#"apiserver_authorization_webhook_duration_seconds_bucket{le="0.025",name="w",result="timeout"} 1"#,
            r#"apiserver_authorization_webhook_evaluations_fail_open_total{name="w",result="timeout"} 1"#,
            &format!("apiserver_authorization_match_condition_evaluation_errors_total{{{by}}} 1"),
            &format!("apiserver_authorization_match_condition_exclusions_total{{{by}}} 1"),
            &format!("apiserver_authorization_match_condition_evaluation_seconds_count{{{by}}} 3"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
