//! What is wrong with the text of a `skiff.toml`, as somebody types it.

use std::path::Path;

use lsp_types as lsp;

use super::super::project::{FILE, SettingError, parse};
use super::convert;
use crate::author::editor::Text;

/// Whether a file is that of a project.
pub fn is_settings(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == FILE)
}

/// Each fault at its place, up to the end of its line.
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
