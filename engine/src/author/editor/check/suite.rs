//! Checks of suites: whether a suite is valid, and which of its cases fail.

use super::super::documents::Head;
use super::super::paths::{folder_of, is_within, relative, resolved};
use super::super::workspace::Workspace;
use super::{LocatedDocument, Severity};
use crate::author::policies::Policies;
use crate::author::suite::{self, Coverage, Suite, SuiteStage};
use crate::value::Value;
use crate::value::yaml::Located;

/// The number of cases that are run while somebody types; `skiff test` runs all.
const CASES_MAX: usize = 500;
/// The file with a suite's definition if the suite names none.
const DEFAULT: &str = "crd.yaml";

/// Adds the faults of a suite, and the failures of its cases. The cases are run if all files that the suite names are
/// known.
pub fn check(workspace: &Workspace, name: &str, document: &mut LocatedDocument<'_>, located: &Located) {
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
    for fault in suite.broken.iter().flat_map(|case| &case.faults) {
        let range = document.range(located.place(&fault.path));
        document.tell(range, Severity::Error, "suite", fault.text.clone());
    }
    let folder = folder_of(name);
    let policies = match policies_of(workspace, folder, &suite) {
        Ok(policies) => policies,
        Err(unknown) => {
            for entry in unknown {
                let range = document.range(located.place(&entry));
                document.tell(range, Severity::Warning, "suite", "no file of the workspace has this name");
            }
            return;
        }
    };
    for Needed { path, kind, file } in needed(workspace, folder, &suite) {
        let range = document.range(located.place(&format!("{path}.name")));
        document.tell(range, Severity::Error, "suite", format!("crds does not name {file}, which defines {kind}"));
    }
    let stage = SuiteStage { catalog: &workspace.catalog, policies: &policies, find_user: &*workspace.find_user };
    for case in suite.cases.iter().take(CASES_MAX) {
        let outcome = suite::run(case, &stage, None, &mut Coverage::default());
        let range = document.range(located.place(&format!("{}.name", case.path)));
        for failure in outcome.failures.iter().filter(|failure| !failure.is_of_snapshot()) {
            document.tell(range.clone(), Severity::Error, "case", failure.to_string());
        }
    }
}

/// Reads the policies that a suite names.
///
/// # Errors
/// The entries of the suite, such as `crds[0]`, that match no file of the workspace.
pub fn policies_of(workspace: &Workspace, folder: &str, suite: &Suite) -> Result<Policies, Vec<String>> {
    let mut unknown = Vec::new();
    let mut values: Vec<&Value> = Vec::new();
    for (field, paths) in [("crds", &suite.crds), ("policies", &suite.policies)] {
        for (index, path) in paths.iter().enumerate() {
            let path = resolved(folder, path);
            let mut files = workspace.files.iter().filter(|(name, _)| is_within(name, &path)).peekable();
            if files.peek().is_none() {
                unknown.push(format!("{field}[{index}]"));
            }
            if field == "policies" {
                values.extend(files.flat_map(|(_, file)| &file.policies));
            }
        }
    }
    if unknown.is_empty() { Ok(Policies::read(workspace.minor(), values)) } else { Err(unknown) }
}

/// A definition that a case needs and its suite does not name.
pub struct Needed {
    /// The path of the first case that needs it.
    pub path: String,
    /// The kind.
    pub kind: String,
    /// The file that defines it, relative to the suite.
    pub file: String,
}

/// The definitions in the workspace that cases need and that `crds` does not name: `skiff test` would not know them.
pub fn needed(workspace: &Workspace, folder: &str, suite: &Suite) -> Vec<Needed> {
    let mut named: Vec<String> = suite.crds.iter().map(|path| resolved(folder, path)).collect();
    if named.is_empty() {
        named.push(resolved(folder, DEFAULT));
    }
    let mut found: Vec<Needed> = Vec::new();
    for case in &suite.cases {
        let head = Head::from(&case.object);
        let Some(file) = workspace.file_of(head.group(), &head.kind) else { continue };
        let seen = relative(folder, file);
        let is_named = named.iter().any(|path| is_within(file, path));
        if !is_named && !found.iter().any(|known| known.file == seen && known.kind == head.kind) {
            found.push(Needed { path: case.path.clone(), kind: head.kind.clone(), file: seen });
        }
    }
    found
}
