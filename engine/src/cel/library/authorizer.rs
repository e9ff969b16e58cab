//! Authorization checks, which the host answers.
//!
//! Source: `k8s.io/apiserver/pkg/cel/library/authz.go`, release 1.37.

use std::fmt::Debug;
use std::sync::Arc;

use super::arguments::{opaque, text};
use super::since;
use crate::cel::cost::{Cost, Estimate, Range, actual, model};
use crate::cel::eval::value::Opaque;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Implementation, Overload};
use crate::cel::types::Type::{self, Bool};
use crate::meta::names;

/// Decides what a user may do.
pub trait RuleAuthorizer: Debug + Send + Sync {
    /// Whether this authorizer's user may do what `check` describes.
    fn decide(&self, check: &AuthorizerCheck) -> AuthorizerAnswer;

    /// The authorizer for a service account.
    fn service_account(&self, namespace: &str, name: &str) -> Arc<dyn RuleAuthorizer>;
}

/// What a check asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorizerCheck {
    /// Access to a path that is not a resource's.
    Path {
        /// The verb, in lower case: `get`.
        verb: String,
        /// The path: `/healthz`.
        path: String,
    },
    /// Access to a resource.
    Resource {
        /// The verb: `list`.
        verb: String,
        /// The resource.
        resource: CheckedResource,
    },
}

/// A resource that a check is about; parts that are not given are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource's name in the path: `pods`.
    pub resource: String,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// The namespace; empty for all namespaces, or for cluster-scoped resources.
    pub namespace: String,
    /// The object's name; empty for all objects.
    pub name: String,
    /// The field selector, not parsed; empty for none. One that can't be parsed does not limit the check.
    pub field_selector: String,
    /// The label selector, likewise.
    pub label_selector: String,
}

/// The answer to a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerAnswer {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// The reason; may be empty.
    pub reason: String,
    /// The error that occurred while deciding; usually empty.
    pub error: String,
}

/// The value of the variable `authorizer`.
pub fn authorizer<'a>(authorizer: Arc<dyn RuleAuthorizer>) -> Value<'a> {
    Value::opaque(Whole(authorizer))
}

/// The value of the variable `authorizer.requestResource`.
pub fn request_resource<'a>(authorizer: Arc<dyn RuleAuthorizer>, resource: CheckedResource) -> Value<'a> {
    Value::opaque(ResourceCheck { authorizer, resource })
}

/// The type `kubernetes.authorization.NAME`.
pub fn type_of(name: &str) -> Type {
    Type::object(&format!("kubernetes.authorization.{name}"))
}

/// An authorization check is expensive, so that an expression makes few of them.
const CHECK: Cost = Cost::of_name(|_| Estimate::of(Range::fixed(CHECK_COST)), |_| CHECK_COST);
const CHECK_COST: u64 = 350_000;

/// A selector is parsed into a list of its requirements.
const SELECTOR: Cost = Cost::of_name(
    |sizes| {
        let size = sizes.size(1);
        let requirements = size.scale(REQUIREMENTS_PER_CHARACTER).scale(REQUIREMENT);
        let parsed = size.scale(model::TRAVERSAL);
        Estimate::of(requirements.plus(parsed).plus(Range::fixed(model::MAKE_LIST)))
    },
    |called| {
        let size = called.size(1);
        let requirements = actual::scale(size, REQUIREMENTS_PER_CHARACTER);
        let parsed = actual::scale(size, model::TRAVERSAL);
        actual::scale(requirements, REQUIREMENT).saturating_add(parsed).saturating_add(model::MAKE_LIST)
    },
);
const REQUIREMENTS_PER_CHARACTER: f64 = 0.5;
const REQUIREMENT: f64 = (model::MAKE_LIST + model::MAKE_STRUCT) as f64;

pub(super) fn functions() -> Vec<Function> {
    let checks = vec![
        Function::new(
            "allowed",
            [Overload::member("decision_allowed", [type_of("Decision")], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(decided(arguments)?.allowed))
            })],
        ),
        Function::new(
            "check",
            [
                Overload::member(
                    "pathcheck_check",
                    [type_of("PathCheck"), Type::String],
                    type_of("Decision"),
                    CHECK,
                    |_, arguments| {
                        let (of, verb) = (opaque::<PathCheck>(arguments, 0)?, text(arguments, 1)?.to_string());
                        let decision = of.authorizer.decide(&AuthorizerCheck::Path { verb, path: of.path.clone() });
                        Ok(Value::opaque(Decided(decision)))
                    },
                ),
                Overload::member(
                    "resourcecheck_check",
                    [type_of("ResourceCheck"), Type::String],
                    type_of("Decision"),
                    CHECK,
                    |_, arguments| {
                        let (of, verb) = (opaque::<ResourceCheck>(arguments, 0)?, text(arguments, 1)?.to_string());
                        let decision =
                            of.authorizer.decide(&AuthorizerCheck::Resource { verb, resource: of.resource.clone() });
                        Ok(Value::opaque(Decided(decision)))
                    },
                ),
            ],
        ),
        Function::new(
            "error",
            [Overload::member("decision_error", [type_of("Decision")], Type::String, Cost::One, |_, arguments| {
                Ok(Value::string(decided(arguments)?.error.as_str()))
            })],
        ),
        Function::new(
            "errored",
            [Overload::member("decision_errored", [type_of("Decision")], Bool, Cost::One, |_, arguments| {
                decided(arguments).map(|decision| Value::Bool(!decision.error.is_empty()))
            })],
        ),
        Function::new(
            "group",
            [Overload::member(
                "authorizer_group",
                [type_of("Authorizer"), Type::String],
                type_of("GroupCheck"),
                Cost::One,
                |_, arguments| {
                    let (Whole(authorizer), group) = (opaque(arguments, 0)?, text(arguments, 1)?.to_string());
                    Ok(Value::opaque(GroupCheck { authorizer: Arc::clone(authorizer), group }))
                },
            )],
        ),
        narrowing("name", "resourcecheck_name", |_, arguments| narrow(arguments, |resource| &mut resource.name)),
        narrowing("namespace", "resourcecheck_namespace", |_, arguments| {
            narrow(arguments, |resource| &mut resource.namespace)
        }),
        Function::new(
            "path",
            [Overload::member(
                "authorizer_path",
                [type_of("Authorizer"), Type::String],
                type_of("PathCheck"),
                Cost::One,
                |_, arguments| {
                    let (Whole(authorizer), path) = (opaque(arguments, 0)?, text(arguments, 1)?);
                    let path = not_blank(path, "path must not be empty")?;
                    Ok(Value::opaque(PathCheck { authorizer: Arc::clone(authorizer), path }))
                },
            )],
        ),
        Function::new(
            "reason",
            [Overload::member("decision_reason", [type_of("Decision")], Type::String, Cost::One, |_, arguments| {
                Ok(Value::string(decided(arguments)?.reason.as_str()))
            })],
        ),
        Function::new(
            "resource",
            [Overload::member(
                "groupcheck_resource",
                [type_of("GroupCheck"), Type::String],
                type_of("ResourceCheck"),
                Cost::One,
                |_, arguments| {
                    let of: &GroupCheck = opaque(arguments, 0)?;
                    let resource = not_blank(text(arguments, 1)?, "resource must not be empty")?;
                    let resource = CheckedResource { group: of.group.clone(), resource, ..CheckedResource::default() };
                    Ok(request_resource(Arc::clone(&of.authorizer), resource))
                },
            )],
        ),
        Function::new(
            "serviceAccount",
            [Overload::member(
                "authorizer_serviceaccount",
                [type_of("Authorizer"), Type::String, Type::String],
                type_of("Authorizer"),
                Cost::One,
                |_, arguments| {
                    let (namespace, name) = (text(arguments, 1)?, text(arguments, 2)?);
                    if !names::is_dns1123_subdomain(name).is_empty() {
                        return Err(EvalError::new("Invalid service account name"));
                    }
                    if !names::is_dns1123_label(namespace).is_empty() {
                        return Err(EvalError::new("Invalid service account namespace"));
                    }
                    let Whole(all) = opaque(arguments, 0)?;
                    Ok(authorizer(all.service_account(namespace, name)))
                },
            )],
        ),
        narrowing("subresource", "resourcecheck_subresource", |_, arguments| {
            narrow(arguments, |resource| &mut resource.subresource)
        }),
    ];
    let selectors = vec![
        selecting("fieldSelector", "authorizer_fieldselector", |_, arguments| {
            narrow(arguments, |resource| &mut resource.field_selector)
        }),
        selecting("labelSelector", "authorizer_labelselector", |_, arguments| {
            narrow(arguments, |resource| &mut resource.label_selector)
        }),
    ];
    [since(27, checks), since(31, selectors)].concat()
}

/// Declares a function that sets a part of a check's resource.
fn narrowing(name: &'static str, id: &'static str, run: Implementation) -> Function {
    let check = || type_of("ResourceCheck");
    Function::new(name, [Overload::member(id, [check(), Type::String], check(), Cost::One, run)])
}

/// Declares a function that sets a selector of a check.
fn selecting(name: &'static str, id: &'static str, run: Implementation) -> Function {
    let check = || type_of("ResourceCheck");
    let overload = Overload::member(id, [check(), Type::String], check(), SELECTOR, run);
    // In 1.31 the feature gate `AuthorizeWithSelectors` is off by default.
    Function::new(name, [overload.built(32)])
}

fn not_blank(text: &str, why: &'static str) -> Result<String, EvalError> {
    if text.trim().is_empty() { Err(EvalError::new(why)) } else { Ok(text.to_owned()) }
}

/// Returns the first argument, a check, with one of its parts set to the second argument.
fn narrow<'a>(
    arguments: &[Value<'a>],
    place: impl FnOnce(&mut CheckedResource) -> &mut String,
) -> Result<Value<'a>, EvalError> {
    let of: &ResourceCheck = opaque(arguments, 0)?;
    let mut resource = of.resource.clone();
    *place(&mut resource) = text(arguments, 1)?.to_string();
    Ok(request_resource(Arc::clone(&of.authorizer), resource))
}

fn decided<'v>(arguments: &'v [Value<'_>]) -> Result<&'v AuthorizerAnswer, EvalError> {
    opaque::<Decided>(arguments, 0).map(|Decided(decision)| decision)
}

/// `kubernetes.authorization.Authorizer`
#[derive(Debug)]
struct Whole(Arc<dyn RuleAuthorizer>);

/// `kubernetes.authorization.PathCheck`
#[derive(Debug)]
struct PathCheck {
    authorizer: Arc<dyn RuleAuthorizer>,
    path: String,
}

/// `kubernetes.authorization.GroupCheck`
#[derive(Debug)]
struct GroupCheck {
    authorizer: Arc<dyn RuleAuthorizer>,
    group: String,
}

/// `kubernetes.authorization.ResourceCheck`
#[derive(Debug)]
struct ResourceCheck {
    authorizer: Arc<dyn RuleAuthorizer>,
    resource: CheckedResource,
}

/// `kubernetes.authorization.Decision`
#[derive(Debug)]
struct Decided(AuthorizerAnswer);

impl Opaque for Whole {
    fn ty(&self) -> Type {
        type_of("Authorizer")
    }

    fn equals(&self, _: &dyn Opaque) -> Option<bool> {
        None
    }

    fn go_type(&self) -> &'static str {
        "library.authorizerVal"
    }
}

impl Opaque for PathCheck {
    fn ty(&self) -> Type {
        type_of("PathCheck")
    }

    fn equals(&self, _: &dyn Opaque) -> Option<bool> {
        None
    }

    fn go_type(&self) -> &'static str {
        "library.pathCheckVal"
    }
}

impl Opaque for GroupCheck {
    fn ty(&self) -> Type {
        type_of("GroupCheck")
    }

    fn equals(&self, _: &dyn Opaque) -> Option<bool> {
        None
    }

    fn go_type(&self) -> &'static str {
        "library.groupCheckVal"
    }
}

impl Opaque for ResourceCheck {
    fn ty(&self) -> Type {
        type_of("ResourceCheck")
    }

    fn equals(&self, _: &dyn Opaque) -> Option<bool> {
        None
    }

    fn go_type(&self) -> &'static str {
        "library.resourceCheckVal"
    }
}

impl Opaque for Decided {
    fn ty(&self) -> Type {
        type_of("Decision")
    }

    fn equals(&self, _: &dyn Opaque) -> Option<bool> {
        None
    }

    fn go_type(&self) -> &'static str {
        "library.decisionVal"
    }
}
