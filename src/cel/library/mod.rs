//! The functions that expressions may call, one family per file: what they take and give, and what they do.

pub mod declarations;
pub mod functions;

pub use declarations::functions as kubernetes;
pub use functions::{duration_text, implementation, timestamp_text};
