//! Feature gates: which ones a minor version of Kubernetes knows, and which of them are enabled.
//!
//! Input: `--feature-gates` as kube-apiserver takes it. Output: the settings of the gates that affect this server, or
//! kube-apiserver's error. Other gates that kube-apiserver knows are accepted. `schemas/feature-gates.txt` lists all of
//! them, by minor; there is no other list.
//!
//! Source: `featuregate` of `k8s.io/component-base`, release 1.37.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use thiserror::Error;

use super::gate::{Gate, Gates, NAMES};
use super::minor::Minor;

/// All gates, by their names.
static KNOWN: LazyLock<BTreeMap<&'static str, Vec<GateChange>>> = LazyLock::new(|| {
    let lines = include_str!(concat!(env!("SCHEMAS"), "/feature-gates.txt")).lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(GateChange::all_of).collect()
});

/// Why gates can't be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// No gate of the minor has this name.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// It names a component other than kube-apiserver.
    #[error("component not registered: {0}")]
    Component(String),
    /// There is no `=`.
    #[error("missing bool value for {0}")]
    Missing(String),
    /// The text after the `=` is not a boolean.
    #[error("invalid value of {0}={1}, err: strconv.ParseBool: parsing {1:?}: invalid syntax")]
    Invalid(String, String),
    /// The gates are locked to their default.
    #[error("{}", locked(.0))]
    Locked(Vec<(String, bool)>),
}

fn locked(gates: &[(String, bool)]) -> String {
    let texts: Vec<String> = gates
        .iter()
        .map(|(name, value)| format!("cannot set feature gate {name} to {}, feature is locked to {value}", !value))
        .collect();
    if let [only] = texts.as_slice() { only.clone() } else { format!("[{}]", texts.join(", ")) }
}

/// The spec of a gate since a minor; `None` since it was removed.
type GateChange = (Minor, Option<Spec>);

/// A gate in a minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spec {
    stage: GateStage,
    is_on: bool,
    is_locked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateStage {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

/// Reads a line of the data.
trait ReadLine: Sized {
    fn all_of(line: &'static str) -> Option<(&'static str, Vec<Self>)>;
}

impl ReadLine for GateChange {
    fn all_of(line: &'static str) -> Option<(&'static str, Vec<GateChange>)> {
        let (name, changes) = line.split_once(' ')?;
        let change = |text: &str| {
            let mut words = text.split_whitespace();
            let minor = Minor::of(words.next()?.parse().ok()?);
            let stage = match words.next()? {
                "alpha" => GateStage::Alpha,
                "beta" => GateStage::Beta,
                "GA" => GateStage::Stable,
                "deprecated" => GateStage::Deprecated,
                _ => return Some((minor, None)),
            };
            let is_on = words.next() == Some("on");
            Some((minor, Some(Spec { stage, is_on, is_locked: words.next() == Some("locked") })))
        };
        Some((name, changes.split(", ").filter_map(change).collect()))
    }
}

/// The spec of a gate in a minor; `None` if the gate is unknown there.
fn spec(name: &str, minor: Minor) -> Option<Spec> {
    KNOWN.get(name)?.iter().rev().find(|(since, _)| *since <= minor)?.1
}

impl Gate {
    /// Whether the gate exists in a minor, or did before.
    pub fn is_known_in(self, minor: Minor) -> bool {
        KNOWN.get(self.name()).and_then(|changes| changes.first()).is_some_and(|(since, _)| *since <= minor)
    }

    /// Whether it is enabled by default in a minor. A gate that was removed was enabled for good.
    pub fn is_open_in(self, minor: Minor) -> bool {
        static OPEN: LazyLock<[[bool; Minor::COUNT]; NAMES.len()]> = LazyLock::new(|| {
            let is_open =
                |gate: Gate, minor| gate.is_known_in(minor) && spec(gate.name(), minor).is_none_or(|spec| spec.is_on);
            NAMES
                .map(|(gate, _)| std::array::from_fn(|at| is_open(gate, Minor::of(Minor::OLDEST.number() + at as u16))))
        });
        OPEN[self as usize][minor.index()]
    }
}

impl Minor {
    /// Whether a feature gate is enabled: as it was set, or else by default.
    pub fn opens(self, gate: Gate) -> bool {
        self.gates().get(gate).unwrap_or_else(|| gate.is_open_in(self))
    }
}

impl Gates {
    /// Reads `A=true,kube:B=false` for a minor. `AllAlpha` and `AllBeta` stand for the gates that are not named.
    ///
    /// # Errors
    /// kube-apiserver's, for a gate that the minor does not know or that is locked, and for a malformed text.
    pub fn parse(text: &str, minor: Minor) -> Result<Gates, GateError> {
        let mut named: Vec<(&str, bool)> = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let entry = match entry.split_once(':') {
                None => entry,
                Some(("kube", entry)) => entry,
                Some((component, _)) => return Err(GateError::Component(component.to_owned())),
            };
            let (name, value) = entry.split_once('=').ok_or_else(|| GateError::Missing(entry.trim().to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            let invalid = || GateError::Invalid(name.to_owned(), value.to_owned());
            named.push((name, truth(value).ok_or_else(invalid)?));
        }
        let mut refused = Vec::new();
        for (name, value) in named.iter().filter(|(name, _)| stage_named(name).is_none()) {
            let spec = spec(name, minor).ok_or_else(|| GateError::Unknown((*name).to_owned()))?;
            if spec.is_locked && spec.is_on != *value {
                refused.push(((*name).to_owned(), spec.is_on));
            }
        }
        if !refused.is_empty() {
            return Err(GateError::Locked(refused));
        }
        let mut gates = Gates::default();
        for gate in Gate::all() {
            let said = |wanted: &str| named.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            let stage = spec(gate.name(), minor).map(|spec| spec.stage);
            let of_stage = || named.iter().rev().find(|(name, _)| stage.is_some() && stage_named(name) == stage);
            if let Some(is_on) = said(gate.name()).or_else(|| of_stage().map(|(_, value)| *value)) {
                gates.set(gate, is_on);
            }
        }
        Ok(gates)
    }
}

fn stage_named(name: &str) -> Option<GateStage> {
    match name {
        "AllAlpha" => Some(GateStage::Alpha),
        "AllBeta" => Some(GateStage::Beta),
        _ => None,
    }
}

/// Reads a boolean as Go's `strconv.ParseBool` does.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(minor: u16, text: &str, expected: Result<&[(Gate, bool)], &str>) {
        let read = Gates::parse(text, Minor::of(minor)).map_err(|error| error.to_string());
        let set = |gates: Gates| Gate::all().filter_map(|gate| Some((gate, gates.get(gate)?))).collect::<Vec<_>>();
        assert_eq!(read.map(set), expected.map(<[_]>::to_vec).map_err(str::to_owned), "{text} in 1.{minor}");
    }

    #[test]
    fn gates_are_read_as_kube_apiserver_reads_them() {
        check(37, "", Ok(&[]));
        check(
            31,
            "CRDValidationRatcheting=false, WatchList=t",
            Ok(&[(Gate::CrdValidationRatcheting, false), (Gate::WatchList, true)]),
        );
        check(37, "kube:WatchList=false,kube:MemoryQoS=true", Ok(&[(Gate::WatchList, false)]));
        check(37, "NoSuchGate=true", Err("unrecognized feature gate: NoSuchGate"));
        // Added later, and removed since.
        check(29, "CustomResourceFieldSelectors=true", Err("unrecognized feature gate: CustomResourceFieldSelectors"));
        check(32, "ValidatingAdmissionPolicy=true", Err("unrecognized feature gate: ValidatingAdmissionPolicy"));
        check(
            34,
            "CRDValidationRatcheting=false",
            Err("cannot set feature gate CRDValidationRatcheting to false, feature is locked to true"),
        );
        check(34, "CRDValidationRatcheting=true", Ok(&[(Gate::CrdValidationRatcheting, true)]));
        let both = "[cannot set feature gate CRDValidationRatcheting to false, feature is locked to true, cannot set feature gate \
                    CustomResourceFieldSelectors to false, feature is locked to true]";
        check(34, "CRDValidationRatcheting=false,CustomResourceFieldSelectors=0", Err(both));
        check(37, "WatchList", Err("missing bool value for WatchList"));
        let invalid = "invalid value of WatchList=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax";
        check(37, "WatchList=maybe", Err(invalid));
        check(37, "scheduler:WatchList=true", Err("component not registered: scheduler"));
    }

    #[test]
    fn all_of_a_stage_stand_behind_those_that_are_named() {
        let gates = Gates::parse("AllAlpha=true,WatchList=false", Minor::of(29)).expect("the gates are known");
        assert_eq!(gates.get(Gate::CrdValidationRatcheting), Some(true));
        assert_eq!(gates.get(Gate::WatchList), Some(false));
        // Beta, and not enabled by default yet.
        assert_eq!(gates.get(Gate::ValidatingAdmissionPolicy), None);
        assert_eq!(gates.get(Gate::HostnameOverride), None);
    }

    #[test]
    fn a_gate_stands_at_its_place_among_the_names() {
        for (place, (gate, name)) in NAMES.into_iter().enumerate() {
            assert!(gate as usize == place && KNOWN.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_minor_has_its_defaults() {
        let open = |gate: Gate| -> Vec<u16> {
            Minor::all().filter(|minor| gate.is_open_in(*minor)).map(Minor::number).collect()
        };
        assert_eq!(open(Gate::CrdValidationRatcheting), (30..=37).collect::<Vec<_>>());
        assert_eq!(open(Gate::CustomResourceFieldSelectors), (31..=37).collect::<Vec<_>>());
        assert_eq!(open(Gate::ValidatingAdmissionPolicy), (30..=37).collect::<Vec<_>>());
        assert_eq!(open(Gate::MutatingAdmissionPolicy), [36, 37]);
        for gate in [Gate::MaxUnavailableStatefulSet, Gate::ClusterTrustBundle, Gate::StorageVersionMigrator] {
            assert_eq!(open(gate), [37], "{gate:?}");
        }
        assert_eq!(open(Gate::HostnameOverride), [35, 36, 37]);
        assert_eq!(open(Gate::ApiResponseCompression), (29..=37).collect::<Vec<_>>());
    }

    #[test]
    fn every_line_of_the_data_is_read() {
        let lines =
            include_str!(concat!(env!("SCHEMAS"), "/feature-gates.txt")).lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let (name, changes) = line.split_once(' ').expect("a name and changes");
            let written: Vec<String> = KNOWN[name]
                .iter()
                .map(|(minor, spec)| {
                    let Some(spec) = spec else { return format!("{} gone", minor.number()) };
                    let stage = match spec.stage {
                        GateStage::Alpha => "alpha",
                        GateStage::Beta => "beta",
                        GateStage::Stable => "GA",
                        GateStage::Deprecated => "deprecated",
                    };
                    let (on, locked) =
                        (if spec.is_on { "on" } else { "off" }, if spec.is_locked { " locked" } else { "" });
                    format!("{} {stage} {on}{locked}", minor.number())
                })
                .collect();
            assert_eq!(written.join(", "), changes, "{name}");
        }
    }
}
