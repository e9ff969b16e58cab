//! The findings in each file.

use crate::author::lint::Finding;
use crate::value::yaml::TextPosition;

/// A finding with its place.
pub(super) struct Located {
    /// The kind of object: `crd`, `policy`, `binding` or `object`.
    pub about: &'static str,
    /// The name of the definition, the policy, the binding or the object.
    pub name: String,
    /// The index of the document in its file.
    pub index: usize,
    pub place: Option<TextPosition>,
    /// Whether it is in a document that can be edited, and not in an item of a List.
    pub is_whole: bool,
    pub finding: Finding,
}

/// The findings in a file.
#[derive(Default)]
pub(super) struct FileFindings {
    pub file: String,
    pub findings: Vec<Located>,
    /// How many findings are below the requested severity.
    pub hidden: usize,
    pub definitions: usize,
    /// The number of policies and bindings.
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

/// The name of the object, the versions and the field of a finding.
pub(super) fn about(Located { name, finding, .. }: &Located) -> String {
    let versions = finding.versions.join(",");
    let words = [name.as_str(), &versions, &finding.path];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
