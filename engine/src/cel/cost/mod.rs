//! The cost of expressions.
//!
//! The cost of a call is part of its overload, a [`Cost`]: one formula works on ranges of sizes, before an expression
//! is accepted ([`estimate`](estimate())), another one on the sizes of values, while it runs. [`model`] holds the
//! constants that belong to no function. The estimate is not a bound on what evaluation costs: keys of maps count as
//! empty in it, as in the reference.
//!
//! ```
//! use kubeskiff_engine::cel::cost::{Range, estimate};
//! use kubeskiff_engine::cel::declared::DeclType;
//! use kubeskiff_engine::cel::env::{Env, Expressions};
//! use kubeskiff_engine::cel::types::Type;
//!
//! // A list of up to 100 texts of up to 20 characters, which are up to 4 bytes each.
//! let names = DeclType::list(DeclType::scalar(Type::String, 80, 2), 100);
//! let env = Env::kubernetes(Expressions::New).with_variable("self", names.ty.clone());
//! let expression = env.compile("self.all(name, name.startsWith('a'))")?;
//! assert_eq!(estimate(&expression, &names), Range::new(2, 502));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: cel-go 0.29 (`checker/cost.go`, `interpreter/runtimecost.go`) and `k8s.io/apiserver/pkg/cel/library/cost.go`,
//! release 1.37.

pub(crate) mod actual;
mod estimate;
pub(crate) mod formula;
pub mod model;
mod path;
mod range;

pub use actual::Called;
pub use estimate::{EntrySizes, Estimate, Sizes, estimate, estimate_with};
pub use formula::Cost;
pub use range::Range;
