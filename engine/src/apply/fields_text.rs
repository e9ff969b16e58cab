//! `fieldsV1` as the text that it is stored as: a write checks the fields of other managers on it.
//!
//! Input: the compact JSON of a set. One pass finds the start and end of each step, unless the text is known. Output:
//! the members it has in common with a set, and the text without them.

use std::borrow::Cow;
use std::iter;
use std::sync::Arc;

use super::field_set::{FieldSet, FieldSetNode};
use super::item::Item;
use super::known_texts;
use super::path::{PathElement, is_plain_key, is_plain_text_value};
use super::text_steps::{Steps, TextStep};
use crate::value::{Value, json};
use crate::work;

/// The key that says that the field around it is a member, too.
const DOT: &str = ".";

/// A text, and its steps.
#[derive(Clone, Debug)]
pub(super) struct FieldsText<'a> {
    text: Cow<'a, str>,
    steps: Arc<Steps>,
}

impl<'a> FieldsText<'a> {
    /// `None` if it is not as [`FieldSet::encode`] writes sets. The order of steps and needless escapes are not
    /// checked.
    pub fn read(text: Cow<'a, str>) -> Option<Self> {
        // About how many bytes of text a step takes.
        const STEP_BYTES: usize = 16;
        let steps = known_texts::steps_of(&text, || {
            let steps = Vec::with_capacity(text.len() / STEP_BYTES);
            Reader { text: &text, at: 0, steps, open: Vec::new() }.read().map(Steps::new)
        })?;
        Some(FieldsText { text, steps })
    }

    pub fn into_text(self) -> String {
        self.text.into_owned()
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether [`FieldsText::settle`] was called for the types with this id, and for no others since; equal texts on a
    /// thread share the note.
    pub fn is_settled(&self, types: u64) -> bool {
        self.steps.is_settled(types)
    }

    /// Notes that the types with this id change nothing of it.
    pub fn settle(&self, types: u64) {
        self.steps.settle(types);
    }

    pub fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// All of it.
    pub fn root(&self) -> OwnedField<'_> {
        OwnedField { fields: self, steps: (0, self.steps.len()) }
    }

    /// The text without the members of `set`.
    pub fn without(&self, set: &FieldSet) -> FieldsText<'static> {
        work::bytes(self.text.len());
        let steps = Vec::with_capacity(self.steps.len());
        let mut left = TextWriter { text: Vec::with_capacity(self.text.len()), steps };
        self.root().write_without(set, false, &mut left);
        left.finish()
    }
}

/// A text that is being written, and its steps so far.
pub(super) struct TextWriter {
    /// UTF-8.
    text: Vec<u8>,
    steps: Vec<TextStep>,
}

impl TextWriter {
    /// Has room for the fields of an object of ordinary size.
    pub fn new() -> Self {
        TextWriter { text: Vec::with_capacity(1024), steps: Vec::with_capacity(64) }
    }

    pub fn finish(self) -> FieldsText<'static> {
        let text = String::from_utf8(self.text).expect("names and their escapes are UTF-8");
        FieldsText { text: Cow::Owned(text), steps: Arc::new(Steps::new(self.steps)) }
    }

    /// The lengths of the text and of its steps.
    pub fn lengths(&self) -> (usize, usize) {
        (self.text.len(), self.steps.len())
    }

    /// Truncates both to these lengths.
    pub fn truncate(&mut self, (text, steps): (usize, usize)) {
        self.text.truncate(text);
        self.steps.truncate(steps);
    }

    /// Begins the content of a field, and returns where it starts.
    pub fn open(&mut self) -> usize {
        self.text.push(b'{');
        self.text.len()
    }

    /// Ends the content that starts at `start`, and returns whether there is any.
    pub fn close(&mut self, start: usize) -> bool {
        let has_content = self.text.len() > start;
        self.text.push(b'}');
        has_content
    }

    /// Writes what comes before the next step of the content that starts at `start`; `is_member` says whether the field
    /// around it is a member, too.
    pub fn separate(&mut self, start: usize, is_member: bool) {
        if self.text.len() == start {
            if !is_member {
                return;
            }
            let dot = self.begin(|text| text.extend_from_slice(DOT.as_bytes()));
            self.text.extend_from_slice(b"{}");
            self.end(dot);
        }
        self.text.push(b',');
    }

    /// Writes the name of a step and its colon, and returns the step's index; [`TextWriter::end`] must be called after
    /// its content.
    fn begin(&mut self, write_name: impl FnOnce(&mut Vec<u8>)) -> usize {
        self.text.push(b'"');
        let start = self.text.len();
        write_name(&mut self.text);
        let end = self.text.len();
        self.text.extend_from_slice(b"\":");
        work::bytes(end - start);
        // INVARIANT: no text here is longer than its source, or than `TEXT_BYTES_MAX` of `owned_text` and one name.
        self.steps.push(TextStep { name: (start as u32, end as u32), end: 0, next: 0 });
        self.steps.len() - 1
    }

    /// [`TextWriter::begin`] for the field `name` of an object.
    pub fn begin_field(&mut self, name: &str) -> usize {
        self.begin(|text| {
            text.extend_from_slice(b"f:");
            json::encode_text(name, text);
        })
    }

    /// [`TextWriter::begin`] for a plain item.
    pub fn begin_plain_item(&mut self, item: Item<'_>) -> usize {
        self.begin(|text| item.write_plain(text))
    }

    /// [`TextWriter::begin`] for an item, by the text of its path element.
    pub fn begin_item(&mut self, element: &str) -> usize {
        self.begin(|text| json::encode_text(element, text))
    }

    pub fn end(&mut self, step: usize) {
        let (end, next) = self.lengths();
        self.steps[step].end = end as u32;
        self.steps[step].next = next as u32;
    }

    /// Writes a step of another text with everything below it.
    fn copy(&mut self, source: &FieldsText<'_>, step: usize) {
        let TextStep { name: (start, _), end, next } = source.steps[step];
        let start = start as usize - 1;
        let (text_length, step_count) = self.lengths();
        let moved = |at: u32| (at as usize - start + text_length) as u32;
        let renumbered = |at: u32| (at as usize - step + step_count) as u32;
        self.steps.extend(source.steps[step..next as usize].iter().map(|step| TextStep {
            name: (moved(step.name.0), moved(step.name.1)),
            end: moved(step.end),
            next: renumbered(step.next),
        }));
        self.text.extend_from_slice(&source.text.as_bytes()[start..end as usize]);
    }
}

/// Finds the steps.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    steps: Vec<TextStep>,
    /// The steps that have begun and not ended.
    open: Vec<usize>,
}

impl Reader<'_> {
    fn read(mut self) -> Option<Vec<TextStep>> {
        self.expect(b'{')?;
        let mut is_first = true;
        loop {
            if self.peek()? == b'}' {
                self.at += 1;
                is_first = false;
                let Some(ended) = self.open.pop() else { break };
                let (end, next) = (self.at, self.steps.len());
                self.steps[ended].end = end.try_into().ok()?;
                self.steps[ended].next = next.try_into().ok()?;
                continue;
            }
            if !is_first {
                self.expect(b',')?;
            }
            is_first = self.step(is_first)?;
        }
        (self.at == self.text.len()).then_some(self.steps)
    }

    /// Reads the name of a step and moves past its `{`, or past the whole dot. Returns whether a step was opened.
    fn step(&mut self, is_first: bool) -> Option<bool> {
        let name = self.name()?;
        self.expect(b':')?;
        self.expect(b'{')?;
        let raw = &self.text[name.0..name.1];
        let is_dot = raw == DOT;
        if is_dot {
            // A dot is only meaningful if more fields follow below its field.
            let is_said = is_first && !self.open.is_empty() && self.text[self.at..].starts_with("},");
            is_said.then(|| self.at += 1)?;
        } else {
            OwnedName { raw }.is_canonical().then_some(())?;
            self.open.push(self.steps.len());
        }
        let (end, next) = (self.at, self.steps.len() + 1);
        let name = (name.0.try_into().ok()?, name.1.try_into().ok()?);
        self.steps.push(TextStep { name, end: end.try_into().ok()?, next: next.try_into().ok()? });
        Some(!is_dot)
    }

    /// The start and end of the text within the next quotes.
    fn name(&mut self) -> Option<(usize, usize)> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            self.at = json::next_quote_or_backslash(self.text.as_bytes(), self.at)?;
            if self.peek()? == b'"' {
                self.at += 1;
                return Some((start, self.at - 1));
            }
            self.at += 2;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }
}

/// The name of a step, as it stands in JSON.
#[derive(Clone, Copy)]
pub(super) struct OwnedName<'t> {
    raw: &'t str,
}

impl<'t> OwnedName<'t> {
    /// The name, if the step is a field.
    pub fn field(self) -> Option<Cow<'t, str>> {
        self.raw.strip_prefix("f:").map(unescaped)
    }

    fn element(self) -> Option<PathElement> {
        PathElement::decode(&unescaped(self.raw)).ok()
    }

    /// Whether it is spelled as [`PathElement::encode`] writes it.
    fn is_canonical(self) -> bool {
        const ESCAPED_QUOTE: &str = "\\\"";
        self.raw.starts_with("f:")
            || is_plain_key(self.raw, ESCAPED_QUOTE)
            || is_plain_text_value(self.raw, ESCAPED_QUOTE)
            || PathElement::is_canonical(&unescaped(self.raw)) == Ok(true)
    }
}

/// The text between two JSON quotes, unescaped.
fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    match json::decode(format!("\"{raw}\"").as_bytes()) {
        Ok(Value::String(text)) => Cow::Owned(text),
        _ => Cow::Borrowed(raw),
    }
}

/// The fields owned below a field, and whether that field itself is owned.
#[derive(Clone, Copy)]
pub(super) struct OwnedField<'t> {
    fields: &'t FieldsText<'t>,
    steps: (usize, usize),
}

impl<'t> OwnedField<'t> {
    /// Whether nothing stands below the field.
    pub fn is_empty(self) -> bool {
        self.steps.0 == self.steps.1
    }

    /// The fields right below.
    pub fn below(self) -> impl Iterator<Item = (OwnedName<'t>, OwnedField<'t>)> {
        self.steps_below().map(move |at| (self.name(at), self.at(at)))
    }

    /// Whether the field itself is a member: it has no children, or its first child is a dot.
    fn is_member(self) -> bool {
        self.is_empty() || self.name(self.steps.0).raw == DOT
    }

    /// As a set.
    pub fn set(self) -> FieldSet {
        let nodes = self.below().filter_map(|(name, field)| {
            Some(FieldSetNode { element: name.element()?, member: field.is_member(), children: field.set() })
        });
        FieldSet::from_unsorted(nodes.collect())
    }

    /// Whether every member is in `set`.
    pub fn is_within(self, set: &FieldSet) -> bool {
        self.below().all(|(name, field)| match found(set, name) {
            Some((_, node)) => (node.member || !field.is_member()) && field.is_within(&node.children),
            None => false,
        })
    }

    /// Whether it contains every member of `set`.
    pub fn holds(self, set: &FieldSet) -> bool {
        if set.is_empty() {
            return true;
        }
        let held = self.below().filter(|(name, field)| {
            let holds = |node: &FieldSetNode| (field.is_member() || !node.member) && field.holds(&node.children);
            found(set, *name).is_some_and(|(_, node)| holds(node))
        });
        held.count() == set.nodes().len()
    }

    /// The members that are also in `set`.
    pub fn common(self, set: &FieldSet) -> FieldSet {
        if set.is_empty() {
            return FieldSet::new();
        }
        let nodes = self.below().filter_map(|(name, field)| {
            let (element, node) = found(set, name)?;
            let member = node.member && field.is_member();
            let children = field.common(&node.children);
            (member || !children.is_empty()).then_some(FieldSetNode { element, member, children })
        });
        FieldSet::from_unsorted(nodes.collect())
    }

    /// Appends the fields without the members of `set`, and returns whether any remain; `is_member` says whether the
    /// field itself is still a member.
    fn write_without(self, set: &FieldSet, is_member: bool, out: &mut TextWriter) -> bool {
        let start = out.open();
        for at in self.steps_below() {
            let before = out.lengths();
            out.separate(start, is_member);
            let name = self.name(at);
            let Some((_, node)) = found(set, name) else {
                out.copy(self.fields, at);
                continue;
            };
            let step = out.begin(|text| text.extend_from_slice(name.raw.as_bytes()));
            let field = self.at(at);
            if field.write_without(&node.children, field.is_member() && !node.member, out) {
                out.end(step);
            } else {
                out.truncate(before);
            }
        }
        out.close(start) || is_member
    }

    /// The positions of the child steps, without the dot.
    fn steps_below(self) -> impl Iterator<Item = usize> {
        let (first, end) = self.steps;
        let within = move |at: usize| (at < end).then_some(at);
        let next = move |at: &usize| within(self.fields.steps[*at].next as usize);
        let below = iter::successors(within(first), next);
        below.inspect(|_| work::step()).filter(move |at| self.name(*at).raw != DOT)
    }

    fn at(self, step: usize) -> OwnedField<'t> {
        OwnedField { fields: self.fields, steps: (step + 1, self.fields.steps[step].next as usize) }
    }

    fn name(self, step: usize) -> OwnedName<'t> {
        let (start, end) = self.fields.steps[step].name;
        OwnedName { raw: &self.fields.text[start as usize..end as usize] }
    }
}

/// The node of `set` with this name in texts, and its decoded element.
fn found<'s>(set: &'s FieldSet, name: OwnedName<'_>) -> Option<(PathElement, &'s FieldSetNode)> {
    if let Some(field) = name.field() {
        let node = set.field(&field)?;
        return Some((node.element.clone(), node));
    }
    if set.is_of_fields() {
        return None;
    }
    let element = name.element()?;
    let node = set.node(&element)?;
    Some((element, node))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::apply::field_set::arbitrary::sets;

    fn text_of(set: &FieldSet) -> FieldsText<'static> {
        FieldsText::read(Cow::Owned(set.encode_text())).expect("it is what is written")
    }

    proptest! {
        #[test]
        fn a_text_is_asked_like_its_set(owned in sets(), other in sets()) {
            let text = text_of(&owned);
            // Numbers are decoded as doubles.
            let read = text.root().set();
            prop_assert_eq!(&read, &FieldSet::decode(&owned.encode()).expect("it can be read"));
            prop_assert_eq!(text.root().is_within(&other), read.is_subset(&other));
            prop_assert_eq!(text.root().holds(&other), other.is_subset(&read));
            prop_assert!(text.root().holds(&read));
            prop_assert_eq!(text.root().common(&other), read.intersection(&other));
            let left = text.without(&other);
            let read_again = FieldsText::read(left.text.clone()).expect("it is what is written");
            prop_assert_eq!(&left.steps[..], &read_again.steps[..]);
            prop_assert_eq!(left.into_text(), read.difference(&other).encode_text());
        }
    }

    #[test]
    fn other_texts_than_ours_are_refused() {
        for text in [
            "",
            "{",
            "[]",
            "{}x",
            r#"{"f:a":{}"#,
            r#"{"f:a":null}"#,
            r#"{"a":{}}"#,
            r#"{"x:a":{}}"#,
            r#"{".":{}}"#,
            r#"{".":{},"f:a":{}}"#,
            r#"{"f:a":{".":{}}}"#,
            r#"{"f:a":{"f:b":{},".":{}}}"#,
            r#"{"f:a":{} }"#,
            r#"{"k:{\"a\": 1}":{}}"#,
            r#"{,"f:a":{}}"#,
            r#"{"f:a":{}"f:b":{}}"#,
            r#"{"f:a":{".":{"f:b":{}},"f:c":{}}}"#,
        ] {
            assert!(FieldsText::read(Cow::Borrowed(text)).is_none(), "{text}");
        }
        assert!(FieldsText::read(Cow::Borrowed("{}")).is_some_and(|fields| fields.root().is_empty()));
    }
}
