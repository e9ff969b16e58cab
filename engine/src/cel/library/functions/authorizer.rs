//! Authorization: what somebody may do, asked of the host.
//!
//! Source: `k8s.io/apiserver/pkg/cel/library/authz.go`, release 1.37. Selectors of fields and labels narrow no check: no
//! authoriser here looks at them.

use std::fmt::Debug;
use std::sync::Arc;

use super::arguments::{opaque, text};
use crate::cel::eval::value::Opaque;
use crate::cel::eval::{EvalError, Function, Value};
use crate::cel::types::Type;
use crate::meta::names;

/// Who knows what somebody may do.
pub trait Authorizer: Debug + Send + Sync {
    /// Whether the user of this authoriser may do it.
    fn decide(&self, check: &Check) -> Decision;

    /// The authoriser of a service account.
    fn service_account(&self, namespace: &str, name: &str) -> Arc<dyn Authorizer>;
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    Path { verb: String, path: String },
    Resource { verb: String, resource: Resource },
}

/// A resource that something may be done with; what is not named is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
}

/// The value of the variable `authorizer`.
pub fn authorizer<'a>(authorizer: Arc<dyn Authorizer>) -> Value<'a> {
    Value::opaque(Whole(authorizer))
}

/// The value of the variable `authorizer.requestResource`.
pub fn request_resource<'a>(authorizer: Arc<dyn Authorizer>, resource: Resource) -> Value<'a> {
    Value::opaque(ResourceCheck { authorizer, resource })
}

/// `kubernetes.authorization.NAME`
pub fn type_of(name: &str) -> Type {
    Type::object(&format!("kubernetes.authorization.{name}"))
}

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "authorizer_path" => |_, arguments| {
            let (Whole(authorizer), path) = (opaque(arguments, 0)?, text(arguments, 1)?);
            let path = not_blank(path, "path must not be empty")?;
            Ok(Value::opaque(PathCheck { authorizer: Arc::clone(authorizer), path }))
        },
        "authorizer_group" => |_, arguments| {
            let (Whole(authorizer), group) = (opaque(arguments, 0)?, text(arguments, 1)?.to_string());
            Ok(Value::opaque(GroupCheck { authorizer: Arc::clone(authorizer), group }))
        },
        "authorizer_serviceaccount" => |_, arguments| {
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
        "groupcheck_resource" => |_, arguments| {
            let of: &GroupCheck = opaque(arguments, 0)?;
            let resource = not_blank(text(arguments, 1)?, "resource must not be empty")?;
            let resource = Resource { group: of.group.clone(), resource, ..Resource::default() };
            Ok(request_resource(Arc::clone(&of.authorizer), resource))
        },
        "resourcecheck_subresource" => |_, arguments| narrow(arguments, |resource| &mut resource.subresource),
        "resourcecheck_namespace" => |_, arguments| narrow(arguments, |resource| &mut resource.namespace),
        "resourcecheck_name" => |_, arguments| narrow(arguments, |resource| &mut resource.name),
        "authorizer_fieldselector" | "authorizer_labelselector" => |_, arguments| {
            opaque::<ResourceCheck>(arguments, 0)?;
            Ok(arguments[0].clone())
        },
        "pathcheck_check" => |_, arguments| {
            let (of, verb) = (opaque::<PathCheck>(arguments, 0)?, text(arguments, 1)?.to_string());
            let decision = of.authorizer.decide(&Check::Path { verb, path: of.path.clone() });
            Ok(Value::opaque(Decided(decision)))
        },
        "resourcecheck_check" => |_, arguments| {
            let (of, verb) = (opaque::<ResourceCheck>(arguments, 0)?, text(arguments, 1)?.to_string());
            let decision = of.authorizer.decide(&Check::Resource { verb, resource: of.resource.clone() });
            Ok(Value::opaque(Decided(decision)))
        },
        "decision_allowed" => |_, arguments| Ok(Value::Bool(decided(arguments)?.allowed)),
        "decision_reason" => |_, arguments| Ok(Value::string(decided(arguments)?.reason.as_str())),
        // Authorisers here answer from memory, and don't fail.
        "decision_errored" => |_, arguments| decided(arguments).map(|_| Value::Bool(false)),
        "decision_error" => |_, arguments| decided(arguments).map(|_| Value::string("")),
        _ => return None,
    })
}

fn not_blank(text: &str, why: &'static str) -> Result<String, EvalError> {
    match text.trim().is_empty() {
        true => Err(EvalError::new(why)),
        false => Ok(text.to_owned()),
    }
}

/// The check of the first argument with the second in one of its places.
fn narrow<'a>(
    arguments: &[Value<'a>],
    place: impl FnOnce(&mut Resource) -> &mut String,
) -> Result<Value<'a>, EvalError> {
    let of: &ResourceCheck = opaque(arguments, 0)?;
    let mut resource = of.resource.clone();
    *place(&mut resource) = text(arguments, 1)?.to_string();
    Ok(request_resource(Arc::clone(&of.authorizer), resource))
}

fn decided<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Decision, EvalError> {
    opaque::<Decided>(arguments, 0).map(|Decided(decision)| decision)
}

/// `kubernetes.authorization.Authorizer`
#[derive(Debug)]
struct Whole(Arc<dyn Authorizer>);

/// `kubernetes.authorization.PathCheck`
#[derive(Debug)]
struct PathCheck {
    authorizer: Arc<dyn Authorizer>,
    path: String,
}

/// `kubernetes.authorization.GroupCheck`
#[derive(Debug)]
struct GroupCheck {
    authorizer: Arc<dyn Authorizer>,
    group: String,
}

/// `kubernetes.authorization.ResourceCheck`
#[derive(Debug)]
struct ResourceCheck {
    authorizer: Arc<dyn Authorizer>,
    resource: Resource,
}

/// `kubernetes.authorization.Decision`
#[derive(Debug)]
struct Decided(Decision);

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
