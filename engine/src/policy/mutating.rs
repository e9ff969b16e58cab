//! A MutatingAdmissionPolicy: what it makes of an object.
//!
//! A mutation sees what those before it made of the object, and has a budget and variables of its own. Where one fails, the
//! others are made all the same; what becomes of the request is the failure policy's to say.
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

/// A policy, compiled.
#[derive(Debug)]
pub struct Mutating {
    /// What all policies have.
    pub head: Head,
    /// The mutations, in their order.
    pub mutations: Vec<Mutation>,
    /// Whether it is asked again where others have changed the object since.
    pub is_reinvoked: bool,
}

/// One mutation of a policy.
#[derive(Debug)]
pub struct Mutation {
    patch_type: MutationType,
    expression: Expression,
}

/// How an object is merged, and printed.
#[derive(Clone, Copy)]
pub struct ObjectForm<'f> {
    /// The types of the object's kind; `None` where none are published.
    pub types: Option<&'f TypeSchema>,
    /// Fields in the order that Go has them.
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
    /// Which variables `mutation`, one of the policy, reads for a request, and whether they have a value, for those who look at
    /// how they were written.
    pub fn variables_read(&self, mutation: &Mutation, input: &PolicyInput<'_>) -> Vec<(usize, bool)> {
        let mut activation = self.head.activation(input, BUDGET);
        // What came of the mutation is asked elsewhere.
        let _ = activation.evaluate(&mutation.expression);
        activation.read()
    }

    /// What `mutation`, one of the policy, makes of the object of `input`; `None` where it leaves it as it is.
    ///
    /// # Errors
    /// Why it does not apply, in the words of Kubernetes; or it makes more than is stored of an object.
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
