//! Evaluation of checked expressions.
//!
//! Input: a checked expression, compiled once to a [`Program`], and the values of its variables. Output: a value or an
//! error, and the cost of the evaluation. Values of the host are read in place through their [`host::HostForm`].
//!
//! ```
//! use kubeskiff_engine::cel::env::{Env, Expressions};
//! use kubeskiff_engine::cel::eval::{Program, Value};
//! use kubeskiff_engine::cel::types::Type;
//!
//! let env = Env::kubernetes(Expressions::New).with_variable("n", Type::Int);
//! let expression = env.compile("n * 2 + 1")?;
//! let program = Program::new(&expression, &env)?;
//! let evaluation = program.evaluate(&[Some(Ok(Value::Int(20)))], 1000);
//! assert_eq!(evaluation.result?.as_int(), Some(41));
//! assert_eq!(evaluation.cost, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod error;
pub mod value;
pub(crate) mod list;
pub mod map;
pub(crate) mod host;
pub(crate) mod structure;
mod strfmt;
mod equal;
mod measure;
pub mod show;

mod node;
mod plan;
mod machine;
mod attribute;
mod dispatch;
mod message;

pub use error::EvalError;
pub use machine::{BoundValue, Compose};
pub use plan::{Evaluation, Program};
pub use value::{CallScope, Value};

#[cfg(test)]
mod tests;
