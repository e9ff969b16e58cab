//! Go's error texts for files that can't be opened, and for several errors at once.

use std::fmt::{self, Display};
use std::io::{Error, ErrorKind};

/// Why a file can't be used; prints as Go's `os.PathError` does.
#[derive(Debug, thiserror::Error)]
#[error("{call} {path}: {}", go_reason(.source))]
pub struct PathError {
    /// The failed operation: `open` or `stat`.
    pub call: &'static str,
    pub path: String,
    pub source: Error,
}

impl PathError {
    /// The error of opening the file at `path`.
    pub fn open(path: impl Display) -> impl FnOnce(Error) -> Self {
        let path = path.to_string();
        move |source| PathError { call: "open", path, source }
    }
}

/// Several errors, printed as by Go's `errors.NewAggregate`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Aggregate<E>(Vec<E>);

impl<E> Aggregate<E> {
    /// Returns the errors if there are any.
    ///
    /// # Errors
    ///
    /// `errors` is not empty.
    pub fn refuse(errors: Vec<E>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Aggregate(errors)) }
    }
}

impl<E: Display> Display for Aggregate<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [error] => error.fmt(formatter),
            errors => {
                let texts: Vec<String> = errors.iter().map(E::to_string).collect();
                write!(formatter, "[{}]", texts.join(", "))
            }
        }
    }
}

/// The reason in Go's error, after `open PATH: `.
pub fn go_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file or directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_gos() {
        let missing = std::fs::read("/nonexistent").expect_err("it is not there");
        assert_eq!(go_reason(&missing), "no such file or directory");
        let error = PathError::open("/nonexistent")(missing);
        assert_eq!(error.to_string(), "open /nonexistent: no such file or directory");
    }

    #[test]
    fn one_error_stands_without_brackets() {
        let told = |errors: &[&'static str]| Aggregate::refuse(errors.to_vec()).map_err(|all| all.to_string());
        assert_eq!(told(&[]), Ok(()));
        assert_eq!(told(&["a"]), Err("a".to_owned()));
        assert_eq!(told(&["a", "b"]), Err("[a, b]".to_owned()));
    }
}
