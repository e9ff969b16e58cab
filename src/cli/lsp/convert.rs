//! Converts the results of the editor's tools to the types of the protocol.

use lsp_types as lsp;

use crate::author::editor::check::{Diagnostic, Severity};
use crate::author::editor::complete::{CompletionItem, Sign};
use crate::author::editor::hover::Hover;
use crate::author::editor::symbols::Symbol;
use crate::author::editor::tokens::{ExpressionToken, WordKind};
use crate::author::editor::{Edit, Position, TextRange};

pub fn position_of(position: lsp::Position) -> Position {
    Position { line: position.line, character: position.character }
}

pub fn range_of(range: lsp::Range) -> TextRange {
    TextRange { start: position_of(range.start), end: position_of(range.end) }
}

fn position(position: Position) -> lsp::Position {
    lsp::Position { line: position.line, character: position.character }
}

pub fn range(range: TextRange) -> lsp::Range {
    lsp::Range { start: position(range.start), end: position(range.end) }
}

pub fn edit(edit: Edit) -> lsp::TextEdit {
    lsp::TextEdit { range: range(edit.range), new_text: edit.text }
}

pub fn diagnostic(found: Diagnostic) -> lsp::Diagnostic {
    lsp::Diagnostic {
        range: range(found.range),
        severity: Some(match found.severity {
            Severity::Error => lsp::DiagnosticSeverity::ERROR,
            Severity::Warning => lsp::DiagnosticSeverity::WARNING,
            Severity::Information => lsp::DiagnosticSeverity::INFORMATION,
        }),
        code: Some(lsp::NumberOrString::String(found.code)),
        source: Some("skiff".to_owned()),
        message: found.message,
        ..lsp::Diagnostic::default()
    }
}

/// Converts a completion item. The sort order puts required items first, and otherwise
/// follows `number`.
pub fn completion(number: usize, offered: CompletionItem) -> lsp::CompletionItem {
    let CompletionItem { label, sign, detail, documentation, is_required, edit: with } = offered;
    let rank = if is_required { 0 } else { 1 };
    lsp::CompletionItem {
        kind: Some(match sign {
            Sign::Field => lsp::CompletionItemKind::FIELD,
            Sign::Value => lsp::CompletionItemKind::VALUE,
            Sign::Kind => lsp::CompletionItemKind::CLASS,
            Sign::Variable => lsp::CompletionItemKind::VARIABLE,
            Sign::Function => lsp::CompletionItemKind::FUNCTION,
            Sign::Keyword => lsp::CompletionItemKind::KEYWORD,
        }),
        detail: (!detail.is_empty()).then_some(detail),
        documentation: (!documentation.is_empty()).then_some(lsp::Documentation::String(documentation)),
        sort_text: Some(format!("{rank}{number:05}")),
        // A quoted name is matched by its text.
        filter_text: Some(with.text.trim_end_matches([' ', '\n', '-', ':', '(']).to_owned()),
        insert_text_mode: Some(lsp::InsertTextMode::AS_IS),
        text_edit: Some(lsp::CompletionTextEdit::Edit(edit(with))),
        label,
        ..lsp::CompletionItem::default()
    }
}

pub fn hover(hover: Hover) -> lsp::Hover {
    lsp::Hover {
        contents: lsp::HoverContents::Markup(lsp::MarkupContent { kind: lsp::MarkupKind::Markdown, value: hover.text }),
        range: Some(range(hover.range)),
    }
}

pub fn symbol(symbol: Symbol) -> lsp::DocumentSymbol {
    #[expect(deprecated, reason = "the type has no other way to be made")]
    lsp::DocumentSymbol {
        name: symbol.name,
        detail: (!symbol.detail.is_empty()).then_some(symbol.detail),
        kind: if symbol.is_document { lsp::SymbolKind::OBJECT } else { lsp::SymbolKind::FIELD },
        tags: None,
        deprecated: None,
        range: range(symbol.range),
        selection_range: range(symbol.selection),
        children: Some(symbol.children.into_iter().map(self::symbol).collect()),
    }
}

/// The token types, in the order of their indexes.
pub fn legend() -> Vec<lsp::SemanticTokenType> {
    vec![
        lsp::SemanticTokenType::VARIABLE,
        lsp::SemanticTokenType::PROPERTY,
        lsp::SemanticTokenType::FUNCTION,
        lsp::SemanticTokenType::KEYWORD,
        lsp::SemanticTokenType::STRING,
        lsp::SemanticTokenType::NUMBER,
        lsp::SemanticTokenType::OPERATOR,
    ]
}

/// Encodes tokens, each relative to the start of the previous one.
pub fn tokens(tokens: &[ExpressionToken]) -> Vec<lsp::SemanticToken> {
    let mut before = Position::default();
    let mut relative = |token: &ExpressionToken| {
        let TextRange { start, end } = token.range;
        let delta_line = start.line - before.line;
        let delta_start = if delta_line == 0 { start.character - before.character } else { start.character };
        before = start;
        let token_type = match token.kind {
            WordKind::Variable => 0,
            WordKind::Property => 1,
            WordKind::Function => 2,
            WordKind::Keyword => 3,
            WordKind::String => 4,
            WordKind::Number => 5,
            WordKind::Operator => 6,
        };
        lsp::SemanticToken {
            delta_line,
            delta_start,
            length: end.character - start.character,
            token_type,
            token_modifiers_bitset: 0,
        }
    };
    tokens.iter().map(&mut relative).collect()
}
