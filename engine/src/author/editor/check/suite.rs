//! Suites: whether one reads as a suite, and which of its cases fail.

use super::super::workspace::Workspace;
use super::{Document, Severity};
use crate::author::policies::Policies;
use crate::author::suite::{self, Coverage, Stage, Suite};
use crate::value::Value;
use crate::value::yaml::Located;

/// Cases that are run at a keystroke; the others are run by `skiff test`.
const CASES_MAX: usize = 500;

/// Adds what is wrong with a suite, and what its cases come to. They are run where everything that the suite names is known.
pub fn check(workspace: &Workspace, name: &str, document: &mut Document<'_>, located: &Located) {
    let suite = match suite::parse(&located.value) {
        Ok(suite) => suite,
        Err(faults) => {
            for fault in faults {
                let range = document.range(located.place(&fault.path));
                document.tell(range, Severity::Error, "suite", fault.text);
            }
            return;
        }
    };
    for (_, fault) in &suite.broken {
        let range = document.range(located.place(&fault.path));
        document.tell(range, Severity::Error, "suite", fault.text.clone());
    }
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let Some(policies) = stage(workspace, folder, document, located, &suite) else { return };
    let stage = Stage { catalog: &workspace.catalog, policies: &policies, who: &*workspace.who };
    for case in suite.cases.iter().take(CASES_MAX) {
        let outcome = suite::run(case, &stage, None, &mut Coverage::default());
        let range = document.range(located.place(&format!("{}.name", case.path)));
        for failure in outcome.failures.iter().filter(|failure| !failure.is_of_snapshot()) {
            document.tell(range.clone(), Severity::Error, "case", failure.to_string());
        }
    }
}

/// The policies of a suite; `None` where a file that it names is not known, which is told.
fn stage(
    workspace: &Workspace,
    folder: &str,
    document: &mut Document<'_>,
    located: &Located,
    suite: &Suite,
) -> Option<Policies> {
    let mut is_known = true;
    let mut values: Vec<&Value> = Vec::new();
    for (field, paths) in [("crds", &suite.crds), ("policies", &suite.policies)] {
        for (index, path) in paths.iter().enumerate() {
            let path = resolved(folder, path);
            let mut files = workspace.files.iter().filter(|(name, _)| is_within(name, &path)).peekable();
            if files.peek().is_none() {
                let range = document.range(located.place(&format!("{field}[{index}]")));
                document.tell(range, Severity::Warning, "suite", "no file of the workspace has this name");
                is_known = false;
            }
            if field == "policies" {
                values.extend(files.flat_map(|(_, file)| &file.policies));
            }
        }
    }
    is_known.then(|| Policies::read(values))
}

fn is_within(name: &str, path: &str) -> bool {
    name.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path as seen from a folder, without `.` and `..`.
pub fn resolved(folder: &str, path: &str) -> String {
    let mut steps: Vec<&str> = if path.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => _ = steps.pop(),
            step => steps.push(step),
        }
    }
    let joined = steps.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}
