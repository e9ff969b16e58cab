//! Running a template over an object: its actions, and the functions of Go and of kwok.

use std::net::Ipv4Addr;

use jiff::Timestamp;

use super::super::addresses::Addresses;
use super::super::node_conditions;
use super::super::query::text_of;
use super::nodes::{BYTES_MAX, DEPTH_MAX, Operand, STEPS_MAX, TemplateError, TemplateNode};
use crate::value::{Map, Value, json, yaml};

/// The input of a template besides the object.
pub struct TemplateContext {
    pub now: Timestamp,
    /// Those of a pod, or of a node.
    pub addresses: Option<Addresses>,
}

/// The text that a template's nodes produce for an object. Errors: a value that an action can't use, or an exceeded
/// limit.
pub(super) fn render(
    nodes: &[TemplateNode],
    object: &Value,
    context: &TemplateContext,
) -> Result<String, TemplateError> {
    let mut run = Run { object, context, variables: Vec::new(), text: String::new(), made: 0, steps: 0 };
    run.all(nodes, object)?;
    Ok(run.text)
}

/// A template at work.
struct Run<'r> {
    object: &'r Value,
    context: &'r TemplateContext,
    variables: Vec<(String, Value)>,
    text: String,
    /// How many bytes functions have produced: variables may keep them, and functions may multiply these.
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
