//! Values to YAML.

use super::field_order::in_order;
use super::scalar::{YamlScalar, is_sexagesimal, resolve};
use super::source::is_break;
use crate::value::{Map, Value, number};
use crate::work;

/// Beyond this column a text is folded at the next space.
const WIDTH: usize = 80;
/// The additional indentation of each level.
const INDENT: usize = 2;
/// A longer key, in bytes, needs a `?`.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// The text would be longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// `value` as YAML in blocks, with a line break at the end.
pub fn encode(value: &Value) -> String {
    encode_within(value, usize::MAX).unwrap_or_default()
}

/// [`encode`], if the result has at most about `bytes_max` bytes: in deeply nested values, lines are long.
///
/// # Errors
///
/// The result would be longer.
pub fn encode_within(value: &Value, bytes_max: usize) -> Result<String, TooLong> {
    let mut emitter = Emitter {
        out: String::new(),
        bytes_max,
        is_too_long: false,
        column: 0,
        after_space: true,
        at_line_start: true,
    };
    emitter.node(value, None, NodeContext::Other);
    emitter.indent(0);
    if emitter.is_too_long { Err(TooLong) } else { Ok(emitter.out) }
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeContext {
    /// A key on one line, before its colon.
    Key,
    FieldValue,
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

struct Emitter {
    out: String,
    bytes_max: usize,
    /// The limit is exceeded: nothing more is written, except what is in progress.
    is_too_long: bool,
    /// In characters.
    column: usize,
    /// No space is needed after what was written last.
    after_space: bool,
    /// The current line only has indentation and block indicators.
    at_line_start: bool,
}

impl Emitter {
    fn push(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }

    fn push_break(&mut self, character: char) {
        self.out.push(character);
        self.column = 0;
    }

    /// Moves to the column `indent`, on a new line unless this one has room.
    fn indent(&mut self, indent: usize) {
        if !self.at_line_start || self.column > indent || (self.column == indent && !self.after_space) {
            self.push_break('\n');
        }
        self.is_too_long |= self.bytes_max.saturating_sub(self.out.len()) < indent;
        if !self.is_too_long {
            work::bytes(indent);
            (self.column..indent).for_each(|_| self.push(' '));
        }
        self.after_space = true;
        self.at_line_start = true;
    }

    /// An indicator such as `-`, after which a block may begin on the same line.
    fn block_sign(&mut self, sign: char) {
        self.space();
        self.push(sign);
        self.after_space = false;
    }

    fn sign(&mut self, sign: char) {
        self.push(sign);
        self.after_space = false;
        self.at_line_start = false;
    }

    fn space(&mut self) {
        if !self.after_space {
            self.push(' ');
        }
    }

    /// `outer` is the column of the enclosing block, if there is one.
    fn node(&mut self, value: &Value, outer: Option<usize>, place: NodeContext) {
        let inner = outer.map_or(0, |indent| indent + INDENT);
        work::step();
        match value {
            _ if self.is_too_long => {}
            Value::Object(fields) if !fields.is_empty() => self.mapping(fields, inner),
            Value::Array(items) if !items.is_empty() => {
                let is_indentless = place == NodeContext::FieldValue && !self.at_line_start;
                let indent = outer.filter(|_| is_indentless).unwrap_or(inner);
                for item in items {
                    self.indent(indent);
                    self.block_sign('-');
                    self.node(item, Some(indent), NodeContext::Other);
                }
            }
            Value::Object(_) => self.word("{}"),
            Value::Array(_) => self.word("[]"),
            Value::Null => self.word("null"),
            Value::Bool(truth) => self.word(if *truth { "true" } else { "false" }),
            Value::Int(number) => self.word(&number.to_string()),
            Value::Float(number) => self.word(&print_float(*number)),
            Value::String(text) => self.text(text, outer.map_or(INDENT, |indent| indent + INDENT), place),
        }
    }

    fn mapping(&mut self, fields: &Map, indent: usize) {
        for (name, value) in in_order(fields) {
            self.indent(indent);
            if name.len() <= SIMPLE_KEY_BYTES_MAX && !name.contains(is_break) {
                self.text(name, indent + INDENT, NodeContext::Key);
                self.sign(':');
            } else {
                self.block_sign('?');
                self.text(name, indent + INDENT, NodeContext::FieldValue);
                self.indent(indent);
                self.block_sign(':');
            }
            self.node(value, Some(indent), NodeContext::FieldValue);
        }
    }

    /// A text that is neither folded nor quoted.
    fn word(&mut self, text: &str) {
        self.space();
        text.chars().for_each(|character| self.push(character));
        self.after_space = false;
        self.at_line_start = false;
    }

    fn text(&mut self, text: &str, indent: usize, place: NodeContext) {
        work::bytes(text.len());
        let may_fold = place != NodeContext::Key;
        match style_of(text, place) {
            Style::Plain => self.folded(text, None, indent, may_fold),
            Style::SingleQuoted => self.folded(text, Some('\''), indent, may_fold),
            Style::DoubleQuoted => self.double_quoted(text, indent, may_fold),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// A plain or single-quoted text.
    fn folded(&mut self, text: &str, quote: Option<char>, indent: usize, may_fold: bool) {
        self.space();
        if let Some(quote) = quote {
            self.sign(quote);
        }
        let mut after_space = false;
        let mut after_break = false;
        let mut characters = text.chars().peekable();
        let mut is_first = true;
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            if character == ' ' {
                let is_inside = quote.is_none() || (!is_first && next.is_some());
                if may_fold && !after_space && self.column > WIDTH && is_inside && next != Some(' ') {
                    self.indent(indent);
                } else {
                    self.push(' ');
                }
                after_space = true;
            } else if is_break(character) {
                if !after_break && character == '\n' {
                    self.push_break('\n');
                }
                self.push_break(character);
                self.at_line_start = true;
                after_break = true;
            } else {
                if after_break {
                    self.indent(indent);
                }
                if Some(character) == quote {
                    self.push(character);
                }
                self.push(character);
                self.at_line_start = false;
                after_space = false;
                after_break = false;
            }
            is_first = false;
        }
        quote.into_iter().for_each(|quote| self.push(quote));
        self.after_space = false;
        self.at_line_start = false;
    }

    fn double_quoted(&mut self, text: &str, indent: usize, may_fold: bool) {
        self.space();
        self.sign('"');
        // The reference checks the start of the text for a byte order mark, for every character that it writes.
        let escapes_all = text.starts_with('\u{feff}');
        let mut after_space = false;
        let mut characters = text.chars().peekable();
        let mut is_first = true;
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            if character == ' ' && !escapes_all {
                if may_fold && !after_space && self.column > WIDTH && !is_first && next.is_some() {
                    self.indent(indent);
                    if next == Some(' ') {
                        self.push('\\');
                    }
                } else {
                    self.push(' ');
                }
                after_space = true;
            } else {
                if escapes_all || !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') {
                    escape(character).chars().for_each(|character| self.push(character));
                } else {
                    self.push(character);
                }
                after_space = false;
            }
            is_first = false;
        }
        self.sign('"');
    }

    /// `|`, with an indentation indicator if the first line needs one, and an indicator for trailing line breaks.
    fn literal(&mut self, text: &str, indent: usize) {
        self.space();
        self.sign('|');
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.out.push_str(&INDENT.to_string());
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next()) {
            (false, _) => self.out.push('-'),
            (true, before) if before.is_none_or(is_break) => self.out.push('+'),
            (true, _) => {}
        }
        self.push_break('\n');
        self.after_space = true;
        self.at_line_start = true;
        let mut after_break = true;
        for character in text.chars() {
            if is_break(character) {
                self.push_break(character);
                self.at_line_start = true;
            } else {
                if after_break {
                    self.indent(indent);
                }
                self.push(character);
                self.at_line_start = false;
            }
            after_break = is_break(character);
        }
    }
}

/// A double as the reference prints it after reading it from JSON.
fn print_float(number: f64) -> String {
    let text = number::format_float(number);
    match resolve(&text) {
        YamlScalar::Int(number) => number.to_string(),
        YamlScalar::Uint(number) => number.to_string(),
        _ => number::format_float_v(number),
    }
}

/// The plainest style that a text allows.
fn style_of(text: &str, place: NodeContext) -> Style {
    let traits = Traits::of(text);
    let has_lines = text.contains('\n');
    let means_text = matches!(resolve(text), YamlScalar::Text) && !is_sexagesimal(text);
    if has_lines && place != NodeContext::Key && traits.literal_allowed {
        Style::Literal
    } else if has_lines || !means_text {
        Style::DoubleQuoted
    } else if traits.plain_allowed {
        Style::Plain
    } else if traits.single_quoted_allowed {
        Style::SingleQuoted
    } else {
        Style::DoubleQuoted
    }
}

/// The styles that the characters of a text allow.
struct Traits {
    plain_allowed: bool,
    single_quoted_allowed: bool,
    literal_allowed: bool,
}

impl Traits {
    fn of(text: &str) -> Traits {
        let mut has_indicators = text.starts_with("---") || text.starts_with("...");
        let mut is_printable_throughout = true;
        let (mut break_before_space, mut space_before_break, mut has_breaks) = (false, false, false);
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let before_space = characters.peek().is_none_or(|next| matches!(next, ' ' | '\t'));
            has_indicators |= match (previous, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | ':' | '-') | (Some(_), ':') => before_space,
                (Some(previous), '#') => matches!(previous, ' ' | '\t' | '\0') || is_break(previous),
                _ => false,
            };
            is_printable_throughout &= is_printable(character);
            break_before_space |= character == ' ' && previous.is_some_and(is_break);
            space_before_break |= is_break(character) && previous == Some(' ');
            has_breaks |= is_break(character);
            previous = Some(character);
        }
        let is_edge =
            |character: Option<char>| character.is_some_and(|character| character == ' ' || is_break(character));
        let has_blank_edges = is_edge(text.chars().next()) || is_edge(previous);
        let is_regular = is_printable_throughout && !space_before_break;
        Traits {
            plain_allowed: is_regular && !has_breaks && !has_blank_edges && !has_indicators,
            single_quoted_allowed: is_regular && !break_before_space,
            literal_allowed: is_regular && previous != Some(' '),
        }
    }
}

/// Whether a character is written as it is. Those beyond the basic plane are not.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && character != '\u{feff}'
}

fn escape(character: char) -> String {
    let code = u32::from(character);
    let letter = match character {
        '\0' => '0',
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '\x1b' => 'e',
        '"' | '\\' => character,
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ if code <= 0xff => return format!("\\x{code:02X}"),
        _ if code <= 0xffff => return format!("\\u{code:04X}"),
        _ => return format!("\\U{code:08X}"),
    };
    format!("\\{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[track_caller]
    fn check(json: &str, yaml: &str) {
        let value = json::decode(json.as_bytes()).expect("the test is JSON");
        assert_eq!(encode(&value), yaml);
        assert_eq!(super::super::decode(yaml.as_bytes()), Ok(value));
    }

    #[test]
    fn blocks_are_indented_but_for_lists_of_a_field() {
        check(
            r#"{"a":{"b":[],"c":{}},"l":[{"x":1,"y":["z",["w"]]},[{"v":null}]]}"#,
            "a:\n  b: []\n  c: {}\nl:\n- x: 1\n  \"y\":\n  - z\n  - - w\n- - v: null\n",
        );
    }

    /// sigs.k8s.io/yaml v1.6 writes the same; it can't be read back, not by it either.
    #[test]
    fn a_field_called_as_a_merge_has_no_quotes() {
        let value = json::decode(br#"{"a":{"<<":{"b":1}}}"#).expect("the test is JSON");
        assert_eq!(encode(&value), "a:\n  <<:\n    b: 1\n");
    }

    #[test]
    fn texts_that_mean_something_else_are_quoted() {
        check(
            r#"["","yes","017","1.0","2026-01-02T03:04:05Z","1:20","~"]"#,
            "- \"\"\n- \"yes\"\n- \"017\"\n- \"1.0\"\n- \"2026-01-02T03:04:05Z\"\n- \"1:20\"\n- \"~\"\n",
        );
        check(
            r#"[" a","a: b","a #b","- a","a:b","'a'","{"]"#,
            "- ' a'\n- 'a: b'\n- 'a #b'\n- '- a'\n- a:b\n- '''a'''\n- '{'\n",
        );
        check(r#"["😀","a\tb"]"#, "- \"\\U0001F600\"\n- \"a\\tb\"\n");
    }

    #[test]
    fn texts_of_several_lines_are_literal() {
        check(
            r#"{"a":"x\n  y\n","b":"x\n\n","c":" x\ny","d":"x \ny"}"#,
            "a: |\n  x\n    y\nb: |+\n  x\n\nc: |2-\n   x\n  y\nd: \"x \\ny\"\n",
        );
    }

    #[test]
    fn long_texts_are_folded_behind_column_80() {
        let words = "word ".repeat(20);
        let line = "word ".repeat(16);
        check(&format!(r#"{{"a":"{}"}}"#, words.trim()), &format!("a: {}\n  word word word word\n", line.trim()));
    }

    #[test]
    fn long_keys_have_a_sign_of_their_own() {
        let key = "k".repeat(129);
        check(&format!(r#"{{"{key}":[1]}}"#), &format!("? {key}\n: - 1\n"));
    }

    #[test]
    fn names_are_in_the_order_of_numbers() {
        check(r#"{"a10":1,"a2":1,"a_":1,"A":1,"b":1}"#, "A: 1\na_: 1\na2: 1\na10: 1\nb: 1\n");
    }

    #[test]
    fn a_text_is_only_as_long_as_it_may_be() {
        let deep = (0..1000).fold(Value::from(vec![Value::Int(1); 1000]), |inner, _| crate::object! { "a" => inner });
        assert_eq!(encode_within(&deep, 1 << 20), Err(TooLong));
        assert_eq!(encode_within(&deep, 4 << 20).map(|text| text.len() > 2_000_000), Ok(true));
        let words = (0..1000).fold(Value::from("a b ".repeat(1000)), |inner, _| crate::object! { "a" => inner });
        assert_eq!(encode_within(&words, 1 << 20), Err(TooLong));
        let (_, steps) = work::counted(|| encode_within(&deep, 1 << 20));
        assert!(steps < 60_000, "{steps}");
    }

    #[test]
    fn ten_times_the_value_takes_ten_times_the_steps() {
        let item = || crate::object! { "b" => "two words", "a10" => 1_i64, "a2" => vec![Value::Null] };
        let wide = |count: usize| Value::Array((0..count).map(|_| item()).collect());
        let steps = |count| work::counted(|| encode(&wide(count))).1;
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many < 11 * few, "{few} steps, then {many}");
        let fields = |count: usize| (0..count).map(|at| (format!("a{}", at * 7 % count), Value::Null)).collect::<Map>();
        let steps = |count| work::counted(|| encode(&fields(count).into())).1;
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many < 14 * few, "{few} steps, then {many}");
    }

    #[test]
    fn numbers_have_as_few_digits_as_they_need() {
        check(
            "[1,1.5,1e21,1e-7,12345678901234567000,1000000.5]",
            "- 1\n- 1.5\n- 1e+21\n- 1e-07\n- 12345678901234567000\n- 1.0000005e+06\n",
        );
    }
}
