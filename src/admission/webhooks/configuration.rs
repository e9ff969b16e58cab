//! A stored configuration, read once for all requests.

use std::time::Duration;

use super::review::ReviewVersion;
use super::rules::Rule;
use crate::kinds::match_conditions::Condition;
use crate::meta::selector::LabelSelector;
use crate::value::{Value, base64};
use crate::webhook::{Address, Endpoint, SERVICE_PORT};

/// The two kinds of configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Mutating,
    Validating,
}

impl Kind {
    /// The resource of the configurations.
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Mutating => "mutatingwebhookconfigurations",
            Kind::Validating => "validatingwebhookconfigurations",
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
    pub rules: Vec<Rule>,
    /// Whether requests go on where the webhook fails.
    pub is_ignored: bool,
    /// Whether rules also mean other versions of what they name.
    pub takes_equivalents: bool,
    pub namespace_selector: Result<LabelSelector, String>,
    pub object_selector: Result<LabelSelector, String>,
    /// Whether it may be called for a dry run.
    pub side_effects: SideEffects,
    pub timeout: Duration,
    /// `None` where it takes none that this server speaks.
    pub review_version: Option<ReviewVersion>,
    /// Whether it is called again where others have changed the object since.
    pub is_reinvoked: bool,
    pub conditions: Vec<Condition>,
    pub endpoint: Endpoint,
}

/// What a configuration says of side effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    NoneOnDryRun,
    Possible,
    Unsaid,
}

impl Configuration {
    /// Reads a configuration that has been validated.
    pub fn decode(configuration: &Value) -> Self {
        let name = configuration.str_at(&["metadata", "name"]);
        let webhooks = configuration.items_at(&["webhooks"]).iter();
        Configuration { webhooks: webhooks.map(|webhook| Webhook::decode(name, webhook)).collect() }
    }
}

impl Webhook {
    fn decode(configuration: &str, webhook: &Value) -> Self {
        /// What a configuration that names no timeout was given.
        const TIMEOUT_SECONDS: u64 = 10;
        let is = |name: &str, wanted: &str| webhook.str_at(&[name]) == wanted;
        let selector =
            |name: &str| webhook.get(name).map_or_else(|| Ok(LabelSelector::default()), LabelSelector::decode);
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_i64).and_then(|seconds| seconds.try_into().ok());
        let conditions = webhook.items_at(&["matchConditions"]).iter();
        Webhook {
            configuration: configuration.to_owned(),
            name: webhook.str_at(&["name"]).to_owned(),
            rules: webhook.items_at(&["rules"]).iter().map(Rule::decode).collect(),
            is_ignored: is("failurePolicy", "Ignore"),
            takes_equivalents: is("matchPolicy", "Equivalent"),
            namespace_selector: selector("namespaceSelector"),
            object_selector: selector("objectSelector"),
            side_effects: match webhook.get("sideEffects").and_then(Value::as_str) {
                None => SideEffects::Unsaid,
                Some("None" | "NoneOnDryRun") => SideEffects::NoneOnDryRun,
                Some(_) => SideEffects::Possible,
            },
            timeout: Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS)),
            review_version: ReviewVersion::choose(webhook.items_at(&["admissionReviewVersions"])),
            is_reinvoked: is("reinvocationPolicy", "IfNeeded"),
            conditions: conditions.map(|condition| Condition::stored(condition.str_at(&["expression"]))).collect(),
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
    Endpoint { address, ca_bundle: base64::decode(config.str_at(&["caBundle"])).unwrap_or_default() }
}
