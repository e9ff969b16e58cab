//! A webhook configuration, decoded once for all requests.

use std::time::Duration;

use super::review::AdmissionReviewVersion;
use crate::policy::expression::Expression;
use crate::policy::{Criteria, conditions};
use crate::value::{Value, base64};
use crate::webhook::{Address, Endpoint, SERVICE_PORT};

/// The two kinds of webhook configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookKind {
    Mutating,
    Validating,
}

impl WebhookKind {
    /// The kind of the configurations.
    pub const fn name(self) -> &'static str {
        match self {
            WebhookKind::Mutating => "MutatingWebhookConfiguration",
            WebhookKind::Validating => "ValidatingWebhookConfiguration",
        }
    }

    /// The resource of the configurations.
    pub const fn plural(self) -> &'static str {
        match self {
            WebhookKind::Mutating => "mutatingwebhookconfigurations",
            WebhookKind::Validating => "validatingwebhookconfigurations",
        }
    }
}

/// A configuration.
pub struct Configuration {
    pub webhooks: Vec<Webhook>,
}

/// One webhook of a configuration.
pub struct Webhook {
    pub configuration: String,
    pub name: String,
    pub criteria: Criteria,
    /// Whether requests continue if the webhook fails.
    pub is_ignored: bool,
    /// Whether it may be called for a dry run.
    pub side_effects: SideEffects,
    pub timeout: Duration,
    /// `None` if it accepts no version that this server supports.
    pub review_version: Option<AdmissionReviewVersion>,
    /// Whether it is called again if other webhooks or policies have changed the object
    /// since.
    pub is_reinvoked: bool,
    pub conditions: Vec<Expression>,
    pub endpoint: Endpoint,
}

/// The side effects that a configuration declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    NoneOnDryRun,
    Possible,
    Unsaid,
}

impl Configuration {
    /// Decodes a configuration that has been validated.
    pub fn decode(configuration: &Value) -> Self {
        let name = configuration.str_at(&["metadata", "name"]);
        let webhooks = configuration.items_at(&["webhooks"]).iter();
        Configuration { webhooks: webhooks.map(|webhook| Webhook::decode(name, webhook)).collect() }
    }

    /// About how much memory its expressions take, in bytes.
    pub fn expression_bytes(&self) -> usize {
        self.webhooks.iter().flat_map(|webhook| &webhook.conditions).map(Expression::bytes).sum()
    }
}

impl Webhook {
    fn decode(configuration: &str, webhook: &Value) -> Self {
        /// The default of `timeoutSeconds`.
        const TIMEOUT_SECONDS: u64 = 10;
        let is = |name: &str, wanted: &str| webhook.str_at(&[name]) == wanted;
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_i64).and_then(|seconds| seconds.try_into().ok());
        Webhook {
            configuration: configuration.to_owned(),
            name: webhook.str_at(&["name"]).to_owned(),
            criteria: Criteria::of_webhook(webhook),
            is_ignored: is("failurePolicy", "Ignore"),
            side_effects: match webhook.get("sideEffects").and_then(Value::as_str) {
                None => SideEffects::Unsaid,
                Some("None" | "NoneOnDryRun") => SideEffects::NoneOnDryRun,
                Some(_) => SideEffects::Possible,
            },
            timeout: Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS)),
            review_version: AdmissionReviewVersion::choose(webhook.items_at(&["admissionReviewVersions"])),
            is_reinvoked: is("reinvocationPolicy", "IfNeeded"),
            conditions: conditions::of_webhook(webhook),
            endpoint: endpoint(webhook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}

fn endpoint(config: &Value) -> Endpoint {
    let port = config.at(&["service", "port"]).and_then(Value::as_i64).and_then(|port| port.try_into().ok());
    let address = match config.get("url").and_then(Value::as_str) {
        Some(url) => Address::Url(url.to_owned()),
        None => Address::Service {
            namespace: config.str_at(&["service", "namespace"]).to_owned(),
            name: config.str_at(&["service", "name"]).to_owned(),
            port: port.unwrap_or(SERVICE_PORT),
            path: config.str_at(&["service", "path"]).to_owned(),
        },
    };
    let ca_bundle = base64::decode(config.str_at(&["caBundle"])).unwrap_or_default();
    Endpoint { address, ca_bundle, access: None }
}
