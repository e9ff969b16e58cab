//! The errors of an evaluation.

use std::borrow::Cow;

use thiserror::Error;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvalError {
    /// The evaluation failed; the message is cel-go's. `&&`, `||` and the like may absorb it.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// No overload of a function accepts these values; with the call, if it is reported. Otherwise the same as a
    /// failure.
    #[error("no such overload{}", after_colon(.0.as_deref()))]
    NoSuchOverload(Option<Box<str>>),
    /// The evaluation exceeded its cost limit and was aborted; nothing absorbs that.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimitExceeded,
    /// The reference itself fails here, with this message; nothing absorbs that either.
    #[error("internal error: {0}")]
    Internal(Box<str>),
}

/// DIFFERS: the maximum length in bytes of a text that a replacement, a join or a format makes. In Kubernetes only memory
/// limits it.
pub const TEXT_BYTES_MAX: usize = 64 << 20;

impl EvalError {
    /// A text would be longer than [`TEXT_BYTES_MAX`].
    pub fn text_too_long() -> Self {
        EvalError::new(format!("string of more than {TEXT_BYTES_MAX} bytes"))
    }

    /// A failure with the message `text`.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        EvalError::Failed(text.into())
    }

    /// No overload accepts these values, without the name of the function.
    pub const fn no_such_overload() -> Self {
        EvalError::NoSuchOverload(None)
    }

    /// No overload accepts the values of `call`.
    pub fn no_overload_of(call: impl Into<Box<str>>) -> Self {
        EvalError::NoSuchOverload(Some(call.into()))
    }

    /// Whether the evaluation is over, so that nothing absorbs the error.
    pub fn is_final(&self) -> bool {
        match self {
            EvalError::Failed(_) | EvalError::NoSuchOverload(_) => false,
            EvalError::CostLimitExceeded | EvalError::Internal(_) => true,
        }
    }
}

fn after_colon(call: Option<&str>) -> String {
    call.map_or_else(String::new, |call| format!(": {call}"))
}
