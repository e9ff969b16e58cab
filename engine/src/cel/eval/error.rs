//! What an evaluation can end in beside a value.

use std::borrow::Cow;
use std::fmt;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The evaluation failed; the text is cel-go's. `&&`, `||` and the like may pass over it.
    Failed(Cow<'static, str>),
    /// The evaluation became too dear and was given up; nothing passes over that.
    CostLimitExceeded,
    /// Where the reference itself fails, in Go's words; nothing passes over that either.
    Internal(Box<str>),
}

impl EvalError {
    /// A failure with the text `text`.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        EvalError::Failed(text.into())
    }

    /// No overload takes values as these, where it is not said of which function.
    pub const fn no_such_overload() -> Self {
        EvalError::Failed(Cow::Borrowed("no such overload"))
    }
}

impl EvalError {
    /// Whether the evaluation is over, so that nothing passes over the error.
    pub fn is_final(&self) -> bool {
        !matches!(self, EvalError::Failed(_))
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Failed(text) => formatter.write_str(text),
            EvalError::Internal(text) => write!(formatter, "internal error: {text}"),
            EvalError::CostLimitExceeded => formatter.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

impl std::error::Error for EvalError {}
