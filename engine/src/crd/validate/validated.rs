//! Schemas that were validated, and what came of each.
//!
//! In: a schema, and what else its verdict depends on. Out: the verdict, which is made once for what is the same again: an
//! editor asks at every keystroke, and that changes one schema of a definition at most.

use std::sync::Arc;

use super::expressions::SchemaCosts;
use super::options::ValidationOptions;
use crate::meta::field::{ErrorList, Path};
use crate::meta::minor::Minor;
use crate::schema::json_schema::JsonSchema;
use crate::schema::structural::Structural;

/// What came of a schema.
#[derive(Debug)]
pub struct SchemaVerdict {
    /// What is wrong with it.
    pub errors: ErrorList,
    /// What its rules cost; `None` where they could not be compiled.
    pub costs: Option<SchemaCosts>,
    /// The structural schema as it is served, where it is well formed and was asked for.
    pub structural: Option<Arc<Structural>>,
}

/// The schemas of a definition, with what came of each.
#[derive(Clone, Debug, Default)]
pub struct Validated {
    schemas: Vec<ValidatedSchema>,
    made: usize,
    /// The schemas as they were before, while they are validated.
    before: Arc<[ValidatedSchema]>,
}

#[derive(Clone, Debug)]
struct ValidatedSchema {
    schema: Arc<JsonSchema>,
    given: VerdictInputs,
    verdict: Arc<SchemaVerdict>,
}

/// What the verdict on a schema of a new definition depends on beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct VerdictInputs {
    path: String,
    has_status: bool,
    requires_structural: bool,
    minor: Minor,
}

impl Validated {
    /// No schemas yet of a new definition that was validated before.
    pub(super) fn after(before: &Validated) -> Self {
        Validated { before: before.schemas.as_slice().into(), ..Validated::default() }
    }

    /// The same without what was before.
    pub(super) fn alone(self) -> Self {
        Validated { before: Arc::default(), ..self }
    }

    /// What is wrong with `schema`; `validate` is asked where the same was not validated before.
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

    /// How many of the schemas were looked at, and not known before.
    pub fn made(&self) -> usize {
        self.made
    }

    /// What the rules cost, by schema.
    pub fn costs(&self) -> impl Iterator<Item = &SchemaCosts> {
        self.schemas.iter().filter_map(|known| known.verdict.costs.as_ref())
    }

    /// The structural schema that was made of this one.
    pub fn structural(&self, schema: &Arc<JsonSchema>) -> Option<&Arc<Structural>> {
        let known = self.schemas.iter().find(|known| Arc::ptr_eq(&known.schema, schema))?;
        known.verdict.structural.as_ref()
    }

    /// What the rules cost, without the rest.
    pub(super) fn into_costs(self) -> Vec<SchemaCosts> {
        // Nothing else holds what was made for this.
        self.schemas.into_iter().filter_map(|known| Arc::into_inner(known.verdict)?.costs).collect()
    }
}
