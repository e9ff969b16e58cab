//! What is being typed at a position of a document.
//!
//! Input: the text of a document, and a byte of it. Output: the path of what the position is within, and whether a name
//! or a value is there. The rest of the line after the position is ignored: it may belong to something else.

use std::ops::Range;

use super::outline::{CollectionPart, Flow, OutlineStep, Scanner, ValueStyle, key_of, path};

/// A position, described by what is being typed there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The path of the object in which a name is typed, or of the value that is typed.
    pub path: Vec<OutlineStep>,
    /// What is typed there.
    pub slot: Slot,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A name or the scalar of an item, of which `written` exists.
    Key {
        /// The bytes that exist already.
        written: Range<usize>,
        /// The column where it begins.
        column: usize,
        /// Whether it is in braces or brackets.
        is_flow: bool,
    },
    /// A value, of which `written` exists.
    Value {
        /// The bytes that exist already.
        written: Range<usize>,
        /// How it is written.
        form: ValueStyle,
    },
    /// A comment.
    Comment,
}

/// Describes the position at a byte of a document.
pub fn cursor(text: &str, offset: usize) -> Cursor {
    let offset = offset.min(text.len());
    let line_start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    let mut scanner = Scanner::new(text);
    scanner.run(line_start);
    if scanner.at > line_start {
        // The value of an earlier line continues here.
        let last = scanner.innermost();
        let node = &scanner.nodes[last];
        let is_flow = node.form == ValueStyle::Flow;
        let way = path(&scanner.nodes, last);
        return if is_flow {
            in_flow(text, way, node.value.start, offset)
        } else {
            within(way, node.value.start..offset, node.form)
        };
    }
    let prefix = &text[line_start..offset];
    let indent = prefix.len() - prefix.trim_start_matches(' ').len();
    if prefix.trim_start().starts_with('#') {
        return Cursor { path: Vec::new(), slot: Slot::Comment };
    }
    let (at, column) = scanner.dashes(line_start + indent, indent, offset);
    let at = at.min(offset);
    let has_dash = at > line_start + indent;
    let rest = &text[at..offset];
    let Some(key) = key_of(rest).or_else(|| key_of_quoted(rest)) else {
        if (has_dash && rest.starts_with(['{', '['])) || scanner.is_whole_flow(at) {
            return in_flow(text, path(&scanner.nodes, scanner.innermost()), at, offset);
        }
        scanner.outdent(column);
        let way = path(&scanner.nodes, scanner.innermost());
        return Cursor { path: way, slot: Slot::Key { written: at..offset, column, is_flow: false } };
    };
    scanner.outdent(column);
    let mut way = path(&scanner.nodes, scanner.innermost());
    way.push(OutlineStep::Key(key.name));
    let behind = at + key.colon + 1;
    let value = &text[behind..offset];
    let start = behind + value.len() - value.trim_start().len();
    let written = &text[start..offset];
    match written.bytes().next() {
        Some(b'{' | b'[') => in_flow(text, way, start, offset),
        Some(b'#') => Cursor { path: Vec::new(), slot: Slot::Comment },
        Some(quote @ (b'"' | b'\'')) => within(way, start..offset, ValueStyle::Quoted(quote)),
        Some(b'|' | b'>') => within(way, start..offset, ValueStyle::Block),
        _ if written.contains(" #") => Cursor { path: Vec::new(), slot: Slot::Comment },
        _ => within(way, start..offset, ValueStyle::Plain),
    }
}

/// The key, if its colon is the last character that was typed.
fn key_of_quoted(text: &str) -> Option<super::outline::WrittenKey> {
    text.ends_with(':').then(|| key_of(text)).flatten()
}

fn within(path: Vec<OutlineStep>, written: Range<usize>, form: ValueStyle) -> Cursor {
    Cursor { path, slot: Slot::Value { written, form } }
}

/// Describes a position in braces or brackets that begin at `start`.
fn in_flow(text: &str, mut path: Vec<OutlineStep>, start: usize, offset: usize) -> Cursor {
    let mut flow = Flow::new(text, start, offset);
    // For each open collection: whether it is a map, and how many items it has.
    let mut open: Vec<(bool, usize)> = Vec::new();
    while let Some(part) = flow.next() {
        match part {
            CollectionPart::Open { key, at, is_map } => {
                if at != start {
                    path.push(step(key.map(|(name, _)| name), open.last_mut()));
                }
                open.push((is_map, 0));
            }
            CollectionPart::Close(_) => {
                open.pop();
                if !open.is_empty() {
                    path.pop();
                }
            }
            CollectionPart::Entry { .. } => {
                if let Some((_, count)) = open.last_mut() {
                    *count += 1;
                }
            }
        }
    }
    let (key, rest) = flow.rest();
    let rest = rest.min(offset);
    let start = rest + text[rest..offset].len() - text[rest..offset].trim_start().len();
    let form = match text.as_bytes().get(start) {
        Some(quote @ (b'"' | b'\'')) if start < offset => ValueStyle::Quoted(*quote),
        _ => ValueStyle::Plain,
    };
    match (key, open.last()) {
        (Some((name, _)), _) => {
            path.push(OutlineStep::Key(name));
            within(path, start..offset, form)
        }
        (None, Some((true, _))) => {
            Cursor { path, slot: Slot::Key { written: start..offset, column: 0, is_flow: true } }
        }
        (None, Some((false, count))) => {
            path.push(OutlineStep::Item(*count));
            within(path, start..offset, form)
        }
        // After its end.
        (None, None) => Cursor { path, slot: Slot::Comment },
    }
}

fn step(name: Option<String>, holder: Option<&mut (bool, usize)>) -> OutlineStep {
    match (name, holder) {
        (Some(name), _) => OutlineStep::Key(name),
        (None, Some((_, count))) => {
            *count += 1;
            OutlineStep::Item(*count - 1)
        }
        (None, None) => OutlineStep::Item(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::outline::shown;
    use super::*;

    /// `‸` marks the position. Names are shown as `path{written`, values as `path=written`.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let offset = text.find('‸').expect("the test has a place");
        let text = text.replacen('‸', "", 1);
        let found = cursor(&text, offset);
        let path = shown(&found.path);
        let told = match found.slot {
            Slot::Key { written, .. } => format!("{path}{{{}", &text[written]),
            Slot::Value { written, .. } => format!("{path}={}", &text[written]),
            Slot::Comment => "#".to_owned(),
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn names_are_typed_in_what_they_are_indented_in() {
        check("a:\n  b: 1\n  c‸\nd: 2\n", "a{c");
        check("a:\n  b: 1\n‸\nd: 2\n", "{");
        check("a:\n  ‸\n", "a{");
        check("a:\n  b:\n    c: 1\n  ‸", "a{");
        check("a:\n- b: 1\n  ‸", "a[0]{");
        check("a:\n  - b: 1\n  - ‸", "a[1]{");
        check("a:\n  - b: 1\n  - c‸: 2", "a[1]{c");
        check("‸", "{");
    }

    #[test]
    fn items_of_lists_are_dashes() {
        check("a:\n  - - b‸", "a[0][0]{b");
        check("a:\n  - b: 1\n    c‸", "a[0]{c");
        check("a:\n  - b: 1\n  c‸", "a{c");
        check("a:\n- b:\n  - c‸", "a[0].b[0]{c");
        check("a:\n- b: x\n  c: has(d.‸", "a[0].c=has(d.");
        check("a:\n- b: >-\n    c &&\n      d.‸", "a[0].b=>-\n    c &&\n      d.");
    }

    #[test]
    fn values_stand_behind_their_names() {
        check("a:\n  b: x‸y\n", "a.b=x");
        check("a: ‸", "a=");
        check("a:‸", "a=");
        check("a: \"x: ‸\"", "a=\"x: ");
        check("a: |\n  x\n  y‸\n", "a=|\n  x\n  y");
        check("- ‸a", "[0]{");
        check("a: 1 # b‸", "#");
    }

    #[test]
    fn json_may_be_laid_out_as_it_likes() {
        check("{\"a\": 1, ‸", "{");
        check("{\"a\": {\"b\": ‸}}", "a.b=");
        check("{\"a\":\n{\"b\": 1,\n\"c‸\"}}", "a{\"c");
        check("{\n \"a\": [{\n\"b\": 1},\n{‸}]}", "a[1]{");
        check("{{ x }}\na: ‸", "a=");
    }

    #[test]
    fn braces_and_brackets_hold_both() {
        check("a: {b: 1, c‸}", "a{c");
        check("a: {b: {c: ‸", "a.b.c=");
        check("a: [1, ‸", "a[1]=");
        check("a: [{b: 1}, {‸", "a[1]{");
        check("a: {b: 1}‸", "#");
        check("a: {\n  b: ‸\n}", "a.b=");
    }
}
