//! What commands write: findings to stdout, everything else to stderr.
//!
//! Neither ever ends a command: whoever reads may have seen enough, and a disk may be full. The macros of the standard
//! library panic then, so none of them stands in this crate (`tests/tidy.rs`).

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Wrong use, or what can't be read or written.
pub const UNUSABLE: u8 = 2;

/// Tells on stderr what went wrong or was done. Where that can't be written, there is nobody to tell.
pub fn tell(message: impl Display) {
    note(format_args!("skiff: {message}"));
}

/// Writes a line to stderr, as it is.
pub fn note(line: impl Display) {
    // One write, so that lines of several processes don't mix.
    _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes what a command found to stdout. Returns `code`, or 2 where that can't be written; a reader that has seen enough
/// is not a fault.
pub fn output(text: impl AsRef<[u8]>, code: ExitCode) -> ExitCode {
    let mut out = Stdout::default();
    _ = out.write(text);
    out.finish(code)
}

/// Stdout of a command that tells what it finds as it finds it.
#[derive(Default)]
pub struct Stdout {
    is_unwritable: bool,
}

impl Stdout {
    /// Writes at once. Breaks off where nobody reads any more, and where nothing can be written, which is told.
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

    /// `code`, or 2 where something could not be written.
    pub fn finish(self, code: ExitCode) -> ExitCode {
        if self.is_unwritable { ExitCode::from(UNUSABLE) } else { code }
    }
}

/// How a command ends: with 2 where something could not be read, with 1 where something is not as it should be.
pub fn ending(is_readable: bool, is_fine: bool) -> ExitCode {
    match (is_readable, is_fine) {
        (false, _) => ExitCode::from(UNUSABLE),
        (true, false) => ExitCode::FAILURE,
        (true, true) => ExitCode::SUCCESS,
    }
}

/// Whether stdout is a terminal whose user wants colours.
pub fn is_styled() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// `text` with `hidden` in place of the passwords in its URLs (`SCHEME://USER:PASSWORD@HOST`).
pub fn without_passwords(text: &str, hidden: &str) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        told.push_str(before);
        told.push_str("://");
        rest = after;
        // A password may have what should stand escaped in it: rather too much is hidden.
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
