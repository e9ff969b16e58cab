//! Code actions for suites: the files that their cases need, and the expectations with which a failing case would pass.

use super::super::check::suite::{Needed, needed, policies_of};
use super::super::complete::Around;
use super::super::outline::{Outline, OutlineStep};
use super::super::paths::{folder_of, is_within, relative, resolved};
use super::super::rewrite::{with_entries, with_field};
use super::super::text::{Text, TextRange};
use super::super::workspace::Workspace;
use super::{ActionChange, Aim, CaseAction, CodeAction, change_of, is_in};
use crate::author::expected::expected_like;
use crate::author::suite::{self, Coverage, Expected, Suite, SuiteStage};
use crate::policy::type_check;
use crate::value::{Value, yaml};

/// The maximum number of files that are offered for one entry.
const OFFERED_MAX: usize = 5;

impl Workspace {
    /// The actions in a range of a suite.
    pub(super) fn suite_actions(
        &self,
        name: &str,
        around: &Around<'_>,
        text: &Text,
        range: TextRange,
    ) -> Vec<CodeAction> {
        let Ok(value) = yaml::decode(around.text.as_bytes()) else { return Vec::new() };
        let Ok(suite) = suite::parse(&value) else { return Vec::new() };
        let own = Own { around, text, range, folder: folder_of(name) };
        let mut actions = own.definitions(&needed(self, own.folder, &suite));
        actions.extend(own.other_names(self, &suite));
        actions.extend(own.policies(self, &suite));
        actions.extend(own.expectations(self, &suite));
        actions
    }
}

/// A suite, and the range for which actions are requested.
struct Own<'s> {
    around: &'s Around<'s>,
    text: &'s Text,
    range: TextRange,
    folder: &'s str,
}

impl Own<'_> {
    fn action(&self, title: String, code: Option<&str>, changed: Option<String>) -> Option<CodeAction> {
        let edit = change_of(self.text, self.around.start, self.around.text, &changed?)?;
        let aim = if code.is_some() { Aim::Fix } else { Aim::New };
        Some(CodeAction { title, aim, code: code.map(str::to_owned), change: ActionChange::Edits(vec![edit]) })
    }

    /// Adds definitions that cases need and `crds` does not name.
    fn definitions(&self, needed: &[Needed]) -> Vec<CodeAction> {
        let mut files: Vec<&str> = needed.iter().map(|needed| needed.file.as_str()).collect();
        files.dedup();
        let add = |file: &&str| {
            let changed = with_entries(self.around.text, "crds", &[(*file).to_owned()]);
            self.action(format!("Add {file} to crds"), Some("suite"), changed)
        };
        files.iter().take(OFFERED_MAX).filter_map(add).collect()
    }

    /// Replaces an entry of `crds` or `policies` that matches no file: by files with the same name, or others of the
    /// right sort.
    fn other_names(&self, workspace: &Workspace, suite: &Suite) -> Vec<CodeAction> {
        let mut actions = Vec::new();
        for (field, entries) in [("crds", &suite.crds), ("policies", &suite.policies)] {
            for (index, entry) in entries.iter().enumerate() {
                let path = [OutlineStep::Key(field.to_owned()), OutlineStep::Item(index)];
                let at = resolved(self.folder, entry);
                let is_known = workspace.files.keys().any(|file| is_within(file, &at));
                let Some(node) = self.around.outline.find(&path).filter(|node| !is_known && self.holds(*node)) else {
                    continue;
                };
                let base = entry.rsplit('/').next().unwrap_or(entry);
                let others = workspace.files.iter().filter(|(_, file)| match field {
                    "crds" => !file.kinds.is_empty(),
                    _ => !file.policies.is_empty(),
                });
                let mut others: Vec<&String> = others.map(|(name, _)| name).collect();
                others.sort_by_key(|name| !name.ends_with(base));
                for other in others.into_iter().take(OFFERED_MAX) {
                    let seen = relative(self.folder, other);
                    let range = self.around.outline.nodes[node].value.clone();
                    let shown = super::super::complete::plain(&Value::from(seen.as_str()));
                    let changed = [&self.around.text[..range.start], &shown, &self.around.text[range.end..]].concat();
                    actions.extend(self.action(format!("Use {seen}"), Some("suite"), Some(changed)));
                }
            }
        }
        actions
    }

    /// Adds policies for the kinds of the cases that `policies` does not name: offered above the cases, and at cases
    /// that expect a policy's result.
    fn policies(&self, workspace: &Workspace, suite: &Suite) -> Vec<CodeAction> {
        let cases = self.around.outline.find(&[OutlineStep::Key("cases".to_owned())]);
        let is_head = cases
            .is_none_or(|cases| self.line(self.around.outline.nodes[cases].key.start) > self.range.start.line as usize);
        let asks = |case: &&suite::Case| match &case.expected {
            Expected::Stated(expect) => {
                ["admitted", "message", "reason", "auditAnnotations"].iter().any(|name| expect.get(name).is_some())
            }
            Expected::Lines(_) => false,
        };
        let is_asked =
            suite.cases.iter().filter(asks).any(|case| self.node_of(case).is_some_and(|node| self.holds(node)));
        if !is_head && !is_asked {
            return Vec::new();
        }
        let kinds: Vec<(&str, &str)> = suite
            .cases
            .iter()
            .map(|case| (case.object.str_at(&["apiVersion"]), case.object.str_at(&["kind"])))
            .collect();
        let served = crate::author::policies::served(&workspace.catalog);
        let is_about = |policy: &Value| {
            let matched = type_check::matched(policy.get("spec").unwrap_or(&Value::Null), &served);
            matched.values().any(|kind| kinds.contains(&(&kind.api_version(), &kind.names.kind)))
        };
        let listed: Vec<String> = suite.policies.iter().map(|path| resolved(self.folder, path)).collect();
        let files = workspace.files.iter().filter(|(name, file)| {
            file.policies.iter().any(is_about) && !listed.iter().any(|path| is_within(name, path))
        });
        let code = is_asked.then_some("case");
        let add = |(name, _): (&String, _)| {
            let seen = relative(self.folder, name);
            let changed = with_entries(self.around.text, "policies", std::slice::from_ref(&seen));
            self.action(format!("Add {seen} to policies"), code, changed)
        };
        files.take(OFFERED_MAX).filter_map(add).collect()
    }

    /// Replaces the expectations of failing cases in the range, so that they pass.
    fn expectations(&self, workspace: &Workspace, suite: &Suite) -> Vec<CodeAction> {
        let Ok(policies) = policies_of(workspace, self.folder, suite) else { return Vec::new() };
        let stage = SuiteStage { catalog: &workspace.catalog, policies: &policies, find_user: &*workspace.find_user };
        let mut actions = Vec::new();
        for case in &suite.cases {
            let Expected::Stated(stated) = &case.expected else { continue };
            if !self.node_of(case).is_some_and(|node| self.holds(node)) {
                continue;
            }
            let failures = suite::run(case, &stage, None, &mut Coverage::default()).failures;
            let fails = failures.iter().any(|failure| !failure.is_of_snapshot());
            let Some(admitted) = suite::admit(case, &stage, &mut Coverage::default().policies).filter(|_| fails) else {
                continue;
            };
            let ratcheted = suite::ratcheted(workspace.catalog.of(&case.object), case, &admitted.checked);
            let expected = expected_like(stated, &admitted, &ratcheted);
            let changed = with_field(self.around.text, &steps(&case.path), "expect", &expected);
            actions.extend(self.action(format!("Expect what comes of `{}`", case.name), Some("case"), changed));
        }
        actions
    }

    fn node_of(&self, case: &suite::Case) -> Option<usize> {
        self.around.outline.find(&steps(&case.path))
    }

    /// Whether the range overlaps the lines of a node.
    fn holds(&self, node: usize) -> bool {
        let end = last_below(&self.around.outline, node);
        (self.line(self.around.outline.nodes[node].key.start)..=self.line(end)).any(|line| is_in(self.range, line))
    }

    /// The line, in the whole text, of a byte of the document.
    fn line(&self, at: usize) -> usize {
        self.text.line_of(self.around.start + at)
    }
}

/// The end of a node and of all nodes below it.
fn last_below(outline: &Outline, node: usize) -> usize {
    let behind = outline.nodes.iter().enumerate().skip(node + 1);
    let below = behind.take_while(|(_, other)| other.parent.is_some_and(|parent| parent >= node)).map(|(at, _)| at);
    let own = [node].into_iter().chain(below);
    own.map(|at| outline.nodes[at].value.end.max(outline.nodes[at].key.end)).max().unwrap_or_default()
}

/// Parses a path such as `cases[3].table[0]`.
fn steps(path: &str) -> Vec<OutlineStep> {
    let step = |word: &str| word.parse().map_or_else(|_| OutlineStep::Key(word.to_owned()), OutlineStep::Item);
    path.split(['.', '[', ']']).filter(|word| !word.is_empty()).map(step).collect()
}

/// Adds the files that a case needs to the lists of a suite.
pub(super) fn with_files(suite: &str, folder: &str, case: &CaseAction) -> Option<String> {
    let read = yaml::decode(suite.as_bytes()).ok()?;
    let mut text = suite.to_owned();
    for (field, files) in [("crds", &case.crds), ("policies", &case.policies)] {
        let listed = read.items_at(&[field]).iter().filter_map(Value::as_str).map(|path| resolved(folder, path));
        let listed: Vec<String> = listed.collect();
        let missing = files.iter().filter(|file| !listed.iter().any(|path| is_within(file, path)));
        let missing: Vec<String> = missing.map(|file| relative(folder, file)).collect();
        text = with_entries(&text, field, &missing)?;
    }
    Some(text)
}
