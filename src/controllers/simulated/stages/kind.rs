//! The kind that a stage is for.

use crate::meta::api_version::group_of;
use crate::registry::PatchType;

/// The kind that a stage is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StagedKind {
    pub api_version: String,
    pub kind: String,
}

impl StagedKind {
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// The default patch type for its objects.
    pub(super) fn usual_patch(&self) -> PatchType {
        if self.is_core("Pod") || self.is_core("Node") { PatchType::StrategicMerge } else { PatchType::Merge }
    }

    /// Whether it is a kind of the group without a name.
    pub fn is_core(&self, kind: &str) -> bool {
        self.group().is_empty() && self.kind == kind
    }
}
