//! What is wrong with a stage.

use crate::controllers::simulated::query::QueryError;
use crate::controllers::simulated::template::TemplateError;
use crate::value::yaml;

/// A stage that is invalid, or can't be carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the stage `{stage}`: {fault}")]
pub struct StageError {
    pub stage: String,
    #[source]
    pub fault: StageFault,
}

/// What is wrong with a stage.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StageFault {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("its template makes no YAML: {0}")]
    Yaml(#[from] yaml::YamlError),
    #[error("expressions in CEL are not understood, but those in jq")]
    Cel,
    #[error("the operator `{0}` is not one of In, NotIn, Exists and DoesNotExist")]
    Operator(String),
    #[error("a step that applies other objects is not understood")]
    Apply,
    #[error("a patch of the subresource `{0}` is not understood")]
    Subresource(String),
    #[error("`resourceRef` names no kind")]
    Kind,
    #[error("the `apiGroup` of `resourceRef` is to name a version, as `apps/v1` does, and `{0}` names none")]
    Version(String),
    #[error("the type of a patch `{0}` is not one of json, merge and strategic")]
    PatchType(String),
}
