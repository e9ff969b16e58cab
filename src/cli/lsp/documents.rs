//! The open texts, as they are being edited.

use std::collections::BTreeMap;

use lsp_types::{DidChangeTextDocumentParams, Uri};

use super::convert::range_of;
use super::settings::is_settings;
use crate::author::editor::Text;
use crate::author::editor::check::Checks;

/// How many texts may be open at once.
const OPEN_MAX: usize = 2000;
/// The longest text that is checked, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// An open text.
pub struct OpenText {
    pub uri: Uri,
    pub version: i32,
    pub text: Text,
    pub checks: Checks,
    /// Whether its diagnostics are older than the text.
    pub is_stale: bool,
}

/// Open texts by file name.
#[derive(Default)]
pub struct Documents {
    pub open: BTreeMap<String, OpenText>,
}

impl Documents {
    /// Opens a text; returns false if too many are open.
    pub fn open(&mut self, name: String, uri: Uri, version: i32, text: String) -> bool {
        if self.open.len() >= OPEN_MAX && !self.open.contains_key(&name) {
            return false;
        }
        let open = OpenText { uri, version, text: Text::from(text), checks: Checks::default(), is_stale: true };
        self.open.insert(name, open);
        true
    }

    /// An open text that is not a `skiff.toml`.
    pub fn manifest(&self, name: &str) -> Option<&OpenText> {
        self.open.get(name).filter(|_| !is_settings(name))
    }

    /// An open text that is a `skiff.toml`.
    pub fn settings(&self, name: &str) -> Option<&OpenText> {
        self.open.get(name).filter(|_| is_settings(name))
    }

    /// Applies the edits of a client, in order.
    pub fn change(&mut self, name: &str, change: DidChangeTextDocumentParams) {
        let Some(open) = self.open.get_mut(name) else { return };
        for edit in change.content_changes {
            open.text.edit(edit.range.map(range_of), &edit.text);
        }
        open.version = change.text_document.version;
        open.is_stale = true;
    }

    /// The name of a text whose diagnostics are out of date.
    pub fn stale(&self) -> Option<String> {
        self.open.iter().find(|(_, open)| open.is_stale).map(|(name, _)| name.clone())
    }

    /// Marks the diagnostics of all texts but one as out of date.
    pub fn doubt_all_but(&mut self, name: &str) {
        self.open.iter_mut().filter(|(other, _)| *other != name).for_each(|(_, open)| open.is_stale = true);
    }
}
