//! Lists, maps and messages that an expression constructs.

use super::Checker;
use super::assign::most_general;
use crate::cel::ast::{ExprId, ListExpr, MapEntry, Struct};
use crate::cel::types::Type;
use crate::cel::wellknown;
use crate::meta::field::Undeclared;

impl Checker<'_> {
    pub(super) fn check_list(&mut self, id: ExprId, list: &mut ListExpr) {
        let mut joined = None;
        for (index, element) in list.elements.iter_mut().enumerate() {
            self.check(element);
            let mut ty = self.ty(element.id);
            if list.optional.contains(&index) {
                ty = self.optional_content(element.id, ty);
            }
            joined = Some(self.join(joined, ty));
        }
        let element = joined.unwrap_or_else(|| self.substitutions.fresh());
        self.set_type(id, Type::list(element));
    }

    pub(super) fn check_map(&mut self, id: ExprId, entries: &mut [MapEntry]) {
        let (mut keys, mut values) = (None, None);
        for MapEntry { key, value, optional, .. } in entries {
            self.check(key);
            let ty = self.ty(key.id);
            keys = Some(self.join(keys, ty));
            self.check(value);
            let mut ty = self.ty(value.id);
            if *optional {
                ty = self.optional_content(value.id, ty);
            }
            values = Some(self.join(values, ty));
        }
        let key = keys.unwrap_or_else(|| self.substitutions.fresh());
        let value = values.unwrap_or_else(|| self.substitutions.fresh());
        self.set_type(id, Type::map(key, value));
    }

    /// The content type of the optional value of an optional entry.
    fn optional_content(&mut self, id: ExprId, ty: Type) -> Type {
        if let Some(content) = ty.optional_content() {
            return content.clone();
        }
        if !ty.is_dyn() {
            self.report_mismatch(id, &Type::optional(ty.clone()), &ty);
        }
        ty
    }

    /// The more general of two types; dyn if neither is.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous) if self.substitutions.is_assignable(&previous, &current) => {
                most_general(&previous, &current).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    /// Checks messages: only those that stand for CEL values, and those of mutations, exist.
    pub(super) fn check_struct(&mut self, id: ExprId, message: &mut Struct) {
        let Struct { type_name, fields } = message;
        let name = type_name.strip_prefix('.').unwrap_or(type_name).to_owned();
        if self.env.declared_type(&name).is_none() {
            self.set_type(id, Type::Error);
            return self.report_undeclared(id, Undeclared::Name(type_name.clone()));
        }
        let message = self.env.mutation(&name).or_else(|| wellknown::message(&name));
        if message.is_none() {
            self.report(id, format!("'{name}' is not a message type"));
        }
        type_name.clone_from(&name);
        self.refer(id, &name);
        self.set_type(id, message.clone().unwrap_or(Type::Error));
        for field in fields {
            self.check(&mut field.value);
            let declared = message.as_ref().and_then(|message| self.env.message_field(message, &name, &field.name));
            if declared.is_none() {
                self.report_no_field(field.id, &name, &field.name);
            }
            let mut value = self.ty(field.value.id);
            if field.optional {
                value = self.optional_content(field.value.id, value);
            }
            let declared = declared.unwrap_or(Type::Error);
            if !self.substitutions.is_assignable(&declared, &value) {
                let name = &field.name;
                let message = format!("expected type of field '{name}' is '{declared}' but provided type is '{value}'");
                self.report(field.id, message);
            }
        }
    }

    /// Reports that the message type `name` has no field `field`. Kubernetes also declares the scalars as types without
    /// fields, and maps as a type with arbitrary fields.
    fn report_no_field(&mut self, id: ExprId, name: &str, field: &str) {
        let unresolved = match name {
            "map" => return,
            "null_type" => "google.protobuf.NullValue",
            "type" | Type::OPTIONAL | "net.IP" | "net.CIDR" => name,
            _ => return self.report(id, format!("undefined field '{field}'")),
        };
        self.report(id, format!("unexpected failed resolution of '{unresolved}'"));
    }
}
