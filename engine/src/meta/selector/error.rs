//! The errors of selectors.

use super::super::field::{Error, ErrorList};
use crate::value::go_quote;

/// Why a text or a value is not a selector, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectorError {
    /// An unexpected token.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// An unexpected token where the values of an operator should begin.
    #[error("found '{0}' expected: '('")]
    NoValues(String),
    /// A requirement is malformed.
    #[error("unable to parse requirement: {0}")]
    Requirement(Box<SelectorError>),
    /// A key is not a valid label name.
    #[error(transparent)]
    Key(Box<Error>),
    /// Values are not valid label values.
    #[error("{}", .0.aggregate())]
    Values(ErrorList),
    /// An operator that does not exist.
    #[error("{} is not a valid label selector operator", go_quote(.0))]
    Operator(String),
    /// A part without an operator.
    #[error("invalid selector: '{text}'; can't understand '{part}'")]
    Term {
        /// The whole text.
        text: String,
        /// The part.
        part: String,
    },
    /// A backslash at the end, or before a character that can't be escaped.
    #[error("invalid field selector: invalid escape sequence: \\{}", .0.map(String::from).unwrap_or_default())]
    Escape(Option<char>),
    /// A character that must be escaped with a backslash.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}
