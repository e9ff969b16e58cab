//! What is checked of nodes beside their fields: taints, wherever they are, and annotations.

mod annotations;
mod taints;

pub use annotations::validate as validate_annotations;
pub use taints::{show, validate as validate_taints};
