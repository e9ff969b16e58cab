//! Diagnostics for the text of a `skiff.toml` while it is edited.

use std::path::Path;

use lsp_types as lsp;

use super::super::project::{FILE, SettingError, parse};
use super::convert;
use crate::author::editor::Text;

/// Whether a file is called `skiff.toml`.
pub fn is_settings(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == FILE)
}

/// The errors in the text, each from its place to the end of the line.
pub fn faults(text: &Text) -> Vec<lsp::Diagnostic> {
    parse(text.as_str()).err().unwrap_or_default().into_iter().map(|fault| diagnostic(text, fault)).collect()
}

fn diagnostic(text: &Text, SettingError { place, text: message }: SettingError) -> lsp::Diagnostic {
    let start = text.offset_of(place);
    let line = text.line_of(start);
    let end = text.line_start(line) + text.line(line).len();
    lsp::Diagnostic {
        range: convert::range(text.range(&(start..end.max(start)))),
        severity: Some(lsp::DiagnosticSeverity::ERROR),
        code: Some(lsp::NumberOrString::String("settings".to_owned())),
        source: Some("skiff".to_owned()),
        message,
        ..lsp::Diagnostic::default()
    }
}
