//! The output of commands: results go to stdout, everything else to stderr.
//!
//! An error of either never ends a command: the reader may have closed the pipe, and a disk may be
//! full. The macros of the standard library panic then, so this crate does not use them
//! (`tests/tidy.rs`).

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

/// The exit code for wrong use, or for something that can't be read or written.
pub const UNUSABLE: u8 = 2;

/// Prints a message with the program's name on stderr. An error is ignored, as it can't be
/// reported.
pub fn tell(message: impl Display) {
    note(format_args!("skiff: {message}"));
}

/// Writes a line to stderr as it is.
pub fn note(line: impl Display) {
    // A single write, so that lines of several processes are not mixed.
    _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes the result of a command to stdout. Returns `code`, or 2 if that can't be written; a
/// closed pipe is not an error.
pub fn output(text: impl AsRef<[u8]>, code: ExitCode) -> ExitCode {
    let mut out = Stdout::default();
    _ = out.write(text);
    out.finish(code)
}

/// The stdout of a command that prints results as it finds them.
#[derive(Default)]
pub struct Stdout {
    is_unwritable: bool,
}

impl Stdout {
    /// Writes at once. Breaks off if the pipe is closed, and if stdout can't be written, which is
    /// reported.
    pub fn write(&mut self, text: impl AsRef<[u8]>) -> ControlFlow<()> {
        let mut out = io::stdout().lock();
        let Err(error) = out.write_all(text.as_ref()).and_then(|()| out.flush()) else {
            return ControlFlow::Continue(());
        };
        if error.kind() != io::ErrorKind::BrokenPipe {
            tell(format_args!("standard output can't be written: {error}"));
            self.is_unwritable = true;
        }
        ControlFlow::Break(())
    }

    /// `code`, or 2 if something could not be written.
    pub fn finish(self, code: ExitCode) -> ExitCode {
        if self.is_unwritable { ExitCode::from(UNUSABLE) } else { code }
    }
}

/// The exit code of a command: 2 if something could not be read, 1 if something is wrong.
pub fn ending(is_readable: bool, is_fine: bool) -> ExitCode {
    match (is_readable, is_fine) {
        (false, _) => ExitCode::from(UNUSABLE),
        (true, false) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
    }
}

/// Whether stdout is a terminal, and `NO_COLOR` is not set.
pub fn is_styled() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Replaces the passwords in the URLs of `text` (`SCHEME://USER:PASSWORD@HOST`) by `hidden`.
pub fn without_passwords(text: &str, hidden: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        told.push_str(before);
        told.push_str("://");
        rest = after;
        // The password may contain characters that should be escaped: rather hide too much.
        let url = &after[..after.find([' ', '\n', '\'']).unwrap_or(after.len())];
        if let Some((user, _)) = url.rsplit_once('@')
            && let Some((name, _)) = user.split_once(':')
        {
            told.push_str(&format!("{name}:{hidden}"));
            rest = &after[user.len()..];
        }
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_hidden() {
        let check = |text: &str, expected: &str| assert_eq!(without_passwords(text, "***"), expected);
        check("--store 'postgres://u:p@h/d' is none", "--store 'postgres://u:***@h/d' is none");
        check("a://u:p:q@h and b://v:p@@h", "a://u:***@h and b://v:***@h");
        check("a://u:p/q?r@h/d", "a://u:***@h/d");
        check("https://h:6443/a, u:p@h, a://u@h", "https://h:6443/a, u:p@h, a://u@h");
    }
}
