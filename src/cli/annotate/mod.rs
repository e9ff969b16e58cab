//! Findings with their places, for programs that show them beside the text; shared by all commands
//! with findings.

mod github;
mod sarif;

use crate::value::yaml::TextPosition;

pub use github::show as github;
pub use sarif::show as sarif;

/// A finding of any command.
pub struct Annotation {
    pub file: String,
    pub place: Option<TextPosition>,
    pub level: AnnotationLevel,
    /// The kind of finding: the id of a lint or of a change, or the reason of an error.
    pub id: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationLevel {
    Error,
    Warning,
    Note,
}

/// The description of an id.
pub struct Described {
    pub id: &'static str,
    pub summary: &'static str,
    /// Why it matters, and what to do.
    pub help: String,
}
