//! The description of a lint.

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A convention that a new kind or version can follow; those in use cannot, or have reasons not to.
    Advice,
    /// Something does not do what it seems to, and can be corrected without harm to stored objects and to clients.
    Warning,
    /// The server refuses the definition or the policy, or no object passes.
    Error,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Advice];

    /// The severity as a word.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A check of definitions or policies.
#[derive(Debug, PartialEq, Eq)]
pub struct Lint {
    /// The name by which users refer to it.
    pub id: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// What a finding says.
    pub finds: &'static str,
    /// Why it matters.
    pub reason: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// Whether [`super::super::fix`] has an edit for it that changes nothing for objects.
    pub is_fixed: bool,
}
