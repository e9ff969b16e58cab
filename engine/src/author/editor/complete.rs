//! Completions at a position.
//!
//! Input: a text and a position. Output: the names and values that can be written there, each with the edit that
//! inserts it: fields and values of a schema, known kinds and versions, and in expressions fields, variables, functions
//! and macros.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::cursor::{Cursor, Slot, cursor};
use super::documents::{Head, Sort, part_at};
use super::expression::{EditedExpression, expression_at};
pub use super::names::Sign;
use super::names::{Name, names};
use super::outline::{Outline, OutlineStep, ValueStyle, below_version, outline, steps};
use super::shape::{ShapeField, ValueShape};
use super::text::{Edit, Position, Text};
use super::workspace::Workspace;
use crate::author::explain::built_in;
use crate::cel::env::{Env, Expressions};
use crate::cel::types::Type;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::policy::environment::{Declarations, no_variables};
use crate::policy::type_check;
use crate::schema::declare::declare;
use crate::schema::of_type::Quantities;
use crate::schema::rules::compile::{OLD_SELF, SELF, SELF_TYPE};
use crate::schema::structural::Structural;
use crate::value::{Value, json, yaml};

/// The maximum number of completions.
const OFFERED_MAX: usize = 1000;

/// A completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionItem {
    /// The text that is shown.
    pub label: String,
    /// What sort of name or value it is.
    pub sign: Sign,
    /// Its type or its parameters.
    pub detail: String,
    /// Its description.
    pub documentation: String,
    /// Whether the field is required.
    pub is_required: bool,
    /// The edit that inserts it.
    pub edit: Edit,
}

/// A document and a position in it.
pub(super) struct Around<'t> {
    /// The byte of the text where the document begins.
    pub start: usize,
    pub text: &'t str,
    pub outline: Outline,
    pub head: Head,
    pub sort: Sort,
    /// The position, in bytes from the document's beginning.
    pub offset: usize,
}

impl<'t> Around<'t> {
    pub fn new(name: &str, text: &'t Text, position: Position) -> Self {
        let offset = text.offset(position);
        let part = part_at(text.as_str(), offset);
        let own = &text.as_str()[part.range.clone()];
        let outline = outline(own);
        let head = Head::of(own, &outline);
        let sort = head.sort(name);
        Around { start: part.range.start, text: own, outline, head, sort, offset: offset - part.range.start }
    }
}

impl Around<'_> {
    /// The head of the nested object that a path leads into, and the number of steps to it: the object of a suite's
    /// case, or an item of a List.
    pub(super) fn inner(&self, path: &[OutlineStep]) -> Option<(Head, usize)> {
        let is_list = self.head.kind == "List" && self.head.api_version == "v1";
        let length = match (self.sort, path) {
            (Sort::Suite, [OutlineStep::Key(base), ..]) if base == "base" => 1,
            (Sort::Suite, [OutlineStep::Key(_), OutlineStep::Item(_), OutlineStep::Key(object), ..])
                if ["object", "oldObject"].contains(&object.as_str()) =>
            {
                3
            }
            (Sort::Object, [OutlineStep::Key(items), OutlineStep::Item(_), ..]) if is_list && items == "items" => 2,
            _ => return None,
        };
        let at = |name: &str| {
            let way: Vec<OutlineStep> =
                path[..length].iter().cloned().chain([OutlineStep::Key(name.to_owned())]).collect();
            self.outline.find(&way).map_or("", |node| self.outline.scalar(self.text, node)).to_owned()
        };
        let mut head = Head { api_version: at("apiVersion"), kind: at("kind"), name: String::new() };
        if head.kind.is_empty() && self.sort == Sort::Suite {
            let base = |name| self.outline.scalar_at(self.text, &["base", name]).to_owned();
            (head.api_version, head.kind) = (base("apiVersion"), base("kind"));
        }
        Some((head, length))
    }

    /// Whether the document is written as JSON: in braces or brackets as a whole.
    fn is_json(&self) -> bool {
        self.outline.nodes[0].form == ValueStyle::Flow
    }
}

impl Workspace {
    /// The completions at a position of the text of a file.
    pub fn complete(&self, name: &str, text: &Text, position: Position) -> Vec<CompletionItem> {
        let around = Around::new(name, text, position);
        let mut offered = match expression_at(around.text, &around.outline, around.sort, around.offset) {
            Some(expression) => self.in_expression(&around, text, &expression),
            None => self.in_document(&around, text),
        };
        offered.truncate(OFFERED_MAX);
        offered
    }

    fn in_document(&self, around: &Around<'_>, text: &Text) -> Vec<CompletionItem> {
        let Cursor { path, slot } = cursor(around.text, around.offset);
        let edit = |written: &Range<usize>, with: String| Edit {
            range: text.range(&(around.start + written.start..around.start + written.end)),
            text: with,
        };
        match slot {
            Slot::Comment => Vec::new(),
            Slot::Value { form: ValueStyle::Block, .. } => Vec::new(),
            Slot::Value { written, form } => {
                let values = self.values_at(around, &path);
                let rest = &around.text[around.offset..];
                let shown = |value: &Value| match form {
                    ValueStyle::Quoted(quote) => quoted(value, char::from(quote), rest),
                    _ if around.is_json() => json::encode_to_string(value),
                    _ => plain(value),
                };
                values
                    .into_iter()
                    .map(|(value, sign, detail)| {
                        completion(value_label(&value), sign, detail, edit(&written, shown(&value)))
                    })
                    .collect()
            }
            Slot::Key { written, column, is_flow } => {
                let fields = self.fields_at(around, &path);
                let there = siblings(around, &path);
                let missing = fields.into_iter().filter(|field| !there.contains(&field.name));
                let key = TypedName::new(around, &written, column, is_flow);
                let mut offered: Vec<CompletionItem> = missing
                    .map(|field| {
                        let edit = edit(&key.replaced, key.beginning(&field));
                        let ShapeField { name, type_, description, is_required } = field;
                        CompletionItem {
                            documentation: description,
                            is_required,
                            ..completion(name, Sign::Field, type_, edit)
                        }
                    })
                    .collect();
                if matches!(path.last(), Some(OutlineStep::Item(_))) {
                    let values = self.values_at(around, &path);
                    offered.extend(values.into_iter().map(|(value, sign, detail)| {
                        completion(value_label(&value), sign, detail, edit(&written, plain(&value)))
                    }));
                }
                offered
            }
        }
    }

    /// Calls `then` with the shape of the value at a path, if it is known. Objects may be nested in suites and lists.
    pub(super) fn shape_at<'w>(
        &'w self,
        around: &Around<'_>,
        path: &[OutlineStep],
        then: &mut dyn FnMut(ValueShape<'_>),
    ) -> bool {
        if let Some((head, length)) = around.inner(path) {
            return self.shape_of(&head, &path[length..], then);
        }
        match around.sort {
            Sort::Suite => ValueShape::suite().at(path).map(then).is_some(),
            Sort::Request => ValueShape::request().at(path).map(then).is_some(),
            Sort::Definition => ValueShape::definition().at(path).map(then).is_some(),
            Sort::Policy | Sort::Object | Sort::Other => self.shape_of(&around.head, path, then),
        }
    }

    /// Calls `then` with the shape of the value at a path of an object.
    fn shape_of(&self, head: &Head, path: &[OutlineStep], then: &mut dyn FnMut(ValueShape<'_>)) -> bool {
        let empty = Structural::default();
        match self.schema_of(head).or_else(|| self.schema_of(&self.assumed)) {
            Some(schema) => ValueShape::of_kind(&schema).at(path).map(then).is_some(),
            None if path.len() < 2 => ValueShape::of_kind(&empty).at(path).map(then).is_some(),
            None => false,
        }
    }

    /// The schema of a kind, custom or built-in.
    pub(super) fn schema_of(&self, head: &Head) -> Option<Arc<Structural>> {
        if let Some(kind) = self.catalog.named(head.group(), &head.kind) {
            let version = kind.versions.iter().find(|version| version.api_version() == head.api_version);
            return version.map(|version| Arc::clone(version.structural.shared()));
        }
        let kind = RuntimeConfig::of(self.minor()).kind(&head.api_version, &head.kind)?;
        built_in::schema(self.minor(), kind).map(Arc::new)
    }

    fn fields_at(&self, around: &Around<'_>, path: &[OutlineStep]) -> Vec<ShapeField> {
        let mut fields = Vec::new();
        self.shape_at(around, path, &mut |shape| fields = shape.fields());
        fields
    }

    fn values_at(&self, around: &Around<'_>, path: &[OutlineStep]) -> Vec<(Value, Sign, String)> {
        if let [before @ .., OutlineStep::Key(name)] = path
            && (before.is_empty() || around.sort == Sort::Suite)
            && around.sort != Sort::Definition
        {
            match name.as_str() {
                "apiVersion" => return self.api_versions(&around.head),
                "kind" => return self.kinds_in(&around.head),
                _ => {}
            }
        }
        if around.sort == Sort::Policy
            && around.head.kind.ends_with("Binding")
            && path.last() == Some(&OutlineStep::Key("policyName".to_owned()))
        {
            let kind = around.head.kind.trim_end_matches("Binding");
            let named = self.policy_values().filter(|policy| policy.str_at(&["kind"]) == kind);
            return named
                .map(|policy| (Value::from(policy.str_at(&["metadata", "name"])), Sign::Value, "policy".to_owned()))
                .collect();
        }
        if around.sort == Sort::Definition
            && let Some(names) = names_of_fields(around, path)
        {
            return names.into_iter().map(|name| (Value::from(name), Sign::Field, String::new())).collect();
        }
        let mut values = Vec::new();
        self.shape_at(around, path, &mut |shape| {
            let default = shape.default();
            let detail =
                |value: &Value| if default.as_ref() == Some(value) { "the default".to_owned() } else { String::new() };
            values = shape.values().into_iter().map(|value| (value.clone(), Sign::Value, detail(&value))).collect();
            if let Some(default) = &default
                && values.is_empty()
                && !matches!(default, Value::Object(_) | Value::Array(_))
            {
                values.push((default.clone(), Sign::Value, detail(default)));
            }
        });
        values
    }

    /// The API versions that an object may have: those of its kind, if it is given.
    fn api_versions(&self, head: &Head) -> Vec<(Value, Sign, String)> {
        let known = self.known_kinds();
        let is_meant = |kind: &str| head.kind.is_empty() || head.kind == kind;
        let named: BTreeSet<&str> =
            known.iter().filter(|(_, kind)| is_meant(kind)).map(|(version, _)| version.as_str()).collect();
        named.into_iter().map(|version| (Value::from(version), Sign::Kind, String::new())).collect()
    }

    fn kinds_in(&self, head: &Head) -> Vec<(Value, Sign, String)> {
        let is_meant = |version: &str| head.api_version.is_empty() || head.api_version == version;
        let known = self.known_kinds();
        let named = known.iter().filter(|(version, _)| is_meant(version));
        named.map(|(version, kind)| (Value::from(kind.as_str()), Sign::Kind, version.clone())).collect()
    }

    /// The known API versions and kinds, sorted.
    fn known_kinds(&self) -> BTreeSet<(String, String)> {
        let config = RuntimeConfig::of(self.minor());
        let built_in = config.kinds().map(|kind| (kind.api_version(), kind.kind.to_owned()));
        let custom = self.catalog.kinds().flat_map(|kind| {
            let served = kind.versions.iter().filter(|version| version.served);
            served.map(|version| (version.api_version(), version.names.kind.clone()))
        });
        built_in.chain(custom).collect()
    }

    /// The environment of an expression.
    pub(super) fn environment(&self, around: &Around<'_>, expression: &EditedExpression) -> Option<Env> {
        let path = around.outline.path(expression.node);
        match around.sort {
            Sort::Definition => {
                let (schema, is_resource) = self.schema_of_rule(around, &path)?;
                let ty = declare(&schema, is_resource)?.named(SELF_TYPE).ty;
                Some(
                    Env::of(self.minor(), Expressions::New).with_variable(SELF, ty.clone()).with_variable(OLD_SELF, ty),
                )
            }
            Sort::Policy => Some(self.policy_environment(around)),
            Sort::Object | Sort::Suite | Sort::Request | Sort::Other => None,
        }
    }

    /// The schema node that a rule is about, and whether it is a resource.
    pub(super) fn schema_of_rule(&self, around: &Around<'_>, path: &[OutlineStep]) -> Option<(Structural, bool)> {
        let group = around.outline.scalar_at(around.text, &["spec", "group"]);
        let kind = self.catalog.named(group, around.outline.scalar_at(around.text, &["spec", "names", "kind"]))?;
        let (version, below) = below_version(path)?;
        let root = &kind.versions.get(version)?.structural;
        let end = below.iter().position(|step| *step == OutlineStep::Key("x-kubernetes-validations".to_owned()))?;
        let node = node_of(root, &below[..end])?;
        Some((node.clone(), end == 0 || node.extensions.embedded_resource))
    }

    /// The environment of a policy's expressions.
    pub(super) fn policy_environment(&self, around: &Around<'_>) -> Env {
        let mut declarations =
            Declarations { variables: Some(no_variables()), minor: self.minor(), ..Declarations::default() };
        let read = yaml::decode(around.text.as_bytes()).unwrap_or_default();
        let served = crate::author::policies::served(&self.catalog);
        let spec = read.get("spec").unwrap_or(&Value::Null);
        let matched = type_check::matched(spec, &served);
        if let [only] = matched.values().collect::<Vec<_>>().as_slice()
            && let Some(decl) = type_check::declared(only, Quantities::Shown)
        {
            declarations.object = decl.ty;
        }
        if around.outline.find(&steps(&["spec", "paramKind"])).is_some() {
            let param = |name| around.outline.scalar_at(around.text, &["spec", "paramKind", name]).to_owned();
            let head = Head { api_version: param("apiVersion"), kind: param("kind"), name: String::new() };
            let declared = self.schema_of(&head).and_then(|schema| declare(&schema, true));
            declarations.params = Some(declared.map_or(Type::Dyn, |decl| decl.named("params").ty));
        }
        if let Some(list) = around.outline.find(&steps(&["spec", "variables"])) {
            for item in around.outline.children(list) {
                let way: Vec<OutlineStep> =
                    around.outline.path(item).into_iter().chain([OutlineStep::Key("name".to_owned())]).collect();
                if let Some(name) = around.outline.find(&way) {
                    declarations.add_variable(around.outline.scalar(around.text, name), None);
                }
            }
        }
        declarations.environment(Expressions::New)
    }

    fn in_expression(&self, around: &Around<'_>, text: &Text, expression: &EditedExpression) -> Vec<CompletionItem> {
        let Some(env) = self.environment(around, expression) else { return Vec::new() };
        let at = expression.index(around.offset);
        let Some((written, offered)) = names(&expression.text[..at], &env) else { return Vec::new() };
        let bytes = expression.bytes(written);
        let range = text.range(&(around.start + bytes.start..around.start + bytes.end));
        let offer = |Name { label, sign, detail, with }| completion(label, sign, detail, Edit { range, text: with });
        offered.into_iter().map(offer).collect()
    }
}

/// The schema node that a path in a definition's text leads to.
pub(super) fn node_of<'s>(root: &'s Structural, path: &[OutlineStep]) -> Option<&'s Structural> {
    let mut node = root;
    let mut steps = path.iter();
    while let Some(step) = steps.next() {
        let OutlineStep::Key(word) = step else { return None };
        node = match word.as_str() {
            "properties" => match steps.next()? {
                OutlineStep::Key(name) => node.properties.get(name)?,
                OutlineStep::Item(_) => return None,
            },
            "items" => node.items.as_deref()?,
            "additionalProperties" => node.additional_properties.as_ref()?.structural()?,
            _ => return None,
        };
    }
    Some(node)
}

/// The names that can be an item of `required` or of a list map's keys.
fn names_of_fields(around: &Around<'_>, path: &[OutlineStep]) -> Option<Vec<String>> {
    let [before @ .., OutlineStep::Key(word), OutlineStep::Item(_)] = path else { return None };
    let below: &[&str] = match word.as_str() {
        "required" => &["properties"],
        "x-kubernetes-list-map-keys" => &["items", "properties"],
        _ => return None,
    };
    let way = [before, &steps(below)].concat();
    let listed = around.outline.find(&[before, &[OutlineStep::Key(word.clone())]].concat())?;
    let is_there =
        |name: &str| around.outline.children(listed).any(|item| around.outline.scalar(around.text, item) == name);
    let fields = around.outline.children(around.outline.find(&way)?);
    let names = fields.filter_map(|node| match &around.outline.nodes[node].step {
        OutlineStep::Key(name) => Some(name.clone()).filter(|name| !is_there(name)),
        OutlineStep::Item(_) => None,
    });
    Some(names.collect())
}

/// The fields beside the position.
fn siblings(around: &Around<'_>, path: &[OutlineStep]) -> BTreeSet<String> {
    let outline = &around.outline;
    let Some(holder) = outline.find(path) else { return BTreeSet::new() };
    let is_other = |node: &usize| {
        let key = &outline.nodes[*node].key;
        outline.nodes[*node].is_whole && !(key.start <= around.offset && around.offset <= key.end)
    };
    let names = outline.children(holder).filter(is_other).filter_map(|node| match &outline.nodes[node].step {
        OutlineStep::Key(name) => Some(name.clone()),
        OutlineStep::Item(_) => None,
    });
    names.collect()
}

/// A name that is being typed.
struct TypedName {
    /// The range that is replaced: the existing part of the name, also after the cursor, with its closing quote.
    replaced: Range<usize>,
    column: usize,
    is_flow: bool,
    /// Whether the name is in quotes, as in JSON.
    is_quoted: bool,
    /// Whether its colon already exists.
    has_colon: bool,
}

impl TypedName {
    fn new(around: &Around<'_>, written: &Range<usize>, column: usize, is_flow: bool) -> TypedName {
        let rest = around.text[around.offset..].lines().next().unwrap_or_default();
        let name = |sign: char| sign.is_alphanumeric() || "-_./$".contains(sign);
        let is_open = around.text[written.clone()].starts_with('"');
        let behind_name = rest.trim_start_matches(name);
        let name_end = around.offset + rest.len() - behind_name.len();
        let (behind, end) = match behind_name.strip_prefix('"').filter(|_| is_open) {
            Some(behind) => (behind, name_end + 1),
            None if written.is_empty() => (behind_name, written.end),
            None => (behind_name, name_end),
        };
        TypedName {
            replaced: written.start..end,
            column,
            is_flow,
            is_quoted: is_open || around.is_json(),
            has_colon: behind.trim_start().starts_with(':'),
        }
    }

    /// The text that begins a field; for an object or a list, also the indent of the next line.
    fn beginning(&self, field: &ShapeField) -> String {
        let name = Value::from(field.name.as_str());
        let name = if self.is_quoted { json::encode_to_string(&name) } else { plain(&name) };
        if self.has_colon {
            return name;
        }
        let indent = " ".repeat(self.column);
        match (self.is_flow || self.is_quoted, field.type_.as_str()) {
            (false, "object") => format!("{name}:\n{indent}  "),
            (false, type_) if type_.starts_with("map[") => format!("{name}:\n{indent}  "),
            (false, type_) if type_.starts_with("[]") => format!("{name}:\n{indent}- "),
            _ => format!("{name}: "),
        }
    }
}

fn completion(label: String, sign: Sign, detail: String, edit: Edit) -> CompletionItem {
    CompletionItem { label, sign, detail, documentation: String::new(), is_required: false, edit }
}

fn value_label(value: &Value) -> String {
    value.as_str().map_or_else(|| json::encode_to_string(value), str::to_owned)
}

/// Formats a value as YAML on one line.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_plain = yaml::decode(format!("a: {text}").as_bytes()).is_ok_and(|read| read.get("a") == Some(value));
            if is_plain && !text.is_empty() { text.clone() } else { json::encode_to_string(value) }
        }
        value => json::encode_to_string(value),
    }
}

/// Formats a value within an open quote. An editor may have added the closing quote already, at the beginning of
/// `rest`.
fn quoted(value: &Value, quote: char, rest: &str) -> String {
    let text = value_label(value);
    let mut quoted = match quote {
        '\'' => format!("'{}'", text.replace('\'', "''")),
        _ => json::encode_to_string(&Value::from(text)),
    };
    if rest.starts_with(quote) {
        quoted.pop();
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks how the field `kind` would be inserted at `‸`, and what it replaces.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let offset = text.find('‸').expect("the test has a place");
        let text = Text::from(text.replacen('‸', "", 1));
        let workspace = Workspace::new(Box::new(|_| unreachable!("no policy asks who it is")));
        let offered = workspace.complete("a.yaml", &text, text.position(offset));
        let offered = offered.iter().find(|offered| offered.label == "kind").expect("it is offered");
        let at = |position| text.offset(position);
        let Edit { range, text: with } = &offered.edit;
        let replaced = &text.as_str()[at(range.start)..at(range.end)];
        assert_eq!(format!("{replaced} -> {with}"), expected);
    }

    #[test]
    fn the_document_tells_whether_names_stand_in_quotes() {
        check("{{- if .Values.a }}\nki‸\n", "ki -> kind: ");
        check("# a comment\n{\n  ki‸\n}\n", "ki -> \"kind\": ");
    }

    #[test]
    fn a_name_is_replaced_as_a_whole() {
        check("{\"ki‸nt\": 1}", "\"kint\" -> \"kind\"");
        check("{\"ki‸\": 1}", "\"ki\" -> \"kind\"");
        check("ki‸nt: 1\n", "kint -> kind");
        check("‸\nb: 1\n", " -> kind: ");
    }
}
