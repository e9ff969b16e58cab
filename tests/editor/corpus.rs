//! Sessions over the ten largest definitions of the corpus: an edit leaves what a fresh text would be, and memory is bounded.

use std::collections::HashMap;

use kubeskiff::author::editor::check::{Checks, Diagnostic};
use kubeskiff::author::editor::{Position, Text, TextRange};
use serde_json::{Value, json};

use crate::client::Client;
use crate::incremental::workspace;
use crate::largest::largest;
use crate::typing::{Edit, spots};

/// A server may take so much for ten large definitions that are being typed in, built for tests.
const MEMORY_MIB_MAX: u64 = 1500;

/// What somebody types: where, how much goes, and what comes.
fn edits(text: &str) -> Vec<(usize, usize, &'static str)> {
    let lines: Vec<&str> = text.lines().collect();
    let find = |word: &str| lines.iter().position(|line| line.contains(word)).unwrap_or(1);
    let (of_type, middle) = (find("type: integer"), lines.len() / 2);
    vec![
        (of_type, 0, "# 𝄞 a comment\n"),
        (middle, 0, "\"half"),
        (middle, 5, ""),
        (lines.len() - 1, 0, "    x: [\n"),
        (find("kind:"), 0, "  colour: red\n"),
    ]
}

#[test]
fn an_incremental_edit_is_what_a_fresh_text_would_be() {
    let Some(texts) = largest() else { return };
    let (mut typing, mut fresh) = (Client::start(None), Client::start(None));
    for (number, original) in texts.iter().enumerate() {
        let uri = format!("file:///corpus/{number}.yaml");
        let mut text = original.clone();
        typing.open(&uri, &text);
        fresh.open(&uri, "");
        for (line, goes, comes) in edits(original) {
            let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
            let line_number = line as u64;
            typing.edit(&uri, ((line_number, 0), (line_number, goes as u64)), comes);
            text.replace_range(start..start + goes, comes);
            fresh.replace(&uri, &text);
            let document = json!({"textDocument": {"uri": uri}});
            for method in ["textDocument/documentSymbol", "textDocument/semanticTokens/full"] {
                let (one, other) = (typing.request(method, document.clone()), fresh.request(method, document.clone()));
                assert!(one == other, "{method} of {uri}");
            }
        }
        let found: [Vec<Value>; 2] = [typing.diagnostics(&uri), fresh.diagnostics(&uri)];
        assert_eq!(found[0], found[1], "{uri}");
        assert!(!found[0].is_empty(), "{uri}");
        for client in [&mut typing, &mut fresh] {
            client.replace(&uri, original);
        }
        assert_eq!(typing.diagnostics(&uri), fresh.diagnostics(&uri), "{uri}");
    }
    if let Some(memory) = typing.memory_mib() {
        assert!(memory < MEMORY_MIB_MAX, "{memory} MiB");
    }
    assert_eq!(typing.stop(), Some(0));
}

fn written(text: &mut Text, edit: Edit) {
    let position = |character: usize| Position { line: edit.line as u32, character: character as u32 };
    text.edit(Some(TextRange { start: position(edit.from), end: position(edit.to) }), edit.comes);
}

#[test]
fn after_every_edit_is_told_what_a_fresh_read_tells() {
    let Some(texts) = largest() else { return };
    for (number, original) in texts.iter().enumerate() {
        let name = format!("/corpus/{number}.yaml");
        let mut fresh: HashMap<String, Vec<Diagnostic>> = HashMap::new();
        let (mut known, mut checks, mut text) = (workspace(), Checks::default(), Text::from(original.as_str()));
        known.check(&name, &text, &mut checks);
        for spot in spots(original) {
            // A letter stays while others are typed elsewhere.
            let edits = [spot.letter(), spot.letter(), spot.back()];
            for (at, edit) in edits.into_iter().enumerate() {
                written(&mut text, edit);
                let found = known.check(&name, &text, &mut checks);
                let expected = fresh
                    .entry(text.as_str().to_owned())
                    .or_insert_with(|| workspace().check(&name, &text, &mut Checks::default()));
                assert!(found == *expected, "{number}: {edit:?} in {}: {found:?} {expected:?}", spot.name);
                // Of a comment nothing is compiled. The first letter may make versions differ that had one schema.
                let (counts, of_one) = (checks.counts(), usize::from(spot.name != "comment"));
                assert_eq!((counts.documents, counts.definitions), (1, of_one), "{number}: {}", spot.name);
                assert!(at == 0 || counts.schemas <= of_one, "{number}: {}: {counts:?}", spot.name);
            }
        }
    }
}

#[test]
fn memory_does_not_grow_with_what_was_typed() {
    let Some(texts) = largest() else { return };
    let mut client = Client::start(None);
    let uri = "file:///corpus/typed.yaml";
    client.open(uri, &texts[9]);
    client.diagnostics(uri);
    let mut before = None;
    for round in 0..60 {
        client.edit(uri, ((0, 0), (0, 0)), "# a\n");
        client.diagnostics(uri);
        if round == 20 {
            before = client.memory_mib();
        }
    }
    if let (Some(before), Some(after)) = (before, client.memory_mib()) {
        assert!(after < before + before / 4 + 16, "{before} MiB became {after}");
    }
}
