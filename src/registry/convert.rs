//! Conversion between the versions of a resource: by its apiVersion alone, or by the webhook of its definition.
//!
//! This asks the webhook of a definition for one object at a time; `crd::conversion_review`, which is pure, writes
//! the review and judges the answer, and `webhook` carries both. What computes field ownership needs conversions,
//! too, but is pure: what it lacks is noted, converted outside, and the computation runs again. What a webhook made
//! of an object is kept with the row, as Kubernetes' watch cache keeps it, so lists and watches outlive the webhook;
//! a plain GET asks again.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::apply::{ConvertError, TypeSchema, Versions};
use crate::crd::conversion_review::ConversionError;
use crate::meta::api_version::group_of;
use crate::value::Value;
use crate::webhook::WebhookClient;

use super::Resource;
use super::conversion::Conversion;

/// Converts objects from one version of a resource to another. Every read and every write uses it.
#[async_trait]
pub trait Convert: Send + Sync {
    /// `object` in the version `to` (`group/version`).
    ///
    /// # Errors
    ///
    /// Kubernetes' message for a failed conversion.
    async fn convert(&self, resource: &Resource, object: Value, to: &str) -> Result<Value, ConversionError>;
}

/// Converts as the definitions say.
pub struct Converter(pub Arc<WebhookClient>);

#[async_trait]
impl Convert for Converter {
    async fn convert(&self, resource: &Resource, object: Value, to: &str) -> Result<Value, ConversionError> {
        resource.conversion.convert(&self.0, object, to).await
    }
}

/// The versions of a resource for one computation of field ownership, which is pure: if it needs a conversion by a
/// webhook, that is noted and done outside, and the computation runs again.
pub(super) struct Conversions<'r> {
    resource: &'r Resource,
    made: Vec<ConvertedObject>,
    wanted: Mutex<Option<(Value, String)>>,
}

struct ConvertedObject {
    object: Value,
    to: String,
    outcome: Result<Value, ConversionError>,
}

impl<'r> Conversions<'r> {
    pub fn new(resource: &'r Resource) -> Self {
        Conversions { resource, made: Vec::new(), wanted: Mutex::default() }
    }

    /// The conversion that the last computation lacked; its result is then invalid.
    pub fn take_wanted(&mut self) -> Option<(Value, String)> {
        self.wanted.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records the outcome of the conversion of `object`.
    pub fn add(&mut self, object: Value, to: String, outcome: Result<Value, ConversionError>) {
        self.made.push(ConvertedObject { object, to, outcome });
    }
}

impl Versions for Conversions<'_> {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        self.resource.types_of(api_version)
    }

    fn empty(&self, api_version: &str, kind: &str) -> Value {
        let version = self.resource.version_of(api_version);
        let mut empty = version.map_or(Value::Null, |version| self.resource.strategy.zero(version));
        let fields = empty.make_object();
        fields.insert("apiVersion", Value::from(api_version));
        fields.insert("kind", Value::from(kind));
        empty
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let is_known = self.resource.types_of(api_version).is_some();
        match self.resource.definition {
            // For a kind in two groups, the reference finds only the types of the request's group.
            None if !is_known || group_of(object.str_at(&["apiVersion"])) != group_of(api_version) => {
                return Err(ConvertError::MissingVersion);
            }
            Some(_) if !is_known => {
                let message = format!("request to convert CR to an invalid group/version: {api_version}");
                return Err(ConvertError::Failed(message));
            }
            _ => {}
        }
        if let Some(converted) = self.resource.strategy.convert(object, api_version) {
            return Ok(converted);
        }
        if self.resource.conversion == Conversion::None || object.str_at(&["apiVersion"]) == api_version {
            let mut converted = object.clone();
            converted.make_object().insert("apiVersion", Value::from(api_version));
            return Ok(converted);
        }
        match self.made.iter().find(|made| made.to == api_version && made.object == *object) {
            Some(made) => made.outcome.clone().map_err(|error| ConvertError::Failed(error.to_string())),
            None => {
                let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                wanted.get_or_insert_with(|| (object.clone(), api_version.to_owned()));
                Err(ConvertError::Failed("not converted yet".to_owned()))
            }
        }
    }
}
