//! A MutatingAdmissionPolicy: how it changes an object.
//!
//! A mutation sees the result of those before it, and has its own budget and variables. If one fails, the others are
//! still applied; the failure policy decides about the request.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating`, release 1.37.

use super::evaluation::{BUDGET, OUT_OF_BUDGET, OutOfBudget, PolicyInput};
use super::expression::Expression;
use super::mutation::{Misread, Mutated, MutationType, apply_configuration, check_size, check_value, json_patch};
use super::{Head, Policy};
use crate::apply::TypeSchema;
use crate::cel::env::Env;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::value::json::Layout;

/// A compiled policy.
#[derive(Debug)]
pub struct Mutating {
    /// The part that all policies have.
    pub head: Head,
    /// The mutations, in order.
    pub mutations: Vec<Mutation>,
    /// Whether it is evaluated again if later plugins changed the object.
    pub is_reinvoked: bool,
}

/// One mutation of a policy.
#[derive(Debug)]
pub struct Mutation {
    patch_type: MutationType,
    expression: Expression,
}

/// The types for merging an object, and the layout for printing it.
#[derive(Clone, Copy)]
pub struct ObjectForm<'f> {
    /// The types of the object's kind; `None` if none are published.
    pub types: Option<&'f TypeSchema>,
    /// The order of fields in Go.
    pub layout: Layout,
}

impl Policy for Mutating {
    const POLICIES: &'static str = "mutatingadmissionpolicies";
    const BINDINGS: &'static str = "mutatingadmissionpolicybindings";

    fn decode(policy: &Value, minor: Minor) -> Self {
        let head = Head::decode(policy, minor);
        let env = head.environment().with_mutations();
        let mutations = policy.items_at(&["spec", "mutations"]).iter();
        Mutating {
            mutations: mutations.filter_map(|mutation| Mutation::decode(mutation, &env)).collect(),
            is_reinvoked: policy.str_at(&["spec", "reinvocationPolicy"]) == "IfNeeded",
            head,
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn expression_bytes(&self) -> usize {
        let mutations: usize = self.mutations.iter().map(|mutation| mutation.expression.bytes()).sum();
        self.head.expression_bytes() + mutations
    }
}

impl Mutation {
    fn decode(mutation: &Value, env: &Env) -> Option<Self> {
        let patch_type = MutationType::named(mutation.str_at(&["patchType"]))?;
        let text = mutation.str_at(&[patch_type.field(), "expression"]).to_owned();
        let program = patch_type.compile(&text, env);
        Some(Mutation { patch_type, expression: Expression { text, program } })
    }
}

impl Mutating {
    /// The variables that `mutation`, one of the policy, uses for a request, and whether each has a value, for tools
    /// that debug policies.
    pub fn variables_read(&self, mutation: &Mutation, input: &PolicyInput<'_>) -> Vec<(usize, bool)> {
        let mut activation = self.head.activation(input, BUDGET);
        // The result of the mutation is not needed here.
        let _ = activation.evaluate(&mutation.expression);
        activation.read()
    }

    /// Applies `mutation`, one of the policy, to the object of `input`. Returns `None` if it is unchanged.
    ///
    /// # Errors
    /// Why it does not apply, with Kubernetes' message; or that the result is too large to be stored.
    pub fn mutate(
        &self,
        mutation: &Mutation,
        input: &PolicyInput<'_>,
        form: ObjectForm<'_>,
    ) -> Result<Option<Mutated>, Misread> {
        if let Err(error) = &mutation.expression.program {
            return Err(Misread::Fault(error.to_string()));
        }
        let mut activation = self.head.activation(input, BUDGET);
        let value = match activation.evaluate(&mutation.expression) {
            Ok(value) => value.map_err(|error| Misread::Fault(error.to_string()))?,
            Err(OutOfBudget) => return Err(Misread::Fault(OUT_OF_BUDGET.to_owned())),
        };
        check_value(&value)?;
        let mutated = match mutation.patch_type {
            MutationType::ApplyConfiguration => {
                apply_configuration::merge(&value, input.object, form.types).map(|object| Some(Mutated::Merged(object)))
            }
            MutationType::JsonPatch => {
                json_patch::apply(&value, input.object, form.layout).map(|patched| patched.map(Mutated::Patched))
            }
        };
        mutated.map_err(|error| Misread::Fault(error.to_string()))?.map(check_size).transpose()
    }
}
