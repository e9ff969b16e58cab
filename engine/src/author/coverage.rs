//! Which rules the cases of suites have covered, and how.

use std::collections::BTreeMap;

use super::check::Checked;
use super::{DefinedKind, policies};
use crate::schema::structural::Structural;
use crate::value::Value;

/// Which rules have held, and which have failed.
#[derive(Default)]
pub struct Coverage {
    /// Those of policies.
    pub policies: policies::coverage::Coverage,
    versions: BTreeMap<(String, String), BTreeMap<RuleAt, RuleCounts>>,
}

/// A rule, with the schema node that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuleAt {
    /// `spec.ports[*]`.
    pub path: String,
    /// The rule's expression.
    pub rule: String,
}

/// How often what came of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Evaluations that were true.
    pub held: u64,
    /// Evaluations that were false.
    pub failed: u64,
    /// Evaluations that ended in an error.
    pub broke: u64,
    /// The conditions within the rule: how often true, how often false.
    pub parts: BTreeMap<String, (u64, u64)>,
}

impl RuleCounts {
    fn add(&mut self, other: RuleCounts) {
        self.held += other.held;
        self.failed += other.failed;
        self.broke += other.broke;
        for (text, (held, failed)) in other.parts {
            let part = self.parts.entry(text).or_default();
            *part = (part.0 + held, part.1 + failed);
        }
    }

    /// Whether the rule has both held and failed.
    pub fn is_covered(&self) -> bool {
        self.held > 0 && self.failed + self.broke > 0
    }
}

impl Coverage {
    /// Adds all rules of a kind, none of which has run yet.
    pub fn expect(&mut self, kind: &DefinedKind) {
        for version in &kind.versions {
            let key = (kind.definition.name().to_owned(), version.version.clone());
            let rules = self.versions.entry(key).or_default();
            list_rules("", &version.structural, &mut |path, rule| {
                rules.entry(RuleAt { path: path.to_owned(), rule: rule.to_owned() }).or_default();
            });
        }
    }

    /// Adds what other cases have covered.
    pub fn merge(&mut self, other: Coverage) {
        self.policies.merge(other.policies);
        for (version, rules) in other.versions {
            let known = self.versions.entry(version).or_default();
            for (at, counts) in rules {
                known.entry(at).or_default().add(counts);
            }
        }
    }

    pub(super) fn note(&mut self, kind: &DefinedKind, object: &Value, checked: &Checked) {
        let Some(version) = kind.served(object) else { return };
        let key = (kind.definition.name().to_owned(), version.version.clone());
        let rules = self.versions.entry(key).or_default();
        for run in checked.runs.iter().filter(|run| !run.is_message) {
            // Rules under `allOf` are not listed beforehand.
            let known = rules.keys().find(|at| at.rule == run.rule && fits(&at.path, &run.path)).cloned();
            let at = known.unwrap_or_else(|| RuleAt { path: run.path.clone(), rule: run.rule.clone() });
            let counts = rules.entry(at).or_default();
            match run.truth {
                Some(true) => counts.held += 1,
                Some(false) => counts.failed += 1,
                None => counts.broke += 1,
            }
            for part in &run.parts {
                let count = |truth| u64::from(part.truth == Some(truth));
                if part.truth.is_some() {
                    let (held, failed) = counts.parts.entry(part.text.clone()).or_default();
                    *held += count(true);
                    *failed += count(false);
                }
            }
        }
    }

    /// By the names of definitions; a rule in several versions counts once.
    pub fn definitions(&self) -> BTreeMap<&str, BTreeMap<RuleAt, RuleCounts>> {
        let mut definitions: BTreeMap<&str, BTreeMap<RuleAt, RuleCounts>> = BTreeMap::new();
        for ((name, _), rules) in &self.versions {
            let known = definitions.entry(name).or_default();
            for (at, counts) in rules {
                known.entry(at.clone()).or_default().add(counts.clone());
            }
        }
        definitions
    }

    /// By the names of definitions and versions.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str, &BTreeMap<RuleAt, RuleCounts>)> {
        self.versions.iter().map(|((name, version), rules)| (name.as_str(), version.as_str(), rules))
    }
}

/// Tells `tell` each rule of a schema, with the path of its node.
pub fn list_rules(path: &str, schema: &Structural, tell: &mut impl FnMut(&str, &str)) {
    for rule in &schema.validations {
        tell(if path.is_empty() { "<nil>" } else { path }, &rule.rule);
    }
    for (name, schema) in schema.properties.iter() {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        list_rules(&path, schema, tell);
    }
    let values = schema.additional_properties.as_ref().and_then(|values| values.structural());
    for schema in schema.items.as_deref().into_iter().chain(values) {
        list_rules(&format!("{path}[*]"), schema, tell);
    }
}

/// Whether the path `path` matches `pattern`, in which `[*]` stands for any item or entry.
pub fn fits(pattern: &str, path: &str) -> bool {
    let mut rest = path;
    let mut literals = pattern.split("[*]");
    if let Some(first) = literals.next() {
        match rest.strip_prefix(first) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    for literal in literals {
        let Some(inner) = rest.strip_prefix('[') else { return false };
        let ends = inner.match_indices(']').map(|(at, _)| &inner[at + 1..]);
        match ends.into_iter().find(|behind| match literal {
            "" => behind.is_empty() || behind.starts_with('['),
            literal => behind.starts_with(literal),
        }) {
            Some(behind) => rest = &behind[literal.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_the_paths_of_their_values() {
        assert!(fits("spec.ports[*].name", "spec.ports[3].name"));
        assert!(fits("spec.labels[*]", "spec.labels[a]"));
        assert!(!fits("spec.ports[*]", "spec.ports[3].name"));
        assert!(fits("<nil>", "<nil>"));
    }
}
