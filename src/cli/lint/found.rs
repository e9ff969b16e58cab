//! What was found in each file.

use crate::author::lint::Finding;
use crate::value::yaml::TextPosition;

/// A finding, and where it stands.
pub(super) struct Located {
    /// What it is about: `crd`, `policy`, `binding` or `object`.
    pub about: &'static str,
    /// The name of the definition, the policy, the binding or the object.
    pub name: String,
    /// The document in its file.
    pub index: usize,
    pub place: Option<TextPosition>,
    /// Whether it stands in a text that can be edited.
    pub is_whole: bool,
    pub finding: Finding,
}

/// What was found in a file.
#[derive(Default)]
pub(super) struct FileFindings {
    pub file: String,
    pub findings: Vec<Located>,
    /// Findings of less than the severity that was asked for.
    pub hidden: usize,
    pub definitions: usize,
    /// Those and their bindings.
    pub policies: usize,
    pub fixed: usize,
}

impl FileFindings {
    pub fn sort(&mut self) {
        self.findings.sort_by_key(|found| (found.index, found.place));
    }
}

pub(super) fn each(found: &[FileFindings]) -> impl Iterator<Item = (&str, &Located)> {
    found.iter().flat_map(|found| found.findings.iter().map(move |finding| (found.file.as_str(), finding)))
}

/// The definition or policy, the versions and the field that a finding is about.
pub(super) fn about(Located { name, finding, .. }: &Located) -> String {
    let versions = finding.versions.join(",");
    let words = [name.as_str(), &versions, &finding.path];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
