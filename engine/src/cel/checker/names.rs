//! Name resolution without type checking.

use super::text::qualified_name;
use super::{CheckedExpr, Reference, set};
use crate::cel::ast::{Ast, Call, Comprehension, Expr, ExprId, ExprKind};
use crate::cel::env::Env;
use crate::cel::types::Type;
use crate::cel::wellknown;

/// Resolves the names of `ast` in `env` and leaves all types to the evaluation. A name that `env` does not have fails
/// when it is evaluated; so does a call whose arguments match no overload.
///
/// The longest declared prefix of a qualified name counts, unless its first name is a variable of a macro.
pub fn resolve(ast: Ast, env: &Env) -> CheckedExpr {
    let Ast { mut expr, source } = ast;
    let mut resolver = Resolver { env, locals: Vec::new(), types: Vec::new(), references: Vec::new() };
    resolver.resolve(&mut expr);
    let Resolver { types, references, .. } = resolver;
    CheckedExpr { ast: Ast { expr, source }, types, references, minor: env.library.minor }
}

struct Resolver<'e> {
    env: &'e Env,
    /// The variables of the enclosing macros, the innermost last.
    locals: Vec<String>,
    /// The types that names stand for.
    types: Vec<Option<Type>>,
    references: Vec<Option<Reference>>,
}

impl Resolver<'_> {
    fn resolve(&mut self, expr: &mut Expr) {
        if let Some((first, qualified)) = qualified_name(expr, false)
            && let Some(name) = self.global(expr.id, first, &qualified)
        {
            expr.kind = ExprKind::Ident(name);
            return;
        }
        match &mut expr.kind {
            ExprKind::Constant(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(select) => self.resolve(&mut select.operand),
            ExprKind::Call(call) => self.resolve_call(call),
            ExprKind::List(list) => list.elements.iter_mut().for_each(|element| self.resolve(element)),
            ExprKind::Map(entries) => {
                for entry in entries {
                    self.resolve(&mut entry.key);
                    self.resolve(&mut entry.value);
                }
            }
            ExprKind::Struct(message) => {
                message.type_name = message.type_name.trim_start_matches('.').to_owned();
                message.fields.iter_mut().for_each(|field| self.resolve(&mut field.value));
            }
            ExprKind::Comprehension(fold) => self.resolve_comprehension(fold),
        }
    }

    /// The name of the variable, constant or type that the node `id` refers to, if the environment declares it.
    fn global(&mut self, id: ExprId, first: &str, qualified: &str) -> Option<String> {
        let is_hidden = self.locals.iter().any(|local| local == first.trim_start_matches('.'));
        if is_hidden && !first.starts_with('.') {
            return None;
        }
        let name = qualified.trim_start_matches('.');
        let ty = self.env.global(name)?;
        let resolved = format!("{}{name}", if is_hidden { "." } else { "" });
        let reference = Reference::Ident { name: resolved.clone(), value: wellknown::constant(name) };
        set(&mut self.references, id, reference);
        if let Type::Type(_) = ty {
            set(&mut self.types, id, ty);
        }
        Some(resolved)
    }

    fn resolve_call(&mut self, call: &mut Call) {
        call.args.iter_mut().for_each(|argument| self.resolve(argument));
        let Some(target) = &mut call.target else {
            call.function = call.function.trim_start_matches('.').to_owned();
            return;
        };
        let qualified = qualified_name(target, false).map(|(_, prefix)| format!("{prefix}.{}", call.function));
        match qualified.and_then(|name| self.env.library.function(name.trim_start_matches('.'))) {
            Some(function) => {
                function.name.clone_into(&mut call.function);
                call.target = None;
            }
            None => self.resolve(target),
        }
    }

    fn resolve_comprehension(&mut self, fold: &mut Comprehension) {
        self.resolve(&mut fold.iter_range);
        self.resolve(&mut fold.accu_init);
        let outer = self.locals.len();
        self.locals.push(fold.accu_var.clone());
        let inner = self.locals.len();
        self.locals.push(fold.iter_var.clone());
        self.locals.extend(fold.iter_var2.clone());
        self.resolve(&mut fold.loop_condition);
        self.resolve(&mut fold.loop_step);
        self.locals.truncate(inner);
        self.resolve(&mut fold.result);
        self.locals.truncate(outer);
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::env::{Env, Expressions};
    use crate::cel::eval::{Program, Value};
    use crate::cel::types::Type;

    fn check(text: &str, expected: Result<Value<'_>, &str>) {
        let env = Env::kubernetes(Expressions::New).with_variable("a", Type::Int).with_variable("a.b", Type::Int);
        let expression = env.resolve(text).expect("it parses");
        let program = Program::new(&expression, &env).expect("it can be planned");
        let variables = [Some(Ok(Value::Int(1))), Some(Ok(Value::Int(2)))];
        let result = program.evaluate(&variables, 1_000).result;
        match (result.map_err(|error| error.to_string()), expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value.is(&expected), Ok(true), "{text}"),
            (result, expected) => assert_eq!(result.map(|_| ()), expected.map(|_| ()).map_err(str::to_owned), "{text}"),
        }
    }

    #[test]
    fn values_decide_which_overload_is_called() {
        check("[a, 'text'][0] + a", Ok(Value::Int(2)));
        check("a + 'text'", Err("no such overload"));
        check("true || a + 'text'", Ok(Value::Bool(true)));
    }

    #[test]
    fn the_longest_name_that_is_declared_counts() {
        check("a.b", Ok(Value::Int(2)));
        check("[{'b': 3}].map(a, a.b)[0]", Ok(Value::Int(3)));
        check("[{'b': 3}].map(a, .a.b)[0]", Ok(Value::Int(2)));
        check("type(a) == int", Ok(Value::Bool(true)));
    }

    #[test]
    fn what_is_not_declared_fails_only_where_it_is_evaluated() {
        check("b", Err("no such attribute(s): b"));
        check("b || true", Ok(Value::Bool(true)));
        check("f(a) || true", Ok(Value::Bool(true)));
    }
}
