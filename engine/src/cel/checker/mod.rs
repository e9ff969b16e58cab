//! The type checker: an [`Ast`] and an [`Env`] make a [`CheckedExpr`], or positioned errors.
//!
//! Overloads are resolved by the types of the arguments; if several fit, all are kept, and the result is dyn unless
//! they agree. Faults have cel-go's messages and order. [`literals`] makes further checks if there are none.

use std::sync::Arc;

use crate::cel::ast::{
    Ast, Call, Comprehension, Constant, Expr, ExprId, ExprKind, Location, Select, SourceInfo, operators,
};
pub use crate::cel::checked::{CheckedExpr, Reference};
use crate::cel::declared::ObjectType;
use crate::cel::error::{Issue, Issues};
use crate::cel::function::{Function, Overload};
use crate::cel::language::{Env, Library};
use crate::cel::macros::COPIES_SINCE;
use crate::cel::mutation;
use crate::cel::types::Type;
use crate::cel::wellknown;
use crate::meta::field::Undeclared;
use crate::meta::minor::Minor;
use crate::work;

mod aggregate;
mod assign;
mod format;
mod literals;
mod names;
mod text;

pub use names::resolve;

use assign::{Substitutions, is_exact};
use text::{in_words_of, qualified_name, signature};

/// Checks `ast` against the declarations of `env`.
///
/// # Errors
/// All faults, with cel-go's messages.
pub fn check(ast: Ast, env: &Env) -> Result<CheckedExpr, Issues> {
    let Ast { mut expr, source } = ast;
    let mut checker = Checker {
        env,
        source: &source,
        locals: Vec::new(),
        substitutions: Substitutions::default(),
        types: Vec::new(),
        references: Vec::new(),
        issues: Vec::new(),
    };
    checker.check(&mut expr);
    let Checker { substitutions, mut types, references, issues, .. } = checker;
    if !issues.is_empty() {
        return Err(Issues::new(issues, &source));
    }
    for ty in types.iter_mut().flatten() {
        *ty = substitutions.finish(ty);
    }
    let checked = CheckedExpr { ast: Ast { expr, source }, types, references, minor: env.library.minor };
    let Library { literal_validators, homogeneous_literals, .. } = *env.library;
    if literal_validators || homogeneous_literals {
        let issues = literals::faults(&checked, homogeneous_literals, literal_validators);
        if !issues.is_empty() {
            return Err(Issues::new(issues, &checked.ast.source));
        }
    }
    Ok(checked)
}

struct Checker<'e> {
    env: &'e Env,
    source: &'e SourceInfo,
    /// The variables of the enclosing macros, the innermost last.
    locals: Vec<(String, Type)>,
    substitutions: Substitutions,
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        work::steps(4);
        let id = expr.id;
        match &mut expr.kind {
            ExprKind::Constant(constant) => self.set_type(id, constant.ty()),
            ExprKind::Ident(name) => self.check_ident(id, name),
            ExprKind::Select(_) => self.check_select(expr),
            ExprKind::Call(_) => self.check_call(expr),
            ExprKind::List(list) => self.check_list(id, list),
            ExprKind::Map(entries) => self.check_map(id, entries),
            ExprKind::Struct(message) => self.check_struct(id, message),
            ExprKind::Comprehension(comprehension) => self.check_comprehension(id, comprehension),
        }
    }

    fn set_type(&mut self, id: ExprId, ty: Type) {
        if self.env.minor() < COPIES_SINCE
            && let Some(before) = self.types.get(id.0 as usize).and_then(Option::as_ref)
            && *before != ty
        {
            let message = format!("incompatible type already exists for expression: ({}) old:{before}, new:{ty}", id.0);
            return self.report(id, message);
        }
        set(&mut self.types, id, ty);
    }

    fn ty(&self, id: ExprId) -> Type {
        self.types.get(id.0 as usize).and_then(Option::clone).unwrap_or(Type::Error)
    }

    fn report(&mut self, id: ExprId, message: String) {
        let location = self.location(id);
        self.issues.push(Issue::new(location, in_words_of(self.env.minor(), message)));
    }

    fn location(&self, id: ExprId) -> Location {
        self.source.location(id)
    }

    fn check_ident(&mut self, id: ExprId, name: &mut String) {
        match self.resolve(name) {
            Some((resolved, ty)) => {
                self.set_type(id, ty);
                self.refer(id, &resolved);
                *name = resolved;
            }
            None => {
                self.set_type(id, Type::Error);
                self.report_undeclared(id, Undeclared::Name(name.clone()));
            }
        }
    }

    /// Records that the node `id` is the variable, constant or type `name`.
    fn refer(&mut self, id: ExprId, name: &str) {
        let value = wellknown::constant(name.strip_prefix('.').unwrap_or(name));
        set(&mut self.references, id, Reference::Ident { name: name.to_owned(), value });
    }

    fn report_undeclared(&mut self, id: ExprId, what: Undeclared) {
        let message = format!("undeclared reference to '{}' (in container '')", what.name());
        let location = self.location(id);
        self.issues.push(Issue { undeclared: Some(what), ..Issue::new(location, message) });
    }

    fn local(&self, name: &str) -> Option<&Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        self.locals.iter().rev().find(|(local, _)| local == name).map(|(_, ty)| ty)
    }

    /// The qualified name and type of the declaration that a simple name refers to.
    fn resolve(&self, name: &str) -> Option<(String, Type)> {
        let local = self.local(name);
        if let (Some(ty), false) = (local, name.starts_with('.')) {
            return Some((name.to_owned(), ty.clone()));
        }
        let global = name.strip_prefix('.').unwrap_or(name);
        let ty = self.env.global(global)?;
        let hidden = if local.is_some() { "." } else { "" };
        Some((format!("{hidden}{global}"), ty))
    }

    /// The same for a chain of selections, unless its first name is a variable of a macro.
    fn resolve_qualified(&self, first: &str, qualified: &str) -> Option<(String, Type)> {
        let local = self.local(first);
        if local.is_some() && !first.starts_with('.') {
            return None;
        }
        let global = qualified.strip_prefix('.').unwrap_or(qualified);
        let ty = self.env.global(global)?;
        let hidden = if local.is_some() { "." } else { "" };
        Some((format!("{hidden}{global}"), ty))
    }

    fn check_select(&mut self, expr: &mut Expr) {
        let id = expr.id;
        if let Some((first, qualified)) = qualified_name(expr, true)
            && let Some((name, ty)) = self.resolve_qualified(first, &qualified)
        {
            self.set_type(id, ty);
            self.refer(id, &name);
            expr.kind = ExprKind::Ident(name);
            return;
        }
        let ExprKind::Select(select) = &mut expr.kind else { return };
        let Select { operand, field, test_only } = &mut **select;
        self.check(operand);
        let ty = self.field_type(id, operand.id, field, false);
        self.set_type(id, if *test_only { Type::Bool } else { self.substitutions.substitute(&ty) });
    }

    /// The type of a field of an operand that was checked before.
    fn field_type(&mut self, id: ExprId, operand: ExprId, field: &str, optional: bool) -> Type {
        let operand = self.substitutions.substitute(&self.ty(operand));
        let content = operand.optional_content();
        let result = match content.unwrap_or(&operand) {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) if object.is_of_library() => {
                self.report(id, format!("unexpected failed resolution of '{}'", object.name));
                Type::Error
            }
            Type::Object(object) => match self.declared_field(object, field) {
                Some(ty) => ty,
                None => {
                    self.report(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            variable @ Type::Param(_) => {
                self.substitutions.is_assignable(&Type::Dyn, variable);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                let message = format!("type '{other}' does not support field selection");
                self.report(id, message);
                Type::Dyn
            }
        };
        if optional || content.is_some() { Type::optional(result) } else { result }
    }

    fn declared_field(&self, object: &ObjectType, field: &str) -> Option<Type> {
        match self.env.mutation(&object.name) {
            Some(_) => Some(mutation::field(&object.name, field)),
            // Before, a reserved word had to be written in its escaped form.
            None if self.env.library.minor < Minor::of(32) => {
                object.fields.get(field).map(|field| field.decl.ty.clone())
            }
            None => object.field(field).map(|field| field.decl.ty.clone()),
        }
    }

    fn check_optional_select(&mut self, id: ExprId, call: &mut Call) {
        let [operand, field] = call.args.as_mut_slice() else { return };
        let ExprKind::Constant(Constant::String(name)) = &field.kind else { return };
        self.check(operand);
        let ty = self.field_type(id, operand.id, name, true);
        self.set_type(id, self.substitutions.substitute(&ty));
        let overloads = self.env.library.function(&call.function).map(|function| function.overloads.clone());
        set(&mut self.references, id, Reference::Function { overloads: overloads.unwrap_or_default() });
    }

    fn check_call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let ExprKind::Call(call) = &mut expr.kind else { return };
        if call.function == operators::OPTIONAL_SELECT {
            return self.check_optional_select(id, call);
        }
        for arg in &mut call.args {
            self.check(arg);
        }
        let Call { function, target, args } = &mut **call;
        let Some(written) = target else {
            match self.function(function) {
                Some(found) => {
                    found.name.clone_into(function);
                    self.resolve_overload(id, &found, None, args);
                }
                None => {
                    self.report_undeclared(id, Undeclared::Function(function.clone()));
                    self.set_type(id, Type::Error);
                }
            }
            return;
        };
        if let Some((_, prefix)) = qualified_name(written, false)
            && let Some(found) = self.function(&format!("{prefix}.{function}"))
        {
            found.name.clone_into(function);
            *target = None;
            self.resolve_overload(id, &found, None, args);
            return;
        }
        self.check(written);
        match self.function(function) {
            Some(found) => self.resolve_overload(id, &found, Some(written), args),
            None => {
                self.set_type(id, Type::Error);
                self.report_undeclared(id, Undeclared::Function(function.clone()));
            }
        }
    }

    fn function(&self, name: &str) -> Option<Arc<Function>> {
        self.env.library.function(name.strip_prefix('.').unwrap_or(name)).cloned()
    }

    fn resolve_overload(&mut self, id: ExprId, function: &Function, target: Option<&Expr>, args: &[Expr]) {
        let arg_types: Vec<Type> = target.into_iter().chain(args).map(|arg| self.ty(arg.id)).collect();
        let mut overloads: Vec<Arc<Overload>> = Vec::new();
        let mut result: Option<Type> = None;
        if function.name == operators::LOGICAL_AND || function.name == operators::LOGICAL_OR {
            result = Some(Type::Bool);
            overloads.clone_from(&function.overloads);
            for (arg, ty) in args.iter().zip(&arg_types) {
                if !self.substitutions.is_assignable(ty, &Type::Bool) {
                    self.report_mismatch(arg.id, &Type::Bool, ty);
                    result = Some(Type::Error);
                }
            }
        } else {
            for overload in function.overloads.iter().filter(|overload| overload.is_member == target.is_some()) {
                let Some(ty) = self.fit(overload, &arg_types) else { continue };
                overloads.push(overload.clone());
                result = Some(match result {
                    None => ty,
                    Some(result) if result.is_dyn() || is_exact(&ty, &result) => result,
                    Some(_) => Type::Dyn,
                });
            }
        }
        match result {
            Some(Type::Error) => self.set_type(id, Type::Error),
            Some(ty) => {
                self.set_type(id, ty);
                set(&mut self.references, id, Reference::Function { overloads });
            }
            None => {
                let types: Vec<Type> = arg_types.iter().map(|ty| self.substitutions.finish(ty)).collect();
                let signature = signature(&types, target.is_some());
                self.report(id, format!("found no matching overload for '{}' applied to '{signature}'", function.name));
                self.set_type(id, Type::Error);
            }
        }
    }

    /// The result type of an overload, if the arguments match it.
    fn fit(&mut self, overload: &Overload, args: &[Type]) -> Option<Type> {
        if overload.type_params.is_empty() {
            let fits = self.substitutions.are_assignable(args, &overload.params);
            return fits.then(|| overload.result.clone());
        }
        let variables: Vec<(Arc<str>, Type)> =
            overload.type_params.iter().map(|name| (name.clone(), self.substitutions.fresh())).collect();
        let params: Vec<Type> =
            overload.params.iter().map(|param| self.substitutions.instantiate(param, &variables)).collect();
        let fits = self.substitutions.are_assignable(args, &params);
        fits.then(|| self.substitutions.substitute(&self.substitutions.instantiate(&overload.result, &variables)))
    }

    fn report_mismatch(&mut self, id: ExprId, expected: &Type, actual: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{actual}'"));
    }

    fn check_comprehension(&mut self, id: ExprId, comprehension: &mut Comprehension) {
        let Comprehension { iter_range, iter_var, iter_var2, accu_var, accu_init, .. } = comprehension;
        self.check(iter_range);
        self.check(accu_init);
        let range = self.substitutions.substitute(&self.ty(iter_range.id));
        let accu = self.ty(accu_init.id);
        let (first, second) = self.element_types(iter_range.id, &range, iter_var2.is_some());
        let outer = self.locals.len();
        self.locals.push((accu_var.clone(), accu.clone()));
        let inner = self.locals.len();
        self.locals.push((iter_var.clone(), first));
        if let Some(name) = iter_var2 {
            self.locals.push((name.clone(), second));
        }
        self.check(&mut comprehension.loop_condition);
        self.assert_type(comprehension.loop_condition.id, &Type::Bool);
        self.check(&mut comprehension.loop_step);
        self.assert_type(comprehension.loop_step.id, &accu);
        self.locals.truncate(inner);
        self.check(&mut comprehension.result);
        self.locals.truncate(outer);
        let result = self.substitutions.substitute(&self.ty(comprehension.result.id));
        self.set_type(id, result);
    }

    /// The types of the variables of a comprehension over `range`.
    fn element_types(&mut self, id: ExprId, range: &Type, has_two: bool) -> (Type, Type) {
        match range {
            Type::List(element) if has_two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.substitutions.is_assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                self.report(
                    id,
                    format!(
                        "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                    ),
                );
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let actual = self.ty(id);
        if !self.substitutions.is_assignable(expected, &actual) {
            self.report_mismatch(id, expected, &actual);
        }
    }
}

fn set<T>(values: &mut Vec<Option<T>>, id: ExprId, value: T) {
    let at = id.0 as usize;
    if values.len() <= at {
        values.resize_with(at + 1, || None);
    }
    values[at] = Some(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::declared::{DeclField, DeclType, ObjectType};
    use crate::cel::env::Expressions;

    fn env() -> Env {
        let field = |name: &str, ty| (name.to_owned(), DeclField { decl: DeclType::scalar(ty, 0, 0), required: false });
        let fields = [field("replicas", Type::Int), field("__namespace__", Type::String), field("port", Type::Dyn)];
        let object = ObjectType { name: "selfType".to_owned(), fields: fields.into_iter().collect() };
        Env::kubernetes(Expressions::New)
            .with_variable("self", Type::Object(Arc::new(object)))
            .with_variable("names", Type::list(Type::String))
    }

    fn check(text: &str, expected: &str) {
        let found = env().compile(text).map(|checked| checked.result_type().to_string());
        assert_eq!(found.map_err(|issues| issues.to_string()).as_deref(), Ok(expected), "{text}");
    }

    /// The messages, without the text and the caret.
    fn check_errors(text: &str, expected: &[&str]) {
        let found = env().compile(text).expect_err(text);
        let messages: Vec<&str> = found.issues.iter().map(|issue| issue.message.as_str()).collect();
        assert_eq!(messages, expected, "{text}");
    }

    #[test]
    fn the_type_of_a_call_is_that_of_the_overload_that_fits() {
        check("self.replicas + 1", "int");
        check("names.map(n, size(n))", "list(int)");
        check("{'a': [1.0]}['a'][0]", "double");
        check("names[?0]", "optional_type(string)");
    }

    #[test]
    fn of_several_overloads_that_fit_all_are_kept() {
        check("self.port + self.port", "dyn");
        let checked = env().compile("self.port > 1").expect("it checks");
        let ids: Vec<&str> = checked.overloads(checked.ast.expr.id).iter().map(|overload| overload.id).collect();
        assert_eq!(ids, ["greater_int64", "greater_uint64_int64", "greater_double_int64"]);
    }

    #[test]
    fn a_reserved_word_selects_the_escaped_field() {
        check("self.namespace", "string");
        check("self.__namespace__", "string");
    }

    #[test]
    fn all_faults_are_told_in_the_order_of_the_text() {
        check_errors(
            "self.replica > 0 && nmaes.size() < '3' && names + 1 == []",
            &[
                "undefined field 'replica'",
                "undeclared reference to 'nmaes' (in container '')",
                "found no matching overload for '_<_' applied to '(int, string)'",
                "found no matching overload for '_+_' applied to '(list(string), int)'",
            ],
        );
    }

    #[test]
    fn literals_hold_one_type_and_can_be_read() {
        check_errors("[1, 'a']", &["expected type 'int' but found 'string'"]);
        check_errors("duration('1 day') < duration('1h')", &["invalid duration argument"]);
        check_errors("self.namespace.matches('(')", &["invalid matches argument"]);
        check_errors(
            "'%d'.format(['a'])",
            &["error during formatting: decimal clause can only be used on integers, was given string"],
        );
        check("'%s %s'.format([1, 'a'])", "string");
    }

    #[test]
    fn new_expressions_do_not_see_what_the_last_version_lacked() {
        check_errors("names.includes('a')", &["undeclared reference to 'includes' (in container '')"]);
        let stored = Env { library: Env::kubernetes(Expressions::Stored).library, ..env() };
        assert_eq!(stored.compile("names.includes('a')").map(|checked| checked.result_type().clone()), Ok(Type::Bool));
    }

    #[test]
    fn a_variable_of_a_macro_hides_one_of_the_environment() {
        check("[1].all(names, names == 1 && .names.size() > 0)", "bool");
    }
}
