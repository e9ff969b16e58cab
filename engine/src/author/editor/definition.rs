//! Where what stands at a place is defined.
//!
//! In: a text and a position. Out: the name of a file, and a range in it: of a field or kind its place in the definition, of a
//! binding's policy the policy, of a field in an expression its schema.

use super::complete::Around;
use super::documents::{Head, Sort, parts};
use super::expression::expression_at;
use super::outline::{Step, outline};
use super::text::{Position, Range, Text};
use super::workspace::Workspace;
use crate::schema::structural::Structural;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The name of the file.
    pub file: String,
    /// Where in it.
    pub range: Range,
}

impl Workspace {
    /// Where what stands at a position of the text of a file is defined.
    pub fn define(&self, name: &str, text: &Text, position: Position) -> Option<Target> {
        let around = Around::new(name, text, position);
        let node = around.outline.at(around.offset)?;
        let path = around.outline.path(node);
        match around.sort {
            Sort::Object => self.field(&around.head, &path),
            Sort::Policy if path.last() == Some(&Step::Key("policyName".to_owned())) => {
                let wanted = around.outline.scalar(around.text, node);
                self.policy_named(around.head.kind.trim_end_matches("Binding"), wanted)
            }
            Sort::Definition => self.field_of_self(&around, name, text),
            Sort::Suite => {
                let (head, rest) = of_suite(&around, &path)?;
                self.field(&head, rest)
            }
            Sort::Policy | Sort::Request | Sort::Other => None,
        }
    }

    /// The field of an object in the definition of its kind; as near as there is one.
    fn field(&self, head: &Head, path: &[Step]) -> Option<Target> {
        let kind = self.catalog.named(head.group(), &head.kind)?;
        let index = kind
            .definition
            .spec
            .versions
            .iter()
            .position(|version| head.api_version.ends_with(&format!("/{}", version.name)))?;
        let root = kind.versions.get(index)?;
        let is_whole =
            matches!(path, [Step::Key(name), ..] if ["apiVersion", "kind", "metadata"].contains(&name.as_str()));
        let below = if is_whole { Vec::new() } else { schema_path(&root.structural, path) };
        let key = |name: &str| Step::Key(name.to_owned());
        let mut way = vec![key("spec"), key("versions"), Step::Item(index), key("schema"), key("openAPIV3Schema")];
        way.extend(below);
        if is_whole {
            way = vec![key("spec"), key("names"), key("kind")];
        }
        let (file, text, part) = self.definition_of(head.group(), &head.kind)?;
        let own = &text.as_str()[part.range.clone()];
        let outline = outline(own);
        let found = (1..=way.len()).rev().find_map(|length| outline.find(&way[..length]))?;
        let key = &outline.nodes[found].key;
        let range = text.range(&(part.range.start + key.start..part.range.start + key.end));
        Some(Target { file: file.to_owned(), range })
    }

    fn policy_named(&self, kind: &str, wanted: &str) -> Option<Target> {
        self.files.iter().find_map(|(file, known)| {
            let text = known.text.as_ref()?;
            parts(text.as_str()).into_iter().find_map(|part| {
                let own = &text.as_str()[part.range.clone()];
                let outline = outline(own);
                let head = Head::of(own, &outline);
                let way = [Step::Key("metadata".to_owned()), Step::Key("name".to_owned())];
                let node = outline.find(&way).filter(|_| head.kind == kind && head.name == wanted)?;
                let value = &outline.nodes[node].value;
                let range = text.range(&(part.range.start + value.start..part.range.start + value.end));
                Some(Target { file: file.clone(), range })
            })
        })
    }

    /// The schema of `self.a.b`, where the place is within that.
    fn field_of_self(&self, around: &Around<'_>, name: &str, text: &Text) -> Option<Target> {
        let expression = expression_at(around.text, &around.outline, around.sort, around.offset)?;
        let at = expression.index(around.offset);
        let is_word = |sign: &char| sign.is_alphanumeric() || *sign == '_';
        let end = at + expression.text[at..].iter().take_while(|sign| is_word(sign)).count();
        let start = expression.text[..at]
            .iter()
            .rposition(|sign| !is_word(sign) && *sign != '.')
            .map_or(0, |before| before + 1);
        let written: String = expression.text[start..end].iter().collect();
        let mut steps = written.split('.');
        if !["self", "oldSelf"].contains(&steps.next()?) {
            return None;
        }
        let path = around.outline.path(expression.node);
        let node = path.iter().position(|step| *step == Step::Key("x-kubernetes-validations".to_owned()))?;
        let mut way = path[..node].to_vec();
        for step in steps {
            way.push(Step::Key("properties".to_owned()));
            let plain = crate::cel::escape::unescape(step).map_or_else(|| step.to_owned(), |name| name.to_string());
            way.push(Step::Key(plain));
        }
        let found = around.outline.find(&way)?;
        let key = &around.outline.nodes[found].key;
        let range = text.range(&(around.start + key.start..around.start + key.end));
        Some(Target { file: name.to_owned(), range })
    }
}

/// The object of a suite that a path leads into, and the way within it.
fn of_suite<'p>(around: &Around<'_>, path: &'p [Step]) -> Option<(Head, &'p [Step])> {
    let length = match path {
        [Step::Key(base), ..] if base == "base" => 1,
        [Step::Key(_), Step::Item(_), Step::Key(object), ..] if ["object", "oldObject"].contains(&object.as_str()) => 3,
        _ => return None,
    };
    let at = |name: &str| {
        let way: Vec<Step> = path[..length].iter().cloned().chain([Step::Key(name.to_owned())]).collect();
        around.outline.find(&way).map_or("", |node| around.outline.scalar(around.text, node)).to_owned()
    };
    Some((Head { api_version: at("apiVersion"), kind: at("kind"), name: String::new() }, &path[length..]))
}

/// The way to a field's schema, below that of the object, as far as there is one.
pub(super) fn schema_path(root: &Structural, path: &[Step]) -> Vec<Step> {
    let mut way = Vec::new();
    let mut node = root;
    let key = |name: &str| Step::Key(name.to_owned());
    for step in path {
        let values = node.additional_properties.as_ref().and_then(|values| values.structural());
        match (step, node.items.as_deref(), values) {
            (Step::Key(name), _, values) => match (node.properties.get(name), values) {
                (Some(below), _) => {
                    way.extend([key("properties"), Step::Key(name.clone())]);
                    node = below;
                }
                (None, Some(below)) => {
                    way.push(key("additionalProperties"));
                    node = below;
                }
                (None, None) => break,
            },
            (Step::Item(_), Some(below), _) => {
                way.push(key("items"));
                node = below;
            }
            (Step::Item(_), None, _) => break,
        }
    }
    way
}
