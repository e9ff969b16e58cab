//! Parses a template: its text is split at the actions, which form blocks and expressions.

use super::nodes::{DEPTH_MAX, FUNCTIONS, Operand, Pipe, TemplateError, TemplateNode};
use crate::value::{Value, json};

/// The nodes of a text. Errors: what of it is not understood.
pub(super) fn parse(text: &str) -> Result<Vec<TemplateNode>, TemplateError> {
    let mut pieces = pieces(text)?.into_iter();
    let (nodes, end) = block(&mut pieces, 0)?;
    match end {
        End::OfText => Ok(nodes),
        End::Of(word) => Err(TemplateError::NoBeginning(word)),
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
