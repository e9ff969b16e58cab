//! The edit that adds a case to a suite.

use std::path::Path;

use lsp_types as lsp;

use super::documents::Documents;
use super::files::read_file;
use super::uri::uri_of;
use crate::author::editor::Text;
use crate::author::editor::actions::{CaseAction, new_suite, whole_edit, with_case};

/// The edit that adds a case to its suite. The suite's file is in the project's first folder of
/// suites, or else beside the file `asked`; it is created if it does not exist.
pub fn edit(
    documents: &Documents,
    suites: Option<&Path>,
    asked: &str,
    case: &CaseAction,
) -> Option<lsp::WorkspaceEdit> {
    let beside = asked.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = suites.filter(|path| path.is_dir()).map_or_else(|| beside.to_owned(), super::files::name_of);
    let file = format!("{folder}/{}.suite.yaml", case.suite);
    let uri = uri_of(&file)?;
    let open = documents.open.get(&file);
    let before = open.map(|open| open.text.as_str().to_owned()).or_else(|| read_file(Path::new(&file)));
    let mut changes = Vec::new();
    let edit = match before {
        Some(before) => {
            let changed = with_case(&before, &folder, case)?;
            super::convert::edit(whole_edit(&Text::from(before), &changed)?)
        }
        None => {
            let create = lsp::CreateFile { uri: uri.clone(), options: None, annotation_id: None };
            changes.push(lsp::DocumentChangeOperation::Op(lsp::ResourceOp::Create(create)));
            lsp::TextEdit { range: lsp::Range::default(), new_text: new_suite(&folder, case) }
        }
    };
    changes.push(lsp::DocumentChangeOperation::Edit(lsp::TextDocumentEdit {
        text_document: lsp::OptionalVersionedTextDocumentIdentifier { uri, version: open.map(|open| open.version) },
        edits: vec![lsp::OneOf::Left(edit)],
    }));
    Some(lsp::WorkspaceEdit {
        document_changes: Some(lsp::DocumentChanges::Operations(changes)),
        ..lsp::WorkspaceEdit::default()
    })
}
