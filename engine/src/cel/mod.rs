//! The Common Expression Language (CEL), as Kubernetes 1.37 implements it.
//!
//! The parser turns text into an [`ast::Ast`]. An [`env::Env`] of declared variables and functions turns that into a
//! [`checker::CheckedExpr`], which [`cost`] estimates and [`eval`] runs. Nothing here does I/O, reads a clock or needs
//! the server. Messages, positions and costs are those of cel-go 0.29 with the Kubernetes libraries. Each function is
//! defined once, with its signatures, cost and implementation: in [`library`], one file per family.
//!
//! A rule such as
//!
//! ```yaml
//! x-kubernetes-validations:
//! - rule: self.replicas <= self.maxReplicas
//! ```
//!
//! is an expression over one variable:
//!
//! ```
//! use kubeskiff_engine::cel::env::{Env, Expressions};
//! use kubeskiff_engine::cel::eval::map::Map;
//! use kubeskiff_engine::cel::eval::{Program, Value};
//! use kubeskiff_engine::cel::types::Type;
//!
//! let env = Env::kubernetes(Expressions::Stored).with_variable("self", Type::map(Type::String, Type::Int));
//! let checked = env.compile("self.replicas <= self.maxReplicas")?;
//! assert_eq!(*checked.result_type(), Type::Bool);
//!
//! let program = Program::new(&checked, &env)?;
//! let entries = [("replicas", 3), ("maxReplicas", 2)].map(|(name, count)| (Value::string(name), Value::Int(count)));
//! let object = Value::Map(Map::owned(entries));
//!
//! let evaluation = program.evaluate(&[Some(Ok(object))], 1_000);
//! assert_eq!(evaluation.result?.as_bool(), Some(false));
//! assert_eq!(evaluation.cost, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! JSON is read in place, through an [`eval::host::HostForm`]; [`cost::estimate`] computes the worst-case cost of an
//! expression before it runs. The example `rule` does all of that with a schema.
//!
//! Faults of an expression are reported as `kubectl` shows them:
//!
//! ```
//! use kubeskiff_engine::cel::env::{Env, Expressions};
//! use kubeskiff_engine::cel::types::Type;
//!
//! let env = Env::kubernetes(Expressions::New).with_variable("self", Type::String);
//! let issues = env.compile("self.size() > '3'").unwrap_err();
//! assert_eq!(
//!     issues.to_string(),
//!     "ERROR: <input>:1:13: found no matching overload for '_>_' applied to '(int, string)'\n \
//!      | self.size() > '3'\n \
//!      | ............^",
//! );
//! ```
//!
//! # The way of an expression
//!
//! `cel` knows nothing about Kubernetes objects; `schema::declare` and `schema::rules` connect the two.
//!
//! - **Text to tree** (`lexer`, `syntax`, `parser`, `macros`): recursive descent with cel-go's limit on depth, and with
//!   the error recovery and the messages of cel-go's generated parser. Ids are assigned in cel-go's order, because
//!   errors and costs refer to them.
//! - **Tree to types** (`checker`): declarations come from the structural schema, one object type per position. The
//!   functions are declared in `library`; an environment for new expressions may hold fewer of them than one for stored
//!   expressions. `checker::resolve` resolves names but leaves types to the evaluation, for expressions that are not
//!   type-checked.
//! - **Types to a cost** (`cost`): one table of calls, by overload, serves both the estimate and the actual cost of a
//!   run. Paths are kept as cel-go keeps them, including memory that they share, because the estimate depends on it.
//! - **Types to a program** (`eval`): names are resolved to slots, overloads to functions, constants to values. Objects
//!   are read in place, through a form that tells how a position in the JSON appears to the expression; only what the
//!   expression reads is converted. The steps of `eval::machine` are functions that are never inlined into the one that
//!   dispatches to them, and they pass values on in place: copying a value right after it was written stalls the
//!   processor, and once doubled the time of a rule over a list.
//! - Programs are compiled at the first write to a version, and kept with it. Definitions are compiled and their costs
//!   estimated when they are written, with separate environments for new and for already stored expressions.

pub mod ast;
pub mod declared;
pub(crate) mod error;
pub mod types;
pub(crate) mod wellknown;
pub(crate) mod mutation;
pub(crate) mod escape;

pub(crate) mod lexer;
pub(crate) mod syntax;
pub(crate) mod literal;
pub(crate) mod language;
pub(crate) mod builder;
pub(crate) mod macros;
pub mod parser;
pub mod print;

pub(crate) mod checked;
pub(crate) mod checker;
pub mod cost;
pub mod env;
pub mod function;
pub mod eval;
pub(crate) mod calendar;
pub mod library;

#[cfg(test)]
mod tests {
    use super::cost::estimate;
    use super::declared::DeclType;
    use super::env::{Env, Expressions};
    use super::eval::{Program, Value};
    use super::types::Type;

    /// The stack that suffices for all steps; without optimization, calls take several times the space.
    const STACK_BYTES: usize = if cfg!(debug_assertions) { 8 << 20 } else { 1 << 20 };

    fn on_a_small_stack(test: fn()) {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test).expect("a thread can be made");
        thread.join().expect("it does not panic");
    }

    /// Takes `text` through all steps; it does not matter whether it gets to the end.
    fn run(text: &str) {
        let env = Env::kubernetes(Expressions::Stored).with_variable("self", Type::Bool);
        let Ok(checked) = env.compile(text) else { return };
        estimate(&checked, &DeclType::scalar(Type::Bool, 0, 4));
        let Ok(program) = Program::new(&checked, &env) else { return };
        // The result does not matter, only that the evaluation ends.
        let _ = program.evaluate(&[Some(Ok(Value::Bool(true)))], 1_000_000);
    }

    #[test]
    fn no_depth_overflows_the_stack() {
        on_a_small_stack(go_deep);
    }

    fn go_deep() {
        let nested = |open: &str, inner: &str, close: &str| {
            for depth in [60, 120, 124, 240, 249] {
                run(&format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)));
            }
        };
        nested("(", "1", ")");
        nested("[", "1", "]");
        nested("{1: ", "1", "}");
        nested("self || self && !dyn(", "self", ")");
        nested("self == (self && (self || ", "self", "))");
        nested("[1].all(x, ", "self", ")");
        nested("[1].map(x, self, ", "self", ")");
        nested("[1].exists(x, self && x > 0 || !", "self", ")");
        nested("{'a': 1}.transformMap(k, v, ", "self", ")");
        nested("optional.of(", "self", ")");
        nested("[?optional.of(", "self", ")]");
        nested("self ? self : (", "self", ")");
        nested("self ? ", "self", " : self");
        nested("{1: true}[", "1", "] ? 1 : 2");
        nested("-(", "1", ")");
        nested("'%s'.format([", "1", "])");
    }

    #[test]
    fn no_length_overflows_the_stack() {
        on_a_small_stack(go_far);
    }

    fn go_far() {
        for count in [100, 248, 1_000, 9_000] {
            run(&vec!["self"; count].join(" && "));
            run(&vec!["1"; count].join(" + "));
            run(&format!("self{}", ".a".repeat(count)));
            run(&format!("[{}]", vec!["1"; count].join(", ")));
            run(&format!("{}self", "!".repeat(count)));
            run(&format!("[[1]]{}", ".map(x, x)".repeat(count.min(248))));
            run(&format!("[[1]]{}", ".flatten()".repeat(count.min(248))));
            run(&format!("optional.of(1){}", ".optMap(x, x)".repeat(count.min(8))));
        }
    }
}
