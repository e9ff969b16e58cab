//! Ownership written under an older schema: a field that has become atomic since is owned as a whole.
//!
//! Source: structured-merge-diff v6.4.2, `typed.ReconcileFieldSetWithSchema`.

use super::field_set::FieldSet;
use super::fields_text::{OwnedField, OwnedName};
use super::path::PathElement;
use super::type_schema::{Items, TypeId, TypeSchema};

impl TypeSchema {
    /// Replaces what `set` owns below a field that is atomic by the field itself. The other way, from atomic to
    /// granular, changes nothing: the manager keeps the field alone.
    pub(super) fn reconcile(&self, set: &mut FieldSet) {
        // The root is never owned, so its becoming atomic changes nothing.
        self.reconcile_below(self.root(), set, false);
    }

    /// Whether the field above `set` must be owned as a whole.
    fn reconcile_below(&self, id: TypeId, set: &mut FieldSet, is_leaf: bool) -> bool {
        let type_ = self.get(id);
        if let Some(map) = &type_.map {
            if self.is_undeclared(map) {
                return false;
            }
            if !is_leaf && map.atomic {
                return !set.is_empty();
            }
            self.reconcile_nodes(set, |element| match element {
                PathElement::Field(name) => map.value(name),
                _ => map.element,
            });
        } else if let (None, Some(list)) = (type_.scalar, &type_.list) {
            if !is_leaf && matches!(list.items, Items::Atomic) {
                return true;
            }
            self.reconcile_nodes(set, |_| Some(list.element));
        }
        false
    }

    /// Whether [`TypeSchema::reconcile`] may change the set of these `fields`.
    pub(super) fn may_reconcile(&self, fields: OwnedField<'_>) -> bool {
        !fields.is_empty() && self.may_reconcile_below(self.root(), fields)
    }

    fn may_reconcile_below(&self, id: TypeId, field: OwnedField<'_>) -> bool {
        let type_ = self.get(id);
        let below = |type_of: &mut dyn FnMut(OwnedName<'_>) -> Option<TypeId>| {
            field.below().any(|(name, field)| {
                // The others have nothing below them that might be atomic now.
                !field.is_empty() && type_of(name).is_some_and(|id| self.may_reconcile_below(id, field))
            })
        };
        match (&type_.map, type_.scalar, &type_.list) {
            (Some(map), _, _) if self.is_undeclared(map) => false,
            (Some(map), _, _) => {
                let mut types = map.in_order();
                let mut type_of = |name: OwnedName<'_>| match name.field() {
                    Some(name) => types.value(&name).map(|(id, _)| id),
                    None => map.element,
                };
                map.atomic || below(&mut type_of)
            }
            (None, None, Some(list)) => matches!(list.items, Items::Atomic) || below(&mut |_| Some(list.element)),
            _ => false,
        }
    }

    fn reconcile_nodes(&self, set: &mut FieldSet, type_of: impl Fn(&PathElement) -> Option<TypeId>) {
        for node in set.nodes_mut() {
            let Some(id) = type_of(&node.element) else { continue };
            let is_leaf = node.member && node.children.is_empty();
            if self.reconcile_below(id, &mut node.children, is_leaf) {
                node.member = true;
                node.children = FieldSet::new();
            }
        }
    }
}
