//! The environment of the expressions of policies and match conditions.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/cel/{compile,composition}.go`, release 1.37.

use std::sync::{Arc, LazyLock};

use crate::cel::declared::{DeclField, DeclType, ObjectType};
use crate::cel::env::{Env, Expressions};
use crate::cel::library::authorizer;
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

/// The declared type of `request`, with the maximum lengths of its parts.
pub static REQUEST: LazyLock<DeclType> = LazyLock::new(|| work::essential(request));
static NAMESPACE: LazyLock<Type> = LazyLock::new(|| work::essential(|| namespace().ty));

/// The declarations other than `namespaceObject` and `request`.
#[derive(Clone, Debug)]
pub struct Declarations {
    /// The type of `object` and `oldObject`: only known if an expression is checked for a kind.
    pub object: Type,
    /// The type of `params`, if there are parameters.
    pub params: Option<Type>,
    /// The type of `variables`, if there are any.
    pub variables: Option<Arc<ObjectType>>,
    /// Whether `authorizer` is available.
    pub authorizer: bool,
    /// The version of Kubernetes whose functions are available.
    pub minor: Minor,
}

impl Default for Declarations {
    /// The declarations for match conditions of webhooks.
    fn default() -> Self {
        Declarations { object: Type::Dyn, params: None, variables: None, authorizer: true, minor: Minor::NEWEST }
    }
}

impl Declarations {
    /// The environment for type checks: no expressions are evaluated in it, and `authorizer.requestResource` is not
    /// declared.
    pub fn checking_environment(&self) -> Env {
        let mut env = self.without_authorizer().environment(Expressions::Stored);
        if self.authorizer {
            env = env.with_variable("authorizer", authorizer::type_of("Authorizer"));
        }
        env
    }

    /// The environment for evaluation. Its variables are in the order of an activation; those that only some
    /// expressions have come last.
    pub fn environment(&self, expressions: Expressions) -> Env {
        let mut env = Env::of(self.minor, expressions)
            .with_variable("object", self.object.clone())
            .with_variable("oldObject", self.object.clone())
            .with_variable("namespaceObject", NAMESPACE.clone())
            .with_variable("request", REQUEST.ty.clone());
        if let Some(variables) = &self.variables {
            env = env.with_variable("variables", Type::Object(Arc::clone(variables)));
        }
        if let Some(params) = &self.params {
            env = env.with_variable("params", params.clone());
        }
        if self.authorizer {
            env = env
                .with_variable("authorizer", authorizer::type_of("Authorizer"))
                .with_variable("authorizer.requestResource", authorizer::type_of("ResourceCheck"));
        }
        env
    }

    /// The same declarations without `authorizer`.
    #[must_use]
    pub fn without_authorizer(&self) -> Self {
        Declarations { authorizer: false, ..self.clone() }
    }

    /// Declares a variable for the expressions after it; its type is `None` if it does not compile.
    pub fn add_variable(&mut self, name: &str, ty: Option<&Type>) {
        let decl = DeclType::scalar(ty.map_or(Type::Dyn, composed_type), 0, 0);
        let variables = self.variables.get_or_insert_with(no_variables);
        // The previous expression has been compiled, so nothing else references the type, and it is not copied.
        Arc::make_mut(variables).fields.insert(name.to_owned(), DeclField { decl, required: true });
    }
}

/// The type of `variables` before any are declared.
pub fn no_variables() -> Arc<ObjectType> {
    Arc::new(ObjectType::new(ObjectType::VARIABLES))
}

/// The maximum depth of a variable's type. Each may contain the one before it: a thousand of them could be lists nested
/// a thousand deep.
const TYPE_DEPTH_MAX: usize = 100;

/// The declared type of a variable: objects and the libraries' types become dynamic.
fn composed_type(ty: &Type) -> Type {
    known_type(ty, TYPE_DEPTH_MAX)
}

fn known_type(ty: &Type, depth: usize) -> Type {
    let Some(depth) = depth.checked_sub(1) else { return Type::Dyn };
    work::step();
    match ty {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => ty.clone(),
        Type::List(element) => Type::list(known_type(element, depth)),
        Type::Map(entry) => Type::map(known_type(&entry.0, depth), known_type(&entry.1, depth)),
        _ => Type::Dyn,
    }
}

pub(super) fn object(name: &str, fields: &[(&str, DeclType)]) -> DeclType {
    let declared =
        |(field, decl): &(&str, DeclType)| ((*field).to_owned(), DeclField { decl: decl.clone(), required: false });
    DeclType::object(ObjectType { name: name.to_owned(), fields: fields.iter().map(declared).collect() }, 0)
}

pub(super) fn scalar(ty: Type) -> DeclType {
    DeclType::scalar(ty, 0, 0)
}

pub(super) fn texts() -> DeclType {
    DeclType::list(scalar(Type::String), 0)
}

/// The maximum length of the name of an object or a group.
const NAME_LENGTH: u64 = 253;
/// The maximum length of the name of a namespace, a version, a kind, a resource or a part of one.
const LABEL_LENGTH: u64 = 63;
/// The maximum length of `CREATE`, `UPDATE`, `DELETE` and `CONNECT`.
const OPERATION_LENGTH: u64 = 7;
/// The maximum size of a request's headers, which identify the user, in bytes.
const HEADER_BYTES: u64 = 1024 * 1024;
/// The minimum size of a user's string in them, in bytes: a comma and two quotes.
const USER_TEXT_BYTES: u64 = 3;

fn request() -> DeclType {
    let text = |length: u64| DeclType::scalar(Type::String, length, 0);
    let (name, label) = (|| text(NAME_LENGTH), || text(LABEL_LENGTH));
    let of_user = || text(HEADER_BYTES);
    let texts_of_user = || DeclType::list(of_user(), HEADER_BYTES / USER_TEXT_BYTES);
    let extra = DeclType::map(of_user(), texts_of_user(), HEADER_BYTES / USER_TEXT_BYTES);
    let kind = object("kubernetes.GroupVersionKind", &[("group", name()), ("version", label()), ("kind", label())]);
    let resource =
        object("kubernetes.GroupVersionResource", &[("group", name()), ("version", label()), ("resource", label())]);
    let user = object(
        "kubernetes.UserInfo",
        &[("username", of_user()), ("uid", of_user()), ("groups", texts_of_user()), ("extra", extra)],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", label()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", label()),
            ("name", name()),
            ("namespace", label()),
            ("operation", text(OPERATION_LENGTH)),
            ("userInfo", user),
            ("dryRun", scalar(Type::Bool)),
            ("options", scalar(Type::Dyn)),
        ],
    )
}

/// Removes the parts of a namespace that expressions do not see.
pub fn show_namespace(namespace: &mut Value) {
    let fields = namespace.make_object();
    for hidden in ["apiVersion", "kind"] {
        fields.remove(hidden);
    }
    let metadata = fields.entry("metadata").make_object();
    for hidden in ["managedFields", "ownerReferences", "selfLink"] {
        metadata.remove(hidden);
    }
}

/// The fields of a namespace that expressions see.
fn namespace() -> DeclType {
    let text = || scalar(Type::String);
    let time = || scalar(Type::Timestamp);
    let labels = || DeclType::map(text(), text(), 0);
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", scalar(Type::Int)),
            ("deletionTimestamp", time()),
            ("generation", scalar(Type::Int)),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let status =
        object("kubernetes.NamespaceStatus", &[("conditions", DeclType::list(condition, 0)), ("phase", text())]);
    let spec = object("kubernetes.NamespaceSpec", &[("finalizers", texts())]);
    object("kubernetes.Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
}
