//! Validates the values of flags as kube-apiserver does, including those that have no effect here:
//! a misspelled value causes the same error.
//!
//! [`super::sorts`] reports values of the wrong sort. The other rules are here, in kube-apiserver's
//! order; those of a single group of options are in that group's file.
//!
//! DIFFERS: flags that kube-apiserver requires (`--service-account-issuer`,
//! `--service-account-key-file`) may be missing.
//!
//! Source: `Validate` of the options in `k8s.io/apiserver/pkg/server/options`,
//! `pkg/controlplane/apiserver/options` and `cmd/kube-apiserver/app/options`, release 1.36.

mod audit;
mod authentication;
mod files;
mod log;

use super::files::Aggregate;
use super::flags::Flags;
use crate::kinds::services::allocate::PortRange;
use crate::meta::minor::Minor;
use crate::value::go_quote;

/// Numbers and durations that must not be negative, each with its error.
const NOT_NEGATIVE: [(&str, &str); 8] = [
    ("livez-grace-period", "--livez-grace-period can not be a negative value"),
    ("max-requests-inflight", "--max-requests-inflight can not be negative value"),
    ("max-mutating-requests-inflight", "--max-mutating-requests-inflight can not be negative value"),
    ("request-timeout", "--request-timeout can not be negative value"),
    ("min-request-timeout", "--min-request-timeout can not be negative value"),
    ("storage-initialization-timeout", "--storage-initialization-timeout can not be negative value"),
    ("shutdown-delay-duration", "--shutdown-delay-duration can not be negative value"),
    (
        "shutdown-watch-termination-grace-period",
        "shutdown-watch-termination-grace-period, if provided, can not be a negative value",
    ),
];
/// Flags for servers that emulate an older minor version, with the names of kube-apiserver's
/// fields.
const FORWARD_COMPATIBLE: [(&str, &str); 2] = [
    ("emulation-forward-compatible", "EmulationForwardCompatible"),
    ("runtime-config-emulation-forward-compatible", "RuntimeConfigEmulationForwardCompatible"),
];
/// The maximum share of requests whose clients are told to reconnect.
const GOAWAY_CHANCE_MAX: f64 = 0.02;
/// The entries of `--runtime-config` that decide whether the API of priorities is served; the first
/// one that is present counts.
const PRIORITIES_SERVED: [&str; 3] = ["flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all"];
/// The defaults in seconds of a leader's lease duration, its renew deadline, and its retry period.
const LEADERSHIP: [(&str, f64); 3] = [
    ("coordinated-leadership-lease-duration", 15.0),
    ("coordinated-leadership-renew-deadline", 10.0),
    ("coordinated-leadership-retry-period", 2.0),
];
const PORT_MAX: i64 = 65_535;
/// The cipher suites of Go's TLS, and older names in kube-apiserver.
const CIPHER_SUITES: [&str; 27] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

/// The errors for invalid values, at least one.
pub type RefusedValues = Aggregate<String>;

/// Checks the values of all flags of a server that emulates `minor`: first those of the log, then
/// all others, then whether the named files exist.
///
/// # Errors
///
/// Some values are invalid.
pub fn check(flags: &Flags, minor: Minor) -> Result<(), RefusedValues> {
    Aggregate::refuse(log::faults(flags))?;
    Aggregate::refuse(options(flags, minor))?;
    Aggregate::refuse(places(flags).into_iter().collect())?;
    Aggregate::refuse(files::fault(flags).into_iter().collect())
}

fn options(flags: &Flags, minor: Minor) -> Vec<String> {
    let groups = [
        generic(flags, minor),
        etcd(flags),
        priorities(flags).into_iter().collect(),
        authentication::faults(flags),
        audit::faults(flags),
        leadership(flags),
        control_plane(flags),
        serving(flags),
    ];
    groups.concat()
}

fn generic(flags: &Flags, minor: Minor) -> Vec<String> {
    let negative = NOT_NEGATIVE.iter().filter(|(name, _)| flags.is_negative(name));
    let mut faults: Vec<_> = negative.map(|(_, fault)| (*fault).to_owned()).collect();
    if flags.float("goaway-chance").is_some_and(|chance| !(0.0..=GOAWAY_CHANCE_MAX).contains(&chance)) {
        faults.push("--goaway-chance can not be less than 0 or greater than 0.02".to_owned());
    }
    faults.extend(transport_security(flags));
    let is_emulating = flags.text("emulated-version").is_some() && minor != Minor::NEWEST;
    let compatible = FORWARD_COMPATIBLE.iter().filter(|(name, _)| flags.truth(name) == Some(true) && !is_emulating);
    faults.extend(compatible.map(|(_, field)| {
        format!(
            "ServerRunOptions.{field} cannot be set to true if the emulation version is the same as the binary version"
        )
    }));
    faults
}

/// The error for invalid directives for browsers; each text is included once, as Go aggregates
/// errors.
fn transport_security(flags: &Flags) -> Option<String> {
    let texts = flags.texts("strict-transport-security-directives");
    let directives = texts.iter().filter(|text| !text.is_empty()).flat_map(|text| text.split(','));
    let fault = |directive: &str| {
        let is_age = matches!(directive.split('=').collect::<Vec<_>>()[..], ["max-age", _]);
        if directive.trim().is_empty() {
            Some("empty value in strict-transport-security-directives")
        } else if is_age || ["includeSubDomains", "preload"].contains(&directive) {
            None
        } else {
            Some(
                "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, \
                 preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information",
            )
        }
    };
    let mut faults: Vec<String> = Vec::new();
    for found in directives.filter_map(fault) {
        if !faults.iter().any(|fault| fault == found) {
            faults.push(found.to_owned());
        }
    }
    Aggregate::refuse(faults).err().map(|all| all.to_string())
}

fn etcd(flags: &Flags) -> Vec<String> {
    let mut faults = Vec::new();
    if flags.other_than("storage-backend", &["etcd3"]).is_some() {
        let allowed = "allowed values: etcd3. If not specified, it will default to 'etcd3'";
        faults.push(format!("--storage-backend invalid, {allowed}"));
    }
    if !flags.list("etcd-servers-overrides").iter().all(|text| is_override(text)) {
        let form = "must be of format: group/resource#servers, where servers are URLs, semicolon separated";
        faults.push(format!("--etcd-servers-overrides invalid, {form}"));
    }
    let is_reloaded = flags.truth("encryption-provider-config-automatic-reload") == Some(true);
    if is_reloaded && flags.text("encryption-provider-config").is_none() {
        let with = "must be set with --encryption-provider-config";
        faults.push(format!("--encryption-provider-config-automatic-reload {with}"));
    }
    let media_types = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
    if let Some(text) = flags.other_than("storage-media-type", &media_types) {
        let allowed = media_types.join(", ");
        faults.push(format!("--storage-media-type {} invalid, allowed values: {allowed}", go_quote(text)));
    }
    faults.extend(flags.list("watch-cache-sizes").iter().find_map(|text| watch_cache_size(text)));
    faults
}

/// Whether a text has the form `GROUP/RESOURCE#SERVER;SERVER`.
fn is_override(text: &str) -> bool {
    let [resource, servers] = text.split('#').collect::<Vec<_>>()[..] else { return false };
    resource.split('/').count() == 2 && servers.split(';').all(|server| !server.is_empty())
}

/// The error for a size that does not have the form `RESOURCE[.GROUP]#NUMBER`.
fn watch_cache_size(text: &str) -> Option<String> {
    let size = text.split_once('#').map(|(_, size)| size).filter(|size| !size.contains('#'));
    match size.map(str::parse::<i64>) {
        None => Some(format!("invalid value of watch cache size: {text}")),
        Some(Err(_)) => Some(format!("invalid size of watch cache size: {text}")),
        Some(Ok(..0)) => Some(format!("watch cache size cannot be negative: {text}")),
        Some(Ok(_)) => None,
    }
}

/// Priority and fairness requires its API to be served.
fn priorities(flags: &Flags) -> Option<String> {
    if flags.truth("enable-priority-and-fairness") == Some(false) {
        return None;
    }
    let config = flags.list("runtime-config").join(",");
    let said = PRIORITIES_SERVED.into_iter().find_map(|name| {
        let says = |value: &str| config.contains(&format!("{name}={value}"));
        if says("false") { Some((name, false)) } else { says("true").then_some((name, true)) }
    });
    let (name, _) = said.filter(|(_, is_served)| !is_served)?;
    Some(format!("--runtime-config={name}=false conflicts with --enable-priority-and-fairness=true"))
}

/// Priority and fairness divides the limits of requests in flight: their sum must be positive.
fn places(flags: &Flags) -> Option<String> {
    if flags.truth("enable-priority-and-fairness") == Some(false) {
        return None;
    }
    let reading = flags.number("max-requests-inflight").unwrap_or(400);
    let mutating = flags.number("max-mutating-requests-inflight").unwrap_or(200);
    let numbers = format!("MaxRequestsInFlight={reading} and MaxMutatingRequestsInFlight={mutating}");
    let fault = format!("invalid configuration: {numbers}; they must add up to something positive");
    (reading.saturating_add(mutating) <= 0).then_some(fault)
}

/// Each duration must be longer than the next one.
fn leadership(flags: &Flags) -> Vec<String> {
    let seconds = LEADERSHIP.map(|(name, default)| flags.duration(name).map_or(default, |given| given.as_secs_f64()));
    let pairs = (1..LEADERSHIP.len()).filter(|at| seconds[at - 1] <= seconds[*at]);
    pairs.map(|at| format!("--{} must be greater than --{}", LEADERSHIP[at - 1].0, LEADERSHIP[at].0)).collect()
}

fn control_plane(flags: &Flags) -> Vec<String> {
    let mut faults = Vec::new();
    let port = flags.number("kubernetes-service-node-port").unwrap_or_default();
    if !(0..=PORT_MAX).contains(&port) {
        let otherwise = "If 0, the Kubernetes master service will be of type ClusterIP";
        faults
            .push(format!("--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. {otherwise}"));
    }
    let range: PortRange = flags.text("service-node-port-range").and_then(|text| text.parse().ok()).unwrap_or_default();
    if port > 0 && range.refuse(port).is_some() {
        faults.push(format!("kubernetes service node port range {range} doesn't contain {port}"));
    }
    if let Some(count @ ..=0) = flags.number("apiserver-count") {
        faults.push(format!("--apiserver-count should be a positive number, but value '{count}' provided"));
    }
    faults
}

/// The errors for TLS settings, which kube-apiserver validates last.
fn serving(flags: &Flags) -> Vec<String> {
    let versions = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"];
    let version = flags.other_than("tls-min-version", &versions);
    let suites = flags.list("tls-cipher-suites");
    let suite = suites.iter().find(|name| !CIPHER_SUITES.contains(&name.as_str()));
    let faults = [
        version.map(|text| format!("unknown tls version {}", go_quote(text))),
        suite.map(|name| format!("Cipher suite {name} not supported or doesn't exist")),
    ];
    faults.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Manner, Table};
    use super::*;

    fn fault(arguments: &str) -> Option<String> {
        let table = Table::new(Manner::Pflag, include_str!("../../../../schemas/kube-apiserver-flags.txt"));
        let flags = table.parse(arguments.split(' ').map(str::to_owned)).expect("they are of their sorts");
        check(&flags, Minor::NEWEST).err().map(|refused| refused.to_string())
    }

    /// `tests/data/refused_flags.txt` has lines of arguments, each followed by the error of
    /// kube-apiserver 1.36.
    #[test]
    fn values_are_refused_in_kube_apiservers_words() {
        let recorded = include_str!("../../../../tests/data/refused_flags.txt");
        let lines: Vec<_> = recorded.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        for pair in lines.chunks(2) {
            let [arguments, expected] = pair else { panic!("{pair:?} has no answer") };
            assert_eq!(fault(arguments).as_deref(), Some(expected.trim()), "{arguments}");
        }
    }

    #[test]
    fn values_that_are_right_and_logs_that_are_off_are_taken() {
        for arguments in [
            "--max-requests-inflight=0 --request-timeout=0s --goaway-chance=0.02 --storage-backend=etcd3",
            "--storage-media-type=application/json --tls-min-version=VersionTLS13 --watch-cache-sizes=pods#0,deployments.apps#5",
            "--audit-log-format=x --audit-log-mode=x --audit-log-maxage=-1 --audit-webhook-mode=x",
            "--audit-log-path=- --audit-log-mode=batch --event-ttl=-1s",
            "--audit-log-path=- --audit-log-batch-buffer-size=0",
            "--logging-format=json --log-flush-frequency=5s",
            "--vmodule=a=2,b*=3",
            "--etcd-servers-overrides=/pods#http://a;http://b,apps/deployments#http://c",
            "--service-account-issuer=a --service-account-issuer=b:c --api-audiences=",
            "--service-account-jwks-uri=https://a --apiserver-count=3 --kubernetes-service-node-port=31000",
            "--kubernetes-service-node-port=100 --service-node-port-range=1-200",
            "--oidc-issuer-url=https://a --oidc-client-id=b --oidc-required-claim=c=d",
            "--strict-transport-security-directives=max-age=1,preload --tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA",
            "--requestheader-uid-headers=x-remote-uid --requestheader-allowed-names=",
            "--runtime-config=api/all=false,flowcontrol.apiserver.k8s.io/v1=true",
            "--enable-priority-and-fairness=false --runtime-config=api/ga=false",
            "--coordinated-leadership-retry-period=5s",
            "--max-requests-inflight=0 --max-mutating-requests-inflight=0 --enable-priority-and-fairness=false",
        ] {
            assert_eq!(fault(arguments), None, "{arguments}");
        }
    }
}
