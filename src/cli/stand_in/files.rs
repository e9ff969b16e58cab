//! What Go's programs say of files that can't be opened.

use std::io::{Error, ErrorKind};

/// The reason, as Go tells it behind `open PATH: `.
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
    }
}
