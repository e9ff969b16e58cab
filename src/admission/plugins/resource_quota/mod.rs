//! `ResourceQuota`: limits the usage of a namespace to its quotas. The usage is written to their
//! status.
//!
//! DIFFERS: the status is written without an entry in managedFields.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, release 1.36.

mod charges;
mod queue;
mod round;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::forbidden;
use crate::admission::configuration::{ConfigurationError, check_fields, check_type};
use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::kinds::quota::{Counted, LimitedResources, Refusal};
use crate::meta::Status;
use crate::value::Value;

pub use charges::Charges;
use queue::Queue;
use round::{Evaluator, QuotaRefusal, QuotaRequest, QuotaVerdict};

/// How long a request waits for its turn.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The newest version of the configuration.
const NEWEST: &str = "apiserver.config.k8s.io/v1";
const GROUP_VERSIONS: [&str; 3] =
    [NEWEST, "resourcequota.admission.k8s.io/v1beta1", "resourcequota.admission.k8s.io/v1alpha1"];

pub struct ResourceQuota {
    evaluator: Arc<Evaluator>,
    queue: Arc<Queue<QuotaRequest, QuotaVerdict>>,
}

/// Decodes the `limitedResources` of a configuration.
///
/// # Errors
///
/// The value is of another type, has an unknown field, or an item without a resource.
pub fn limited_resources(configuration: &Value) -> Result<LimitedResources, ConfigurationError> {
    let kind =
        if configuration.str_at(&["apiVersion"]) == NEWEST { "ResourceQuotaConfiguration" } else { "Configuration" };
    check_type(configuration, &GROUP_VERSIONS, kind)?;
    check_fields(configuration, "", &["apiVersion", "kind", "limitedResources"])?;
    let items = match configuration.get("limitedResources") {
        None | Some(Value::Null) => return Ok(LimitedResources::default()),
        Some(Value::Array(items)) => items,
        Some(_) => {
            return Err(ConfigurationError::Type { path: "limitedResources".to_owned(), wanted: "a list" });
        }
    };
    let mut missing = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let path = format!("limitedResources[{at}]");
        check_fields(item, &path, &["apiGroup", "resource", "matchContains", "matchScopes"])?;
        for (at, scope) in item.items_at(&["matchScopes"]).iter().enumerate() {
            check_fields(scope, &format!("{path}.matchScopes[{at}]"), &["scopeName", "operator", "values"])?;
        }
        if item.str_at(&["resource"]).is_empty() {
            missing.push(ConfigurationError::Required(format!("{path}.resource")));
        }
    }
    match missing.len() {
        0 => Ok(LimitedResources(items.clone())),
        1 => Err(missing.remove(0)),
        _ => Err(ConfigurationError::Several(missing)),
    }
}

#[async_trait]
impl Admission for ResourceQuota {
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let version = attributes.version;
        let counted =
            Counted { group: &version.group, plural: &version.names.plural, subresource: attributes.subresource };
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        if attributes.namespace.is_empty() || !is_write || !counted.handles(object, attributes.old) {
            return Ok(());
        }
        if !self.is_limited(attributes.namespace, &counted).await? {
            return Ok(());
        }
        let asked = QuotaRequest {
            group: version.group.clone(),
            plural: version.names.plural.clone(),
            subresource: attributes.subresource.to_owned(),
            object: object.clone(),
            old: attributes.old.cloned(),
            dry_run: attributes.dry_run,
            charges: attributes.charges.clone(),
        };
        let verdict = self.queue.ask(&self.evaluator, attributes.namespace, asked);
        match tokio::time::timeout(WAIT_MAX, verdict).await {
            Ok(Some(Ok(()))) => Ok(()),
            Ok(Some(Err(QuotaRefusal::Refused(Refusal::Forbidden(why))))) => Err(forbidden(attributes, object, &why)),
            Ok(Some(Err(QuotaRefusal::Refused(Refusal::Internal(why))))) => Err(Status::plain(500, &why)),
            Ok(Some(Err(QuotaRefusal::Broken(status)))) => Err(status),
            Ok(None) | Err(_) => Err(timed_out()),
        }
    }
}

impl ResourceQuota {
    pub fn new(objects: Arc<dyn Objects>, limited: LimitedResources) -> Self {
        ResourceQuota { evaluator: Arc::new(Evaluator { objects, limited }), queue: Arc::default() }
    }

    /// Whether such objects may be limited in a namespace at all.
    async fn is_limited(&self, namespace: &str, counted: &Counted<'_>) -> Result<bool, Status> {
        let place = ScopedResource { group: "", plural: "resourcequotas", namespace };
        if !self.evaluator.limited.0.is_empty() {
            return Ok(true);
        }
        self.evaluator.objects.any_of(place, &|quota| counted.may_be_limited_by(quota)).await
    }
}

fn timed_out() -> Status {
    Status::internal_error("resource quota evaluation timed out")
}

fn name_of(quota: &Value) -> &str {
    quota.str_at(&["metadata", "name"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn limited_resources_name_a_resource() {
        let read = |api_version: &str, kind: &str, limited: &str| {
            let text = format!("{{apiVersion: {api_version}, kind: {kind}, limitedResources: {limited}}}");
            let read = limited_resources(&yaml::decode(text.as_bytes()).expect("the test is YAML"));
            read.map(|limited| limited.0.len()).map_err(|error| error.to_string())
        };
        let (newest, kind) = (NEWEST, "ResourceQuotaConfiguration");
        assert_eq!(read(newest, kind, "[{resource: pods}, {resource: services, matchContains: [a]}]"), Ok(2));
        assert_eq!(read("resourcequota.admission.k8s.io/v1beta1", "Configuration", "null"), Ok(0));
        let missing = "[limitedResources[0].resource: Required value, limitedResources[1].resource: Required value]";
        assert_eq!(read(newest, kind, "[{}, {matchContains: [a]}]"), Err(missing.to_owned()));
        assert_eq!(read(newest, kind, "{}"), Err("limitedResources is not a list".to_owned()));
        let unknown = "strict decoding error: unknown field \"limitedResources[0].name\"";
        assert_eq!(read(newest, kind, "[{name: pods}]"), Err(unknown.to_owned()));
        assert!(read(newest, "Configuration", "[]").is_err());
    }
}
