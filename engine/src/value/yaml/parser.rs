//! Tokens to nodes.

use std::collections::HashMap;

use super::scanner::{ScanError, YamlScanner, YamlTokenKind};
use super::tag::Tag;

/// The number of a node in its document.
pub(super) type Id = usize;

#[derive(Debug)]
pub(super) enum YamlContent {
    /// `plain` if it has neither quotes nor a tag.
    Scalar {
        text: String,
        tag: Tag,
        plain: bool,
    },
    Alias {
        name: String,
        target: Id,
    },
    Sequence(Vec<Id>),
    Mapping(Vec<(Id, Id)>),
}

#[derive(Debug)]
pub(super) struct YamlNode {
    pub content: YamlContent,
    /// Where it starts, from 0.
    pub line: usize,
    /// In characters, from 0.
    pub column: usize,
}

/// The nodes of a document; children come before their parents.
pub(super) struct YamlDocument {
    pub nodes: Vec<YamlNode>,
    pub root: Id,
}

/// Why there is no document.
pub(super) enum ParseError {
    Syntax(ScanError),
    UnknownAnchor(String),
}

impl From<ScanError> for ParseError {
    fn from(fault: ScanError) -> Self {
        ParseError::Syntax(fault)
    }
}

type Parsed<T> = Result<T, ParseError>;

pub(super) struct YamlParser {
    scanner: YamlScanner,
    is_first: bool,
    /// Prefixes of tags by their handle.
    tag_prefixes: HashMap<String, String>,
    anchors: HashMap<String, Id>,
    nodes: Vec<YamlNode>,
}

/// The tokens that may end a value in an open mapping or sequence.
const BLOCK_ITEM_ENDS: &[YamlTokenKind] = &[YamlTokenKind::BlockEntry, YamlTokenKind::BlockEnd];
const BLOCK_FIELD_ENDS: &[YamlTokenKind] = &[YamlTokenKind::Key, YamlTokenKind::Value, YamlTokenKind::BlockEnd];
const INDENTLESS_ITEM_ENDS: &[YamlTokenKind] =
    &[YamlTokenKind::BlockEntry, YamlTokenKind::Key, YamlTokenKind::Value, YamlTokenKind::BlockEnd];

impl YamlParser {
    pub fn new(bytes: &[u8]) -> Self {
        Self::at_line(bytes, 0)
    }

    /// For a part of a stream, which begins at this line.
    pub fn at_line(bytes: &[u8], line: usize) -> Self {
        YamlParser {
            scanner: YamlScanner::new(bytes, line),
            is_first: true,
            tag_prefixes: HashMap::new(),
            anchors: HashMap::new(),
            nodes: Vec::new(),
        }
    }

    /// The next document, if there is one.
    pub fn document(&mut self) -> Parsed<Option<YamlDocument>> {
        if !self.is_first {
            while self.peek()? == &YamlTokenKind::DocumentEnd {
                self.scanner.take();
            }
        }
        let starts_bare = !matches!(
            self.peek()?,
            YamlTokenKind::VersionDirective(..)
                | YamlTokenKind::TagDirective { .. }
                | YamlTokenKind::DocumentStart
                | YamlTokenKind::StreamEnd
        );
        let root = if starts_bare && self.is_first {
            self.directives()?;
            self.node(true, false)?
        } else if self.peek()? == &YamlTokenKind::StreamEnd {
            return Ok(None);
        } else {
            self.directives()?;
            if self.peek()? != &YamlTokenKind::DocumentStart {
                let line = self.line()?;
                return fault("did not find expected <document start>", line, 0);
            }
            self.scanner.take();
            match self.peek()? {
                YamlTokenKind::VersionDirective(..)
                | YamlTokenKind::TagDirective { .. }
                | YamlTokenKind::DocumentStart
                | YamlTokenKind::DocumentEnd
                | YamlTokenKind::StreamEnd => self.empty()?,
                _ => self.node(true, false)?,
            }
        };
        if self.peek()? == &YamlTokenKind::DocumentEnd {
            self.scanner.take();
        }
        self.is_first = false;
        self.tag_prefixes.clear();
        self.anchors.clear();
        Ok(Some(YamlDocument { nodes: std::mem::take(&mut self.nodes), root }))
    }

    fn peek(&mut self) -> Parsed<&YamlTokenKind> {
        Ok(&self.scanner.peek()?.kind)
    }

    fn line(&mut self) -> Parsed<usize> {
        Ok(self.scanner.peek()?.line)
    }

    fn column(&mut self) -> Parsed<usize> {
        Ok(self.scanner.peek()?.column)
    }

    fn add(&mut self, content: YamlContent, line: usize, column: usize) -> Id {
        self.nodes.push(YamlNode { content, line, column });
        self.nodes.len() - 1
    }

    /// An empty scalar in place of a missing node.
    fn empty(&mut self) -> Parsed<Id> {
        let line = self.line()?;
        Ok(self.empty_at(line))
    }

    fn empty_at(&mut self, line: usize) -> Id {
        self.add(YamlContent::Scalar { text: String::new(), tag: Tag::None, plain: true }, line, 0)
    }

    fn directives(&mut self) -> Parsed<()> {
        let mut has_version = false;
        loop {
            let line = self.line()?;
            match self.peek()? {
                YamlTokenKind::VersionDirective(major, minor) => {
                    if has_version {
                        return fault("found duplicate %YAML directive", line, 0);
                    }
                    if (*major, *minor) != (1, 1) {
                        return fault("found incompatible YAML document", line, 0);
                    }
                    has_version = true;
                }
                YamlTokenKind::TagDirective { handle, prefix } => {
                    let (handle, prefix) = (handle.clone(), prefix.clone());
                    if self.tag_prefixes.insert(handle, prefix).is_some() {
                        return fault("found duplicate %TAG directive", line, 0);
                    }
                }
                _ => break,
            }
            self.scanner.take();
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            self.tag_prefixes.entry(handle.to_owned()).or_insert_with(|| prefix.to_owned());
        }
        Ok(())
    }

    /// A node with its properties. A sequence that is a field's value need not be indented.
    fn node(&mut self, in_block: bool, may_be_indentless: bool) -> Parsed<Id> {
        let (line, column) = (self.line()?, self.column()?);
        if let YamlTokenKind::Alias(name) = self.peek()? {
            let name = name.clone();
            self.scanner.take();
            return match self.anchors.get(&name) {
                Some(&target) => Ok(self.add(YamlContent::Alias { name, target }, line, column)),
                None => Err(ParseError::UnknownAnchor(name)),
            };
        }
        let (anchor, tag) = self.properties(line)?;
        let content_line = self.line()?;
        // An anchor may be used within its own node, so the node gets its number first.
        let id = self.add(YamlContent::Sequence(Vec::new()), line, column);
        if let Some(anchor) = &anchor {
            self.anchors.insert(anchor.clone(), id);
        }
        let content = match self.peek()? {
            YamlTokenKind::BlockEntry if may_be_indentless => self.indentless_sequence()?,
            YamlTokenKind::Scalar { .. } => match self.scanner.take() {
                YamlTokenKind::Scalar { text, plain } => {
                    let plain = (plain && tag == Tag::None) || tag == Tag::NonSpecific;
                    YamlContent::Scalar { text, tag, plain }
                }
                _ => unreachable!("a scalar was looked at"),
            },
            YamlTokenKind::FlowSequenceStart => self.flow_sequence(content_line)?,
            YamlTokenKind::FlowMappingStart => self.flow_mapping(content_line)?,
            YamlTokenKind::BlockSequenceStart if in_block => self.block_sequence(content_line)?,
            YamlTokenKind::BlockMappingStart if in_block => self.block_mapping(content_line)?,
            _ if anchor.is_some() || tag != Tag::None => {
                let plain = tag == Tag::None;
                YamlContent::Scalar { text: String::new(), tag, plain }
            }
            _ => return fault("did not find expected node content", content_line, line),
        };
        self.nodes[id].content = content;
        Ok(id)
    }

    /// An anchor and a tag, in any order.
    fn properties(&mut self, context_line: usize) -> Parsed<(Option<String>, Tag)> {
        let mut anchor = None;
        let mut tag = None;
        loop {
            let line = self.line()?;
            match self.peek()? {
                YamlTokenKind::Anchor(name) if anchor.is_none() => anchor = Some(name.clone()),
                YamlTokenKind::Tag { handle, suffix } if tag.is_none() => {
                    tag = Some((handle.clone(), suffix.clone(), line))
                }
                _ => break,
            }
            self.scanner.take();
        }
        let tag = match tag {
            None => Tag::None,
            Some((handle, suffix, _)) if handle.is_empty() => Tag::of("", &suffix),
            Some((handle, suffix, line)) => match self.tag_prefixes.get(&handle) {
                Some(prefix) => Tag::of(prefix, &suffix),
                None => return fault("found undefined tag handle", line, context_line),
            },
        };
        Ok((anchor, tag))
    }

    /// A node, or an empty one if one of `ends` comes first.
    fn node_before(
        &mut self,
        ends: &[YamlTokenKind],
        in_block: bool,
        may_be_indentless: bool,
        line: usize,
    ) -> Parsed<Id> {
        if ends.contains(self.peek()?) { Ok(self.empty_at(line)) } else { self.node(in_block, may_be_indentless) }
    }

    fn block_sequence(&mut self, context_line: usize) -> Parsed<YamlContent> {
        self.scanner.take();
        let mut items = Vec::new();
        loop {
            let line = self.line()?;
            match self.peek()? {
                YamlTokenKind::BlockEntry => {
                    self.scanner.take();
                    items.push(self.node_before(BLOCK_ITEM_ENDS, true, false, line)?);
                }
                YamlTokenKind::BlockEnd => {
                    self.scanner.take();
                    return Ok(YamlContent::Sequence(items));
                }
                _ => return fault("did not find expected '-' indicator", line, context_line),
            }
        }
    }

    fn indentless_sequence(&mut self) -> Parsed<YamlContent> {
        let mut items = Vec::new();
        while self.peek()? == &YamlTokenKind::BlockEntry {
            let line = self.line()?;
            self.scanner.take();
            items.push(self.node_before(INDENTLESS_ITEM_ENDS, true, false, line)?);
        }
        Ok(YamlContent::Sequence(items))
    }

    fn block_mapping(&mut self, context_line: usize) -> Parsed<YamlContent> {
        self.scanner.take();
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            match self.peek()? {
                YamlTokenKind::Key => {
                    self.scanner.take();
                    let key = self.node_before(BLOCK_FIELD_ENDS, true, true, line)?;
                    let line = self.line()?;
                    let value = if self.peek()? == &YamlTokenKind::Value {
                        self.scanner.take();
                        self.node_before(BLOCK_FIELD_ENDS, true, true, line)?
                    } else {
                        self.empty_at(line)
                    };
                    fields.push((key, value));
                }
                YamlTokenKind::BlockEnd => {
                    self.scanner.take();
                    return Ok(YamlContent::Mapping(fields));
                }
                _ => return fault("did not find expected key", line, context_line),
            }
        }
    }

    /// Whether a flow collection continues before `end`: with its first entry, or with another after a comma.
    fn has_flow_entry(
        &mut self,
        end: &YamlTokenKind,
        is_first: bool,
        expected: &str,
        context_line: usize,
    ) -> Parsed<bool> {
        if self.peek()? == end {
            return Ok(false);
        }
        if !is_first {
            if self.peek()? != &YamlTokenKind::FlowEntry {
                let line = self.line()?;
                return fault(expected, line, context_line);
            }
            self.scanner.take();
        }
        Ok(self.peek()? != end)
    }

    fn flow_sequence(&mut self, context_line: usize) -> Parsed<YamlContent> {
        self.scanner.take();
        let mut items = Vec::new();
        let expected = "did not find expected ',' or ']'";
        while self.has_flow_entry(&YamlTokenKind::FlowSequenceEnd, items.is_empty(), expected, context_line)? {
            items.push(match self.peek()? {
                YamlTokenKind::Key => self.single_pair()?,
                _ => self.node(false, false)?,
            });
        }
        self.scanner.take();
        Ok(YamlContent::Sequence(items))
    }

    /// `key: value` within a flow sequence.
    fn single_pair(&mut self) -> Parsed<Id> {
        const ENDS: &[YamlTokenKind] = &[YamlTokenKind::FlowEntry, YamlTokenKind::FlowSequenceEnd];
        let (line, column) = (self.line()?, self.column()?);
        self.scanner.take();
        let key_line = self.line()?;
        let key = match self.peek()? {
            // The reference loses this token.
            YamlTokenKind::Value | YamlTokenKind::FlowEntry | YamlTokenKind::FlowSequenceEnd => {
                self.scanner.take();
                self.empty_at(key_line)
            }
            _ => self.node(false, false)?,
        };
        let value = match self.peek()? {
            YamlTokenKind::Value => {
                self.scanner.take();
                let line = self.line()?;
                self.node_before(ENDS, false, false, line)?
            }
            _ => self.empty()?,
        };
        // The next token is read before the next step.
        self.peek()?;
        Ok(self.add(YamlContent::Mapping(vec![(key, value)]), line, column))
    }

    fn flow_mapping(&mut self, context_line: usize) -> Parsed<YamlContent> {
        const ENDS: &[YamlTokenKind] = &[YamlTokenKind::FlowEntry, YamlTokenKind::FlowMappingEnd];
        const KEY_ENDS: &[YamlTokenKind] =
            &[YamlTokenKind::Value, YamlTokenKind::FlowEntry, YamlTokenKind::FlowMappingEnd];
        self.scanner.take();
        let mut fields = Vec::new();
        let expected = "did not find expected ',' or '}'";
        while self.has_flow_entry(&YamlTokenKind::FlowMappingEnd, fields.is_empty(), expected, context_line)? {
            match self.peek()? {
                YamlTokenKind::Key => {
                    self.scanner.take();
                    let line = self.line()?;
                    let key = self.node_before(KEY_ENDS, false, false, line)?;
                    let value = match self.peek()? {
                        YamlTokenKind::Value => {
                            self.scanner.take();
                            let line = self.line()?;
                            self.node_before(ENDS, false, false, line)?
                        }
                        _ => self.empty()?,
                    };
                    fields.push((key, value));
                }
                _ => {
                    let key = self.node(false, false)?;
                    let value = self.empty()?;
                    fields.push((key, value));
                }
            }
        }
        self.scanner.take();
        Ok(YamlContent::Mapping(fields))
    }
}

fn fault<T>(problem: &str, line: usize, context_line: usize) -> Parsed<T> {
    Err(ParseError::Syntax(ScanError { problem: problem.to_owned(), line, context_line, from_scanner: false }))
}
