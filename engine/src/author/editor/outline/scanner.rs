//! Turns lines into nodes: a line that is indented further belongs to the node above.

use std::ops::Range;

use super::flow::{CollectionPart, Flow};
use super::node::{OutlineNode, OutlineStep, ValueStyle};
use crate::work;

/// A node to which children may still be added.
#[derive(Clone, Copy, Debug)]
struct OpenNode {
    node: usize,
    column: usize,
    is_item: bool,
}

/// Reads nodes line by line.
pub(in crate::author::editor) struct Scanner<'t> {
    text: &'t str,
    /// The byte where the next line begins.
    pub at: usize,
    /// The nodes that have been read so far.
    pub nodes: Vec<OutlineNode>,
    open: Vec<OpenNode>,
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str) -> Self {
        let root = OutlineNode {
            parent: None,
            step: OutlineStep::Item(0),
            key: 0..0,
            value: 0..0,
            form: ValueStyle::Below,
            is_whole: true,
            count: 0,
        };
        Scanner { text, at: 0, nodes: vec![root], open: Vec::new() }
    }

    /// Reads the lines that begin before `until`, including multi-line values.
    pub fn run(&mut self, until: usize) {
        while self.at < until.min(self.text.len()) {
            work::step();
            self.line();
        }
    }

    fn line_end(&self, from: usize) -> usize {
        self.text[from..].find('\n').map_or(self.text.len(), |end| from + end)
    }

    fn line(&mut self) {
        let (start, end) = (self.at, self.line_end(self.at));
        self.at = end + 1;
        work::bytes(end - start);
        let line = &self.text[start..end];
        let indent = line.len() - line.trim_start_matches(' ').len();
        let rest = line[indent..].trim_end();
        if rest.is_empty() || rest.starts_with('#') || is_mark(line) {
            return;
        }
        let (at, column) = self.dashes(start + indent, indent, start + indent + rest.len());
        self.field(at, column, start + indent + rest.len());
    }

    /// Reads the dashes that begin items. Returns the byte where the rest of the line begins, and its column.
    pub fn dashes(&mut self, mut at: usize, mut column: usize, end: usize) -> (usize, usize) {
        while at < end
            && self.text.as_bytes()[at] == b'-'
            && matches!(self.text.as_bytes().get(at + 1), None | Some(b' ' | b'\n' | b'\r'))
        {
            self.close(|open| open.column > column || (open.column == column && open.is_item));
            let parent = self.innermost();
            let node = self.add(parent, None, at..at + 1);
            self.open.push(OpenNode { node, column, is_item: true });
            let after = at + 1;
            let skipped =
                self.text[after..end.max(after)].len() - self.text[after..end.max(after)].trim_start_matches(' ').len();
            at = (after + skipped).min(end.max(after));
            column += 1 + skipped;
        }
        (at, column)
    }

    /// Closes the nodes that a line at this column ends.
    pub fn outdent(&mut self, column: usize) {
        self.close(|open| open.column >= column);
    }

    fn close(&mut self, is_over: impl Fn(&OpenNode) -> bool) {
        while self.open.last().is_some_and(&is_over) {
            self.open.pop();
        }
    }

    /// The node to which the next one belongs.
    pub fn innermost(&self) -> usize {
        self.open.last().map_or(0, |open| open.node)
    }

    fn add(&mut self, parent: usize, name: Option<String>, key: Range<usize>) -> usize {
        let index = self.nodes[parent].count;
        self.nodes[parent].count += 1;
        let step = name.map_or(OutlineStep::Item(index), OutlineStep::Key);
        let value = key.end..key.end;
        self.nodes.push(OutlineNode {
            parent: Some(parent),
            step,
            key,
            value,
            form: ValueStyle::Below,
            is_whole: true,
            count: 0,
        });
        self.nodes.len() - 1
    }

    /// Reads a field, or the scalar of an item, to the end of its line and of its value.
    pub fn field(&mut self, at: usize, column: usize, end: usize) {
        if at >= end || self.text[at..end].starts_with('#') {
            return;
        }
        if self.is_whole_flow(at) {
            let stop = self.flow(0, at, self.text.len());
            (self.nodes[0].value, self.nodes[0].form) = (at..stop, ValueStyle::Flow);
            self.at = self.line_end(stop) + 1;
            return;
        }
        let Some(key) = key_of(&self.text[at..end]) else {
            self.loose(at, column, end);
            return;
        };
        self.outdent(column);
        let parent = self.innermost();
        let range = at..at + key.length;
        let node = self.add(parent, Some(key.name), range);
        self.open.push(OpenNode { node, column, is_item: false });
        self.value(node, at + key.colon + 1, end, column);
    }

    /// Whether the document is a collection in braces or brackets that begins here, as in JSON. Two braces begin a
    /// template.
    pub fn is_whole_flow(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        self.nodes.len() == 1 && rest.starts_with(['{', '[']) && !rest.starts_with("{{")
    }

    /// Reads text that is not a field: the scalar of an item, the continuation of a scalar, or the beginning of a
    /// field.
    fn loose(&mut self, at: usize, column: usize, end: usize) {
        let innermost = self.open.last().copied();
        if let Some(open) =
            innermost.filter(|open| open.is_item && self.nodes[open.node].count == 0 && column > open.column)
        {
            let is_empty = self.nodes[open.node].value.is_empty();
            let same_line = !self.text[self.nodes[open.node].key.end..at].contains('\n');
            if same_line && is_empty {
                self.value(open.node, at, end, open.column);
                return;
            }
        }
        // A plain scalar continues on the next line.
        if let Some(open) =
            innermost.filter(|open| column > open.column && self.nodes[open.node].form == ValueStyle::Plain)
        {
            self.nodes[open.node].value.end = comment_start(self.text, at, end);
            return;
        }
        self.outdent(column);
        let parent = self.innermost();
        let name = self.text[at..end].trim().to_owned();
        let node = self.add(parent, Some(name), at..end);
        self.nodes[node].is_whole = false;
    }

    /// Reads the value of a node after its colon or dash; it may continue on lines that are indented deeper than
    /// `column`.
    fn value(&mut self, node: usize, from: usize, end: usize, column: usize) {
        let at = self.skip_properties(from, end);
        let Some(first) = self.text.as_bytes().get(at).copied().filter(|_| at < end) else {
            self.nodes[node].value = at.min(end)..at.min(end);
            return;
        };
        let (stop, form) = match first {
            b'#' => return,
            b'|' | b'>' => (self.block_end(end, column), ValueStyle::Block),
            b'"' | b'\'' => (self.quoted_end(at, column), ValueStyle::Quoted(first)),
            b'{' | b'[' => (self.flow(node, at, self.block_end(self.line_end(at), column)), ValueStyle::Flow),
            _ => (comment_start(self.text, at, end), ValueStyle::Plain),
        };
        (self.nodes[node].value, self.nodes[node].form) = (at..stop, form);
        if stop > end {
            self.at = self.line_end(stop) + 1;
        }
    }

    /// Skips anchors and tags before a value.
    fn skip_properties(&self, from: usize, end: usize) -> usize {
        let mut at = from;
        loop {
            let rest = &self.text[at.min(end)..end];
            let skipped = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            at += skipped;
            let rest = &rest[skipped..];
            if !rest.starts_with(['&', '!']) {
                return at;
            }
            at += rest.find(' ').unwrap_or(rest.len());
        }
    }

    /// The end of the lines after the one that ends at `end` that are blank or indented deeper than `column`.
    fn block_end(&self, end: usize, column: usize) -> usize {
        let (mut at, mut stop) = (self.line_end(end) + 1, end);
        while at < self.text.len() {
            let line_end = self.line_end(at);
            let line = &self.text[at..line_end];
            work::bytes(line.len());
            let is_blank = line.trim().is_empty();
            if !is_blank && line.len() - line.trim_start_matches(' ').len() <= column {
                break;
            }
            if !is_blank {
                stop = line_end;
            }
            at = line_end + 1;
        }
        stop
    }

    /// The end of a quoted scalar; without a closing quote, the end of its line.
    fn quoted_end(&self, at: usize, column: usize) -> usize {
        let limit = self.block_end(self.line_end(at), column);
        let bytes = self.text.as_bytes();
        let quote = bytes[at];
        let mut here = at + 1;
        while here < limit {
            match bytes[here] {
                b'\\' if quote == b'"' => here += 1,
                sign if sign == quote && quote == b'\'' && bytes.get(here + 1) == Some(&quote) => here += 1,
                sign if sign == quote => return here + 1,
                _ => {}
            }
            here += 1;
        }
        self.line_end(at).min(limit)
    }

    /// Reads a collection in braces or brackets below `node`, up to `limit`; returns its end.
    fn flow(&mut self, node: usize, at: usize, limit: usize) -> usize {
        let mut flow = Flow::new(self.text, at, limit);
        // The nodes of the open collections.
        let mut holders = vec![node];
        while let Some(part) = flow.next().or_else(|| flow.finish()) {
            work::step();
            let Some(holder) = holders.last().copied() else { break };
            match part {
                CollectionPart::Open { key, at, .. } => {
                    if at == flow.begin {
                        continue;
                    }
                    let (name, range) = key.map_or((None, at..at + 1), |(name, range)| (Some(name), range));
                    let child = self.add(holder, name, range);
                    (self.nodes[child].value, self.nodes[child].form) = (at..at + 1, ValueStyle::Flow);
                    holders.push(child);
                }
                CollectionPart::Close(end) => {
                    self.nodes[holder].value.end = end;
                    holders.pop();
                }
                CollectionPart::Entry { key, value, is_map } => {
                    if key.is_none() && value.is_empty() {
                        continue;
                    }
                    let is_whole = key.is_some() || !is_map;
                    let (name, range) = match key {
                        Some((name, range)) => (Some(name), range),
                        None if is_map => (Some(self.text[value.clone()].to_owned()), value.clone()),
                        None => (None, value.start..value.start),
                    };
                    let child = self.add(holder, name, range);
                    let form = match self.text.as_bytes().get(value.start) {
                        Some(quote @ (b'"' | b'\'')) => ValueStyle::Quoted(*quote),
                        _ => ValueStyle::Plain,
                    };
                    let node = &mut self.nodes[child];
                    node.is_whole = is_whole;
                    if is_whole {
                        (node.value, node.form) = (value, form);
                    }
                }
            }
        }
        flow.end()
    }
}

fn is_mark(line: &str) -> bool {
    ["---", "..."]
        .iter()
        .any(|mark| line.strip_prefix(mark).is_some_and(|rest| rest.trim().is_empty() || rest.starts_with(' ')))
        || line.starts_with('%')
}

/// A field's name at the beginning of a text.
pub(in crate::author::editor) struct WrittenKey {
    pub name: String,
    /// The length of the name in bytes, with its quotes.
    pub length: usize,
    /// The position of the colon.
    pub colon: usize,
}

/// The field's name at the beginning of a text, if it has a colon.
pub(in crate::author::editor) fn key_of(text: &str) -> Option<WrittenKey> {
    let first = text.chars().next()?;
    if first == '"' || first == '\'' {
        let close = text[1..].find(first)? + 1;
        let rest = &text[close + 1..];
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        let is_key =
            rest[spaces..].strip_prefix(':').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        return is_key.then(|| WrittenKey {
            name: text[1..close].to_owned(),
            length: close + 1,
            colon: close + 1 + spaces,
        });
    }
    if "{}[]|>&*!%#`@,".contains(first) {
        return None;
    }
    let mut from = 0;
    loop {
        let colon = from + text[from..].find(':')?;
        let rest = &text[colon + 1..];
        if text[..colon].contains(" #") {
            return None;
        }
        if rest.is_empty() || rest.starts_with([' ', '\t']) {
            let name = text[..colon].trim_end();
            return Some(WrittenKey { name: name.to_owned(), length: name.len(), colon });
        }
        from = colon + 1;
    }
}

/// The end of a plain scalar: before a comment and the white space around it.
fn comment_start(text: &str, at: usize, end: usize) -> usize {
    let line = &text[at..end];
    let line = line.find(" #").map_or(line, |comment| &line[..comment]);
    at + line.trim_end().len()
}
