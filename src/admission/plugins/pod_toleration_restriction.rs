//! `PodTolerationRestriction`: pods get the tolerations of their namespace's annotations, and may
//! have only those that the namespace allows.
//!
//! The configuration contains the tolerations for namespaces without these annotations.
//! Source: `plugin/pkg/admission/podtolerationrestriction`, release 1.37.

use std::sync::Arc;

use async_trait::async_trait;

use super::{is_about, namespace};
use crate::admission::configuration::{ConfigurationError, check_fields, check_type};
use crate::admission::{Admission, Attributes, Objects, Operation};
use crate::kinds::pod_object::namespace_tolerations::{self, ClusterTolerations, TolerationsError};
use crate::meta::Status;
use crate::value::Value;

const GROUP_VERSION: &str = "podtolerationrestriction.admission.k8s.io/v1alpha1";

pub struct PodTolerationRestriction {
    pub objects: Arc<dyn Objects>,
    pub cluster: ClusterTolerations,
}

/// Decodes the tolerations of a Configuration.
///
/// # Errors
///
/// The value is of another type, or has an unknown field.
pub fn cluster_tolerations(configuration: &Value) -> Result<ClusterTolerations, ConfigurationError> {
    const TOLERATION: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
    check_type(configuration, &[GROUP_VERSION], "Configuration")?;
    check_fields(configuration, "", &["apiVersion", "kind", "default", "whitelist"])?;
    let list = |field: &str| -> Result<Vec<Value>, ConfigurationError> {
        let items = match configuration.get(field) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(ConfigurationError::Type { path: field.to_owned(), wanted: "a list" }),
        };
        for (at, toleration) in items.iter().enumerate() {
            check_fields(toleration, &format!("{field}[{at}]"), &TOLERATION)?;
        }
        Ok(items.clone())
    };
    Ok(ClusterTolerations { default: list("default")?, allowed: list("whitelist")? })
}

#[async_trait]
impl Admission for PodTolerationRestriction {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if !is_concerned(attributes) {
            return Ok(());
        }
        let namespace = namespace(&*self.objects, attributes).await?;
        let is_new = attributes.operation == Operation::Create;
        namespace_tolerations::admit(object, &namespace, &self.cluster, is_new).map_err(refused)?;
        namespace_tolerations::validate(object, &namespace, &self.cluster).map_err(refused)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if !is_concerned(attributes) {
            return Ok(());
        }
        let namespace = namespace(&*self.objects, attributes).await?;
        namespace_tolerations::validate(object, &namespace, &self.cluster).map_err(refused)
    }
}

fn is_concerned(attributes: &Attributes<'_>) -> bool {
    attributes.operation != Operation::Delete && is_about(attributes, "", "pods")
}

/// In Kubernetes this is an error without a code.
fn refused(why: TolerationsError) -> Status {
    Status::plain(500, &why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn a_configuration_has_lists_of_tolerations() {
        let read = |rest: &str| {
            let text = format!("{{apiVersion: {GROUP_VERSION}, kind: Configuration, {rest}}}");
            let value = yaml::decode(text.as_bytes()).expect("the test is YAML");
            cluster_tolerations(&value).map_err(|error| error.to_string())
        };
        let found =
            read("default: [{key: a, operator: Exists}], whitelist: [{key: a}, {key: b}]").expect("it is valid");
        assert_eq!((found.default.len(), found.allowed.len()), (1, 2));
        assert_eq!(read("default: a"), Err("default is not a list".to_owned()));
        assert_eq!(
            read("whitelist: [{name: a}]"),
            Err("strict decoding error: unknown field \"whitelist[0].name\"".to_owned())
        );
        assert!(cluster_tolerations(&Value::Null).is_err());
    }
}
