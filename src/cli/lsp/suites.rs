//! Where a new case of a suite goes.

use std::path::Path;

use lsp_types as lsp;

use super::documents::Documents;
use super::files::read_file;
use super::uri::uri_of;
use crate::author::editor::actions::with_case;
use crate::author::editor::{Text, Workspace};

/// The edit that adds a case to the suite of a kind: it lies in the project's first folder of suites, or else beside the
/// object, and is made where it is not there.
pub fn edit(
    workspace: &Workspace,
    documents: &Documents,
    suites: Option<&Path>,
    (object, group, kind): (&str, &str, &str),
    case: &str,
) -> Option<lsp::WorkspaceEdit> {
    let beside = object.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = suites.filter(|path| path.is_dir()).map_or_else(|| beside.to_owned(), super::files::name_of);
    let file = format!("{folder}/{}.suite.yaml", kind.to_lowercase());
    let uri = uri_of(&file)?;
    let open = documents.open.get(&file);
    let before = open.map(|open| open.text.as_str().to_owned()).or_else(|| read_file(Path::new(&file)));
    let mut changes = Vec::new();
    let (range, text) = match &before {
        Some(before) => {
            let whole = Text::from(before.as_str());
            let end = super::convert::range(whole.range(&(before.len()..before.len())));
            let changed = with_case(before, case)?;
            (end, changed.strip_prefix(before.as_str())?.to_owned())
        }
        None => {
            let create = lsp::CreateFile { uri: uri.clone(), options: None, annotation_id: None };
            changes.push(lsp::DocumentChangeOperation::Op(lsp::ResourceOp::Create(create)));
            let definition = relative(&folder, workspace.file_of(group, kind)?);
            (lsp::Range::default(), format!("crds: [{definition:?}]\ncases:\n{case}"))
        }
    };
    changes.push(lsp::DocumentChangeOperation::Edit(lsp::TextDocumentEdit {
        text_document: lsp::OptionalVersionedTextDocumentIdentifier { uri, version: open.map(|open| open.version) },
        edits: vec![lsp::OneOf::Left(lsp::TextEdit { range, new_text: text })],
    }));
    Some(lsp::WorkspaceEdit {
        document_changes: Some(lsp::DocumentChanges::Operations(changes)),
        ..lsp::WorkspaceEdit::default()
    })
}

/// A path as seen from a folder.
fn relative(folder: &str, path: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (folder.split('/').collect(), path.split('/').collect());
    let same = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let ups = std::iter::repeat_n("..", from.len() - same);
    ups.chain(to[same..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_a_folder() {
        assert_eq!(relative("/a/b", "/a/c/d.yaml"), "../c/d.yaml");
        assert_eq!(relative("/a", "/a/d.yaml"), "d.yaml");
    }
}
