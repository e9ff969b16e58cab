//! What expressions of policies and match conditions may name.
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

/// What `request` is declared as, with the lengths of what it holds.
pub static REQUEST: LazyLock<DeclType> = LazyLock::new(|| work::essential(request));
static NAMESPACE: LazyLock<Type> = LazyLock::new(|| work::essential(|| namespace().ty));

/// What there is beside `namespaceObject` and `request`.
#[derive(Clone, Debug)]
pub struct Declarations {
    /// The type of `object` and `oldObject`: it is known to those who check an expression for a kind.
    pub object: Type,
    /// The type of `params`, where there are any.
    pub params: Option<Type>,
    /// The type of `variables`, where there is that.
    pub variables: Option<Arc<ObjectType>>,
    /// Whether an expression may ask who may do what.
    pub authorizer: bool,
    /// The version of Kubernetes whose functions there are.
    pub minor: Minor,
}

impl Default for Declarations {
    /// As match conditions of webhooks have it.
    fn default() -> Self {
        Declarations { object: Type::Dyn, params: None, variables: None, authorizer: true, minor: Minor::NEWEST }
    }
}

impl Declarations {
    /// The environment in which types are checked: nothing is evaluated there, and `authorizer.requestResource` is not known.
    pub fn checking_environment(&self) -> Env {
        let mut env = self.without_authorizer().environment(Expressions::Stored);
        if self.authorizer {
            env = env.with_variable("authorizer", authorizer::type_of("Authorizer"));
        }
        env
    }

    /// The environment. The order of its variables is that of an activation; what some expressions lack comes last.
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

    /// The same for expressions that may not ask who may do what.
    #[must_use]
    pub fn without_authorizer(&self) -> Self {
        Declarations { authorizer: false, ..self.clone() }
    }

    /// Makes a variable known to the expressions after it: `None` for one that does not compile.
    pub fn add_variable(&mut self, name: &str, ty: Option<&Type>) {
        let decl = DeclType::scalar(ty.map_or(Type::Dyn, composed_type), 0, 0);
        let variables = self.variables.get_or_insert_with(no_variables);
        // Nobody else has it once the expression before is compiled: it is not copied.
        Arc::make_mut(variables).fields.insert(name.to_owned(), DeclField { decl, required: true });
    }
}

/// The type of `variables` before there are any.
pub fn no_variables() -> Arc<ObjectType> {
    Arc::new(ObjectType::new(ObjectType::VARIABLES))
}

/// How deep the type of a variable is known. Each may hold the one before it: a thousand of them would be lists of lists, a
/// thousand deep.
const TYPE_DEPTH_MAX: usize = 100;

/// What is known of a variable's type: of objects and of the libraries' types nothing.
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

/// The longest name of an object, and of a group.
const NAME_LENGTH: u64 = 253;
/// The longest name of a namespace, a version, a kind, a resource or a part of one.
const LABEL_LENGTH: u64 = 63;
/// The longest of `CREATE`, `UPDATE`, `DELETE` and `CONNECT`.
const OPERATION_LENGTH: u64 = 7;
/// The bytes of the headers of a request, by which a user is known.
const HEADER_BYTES: u64 = 1024 * 1024;
/// The bytes that a text of a user takes there at least: a comma and two quotes.
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

/// Leaves out what expressions don't see of a namespace.
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

/// The fields of a namespace that are shown.
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
