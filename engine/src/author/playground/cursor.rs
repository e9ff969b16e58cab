//! Where in a YAML text somebody is typing.
//!
//! In: a text that may be half written, and a line and column in it. Out: the path to that place, by indentation alone: the
//! text need not be YAML yet. Flow style (`{a: {b: 1}}`) is followed no deeper than its line.

use crate::work;

/// Where somebody is typing.
#[derive(Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The keys on the way, from the root of the document; `-` for an item of a list.
    pub path: Vec<String>,
    /// The text of the value up to the cursor, if it stands in one; else it stands in a key.
    pub value: Option<String>,
    /// How many characters of the word stand before the cursor.
    pub word: String,
    /// The first and the last line of the document, from 0.
    pub document: (usize, usize),
}

/// A line without its indentation, with the dashes that begin it.
struct Line<'t> {
    /// Where its key stands, in characters; behind the dashes.
    indent: usize,
    /// The columns of its dashes.
    dashes: Vec<usize>,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn read(line: &'t str) -> Line<'t> {
        let mut dashes = Vec::new();
        let mut text = line.trim_start_matches(' ');
        let mut indent = line.len() - text.len();
        while let Some(rest) = text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            dashes.push(indent);
            text = rest.trim_start_matches(' ');
            indent = line.len() - text.len();
        }
        Line { indent, dashes, text }
    }

    fn is_empty(&self) -> bool {
        (self.text.is_empty() && self.dashes.is_empty()) || self.text.starts_with('#')
    }

    /// The key, and what stands behind its colon.
    fn key(&self) -> Option<(&'t str, &'t str)> {
        let (key, value) = self.text.split_once(':')?;
        let is_key = !key.contains([' ', '(', '{', '[']) && (value.is_empty() || value.starts_with(' '));
        is_key.then(|| (key.trim_matches(['"', '\'']), value.trim_start()))
    }

    /// Whether its value stands on the lines below, as it is.
    fn opens_block(&self) -> bool {
        let value = self.key().map_or(self.text, |(_, value)| value);
        value.starts_with(['|', '>'])
    }
}

/// The cursor behind the first `column` characters of the line `line`, both from 0; `None` where the text has no such line.
pub fn at(text: &str, line: usize, column: usize) -> Option<Cursor> {
    let lines: Vec<&str> = text.lines().chain(text.ends_with('\n').then_some("")).collect();
    work::bytes(text.len());
    let current = lines.get(line).copied().or((line == 0).then_some(""))?;
    let end = current.char_indices().nth(column).map_or(current.len(), |(at, _)| at);
    let (before, is_mark) = (&current[..end], |line: &&str| line.starts_with("---"));
    let first = lines[..line.min(lines.len())].iter().rposition(is_mark).map_or(0, |at| at + 1);
    let last = lines.iter().skip(line + 1).position(is_mark).map_or(lines.len(), |at| line + 1 + at);
    let read = Line::read(before);
    let mut cursor = Cursor { path: Vec::new(), value: None, word: word(before), document: (first, last) };
    // Where it would stand, and how much deeper lines above must be left out.
    let mut indent = read.indent;
    let mut dashes = read.dashes.clone();
    if let Some((key, value)) = read.key() {
        cursor.path.push(key.to_owned());
        cursor.value = Some(value.to_owned());
    } else if read.text.starts_with('#') {
        return None;
    }
    push_dashes(&mut cursor.path, &mut dashes, &mut indent);
    let mut block = cursor.value.is_none().then(|| before.trim_start().to_owned());
    for above in lines[first..line.min(lines.len())].iter().rev() {
        work::step();
        let above = Line::read(above);
        if above.is_empty() {
            continue;
        }
        let key_indent = above.indent;
        // A list may stand as far left as its key.
        let is_of_list = key_indent == indent && cursor.path.last().is_some_and(|step| step == "-");
        let is_parent = key_indent < indent || is_of_list;
        if is_parent && let Some((key, _)) = above.key() {
            if above.opens_block() && block.is_some() {
                // The lines of a text, not of the document.
                cursor.value = block.take();
                cursor.path.clear();
            }
            cursor.path.push(key.to_owned());
            indent = key_indent;
            block = None;
        } else if let Some(text) = &mut block {
            *text = format!("{}\n{text}", above.text);
        }
        let mut outer: Vec<usize> = above.dashes.iter().copied().filter(|dash| *dash < indent).collect();
        if outer.len() == above.dashes.len() || is_parent {
            push_dashes(&mut cursor.path, &mut outer, &mut indent);
        }
        if indent == 0 && cursor.path.last().is_none_or(|step| step != "-") {
            break;
        }
    }
    cursor.path.reverse();
    Some(cursor)
}

fn push_dashes(path: &mut Vec<String>, dashes: &mut Vec<usize>, indent: &mut usize) {
    while let Some(dash) = dashes.pop() {
        path.push("-".to_owned());
        *indent = dash;
    }
}

/// The letters, digits and the like before the cursor.
fn word(before: &str) -> String {
    let is_of_word = |character: char| character.is_alphanumeric() || "_-/".contains(character);
    let start = before.char_indices().rev().take_while(|(_, character)| is_of_word(*character)).last();
    start.map_or("", |(at, _)| &before[at..]).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `|` is the cursor.
    #[track_caller]
    fn check(text: &str, path: &str, value: Option<&str>) {
        let at_cursor = text.find('|').expect("the test has a cursor");
        let before = &text[..at_cursor];
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count());
        let found = at(&text.replacen('|', "", 1), line, column).expect("there is such a line");
        assert_eq!((found.path.join("."), found.value.as_deref()), (path.to_owned(), value), "{text}");
    }

    #[test]
    fn keys_stand_below_what_is_indented_less() {
        check("|", "", None);
        check("spec:\n  |", "spec", None);
        check("spec:\n  a: 1\n  b|", "spec", None);
        check("a:\n  b:\n    c: 1\nspec:\n  x:\n    y: 1\n  z|", "spec", None);
        check("kind: A\n---\nspec:\n  a|", "spec", None);
    }

    #[test]
    fn items_of_lists_are_dashes() {
        check("spec:\n  ports:\n  - na|", "spec.ports.-", None);
        check("spec:\n  ports:\n  - name: a\n    po|", "spec.ports.-", None);
        check("spec:\n  ports:\n    - name: a\n      po|", "spec.ports.-", None);
        check("spec:\n  ports:\n  - name: a\n  - name: b\n    po|", "spec.ports.-", None);
        check("spec:\n  - - a|", "spec.-.-", None);
        check("spec:\n  ports:\n  - name: a\n  other|", "spec", None);
        check("versions:\n- names:\n  - a|", "versions.-.names.-", None);
    }

    #[test]
    fn values_stand_behind_their_keys() {
        check("spec:\n  rig: sl|", "spec.rig", Some("sl"));
        check("rules:\n- rule: self.a|", "rules.-.rule", Some("self.a"));
        check("rules:\n- message: x\n  rule: has(self.|", "rules.-.rule", Some("has(self."));
        check("rules:\n- rule: >-\n    has(self.a) &&\n      self.|", "rules.-.rule", Some("has(self.a) &&\nself."));
    }
}
