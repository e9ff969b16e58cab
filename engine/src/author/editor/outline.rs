//! Where the keys and values of a document stand, taken line by line.
//!
//! In: the text of a document, valid or not. Out: its nodes, each with its step, its key and its value by their bytes. What
//! can't be understood is left out, and what follows is read as if it were not there: somebody is typing.
//!
//! It knows less than the reader of YAML: aliases, tags and complex keys have no meaning here.

use std::ops::Range;

use crate::work;

/// Collections on one line that are read into each other; deeper ones are texts.
const FLOW_DEPTH_MAX: usize = 64;

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OutlineStep {
    /// A field.
    Key(String),
    /// An item, from 0.
    Item(usize),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueStyle {
    /// On the lines below, or nothing.
    Below,
    /// A scalar without quotes.
    Plain,
    /// In quotes: `'` or `"`.
    Quoted(u8),
    /// On the lines below a `|`, or a `>` that joins them.
    Block,
    /// In brackets or braces.
    Flow,
}

/// A field or an item.
#[derive(Clone, Debug)]
pub struct OutlineNode {
    /// What it is within; `None` for the document itself.
    pub parent: Option<usize>,
    /// The way from there.
    pub step: OutlineStep,
    /// Its name with its quotes; where an item begins.
    pub key: Range<usize>,
    /// Its value with its quotes, without the comment behind; empty where there is none on the line.
    pub value: Range<usize>,
    /// How the value is written.
    pub form: ValueStyle,
    /// Whether a colon follows the name: otherwise it may be the beginning of one.
    pub is_whole: bool,
    /// How many nodes are right below.
    pub count: usize,
}

/// The nodes of a document, in the order of the text; the first is the document.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Every node stands behind what it is within.
    pub nodes: Vec<OutlineNode>,
}

/// A node that may still get others below it.
#[derive(Clone, Copy, Debug)]
struct OpenNode {
    node: usize,
    column: usize,
    is_item: bool,
}

/// Reads lines.
pub(super) struct Scanner<'t> {
    text: &'t str,
    /// Where the next line begins.
    pub at: usize,
    /// What was read so far.
    pub nodes: Vec<OutlineNode>,
    open: Vec<OpenNode>,
}

/// The nodes of a text.
pub fn outline(text: &str) -> Outline {
    let mut scanner = Scanner::new(text);
    scanner.run(text.len());
    Outline { nodes: scanner.nodes }
}

impl Outline {
    /// The way to a node.
    pub fn path(&self, node: usize) -> Vec<OutlineStep> {
        path(&self.nodes, node)
    }

    /// The nodes right below another.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        // What stands below a node stands right behind it.
        let is_below = move |at: &usize| self.nodes[*at].parent.is_some_and(|parent| parent >= node);
        (node + 1..self.nodes.len()).take_while(is_below).filter(move |at| self.nodes[*at].parent == Some(node))
    }

    /// The node at the end of a path.
    pub fn find(&self, path: &[OutlineStep]) -> Option<usize> {
        path.iter().try_fold(0, |node, step| self.children(node).find(|child| self.nodes[*child].step == *step))
    }

    /// The value of a node as it is meant, if it stands on one line.
    pub fn scalar<'t>(&self, text: &'t str, node: usize) -> &'t str {
        let OutlineNode { value, form, .. } = &self.nodes[node];
        let written = text.get(value.clone()).unwrap_or_default();
        match form {
            ValueStyle::Quoted(_) => written.trim_matches(['"', '\'']),
            ValueStyle::Plain => written,
            ValueStyle::Below | ValueStyle::Block | ValueStyle::Flow => "",
        }
    }

    /// The scalar at the end of the fields `names`.
    pub fn scalar_at<'t>(&self, text: &'t str, names: &[&str]) -> &'t str {
        self.find(&steps(names)).map_or("", |node| self.scalar(text, node))
    }

    /// The last node whose key or value a byte is in, or at whose end it is.
    pub fn at(&self, offset: usize) -> Option<usize> {
        let holds = |range: &Range<usize>| range.start <= offset && offset <= range.end;
        // Nodes stand in the order of their keys; what goes on behind others is one that they are in.
        let last = self.nodes.partition_point(|node| node.key.start <= offset).checked_sub(1)?;
        let mut ways = std::iter::successors(Some(last), |node| self.nodes[*node].parent).take_while(|node| *node > 0);
        let is_it = |node: &usize| {
            work::step();
            let OutlineNode { key, value, .. } = &self.nodes[*node];
            holds(key) || (!value.is_empty() && holds(value))
        };
        ways.find(is_it)
    }
}

/// The way to a node.
pub(super) fn path(nodes: &[OutlineNode], node: usize) -> Vec<OutlineStep> {
    let mut steps = Vec::new();
    let mut at = node;
    while let Some(parent) = nodes[at].parent {
        work::step();
        steps.push(nodes[at].step.clone());
        at = parent;
    }
    steps.reverse();
    steps
}

/// The path of some fields, each in the one before.
pub fn steps(names: &[&str]) -> Vec<OutlineStep> {
    names.iter().map(|name| OutlineStep::Key((*name).to_owned())).collect()
}

/// A path as errors name it: `spec.ports[0].name`.
pub fn shown(path: &[OutlineStep]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            OutlineStep::Key(name) if shown.is_empty() => shown.push_str(name),
            OutlineStep::Key(name) if name.contains(['.', '/']) => shown.push_str(&format!("[{name}]")),
            OutlineStep::Key(name) => shown.push_str(&format!(".{name}")),
            OutlineStep::Item(index) => shown.push_str(&format!("[{index}]")),
        }
    }
    shown
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

    /// Reads the lines that begin before `until`, with all that belongs to them.
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

    /// Reads the dashes that begin items; returns where the rest begins, and its column.
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

    /// Ends what is no longer open for something at a column.
    pub fn outdent(&mut self, column: usize) {
        self.close(|open| open.column >= column);
    }

    fn close(&mut self, is_over: impl Fn(&OpenNode) -> bool) {
        while self.open.last().is_some_and(&is_over) {
            self.open.pop();
        }
    }

    /// The node that what comes next is within.
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

    /// Reads a field, or the scalar of an item, up to the end of its line and of its value.
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

    /// Whether a document in braces or brackets begins here, as JSON does. Two braces begin a template.
    pub fn is_whole_flow(&self, at: usize) -> bool {
        let rest = &self.text[at..];
        self.nodes.len() == 1 && rest.starts_with(['{', '[']) && !rest.starts_with("{{")
    }

    /// What is not a field: the scalar of an item, more of a scalar, or the beginning of a field.
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
        // A plain scalar goes on below.
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

    /// Reads the value of a node, from behind its colon or dash; it may go on below, indented deeper than `column`.
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

    /// Anchors and tags stand before a value.
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

    /// The end of the lines that are blank or indented deeper than `column`, behind the line that ends at `end`.
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

    /// The end of a text in quotes; without a closing one, that of its line.
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
        // The nodes of the collections that are open.
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

/// The name of a field at the beginning of a text.
pub(super) struct WrittenKey {
    pub name: String,
    /// Bytes of the name with its quotes.
    pub length: usize,
    /// Where the colon stands.
    pub colon: usize,
}

/// The field that a text begins with, if it has a colon.
pub(super) fn key_of(text: &str) -> Option<WrittenKey> {
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

/// Where a plain scalar ends: before a comment and the space around it.
fn comment_start(text: &str, at: usize, end: usize) -> usize {
    let line = &text[at..end];
    let line = line.find(" #").map_or(line, |comment| &line[..comment]);
    at + line.trim_end().len()
}

/// A name in a collection, and where it stands.
pub(super) type CollectionName = (String, Range<usize>);

/// What comes next in a collection.
pub(super) enum CollectionPart {
    /// Another begins at `at`.
    Open { key: Option<CollectionName>, at: usize, is_map: bool },
    /// The innermost ends before this.
    Close(usize),
    /// A scalar.
    Entry { key: Option<CollectionName>, value: Range<usize>, is_map: bool },
}

/// Reads a collection in braces or brackets.
pub(super) struct Flow<'t> {
    text: &'t str,
    pub begin: usize,
    at: usize,
    limit: usize,
    /// The collections that are open: whether they are maps.
    open: Vec<bool>,
    key: Option<CollectionName>,
    start: usize,
    is_over: bool,
    /// What is to be told before going on.
    held: Option<CollectionPart>,
}

impl<'t> Flow<'t> {
    pub fn new(text: &'t str, begin: usize, limit: usize) -> Self {
        Flow { text, begin, at: begin, limit, open: Vec::new(), key: None, start: begin, is_over: false, held: None }
    }

    /// Where it ended.
    pub fn end(&self) -> usize {
        self.at.min(self.limit)
    }

    /// The name that was read last, and where the text behind it begins: for what was not finished.
    pub fn rest(self) -> (Option<CollectionName>, usize) {
        (self.key, self.start)
    }

    /// The next part; `None` at the end, or where the text ends first.
    pub fn next(&mut self) -> Option<CollectionPart> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let bytes = self.text.as_bytes();
        while !self.is_over && self.at < self.limit {
            let at = self.at;
            self.at += 1;
            match bytes[at] {
                sign @ (b'{' | b'[')
                    if self.open.len() < FLOW_DEPTH_MAX && self.text[self.start..at].trim().is_empty()
                        || at == self.begin =>
                {
                    self.open.push(sign == b'{');
                    let key = self.key.take();
                    self.start = at + 1;
                    return Some(CollectionPart::Open { key, at, is_map: sign == b'{' });
                }
                b'}' | b']' => {
                    let entry = self.entry(at);
                    self.open.pop();
                    self.is_over = self.open.is_empty();
                    let close = CollectionPart::Close(at + 1);
                    match entry {
                        Some(entry) => {
                            self.held = Some(close);
                            return Some(entry);
                        }
                        None => return Some(close),
                    }
                }
                b',' => {
                    if let Some(entry) = self.entry(at) {
                        return Some(entry);
                    }
                }
                b':' if self.key.is_none()
                    && matches!(bytes.get(at + 1), None | Some(b' ' | b'\n' | b'\r' | b',' | b'}'))
                    || bytes[at] == b':'
                        && self.key.is_none()
                        && self.text[self.start..at].trim_start().starts_with('"') =>
                {
                    let range = trimmed(self.text, self.start..at);
                    let name = self.text[range.clone()].trim_matches(['"', '\'']).to_owned();
                    self.key = Some((name, range));
                    self.start = at + 1;
                }
                quote @ (b'"' | b'\'') if self.text[self.start..at].trim().is_empty() => self.skip_quoted(quote),
                _ => {}
            }
        }
        None
    }

    /// What stands at the end of a text that ends first.
    pub fn finish(&mut self) -> Option<CollectionPart> {
        let is_over = std::mem::replace(&mut self.is_over, true);
        if is_over { None } else { self.entry(self.limit) }
    }

    fn skip_quoted(&mut self, quote: u8) {
        let bytes = self.text.as_bytes();
        let begin = self.at;
        while self.at < self.limit {
            let sign = bytes[self.at];
            self.at += if sign == b'\\' && quote == b'"' { 2 } else { 1 };
            if sign == quote {
                return;
            }
        }
        // It has no end: the rest is read as if it had not begun.
        self.at = begin;
    }

    fn entry(&mut self, end: usize) -> Option<CollectionPart> {
        let value = trimmed(self.text, self.start.min(end)..end);
        self.start = end + 1;
        let key = self.key.take();
        let is_map = self.open.last() == Some(&true);
        (key.is_some() || !value.is_empty()).then_some(CollectionPart::Entry { key, value, is_map })
    }
}

/// A range without the space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let whole = &text[range.clone()];
    let start = range.start + whole.len() - whole.trim_start().len();
    start..start + whole.trim().len()
}

/// The version of a definition that a path of its text leads into, `spec.versions[0].schema.openAPIV3Schema`, by its place, and the
/// steps below.
pub(super) fn below_version(path: &[OutlineStep]) -> Option<(usize, &[OutlineStep])> {
    use OutlineStep::{Item, Key};
    match path {
        [Key(_), Key(_), Item(version), Key(_), Key(_), below @ ..] => Some((*version, below)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each node as `path=value`; of one without a colon `path?`.
    fn check(text: &str, expected: &[&str]) {
        let outline = outline(text);
        let node = |at: usize| {
            let path = shown(&outline.path(at));
            let OutlineNode { value, is_whole, .. } = &outline.nodes[at];
            if *is_whole { format!("{path}={}", &text[value.clone()]) } else { format!("{path}?") }
        };
        assert_eq!((1..outline.nodes.len()).map(node).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn blocks_have_nodes() {
        check(
            "a: 1 # one\nb:\n  c: 'x: y'\n  d:\n  - e: f\n    g: h\n  - i\n# no\nj: \"k\"\n",
            &["a=1", "b=", "b.c='x: y'", "b.d=", "b.d[0]=", "b.d[0].e=f", "b.d[0].g=h", "b.d[1]=i", "j=\"k\""],
        );
        check("a:\n- - b\n  - c: d\n", &["a=", "a[0]=", "a[0][0]=b", "a[0][1]=", "a[0][1].c=d"]);
    }

    #[test]
    fn long_texts_are_one_value() {
        check(
            "a: |\n  b: c\n\n  d\ne: >-\n    f\ng: h\n  i\nj: 'k\n  l'\n",
            &["a=|\n  b: c\n\n  d", "e=>-\n    f", "g=h\n  i", "j='k\n  l'"],
        );
    }

    #[test]
    fn collections_on_a_line_have_nodes() {
        check(
            "a: {b: 1, 'c': [d, {e: f}], g}\nh: []\n\"i\": {\"j\":1,\n  k: l}\n",
            &[
                "a={b: 1, 'c': [d, {e: f}], g}",
                "a.b=1",
                "a.c=[d, {e: f}]",
                "a.c[0]=d",
                "a.c[1]={e: f}",
                "a.c[1].e=f",
                "a.g?",
                "h=[]",
                "i={\"j\":1,\n  k: l}",
                "i.j=1",
                "i.k=l",
            ],
        );
    }

    #[test]
    fn json_has_nodes_however_it_is_laid_out() {
        let nodes = ["a=1", "b={\"c\": [\"d\"]}", "b.c=[\"d\"]", "b.c[0]=\"d\"", "e=f"];
        check("{\"a\": 1, \"b\": {\"c\": [\"d\"]}, \"e\":\nf}\n", &nodes);
        check("---\n# x\n{\n\"a\": 1,\n\"b\": {\"c\": [\"d\"]},\n\t\"e\": f\n}\n", &nodes);
        check("{\"a\": 1,\n\"b\": {\"c\"\n", &["a=1", "b={", "b.\"c\"?"]);
        check("{{- if x }}\na: 1\n", &["{{- if x }}?", "a=1"]);
    }

    #[test]
    fn what_is_being_typed_hides_nothing() {
        check("a:\n  b\nc: 1\n", &["a=", "a.b?", "c=1"]);
        check("a: \"x\nb: {c: 1\nd: [\ne: f\n", &["a=\"x", "b={c: 1", "b.c=1", "d=[", "e=f"]);
        check("a:\n  - \n  - b: 1\n    c\n", &["a=", "a[0]=", "a[1]=", "a[1].b=1", "a[1].c?"]);
    }
}
