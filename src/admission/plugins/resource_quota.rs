//! `ResourceQuota`: nobody uses more than the quotas of a namespace allow. What is used is written into their status.
//!
//! DIFFERS: the status is written without an entry in managedFields.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/resourcequota`, release 1.36.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::forbidden;
use crate::admission::{Admission, Attributes, Objects, Operation, Place};
use crate::kinds::quota::{self, Charge, Counted, Request};
use crate::meta::Status;
use crate::value::Value;

/// How often quotas are read again that others have written meanwhile.
const TRIES: usize = 16;

pub struct ResourceQuota {
    pub objects: Arc<dyn Objects>,
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
            let charged = quota::charge(&before, &request);
            let charged = charged.map_err(|why| forbidden(attributes, object, &why))?;
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
        let plugin = ResourceQuota { objects: Arc::clone(&stored) as Arc<dyn Objects> };
        let charges = Charges::default();
        let pod = yaml::decode(b"spec: {containers: [{name: c}]}").expect("the test is YAML");
        let counted = Counted { group: "", plural: "pods", subresource: "" };
        let request = Request { counted, object: &pod, old: None };
        let place = Place { group: "", plural: "resourcequotas", namespace: "n" };
        // Somebody else writes the second quota between, and then the whole request is tried once more.
        for _ in 0..3 {
            let quotas = plugin.objects.list(place).await.expect("they are listed");
            let before: Vec<Value> = quotas.iter().map(|quota| charges.refunded(quota)).collect();
            let charged = quota::charge(&before, &request).expect("it fits");
            plugin.write(place, (&quotas, before, charged), &charges).await.expect("they are written");
        }
        let used = |quota: &Value| quota.str_at(&["status", "used", "pods"]).to_owned();
        assert_eq!(stored.0.lock().expect("nothing panics").iter().map(used).collect::<Vec<_>>(), ["2", "1"]);
    }
}
