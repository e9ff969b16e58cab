//! Templates of stages: the part of Go's `text/template` that kwok's stages use.
//!
//! In: a text with actions in `{{ }}`, and an object. Out: the text that they make. Variables, `if`, `range`, `with`, pipelines and the
//! functions in [`FUNCTIONS`] are known; all else is refused when the text is read. What is made has a bound, and so have the steps.

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::node_conditions;
use super::query::text_of;
use super::stage::Addresses;
use crate::value::{Map, Value, json, yaml};

/// How long a text may become, and all that functions make for it together; and how many actions may be carried out for it.
const BYTES_MAX: usize = 1 << 20;
const STEPS_MAX: usize = 100_000;
/// How deep parentheses and blocks may be nested.
const DEPTH_MAX: usize = 50;

/// Go's, and kwok's.
const FUNCTIONS: [&str; 23] = [
    "and",
    "default",
    "dict",
    "eq",
    "index",
    "len",
    "ne",
    "not",
    "or",
    "printf",
    "Now",
    "NodeConditions",
    "NodeIP",
    "NodeIPs",
    "NodeIPWith",
    "NodeIPsWith",
    "NodeName",
    "NodePort",
    "PodIPWith",
    "PodIPsWith",
    "Quote",
    "Version",
    "YAML",
];

/// Why there is no template, or no text of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TemplateError {
    #[error("the template has {{{{ without }}}}")]
    Open,
    #[error("the template has {{{{ {0} }}}} without a beginning")]
    NoBeginning(String),
    #[error("the template has {{{{ {0} }}}} without an end")]
    NoEnd(String),
    #[error("the template has {{{{ else {0} }}}}, which is not known")]
    UnknownElse(String),
    #[error("the template is nested more than {DEPTH_MAX} deep")]
    Depth,
    #[error("{{{{ range }}}} takes two variables at most")]
    Variables,
    #[error("`{0}` is not a variable of a template")]
    NotVariable(String),
    #[error("the action `{0}` of the template is not understood")]
    Action(String),
    #[error("an action is empty")]
    EmptyAction,
    #[error("a template has the functions {known}, and not `{0}`", known = FUNCTIONS.join(", "))]
    UnknownFunction(String),
    #[error("the template has no variable ${0}")]
    UnknownVariable(String),
    #[error("a template may make {BYTES_MAX} bytes in {STEPS_MAX} steps at most")]
    Bound,
    #[error("the length of {} is not known", text_of(.0))]
    Length(Value),
    #[error("of the verbs of printf, %s, %v and %d are understood, and not `%{0}`")]
    Verb(String),
    #[error("a range can't go over {}", text_of(.0))]
    Range(Value),
}

/// A template, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template(Vec<TemplateNode>);

/// What a template is told beside the object.
pub(super) struct TemplateContext {
    pub now: Timestamp,
    /// Those of a pod, or of a node.
    pub addresses: Option<Addresses>,
}

#[derive(Clone, Debug, PartialEq)]
enum TemplateNode {
    Text(String),
    Print(Pipe),
    /// A variable, and whether it is a new one.
    Set(String, bool, Pipe),
    If {
        of: Pipe,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
    With {
        of: Pipe,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
    Range {
        of: Pipe,
        index: Option<String>,
        item: Option<String>,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
}

/// Commands, each of which gets what the one before made.
type Pipe = Vec<Vec<Operand>>;

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Literal(Value),
    Function(String),
    /// A path behind the dot.
    Dot(Vec<String>),
    Variable(String, Vec<String>),
    Group(Pipe, Vec<String>),
}

impl Template {
    /// Errors: what of the text is not understood.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = pieces(text)?.into_iter();
        let (nodes, end) = block(&mut pieces, 0)?;
        match end {
            End::OfText => Ok(Template(nodes)),
            End::Of(word) => Err(TemplateError::NoBeginning(word)),
        }
    }

    /// What it makes of an object. Errors: a value that an action can't take, or a bound that is met.
    pub fn render(&self, object: &Value, context: &TemplateContext) -> Result<String, TemplateError> {
        let mut run = Run { object, context, variables: Vec::new(), text: String::new(), made: 0, steps: 0 };
        run.all(&self.0, object)?;
        Ok(run.text)
    }
}

enum Piece {
    Text(String),
    Action(String),
}

/// Splits a text at its actions, and trims blanks where they say so.
fn pieces(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let (mut pieces, mut rest, mut trims) = (Vec::new(), text, false);
    loop {
        let (before, action) = match rest.split_once("{{") {
            Some((before, action)) => (before, Some(action)),
            None => (rest, None),
        };
        let before = if trims { before.trim_start() } else { before };
        let Some(action) = action else {
            pieces.push(Piece::Text(before.to_owned()));
            return Ok(pieces);
        };
        let (action, behind) = action.split_once("}}").ok_or(TemplateError::Open)?;
        let trimmed = action.strip_prefix("- ");
        pieces.push(Piece::Text(if trimmed.is_some() { before.trim_end() } else { before }.to_owned()));
        let action = trimmed.unwrap_or(action);
        trims = action.ends_with(" -");
        let action = action.strip_suffix(" -").unwrap_or(action).trim();
        if !action.starts_with("/*") {
            pieces.push(Piece::Action(action.to_owned()));
        }
        rest = behind;
    }
}

/// What a block ends with.
enum End {
    OfText,
    /// `end`, `else`, or `else if …`.
    Of(String),
}

fn block(pieces: &mut std::vec::IntoIter<Piece>, depth: usize) -> Result<(Vec<TemplateNode>, End), TemplateError> {
    if depth > DEPTH_MAX {
        return Err(TemplateError::Depth);
    }
    let mut nodes = Vec::new();
    while let Some(piece) = pieces.next() {
        let action = match piece {
            Piece::Text(text) => {
                nodes.push(TemplateNode::Text(text));
                continue;
            }
            Piece::Action(action) => action,
        };
        let (word, rest) = action.split_once(char::is_whitespace).unwrap_or((&action, ""));
        match word {
            "end" | "else" => return Ok((nodes, End::Of(action))),
            "if" | "with" | "range" => nodes.push(control(word, rest, pieces, depth)?),
            _ => nodes.push(simple(&action)?),
        }
    }
    Ok((nodes, End::OfText))
}

/// `if`, `with` or `range`, up to its end.
fn control(
    word: &str,
    head: &str,
    pieces: &mut std::vec::IntoIter<Piece>,
    depth: usize,
) -> Result<TemplateNode, TemplateError> {
    let (names, of) = match head.split_once(":=") {
        Some((names, of)) if word == "range" => (names.split(',').map(variable).collect::<Result<Vec<_>, _>>()?, of),
        _ => (Vec::new(), head),
    };
    let of = pipe(of)?;
    let (then, end) = block(pieces, depth + 1)?;
    let otherwise = match end {
        End::OfText => return Err(TemplateError::NoEnd(word.to_owned())),
        End::Of(end) if end == "end" => Vec::new(),
        End::Of(end) => match end.strip_prefix("else").map(str::trim).unwrap_or_default() {
            "" => match block(pieces, depth + 1)? {
                (otherwise, End::Of(end)) if end == "end" => otherwise,
                _ => return Err(TemplateError::NoEnd(word.to_owned())),
            },
            // It shares the end of the whole.
            more => {
                let (word, head) = more.split_once(char::is_whitespace).unwrap_or((more, ""));
                if !matches!(word, "if" | "with") {
                    return Err(TemplateError::UnknownElse(more.to_owned()));
                }
                vec![control(word, head, pieces, depth + 1)?]
            }
        },
    };
    Ok(match (word, names.as_slice()) {
        ("if", _) => TemplateNode::If { of, then, otherwise },
        ("with", _) => TemplateNode::With { of, then, otherwise },
        (_, []) => TemplateNode::Range { of, index: None, item: None, then, otherwise },
        (_, [item]) => TemplateNode::Range { of, index: None, item: Some(item.clone()), then, otherwise },
        (_, [index, item]) => {
            TemplateNode::Range { of, index: Some(index.clone()), item: Some(item.clone()), then, otherwise }
        }
        _ => return Err(TemplateError::Variables),
    })
}

fn variable(text: &str) -> Result<String, TemplateError> {
    let name = text.trim().strip_prefix('$').filter(|name| name.bytes().all(is_of_name) && !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| TemplateError::NotVariable(text.trim().to_owned()))
}

fn simple(action: &str) -> Result<TemplateNode, TemplateError> {
    // A text may contain the sign, too.
    if action.starts_with('$')
        && let Some((name, of)) = action.split_once('=')
    {
        let declared = name.strip_suffix(':');
        return Ok(TemplateNode::Set(variable(declared.unwrap_or(name))?, declared.is_some(), pipe(of)?));
    }
    Ok(TemplateNode::Print(pipe(action)?))
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn pipe(text: &str) -> Result<Pipe, TemplateError> {
    let mut reader = Reader { rest: text, whole: text };
    let pipe = reader.pipe(0)?;
    reader.blanks();
    if reader.rest.is_empty() { Ok(pipe) } else { Err(reader.misread()) }
}

/// Reads an action.
struct Reader<'t> {
    rest: &'t str,
    whole: &'t str,
}

impl<'t> Reader<'t> {
    fn misread(&self) -> TemplateError {
        TemplateError::Action(self.whole.trim().to_owned())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, sign: char) -> bool {
        self.blanks();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn pipe(&mut self, depth: usize) -> Result<Pipe, TemplateError> {
        if depth > DEPTH_MAX {
            return Err(self.misread());
        }
        let mut pipe = Vec::new();
        loop {
            let mut command = Vec::new();
            loop {
                self.blanks();
                if self.rest.is_empty() || self.rest.starts_with(['|', ')']) {
                    break;
                }
                command.push(self.operand(depth)?);
            }
            let is_call = matches!(command.first(), Some(Operand::Function(_)));
            if command.is_empty() || (command.len() > 1 || !pipe.is_empty()) && !is_call {
                return Err(self.misread());
            }
            pipe.push(command);
            if !self.takes('|') {
                return Ok(pipe);
            }
        }
    }

    fn name(&mut self) -> &'t str {
        let end = self.rest.bytes().position(|byte| !is_of_name(byte)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name
    }

    /// `.a.b`, which may be empty.
    fn path(&mut self) -> Result<Vec<String>, TemplateError> {
        let mut path = Vec::new();
        while let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            match self.name() {
                "" => return Err(self.misread()),
                name => path.push(name.to_owned()),
            }
        }
        Ok(path)
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, TemplateError> {
        let rest = self.rest;
        if self.takes('(') {
            let pipe = self.pipe(depth + 1)?;
            if !self.takes(')') {
                return Err(self.misread());
            }
            return Ok(Operand::Group(pipe, self.path()?));
        }
        if let Some(behind) = rest.strip_prefix('$') {
            self.rest = behind;
            let name = self.name().to_owned();
            return Ok(Operand::Variable(name, self.path()?));
        }
        if let Some(behind) = rest.strip_prefix('.') {
            if behind.bytes().next().is_some_and(is_of_name) {
                return Ok(Operand::Dot(self.path()?));
            }
            self.rest = behind;
            return Ok(Operand::Dot(Vec::new()));
        }
        if let Some(quoted) = rest.strip_prefix('`') {
            let (text, behind) = quoted.split_once('`').ok_or_else(|| self.misread())?;
            self.rest = behind;
            return Ok(Operand::Literal(Value::from(text)));
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = quoted.find(|sign| {
                let ends = sign == '"' && !is_escaped;
                is_escaped = sign == '\\' && !is_escaped;
                ends
            });
            let (text, behind) = rest.split_at(end.ok_or_else(|| self.misread())? + 2);
            let value = json::decode(text.as_bytes()).map_err(|_| self.misread())?;
            self.rest = behind;
            return Ok(Operand::Literal(value));
        }
        let end = rest.find(|sign: char| sign.is_whitespace() || "|()".contains(sign)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        self.rest = behind;
        match word {
            "true" | "false" => Ok(Operand::Literal(Value::Bool(word == "true"))),
            "nil" => Ok(Operand::Literal(Value::Null)),
            _ => match word.parse() {
                Ok(number) => Ok(Operand::Literal(Value::Int(number))),
                Err(_) if FUNCTIONS.contains(&word) => Ok(Operand::Function(word.to_owned())),
                Err(_) => Err(TemplateError::UnknownFunction(word.to_owned())),
            },
        }
    }
}

/// A template at work.
struct Run<'r> {
    object: &'r Value,
    context: &'r TemplateContext,
    variables: Vec<(String, Value)>,
    text: String,
    /// How many bytes functions have made: variables may keep them, and functions make more of these.
    made: usize,
    steps: usize,
}

impl Run<'_> {
    fn step(&mut self) -> Result<(), TemplateError> {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.text.len() > BYTES_MAX {
            return Err(TemplateError::Bound);
        }
        Ok(())
    }

    /// A text that a function has made, which counts against the bound.
    fn text(&mut self, text: String) -> Result<Value, TemplateError> {
        self.charge(text.len())?;
        Ok(Value::String(text))
    }

    fn charge(&mut self, bytes: usize) -> Result<(), TemplateError> {
        self.made = self.made.saturating_add(bytes);
        if self.made > BYTES_MAX { Err(TemplateError::Bound) } else { Ok(()) }
    }

    fn all(&mut self, nodes: &[TemplateNode], dot: &Value) -> Result<(), TemplateError> {
        // Variables are there until the end of their block.
        let known = self.variables.len();
        for node in nodes {
            self.step()?;
            match node {
                TemplateNode::Text(text) => self.text.push_str(text),
                TemplateNode::Print(of) => {
                    let value = self.value(of, dot)?;
                    let shown = if value.is_null() { "<no value>".to_owned() } else { text_of(&value) };
                    self.text.push_str(&shown);
                }
                TemplateNode::Set(name, is_new, of) => {
                    let value = self.value(of, dot)?;
                    match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
                        Some((_, old)) if !is_new => *old = value,
                        _ => self.variables.push((name.clone(), value)),
                    }
                }
                TemplateNode::If { of, then, otherwise } => {
                    let chosen = if is_true(&self.value(of, dot)?) { then } else { otherwise };
                    self.all(chosen, dot)?;
                }
                TemplateNode::With { of, then, otherwise } => {
                    let value = self.value(of, dot)?;
                    if is_true(&value) { self.all(then, &value) } else { self.all(otherwise, dot) }?;
                }
                TemplateNode::Range { of, index, item, then, otherwise } => {
                    let items = items(self.value(of, dot)?)?;
                    if items.is_empty() {
                        self.all(otherwise, dot)?;
                    }
                    for (key, value) in items {
                        let outer = self.variables.len();
                        self.variables.extend(index.clone().map(|name| (name, key)));
                        self.variables.extend(item.clone().map(|name| (name, value.clone())));
                        self.all(then, &value)?;
                        self.variables.truncate(outer);
                    }
                }
            }
        }
        self.variables.truncate(known);
        Ok(())
    }

    fn value(&mut self, pipe: &[Vec<Operand>], dot: &Value) -> Result<Value, TemplateError> {
        let mut last = None;
        for command in pipe {
            self.step()?;
            let (first, rest) = command.split_first().ok_or(TemplateError::EmptyAction)?;
            let made = match first {
                Operand::Function(name) => {
                    let mut arguments = Vec::with_capacity(rest.len() + 1);
                    for operand in rest {
                        arguments.push(self.operand(operand, dot)?);
                    }
                    arguments.extend(last.take());
                    self.call(name, &arguments)?
                }
                operand => self.operand(operand, dot)?,
            };
            last = Some(made);
        }
        Ok(last.unwrap_or_default())
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, TemplateError> {
        Ok(match operand {
            Operand::Literal(value) => value.clone(),
            Operand::Function(name) => self.call(name, &[])?,
            Operand::Dot(path) => at(dot, path),
            // The variable without a name is the whole.
            Operand::Variable(name, path) if name.is_empty() => at(self.object, path),
            Operand::Variable(name, path) => {
                let known = self.variables.iter().rev().find(|(known, _)| known == name);
                at(&known.ok_or_else(|| TemplateError::UnknownVariable(name.clone()))?.1, path)
            }
            Operand::Group(pipe, path) => at(&self.value(pipe, dot)?, path),
        })
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Result<Value, TemplateError> {
        // Of an object that has none it is an empty text.
        let context = self.context;
        let address = |of: fn(&Addresses) -> Ipv4Addr| {
            Value::String(context.addresses.as_ref().map(|all| of(all).to_string()).unwrap_or_default())
        };
        let first = arguments.first().cloned().unwrap_or_default();
        let is_of_host = arguments.get(1).is_some_and(is_true);
        let of_pod: fn(&Addresses) -> Ipv4Addr = if is_of_host { |all| all.host } else { |all| all.pod };
        Ok(match name {
            "and" => arguments.iter().find(|value| !is_true(value)).or(arguments.last()).cloned().unwrap_or_default(),
            "or" => arguments.iter().find(|value| is_true(value)).or(arguments.last()).cloned().unwrap_or_default(),
            "not" => Value::Bool(!is_true(&first)),
            "eq" => Value::Bool(arguments.iter().skip(1).any(|other| *other == first)),
            "ne" => Value::Bool(arguments.iter().skip(1).all(|other| *other != first)),
            "default" => arguments.get(1).filter(|value| is_true(value)).cloned().unwrap_or(first),
            "dict" => {
                let mut fields = Map::default();
                for pair in arguments.chunks(2) {
                    fields.insert(text_of(&pair[0]), pair.get(1).cloned().unwrap_or_default());
                }
                let made = Value::Object(fields);
                self.charge(json::encode(&made).len())?;
                made
            }
            "index" => arguments.iter().skip(1).fold(first, |value, key| indexed(&value, key)),
            "len" => match &first {
                Value::Array(items) => number(items.len()),
                Value::String(text) => number(text.len()),
                Value::Object(fields) => number(fields.len()),
                other => return Err(TemplateError::Length(other.clone())),
            },
            "printf" => self.text(printf(&text_of(&first), arguments.get(1..).unwrap_or_default())?)?,
            "Now" => Value::String(self.context.now.to_string()),
            "Quote" => {
                let text = if first.is_null() { String::new() } else { text_of(&first) };
                self.text(json::encode_to_string(&Value::String(text)))?
            }
            "NodeConditions" => Value::Array(node_conditions::of_a_node_that_is_well().collect()),
            "NodeIP" | "NodeIPWith" => address(|all| all.host),
            "NodeIPs" | "NodeIPsWith" => Value::Array(vec![address(|all| all.host)]),
            "NodeName" => Value::from(match self.object.str_at(&["kind"]) {
                "Node" => self.object.str_at(&["metadata", "name"]),
                _ => self.object.str_at(&["spec", "nodeName"]),
            }),
            // No kubelet listens.
            "NodePort" => Value::Int(0),
            "PodIPWith" => address(of_pod),
            "PodIPsWith" => Value::Array(vec![address(of_pod)]),
            "YAML" => self.text(yaml_of(&first, arguments.get(1))?)?,
            _ => Value::from(env!("CARGO_PKG_VERSION")),
        })
    }
}

/// A text with values in the place of `%s`, `%v` and `%d`.
fn printf(format: &str, values: &[Value]) -> Result<String, TemplateError> {
    let mut parts = format.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut values = values.iter();
    while let Some(part) = parts.next() {
        match part.chars().next() {
            // Two signs stand for one.
            None => {
                text.push('%');
                text.push_str(parts.next().unwrap_or_default());
            }
            Some('s' | 'v' | 'd') => {
                text.push_str(&values.next().map(text_of).unwrap_or_default());
                text.push_str(&part[1..]);
            }
            Some(verb) => return Err(TemplateError::Verb(verb.to_string())),
        }
    }
    Ok(text)
}

/// A value as YAML, so many steps to the right.
fn yaml_of(value: &Value, steps: Option<&Value>) -> Result<String, TemplateError> {
    let text = yaml::encode_within(value, BYTES_MAX).map_err(|_| TemplateError::Bound)?;
    let steps = steps.and_then(Value::as_i64).and_then(|steps| usize::try_from(steps).ok()).unwrap_or_default();
    if steps == 0 {
        return Ok(text);
    }
    if steps > DEPTH_MAX {
        return Err(TemplateError::Bound);
    }
    let line = format!("\n{}", "  ".repeat(steps));
    Ok(format!("\n{text}").replace('\n', &line))
}

/// Whether a value counts as true: what is empty or zero does not.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        number => number.as_i64() != Some(0),
    }
}

fn number(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn at(value: &Value, path: &[String]) -> Value {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    value.at(&path).cloned().unwrap_or_default()
}

fn indexed(value: &Value, key: &Value) -> Value {
    match (value, key) {
        (Value::Array(items), key) => {
            let at = key.as_i64().and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| items.get(at)).cloned().unwrap_or_default()
        }
        (Value::Object(fields), Value::String(name)) => fields.get(name).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

/// What a range goes over, with their numbers or names.
fn items(value: Value) -> Result<Vec<(Value, Value)>, TemplateError> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(items.into_iter().enumerate().map(|(at, item)| (number(at), item)).collect()),
        Value::Object(fields) => {
            let mut items: Vec<_> = fields.iter().map(|(name, item)| (Value::from(name), item.clone())).collect();
            items.sort_by_key(|(name, _)| text_of(name));
            Ok(items)
        }
        other => Err(TemplateError::Range(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str) -> Result<String, TemplateError> {
        let pod = "metadata: {name: p, annotations: {a.b/c: x}}\nspec: {nodeName: host, hostNetwork: true, containers: [{name: c, \
                   image: i}, {name: d}]}";
        let pod = yaml::decode(pod.as_bytes()).expect("YAML");
        let addresses = Addresses { host: Ipv4Addr::new(172, 31, 0, 1), pod: Ipv4Addr::new(10, 64, 0, 2) };
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let context = TemplateContext { now, addresses: Some(addresses) };
        Template::parse(template)?.render(&pod, &context)
    }

    fn check(template: &str, expected: &str) {
        assert_eq!(render(template), Ok(expected.to_owned()), "{template}");
    }

    #[test]
    fn actions_print_what_they_stand_for() {
        check("a {{ .metadata.name }} b", "a p b");
        check("{{ .metadata.name | Quote }} {{ Quote .missing }} {{ .missing }}", "\"p\" \"\" <no value>");
        check("{{ $now := Now }}{{ $now | Quote }}", "\"2026-01-01T00:00:00Z\"");
        check("{{ index .metadata.annotations \"a.b/c\" }} {{ (index .spec.containers 0).name }}", "x c");
        check("{{ or .missing ( index .metadata.annotations \"none\" ) \"d\" }}", "d");
        check("{{ NodeIPWith .spec.nodeName }} {{ PodIPWith .spec.nodeName false }}", "172.31.0.1 10.64.0.2");
        check("{{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) }}", "172.31.0.1");
        check("a {{- /* nothing */ -}} b{{- 1 -}} c", "ab1c");
        check("a:{{ YAML .metadata.annotations 1 }}", "a:\n  a.b/c: x\n  ");
        check("{{ printf \"%s-%v: 100%% of %d\" .metadata.name true 7 }}", "p-true: 100% of 7");
        check("{{ YAML .spec.hostNetwork }}", "true\n");
        check(
            "{{ range NodeConditions }}{{ .type }}={{ .status }} {{ end }}{{ with NodePort }}x{{ end }}",
            "MemoryPressure=False DiskPressure=False PIDPressure=False Ready=True ",
        );
    }

    #[test]
    fn blocks_choose_and_repeat() {
        check("{{ range .spec.containers }}[{{ .name }}]{{ end }}", "[c][d]");
        check("{{ range $i, $c := .spec.containers }}{{ $i }}{{ $c.name }}{{ end }}", "0c1d");
        check("{{ range .spec.none }}x{{ else }}none{{ end }}", "none");
        check("{{ if .spec.none }}a{{ else if eq .spec.nodeName \"host\" }}b{{ else }}c{{ end }}", "b");
        check("{{ with NodeIPsWith .spec.nodeName }}{{ index . 0 }}{{ end }}", "172.31.0.1");
        check("{{ with .none }}a{{ else }}{{ .metadata.name }}{{ end }}", "p");
        check("{{ $x := 1 }}{{ range .spec.containers }}{{ $x = 2 }}{{ end }}{{ $x }}", "2");
        check("{{ if and (not .none) (ne .metadata.name \"q\") }}{{ $.metadata.name }}{{ end }}", "p");
    }

    #[test]
    fn what_is_not_understood_is_told() {
        for (template, why) in [
            ("{{ .a", "the template has {{ without }}"),
            ("{{ if .a }}", "the template has {{ if }} without an end"),
            ("{{ end }}", "the template has {{ end }} without a beginning"),
            ("{{ .a .b }}", "the action `.a .b` of the template is not understood"),
            ("{{ $x }}", "the template has no variable $x"),
            ("{{ printf \"%x\" 1 }}", "of the verbs of printf, %s, %v and %d are understood, and not `%x`"),
            ("{{ range .metadata.name }}{{ end }}", "a range can't go over p"),
        ] {
            assert_eq!(render(template).expect_err(template).to_string(), why);
        }
        let unknown = render("{{ env \"HOME\" }}").expect_err("it is not known").to_string();
        assert!(unknown.ends_with("and not `env`"), "{unknown}");
        assert!(Template::parse(&"{{ if .a }}".repeat(100)).is_err());
    }

    #[test]
    fn what_is_made_is_bounded() {
        let nested = "{{ range $.spec.containers }}".repeat(40) + &"{{ end }}".repeat(40);
        assert_eq!(render(&nested), Err(TemplateError::Bound));
        // What is kept in a variable grows, too.
        for make in ["printf \"%s%s\" $x $x", "dict \"a\" $x \"b\" $x", "Quote $x", "YAML (dict \"a\" $x \"b\" $x)"] {
            let thirty_two = "{{ range $.spec.containers }}".repeat(5);
            let growing = format!("{{{{ $x := \"\\\"\" }}}}{thirty_two}{{{{ $x = {make} }}}}{}", "{{ end }}".repeat(5));
            assert_eq!(render(&growing), Err(TemplateError::Bound), "{make}");
        }
    }
}
