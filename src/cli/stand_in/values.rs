//! Values that kube-apiserver refuses, of flags that act here and of those that mean nothing here: who misspells one is told so,
//! as there.
//!
//! Source: `Validate` of the options in `k8s.io/apiserver/pkg/server/options` and `pkg/controlplane/apiserver/options`, release
//! 1.36.

use std::fmt;

use thiserror::Error;

use super::flags::Flags;

/// Numbers and durations that can't be below 0, each with what is said of one that is.
const NOT_NEGATIVE: [(&str, &str); 7] = [
    ("livez-grace-period", "--livez-grace-period can not be a negative value"),
    ("max-requests-inflight", "--max-requests-inflight can not be negative value"),
    ("max-mutating-requests-inflight", "--max-mutating-requests-inflight can not be negative value"),
    ("request-timeout", "--request-timeout can not be negative value"),
    ("min-request-timeout", "--min-request-timeout can not be negative value"),
    ("storage-initialization-timeout", "--storage-initialization-timeout can not be negative value"),
    ("shutdown-delay-duration", "--shutdown-delay-duration can not be negative value"),
];
/// Numbers about the files of an audit log.
const AUDIT_LOG_NUMBERS: [&str; 3] = ["audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize"];
/// The greatest part of requests whose clients are sent away.
const GOAWAY_CHANCE_MAX: f64 = 0.02;

/// What is said of the values that are refused, one at least.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct RefusedValues(Vec<String>);

impl fmt::Display for RefusedValues {
    /// As Go shows errors together.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [fault] => formatter.write_str(fault),
            faults => write!(formatter, "[{}]", faults.join(", ")),
        }
    }
}

/// Looks at the values of all flags.
///
/// # Errors
///
/// Some are refused.
pub fn check(flags: &Flags) -> Result<(), RefusedValues> {
    let mut faults: Vec<String> = Vec::new();
    let is_negative = |name: &str| flags.text(name).is_some_and(|text| text.starts_with('-'));
    faults.extend(NOT_NEGATIVE.iter().filter(|(name, _)| is_negative(name)).map(|(_, fault)| (*fault).to_owned()));
    faults.extend(goaway_chance(flags));
    let chosen = |name, allowed: &[&str], fault: fn(&str) -> String| {
        flags.text(name).filter(|text| !allowed.contains(text)).map(fault)
    };
    faults.extend(chosen("storage-backend", &["etcd3"], |_| {
        "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'".to_owned()
    }));
    let media_types = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
    faults.extend(chosen("storage-media-type", &media_types, |text| {
        let allowed = "application/json, application/vnd.kubernetes.protobuf, application/yaml";
        format!("--storage-media-type {text:?} invalid, allowed values: {allowed}")
    }));
    let versions = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"];
    faults.extend(chosen("tls-min-version", &versions, |text| format!("unknown tls version {text:?}")));
    if flags.text("audit-log-path").is_some() {
        faults.extend(chosen("audit-log-mode", &["batch", "blocking", "blocking-strict"], |text| {
            format!("invalid audit log mode {text}, allowed modes are \"batch,blocking,blocking-strict\"")
        }));
        faults.extend(chosen("audit-log-format", &["legacy", "json"], |text| {
            format!("invalid audit log format {text}, allowed formats are \"legacy,json\"")
        }));
        let negative = AUDIT_LOG_NUMBERS.into_iter().filter(|name| is_negative(name));
        faults.extend(
            negative
                .map(|name| format!("--{name} {} can't be a negative number", flags.text(name).unwrap_or_default())),
        );
    }
    faults.extend(flags.list("watch-cache-sizes").iter().find_map(|text| watch_cache_size(text)));
    if faults.is_empty() { Ok(()) } else { Err(RefusedValues(faults)) }
}

fn goaway_chance(flags: &Flags) -> Option<String> {
    let text = flags.text("goaway-chance")?;
    match text.parse::<f64>() {
        Ok(chance) if (0.0..=GOAWAY_CHANCE_MAX).contains(&chance) => None,
        Ok(_) => Some("--goaway-chance can not be less than 0 or greater than 0.02".to_owned()),
        Err(_) => {
            let why = format!("strconv.ParseFloat: parsing {text:?}: invalid syntax");
            Some(format!("invalid argument {text:?} for \"--goaway-chance\" flag: {why}"))
        }
    }
}

/// What is said of a size that is not `RESOURCE[.GROUP]#NUMBER`.
fn watch_cache_size(text: &str) -> Option<String> {
    let size = text.split_once('#').map(|(_, size)| size).filter(|size| !size.contains('#'));
    match size.map(str::parse::<i64>) {
        None => Some(format!("invalid value of watch cache size: {text}")),
        Some(Err(_)) => Some(format!("invalid size of watch cache size: {text}")),
        Some(Ok(..0)) => Some(format!("watch cache size cannot be negative: {text}")),
        Some(Ok(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Manner, Table};
    use super::*;

    fn fault(arguments: &str) -> Option<String> {
        let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
        let flags = table.parse(arguments.split(' ').map(str::to_owned)).expect("they are of their sorts");
        check(&flags).err().map(|refused| refused.to_string())
    }

    /// The texts were recorded from kube-apiserver 1.36.
    #[test]
    fn values_are_refused_in_kube_apiservers_words() {
        for (arguments, expected) in [
            ("--max-requests-inflight=-1", "--max-requests-inflight can not be negative value"),
            ("--request-timeout=-1s", "--request-timeout can not be negative value"),
            ("--livez-grace-period=-1s", "--livez-grace-period can not be a negative value"),
            ("--goaway-chance=1", "--goaway-chance can not be less than 0 or greater than 0.02"),
            (
                "--goaway-chance=x",
                "invalid argument \"x\" for \"--goaway-chance\" flag: strconv.ParseFloat: parsing \"x\": invalid syntax",
            ),
            (
                "--storage-backend=x",
                "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'",
            ),
            (
                "--storage-media-type=x",
                "--storage-media-type \"x\" invalid, allowed values: application/json, \
                 application/vnd.kubernetes.protobuf, application/yaml",
            ),
            ("--tls-min-version=x", "unknown tls version \"x\""),
            ("--watch-cache-sizes=x", "invalid value of watch cache size: x"),
            ("--watch-cache-sizes=pods#1,pods#x", "invalid size of watch cache size: pods#x"),
            (
                "--audit-log-path=- --audit-log-format=x",
                "invalid audit log format x, allowed formats are \"legacy,json\"",
            ),
            ("--audit-log-path=- --audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
            (
                "--goaway-chance=1 --max-requests-inflight=-1",
                "[--max-requests-inflight can not be negative value, \
                 --goaway-chance can not be less than 0 or greater than 0.02]",
            ),
        ] {
            assert_eq!(fault(arguments).as_deref(), Some(expected), "{arguments}");
        }
    }

    #[test]
    fn values_that_are_right_and_logs_that_are_off_are_taken() {
        for arguments in [
            "--max-requests-inflight=0 --request-timeout=0s --goaway-chance=0.02 --storage-backend=etcd3",
            "--storage-media-type=application/json --tls-min-version=VersionTLS13 --watch-cache-sizes=pods#0,deployments.apps#5",
            "--audit-log-format=x --audit-log-mode=x --audit-log-maxage=-1",
            "--audit-log-path=- --audit-log-mode=batch --event-ttl=-1s",
        ] {
            assert_eq!(fault(arguments), None, "{arguments}");
        }
    }
}
