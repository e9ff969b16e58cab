//! Where the values of a JSON text are, found in one pass: code that reads a text once needs no [`Value`] of it.
//!
//! Input: the bytes of a text. Output: a [`TextTree`], if the text is what [`encode`](super::encode()) writes for its
//! value: compact, with sorted fields, and with the same escapes and numbers. Then each part of it is what would be
//! written for that part. Any other text has no tree and must be decoded.

use std::borrow::Cow;

use super::decode::{DEPTH_MAX, Decoder, decode};
use super::encode::{encode_to_string, end_of_plain};
use crate::value::Value;
use crate::work;

/// Stands for no entry.
const NONE: u32 = u32::MAX;
/// In place of an entry: the text has escapes, or the number is not an integer.
const SPECIAL: u32 = u32::MAX - 1;

/// A value, or the name of a field; the value of a field follows its name.
#[derive(Clone, Copy)]
struct TapeEntry {
    start: u32,
    end: u32,
    /// The item or the name before it in its container.
    previous: u32,
    /// The last item or name of a container; for texts and numbers, whether they are [`SPECIAL`].
    last: u32,
}

/// The values of a text in the order of their beginnings, and memory for those of the next text.
#[derive(Default)]
pub struct Tape {
    entries: Vec<TapeEntry>,
    /// The containers around the one that is being read.
    outer: Vec<u32>,
}

/// A text with the places of its values.
#[derive(Clone, Copy)]
pub struct TextTree<'t> {
    text: &'t str,
    entries: &'t [TapeEntry],
}

/// A value in a [`TextTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextNode(u32);

impl Tape {
    /// The values of a text; `None` if it is not exactly what the encoder writes for its value.
    pub fn read<'t>(&'t mut self, text: &'t [u8]) -> Option<TextTree<'t>> {
        work::bytes(text.len());
        let (bytes, text) = (text, str::from_utf8(text).ok()?);
        if bytes.len() >= SPECIAL as usize {
            return None;
        }
        self.entries.clear();
        self.outer.clear();
        TapeReader { bytes, at: 0, tape: self, container: NONE, is_in_array: false }.read()?;
        Some(TextTree { text, entries: &self.entries })
    }
}

struct TapeReader<'r> {
    bytes: &'r [u8],
    at: usize,
    tape: &'r mut Tape,
    /// The innermost open array or object.
    container: u32,
    is_in_array: bool,
}

impl TapeReader<'_> {
    fn read(&mut self) -> Option<()> {
        loop {
            work::step();
            let is_complete = self.value()?;
            if is_complete && self.close()? {
                return Some(());
            }
        }
    }

    /// Reads a value. Returns false if it is a container with contents: then its first value follows.
    fn value(&mut self) -> Option<bool> {
        let start = self.at;
        let special = match *self.bytes.get(start)? {
            byte @ (b'{' | b'[') => return self.open(byte == b'['),
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => return None,
        };
        self.add(start, special);
        Some(true)
    }

    /// Adds a value that ends here.
    fn add(&mut self, start: usize, last: u32) -> u32 {
        let at = self.tape.entries.len() as u32;
        let previous = if self.is_in_array { self.follow(at) } else { NONE };
        self.tape.entries.push(TapeEntry { start: start as u32, end: self.at as u32, previous, last });
        at
    }

    /// Makes an entry the last one of its container; returns the one before it.
    fn follow(&mut self, at: u32) -> u32 {
        std::mem::replace(&mut self.tape.entries[self.container as usize].last, at)
    }

    fn open(&mut self, is_array: bool) -> Option<bool> {
        let depth = self.tape.outer.len() + usize::from(self.container != NONE);
        if depth >= DEPTH_MAX {
            return None;
        }
        let start = self.at;
        self.at += 1;
        let end = if is_array { b']' } else { b'}' };
        if *self.bytes.get(self.at)? == end {
            self.at += 1;
            self.add(start, NONE);
            return Some(true);
        }
        let at = self.add(start, NONE);
        if self.container != NONE {
            self.tape.outer.push(self.container);
        }
        (self.container, self.is_in_array) = (at, is_array);
        if !is_array {
            self.name()?;
        }
        Some(false)
    }

    /// Closes the containers that end after a value. Returns whether that was all of the text.
    fn close(&mut self) -> Option<bool> {
        loop {
            if self.container == NONE {
                return (self.at == self.bytes.len()).then_some(true);
            }
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            match (self.is_in_array, byte) {
                (true, b',') => return Some(false),
                (false, b',') => {
                    self.name()?;
                    return Some(false);
                }
                (true, b']') | (false, b'}') => self.leave(),
                _ => return None,
            }
        }
    }

    fn leave(&mut self) {
        self.tape.entries[self.container as usize].end = self.at as u32;
        self.container = self.tape.outer.pop().unwrap_or(NONE);
        let outer = self.tape.entries.get(self.container as usize);
        self.is_in_array = outer.is_some_and(|outer| self.bytes[outer.start as usize] == b'[');
    }

    /// Reads the name of a field, which must sort after the one before it, and the colon.
    fn name(&mut self) -> Option<()> {
        let start = self.at;
        if *self.bytes.get(start)? != b'"' {
            return None;
        }
        let last = self.string()?;
        let previous = self.follow(self.tape.entries.len() as u32);
        let name = TapeEntry { start: start as u32, end: self.at as u32, previous, last };
        let before = self.tape.entries.get(previous as usize);
        if before.is_some_and(|before| !self.are_sorted(before, &name)) {
            return None;
        }
        self.tape.entries.push(name);
        let colon = self.bytes.get(self.at) == Some(&b':');
        self.at += 1;
        colon.then_some(())
    }

    fn are_sorted(&self, name: &TapeEntry, next: &TapeEntry) -> bool {
        let text = |entry: &TapeEntry| &self.bytes[entry.start as usize + 1..entry.end as usize - 1];
        let (name_text, next_text) = (text(name), text(next));
        if name.last != SPECIAL && next.last != SPECIAL {
            return name_text < next_text;
        }
        let differ = name_text.iter().zip(next_text).position(|(one, other)| one != other);
        match differ {
            None => name_text.len() < next_text.len(),
            // Up to there, both have the same characters.
            Some(at) if name_text[at] != b'\\' && next_text[at] != b'\\' && !is_within_escape(name_text, at) => {
                name_text[at] < next_text[at]
            }
            Some(_) => {
                let bytes = |entry: &TapeEntry| &self.bytes[entry.start as usize..entry.end as usize];
                unescape(bytes(name)) < unescape(bytes(next))
            }
        }
    }

    /// Reads a text with its quotes.
    fn string(&mut self) -> Option<u32> {
        let start = self.at;
        let mut special = NONE;
        self.at += 1;
        loop {
            self.at = end_of_plain(self.bytes, self.at);
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    work::bytes(self.at - start);
                    return Some(special);
                }
                b'\\' => {
                    self.at += self.escape()?;
                    special = SPECIAL;
                }
                // The beginning of U+2028 and U+2029, which are escaped, and of others, which are not.
                0xe2 if !matches!(self.bytes.get(self.at + 1..self.at + 3), Some([0x80, 0xa8 | 0xa9])) => self.at += 3,
                _ => return None,
            }
        }
    }

    /// The length of the escape that begins here, if it is the one that the encoder writes for its character.
    fn escape(&self) -> Option<usize> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(SHORT_ESCAPE_BYTES),
            b'u' => is_written(self.bytes.get(self.at + 2..self.at + LONG_ESCAPE_BYTES)?).then_some(LONG_ESCAPE_BYTES),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u32> {
        const DIGITS_SURE: usize = 18;
        let rest = &self.bytes[self.at..];
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let number = &rest[..rest.iter().take_while(is_part).count()];
        self.at += number.len();
        let digits = number.strip_prefix(b"-").unwrap_or(number);
        let is_short = digits.len() <= DIGITS_SURE && digits.iter().all(u8::is_ascii_digit);
        match digits {
            [b'1'..=b'9', ..] if is_short => return Some(NONE),
            [b'0'] if number.len() == 1 => return Some(NONE),
            _ => {}
        }
        let value = decode(number).ok()?;
        let special = if matches!(value, Value::Int(_)) { NONE } else { SPECIAL };
        (encode_to_string(&value).as_bytes() == number).then_some(special)
    }

    fn literal(&mut self, literal: &[u8]) -> Option<u32> {
        let is_it = self.bytes[self.at..].starts_with(literal);
        self.at += literal.len();
        is_it.then_some(NONE)
    }
}

/// `\n`
const SHORT_ESCAPE_BYTES: usize = 2;
/// `\u001f`
const LONG_ESCAPE_BYTES: usize = 6;

/// Whether the encoder writes a character with these hexadecimal digits.
fn is_written(digits: &[u8]) -> bool {
    match digits {
        b"0026" | b"003c" | b"003e" | b"2028" | b"2029" => true,
        // Controls that have no short escape.
        [b'0', b'0', b'0', digit] => matches!(digit, b'0'..=b'7' | b'b' | b'e' | b'f'),
        [b'0', b'0', b'1', digit] => matches!(digit, b'0'..=b'9' | b'a'..=b'f'),
        _ => false,
    }
}

/// Whether an escape begins before `at` and ends after it.
fn is_within_escape(text: &[u8], at: usize) -> bool {
    let mut next = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[next..at]) {
        next += found;
        next += if text[next + 1] == b'u' { LONG_ESCAPE_BYTES } else { SHORT_ESCAPE_BYTES };
        if next > at {
            return true;
        }
    }
    false
}

/// A text with quotes and escapes that was read before.
fn unescape(quoted: &[u8]) -> Cow<'_, str> {
    Decoder::new(quoted).string().unwrap_or_default()
}

impl<'t> TextTree<'t> {
    /// The outermost value.
    pub const ROOT: TextNode = TextNode(0);

    fn entry(&self, node: TextNode) -> &'t TapeEntry {
        &self.entries[node.0 as usize]
    }

    fn first_byte(&self, node: TextNode) -> u8 {
        self.text.as_bytes()[self.entry(node).start as usize]
    }

    /// The JSON of a value.
    pub fn text(&self, node: TextNode) -> &'t str {
        let entry = self.entry(node);
        &self.text[entry.start as usize..entry.end as usize]
    }

    /// The name of the field with this value, as JSON, and the colon after it.
    pub(super) fn name_text(&self, value: TextNode) -> &'t str {
        let name = &self.entries[value.0 as usize - 1];
        &self.text[name.start as usize..self.entry(value).start as usize]
    }

    /// A value, decoded.
    pub fn value(&self, node: TextNode) -> Value {
        decode(self.text(node).as_bytes()).unwrap_or_default()
    }

    /// Whether it is `null`.
    pub fn is_null(&self, node: TextNode) -> bool {
        self.first_byte(node) == b'n'
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self, node: TextNode) -> Option<bool> {
        match self.first_byte(node) {
            b't' => Some(true),
            b'f' => Some(false),
            _ => None,
        }
    }

    fn is_number(&self, node: TextNode) -> bool {
        matches!(self.first_byte(node), b'-' | b'0'..=b'9')
    }

    /// The number, if it is an integer.
    pub fn as_i64(&self, node: TextNode) -> Option<i64> {
        let is_integer = self.is_number(node) && self.entry(node).last != SPECIAL;
        if is_integer { self.text(node).parse().ok() } else { None }
    }

    /// The number, if it is one.
    pub fn as_f64(&self, node: TextNode) -> Option<f64> {
        match self.as_i64(node) {
            Some(number) => Some(number as f64),
            None if self.is_number(node) => self.text(node).parse().ok(),
            None => None,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self, node: TextNode) -> Option<Cow<'t, str>> {
        (self.first_byte(node) == b'"').then(|| self.unquoted(self.entry(node)))
    }

    #[inline]
    fn unquoted(&self, entry: &TapeEntry) -> Cow<'t, str> {
        let (start, end) = (entry.start as usize, entry.end as usize);
        match entry.last {
            SPECIAL => unescape(&self.text.as_bytes()[start..end]),
            _ => Cow::Borrowed(&self.text[start + 1..end - 1]),
        }
    }

    /// The items of an array, the last one first.
    pub fn items_back(&self, node: TextNode) -> Option<impl Iterator<Item = TextNode> + use<'t>> {
        (self.first_byte(node) == b'[').then(|| self.contents_back(node).map(TextNode))
    }

    /// The fields of an object with their names, the last one first.
    pub fn fields_back(&self, node: TextNode) -> Option<impl Iterator<Item = (Cow<'t, str>, TextNode)> + use<'t>> {
        let tree = *self;
        let field = move |name: u32| (tree.unquoted(&tree.entries[name as usize]), TextNode(name + 1));
        (self.first_byte(node) == b'{').then(|| self.contents_back(node).map(field))
    }

    fn contents_back(&self, node: TextNode) -> impl Iterator<Item = u32> + use<'t> {
        let entries = self.entries;
        let known = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(known(self.entry(node).last), move |at| known(entries[*at as usize].previous))
    }

    /// The field `name` of an object.
    pub fn field(&self, node: TextNode, name: &str) -> Option<TextNode> {
        self.fields_back(node)?.find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::{arbitrary, json, with_a_deep_stack};

    /// Makes a value of what a tree has.
    fn rebuilt(tree: &TextTree<'_>, node: TextNode) -> Value {
        if let Some(items) = tree.items_back(node) {
            let mut items: Vec<Value> = items.map(|item| rebuilt(tree, item)).collect();
            items.reverse();
            return Value::Array(items);
        }
        if let Some(fields) = tree.fields_back(node) {
            return Value::Object(fields.map(|(name, field)| (name.into_owned(), rebuilt(tree, field))).collect());
        }
        let number = tree.as_i64(node).map(Value::Int).or_else(|| tree.as_f64(node).map(Value::Float));
        let text = || tree.as_str(node).map(|text| Value::String(text.into_owned()));
        let found = number.or_else(|| tree.as_bool(node).map(Value::Bool)).or_else(text);
        assert_eq!(found.is_none(), tree.is_null(node));
        found.unwrap_or_default()
    }

    /// A tree has the values of its text, and only what the encoder writes has one.
    fn check(bytes: &[u8]) {
        let mut tape = Tape::default();
        let decoded = json::decode(bytes);
        let is_written = decoded.as_ref().is_ok_and(|value| json::encode(value) == bytes);
        let tree = tape.read(bytes);
        assert_eq!(tree.is_some(), is_written, "{}", String::from_utf8_lossy(bytes));
        if let (Some(tree), Ok(value)) = (tree, decoded) {
            assert_eq!(rebuilt(&tree, TextTree::ROOT), value);
            assert_eq!(tree.value(TextTree::ROOT), value);
            assert_eq!(tree.text(TextTree::ROOT).as_bytes(), bytes);
        }
    }

    #[test]
    fn only_what_the_encoder_writes_has_a_tree() {
        for text in [
            "",
            " 1",
            "1 ",
            "01",
            "-0",
            "0",
            "-1",
            "1.0",
            "1.5",
            "1e3",
            "1e400",
            "1e21",
            "1e+21",
            "-",
            "+1",
            "1.",
            "nul",
            "null",
            "true",
            "false",
            "truefalse",
            "\"",
            "\"a",
            "\"a\"",
            "\"\\/\"",
            "\"\\u0041\"",
            "\"\\u000b\"",
            "\"\\u000B\"",
            "\"\\u0008\"",
            "\"\\b\"",
            "\"\\u001F\"",
            "\"\\u001f\"",
            "\"\\u003c\"",
            "\"<\"",
            "\"\\u2028\"",
            "\"\u{2028}\"",
            "\"\u{2027}\"",
            "\"\u{7f}\"",
            "\"\\ud83d\\ude00\"",
            "\"😀\"",
            "\"\t\"",
            "\"\\",
            "\"\\u00",
            "[]",
            "[",
            "]",
            "[1,2]",
            "[1,]",
            "[,1]",
            "[1 ,2]",
            "[1}",
            "{}",
            "{",
            "{]",
            "{\"a\":1}",
            "{\"a\" :1}",
            "{\"a\":1,}",
            "{\"a\"}",
            "{1:1}",
            "{\"a\":1,\"b\":[{}]}",
            "{\"b\":1,\"a\":2}",
            "{\"a\":1,\"a\":2}",
            "{\"\":1,\"a\":2}",
            "{\"a\\\"b\":1,\"a\\\"c\":1}",
            "{\"a\\\"c\":1,\"a\\\"b\":1}",
            "{\"a\\n\":1,\"a!\":1}",
            "{\"a!\":1,\"a\\n\":1}",
            "{\"a\\u0001\":1,\"a\\u0002\":1}",
            "{\"a\\u0002\":1,\"a\\u0001\":1}",
            "{\"a\\u003c\":1,\"a\\u003e\":1}",
            "{\"a\\\\\":1,\"a\\\\a\":1}",
            "{\"a\\\\a\":1,\"a\\\\\":1}",
            "{\"a\\n\":1,\"a\\nb\":1}",
            "{\"a\\n\":1,\"a\\n\":1}",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "12345678901234567000",
            "12345678901234567890",
            "0.1",
            "1e-7",
            "1.25e-7",
        ] {
            check(text.as_bytes());
        }
        check(b"\"\xff\"");
        check(b"\"\xe2\x80\"");
    }

    #[test]
    fn nesting_ends_where_it_does_for_the_decoder() {
        let mut tape = Tape::default();
        for (begin, middle, end) in [("[", "", "]"), ("{\"a\":", "1", "}")] {
            let nested = |depth: usize| begin.repeat(depth) + middle + &end.repeat(depth);
            assert!(tape.read(nested(DEPTH_MAX).as_bytes()).is_some());
            assert!(tape.read(nested(DEPTH_MAX + 1).as_bytes()).is_none());
        }
        with_a_deep_stack(|| check(("[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX)).as_bytes()));
    }

    #[test]
    fn a_field_is_found_by_its_name() {
        let mut tape = Tape::default();
        let tree = tape.read(br#"{"a":1,"b\"":[2],"c":{"a":3}}"#).expect("it is what the encoder writes");
        let text = |name: &str| tree.field(TextTree::ROOT, name).map(|node| tree.text(node));
        assert_eq!(["a", "b\"", "c", "d"].map(text), [Some("1"), Some("[2]"), Some(r#"{"a":3}"#), None]);
    }

    #[test]
    fn ten_times_the_text_takes_ten_times_the_steps() {
        let steps = |count: usize| {
            let text = format!("[{}0]", r#"{"a":{},"b":[1,true,null,"x\ny"]},"#.repeat(count));
            work::counted(|| assert!(Tape::default().read(text.as_bytes()).is_some())).1
        };
        let (few, many) = (steps(1000), steps(10_000));
        assert!(few > 8_000 && many < 11 * few, "{few} steps, then {many}");
    }

    proptest! {
        #[test]
        fn what_is_written_has_a_tree(value in arbitrary::value()) {
            check(&json::encode(&value));
        }

        #[test]
        fn texts_of_any_characters_have_a_tree(fields in prop::collection::vec((any::<String>(), any::<f64>()), 0..6)) {
            let number = |number: f64| if number.is_finite() { Value::Float(number) } else { Value::Null };
            let value = Value::Object(fields.into_iter().map(|(name, it)| (name, number(it))).collect());
            check(&json::encode(&value));
        }

        #[test]
        fn names_with_escapes_are_compared_as_what_they_stand_for(
            names in prop::collection::vec(r#"[a\\"\n\u{1}<b\u{2028}é]{0,4}"#, 2..4),
        ) {
            let fields: Vec<String> = names.iter().map(|name| {
                format!("{}:1", json::encode_to_string(&Value::from(name.as_str())))
            }).collect();
            check(format!("{{{}}}", fields.join(",")).as_bytes());
        }

        #[test]
        fn changed_bytes_have_a_tree_only_as_the_encoder_writes_them(
            value in arbitrary::value(),
            at in any::<prop::sample::Index>(),
            with in prop::sample::select(&b"\"\\{}[],:0-1.eEtn un<\xe2\x80\xff"[..]),
        ) {
            let mut bytes = json::encode(&value);
            let at = at.index(bytes.len());
            bytes[at] = with;
            check(&bytes);
            bytes.insert(at, with);
            check(&bytes);
            bytes.truncate(at);
            check(&bytes);
        }
    }
}
