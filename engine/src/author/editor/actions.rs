//! Edits that mend something, or begin something.
//!
//! In: a text and a range. Out: what may be done there: the edits of lints, the bounds that make a rule cheap enough, and the
//! case of a suite for an object. An edit of a definition is proved: the text must read as what was meant.

use super::complete::Around;
use super::documents::{Sort, hash_of};
use super::expression::expression_at;
use super::outline::Step;
use super::text::{Edit, Range, Text};
use super::workspace::Workspace;
use crate::author::fix::{fix, set};
use crate::author::lint::{Finding, lint_in};
use crate::crd::bounds::Keyword;
use crate::crd::validate::expressions::Step as Place;
use crate::object;
use crate::value::yaml::{self, decode_all_located};
use crate::value::{Map, Value};

/// What an action is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// It mends what a diagnostic tells.
    Fix,
    /// It makes something new.
    New,
}

/// Something that may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What it is called.
    pub title: String,
    /// What it is about.
    pub aim: Aim,
    /// The diagnostic that it mends, by its code.
    pub code: Option<String>,
    /// What it does.
    pub change: Change,
}

/// What an action does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It edits the text.
    Edits(Vec<Edit>),
    /// It adds a case to a suite, which is there or is made.
    Case {
        /// The kind of the object, in small letters: what a new suite is called.
        kind: String,
        /// A case, as an item of the list `cases`.
        case: String,
    },
}

impl Workspace {
    /// What may be done in a range of the text of a file.
    pub fn actions(&self, name: &str, text: &Text, range: Range) -> Vec<Action> {
        let around = Around::new(name, text, range.start);
        match around.sort {
            Sort::Definition => {
                let mut actions = self.fixes(&around, text, range);
                actions.extend(self.bounds(&around, text));
                actions
            }
            Sort::Object => self.case(&around).into_iter().collect(),
            Sort::Policy | Sort::Suite | Sort::Request | Sort::Other => Vec::new(),
        }
    }

    /// The edits of lints whose findings stand in the range.
    fn fixes(&self, around: &Around<'_>, text: &Text, range: Range) -> Vec<Action> {
        let Ok(documents) = decode_all_located(around.text.as_bytes()) else { return Vec::new() };
        let Some(located) = documents.first() else { return Vec::new() };
        let Ok(findings) = lint_in(self.minor(), &located.value) else { return Vec::new() };
        let own = Text::from(around.text);
        let is_here = |finding: &&Finding| {
            finding.lint.is_fixed
                && finding.places.iter().any(|at| {
                    let line = own.line_of(own.offset_of(located.place(at))) + text.line_of(around.start);
                    (range.start.line as usize..=range.end.line as usize).contains(&line)
                })
        };
        let fixed = |finding: &Finding| {
            let fixed = fix(around.text, &[(0, finding)]);
            let edit = change_of(text, around.start, around.text, &fixed.text)?;
            let title = format!("{}: {}", finding.lint.id, finding.fix);
            Some(Action {
                title,
                aim: Aim::Fix,
                code: Some(finding.lint.id.to_owned()),
                change: Change::Edits(vec![edit]),
            })
        };
        findings.iter().filter(is_here).filter_map(fixed).collect()
    }

    /// The bounds that make the rule of the place cheap enough.
    fn bounds(&self, around: &Around<'_>, text: &Text) -> Vec<Action> {
        let found = expression_at(around.text, &around.outline, around.sort, around.offset);
        let Some(expression) = found else { return Vec::new() };
        let Some((_, advice)) = self.priced_rule(around, &expression, &expression.written()) else { return Vec::new() };
        let Some(Step::Item(version)) = around.outline.path(expression.node).get(2).cloned() else { return Vec::new() };
        let action = |bounds: &Vec<crate::crd::bounds::Bound>| {
            let changes = bounds.iter().map(|bound| {
                let at = schema_place(version, &bound.place.steps);
                let name = match bound.place.keyword {
                    Keyword::MaxItems => "maxItems",
                    Keyword::MaxProperties => "maxProperties",
                    Keyword::MaxLength => "maxLength",
                };
                (at, name, bound.limit)
            });
            let changed = changes
                .into_iter()
                .try_fold(around.text.to_owned(), |text, (at, name, limit)| set(&text, 0, &at, name, limit))?;
            let edit = change_of(text, around.start, around.text, &changed)?;
            let shown: Vec<String> = bounds.iter().map(ToString::to_string).collect();
            Some(Action {
                title: format!("Set {}", shown.join(", ")),
                aim: Aim::Fix,
                code: Some("rule-cost".to_owned()),
                change: Change::Edits(vec![edit]),
            })
        };
        advice.remedies.iter().filter_map(action).collect()
    }

    /// A case of a suite for the object of the place, with what comes of it today.
    fn case(&self, around: &Around<'_>) -> Option<Action> {
        let value = yaml::decode(around.text.as_bytes()).ok()?;
        self.catalog.of(&value)?;
        let admitted = super::check::admit(self, &value)?;
        let name = match around.head.name.as_str() {
            "" => around.head.kind.to_lowercase(),
            name => name.to_owned(),
        };
        let of_rules = admitted.checked.errors.iter().map(|rejected| {
            object! { "field" => rejected.error.field.as_str(), "contains" => rejected.error.detail.as_str() }
        });
        let of_fields = admitted.checked.unknown.iter().map(|path| {
            object! { "field" => path.as_str(), "contains" => format!("unknown field \"{path}\"") }
        });
        let errors: Vec<Value> = of_rules.chain(of_fields).collect();
        let mut expect = Map::new();
        expect.insert("valid", Value::Bool(errors.is_empty()));
        if !errors.is_empty() {
            expect.insert("errors", Value::Array(errors));
        }
        let fields = [("name", Value::from(name.as_str())), ("object", value), ("expect", Value::Object(expect))];
        let fields = fields.map(|(name, value)| yaml::encode(&object! { name => value }));
        let lines = fields.concat();
        let lines =
            lines.lines().enumerate().map(|(at, line)| format!("{}{line}\n", if at == 0 { "- " } else { "  " }));
        let case = lines.collect();
        let kind = around.head.kind.to_lowercase();
        Some(Action {
            title: "Write a test".to_owned(),
            aim: Aim::New,
            code: None,
            change: Change::Case { kind, case },
        })
    }
}

/// A suite with a case more; `None` for a text that is not a suite, or whose list of cases is not the last of it.
pub fn with_case(suite: &str, case: &str) -> Option<String> {
    let before = yaml::decode(suite.as_bytes()).ok()?;
    let cases = before.items_at(&["cases"]).len();
    let outline = super::outline::outline(suite);
    let list = outline.find(&[Step::Key("cases".to_owned())])?;
    let indent = outline.children(list).next().map_or(0, |item| {
        let start = outline.nodes[item].key.start;
        start - suite[..start].rfind('\n').map_or(0, |end| end + 1)
    });
    let lines: String = case.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect();
    let join = if suite.ends_with('\n') { "" } else { "\n" };
    let changed = format!("{suite}{join}{lines}");
    let after = yaml::decode(changed.as_bytes()).ok()?;
    (after.items_at(&["cases"]).len() == cases + 1).then_some(changed)
}

fn schema_place(version: usize, steps: &[Place]) -> String {
    let own = format!("spec.versions[{version}].schema.openAPIV3Schema");
    steps.iter().fold(own, |at, step| match step {
        Place::Property(name) => format!("{at}.properties[{name}]"),
        Place::Items => format!("{at}.items"),
        Place::Values => format!("{at}.additionalProperties"),
    })
}

/// The one edit that makes `after` of `before`, which begins at `start` of a text.
fn change_of(text: &Text, start: usize, before: &str, after: &str) -> Option<Edit> {
    if hash_of(before) == hash_of(after) {
        return None;
    }
    let same = before.bytes().zip(after.bytes()).take_while(|(one, other)| one == other).count();
    let head = (0..=same).rev().find(|at| before.is_char_boundary(*at) && after.is_char_boundary(*at)).unwrap_or(0);
    let rest = before.len().min(after.len()) - head;
    let same = before.bytes().rev().zip(after.bytes().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let is_boundary =
        |at: &usize| before.is_char_boundary(before.len() - at) && after.is_char_boundary(after.len() - at);
    let tail = (0..=same).rev().find(is_boundary).unwrap_or(0);
    let range = text.range(&(start + head..start + before.len() - tail));
    Some(Edit { range, text: after[head..after.len() - tail].to_owned() })
}
