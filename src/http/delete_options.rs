//! DeleteOptions, from the query or from a body, and Go's errors for those that can't be decoded.
//!
//! Source: `metav1.DeleteOptions` and its validation, release 1.37; answers recorded from apiserver 1.37.

use super::query::{Query, QueryError, check, dry_run_errors, texts};
use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::api_version::{ApiVersionError, split_api_version};
use crate::meta::field::{self, ErrorList, Path};
use crate::meta::scheme::SchemeError;
use crate::meta::type_meta::{TypeMetaError, type_meta};
use crate::meta::unmarshal::UnmarshalError;
use crate::object;
use crate::protobuf;
use crate::registry::{not_registered_for_options, policy_errors};
use crate::value::{Map, Value, json, json_type, yaml};
use crate::work;

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub orphan_dependents: Option<bool>,
    pub propagation_policy: Option<String>,
    pub dry_run: Vec<String>,
    pub precondition_uid: Option<String>,
    pub precondition_resource_version: Option<String>,
    /// Whether a body has preconditions at all, even empty ones.
    pub has_preconditions: bool,
    pub ignore_store_read_error: Option<bool>,
}

/// The kind of the options, which is also the name of their Go struct.
const KIND: &str = "DeleteOptions";

/// Why a body is not [`DeleteOptions`], in Go's words.
#[derive(Debug, thiserror::Error)]
pub enum DeleteOptionsError {
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(#[from] json::JsonError),
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error(transparent)]
    Protobuf(#[from] protobuf::ProtobufError),
    #[error(transparent)]
    TypeMeta(#[from] TypeMetaError),
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    #[error(transparent)]
    Kind(#[from] SchemeError),
    /// It is of another kind that the scheme of the options also has.
    #[error("converting ({version}.{kind}) to (v1.DeleteOptions): unknown conversion")]
    Conversion { version: &'static str, kind: String },
    /// A field has a value of another type.
    #[error(transparent)]
    Field(#[from] UnmarshalError),
}

/// Why a body of another kind is refused as options, in a request for an object of the version `of`: the scheme of the
/// options has some kinds in every group, and others only in their own.
fn of_another_kind(api_version: &str, kind: &str, of: &ServedVersion) -> DeleteOptionsError {
    const IN_EVERY_GROUP: [&str; 7] =
        ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "CreateOptions", "Status", "UpdateOptions"];
    const IN_ITS_OWN: [&str; 4] = ["GetOptions", "ListOptions", "PatchOptions", "WatchEvent"];
    const IN_BOTH_OF_ITS_OWN: [&str; 4] =
        ["PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"];
    let known = |version| DeleteOptionsError::Conversion { version, kind: kind.to_owned() };
    // If no version is given, it is that of the options.
    let api_version = if api_version.is_empty() { "meta.k8s.io/v1" } else { api_version };
    match api_version {
        _ if IN_EVERY_GROUP.contains(&kind) => known("v1"),
        "meta.k8s.io/v1" if IN_ITS_OWN.contains(&kind) || IN_BOTH_OF_ITS_OWN.contains(&kind) => known("v1"),
        // The others are Go's v1 types in that version, too.
        "meta.k8s.io/v1beta1" if kind == "PartialObjectMetadataList" => known("v1beta1"),
        "meta.k8s.io/v1beta1" if IN_BOTH_OF_ITS_OWN.contains(&kind) => known("v1"),
        _ => not_registered_for_options(of, kind, api_version).into(),
    }
}

impl DeleteOptions {
    /// Decodes the options of a DELETE without a body.
    pub fn decode(query: &Query) -> Result<Self, QueryError> {
        let non_empty = |name| query.first(name).filter(|value| !value.is_empty()).map(str::to_owned);
        Ok(DeleteOptions {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            orphan_dependents: query.flag("orphanDependents"),
            propagation_policy: query.first("propagationPolicy").map(str::to_owned),
            dry_run: query.list("dryRun"),
            precondition_uid: non_empty("uid"),
            precondition_resource_version: non_empty("resourceVersion"),
            has_preconditions: ["uid", "resourceVersion"].into_iter().any(|name| non_empty(name).is_some()),
            ignore_store_read_error: query.flag("ignoreStoreReadErrorWithClusterBreakingPotential"),
        })
    }

    /// Decodes a `DeleteOptions` object.
    pub fn from_body(body: &Value, of: &ServedVersion) -> Result<Self, DeleteOptionsError> {
        let (api_version, kind) = type_meta(body)?;
        split_api_version(&api_version)?;
        // The options are in every group and version.
        if !matches!(kind.as_str(), "" | "DeleteOptions") {
            return Err(of_another_kind(&api_version, &kind, of));
        }
        let preconditions = body.get("preconditions");
        if let Some(other) = preconditions.filter(|value| !matches!(value, Value::Object(_) | Value::Null)) {
            return Err(mismatch(other, (KIND, "preconditions"), "v1.Preconditions").into());
        }
        let flag = |name: &str| match body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(mismatch(other, (KIND, name), "bool")),
        };
        let dry_run = match body.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| {
                    work::step();
                    match item {
                        Value::String(text) => Ok(text.clone()),
                        Value::Null => Ok(String::new()),
                        other => Err(mismatch(other, (KIND, "dryRun"), "string")),
                    }
                })
                .collect::<Result<_, _>>()?,
            Some(other) => return Err(mismatch(other, (KIND, "dryRun"), "[]string").into()),
        };
        Ok(DeleteOptions {
            grace_period_seconds: match body.get("gracePeriodSeconds") {
                None | Some(Value::Null) => None,
                Some(Value::Int(seconds)) => Some(*seconds),
                Some(fraction @ Value::Float(_)) => {
                    let number = format!("number {}", json::encode_to_string(fraction));
                    return Err(UnmarshalError::of_type(number, "int64").below(KIND, "gracePeriodSeconds").into());
                }
                Some(other) => return Err(mismatch(other, (KIND, "gracePeriodSeconds"), "int64").into()),
            },
            orphan_dependents: flag("orphanDependents")?,
            propagation_policy: text_field(Some(body), (KIND, "propagationPolicy"), "v1.DeletionPropagation")?,
            dry_run,
            precondition_uid: text_field(preconditions, ("Preconditions", "uid"), "types.UID")?,
            precondition_resource_version: text_field(preconditions, ("Preconditions", "resourceVersion"), "string")?,
            has_preconditions: matches!(preconditions, Some(Value::Object(_))),
            ignore_store_read_error: flag("ignoreStoreReadErrorWithClusterBreakingPotential")?,
        })
    }

    /// The fields as admission sees them.
    pub fn encode(&self) -> Value {
        let mut options = object! {};
        let fields = options.make_object();
        if let Some(seconds) = self.grace_period_seconds {
            fields.insert("gracePeriodSeconds", Value::Int(seconds));
        }
        if self.has_preconditions {
            let mut preconditions = Map::new();
            let given = [("uid", &self.precondition_uid), ("resourceVersion", &self.precondition_resource_version)];
            for (name, text) in given {
                if let Some(text) = text {
                    preconditions.insert(name, Value::from(text.as_str()));
                }
            }
            fields.insert("preconditions", Value::Object(preconditions));
        }
        if let Some(policy) = &self.propagation_policy {
            fields.insert("propagationPolicy", Value::from(policy.as_str()));
        }
        let flags = [
            ("orphanDependents", self.orphan_dependents),
            ("ignoreStoreReadErrorWithClusterBreakingPotential", self.ignore_store_read_error),
        ];
        for (name, flag) in flags {
            if let Some(flag) = flag {
                fields.insert(name, Value::Bool(flag));
            }
        }
        if !self.dry_run.is_empty() {
            fields.insert("dryRun", texts(&self.dry_run));
        }
        options
    }

    /// The object in a protobuf body. The type is looked at before the options are.
    pub fn open(body: &[u8], of: &ServedVersion) -> Result<Value, DeleteOptionsError> {
        let envelope = protobuf::open(body)?;
        let mut options = object! { "apiVersion" => envelope.api_version, "kind" => envelope.kind };
        Self::from_body(&options, of)?;
        let message = kinds::delete_options();
        if let Value::Object(fields) = protobuf::decode(message, envelope.raw)? {
            fields.into_iter().for_each(|(name, value)| _ = options.make_object().insert(name, value));
        }
        Ok(options)
    }

    /// Checks values, and which options go together.
    pub fn validate(&self) -> Result<(), QueryError> {
        let mut errors = policy_errors(self.propagation_policy.as_deref(), self.orphan_dependents);
        errors.extend(dry_run_errors(&self.dry_run));
        errors.extend(self.ignore_store_read_errors());
        check("DeleteOptions", errors)
    }

    fn ignore_store_read_errors(&self) -> ErrorList {
        if self.ignore_store_read_error != Some(true) {
            return ErrorList::new();
        }
        let path = Path::new("ignoreStoreReadErrorWithClusterBreakingPotential");
        [
            (self.propagation_policy.is_some(), "cannot be set together with .propagationPolicy"),
            (self.orphan_dependents.is_some(), "cannot be set together with .orphanDependents"),
            (self.grace_period_seconds.is_some(), "cannot be set together with .gracePeriodSeconds"),
            (self.has_preconditions, "cannot be set together with .preconditions"),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, detail)| field::Error::invalid(&path, true, detail))
        .collect()
    }
}

/// A field of a struct of Go: the name of the struct, and that of the field.
type GoField<'f> = (&'f str, &'f str);

fn text_field(object: Option<&Value>, field: GoField<'_>, go_type: &str) -> Result<Option<String>, UnmarshalError> {
    match object.and_then(|object| object.get(field.1)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mismatch(other, field, go_type)),
    }
}

fn mismatch(found: &Value, (structure, field): GoField<'_>, go_type: &str) -> UnmarshalError {
    UnmarshalError::of_type(json_type(found), go_type).below(structure, field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> ServedVersion {
        kinds::find("", "pods").expect("the kind is there").served_version()
    }

    #[test]
    fn a_body_of_another_kind_holds_no_options() {
        let check = |api_version: &str, kind: &str, expect: &str| {
            let body = crate::object! { "apiVersion" => api_version, "kind" => kind };
            let told = DeleteOptions::from_body(&body, &pods()).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), Some(expect));
        };
        let unknown = |kind: &str, api_version: &str| {
            let scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
            format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{scheme}\"")
        };
        let known = |kind: &str| format!("converting ({kind}) to (v1.DeleteOptions): unknown conversion");
        check("v1", "Pod", &unknown("Pod", "v1"));
        check("", "Pod", &unknown("Pod", "meta.k8s.io/v1"));
        check("v1", "ListOptions", &unknown("ListOptions", "v1"));
        check("apps/v1", "Status", &known("v1.Status"));
        check("meta.k8s.io/v1", "ListOptions", &known("v1.ListOptions"));
        check("meta.k8s.io/v1beta1", "Table", &known("v1.Table"));
        check("meta.k8s.io/v1beta1", "PartialObjectMetadataList", &known("v1beta1.PartialObjectMetadataList"));
        check("meta.k8s.io/v1beta1", "ListOptions", &unknown("ListOptions", "meta.k8s.io/v1beta1"));
        assert!(DeleteOptions::from_body(&crate::object! { "kind" => "DeleteOptions" }, &pods()).is_ok());
    }

    #[test]
    fn delete_options_of_a_wrong_type_err_as_go_does() {
        let body = crate::object! { "gracePeriodSeconds" => "x" };
        let expected =
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64";
        assert_eq!(DeleteOptions::from_body(&body, &pods()).expect_err("it is a text").to_string(), expected);
    }

    #[test]
    fn a_propagation_policy_is_one_of_three() {
        let options = DeleteOptions::decode(&Query::parse("propagationPolicy=Sideways")).expect("it decodes");
        let expected = r#"propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil""#;
        let Err(QueryError::Invalid { errors, .. }) = options.validate() else { panic!("it is refused") };
        assert_eq!(errors.aggregate(), expected);
    }
}
