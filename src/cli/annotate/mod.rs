//! What is wrong and where, for programs that show it beside the text: what all commands with findings share.

mod github;
mod sarif;

use crate::value::yaml::TextPosition;

pub use github::show as github;
pub use sarif::show as sarif;

/// A finding, of whatever command.
pub struct Annotation {
    pub file: String,
    pub place: Option<TextPosition>,
    pub level: AnnotationLevel,
    /// What kind of finding it is: the id of a lint or of a change, the reason of an error.
    pub id: String,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationLevel {
    Error,
    Warning,
    Note,
}

/// What is known of an id beside its findings.
pub struct Described {
    pub id: &'static str,
    pub summary: &'static str,
    /// Why it matters, and what to do.
    pub help: String,
}
