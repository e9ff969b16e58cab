//! What admission does, in figures, under the names that Kubernetes gives them.
//!
//! Labels are names of stored policies and webhooks: what is counted under more names than `NAMES_MAX` is not counted, so
//! that nobody makes figures without end.
//!
//! Source: `k8s.io/apiserver/pkg/admission/metrics` and `plugin/policy/{validating,mutating}/metrics`, release 1.37.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Operation;

/// How many policies and webhooks are told apart.
const NAMES_MAX: usize = 2_000;
const POLICY_SECONDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const WEBHOOK_SECONDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// The figures of admission.
pub struct Figures {
    names: Mutex<HashSet<String>>,
    checks: Family<Check, Counter>,
    check_seconds: Family<Check, Histogram, fn() -> Histogram>,
    mutations: Family<Mutation, Counter>,
    mutation_seconds: Family<Mutation, Histogram, fn() -> Histogram>,
    webhook_seconds: Family<Called, Histogram, fn() -> Histogram>,
    webhook_requests: Family<Answered, Counter>,
    webhook_rejections: Family<Rejected, Counter>,
    webhook_fail_opens: Family<FailedOpen, Counter>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Check {
    policy: String,
    policy_binding: String,
    error_type: &'static str,
    enforcement_action: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Mutation {
    policy: String,
    policy_binding: String,
    error_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Called {
    name: String,
    #[prometheus(flatten)]
    step: Step,
    rejected: &'static str,
}

/// Which round of admission.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Step {
    r#type: &'static str,
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    name: String,
    #[prometheus(flatten)]
    step: Step,
    code: u16,
    rejected: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Rejected {
    name: String,
    #[prometheus(flatten)]
    step: Step,
    error_type: &'static str,
    rejection_code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FailedOpen {
    name: String,
    r#type: &'static str,
}

/// What came of a webhook that was called.
#[derive(Clone, Copy, Debug)]
pub struct WebhookCall<'c> {
    pub name: &'c str,
    /// `admit` or `validating`.
    pub step: &'static str,
    pub operation: Operation,
    pub took: Duration,
    /// Of the webhook's refusal, or of the failure; 200 for what it let pass.
    pub code: u16,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Allowed,
    Refused,
    /// The call failed, and so did the request.
    Failed,
    /// The call failed, and the request went on.
    PassedOver,
}

impl Default for Figures {
    fn default() -> Self {
        let policy_seconds: fn() -> Histogram = || Histogram::new(POLICY_SECONDS);
        let webhook_seconds: fn() -> Histogram = || Histogram::new(WEBHOOK_SECONDS);
        Figures {
            names: Mutex::default(),
            checks: Family::default(),
            check_seconds: Family::new_with_constructor(policy_seconds),
            mutations: Family::default(),
            mutation_seconds: Family::new_with_constructor(policy_seconds),
            webhook_seconds: Family::new_with_constructor(webhook_seconds),
            webhook_requests: Family::default(),
            webhook_rejections: Family::default(),
            webhook_fail_opens: Family::default(),
        }
    }
}

impl Figures {
    /// Shows the figures among those of `registry`.
    pub fn register(&self, registry: &mut Registry) {
        const POLICY: &str = "apiserver_validating_admission_policy";
        const WEBHOOK: &str = "apiserver_admission_webhook";
        let told = "Validations of policies that did not simply pass";
        registry.register(format!("{POLICY}_check"), told, self.checks.clone());
        registry.register(format!("{POLICY}_check_duration_seconds"), "How long they took", self.check_seconds.clone());
        const MUTATING: &str = "apiserver_mutating_admission_policy";
        registry.register(format!("{MUTATING}_check"), "Mutations of policies", self.mutations.clone());
        let name = format!("{MUTATING}_check_duration_seconds");
        registry.register(name, "How long mutations took", self.mutation_seconds.clone());
        let name = format!("{WEBHOOK}_admission_duration_seconds");
        registry.register(name, "How long calls of webhooks took", self.webhook_seconds.clone());
        registry.register(format!("{WEBHOOK}_request"), "Calls of webhooks", self.webhook_requests.clone());
        let told = "Requests that webhooks or their failures refused";
        registry.register(format!("{WEBHOOK}_rejection_count"), told, self.webhook_rejections.clone());
        let told = "Failures of webhooks that were passed over";
        registry.register(format!("{WEBHOOK}_fail_open_count"), told, self.webhook_fail_opens.clone());
    }

    /// Counts what one validation came to: `allow`, `deny`, `audit` or `warn`, for the reason that `message` tells.
    pub fn checked(&self, policy: &str, binding: &str, action: &'static str, message: &str, took: Duration) {
        if !self.is_counted(policy) || !self.is_counted(binding) {
            return;
        }
        let check = Check {
            policy: policy.to_owned(),
            policy_binding: binding.to_owned(),
            error_type: error_type(message),
            enforcement_action: action,
        };
        self.check_seconds.get_or_create(&check).observe(took.as_secs_f64());
        self.checks.get_or_create(&check).inc();
    }

    /// Counts one mutation, and what went wrong with it.
    pub fn mutated(&self, policy: &str, binding: &str, failure: Option<&str>, took: Duration) {
        if !self.is_counted(policy) || !self.is_counted(binding) {
            return;
        }
        let mutation = Mutation {
            policy: policy.to_owned(),
            policy_binding: binding.to_owned(),
            error_type: failure.map_or("no_error", error_type),
        };
        self.mutation_seconds.get_or_create(&mutation).observe(took.as_secs_f64());
        self.mutations.get_or_create(&mutation).inc();
    }

    /// Counts a call of a webhook.
    pub fn called(&self, call: &WebhookCall<'_>) {
        if !self.is_counted(call.name) {
            return;
        }
        let is_rejected = matches!(call.outcome, Outcome::Refused | Outcome::Failed);
        let rejected = if is_rejected { "true" } else { "false" };
        let step = Step { r#type: call.step, operation: call.operation.as_str() };
        let (name, code) = (call.name.to_owned(), call.code);
        if call.outcome == Outcome::PassedOver {
            let failed = FailedOpen { name: name.clone(), r#type: call.step };
            self.webhook_fail_opens.get_or_create(&failed).inc();
        }
        if is_rejected {
            let error_type = if call.outcome == Outcome::Failed { "calling_webhook_error" } else { "no_error" };
            let rejection = Rejected { name: name.clone(), step: step.clone(), error_type, rejection_code: code };
            self.webhook_rejections.get_or_create(&rejection).inc();
        }
        let called = Called { name: name.clone(), step: step.clone(), rejected };
        self.webhook_seconds.get_or_create(&called).observe(call.took.as_secs_f64());
        self.webhook_requests.get_or_create(&Answered { name, step, code, rejected }).inc();
    }

    fn is_counted(&self, name: &str) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(name) {
            return true;
        }
        names.len() < NAMES_MAX && names.insert(name.to_owned())
    }
}

/// As the reference tells them apart.
fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}
