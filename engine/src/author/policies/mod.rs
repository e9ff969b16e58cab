//! What policies would say to requests, without a server.
//!
//! Input: policies, bindings and parameters as manifests, and a request: an object, what it was before, who asks.
//! Output: the object as mutating policies leave it, the refusal, warnings and audit annotations, and what each
//! expression came to. Policies are asked as by a server: mutating ones before the object is validated, validating ones
//! after that.
//!
//! Beside that: what the expressions of a policy may cost ([`price`]), and what is odd about policies ([`lint`]).
//!
//! What a policy decides is [`crate::policy`]; what `admission::policies` looks up in a store is looked up here among the
//! manifests. A policy without a binding does nothing, as in a cluster.

mod target;
mod set;
mod lookup;
mod mutate;
mod validate;
pub mod admit;
pub mod coverage;
pub mod case;
pub mod price;
pub mod lint;
mod read;

use std::sync::Arc;

use crate::author::{Catalog, PartValue};
use crate::cel::env::Expressions;
use crate::cel::library::authorizer::{CheckedResource, RuleAuthorizer};
use crate::object;
use crate::policy::request::{AdmissionRequest, GroupVersionName};
use crate::policy::{Head, Operation, PolicyInput};
use crate::value::Value;

pub(crate) use read::{expressions_of, served};
pub use set::{Policies, is_policy};
pub use target::PolicyTarget;

/// The user that sends the request.
#[derive(Clone)]
pub struct RequestUser {
    /// A UserInfo of `authentication.k8s.io/v1`.
    pub user: Value,
    /// What the variable `authorizer` of expressions asks.
    pub authorizer: Arc<dyn RuleAuthorizer>,
}

/// A request. Its object comes beside it, as it changes on the way.
#[derive(Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// What it is about.
    pub target: &'a PolicyTarget,
    /// What it does.
    pub operation: Operation,
    /// Null where there was none.
    pub old: &'a Value,
    /// Empty where it is still to be generated.
    pub name: &'a str,
    /// That of the object; empty for cluster scope.
    pub namespace: &'a str,
    /// The user that sends the request.
    pub request_user: &'a RequestUser,
    /// The kinds of definitions.
    pub catalog: &'a Catalog,
    /// Where manifests are that name no namespace; empty for `default`.
    pub home: &'a str,
    /// Parameters and namespaces that go before those among the manifests.
    pub beside: &'a [Value],
}

/// What came of an expression of a policy.
#[derive(Clone, Copy)]
pub struct Note<'n> {
    /// The kind and the name of the policy.
    pub policy: (&'static str, &'n str),
    /// Which expression.
    pub place: PolicyExpression,
    /// What it came to.
    pub outcome: PolicyOutcome,
    /// The policy itself.
    pub head: &'n Head,
    /// What the expression saw.
    pub input: &'n PolicyInput<'n>,
}

impl Note<'_> {
    /// What the parts of the expression came to, whose text is `text`.
    pub fn parts(&self, text: &str) -> Vec<PartValue> {
        let env = self.head.environment();
        match self.place {
            PolicyExpression::Condition(_) => {
                let input = PolicyInput { namespace: &Value::Null, ..self.input.clone() };
                self.head.parts(text, &env, &input)
            }
            PolicyExpression::Variable(_) | PolicyExpression::Validation(_) => self.head.parts(text, &env, self.input),
            PolicyExpression::Message(_) | PolicyExpression::Annotation(_) => {
                let env = self.head.declared.without_authorizer().environment(Expressions::Stored);
                self.head.parts(text, &env, &PolicyInput { authorizer: None, ..self.input.clone() })
            }
            PolicyExpression::Mutation(_) => self.head.parts(text, &env.with_mutations(), self.input),
        }
    }
}

/// An expression of a policy: which of them, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyExpression {
    /// One of its match conditions.
    Condition(usize),
    /// One of its variables.
    Variable(usize),
    /// One of its validations.
    Validation(usize),
    /// The expression of a validation's message.
    Message(usize),
    /// The value of one of its audit annotations.
    Annotation(usize),
    /// One of its mutations.
    Mutation(usize),
}

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyOutcome {
    /// It was true; a mutation changed the object; what makes a text made one; a variable had a value.
    Held,
    /// It was false; a mutation left the object as it was; what makes a text made none that is used.
    Failed,
    /// It ended in an error.
    Broke,
}

/// A receiver of what expressions evaluate to.
pub type Tell<'t> = &'t mut dyn FnMut(Note<'_>);

impl PolicyOutcome {
    fn of(outcome: Result<bool, impl Sized>) -> Self {
        match outcome {
            Ok(true) => PolicyOutcome::Held,
            Ok(false) => PolicyOutcome::Failed,
            Err(_) => PolicyOutcome::Broke,
        }
    }
}

/// Tells what each match condition of a policy comes to.
fn note_conditions(policy: (&'static str, &str), head: &Head, input: &PolicyInput<'_>, tell: Tell<'_>) {
    for (at, outcome) in head.condition_outcomes(input).into_iter().enumerate() {
        tell(Note { policy, place: PolicyExpression::Condition(at), outcome: PolicyOutcome::of(outcome), head, input });
    }
}

/// Tells which variables of a policy were read.
fn note_variables(
    policy: (&'static str, &str),
    head: &Head,
    input: &PolicyInput<'_>,
    read: Vec<(usize, bool)>,
    tell: Tell<'_>,
) {
    for (at, has_value) in read {
        let outcome = if has_value { PolicyOutcome::Held } else { PolicyOutcome::Broke };
        tell(Note { policy, place: PolicyExpression::Variable(at), outcome, head, input });
    }
}

impl<'a> PolicyRequest<'a> {
    /// The namespace; of a namespace its own name, as paths have it.
    fn namespace_or_own(&self) -> &'a str {
        if self.target.is_namespaces() { self.name } else { self.namespace }
    }

    /// The AdmissionRequest without its objects, with the version that rules matched.
    fn encode(&self, matched: &crate::crd::ServedVersion) -> Value {
        let own = &self.target.version;
        let (kind, request_kind) = (self.target.kind_in(matched), self.target.kind_in(own));
        let resource = |version: &'_ crate::crd::ServedVersion| {
            (version.group.clone(), version.version.clone(), version.names.plural.clone())
        };
        let (resource, request_resource) = (resource(matched), resource(own));
        let name = |(group, version, name): &'_ (String, String, String)| -> [String; 3] {
            [group.clone(), version.clone(), name.clone()]
        };
        let names = [name(&kind), name(&resource), name(&request_kind), name(&request_resource)];
        let at = |index: usize| GroupVersionName {
            group: &names[index][0],
            version: &names[index][1],
            name: &names[index][2],
        };
        let options = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
            Operation::Connect => "",
        };
        let options = match options {
            "" => Value::Null,
            kind => object! { "kind" => kind, "apiVersion" => "meta.k8s.io/v1" },
        };
        AdmissionRequest {
            kind: at(0),
            resource: at(1),
            request_kind: at(2),
            request_resource: at(3),
            subresource: &self.target.subresource,
            name: self.name,
            namespace: self.namespace_or_own(),
            operation: self.operation,
            user: &self.request_user.user,
            dry_run: false,
            options: &options,
        }
        .encode()
    }

    /// What `authorizer.requestResource` stands for.
    fn resource(&self) -> CheckedResource {
        CheckedResource {
            group: self.target.version.group.clone(),
            resource: self.target.version.names.plural.clone(),
            subresource: self.target.subresource.clone(),
            namespace: self.namespace_or_own().to_owned(),
            name: self.name.to_owned(),
            ..CheckedResource::default()
        }
    }
}

/// What expressions see of a request in the version that rules matched.
struct MatchedRequest {
    object: Value,
    old: Value,
    request: Value,
    namespace: Value,
    resource: CheckedResource,
}

impl MatchedRequest {
    fn input<'i>(&'i self, asked: &PolicyRequest<'_>, params: &'i Value) -> PolicyInput<'i> {
        PolicyInput {
            object: &self.object,
            old_object: &self.old,
            request: &self.request,
            namespace: &self.namespace,
            params,
            authorizer: Some(Arc::clone(&asked.request_user.authorizer)),
            request_resource: &self.resource,
        }
    }
}

#[cfg(test)]
mod tests;
