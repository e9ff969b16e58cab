//! JSON paths as in kubectl: `.spec.x`, `.items[0].n`, `.conditions[?(@.type=="Ready")].status`, `..name`.
//!
//! Input: a path and a value. Output: what the path finds there, in order. Absent keys find nothing; other faults, such
//! as an index out of bounds, are errors without details, as the callers don't need any. Source: Kubernetes
//! documentation, "JSONPath Support"; answers recorded from apiextensions-apiserver 1.37.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::str::Chars;

use crate::value::Value;
use crate::work;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<JsonPathStep>,
}

/// The path is malformed; the text says how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(pub String);

/// The path does not apply to the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FindError;

#[derive(Clone, Debug, PartialEq)]
enum JsonPathStep {
    Field(String),
    Wildcard,
    /// Everything below, itself included.
    Descend,
    Slice(SliceBounds),
    Union(Vec<Vec<JsonPathStep>>),
    Filter {
        left: Vec<JsonPathStep>,
        operator: Operator,
        right: Vec<JsonPathStep>,
    },
    /// A literal replaces the values found so far.
    Literal(Value),
    /// A word that only has a meaning in templates.
    Word,
}

/// `[start:end:step]`. For `[start]` the end follows from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SliceBounds {
    start: Option<i64>,
    end: Option<i64>,
    is_index: bool,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Unknown,
}

/// The maximum nesting of paths by filters and unions; no real path is as deep.
const DEPTH_MAX: usize = 32;

impl JsonPath {
    /// Reads a path. Text after a closing brace is ignored, and so are all actions of a template but the first.
    ///
    /// # Errors
    ///
    /// The error of the text, in Go's words.
    pub fn parse(path: &str) -> Result<Self, ParseError> {
        work::bytes(path.len());
        Ok(JsonPath { steps: parse_steps(path, 0)? })
    }

    /// The values that the path finds in `value`.
    ///
    /// # Errors
    ///
    /// A field or an index does not exist.
    pub fn find<'v>(&self, value: &'v Value) -> Result<Vec<Cow<'v, Value>>, FindError> {
        walk(vec![Cow::Borrowed(value)], &self.steps)
    }
}

/// A value as text: strings as they are, objects and lists as JSON, null as `<no value>`.
pub fn print(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        other => crate::value::go_display(other),
    }
}

fn error<T>(text: impl Into<String>) -> Result<T, ParseError> {
    Err(ParseError(text.into()))
}

struct JsonPathParser<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

fn parse_steps(path: &str, depth: usize) -> Result<Vec<JsonPathStep>, ParseError> {
    if depth > DEPTH_MAX {
        return error("nested too deeply");
    }
    let mut parser = JsonPathParser { rest: path.chars().peekable(), depth };
    let mut steps = Vec::new();
    loop {
        match parser.rest.next() {
            None | Some('}') => return Ok(steps),
            Some(' ' | '@' | '$') => {}
            Some('\n' | '\r') => return error("unclosed action"),
            Some('[') => parser.bracket(&mut steps)?,
            Some(quote @ ('"' | '\'')) => {
                let text = parser.quoted(quote)?;
                steps.push(JsonPathStep::Literal(text.into()));
            }
            Some('.') if parser.rest.next_if_eq(&'.').is_some() => parser.descend(&mut steps)?,
            Some('.') => steps.push(parser.field()),
            Some(first @ ('+' | '-')) => steps.push(parser.number(first)?),
            Some(first) if first.is_numeric() => steps.push(parser.number(first)?),
            Some(first) if first == '_' || first.is_alphabetic() => {
                let word = first.to_string() + &parser.word();
                steps.push(match word.as_str() {
                    "true" => JsonPathStep::Literal(true.into()),
                    "false" => JsonPathStep::Literal(false.into()),
                    _ => JsonPathStep::Word,
                });
            }
            Some(other) => {
                return error(format!("unrecognized character in action: U+{:04X} '{other}'", u32::from(other)));
            }
        }
    }
}

impl JsonPathParser<'_> {
    fn descend(&mut self, steps: &mut Vec<JsonPathStep>) -> Result<(), ParseError> {
        if steps.last() == Some(&JsonPathStep::Descend) {
            return error("invalid multiple recursive descent");
        }
        steps.push(JsonPathStep::Descend);
        if self.rest.peek().is_some_and(|next| *next == '_' || next.is_alphanumeric()) {
            steps.push(self.field());
        }
        Ok(())
    }

    /// A name up to the next special character; a backslash escapes one.
    fn field(&mut self) -> JsonPathStep {
        let mut name = String::new();
        let mut is_escaped = false;
        while let Some(next) = self.rest.next_if(|next| is_escaped || !is_terminator(*next)) {
            is_escaped = !is_escaped && next == '\\';
            if next != '\\' {
                name.push(next);
            }
        }
        match name.as_str() {
            "*" => JsonPathStep::Wildcard,
            _ => JsonPathStep::Field(name),
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(next) = self.rest.next_if(|next| !is_terminator(*next)) {
            word.push(next);
        }
        word
    }

    fn number(&mut self, first: char) -> Result<JsonPathStep, ParseError> {
        let mut text = first.to_string();
        while let Some(next) = self.rest.next_if(|next| *next == '.' || next.is_numeric()) {
            text.push(next);
        }
        if let Ok(number) = text.parse::<i64>() {
            return Ok(JsonPathStep::Literal(Value::Int(number)));
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(JsonPathStep::Literal(Value::Float(number))),
            _ => error(format!("cannot parse number {text}")),
        }
    }

    /// The text up to a closing quote; a backslash escapes the next character.
    fn quoted(&mut self, quote: char) -> Result<String, ParseError> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None | Some('\n') => return error("unterminated quoted string"),
                Some(next) if next == quote => return Ok(text),
                Some('\\') => match self.rest.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some(next) if next == quote || next == '\\' => text.push(next),
                    Some(next) => return error(format!("unquote string error: \\{next}")),
                    None => return error("unterminated quoted string"),
                },
                Some(next) => text.push(next),
            }
        }
    }

    fn bracket(&mut self, steps: &mut Vec<JsonPathStep>) -> Result<(), ParseError> {
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('?') && ahead.next() == Some('(') {
            self.rest = ahead;
            steps.push(self.filter()?);
            return Ok(());
        }
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None | Some('\n') => return error("unterminated array"),
                Some(']') => break,
                Some(next) => text.push(next),
            }
        }
        if text.contains(',') {
            let parts =
                text.split(',').map(|part| parse_steps(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            steps.push(JsonPathStep::Union(parts.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).filter(|key| !key.contains('\''));
        match key {
            Some(key) => steps.extend(parse_steps(&format!(".{key}"), self.depth + 1)?),
            None => steps.push(JsonPathStep::Slice(slice(&text)?)),
        }
        Ok(())
    }

    /// `LEFT OPERATOR RIGHT)]`, or a path that must find a value.
    fn filter(&mut self) -> Result<JsonPathStep, ParseError> {
        let mut text = String::new();
        let (mut quote, mut is_closed) = (None, false);
        loop {
            let Some(next) = self.rest.next().filter(|next| *next != '\n') else { return error("unterminated filter") };
            match next {
                '"' | '\'' if quote.is_none() => quote = Some(next),
                _ if quote == Some(next) && !text.ends_with('\\') => is_closed = true,
                ')' if quote.is_some() == is_closed => break,
                _ => {}
            }
            text.push(next);
        }
        if self.rest.next() != Some(']') {
            return error("unclosed array expect ]");
        }
        let is_operator = |next: char| "!<>=".contains(next);
        let start = text.find(is_operator).filter(|start| *start > 0);
        let end = start
            .map(|start| text[start..].find(|next| !is_operator(next)).map_or(text.len(), |length| start + length));
        let depth = self.depth + 1;
        match start.zip(end) {
            Some((start, end)) if end < text.len() => {
                let operator = match &text[start..end] {
                    "<" => Operator::Less,
                    "<=" => Operator::LessOrEqual,
                    ">" => Operator::Greater,
                    ">=" => Operator::GreaterOrEqual,
                    "==" => Operator::Equal,
                    "!=" => Operator::NotEqual,
                    _ => Operator::Unknown,
                };
                let (left, right) = (parse_steps(&text[..start], depth)?, parse_steps(&text[end..], depth)?);
                Ok(JsonPathStep::Filter { left, operator, right })
            }
            _ => Ok(JsonPathStep::Filter {
                left: parse_steps(&text, depth)?,
                operator: Operator::Exists,
                right: Vec::new(),
            }),
        }
    }
}

fn is_terminator(character: char) -> bool {
    " \t\r\n.,[]$@{}".contains(character)
}

fn slice(text: &str) -> Result<SliceBounds, ParseError> {
    let text = if text == "*" { ":" } else { text };
    let parts: Vec<&str> = text.split(':').collect();
    let is_number = |part: &str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(|part| is_number(part)) {
        return error(format!("invalid array index {text}"));
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => match part.parse::<i64>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => error(format!("array index {part} is not a number")),
        },
    };
    Ok(SliceBounds { start: number(0)?, end: number(1)?, is_index: parts.len() == 1, step: number(2)? })
}

impl SliceBounds {
    /// The indices of a list of `length` items.
    fn indices(self, length: usize) -> Result<std::iter::StepBy<std::ops::Range<usize>>, FindError> {
        let length = i64::try_from(length).map_err(|_| FindError)?;
        let first = self.start.unwrap_or_default();
        let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
        let start = from_end(first);
        let end = match (self.is_index, self.end) {
            // The item before the end, and the one before it, end at the length or before.
            (true, _) if first < 0 => first.saturating_add(1).saturating_add(length),
            (true, _) => first.saturating_add(1),
            (false, Some(end)) => from_end(end),
            (false, None) => length,
        };
        if start != end && (start < 0 || start >= length || end < 0 || end > length || start > end) {
            return Err(FindError);
        }
        let step = match self.step {
            None => 1,
            Some(step) => usize::try_from(step).ok().filter(|step| *step > 0).ok_or(FindError)?,
        };
        let range = if start == end { 0..0 } else { cast(start)?..cast(end)? };
        Ok(range.step_by(step))
    }
}

fn cast(index: i64) -> Result<usize, FindError> {
    usize::try_from(index).map_err(|_| FindError)
}

/// The most values that a path may find at each step; each recursive search may multiply them. The reference has no
/// such limit.
const FOUND_MAX: usize = 1 << 18;

fn walk<'v>(mut found: Vec<Cow<'v, Value>>, steps: &[JsonPathStep]) -> Result<Vec<Cow<'v, Value>>, FindError> {
    for step in steps {
        found = advance(found, step)?;
    }
    Ok(found)
}

fn advance<'v>(input: Vec<Cow<'v, Value>>, step: &JsonPathStep) -> Result<Vec<Cow<'v, Value>>, FindError> {
    match step {
        JsonPathStep::Literal(value) => return Ok(vec![Cow::Owned(value.clone())]),
        JsonPathStep::Word => return Err(FindError),
        JsonPathStep::Union(paths) => {
            let mut found = Vec::new();
            for path in paths {
                work::steps(input.len());
                found.extend(walk(input.clone(), path)?);
                if found.len() > FOUND_MAX {
                    return Err(FindError);
                }
            }
            return Ok(found);
        }
        _ => {}
    }
    let mut found = Vec::new();
    // A literal contains no other values, so the values that are searched are always borrowed.
    for value in input.into_iter().map(|value| if let Cow::Borrowed(value) = value { value } else { &Value::Null }) {
        work::step();
        if found.len() > FOUND_MAX {
            return Err(FindError);
        }
        match (step, value) {
            (JsonPathStep::Field(name), Value::Object(fields)) => found.extend(fields.get(name).map(Cow::Borrowed)),
            (JsonPathStep::Wildcard, value) => found.extend(children(value).map(Cow::Borrowed)),
            (JsonPathStep::Descend, value) => descend(value, &mut found),
            (JsonPathStep::Slice(_), Value::Null) => {}
            (JsonPathStep::Slice(slice), Value::Array(items)) => {
                found.extend(slice.indices(items.len())?.filter_map(|at| items.get(at)).map(Cow::Borrowed));
            }
            (JsonPathStep::Filter { left, operator, right }, Value::Array(items)) => {
                for item in items {
                    work::step();
                    if holds(item, left, *operator, right)? {
                        found.push(Cow::Borrowed(item));
                    }
                }
            }
            (JsonPathStep::Slice(_) | JsonPathStep::Filter { .. }, _) => return Err(FindError),
            _ => {}
        }
    }
    Ok(found)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

fn descend<'v>(value: &'v Value, found: &mut Vec<Cow<'v, Value>>) {
    work::step();
    let mut below = children(value).peekable();
    if below.peek().is_some() {
        found.push(Cow::Borrowed(value));
        below.for_each(|value| descend(value, found));
    }
}

fn holds(item: &Value, left: &[JsonPathStep], operator: Operator, right: &[JsonPathStep]) -> Result<bool, FindError> {
    let left = walk(vec![Cow::Borrowed(item)], left);
    if operator == Operator::Exists {
        return Ok(left.is_ok_and(|found| !found.is_empty()));
    }
    let left = left?;
    let right = match left.len() {
        0 => return Ok(false),
        1 => walk(vec![Cow::Borrowed(item)], right)?,
        _ => return Err(FindError),
    };
    match right.len() {
        0 => Ok(false),
        1 => compare(&left[0], operator, &right[0]),
        _ => Err(FindError),
    }
}

/// Compares values of the same kind; integers and doubles are different kinds. Booleans have no order.
fn compare(left: &Value, operator: Operator, right: &Value) -> Result<bool, FindError> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => match operator {
            Operator::Equal => return Ok(left == right),
            Operator::NotEqual => return Ok(left != right),
            _ => return Err(FindError),
        },
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right).ok_or(FindError)?,
        (Value::String(left), Value::String(right)) => left.cmp(right),
        _ => return Err(FindError),
    };
    match operator {
        Operator::Less => Ok(order == Ordering::Less),
        Operator::LessOrEqual => Ok(order != Ordering::Greater),
        Operator::Greater => Ok(order == Ordering::Greater),
        Operator::GreaterOrEqual => Ok(order != Ordering::Less),
        Operator::Equal => Ok(order == Ordering::Equal),
        Operator::NotEqual => Ok(order != Ordering::Equal),
        Operator::Exists | Operator::Unknown => Err(FindError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    fn sample() -> Value {
        let condition = |type_: &str, status: &str| object! { "type" => type_, "status" => status };
        object! {
            "l" => vec![Value::from("x"), Value::from("y"), Value::from("z")],
            "labels" => object! { "a.b/c" => "v" },
            "conditions" => vec![condition("Ready", "True"), condition("Ok (a)", "False")],
            "null" => Value::Null,
            "n" => 5_i64,
        }
    }

    /// The values found, as texts, or the error of the path or of its use.
    #[track_caller]
    fn check(path: &str, expected: Result<&[&str], &str>) {
        let sample = sample();
        let found = JsonPath::parse(path).map_err(|error| error.0).and_then(|path| {
            let found = path.find(&sample).map_err(|_| "does not apply".to_owned())?;
            Ok(found.iter().map(|value| print(value)).collect::<Vec<_>>())
        });
        assert_eq!(
            found,
            expected.map(|texts| texts.iter().map(|text| (*text).to_owned()).collect()).map_err(str::to_owned),
            "{path}"
        );
    }

    #[test]
    fn fields_are_found_by_name_and_absent_ones_find_nothing() {
        check(".n", Ok(&["5"]));
        check(".nothing.at.all", Ok(&[]));
        check(".null", Ok(&["<no value>"]));
        check("", Ok(&[&print(&sample())]));
    }

    #[test]
    fn a_dot_in_a_name_is_escaped_or_quoted() {
        check(r".labels.a\.b/c", Ok(&["v"]));
        check(r".labels['a\.b/c']", Ok(&["v"]));
    }

    #[test]
    fn items_are_found_by_index_and_range() {
        check(".l[1]", Ok(&["y"]));
        check(".l[-1]", Ok(&["z"]));
        check(".l[*]", Ok(&["x", "y", "z"]));
        check(".l[0:2]", Ok(&["x", "y"]));
        check(".l[::2]", Ok(&["x", "z"]));
        check(".l[0,2]", Ok(&["x", "z"]));
        check(".l[3]", Err("does not apply"));
        check(".n[0]", Err("does not apply"));
        check(".nothing[0]", Ok(&[]));
    }

    #[test]
    fn filters_compare_and_ask_for_presence() {
        check(r#".conditions[?(@.type=="Ready")].status"#, Ok(&["True"]));
        check(r#".conditions[?(@.type == 'Ok (a)')].status"#, Ok(&["False"]));
        check(".conditions[?(@.status)].type", Ok(&["Ready", "Ok (a)"]));
        check(".conditions[?(@.type==1)].status", Err("does not apply"));
    }

    #[test]
    fn everything_below_is_searched() {
        check("..status", Ok(&["True", "False"]));
    }

    #[test]
    fn searches_within_searches_end() {
        let deep = (0..2000).fold(Value::Null, |inner, _| object! { "a" => inner });
        let path = JsonPath::parse("..a..a..a..a").expect("it is a path");
        let (found, steps) = work::counted(|| path.find(&deep).is_err());
        assert!(found && steps < 4_000_000, "{steps}");
    }

    #[test]
    fn malformed_paths_are_refused() {
        check(".l[a]", Err("invalid array index a"));
        check(".l[0", Err("unterminated array"));
        check(".a.b(#", Ok(&[]));
        check(".a....b", Err("invalid multiple recursive descent"));
    }
}
