//! What a namespace asks of its pods, by its labels.
//!
//! Source: `k8s.io/pod-security-admission/api`, release 1.37.

use crate::meta::field::{Error, ErrorList, Path};
use crate::value::Value;

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];
const PREFIX: &str = "pod-security.kubernetes.io/";

/// How strict the standard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level as some release of Kubernetes understood it: its minor version, or none for the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standard {
    pub level: Level,
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

/// What is refused, noted, and warned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub enforce: Standard,
    pub audit: Standard,
    pub warn: Standard,
}

const NOTHING: Standard = Standard { level: Level::Privileged, minor: None };

impl Policy {
    /// The policy of a namespace with `labels`, and what is wrong with them.
    pub fn of(labels: &Value) -> (Self, ErrorList) {
        let mut errors = ErrorList::new();
        let mut enforce = NOTHING;
        let has_level = read(labels, "enforce", Level::Restricted, &mut enforce, &mut errors);
        let (mut audit, mut warn) = (NOTHING, NOTHING);
        read(labels, "audit", Level::Privileged, &mut audit, &mut errors);
        read(labels, "warn", Level::Privileged, &mut warn, &mut errors);
        let says = |name: &str| labels.get(&format!("{PREFIX}{name}")).is_some();
        // Who asks for more than nothing is warned, too.
        if has_level && !says("warn") && enforce.level > warn.level {
            warn.level = enforce.level;
            if !says("warn-version") {
                warn.minor = enforce.minor;
            }
        }
        (Policy { enforce, audit, warn }, errors)
    }

    /// Whether it asks for nothing at all.
    pub fn asks_nothing(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|standard| standard.level == Level::Privileged)
    }
}

/// Reads the level and the version of a mode; whether there is a level that is known.
fn read(labels: &Value, mode: &str, otherwise: Level, standard: &mut Standard, errors: &mut ErrorList) -> bool {
    let path = Path::new("metadata");
    let path = path.child("labels");
    let mut has_level = false;
    let name = format!("{PREFIX}{mode}");
    if let Some(level) = labels.get(&name).and_then(Value::as_str) {
        standard.level = match level {
            "privileged" => Level::Privileged,
            "baseline" => Level::Baseline,
            "restricted" => Level::Restricted,
            _ => otherwise,
        };
        has_level = LEVELS.contains(&level);
        if !has_level {
            let why = format!("must be one of {}", LEVELS.join(", "));
            errors.push(Error::invalid(&path.key(&name), level, why));
        }
    }
    let name = format!("{PREFIX}{mode}-version");
    if let Some(version) = labels.get(&name).and_then(Value::as_str) {
        standard.minor = minor(version);
        if version != "latest" && standard.minor.is_none() {
            errors.push(Error::invalid(&path.key(&name), version, "must be \"latest\" or \"v1.x\""));
        }
    }
    has_level
}

/// The minor version of `v1.X`.
fn minor(version: &str) -> Option<u32> {
    let minor = version.strip_prefix("v1.")?;
    let is_number = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    if is_number { minor.parse().ok() } else { None }
}
