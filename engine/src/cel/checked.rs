//! Checked expressions: each node with its type, each name with what it stands for.

use std::sync::Arc;

use super::ast::{Ast, Constant, ExprId};
use super::function::Overload;
use super::types::Type;
use crate::meta::minor::Minor;

/// An expression whose every node has a type.
///
/// Names are resolved in the tree: a qualified name that is a variable or a function is one [`Ident`] or the function of
/// a call without target. The name of a variable begins with a dot where a variable of a macro hides it.
///
/// [`Ident`]: crate::cel::ast::ExprKind::Ident
#[derive(Clone, Debug)]
pub struct CheckedExpr {
    pub ast: Ast,
    pub(in crate::cel) types: Vec<Option<Type>>,
    pub(in crate::cel) references: Vec<Option<Reference>>,
    /// The version of Kubernetes at whose prices it is estimated.
    pub(in crate::cel) minor: Minor,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, or a type or constant that has a value already.
    Ident { name: String, value: Option<Constant> },
    /// The overloads that fit the types of the arguments: one where those are known.
    Function { overloads: Vec<Arc<Overload>> },
}

impl CheckedExpr {
    /// The type of a node of the tree; dyn where nobody checked it.
    pub fn ty(&self, id: ExprId) -> &Type {
        self.types.get(id.0 as usize).and_then(Option::as_ref).unwrap_or(&Type::Dyn)
    }

    /// The type of the whole.
    pub fn result_type(&self) -> &Type {
        self.ty(self.ast.expr.id)
    }

    /// Whether any node is of the type `ty`.
    pub fn has_type(&self, ty: &Type) -> bool {
        self.types.iter().flatten().any(|found| found == ty)
    }

    /// What an identifier, a call or a struct refers to.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.0 as usize).and_then(Option::as_ref)
    }

    /// What all identifiers, calls and structs of the tree refer to.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.references.iter().flatten()
    }

    /// The candidates of a call; none for what is not a call.
    pub fn overloads(&self, id: ExprId) -> &[Arc<Overload>] {
        match self.reference(id) {
            Some(Reference::Function { overloads }) => overloads,
            _ => &[],
        }
    }
}
