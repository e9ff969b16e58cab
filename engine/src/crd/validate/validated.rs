//! Schemas that were validated, with their verdicts.
//!
//! Input: a schema, and what else its verdict depends on. Output: the verdict, which is reused for the same input: an
//! editor asks at every keystroke, which changes at most one schema of a definition.

use std::sync::Arc;

use super::expressions::SchemaCosts;
use super::options::ValidationOptions;
use crate::meta::field::{ErrorList, Path};
use crate::meta::minor::Minor;
use crate::schema::json_schema::JsonSchema;
use crate::schema::structural::Structural;

/// The verdict on a schema.
#[derive(Debug)]
pub struct SchemaVerdict {
    /// The errors of the schema.
    pub errors: ErrorList,
    /// The costs of its rules; `None` if they could not be compiled.
    pub costs: Option<SchemaCosts>,
    /// The structural schema as it is served, if it is well formed and was asked for.
    pub structural: Option<Arc<Structural>>,
}

/// The schemas of a definition, with their verdicts.
#[derive(Clone, Debug, Default)]
pub struct Validated {
    schemas: Vec<ValidatedSchema>,
    made: usize,
    /// The verdicts from the previous validation, to be reused.
    before: Arc<[ValidatedSchema]>,
}

#[derive(Clone, Debug)]
struct ValidatedSchema {
    schema: Arc<JsonSchema>,
    given: VerdictInputs,
    verdict: Arc<SchemaVerdict>,
}

/// What the verdict on a schema of a new definition depends on beside the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VerdictInputs {
    path: String,
    has_status: bool,
    requires_structural: bool,
    minor: Minor,
}

impl Validated {
    /// Starts the validation of a new definition that was validated `before`.
    pub(super) fn after(before: &Validated) -> Self {
        Validated { before: before.schemas.as_slice().into(), ..Validated::default() }
    }

    /// Drops the verdicts from before.
    pub(super) fn alone(self) -> Self {
        Validated { before: Arc::default(), ..self }
    }

    /// The errors of `schema`; calls `validate` unless the same was validated before.
    pub(super) fn errors_of(
        &mut self,
        schema: &Arc<JsonSchema>,
        has_status: bool,
        options: &ValidationOptions,
        path: &Path<'_>,
        validate: impl FnOnce() -> SchemaVerdict,
    ) -> ErrorList {
        let given = VerdictInputs {
            path: path.to_string(),
            has_status,
            requires_structural: options.require_structural,
            minor: options.minor,
        };
        let is_same = |known: &&ValidatedSchema| known.given == given && known.schema == *schema;
        let verdict = match self.before.iter().find(is_same) {
            Some(known) => Arc::clone(&known.verdict),
            None => {
                self.made += 1;
                Arc::new(validate())
            }
        };
        let errors = verdict.errors.clone();
        self.schemas.push(ValidatedSchema { schema: Arc::clone(schema), given, verdict });
        errors
    }

    /// The number of schemas that were validated and not reused.
    pub fn made(&self) -> usize {
        self.made
    }

    /// The costs of the rules, by schema.
    pub fn costs(&self) -> impl Iterator<Item = &SchemaCosts> {
        self.schemas.iter().filter_map(|known| known.verdict.costs.as_ref())
    }

    /// The structural schema that was made of this one.
    pub fn structural(&self, schema: &Arc<JsonSchema>) -> Option<&Arc<Structural>> {
        let known = self.schemas.iter().find(|known| Arc::ptr_eq(&known.schema, schema))?;
        known.verdict.structural.as_ref()
    }

    /// The costs of the rules, without the rest.
    pub(super) fn into_costs(self) -> Vec<SchemaCosts> {
        // Nothing else holds references to these verdicts.
        self.schemas.into_iter().filter_map(|known| Arc::into_inner(known.verdict)?.costs).collect()
    }
}
