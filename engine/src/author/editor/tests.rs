//! Properties that hold for any text, however odd: while somebody types, the text is rarely valid YAML.

use proptest::prelude::*;

use super::cursor::{Slot, cursor};
use super::documents::{Sort, parts};
use super::expression::expressions;
use super::outline::outline;
use super::symbols::symbols;
use super::text::{Position, Text, TextRange};
use super::tokens::tokens;
use super::types::typed;
use crate::cel::env::{Env, Expressions};
use crate::cel::types::Type;

/// Texts made of pieces that have a meaning in YAML and in expressions.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "rule",
        "x-kubernetes-validations",
        ":",
        ": ",
        "- ",
        "-",
        " ",
        "  ",
        "\n",
        "\n",
        "\n  ",
        "\r\n",
        "{",
        "}",
        "[",
        "]",
        ",",
        "\"",
        "'",
        "\\",
        "|",
        ">",
        "#",
        " #",
        "&",
        "!",
        "*",
        "---\n",
        "%",
        "ä",
        "𝄞",
        "self.",
        "(",
        ")",
        "\t",
        "?",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_has_an_outline_and_a_cursor_everywhere(text in texts()) {
        let outline = outline(&text);
        for (at, node) in outline.nodes.iter().enumerate() {
            prop_assert!(node.parent.is_none_or(|parent| parent < at));
            prop_assert!(text.get(node.key.clone()).is_some() && text.get(node.value.clone()).is_some());
        }
        prop_assert!(outline.nodes.is_sorted_by_key(|node| node.key.start));
        for offset in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let (Slot::Key { written, .. } | Slot::Value { written, .. }) = cursor(&text, offset).slot else { continue };
            prop_assert!(text.get(written.clone()).is_some() && written.end <= offset);
        }
        for found in expressions(&text, &outline, Sort::Definition) {
            prop_assert_eq!(found.offsets.len(), found.text.len() + 1);
            prop_assert!(found.offsets.is_sorted() && found.offsets.iter().all(|at| text.is_char_boundary(*at)));
        }
    }

    #[test]
    fn any_text_has_parts_symbols_and_tokens(text in texts()) {
        let ranges: Vec<_> = parts(&text).into_iter().map(|part| part.range).collect();
        prop_assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        let text = Text::from(text);
        for symbol in symbols(&text) {
            prop_assert!(symbol.range.start <= symbol.selection.start && symbol.selection.end <= symbol.range.end);
        }
        let found = tokens("a.yaml", &text);
        prop_assert!(found.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    }

    #[test]
    fn any_edit_leaves_what_a_fresh_text_would_be(
        text in texts(),
        edits in prop::collection::vec((0_u32..9, 0_u32..9, 0_u32..9, 0_u32..9, texts()), 0..4),
    ) {
        let mut text = Text::from(text);
        for (line, character, end_line, end_character, with) in edits {
            let range = TextRange {
                start: Position { line, character },
                end: Position { line: end_line, character: end_character },
            };
            text.edit(Some(range), &with);
            prop_assert_eq!(&text, &Text::from(text.as_str()));
        }
    }

    #[test]
    fn any_beginning_of_an_expression_is_understood(text in texts()) {
        let env = Env::kubernetes(Expressions::Stored).with_variable("self", Type::list(Type::String));
        let text: Vec<char> = text.chars().collect();
        if let Some(typed) = typed(&text, &env) {
            prop_assert!(typed.written.end == text.len());
        }
    }
}
