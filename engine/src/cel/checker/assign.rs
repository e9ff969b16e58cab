//! Assignability between types, and the bindings of type variables.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cel::types::{OpaqueType, Type};

/// The bindings of type variables so far.
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    known: HashMap<Arc<str>, Type>,
    /// The previous bindings of variables that were set, so that a failed attempt leaves no trace.
    undo: Vec<(Arc<str>, Option<Type>)>,
    variables: u32,
}

impl Substitutions {
    /// A new, unbound type variable.
    pub fn fresh(&mut self) -> Type {
        let name = format!("_var{}", self.variables);
        self.variables += 1;
        Type::Param(Arc::from(name))
    }

    /// Whether a value of one type is assignable to the other; if so, binds variables in both accordingly.
    pub fn is_assignable(&mut self, one: &Type, other: &Type) -> bool {
        self.attempt(|this| this.assign(one, other))
    }

    /// [`is_assignable`](Self::is_assignable) for all of a list, or none.
    pub fn are_assignable(&mut self, ones: &[Type], others: &[Type]) -> bool {
        self.attempt(|this| {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| this.assign(one, other))
        })
    }

    fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        let holds = attempt(self);
        if !holds {
            while let Some((name, before)) = self.undo.pop() {
                match before {
                    Some(before) => self.known.insert(name, before),
                    None => self.known.remove(&name),
                };
            }
        }
        self.undo.clear();
        holds
    }

    fn set(&mut self, name: &Arc<str>, ty: Type) {
        let before = self.known.insert(name.clone(), ty);
        self.undo.push((name.clone(), before));
    }

    fn find(&self, ty: &Type) -> Option<&Type> {
        match ty {
            Type::Param(name) => self.known.get(name),
            _ => None,
        }
    }

    fn assign(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Param(name) = other {
            let (valid, is_known) = self.stand_for(one, other, name);
            if valid {
                return true;
            }
            if is_known {
                return false;
            }
        }
        if let Type::Param(name) = one {
            return self.stand_for(other, one, name).0;
        }
        if is_dyn_or_error(one) || is_dyn_or_error(other) {
            return true;
        }
        if *one == Type::Null {
            return takes_null(other);
        }
        if *other == Type::Null {
            return takes_null(one);
        }
        match (one, other) {
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(one), Type::List(other)) => self.assign(one, other),
            (Type::Map(one), Type::Map(other)) => self.assign(&one.0, &other.0) && self.assign(&one.1, &other.1),
            (Type::Opaque(one), Type::Opaque(other)) => {
                one.name == other.name
                    && one.params.len() == other.params.len()
                    && one.params.iter().zip(&other.params).all(|(one, other)| self.assign(one, other))
            }
            (Type::List(_) | Type::Map(_) | Type::Opaque(_) | Type::Type(_), _) => false,
            (one, other) => is_exact(one, other),
        }
    }

    /// Whether the variable `name`, which is `variable`, may be bound to `ty`, and whether it was bound before.
    fn stand_for(&mut self, ty: &Type, variable: &Type, name: &Arc<str>) -> (bool, bool) {
        if is_exact(ty, variable) {
            return (true, true);
        }
        if let Some(known) = self.known.get(name).cloned() {
            if is_exact(ty, &known) {
                return (true, true);
            }
            if self.assign(ty, &known) {
                let general = most_general(ty, &known);
                if self.is_free_of(variable, general) {
                    self.set(name, general.clone());
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.is_free_of(variable, ty) {
            self.set(name, ty.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether `ty` does not contain `variable`.
    fn is_free_of(&self, variable: &Type, ty: &Type) -> bool {
        if variable == ty {
            return false;
        }
        match ty {
            Type::Param(_) => self.find(ty).is_none_or(|known| self.is_free_of(variable, known)),
            Type::List(element) => self.is_free_of(variable, element),
            Type::Map(entry) => self.is_free_of(variable, &entry.0) && self.is_free_of(variable, &entry.1),
            Type::Opaque(opaque) => opaque.params.iter().all(|param| self.is_free_of(variable, param)),
            Type::Type(Some(of)) => self.is_free_of(variable, of),
            _ => true,
        }
    }

    /// `ty` with its variables replaced by their bindings.
    pub fn substitute(&self, ty: &Type) -> Type {
        self.replace(ty, &|variable| Some(self.find(variable)?.clone()), false)
    }

    /// The same, with dyn for unbound variables.
    pub fn finish(&self, ty: &Type) -> Type {
        self.replace(ty, &|variable| Some(self.find(variable)?.clone()), true)
    }

    /// `ty` with the parameters of an overload replaced by variables.
    pub fn instantiate(&self, ty: &Type, variables: &[(Arc<str>, Type)]) -> Type {
        let variable_of = |param: &Type| match param {
            Type::Param(name) => variables.iter().find(|(known, _)| known == name).map(|(_, ty)| ty.clone()),
            _ => None,
        };
        self.replace(ty, &variable_of, false)
    }

    fn replace(&self, ty: &Type, find: &dyn Fn(&Type) -> Option<Type>, to_dyn: bool) -> Type {
        match ty {
            Type::Param(_) => match find(ty) {
                Some(known) => self.replace(&known, find, to_dyn),
                None if to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(element) => {
                if is_closed(element) {
                    ty.clone()
                } else {
                    Type::list(self.replace(element, find, to_dyn))
                }
            }
            Type::Map(entry) => {
                if is_closed(&entry.0) && is_closed(&entry.1) {
                    ty.clone()
                } else {
                    Type::map(self.replace(&entry.0, find, to_dyn), self.replace(&entry.1, find, to_dyn))
                }
            }
            Type::Opaque(opaque) if !opaque.params.iter().all(is_closed) => {
                let params = opaque.params.iter().map(|param| self.replace(param, find, to_dyn)).collect();
                Type::Opaque(Arc::new(OpaqueType { name: opaque.name.clone(), params }))
            }
            Type::Type(Some(of)) if !is_closed(of) => Type::type_of(self.replace(of, find, to_dyn)),
            _ => ty.clone(),
        }
    }
}

/// Whether a type has no variables.
fn is_closed(ty: &Type) -> bool {
    match ty {
        Type::Param(_) => false,
        Type::List(element) => is_closed(element),
        Type::Map(entry) => is_closed(&entry.0) && is_closed(&entry.1),
        Type::Opaque(opaque) => opaque.params.iter().all(is_closed),
        Type::Type(Some(of)) => is_closed(of),
        _ => true,
    }
}

fn is_dyn_or_error(ty: &Type) -> bool {
    ty.is_dyn() || *ty == Type::Error
}

fn takes_null(ty: &Type) -> bool {
    matches!(ty, Type::Null | Type::Opaque(_) | Type::Object(_) | Type::Duration | Type::Timestamp | Type::Wrapper(_))
}

/// Whether two types are equal; a wrapper equals the type it wraps.
pub(super) fn is_exact(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Wrapper(scalar), other) if !matches!(other, Type::Wrapper(_)) => scalar.as_type() == *other,
        (one, Type::Wrapper(scalar)) if !matches!(one, Type::Wrapper(_)) => scalar.as_type() == *one,
        (Type::List(one), Type::List(other)) => is_exact(one, other),
        (Type::Map(one), Type::Map(other)) => is_exact(&one.0, &other.0) && is_exact(&one.1, &other.1),
        (Type::Opaque(one), Type::Opaque(other)) => {
            one.name == other.name
                && one.params.len() == other.params.len()
                && one.params.iter().zip(&other.params).all(|(one, other)| is_exact(one, other))
        }
        (Type::Type(Some(one)), Type::Type(Some(other))) => is_exact(one, other),
        (one, other) => one == other,
    }
}

pub(super) fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(one, other) { one } else { other }
}

fn is_equal_or_less_specific(one: &Type, other: &Type) -> bool {
    if one.is_dyn() || matches!(one, Type::Param(_)) {
        return true;
    }
    if other.is_dyn() || matches!(other, Type::Param(_)) {
        return false;
    }
    match (one, other) {
        (Type::Opaque(one), Type::Opaque(other)) => {
            one.name == other.name
                && one.params.len() == other.params.len()
                && one.params.iter().zip(&other.params).all(|(one, other)| is_equal_or_less_specific(one, other))
        }
        (Type::List(one), Type::List(other)) => is_equal_or_less_specific(one, other),
        (Type::Map(one), Type::Map(other)) => {
            is_equal_or_less_specific(&one.0, &other.0) && is_equal_or_less_specific(&one.1, &other.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (one, other) => is_exact(one, other),
    }
}
