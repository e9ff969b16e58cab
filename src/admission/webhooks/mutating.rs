//! Mutating webhooks: they are called one after the other, and each sees the object as the previous
//! ones left it.

use std::sync::Arc;
use std::time::Instant;

use super::configuration::{Configuration, WebhookKind};
use super::{SentObjects, UNAVAILABLE, VerdictError, Webhook, WebhookSource, WebhookVerdict, Webhooks, review};
use crate::admission::Attributes;
use crate::admission::matcher::Matcher;
use crate::crd::ServedVersion;
use crate::kinds::layout;
use crate::meta::{OBJECT_BYTES_MAX, Status};
use crate::patch::PatchError;
use crate::patch::json_patch::Patch;
use crate::value::{Value, go_quote, json};

/// The audit annotation about what a webhook did.
const MUTATION: &str = "mutation.webhook.admission.k8s.io";
/// The audit annotation with the patch of a webhook.
const PATCH: &str = "patch.webhook.admission.k8s.io";

/// The objects of the request in the version that the last webhook accepted.
struct Versioned {
    version: Arc<ServedVersion>,
    object: Value,
    old: Value,
    /// Whether a webhook has changed the object since it was converted to this version.
    is_dirty: bool,
}

impl Versioned {
    fn sent(&self) -> SentObjects<'_> {
        SentObjects { version: &self.version, object: &self.object, old: &self.old }
    }
}

impl<S: WebhookSource> Webhooks<S> {
    /// Calls all webhooks that apply; in the second round only those that ask for it, if the object
    /// was changed after them.
    pub(super) async fn call_mutating(
        &self,
        configurations: &[Arc<Configuration>],
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), Status> {
        let (round, asked) = (attributes.reinvocation, &attributes.reinvocation.webhooks);
        if round.is_second() {
            asked.require_if_changed(object);
        }
        let outcome = self.call_round(configurations, attributes, object).await;
        asked.leave(object);
        outcome
    }

    async fn call_round(
        &self,
        configurations: &[Arc<Configuration>],
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), Status> {
        let (round, asked) = (attributes.reinvocation, &attributes.reinvocation.webhooks);
        let webhooks = configurations.iter().flat_map(|configuration| &configuration.webhooks);
        let mut versioned: Option<Versioned> = None;
        let matcher = Matcher::new(attributes);
        for (index, webhook) in webhooks.enumerate() {
            let seen = versioned.as_ref().map_or(&*object, |versioned| &versioned.object);
            let Some(version) = self.concerned(webhook, &matcher, seen).await? else { continue };
            let name = format!("{}/{}", webhook.configuration, webhook.name);
            // Match conditions are evaluated even if the webhook will not be called again: they may
            // refuse the request.
            let asks = !webhook.conditions.is_empty();
            let is_called = asked.asks(&name, round);
            if !asks && !is_called {
                continue;
            }
            let now = bring(versioned.take(), attributes, object, version).await?;
            let now = versioned.insert(now);
            if !self.fulfils(webhook, WebhookKind::Mutating, attributes, now.sent())? || !is_called {
                continue;
            }
            let place = format!("round_{}_index_{index}", u8::from(round.is_second()));
            let began = Instant::now();
            let called = self.call_and_patch((webhook, place.as_str()), attributes, now).await;
            self.count(webhook, WebhookKind::Mutating, attributes, (began, called.as_ref().err()));
            let has_changed = matches!(called, Ok(true));
            let mutation = review::mutation(&webhook.configuration, &webhook.name, has_changed);
            attributes.told.annotate(format!("{MUTATION}/{place}"), &mutation);
            if has_changed {
                asked.require();
                round.require();
            }
            if webhook.is_reinvoked {
                asked.note(&name);
            }
            match called {
                Ok(_) => {}
                Err(VerdictError::Failed(why, _)) if webhook.is_ignored => {
                    tracing::warn!(webhook = webhook.name, why, "a webhook failed, and is passed over");
                    attributes.told.annotate(format!("failed-open.{MUTATION}/{place}"), &webhook.name);
                }
                Err(error) => return Err(error.into_status(webhook)),
            }
        }
        if let Some(versioned) = versioned.filter(|versioned| versioned.is_dirty) {
            attributes.told.replace(object, settle(versioned, attributes).await?);
        }
        Ok(())
    }

    /// Calls the webhook at its `place` in the round and applies its patch; returns whether the decoded object differs from
    /// the one before.
    async fn call_and_patch(
        &self,
        (webhook, place): (&Webhook, &str),
        attributes: &Attributes<'_>,
        versioned: &mut Versioned,
    ) -> Result<bool, VerdictError> {
        let verdict = self.call(webhook, WebhookKind::Mutating, attributes, versioned.sent()).await?;
        let Some(patch) = decode_patch(&verdict)? else { return Ok(false) };
        if versioned.object.is_null() {
            let name = go_quote(&webhook.name);
            let why = format!(
                "admission webhook {name} attempted to modify the object, which is not supported for this operation"
            );
            return Err(VerdictError::Broken(Status::internal_error(&why)));
        }
        if verdict.patch_type != "JSONPatch" {
            let why = format!("unsupported patch type {}", go_quote(&verdict.patch_type));
            return Err(VerdictError::Failed(why, UNAVAILABLE));
        }
        let broken = |why: &str| VerdictError::Broken(Status::internal_error(why));
        let patched = patch
            .apply(&versioned.object, layout::of(&versioned.object))
            .map_err(|error| broken(&error.to_string()))?;
        if patched.len() > OBJECT_BYTES_MAX {
            return Err(VerdictError::Broken(Status::too_large_to_store()));
        }
        let patched = json::decode(patched.as_bytes()).map_err(|error| broken(&error.to_string()))?;
        let has_changed = attributes.forms.differ(&versioned.object, &patched);
        versioned.object = attributes.forms.decode(patched).map_err(|error| broken(&error.to_string()))?;
        versioned.is_dirty = true;
        let annotation = review::patch(&webhook.configuration, &webhook.name, &verdict.patch);
        attributes.told.annotate_requests(format!("{PATCH}/{place}"), annotation);
        Ok(has_changed)
    }
}

/// The patch of a verdict; `None` if it has none, or an empty one.
fn decode_patch(verdict: &WebhookVerdict) -> Result<Option<Patch>, VerdictError> {
    if verdict.patch.is_empty() {
        return Ok(None);
    }
    let (patch, _) = Patch::decode(&verdict.patch, false).map_err(|error| {
        let why = match error {
            PatchError::Decode(why) => why,
            other => other.to_string(),
        };
        VerdictError::Failed(format!("received undecodable patch in webhook response: {why}"), UNAVAILABLE)
    })?;
    Ok(Some(patch).filter(|patch| !patch.is_empty()))
}

/// The objects in `version`: those of the previous webhook, or converted from the request's own.
async fn bring(
    before: Option<Versioned>,
    attributes: &Attributes<'_>,
    object: &mut Value,
    version: Arc<ServedVersion>,
) -> Result<Versioned, Status> {
    match before {
        Some(before) if is_same(&before.version, &version) => return Ok(before),
        Some(before) if before.is_dirty => attributes.told.replace(object, settle(before, attributes).await?),
        _ => {}
    }
    let old = attributes.old.cloned().unwrap_or_default();
    Ok(Versioned {
        object: convert(object.clone(), attributes, &version).await?,
        old: convert(old, attributes, &version).await?,
        version,
        is_dirty: false,
    })
}

/// The object that the webhooks returned, in the version of the request.
async fn settle(versioned: Versioned, attributes: &Attributes<'_>) -> Result<Value, Status> {
    let object = convert(versioned.object, attributes, attributes.version).await?;
    attributes.forms.settle(object).map_err(|error| Status::plain(500, &error.to_string()))
}

/// Converts an object to another version; null and scales are left unchanged.
pub(super) async fn convert(
    object: Value,
    attributes: &Attributes<'_>,
    version: &ServedVersion,
) -> Result<Value, Status> {
    if object.is_null() || attributes.subresource == "scale" {
        return Ok(object);
    }
    attributes.forms.convert(object, version).await.map_err(|error| Status::internal_error(&error.to_string()))
}

fn is_same(left: &ServedVersion, right: &ServedVersion) -> bool {
    (&left.group, &left.version) == (&right.group, &right.version)
}
