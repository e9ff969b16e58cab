//! Checked expressions: each node with its type, each name with its declaration.

use std::sync::Arc;

use super::ast::{Ast, Constant, ExprId};
use super::function::Overload;
use super::types::Type;
use crate::meta::minor::Minor;

/// An expression whose every node has a type.
///
/// Names are resolved in the tree: a qualified name that is a variable or a function is one [`Ident`] or the function
/// of a call without a target. The name of a variable begins with a dot if a variable of a macro shadows it.
///
/// [`Ident`]: crate::cel::ast::ExprKind::Ident
#[derive(Clone, Debug)]
pub struct CheckedExpr {
    pub ast: Ast,
    pub(in crate::cel) types: Vec<Option<Type>>,
    pub(in crate::cel) references: Vec<Option<Reference>>,
    /// The version of Kubernetes whose prices the estimate uses.
    pub(in crate::cel) minor: Minor,
}

/// The declaration that a name refers to.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, or a type or constant that already has a value.
    Ident { name: String, value: Option<Constant> },
    /// The overloads that match the types of the arguments: only one if those are known.
    Function { overloads: Vec<Arc<Overload>> },
}

impl CheckedExpr {
    /// The type of a node of the tree; dyn if it was not checked.
    pub fn ty(&self, id: ExprId) -> &Type {
        self.types.get(id.0 as usize).and_then(Option::as_ref).unwrap_or(&Type::Dyn)
    }

    /// The type of the whole expression.
    pub fn result_type(&self) -> &Type {
        self.ty(self.ast.expr.id)
    }

    /// Whether any node is of the type `ty`.
    pub fn has_type(&self, ty: &Type) -> bool {
        self.types.iter().flatten().any(|found| found == ty)
    }

    /// The declaration that an identifier, a call or a struct refers to.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.0 as usize).and_then(Option::as_ref)
    }

    /// The declarations that all identifiers, calls and structs of the tree refer to.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.references.iter().flatten()
    }

    /// The candidate overloads of a call; none for other nodes.
    pub fn overloads(&self, id: ExprId) -> &[Arc<Overload>] {
        match self.reference(id) {
            Some(Reference::Function { overloads }) => overloads,
            _ => &[],
        }
    }
}
