//! What a namespace requires of its pods, by its labels.
//!
//! Source: `k8s.io/pod-security-admission/api`, release 1.37.

use crate::meta::field::{Error, ErrorList, Path};
use crate::value::Value;

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
const LATEST: &str = "latest";
const VERSIONS: &str = "must be \"latest\" or \"v1.x\"";
const PREFIX: &str = "pod-security.kubernetes.io/";

/// The levels, from lenient to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodSecurityLevel {
    Privileged,
    Baseline,
    Restricted,
}

impl PodSecurityLevel {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "privileged" => Some(PodSecurityLevel::Privileged),
            "baseline" => Some(PodSecurityLevel::Baseline),
            "restricted" => Some(PodSecurityLevel::Restricted),
            _ => None,
        }
    }
}

/// The error text for an unknown level.
fn levels() -> String {
    format!("must be one of {}", LEVELS.join(", "))
}

/// A level of a Kubernetes release: its minor version, or `None` for the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    pub level: PodSecurityLevel,
    pub minor: Option<u32>,
}

impl std::fmt::Display for Standard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = LEVELS[self.level as usize];
        match self.minor {
            None => write!(out, "{level}:latest"),
            Some(minor) => write!(out, "{level}:v1.{minor}"),
        }
    }
}

/// The standards that are enforced, recorded in the audit log, and warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodSecurityPolicy {
    pub enforce: Standard,
    pub audit: Standard,
    pub warn: Standard,
}

const NOTHING: Standard = Standard { level: PodSecurityLevel::Privileged, minor: None };

impl Default for PodSecurityPolicy {
    fn default() -> Self {
        PodSecurityPolicy { enforce: NOTHING, audit: NOTHING, warn: NOTHING }
    }
}

impl Standard {
    /// The standard for a level and a version; empty texts stand for `privileged` and `latest`.
    ///
    /// # Errors
    ///
    /// Whether it is the version that is invalid, the invalid text, and what it must be.
    pub fn parse<'t>(level: &'t str, version: &'t str) -> Result<Self, (bool, &'t str, String)> {
        let level = match level {
            "" => PodSecurityLevel::Privileged,
            level => PodSecurityLevel::parse(level).ok_or_else(|| (false, level, levels()))?,
        };
        match (version, minor(version)) {
            ("" | LATEST, _) => Ok(Standard { level, minor: None }),
            (_, None) => Err((true, version, VERSIONS.to_owned())),
            (_, minor) => Ok(Standard { level, minor }),
        }
    }
}

impl PodSecurityPolicy {
    /// The policy of a namespace with `labels`, and the errors of the labels; `defaults` apply
    /// where labels are missing.
    pub fn of(labels: &Value, defaults: PodSecurityPolicy) -> (Self, ErrorList) {
        let mut errors = ErrorList::new();
        let PodSecurityPolicy { mut enforce, mut audit, mut warn } = defaults;
        let has_level = read(labels, "enforce", PodSecurityLevel::Restricted, &mut enforce, &mut errors);
        read(labels, "audit", PodSecurityLevel::Privileged, &mut audit, &mut errors);
        read(labels, "warn", PodSecurityLevel::Privileged, &mut warn, &mut errors);
        let says = |name: &str| labels.get(&format!("{PREFIX}{name}")).is_some();
        // If only the enforced level is set, it is warned of, too.
        if has_level && !says("warn") && enforce.level > warn.level {
            warn.level = enforce.level;
            if !says("warn-version") {
                warn.minor = enforce.minor;
            }
        }
        (PodSecurityPolicy { enforce, audit, warn }, errors)
    }

    /// The standards above `privileged` that `labels` ask for, such as `enforce=baseline:latest`.
    pub fn asked_by(&self, labels: &Value) -> Vec<String> {
        let is_named = |mode: &str| {
            let name = format!("{PREFIX}{mode}");
            labels.get(&name).is_some() || labels.get(&format!("{name}-version")).is_some()
        };
        [("enforce", self.enforce), ("audit", self.audit), ("warn", self.warn)]
            .into_iter()
            .filter(|(mode, standard)| standard.level != PodSecurityLevel::Privileged && is_named(mode))
            .map(|(mode, standard)| format!("{mode}={standard}"))
            .collect()
    }

    /// Whether all levels are `privileged`.
    pub fn asks_nothing(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|standard| standard.level == PodSecurityLevel::Privileged)
    }
}

/// Reads the labels of a mode into `standard`; returns whether there is a valid level.
fn read(
    labels: &Value,
    mode: &str,
    otherwise: PodSecurityLevel,
    standard: &mut Standard,
    errors: &mut ErrorList,
) -> bool {
    let path = Path::new("metadata");
    let path = path.child("labels");
    let mut has_level = false;
    let name = format!("{PREFIX}{mode}");
    if let Some(level) = labels.get(&name).and_then(Value::as_str) {
        let known = PodSecurityLevel::parse(level);
        standard.level = known.unwrap_or(otherwise);
        has_level = known.is_some();
        if !has_level {
            errors.push(Error::invalid(&path.key(&name), level, levels()));
        }
    }
    let name = format!("{PREFIX}{mode}-version");
    if let Some(version) = labels.get(&name).and_then(Value::as_str) {
        standard.minor = minor(version);
        if version != LATEST && standard.minor.is_none() {
            errors.push(Error::invalid(&path.key(&name), version, VERSIONS));
        }
    }
    has_level
}

/// The minor version in `v1.X`.
fn minor(version: &str) -> Option<u32> {
    let minor = version.strip_prefix("v1.")?;
    let is_number = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    if is_number { minor.parse().ok() } else { None }
}
