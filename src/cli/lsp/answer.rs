//! Answers requests.

use lsp_server::ErrorCode;
use lsp_types as lsp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::documents::{Documents, OpenText};
use super::folders::Folders;
use super::uri::{name_of, uri_of};
use super::{convert, settings_help, suites};
use crate::author::editor::actions::{ActionChange, Aim, CodeAction};
use crate::author::editor::symbols::symbols;
use crate::author::editor::tokens::tokens;

/// The result of a request, or an error.
type LspAnswer = Result<Value, (ErrorCode, String)>;

/// What answers are computed from.
pub struct AnswerSources<'s> {
    pub folders: &'s Folders,
    pub documents: &'s Documents,
}

/// The capabilities of the server.
pub fn capabilities() -> Value {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            "textDocumentSync": {"openClose": true, "change": 2, "save": true},
            "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
            "completionProvider": {"triggerCharacters": [".", ":", " ", "-", "\"", "'"]},
            "hoverProvider": true,
            "definitionProvider": true,
            "documentSymbolProvider": true,
            "codeActionProvider": {"codeActionKinds": ["quickfix", "source"]},
            "semanticTokensProvider": {
                "legend": {"tokenTypes": convert::legend(), "tokenModifiers": []},
                "full": true,
            },
        },
        "serverInfo": {"name": "skiff", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Answers a request.
pub fn answer(sources: &AnswerSources<'_>, method: &str, params: Value) -> LspAnswer {
    match method {
        "textDocument/completion" => completion(sources, read(params)?),
        "textDocument/hover" => hover(sources, read(params)?),
        "textDocument/definition" => definition(sources, read(params)?),
        "textDocument/codeAction" => actions(sources, read(params)?),
        "textDocument/documentSymbol" => {
            let params: lsp::DocumentSymbolParams = read(params)?;
            let open = sources.documents.manifest(&name_of(&params.text_document.uri));
            let found = open.map(|open| symbols(&open.text)).unwrap_or_default();
            tell(found.into_iter().map(convert::symbol).collect::<Vec<_>>())
        }
        "textDocument/semanticTokens/full" => {
            let params: lsp::SemanticTokensParams = read(params)?;
            let name = name_of(&params.text_document.uri);
            let open = sources.documents.manifest(&name);
            let found = open.map(|open| tokens(&name, &open.text)).unwrap_or_default();
            tell(lsp::SemanticTokens { result_id: None, data: convert::tokens(&found) })
        }
        _ => Err((ErrorCode::MethodNotFound, format!("there is no {method}"))),
    }
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, (ErrorCode, String)> {
    serde_json::from_value(params).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

fn tell(answer: impl serde::Serialize) -> LspAnswer {
    serde_json::to_value(answer).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}

fn completion(sources: &AnswerSources<'_>, params: lsp::CompletionParams) -> LspAnswer {
    let lsp::TextDocumentPositionParams { text_document, position } = params.text_document_position;
    let name = name_of(&text_document.uri);
    let position = convert::position_of(position);
    let offered = if let Some(OpenText { text, .. }) = sources.documents.settings(&name) {
        settings_help::complete(text, text.offset(position))
    } else {
        let Some(open) = sources.documents.manifest(&name) else { return Ok(Value::Null) };
        sources.folders.of(&name).workspace.complete(&name, &open.text, position)
    };
    tell(
        offered
            .into_iter()
            .enumerate()
            .map(|(number, offered)| convert::completion(number, offered))
            .collect::<Vec<_>>(),
    )
}

fn hover(sources: &AnswerSources<'_>, params: lsp::HoverParams) -> LspAnswer {
    let lsp::TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
    let name = name_of(&text_document.uri);
    let position = convert::position_of(position);
    let told = if let Some(OpenText { text, .. }) = sources.documents.settings(&name) {
        settings_help::hover(text, text.offset(position))
    } else {
        let Some(open) = sources.documents.manifest(&name) else { return Ok(Value::Null) };
        sources.folders.of(&name).workspace.hover(&name, &open.text, position)
    };
    tell(told.map(convert::hover))
}

fn definition(sources: &AnswerSources<'_>, params: lsp::GotoDefinitionParams) -> LspAnswer {
    let lsp::TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
    let name = name_of(&text_document.uri);
    let Some(open) = sources.documents.manifest(&name) else { return Ok(Value::Null) };
    let target = sources.folders.of(&name).workspace.define(&name, &open.text, convert::position_of(position));
    let location = target.and_then(|target| {
        let uri =
            sources.documents.open.get(&target.file).map(|open| open.uri.clone()).or_else(|| uri_of(&target.file))?;
        Some(lsp::Location { uri, range: convert::range(target.range) })
    });
    tell(location)
}

fn actions(sources: &AnswerSources<'_>, params: lsp::CodeActionParams) -> LspAnswer {
    let name = name_of(&params.text_document.uri);
    let Some(open) = sources.documents.manifest(&name) else { return Ok(Value::Null) };
    let range = convert::range_of(params.range);
    let found = sources.folders.of(&name).workspace.actions(&name, &open.text, range);
    let told = found.into_iter().filter_map(|CodeAction { title, aim, code, change }| {
        let edit = match change {
            ActionChange::Edits(edits) => {
                let edits = edits.into_iter().map(|edit| lsp::OneOf::Left(convert::edit(edit))).collect();
                let text_document =
                    lsp::OptionalVersionedTextDocumentIdentifier { uri: open.uri.clone(), version: Some(open.version) };
                let changes = lsp::DocumentChanges::Edits(vec![lsp::TextDocumentEdit { text_document, edits }]);
                lsp::WorkspaceEdit { document_changes: Some(changes), ..lsp::WorkspaceEdit::default() }
            }
            ActionChange::Elsewhere(file, edit) => {
                let other = sources.documents.open.get(&file);
                let text_document = lsp::OptionalVersionedTextDocumentIdentifier {
                    uri: other.map(|open| open.uri.clone()).or_else(|| uri_of(&file))?,
                    version: other.map(|open| open.version),
                };
                let edits = vec![lsp::OneOf::Left(convert::edit(edit))];
                let changes = lsp::DocumentChanges::Edits(vec![lsp::TextDocumentEdit { text_document, edits }]);
                lsp::WorkspaceEdit { document_changes: Some(changes), ..lsp::WorkspaceEdit::default() }
            }
            ActionChange::Case(case) => {
                let suites = sources.folders.of(&name).project.suites.first().map(std::path::PathBuf::as_path);
                suites::edit(sources.documents, suites, &name, &case)?
            }
        };
        let is_meant = |diagnostic: &&lsp::Diagnostic| {
            matches!((&diagnostic.code, &code), (Some(lsp::NumberOrString::String(told)), Some(code)) if told == code)
        };
        let diagnostics: Vec<lsp::Diagnostic> = params.context.diagnostics.iter().filter(is_meant).cloned().collect();
        Some(lsp::CodeAction {
            title,
            kind: Some(match aim {
                Aim::Fix => lsp::CodeActionKind::QUICKFIX,
                Aim::New => lsp::CodeActionKind::SOURCE,
            }),
            diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
            edit: Some(edit),
            ..lsp::CodeAction::default()
        })
    });
    tell(told.collect::<Vec<_>>())
}
