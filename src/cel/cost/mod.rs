//! What expressions cost.
//!
//! [`model`] holds every constant and tells which formula prices a call; [`estimate`](estimate::estimate) reads it with
//! sizes that are ranges, before an expression is accepted, and [`CallCost::actual`] with the sizes of values, while it
//! runs. The estimate is no bound on what evaluation costs: keys of maps count as empty in it, as in the reference.
//!
//! Source: cel-go 0.29 (`checker/cost.go`, `interpreter/runtimecost.go`) and `k8s.io/apiserver/pkg/cel/library/cost.go`,
//! release 1.37.

mod actual;
mod estimate;
pub mod model;
mod path;
mod range;

pub use actual::Measure;
pub use estimate::estimate;
pub use model::{CallCost, call_cost};
pub use range::Range;
