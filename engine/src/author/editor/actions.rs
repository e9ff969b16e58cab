//! Code actions: edits that fix something or add something new.
//!
//! Input: a text and a range. Output: the actions available there: the fixes of lints, the bounds that make a rule
//! cheap enough, and a suite's case for an object or a policy; for bindings what they lack, and for suites the missing
//! files and the expectations that would pass. Each edit is verified: the changed text must parse to the intended
//! value.

mod policies;
mod suites;

use super::complete::Around;
use super::documents::{Sort, hash_of};
use super::expression::expression_at;
use super::outline::OutlineStep;
use super::paths::relative;
use super::text::{Edit, Text, TextRange};
use super::workspace::{File, Workspace};
use crate::author::expected::expected;
use crate::author::fix::{fix, is_fixable, set};
use crate::author::lint::{Finding, lint_in};
use crate::author::policies::case::Setting;
use crate::author::policies::{Policies, is_policy};
use crate::author::suite::{self, Coverage, Expected, SuiteStage};
use crate::crd::bounds::{Bound, Keyword};
use crate::crd::validate::expressions::SchemaStep;
use crate::object;
use crate::value::Value;
use crate::value::yaml::{self, decode_all_located};

/// The purpose of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// It fixes a diagnostic.
    Fix,
    /// It adds something new.
    New,
}

/// An action that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeAction {
    /// The title of the action.
    pub title: String,
    /// Its purpose.
    pub aim: Aim,
    /// The code of the diagnostic that it fixes.
    pub code: Option<String>,
    /// The change that it makes.
    pub change: ActionChange,
}

/// The change of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionChange {
    /// It edits the text.
    Edits(Vec<Edit>),
    /// It edits another file, given by its name.
    Elsewhere(String, Edit),
    /// It adds a case to a suite, which is created if it does not exist.
    Case(CaseAction),
}

/// A test case, and the files it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseAction {
    /// The name of the suite if it is new.
    pub suite: String,
    /// The case as an item of the list `cases`, in YAML.
    pub text: String,
    /// The files that define the object's kind.
    pub crds: Vec<String>,
    /// The files whose policies decide on it.
    pub policies: Vec<String>,
}

impl Workspace {
    /// The actions available in a range of the text of a file.
    pub fn actions(&self, name: &str, text: &Text, range: TextRange) -> Vec<CodeAction> {
        let around = Around::new(name, text, range.start);
        match around.sort {
            Sort::Definition => {
                let mut actions = fixes(&around, text, range, |value| lint_in(self.minor(), value).unwrap_or_default());
                actions.extend(self.bounds(&around, text));
                actions
            }
            Sort::Object => self.case(&around).into_iter().collect(),
            Sort::Policy => {
                let mut actions = fixes(&around, text, range, |value| self.policy_findings(value));
                actions.extend(self.policy_actions(name, &around, text, range));
                actions
            }
            Sort::Suite => self.suite_actions(name, &around, text, range),
            Sort::Request | Sort::Other => Vec::new(),
        }
    }

    /// The actions that set bounds so that the rule at the position is cheap enough.
    fn bounds(&self, around: &Around<'_>, text: &Text) -> Vec<CodeAction> {
        let found = expression_at(around.text, &around.outline, around.sort, around.offset);
        let Some(expression) = found else { return Vec::new() };
        let Some((_, advice)) = self.priced_rule(around, &expression, &expression.written()) else { return Vec::new() };
        let Some(OutlineStep::Item(version)) = around.outline.path(expression.node).get(2).cloned() else {
            return Vec::new();
        };
        let action = |bounds: &Vec<Bound>| {
            let changed = bounded(around.text, version, bounds)?;
            let edit = change_of(text, around.start, around.text, &changed)?;
            let shown: Vec<String> = bounds.iter().map(ToString::to_string).collect();
            Some(CodeAction {
                title: format!("Set {}", shown.join(", ")),
                aim: Aim::Fix,
                code: Some("rule-cost".to_owned()),
                change: ActionChange::Edits(vec![edit]),
            })
        };
        advice.remedies.iter().filter_map(action).collect()
    }

    /// A case of a suite for the object at the position, which expects its current result.
    fn case(&self, around: &Around<'_>) -> Option<CodeAction> {
        let value = yaml::decode(around.text.as_bytes()).ok()?;
        let kind = self.catalog.of(&value)?;
        let name = match around.head.name.as_str() {
            "" => around.head.kind.to_lowercase(),
            name => name.to_owned(),
        };
        let crds = self.file_of(&kind.definition.spec.group, &around.head.kind).map(str::to_owned);
        let suite = around.head.kind.to_lowercase();
        self.case_of((&suite, &name), value, crds.into_iter().collect(), self.policy_files(), false)
    }

    /// A case for an object, which expects its current result; takes the names of the suite and of the case. The
    /// policies of `files` are evaluated; unless the case is about them, the suite names them only if they affected the
    /// result.
    fn case_of(
        &self,
        (suite, name): (&str, &str),
        object: Value,
        crds: Vec<String>,
        files: Vec<String>,
        is_about_policies: bool,
    ) -> Option<CodeAction> {
        let policies = Policies::read(
            self.minor(),
            files.iter().filter_map(|file| self.files.get(file)).flat_map(|file| &file.policies),
        );
        let stage = SuiteStage { catalog: &self.catalog, policies: &policies, find_user: &*self.find_user };
        let written = suite::Case {
            name: name.to_owned(),
            path: String::new(),
            object: object.clone(),
            old: None,
            part: suite::WriteTarget::Object,
            setting: Setting::decode(&Value::Null, None),
            expected: Expected::Stated(Value::Null),
        };
        let admitted = suite::admit(&written, &stage, &mut Coverage::default().policies)?;
        let asks_policies = is_about_policies || admitted.denial.is_some() || !admitted.annotations.is_empty();
        let fields = [("name", Value::from(name)), ("object", object), ("expect", expected(&admitted, &[]))];
        let fields = fields.map(|(name, value)| yaml::encode(&object! { name => value }));
        let lines = fields.concat();
        let lines =
            lines.lines().enumerate().map(|(at, line)| format!("{}{line}\n", if at == 0 { "- " } else { "  " }));
        let policies = if asks_policies { files } else { Vec::new() };
        let case = CaseAction { suite: suite.to_owned(), text: lines.collect(), crds, policies };
        Some(CodeAction {
            title: "Write a test".to_owned(),
            aim: Aim::New,
            code: None,
            change: ActionChange::Case(case),
        })
    }

    /// The files with policies.
    fn policy_files(&self) -> Vec<String> {
        let has_any = |file: &File| file.policies.iter().any(is_policy);
        self.files.iter().filter(|(_, file)| has_any(file)).map(|(name, _)| name.clone()).collect()
    }
}

/// The fixes of findings within the range.
fn fixes(around: &Around<'_>, text: &Text, range: TextRange, find: impl Fn(&Value) -> Vec<Finding>) -> Vec<CodeAction> {
    let Ok(documents) = decode_all_located(around.text.as_bytes()) else { return Vec::new() };
    let Some(located) = documents.first() else { return Vec::new() };
    let own = Text::from(around.text);
    let fixed = |finding: &Finding| {
        let is_here = |at: &String| {
            let line = own.line_of(own.offset_of(located.place(at))) + text.line_of(around.start);
            is_in(range, line)
        };
        if !is_fixable(finding) || !finding.places.iter().any(is_here) {
            return None;
        }
        let fixed = fix(around.text, &[(0, finding)]);
        let change = ActionChange::Edits(vec![change_of(text, around.start, around.text, &fixed.text)?]);
        let title = format!("{}: {}", finding.lint.id, finding.fix);
        Some(CodeAction { title, aim: Aim::Fix, code: Some(finding.lint.id.to_owned()), change })
    };
    find(&located.value).iter().filter_map(fixed).collect()
}

fn is_in(range: TextRange, line: usize) -> bool {
    (range.start.line as usize..=range.end.line as usize).contains(&line)
}

/// Adds a case to a suite, with the files that it needs as paths relative to `folder`. Returns `None` for a text that
/// is not a suite, or whose list of cases is not its last field.
pub fn with_case(suite: &str, folder: &str, case: &CaseAction) -> Option<String> {
    let suite = &suites::with_files(suite, folder, case)?;
    let before = yaml::decode(suite.as_bytes()).ok()?;
    let cases = before.items_at(&["cases"]).len();
    let outline = super::outline::outline(suite);
    let list = outline.find(&[OutlineStep::Key("cases".to_owned())])?;
    let indent = outline.children(list).next().map_or(0, |item| {
        let start = outline.nodes[item].key.start;
        start - suite[..start].rfind('\n').map_or(0, |end| end + 1)
    });
    let lines: String = case.text.lines().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect();
    let join = if suite.ends_with('\n') { "" } else { "\n" };
    let changed = format!("{suite}{join}{lines}");
    let after = yaml::decode(changed.as_bytes()).ok()?;
    (after.items_at(&["cases"]).len() == cases + 1).then_some(changed)
}

/// Makes a suite with one case.
pub fn new_suite(folder: &str, case: &CaseAction) -> String {
    let list = |name: &str, files: &[String]| {
        let seen: Vec<String> = files.iter().map(|file| format!("{:?}", relative(folder, file))).collect();
        if seen.is_empty() { String::new() } else { format!("{name}: [{}]\n", seen.join(", ")) }
    };
    format!("{}{}cases:\n{}", list("crds", &case.crds), list("policies", &case.policies), case.text)
}

/// The single edit that turns a whole text into `after`; `None` if they are equal.
pub fn whole_edit(before: &Text, after: &str) -> Option<Edit> {
    change_of(before, 0, before.as_str(), after)
}

/// Sets bounds in the schema of one version of a definition, given as text.
fn bounded(text: &str, version: usize, bounds: &[Bound]) -> Option<String> {
    bounds.iter().try_fold(text.to_owned(), |text, bound| {
        let name = match bound.place.keyword {
            Keyword::MaxItems => "maxItems",
            Keyword::MaxProperties => "maxProperties",
            Keyword::MaxLength => "maxLength",
        };
        set(&text, 0, &schema_place(version, &bound.place.steps), name, bound.limit)
    })
}

fn schema_place(version: usize, steps: &[SchemaStep]) -> String {
    let own = format!("spec.versions[{version}].schema.openAPIV3Schema");
    steps.iter().fold(own, |at, step| match step {
        SchemaStep::Property(name) => format!("{at}.properties[{name}]"),
        SchemaStep::Items => format!("{at}.items"),
        SchemaStep::Values => format!("{at}.additionalProperties"),
    })
}

/// The single edit that turns `before`, which begins at byte `start` of a text, into `after`.
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
