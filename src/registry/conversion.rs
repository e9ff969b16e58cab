//! How the objects of a definition are converted from one version to another: by their apiVersion alone, or by a
//! webhook.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::crd::conversion_review::{ConversionError, ConversionReviewVersion, Review};
use crate::crd::definition::{ClientConfig, Definition};
use crate::crd::validate::ca_bundle;
use crate::value::Value;
use crate::webhook::{Address, Endpoint, Manner, SERVICE_PORT, WebhookClient, patience};

/// How long a webhook may take. Source: Kubernetes documentation, "Webhook conversion".
const MANNER: Manner = Manner::of_conversion(Duration::from_secs(30));

/// How objects of a resource get from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Only `apiVersion` changes.
    None,
    Webhook(ConversionWebhook),
}

/// The conversion webhook of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionWebhook {
    endpoint: Endpoint,
    /// The review version that is used, of those that the definition lists.
    version: Result<ConversionReviewVersion, ConversionError>,
    /// Why its certificate bundle can't be used.
    bundle_fault: Option<String>,
}

impl Conversion {
    /// The conversion that `definition` asks for.
    pub fn of(definition: &Definition) -> Self {
        let conversion = definition.spec.conversion.as_ref().filter(|conversion| conversion.strategy == "Webhook");
        let Some(webhook) = conversion.and_then(|conversion| conversion.webhook.as_ref()) else {
            return Conversion::None;
        };
        let Some(config) = &webhook.client_config else { return Conversion::None };
        let endpoint = endpoint(config);
        // White space alone counts as no bundle.
        let is_blank = String::from_utf8_lossy(&endpoint.ca_bundle).trim().is_empty();
        Conversion::Webhook(ConversionWebhook {
            bundle_fault: if is_blank { None } else { ca_bundle::fault(&endpoint.ca_bundle) },
            endpoint,
            version: ConversionReviewVersion::choose(&webhook.review_versions),
        })
    }

    /// Why no object of the resource can be served, in Go's words; `None` if objects can be.
    pub fn fault(&self) -> Option<&str> {
        match self {
            Conversion::None => None,
            Conversion::Webhook(webhook) => webhook.bundle_fault.as_deref(),
        }
    }

    /// `object` in the version `to` (`group/version`).
    ///
    /// # Errors
    ///
    /// Kubernetes' message for a failed conversion.
    pub async fn convert(&self, client: &WebhookClient, mut object: Value, to: &str) -> Result<Value, ConversionError> {
        if object.str_at(&["apiVersion"]) == to {
            return Ok(object);
        }
        let webhook = match self {
            Conversion::None => {
                object.make_object().insert("apiVersion", Value::from(to));
                return Ok(object);
            }
            Conversion::Webhook(webhook) => webhook,
        };
        if !patience::release().await {
            return Err(ConversionError::Crowded(patience::CROWDED));
        }
        let uid = Uuid::new_v4().to_string();
        let review = Review { version: webhook.version.clone()?, uid: &uid, desired: to, object: &object };
        let answer = client.call(&webhook.endpoint, review.request().into(), MANNER).await;
        let answer = answer.map_err(|failure| {
            let crowded = ConversionError::Crowded(patience::CROWDED);
            if failure.is_crowded { crowded } else { review.failed(failure.text) }
        });
        review.response(&answer?)
    }
}

fn endpoint(config: &ClientConfig) -> Endpoint {
    let ca_bundle = config.ca_bundle.as_deref().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
    let address = match (&config.url, &config.service) {
        (Some(url), _) => Address::Url(url.clone()),
        (None, service) => {
            let service = service.clone().unwrap_or_default();
            Address::Service {
                namespace: service.namespace,
                name: service.name,
                port: service.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(SERVICE_PORT),
                path: service.path.unwrap_or_default(),
            }
        }
    };
    Endpoint { address, ca_bundle, access: None }
}
