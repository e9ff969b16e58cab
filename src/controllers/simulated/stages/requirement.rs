//! The requirements of a stage for its objects.

use crate::controllers::simulated::query::Query;
use crate::value::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Requirement {
    pub of: Query,
    pub operator: Operator,
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Requirement {
    pub fn holds(&self, object: &Value) -> bool {
        let found = self.of.texts(object);
        let is_in = || found.iter().any(|text| self.values.contains(text));
        match self.operator {
            Operator::In => is_in(),
            Operator::NotIn => !is_in(),
            Operator::Exists => !found.is_empty(),
            Operator::DoesNotExist => found.is_empty(),
        }
    }
}
