//! Which versions of built-in kinds are served: kube-apiserver's `--runtime-config`.
//!
//! Source: `ResourceConfig` of apiserver, release 1.37.

use std::collections::BTreeSet;

use thiserror::Error;

use super::Kind;
use crate::meta::minor::Minor;

/// The settings. The most specific one wins: that of a resource, then that of its group version, then that of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    stages: Vec<(Stage, bool)>,
    /// The settings for names such as `apps/v1` or `apps/v1/deployments`.
    named: Vec<(String, bool)>,
    /// The version of Kubernetes that the server implements.
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
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "api/all" => Stage::All,
            "api/ga" => Stage::GeneralAvailability,
            "api/beta" => Stage::Beta,
            "api/alpha" => Stage::Alpha,
            _ => return None,
        })
    }

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

/// Why settings are invalid. The messages are kube-apiserver's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuntimeConfigError {
    /// A name that is neither that of a stage, nor of a group version, nor of a resource.
    #[error("runtime-config invalid key {0}")]
    Key(String),
    /// A resource that is not in lower case, as in paths: the whole name, and the resource.
    #[error("invalid key {0}: group/version/resource and resource is always lowercase plural, not {1:?}")]
    Resource(String, String),
    /// Groups that Kubernetes does not have, each with the given version.
    #[error("unknown api groups {}", .0.join(","))]
    Groups(Vec<String>),
    /// A stage, and its value, which is neither `true` nor `false`.
    #[error("invalid value {0}={1}")]
    Stage(String, String),
    /// A group version or a resource, and its value, which is not a boolean.
    #[error("invalid value of {0}: {1}, err: strconv.ParseBool: parsing {1:?}: invalid syntax")]
    Value(String, String),
    /// Nothing would be served.
    #[error("invalid runtime-config with only api/all=false")]
    Nothing,
}

/// A stage that no longer has a meaning.
const LEGACY: &str = "api/legacy";
/// Groups of Kubernetes other than those of the built-in kinds.
const OTHER_GROUPS: [&str; 4] = ["admission.k8s.io", "apiextensions.k8s.io", "extensions", "imagepolicy.k8s.io"];

impl RuntimeConfig {
    /// Makes the settings for what that version of Kubernetes serves by default.
    pub fn of(minor: Minor) -> Self {
        RuntimeConfig { minor, ..RuntimeConfig::default() }
    }

    /// Sets the version of Kubernetes.
    #[must_use]
    pub fn for_minor(self, minor: Minor) -> Self {
        RuntimeConfig { minor, ..self }
    }

    /// The version of Kubernetes that the server implements.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Parses settings such as `api/beta=true,apps/v1=false`; a group version or a resource without a value is true. A
    /// version that a group does not have is accepted: an older minor version may have had it.
    ///
    /// # Errors
    ///
    /// A name that is neither that of a stage, nor of a group version, nor of a resource; an unknown group; a value
    /// that is not a boolean; or settings by which nothing would be served.
    pub fn parse(text: &str) -> Result<Self, RuntimeConfigError> {
        let mut config = RuntimeConfig::default();
        let mut unknown = BTreeSet::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            let (name, value) = (canonical(name.trim()), value.trim());
            if name == LEGACY {
                continue;
            }
            if let Some(stage) = Stage::named(name) {
                config.stages.push((stage, stage_value(name, value)?));
                continue;
            }
            let (group, version) = group_version(name)?;
            if !is_known(group) {
                unknown.insert(format!("{group}/{version}"));
            }
            // The core group's name is empty.
            config.named.push((name.trim_start_matches('/').to_owned(), named_value(name, value)?));
        }
        match (&config.stages[..], &config.named[..]) {
            _ if !unknown.is_empty() => Err(RuntimeConfigError::Groups(unknown.into_iter().collect())),
            ([(Stage::All, false)], []) => Err(RuntimeConfigError::Nothing),
            _ => Ok(config),
        }
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
        if !kind.is_in(self.minor) || kind.gate.is_some_and(|gate| !self.minor.opens(gate)) {
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

/// Returns the name, or `/v1` for `v1` and `api/v1`, the older names of the core group's version. A resource after an
/// older name is dropped: the setting applies to the whole version. Source: `Complete` of
/// `pkg/controlplane/apiserver/options`, release 1.36.
fn canonical(name: &str) -> &str {
    let is_core = ["v1", "api/v1"]
        .into_iter()
        .any(|core| name.strip_prefix(core).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    if is_core { "/v1" } else { name }
}

/// The group and the version in `apps/v1` or `apps/v1/deployments`; those of the core group in `/v1`.
fn group_version(name: &str) -> Result<(&str, &str), RuntimeConfigError> {
    match name.split('/').collect::<Vec<_>>()[..] {
        [group, version] => Ok((group, version)),
        [group, version, resource] if resource.to_lowercase() == resource => Ok((group, version)),
        [_, _, resource] => Err(RuntimeConfigError::Resource(name.to_owned(), resource.to_owned())),
        _ => Err(RuntimeConfigError::Key(name.to_owned())),
    }
}

/// Whether Kubernetes has the group in any minor version.
fn is_known(group: &str) -> bool {
    OTHER_GROUPS.contains(&group) || super::of_all_minors().any(|kind| kind.group == group)
}

fn stage_value(name: &str, value: &str) -> Result<bool, RuntimeConfigError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(RuntimeConfigError::Stage(name.to_owned(), value.to_owned())),
    }
}

/// Parses a boolean as Go's `strconv.ParseBool` does; an empty value is true.
fn named_value(name: &str, value: &str) -> Result<bool, RuntimeConfigError> {
    match value {
        "" | "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(RuntimeConfigError::Value(name.to_owned(), value.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::gate::Gates;

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
    fn what_is_asked_for_needs_its_gate_too() {
        let serves = |minor, gates, api_version, kind| {
            let gates = Gates::parse(gates, minor).expect("the test is valid");
            let config = RuntimeConfig::parse("api/all=true").expect("the test is valid");
            config.for_minor(minor.with_gates(gates)).kind(api_version, kind).is_some()
        };
        let workload = |gates| serves(Minor::NEWEST, gates, "scheduling.k8s.io/v1alpha3", "Workload");
        assert!(!workload(""));
        assert!(workload("GenericWorkload=true"));
        let bundle = |minor| serves(minor, "", "certificates.k8s.io/v1beta1", "ClusterTrustBundle");
        assert!(bundle(Minor::NEWEST));
        assert!(!bundle(Minor::of(36)));
        // kube-apiserver serves these without a look at their gate.
        assert!(serves(Minor::of(36), "", "resource.k8s.io/v1beta2", "DeviceTaintRule"));
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
        check("api/all=false,api/beta=true", false);
        check("api/all=false,coordination.k8s.io/v1=true", true);
        check("coordination.k8s.io/v1=true,coordination.k8s.io/v1/leases=false", false);
        check("api/ga=false", false);
        check("api/beta=false,api/alpha=true", true);
        check("coordination.k8s.io/v1=f", false);
        check("api/all=false,/v1,coordination.k8s.io/v1=", true);
        check("api/all=false,api/ga=true,api/legacy=false", true);
    }

    #[test]
    fn the_core_group_is_named_in_several_ways() {
        let pods = super::super::find("", "pods").expect("the kind is there");
        let serves = |text: &str| RuntimeConfig::parse(text).expect("the test is valid").serves(pods);
        for text in ["/v1", "v1", "api/v1", "api/v1/pods", "v1/services", "/v1/pods"] {
            assert!(!serves(&format!("{text}=false")), "{text}");
        }
        assert!(serves("/v1/services=false"));
    }

    /// The messages were recorded from kube-apiserver 1.36.
    #[test]
    fn settings_that_name_nothing_are_told() {
        let told = |text: &str| RuntimeConfig::parse(text).map_err(|error| error.to_string());
        for (text, expected) in [
            ("x", "runtime-config invalid key x"),
            ("apps/v1/deployments/x=true", "runtime-config invalid key apps/v1/deployments/x"),
            ("nosuch/v1=true,apps/v1=true,api/v1,api/v2", "unknown api groups api/v2,nosuch/v1"),
            ("api/all=maybe", "invalid value api/all=maybe"),
            ("api/alpha", "invalid value api/alpha="),
            ("apps/v1=x", "invalid value of apps/v1: x, err: strconv.ParseBool: parsing \"x\": invalid syntax"),
            ("api/all=false", "invalid runtime-config with only api/all=false"),
            (
                "apps/v1/Deployment",
                "invalid key apps/v1/Deployment: group/version/resource and resource is always lowercase plural, not \"Deployment\"",
            ),
        ] {
            assert_eq!(told(text), Err(expected.to_owned()), "{text}");
        }
        assert!(told("resource.k8s.io/v1alpha2=true,extensions/v1beta1,apiextensions.k8s.io/v1beta1=false").is_ok());
    }
}
