//! The metrics of admission, under the names that Kubernetes uses.
//!
//! Labels are names of stored policies and webhooks: names beyond `NAMES_MAX` are not counted, so
//! nobody can create an unlimited number of time series.
//!
//! Source: `k8s.io/apiserver/pkg/admission/metrics` and
//! `plugin/policy/{validating,mutating}/metrics`, release 1.37.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{AdmissionRound, Attributes, Operation, handled};
use crate::webhook::OldCertificates;

/// How many policies and webhooks have their own metrics.
const NAMES_MAX: usize = 2_000;
const POLICY_SECONDS: [f64; 5] = [0.000_000_5, 0.001, 0.01, 0.1, 1.0];
const CONDITIONS_SECONDS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const STEP_SECONDS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
const WEBHOOK_SECONDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// Higher status codes of webhooks are counted as this one.
const CODE_MAX: u16 = 600;

/// The metrics of admission.
pub struct Figures {
    names: Mutex<HashSet<String>>,
    step_seconds: Family<StepAsked, Histogram, fn() -> Histogram>,
    plugin_seconds: Family<PluginAsked, Histogram, fn() -> Histogram>,
    conditions_errors: Family<Conditions, Counter>,
    conditions_exclusions: Family<Conditions, Counter>,
    conditions_seconds: Family<Conditions, Histogram, fn() -> Histogram>,
    checks: Family<PolicyLabels, Counter>,
    check_seconds: Family<PolicyLabels, Histogram, fn() -> Histogram>,
    mutations: Family<Mutation, Counter>,
    mutation_seconds: Family<Mutation, Histogram, fn() -> Histogram>,
    webhook_seconds: Family<PluginCall, Histogram, fn() -> Histogram>,
    webhook_requests: Family<AnsweredCall, Counter>,
    webhook_rejections: Family<Rejected, Counter>,
    webhook_fail_opens: Family<FailedOpen, Counter>,
    old_certificates: OldCertificates,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StepAsked {
    r#type: &'static str,
    operation: &'static str,
    rejected: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PluginAsked {
    name: &'static str,
    #[prometheus(flatten)]
    step: StepAsked,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Conditions {
    name: String,
    kind: &'static str,
    r#type: &'static str,
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PolicyLabels {
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
struct PluginCall {
    name: String,
    #[prometheus(flatten)]
    step: AdmissionStep,
    rejected: &'static str,
}

/// A round of admission and its operation.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AdmissionStep {
    r#type: &'static str,
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AnsweredCall {
    name: String,
    #[prometheus(flatten)]
    step: AdmissionStep,
    code: u16,
    rejected: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Rejected {
    name: String,
    #[prometheus(flatten)]
    step: AdmissionStep,
    error_type: &'static str,
    rejection_code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FailedOpen {
    name: String,
    r#type: &'static str,
}

/// The outcome of a round of admission, or of a single plugin in it.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionCall {
    round: AdmissionRound,
    operation: Operation,
    took: Duration,
    is_rejected: bool,
}

impl AdmissionCall {
    pub fn new(round: AdmissionRound, attributes: &Attributes<'_>, took: Duration, is_rejected: bool) -> Self {
        AdmissionCall { round, operation: attributes.operation, took, is_rejected }
    }

    fn step(&self) -> StepAsked {
        StepAsked { r#type: self.round.as_str(), operation: self.operation.as_str(), rejected: truth(self.is_rejected) }
    }
}

/// The metrics of one plugin. Every write calls some twenty plugins: the histogram for passed calls
/// is found without a look-up by labels.
pub struct PluginFigures {
    plugin: &'static str,
    figures: Arc<Figures>,
    /// The histograms of passed calls, by round and operation.
    passed: [[OnceLock<Histogram>; 4]; 2],
}

impl PluginFigures {
    /// The metrics of the plugin called `plugin`, as a part of `figures`.
    pub fn of(plugin: &'static str, figures: &Arc<Figures>) -> Self {
        PluginFigures { plugin, figures: Arc::clone(figures), passed: Default::default() }
    }

    /// Counts a call of the plugin, if it handles this round and operation.
    pub fn asked(&self, asked: &AdmissionCall) {
        if !handled::handles(self.plugin, asked.round, asked.operation) {
            return;
        }
        let find = || {
            let labels = PluginAsked { name: self.plugin, step: asked.step() };
            self.figures.plugin_seconds.get_or_create(&labels).clone()
        };
        let seconds = asked.took.as_secs_f64();
        if asked.is_rejected {
            find().observe(seconds);
        } else {
            self.passed_in(asked.round, asked.operation).get_or_init(find).observe(seconds);
        }
    }

    const fn passed_in(&self, round: AdmissionRound, operation: Operation) -> &OnceLock<Histogram> {
        let [admit, validate] = &self.passed;
        let [create, update, delete, connect] = match round {
            AdmissionRound::Admit => admit,
            AdmissionRound::Validate => validate,
        };
        match operation {
            Operation::Create => create,
            Operation::Update => update,
            Operation::Delete => delete,
            Operation::Connect => connect,
        }
    }
}

/// An evaluation of match conditions.
#[derive(Clone, Copy, Debug)]
pub struct Evaluated<'e> {
    /// The name of the webhook or policy that has the conditions.
    pub name: &'e str,
    /// `webhook` or `policy`.
    pub kind: &'static str,
    /// The label for the round; Kubernetes has a special one for validating webhooks.
    pub step: &'static str,
    pub operation: Operation,
    pub took: Duration,
    /// Whether all conditions are true.
    pub hold: bool,
    /// How many conditions failed before one was false.
    pub errors: usize,
}

/// The outcome of a webhook call.
#[derive(Clone, Copy, Debug)]
pub struct WebhookCall<'c> {
    pub name: &'c str,
    /// `admit` or `validating`.
    pub step: &'static str,
    pub operation: Operation,
    pub took: Duration,
    /// The code of the webhook's refusal or of the failure; 200 if the request passed, and 0 if the
    /// server itself failed.
    pub code: u16,
    pub outcome: AdmissionResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionResult {
    Allowed,
    Refused,
    /// The call failed, so the request was refused.
    Failed,
    /// The server could not call the webhook, or could not apply its answer.
    Broken,
    /// The call failed, and the request continued.
    PassedOver,
}

impl Default for Figures {
    fn default() -> Self {
        let policy_seconds: fn() -> Histogram = || Histogram::new(POLICY_SECONDS);
        let webhook_seconds: fn() -> Histogram = || Histogram::new(WEBHOOK_SECONDS);
        let step_seconds: fn() -> Histogram = || Histogram::new(STEP_SECONDS);
        let conditions_seconds: fn() -> Histogram = || Histogram::new(CONDITIONS_SECONDS);
        Figures {
            names: Mutex::default(),
            step_seconds: Family::new_with_constructor(step_seconds),
            plugin_seconds: Family::new_with_constructor(step_seconds),
            conditions_errors: Family::default(),
            conditions_exclusions: Family::default(),
            conditions_seconds: Family::new_with_constructor(conditions_seconds),
            checks: Family::default(),
            check_seconds: Family::new_with_constructor(policy_seconds),
            mutations: Family::default(),
            mutation_seconds: Family::new_with_constructor(policy_seconds),
            webhook_seconds: Family::new_with_constructor(webhook_seconds),
            webhook_requests: Family::default(),
            webhook_rejections: Family::default(),
            webhook_fail_opens: Family::default(),
            old_certificates: OldCertificates::default(),
        }
    }
}

impl Figures {
    /// The metrics of admission; `old_certificates` counts the certificates of the webhooks.
    pub fn with(old_certificates: OldCertificates) -> Self {
        Figures { old_certificates, ..Figures::default() }
    }

    /// Registers the metrics in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        const ADMISSION: &str = "apiserver_admission";
        const CONDITIONS: &str = "apiserver_admission_match_condition";
        let name = format!("{ADMISSION}_step_admission_duration_seconds");
        registry.register(name, "How long rounds of admission took", self.step_seconds.clone());
        // Metrics with this suffix are exposed as summaries.
        let name = format!("{ADMISSION}_step_admission_duration_seconds_summary");
        registry.register(name, "How long rounds of admission took, in sum", self.step_seconds.clone());
        let name = format!("{ADMISSION}_controller_admission_duration_seconds");
        registry.register(name, "How long plugins of admission took", self.plugin_seconds.clone());
        let told = "Match conditions that failed";
        registry.register(format!("{CONDITIONS}_evaluation_errors"), told, self.conditions_errors.clone());
        let told = "Webhooks that were not called for their match conditions";
        registry.register(format!("{CONDITIONS}_exclusions"), told, self.conditions_exclusions.clone());
        let told = "How long match conditions took that did not all hold";
        registry.register(format!("{CONDITIONS}_evaluation_seconds"), told, self.conditions_seconds.clone());
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
        self.old_certificates.register(registry);
    }

    /// Counts a round of admission.
    pub fn passed(&self, asked: &AdmissionCall) {
        self.step_seconds.get_or_create(&asked.step()).observe(asked.took.as_secs_f64());
    }

    /// Counts an evaluation of match conditions. As in Kubernetes, evaluations in which all
    /// conditions are true are not measured, and excluded policies are not counted.
    pub fn evaluated(&self, evaluated: &Evaluated<'_>) {
        if evaluated.hold || !self.is_counted(evaluated.name) {
            return;
        }
        let conditions = Conditions {
            name: evaluated.name.to_owned(),
            kind: evaluated.kind,
            r#type: evaluated.step,
            operation: evaluated.operation.as_str(),
        };
        self.conditions_seconds.get_or_create(&conditions).observe(evaluated.took.as_secs_f64());
        if evaluated.errors > 0 {
            self.conditions_errors.get_or_create(&conditions).inc_by(evaluated.errors as u64);
        }
    }

    /// Counts a webhook that is not called because of its match conditions.
    pub fn excluded(&self, webhook: &str, round: AdmissionRound, operation: Operation) {
        if self.is_counted(webhook) {
            let (name, operation) = (webhook.to_owned(), operation.as_str());
            let conditions = Conditions { name, kind: "webhook", r#type: round.as_str(), operation };
            self.conditions_exclusions.get_or_create(&conditions).inc();
        }
    }

    /// Counts the outcome of one validation: `allow`, `deny`, `audit` or `warn`; the error type is
    /// derived from `message`.
    pub fn checked(&self, policy: &str, binding: &str, action: &'static str, message: &str, took: Duration) {
        if !self.is_counted(policy) || !self.is_counted(binding) {
            return;
        }
        let check = PolicyLabels {
            policy: policy.to_owned(),
            policy_binding: binding.to_owned(),
            error_type: error_type(message),
            enforcement_action: action,
        };
        self.check_seconds.get_or_create(&check).observe(took.as_secs_f64());
        self.checks.get_or_create(&check).inc();
    }

    /// Counts one mutation, and its failure if there is one.
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
        let is_rejected = !matches!(call.outcome, AdmissionResult::Allowed | AdmissionResult::PassedOver);
        let rejected = truth(is_rejected);
        let step = AdmissionStep { r#type: call.step, operation: call.operation.as_str() };
        let (name, code) = (call.name.to_owned(), call.code.min(CODE_MAX));
        if call.outcome == AdmissionResult::PassedOver {
            let failed = FailedOpen { name: name.clone(), r#type: call.step };
            self.webhook_fail_opens.get_or_create(&failed).inc();
        }
        if is_rejected {
            let error_type = match call.outcome {
                AdmissionResult::Failed => "calling_webhook_error",
                AdmissionResult::Broken => "apiserver_internal_error",
                AdmissionResult::Refused | AdmissionResult::Allowed | AdmissionResult::PassedOver => "no_error",
            };
            let rejection = Rejected { name: name.clone(), step: step.clone(), error_type, rejection_code: code };
            self.webhook_rejections.get_or_create(&rejection).inc();
        }
        let called = PluginCall { name: name.clone(), step: step.clone(), rejected };
        self.webhook_seconds.get_or_create(&called).observe(call.took.as_secs_f64());
        self.webhook_requests.get_or_create(&AnsweredCall { name, step, code, rejected }).inc();
    }

    fn is_counted(&self, name: &str) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(name) {
            return true;
        }
        names.len() < NAMES_MAX && names.insert(name.to_owned())
    }
}

const fn truth(is_it: bool) -> &'static str {
    if is_it { "true" } else { "false" }
}

/// Derives the error type from the message, as kube-apiserver does.
fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn what_a_plugin_lets_pass_and_refuses_is_counted_apart() {
        let (figures, mut registry) = (Arc::new(Figures::default()), Registry::default());
        figures.register(&mut registry);
        let plugin = PluginFigures::of("ResourceQuota", &figures);
        let call = |round, is_rejected| AdmissionCall {
            round,
            operation: Operation::Create,
            took: Duration::ZERO,
            is_rejected,
        };
        for is_rejected in [false, true, false] {
            plugin.asked(&call(AdmissionRound::Validate, is_rejected));
        }
        // The plugin does not handle this round.
        plugin.asked(&call(AdmissionRound::Admit, false));
        let mut text = String::new();
        encode(&mut text, &registry).expect("it is text");
        let count = "apiserver_admission_controller_admission_duration_seconds_count{name=\"ResourceQuota\",";
        let counted: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(count)).collect();
        let labels = |rejected: &str| format!("type=\"validate\",operation=\"CREATE\",rejected=\"{rejected}\"}}");
        assert_eq!(counted.len(), 2, "{text}");
        assert!(counted.contains(&format!("{} 2", labels("false")).as_str()), "{counted:?}");
        assert!(counted.contains(&format!("{} 1", labels("true")).as_str()), "{counted:?}");
    }

    #[test]
    fn what_the_server_can_not_ask_is_counted_with_the_code_0() {
        let (figures, mut registry) = (Figures::default(), Registry::default());
        figures.register(&mut registry);
        let call = WebhookCall {
            name: "w",
            step: "admit",
            operation: Operation::Create,
            took: Duration::ZERO,
            code: 0,
            outcome: AdmissionResult::Broken,
        };
        figures.called(&call);
        figures.called(&WebhookCall { code: 999, outcome: AdmissionResult::Refused, ..call });
        let mut text = String::new();
        encode(&mut text, &registry).expect("it is text");
        let rejections =
            "apiserver_admission_webhook_rejection_count_total{name=\"w\",type=\"admit\",operation=\"CREATE\"";
        for labels in [
            "error_type=\"apiserver_internal_error\",rejection_code=\"0\"} 1",
            "error_type=\"no_error\",rejection_code=\"600\"} 1",
        ] {
            assert!(text.contains(&format!("{rejections},{labels}")), "{text}");
        }
    }
}
