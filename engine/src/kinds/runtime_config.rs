//! Which versions of built-in kinds are served: kube-apiserver's `--runtime-config`.
//!
//! Source: `ResourceConfig` of apiserver, release 1.37.

use thiserror::Error;

use super::Kind;
use crate::meta::minor::Minor;

/// Settings in the order in which they apply: those of whole stages first, then of group versions, then of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    stages: Vec<(Stage, bool)>,
    /// `apps/v1`, or `apps/v1/deployments`.
    named: Vec<(String, bool)>,
    /// The version of Kubernetes that the server speaks for.
    minor: Minor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    All,
    GeneralAvailability,
    Beta,
    Alpha,
}

impl Stage {
    fn of(version: &str) -> Self {
        if version.contains("alpha") {
            Stage::Alpha
        } else if version.contains("beta") {
            Stage::Beta
        } else {
            Stage::GeneralAvailability
        }
    }
}

/// A value that is not a truth value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("runtime-config: {name}={value}: the value must be true or false")]
pub struct RuntimeConfigError {
    /// The group, version, resource or stage.
    pub name: String,
    /// The value.
    pub value: String,
}

impl RuntimeConfig {
    /// What that version of Kubernetes serves by default.
    pub fn of(minor: Minor) -> Self {
        RuntimeConfig { minor, ..RuntimeConfig::default() }
    }

    /// The same settings for that version of Kubernetes.
    #[must_use]
    pub fn for_minor(self, minor: Minor) -> Self {
        RuntimeConfig { minor, ..self }
    }

    /// The version of Kubernetes that the server speaks for.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Reads `api/beta=true,apps/v1=false`; a name without a value is true.
    ///
    /// # Errors
    ///
    /// A value that is not a truth value.
    pub fn parse(text: &str) -> Result<Self, RuntimeConfigError> {
        let mut config = RuntimeConfig::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('=').unwrap_or((entry, "true"));
            let value = match value.trim() {
                "true" | "" => true,
                "false" => false,
                other => return Err(RuntimeConfigError { name: name.to_owned(), value: other.to_owned() }),
            };
            config.add(name.trim(), value);
        }
        Ok(config)
    }

    fn add(&mut self, name: &str, value: bool) {
        let stage = match name {
            "api/all" => Stage::All,
            "api/ga" => Stage::GeneralAvailability,
            "api/beta" => Stage::Beta,
            "api/alpha" => Stage::Alpha,
            // The core group has no name of its own.
            _ => return self.named.push((name.strip_prefix("api/").unwrap_or(name).to_owned(), value)),
        };
        self.stages.push((stage, value));
    }

    /// The kind that is served in this version, `GROUP/VERSION`.
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&'static Kind> {
        let is_it = |known: &&Kind| known.kind == kind && known.api_version() == api_version;
        super::of_all_minors().filter(is_it).find(|known| self.serves(known))
    }

    /// Every kind that is served, once for each of its versions.
    pub fn kinds(&self) -> impl Iterator<Item = &'static Kind> {
        super::of_all_minors().filter(|kind| self.serves(kind))
    }

    /// Whether a kind is served in its version.
    pub fn serves(&self, kind: &Kind) -> bool {
        let is_gated = kind.is_default || kind.is_former;
        if !kind.is_in(self.minor) || (is_gated && kind.gate.is_some_and(|gate| !self.minor.opens(gate))) {
            return false;
        }
        let api_version = kind.api_version();
        let resource = format!("{api_version}/{}", kind.plural);
        let named = |wanted: &str| self.named.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| *value);
        if let Some(value) = named(&resource).or_else(|| named(&api_version)) {
            return value;
        }
        let stage = Stage::of(kind.version);
        let of_stage = |wanted| self.stages.iter().rev().find(|(stage, _)| *stage == wanted).map(|(_, value)| *value);
        of_stage(stage).or_else(|| of_stage(Stage::All)).unwrap_or(kind.is_default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::gates::Gates;

    #[track_caller]
    fn check(config: &str, expected: bool) {
        let lease = super::super::find("coordination.k8s.io", "leases").expect("the kind is there");
        let config = RuntimeConfig::parse(config).expect("the test is valid");
        assert_eq!(config.serves(lease), expected);
    }

    #[test]
    fn a_kind_goes_with_its_gate() {
        let migration = super::super::find("storagemigration.k8s.io", "storageversionmigrations").expect("it is there");
        let serves = |minor, gates| {
            let gates = Gates::parse(gates, minor).expect("the test is valid");
            RuntimeConfig::of(minor.with_gates(gates)).serves(migration)
        };
        assert!(serves(Minor::NEWEST, ""));
        assert!(!serves(Minor::NEWEST, "StorageVersionMigrator=false"));
        // v1 came with 1.37.
        assert!(!serves(Minor::of(36), "StorageVersionMigrator=true"));
    }

    #[test]
    fn former_versions_are_those_that_the_newest_minor_has_removed() {
        let newest = u32::from(Minor::NEWEST.number());
        for kind in super::super::of_all_minors() {
            let named = crate::types::of_kind(kind.group, kind.version, kind.kind);
            let is_removed = named.is_some_and(|named| !named.is_in(newest));
            assert_eq!(kind.is_former, is_removed, "{} {}", kind.api_version(), kind.kind);
        }
    }

    #[test]
    fn the_narrower_setting_wins() {
        check("", true);
        check("api/all=false", false);
        check("api/all=false,coordination.k8s.io/v1=true", true);
        check("coordination.k8s.io/v1=true,coordination.k8s.io/v1/leases=false", false);
        check("api/ga=false", false);
        check("api/beta=false,api/alpha", true);
        assert!(RuntimeConfig::parse("api/all=maybe").is_err());
    }
}
