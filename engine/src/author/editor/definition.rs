//! Go to definition: where the name at a position is defined.
//!
//! Input: a text and a position. Output: the name of a file, and a range in it: for a field or kind its position in the
//! definition, for a binding's policy and parameters their own, for a field in an expression its schema, for a name in
//! a suite the file.

use super::complete::Around;
use super::documents::{Head, Sort, parts};
use super::expression::{EditedExpression, expression_at};
use super::outline::{OutlineStep, outline, steps};
use super::paths::{folder_of, is_within, resolved};
use super::text::{Position, Text, TextRange};
use super::ways::{VariableFields, way_at};
use super::workspace::Workspace;
use crate::author::policies::served;
use crate::policy::type_check::matched;
use crate::schema::structural::Structural;
use crate::value::{Value, yaml};

/// A range in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionTarget {
    /// The name of the file.
    pub file: String,
    /// The range.
    pub range: TextRange,
}

impl Workspace {
    /// The definition of the name at a position of the text of a file.
    pub fn define(&self, name: &str, text: &Text, position: Position) -> Option<DefinitionTarget> {
        let around = Around::new(name, text, position);
        if let Some(expression) = expression_at(around.text, &around.outline, around.sort, around.offset) {
            return self.named_in(&around, name, text, &expression);
        }
        let node = around.outline.at(around.offset)?;
        let path = around.outline.path(node);
        if let Some((head, length)) = around.inner(&path) {
            return self.field(&head, &path[length..]);
        }
        match around.sort {
            Sort::Object => self.field(&around.head, &path),
            Sort::Policy => self.named_by_binding(&around, &path),
            Sort::Suite => self.file_of_suite(name, &path, around.outline.scalar(around.text, node)),
            Sort::Definition | Sort::Request | Sort::Other => None,
        }
    }

    /// The policy that a binding names, or the object that its `paramRef` names.
    fn named_by_binding(&self, around: &Around<'_>, path: &[OutlineStep]) -> Option<DefinitionTarget> {
        let kind = around.head.kind.strip_suffix("Binding")?;
        let at = |names: &[&str]| around.outline.scalar_at(around.text, names);
        let policy = at(&["spec", "policyName"]);
        let is = |names: &[&str]| *path == steps(names);
        if is(&["spec", "policyName"]) {
            return self.object_named("", kind, policy);
        }
        if !is(&["spec", "paramRef", "name"]) {
            return None;
        }
        let is_it = |value: &&Value| value.str_at(&["kind"]) == kind && value.str_at(&["metadata", "name"]) == policy;
        let param = self.policy_values().find(is_it)?.at(&["spec", "paramKind"])?;
        self.object_named(param.str_at(&["apiVersion"]), param.str_at(&["kind"]), at(&["spec", "paramRef", "name"]))
    }

    /// The file that an entry of `crds` or `policies` names; for a folder the first file in it.
    fn file_of_suite(&self, suite: &str, path: &[OutlineStep], entry: &str) -> Option<DefinitionTarget> {
        let [OutlineStep::Key(list), OutlineStep::Item(_)] = path else { return None };
        let wanted = resolved(folder_of(suite), entry);
        let is_named = ["crds", "policies"].contains(&list.as_str());
        let file = self.files.keys().find(|file| is_named && is_within(file, &wanted))?;
        Some(DefinitionTarget { file: file.clone(), range: TextRange::default() })
    }

    /// The position of an object's field in the definition of its kind, or of the nearest parent that exists.
    fn field(&self, head: &Head, path: &[OutlineStep]) -> Option<DefinitionTarget> {
        let kind = self.catalog.named(head.group(), &head.kind)?;
        let index = kind
            .definition
            .spec
            .versions
            .iter()
            .position(|version| head.api_version.ends_with(&format!("/{}", version.name)))?;
        let root = kind.versions.get(index)?;
        let is_whole =
            matches!(path, [OutlineStep::Key(name), ..] if ["apiVersion", "kind", "metadata"].contains(&name.as_str()));
        let below = if is_whole { Vec::new() } else { schema_path(&root.structural, path) };
        let key = |name: &str| OutlineStep::Key(name.to_owned());
        let mut way =
            vec![key("spec"), key("versions"), OutlineStep::Item(index), key("schema"), key("openAPIV3Schema")];
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
        Some(DefinitionTarget { file: file.to_owned(), range })
    }

    /// Finds an object by its kind and name; if `api_version` is empty, in any version.
    fn object_named(&self, api_version: &str, kind: &str, wanted: &str) -> Option<DefinitionTarget> {
        self.files.iter().find_map(|(file, known)| {
            let text = known.text.as_ref()?;
            parts(text.as_str()).into_iter().find_map(|part| {
                let own = &text.as_str()[part.range.clone()];
                let outline = outline(own);
                let head = Head::of(own, &outline);
                let is_it = head.kind == kind
                    && head.name == wanted
                    && (api_version.is_empty() || head.api_version == api_version);
                let node = outline.find(&steps(&["metadata", "name"])).filter(|_| is_it)?;
                let value = &outline.nodes[node].value;
                let range = text.range(&(part.range.start + value.start..part.range.start + value.end));
                Some(DefinitionTarget { file: file.clone(), range })
            })
        })
    }

    /// The definition of a name in an expression.
    fn named_in(
        &self,
        around: &Around<'_>,
        name: &str,
        text: &Text,
        expression: &EditedExpression,
    ) -> Option<DefinitionTarget> {
        let VariableFields { root, steps } = way_at(&expression.text, expression.index(around.offset))?;
        match (around.sort, root.as_str()) {
            (Sort::Definition, "self" | "oldSelf") => self.field_of_self(around, name, text, expression, &steps),
            (Sort::Policy, "object" | "oldObject") => self.field(&self.matched_kind(around)?, &steps),
            (Sort::Policy, "params") => {
                let param = |name| around.outline.scalar_at(around.text, &["spec", "paramKind", name]).to_owned();
                let head = Head { api_version: param("apiVersion"), kind: param("kind"), name: String::new() };
                self.field(&head, &steps)
            }
            (Sort::Policy, "variables") => variable(around, name, text, steps.first()?),
            _ => None,
        }
    }

    /// The first kind that a policy matches and that a known definition defines.
    fn matched_kind(&self, around: &Around<'_>) -> Option<Head> {
        let read = yaml::decode(around.text.as_bytes()).ok()?;
        let served = served(&self.catalog);
        let kinds = matched(read.get("spec")?, &served);
        let defined = kinds.values().find(|kind| self.catalog.named(&kind.group, &kind.names.kind).is_some())?;
        Some(Head { api_version: defined.api_version(), kind: defined.names.kind.clone(), name: String::new() })
    }

    /// The schema of a field of the value that a rule is about.
    fn field_of_self(
        &self,
        around: &Around<'_>,
        name: &str,
        text: &Text,
        expression: &EditedExpression,
        steps: &[OutlineStep],
    ) -> Option<DefinitionTarget> {
        let path = around.outline.path(expression.node);
        let (schema, _) = self.schema_of_rule(around, &path)?;
        let node = path.iter().position(|step| *step == OutlineStep::Key("x-kubernetes-validations".to_owned()))?;
        let way = [&path[..node], &schema_path(&schema, steps)].concat();
        Some(own_target(around, name, text, around.outline.find(&way)?))
    }
}

/// The position where a policy defines a variable.
fn variable(around: &Around<'_>, name: &str, text: &Text, wanted: &OutlineStep) -> Option<DefinitionTarget> {
    let OutlineStep::Key(wanted) = wanted else { return None };
    let list = around.outline.find(&steps(&["spec", "variables"]))?;
    around.outline.children(list).find_map(|item| {
        let way = [around.outline.path(item), steps(&["name"])].concat();
        let node = around.outline.find(&way)?;
        (around.outline.scalar(around.text, node) == wanted).then(|| own_target(around, name, text, node))
    })
}

/// The key of a node in the document itself.
fn own_target(around: &Around<'_>, name: &str, text: &Text, node: usize) -> DefinitionTarget {
    let key = &around.outline.nodes[node].key;
    DefinitionTarget { file: name.to_owned(), range: text.range(&(around.start + key.start..around.start + key.end)) }
}

/// The path to a field's schema, below the object's schema, as far as it exists.
pub(super) fn schema_path(root: &Structural, path: &[OutlineStep]) -> Vec<OutlineStep> {
    let mut way = Vec::new();
    let mut node = root;
    let key = |name: &str| OutlineStep::Key(name.to_owned());
    for step in path {
        let values = node.additional_properties.as_ref().and_then(|values| values.structural());
        match (step, node.items.as_deref(), values) {
            (OutlineStep::Key(name), _, values) => match (node.properties.get(name), values) {
                (Some(below), _) => {
                    way.extend([key("properties"), OutlineStep::Key(name.clone())]);
                    node = below;
                }
                (None, Some(below)) => {
                    way.push(key("additionalProperties"));
                    node = below;
                }
                (None, None) => break,
            },
            (OutlineStep::Item(_), Some(below), _) => {
                way.push(key("items"));
                node = below;
            }
            (OutlineStep::Item(_), None, _) => break,
        }
    }
    way
}
