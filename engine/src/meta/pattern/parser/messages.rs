//! The errors of Go's parser.

use crate::meta::pattern::PatternError;

pub(super) const BAD_RANGE: &str = "invalid character class range";
pub(super) const BAD_ESCAPE: &str = "invalid escape sequence";
pub(super) const BAD_NAME: &str = "invalid named capture";
pub(super) const BAD_PERL: &str = "invalid or unsupported Perl syntax";
pub(super) const BAD_COUNT: &str = "invalid repeat count";
pub(super) const NESTED_REPEAT: &str = "invalid nested repetition operator";
pub(super) const NOTHING_TO_REPEAT: &str = "missing argument to repetition operator";
pub(super) const NO_BRACKET: &str = "missing closing ]";
pub(super) const NO_PAREN: &str = "missing closing )";
pub(super) const STRAY_PAREN: &str = "unexpected )";
pub(super) const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
pub(super) const TOO_DEEP: &str = "expression nests too deeply";
pub(super) const TOO_LARGE: &str = "expression too large";

pub(super) fn error(code: &'static str, fragment: &str) -> PatternError {
    PatternError { code, fragment: fragment.to_owned() }
}
