//! `ResourceQuota`: nobody uses more than the quotas of a namespace allow. What is used is written into their status.
//!
//! DIFFERS: the status is written without an entry in managedFields.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, release 1.36.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::forbidden;
use crate::admission::configuration::{check_fields, check_type};
use crate::admission::{Admission, Attributes, Objects, Operation, Place};
use crate::kinds::quota::{self, Charge, Counted, LimitedResources, Refusal, Request};
use crate::meta::Status;
use crate::value::Value;

/// How often quotas are read again that others have written meanwhile.
const TRIES: usize = 16;
/// Of the configuration.
const NEWEST: &str = "apiserver.config.k8s.io/v1";
const GROUP_VERSIONS: [&str; 3] =
    [NEWEST, "resourcequota.admission.k8s.io/v1beta1", "resourcequota.admission.k8s.io/v1alpha1"];

pub struct ResourceQuota {
    pub objects: Arc<dyn Objects>,
    pub limited: LimitedResources,
}

/// The `limitedResources` of a configuration.
///
/// # Errors
///
/// It is something else, has a field that is not known, or names no resource.
pub fn limited_resources(configuration: &Value) -> Result<LimitedResources, String> {
    let kind =
        if configuration.str_at(&["apiVersion"]) == NEWEST { "ResourceQuotaConfiguration" } else { "Configuration" };
    check_type(configuration, &GROUP_VERSIONS, kind)?;
    check_fields(configuration, "", &["apiVersion", "kind", "limitedResources"])?;
    let items = match configuration.get("limitedResources") {
        None | Some(Value::Null) => return Ok(LimitedResources::default()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err("limitedResources is not a list".to_owned()),
    };
    let mut missing = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let path = format!("limitedResources[{at}]");
        check_fields(item, &path, &["apiGroup", "resource", "matchContains", "matchScopes"])?;
        for (at, scope) in item.items_at(&["matchScopes"]).iter().enumerate() {
            check_fields(scope, &format!("{path}.matchScopes[{at}]"), &["scopeName", "operator", "values"])?;
        }
        if item.str_at(&["resource"]).is_empty() {
            missing.push(format!("{path}.resource: Required value"));
        }
    }
    match missing.as_slice() {
        [] => Ok(LimitedResources(items.clone())),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
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
        let place = Place { group: "", plural: "resourcequotas", namespace: attributes.namespace };
        let request = Request { counted, object, old: attributes.old };
        for _ in 0..TRIES {
            let quotas = self.objects.list(place).await?;
            // What the request was charged for before, in a try that came to nothing, is not charged once more.
            let before: Vec<Value> = quotas.iter().map(|quota| attributes.charges.refunded(quota)).collect();
            let charged = quota::charge(&before, &request, &self.limited).map_err(|refusal| match refusal {
                Refusal::Forbidden(why) => forbidden(attributes, object, &why),
                Refusal::Internal(why) => Status::plain(500, &why),
            })?;
            if attributes.dry_run || self.write(place, (&quotas, before, charged), attributes.charges).await? {
                return Ok(());
            }
        }
        Err(Status::internal_error("resource quota evaluation timed out"))
    }
}

impl ResourceQuota {
    /// Writes the quotas as they are charged now, and whether nobody wrote one of them meanwhile.
    async fn write(
        &self,
        place: Place<'_>,
        (stored, before, charged): (&[Value], Vec<Value>, Vec<Value>),
        charges: &Charges,
    ) -> Result<bool, Status> {
        for (stored, before) in stored.iter().zip(before) {
            let is_it = |quota: &&Value| name_of(quota) == name_of(stored);
            let after = charged.iter().find(is_it).unwrap_or(&before);
            if after != stored {
                if !self.objects.replace(place, after.clone()).await? {
                    return Ok(false);
                }
                charges.note(name_of(stored), quota::difference_of(&before, after));
            }
        }
        Ok(true)
    }
}

fn name_of(quota: &Value) -> &str {
    quota.str_at(&["metadata", "name"])
}

/// What a request was charged for so far, by the names of quotas: it lives as long as the request, which may be tried again.
#[derive(Debug, Default)]
pub struct Charges(Mutex<BTreeMap<String, Charge>>);

impl Charges {
    fn refunded(&self, quota: &Value) -> Value {
        let charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        charges.get(name_of(quota)).map_or_else(|| quota.clone(), |charge| quota::refunded(quota, charge))
    }

    fn note(&self, quota: &str, charge: Charge) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(quota.to_owned(), charge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn quota(used: u32) -> Value {
        let text = format!("{{metadata: {{name: q}}, status: {{hard: {{pods: '3'}}, used: {{pods: '{used}'}}}}}}");
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    /// Quotas of which others write the second one once.
    struct Stored(Mutex<Vec<Value>>, Mutex<bool>);

    #[async_trait]
    impl Objects for Stored {
        async fn get(&self, _: Place<'_>, _: &str) -> Result<Option<Value>, Status> {
            Ok(None)
        }

        async fn list(&self, _: Place<'_>) -> Result<Vec<Value>, Status> {
            Ok(self.0.lock().expect("nothing panics").clone())
        }

        async fn replace(&self, _: Place<'_>, object: Value) -> Result<bool, Status> {
            let mut stored = self.0.lock().expect("nothing panics");
            let at = stored.iter().position(|known| name_of(known) == name_of(&object)).expect("it was listed");
            if at == 1 && std::mem::take(&mut *self.1.lock().expect("nothing panics")) {
                return Ok(false);
            }
            stored[at] = object;
            Ok(true)
        }
    }

    #[tokio::test]
    async fn a_write_that_is_tried_again_is_charged_once() {
        let mut second = quota(0);
        second.make_object().entry("metadata").make_object().insert("name", Value::from("r"));
        let stored = Arc::new(Stored(Mutex::new(vec![quota(1), second]), Mutex::new(true)));
        let limited = LimitedResources::default();
        let plugin = ResourceQuota { objects: Arc::clone(&stored) as Arc<dyn Objects>, limited };
        let charges = Charges::default();
        let pod = yaml::decode(b"spec: {containers: [{name: c}]}").expect("the test is YAML");
        let counted = Counted { group: "", plural: "pods", subresource: "" };
        let request = Request { counted, object: &pod, old: None };
        let place = Place { group: "", plural: "resourcequotas", namespace: "n" };
        // Somebody else writes the second quota between, and then the whole request is tried once more.
        for _ in 0..3 {
            let quotas = plugin.objects.list(place).await.expect("they are listed");
            let before: Vec<Value> = quotas.iter().map(|quota| charges.refunded(quota)).collect();
            let charged = quota::charge(&before, &request, &plugin.limited).expect("it fits");
            plugin.write(place, (&quotas, before, charged), &charges).await.expect("they are written");
        }
        let used = |quota: &Value| quota.str_at(&["status", "used", "pods"]).to_owned();
        assert_eq!(stored.0.lock().expect("nothing panics").iter().map(used).collect::<Vec<_>>(), ["2", "1"]);
    }

    #[test]
    fn limited_resources_name_a_resource() {
        let read = |api_version: &str, kind: &str, limited: &str| {
            let text = format!("{{apiVersion: {api_version}, kind: {kind}, limitedResources: {limited}}}");
            let read = limited_resources(&yaml::decode(text.as_bytes()).expect("the test is YAML"));
            read.map(|limited| limited.0.len())
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
