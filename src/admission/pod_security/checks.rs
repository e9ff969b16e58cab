//! The checks of the Pod Security Standards.
//!
//! Input: a pod's metadata and spec, and a standard. Output: the violations, in the order of the
//! standard's checks.
//!
//! Source: `k8s.io/pod-security-admission/policy`, release 1.37.

use std::collections::BTreeSet;

use super::policy::{PodSecurityLevel, Standard};
use crate::meta::minor::Minor;
use crate::value::{Value, go_quote};
use crate::work;

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Safe sysctls, each with the minor version that added it.
const SYSCTLS: [(&str, u32); 14] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
    ("net.ipv4.tcp_slow_start_after_idle", 37),
    ("net.ipv4.tcp_notsent_lowat", 37),
];
const SELINUX_TYPES: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];
const SELINUX_ENGINE: (&str, u32) = ("container_engine_t", 31);
const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

/// A violation that a check has found.
pub struct Violation {
    pub reason: String,
    pub detail: String,
}

/// A pod, and the minor version of the standard.
struct CheckedPod<'p> {
    metadata: &'p Value,
    spec: &'p Value,
    minor: u32,
}

type PodCheck = fn(&CheckedPod<'_>) -> Option<Violation>;

/// The checks of the level baseline, in order; each with the minor version since which restricted
/// replaces it.
const BASELINE: [(PodCheck, Option<u32>); 12] = [
    (app_armor, None),
    (capabilities, Some(22)),
    (host_namespaces, None),
    (host_path, Some(0)),
    (host_ports, None),
    (probe_hosts, None),
    (privileged, None),
    (proc_mount, Some(35)),
    (selinux, None),
    (seccomp, Some(19)),
    (sysctls, None),
    (host_process, None),
];

const RESTRICTED: [PodCheck; 7] = [
    privilege_escalation,
    dropped_capabilities,
    proc_mount_always,
    volume_types,
    run_as_non_root,
    run_as_user,
    required_seccomp,
];

/// The violations of `standard` by a pod. No standard is newer than the minor version that the server speaks.
pub fn violations(standard: Standard, spoken: Minor, metadata: &Value, spec: &Value) -> Vec<Violation> {
    let newest = u32::from(spoken.number());
    let pod = CheckedPod { metadata, spec, minor: standard.minor.map_or(newest, |minor| minor.min(newest)) };
    let is_restricted = standard.level == PodSecurityLevel::Restricted;
    if standard.level == PodSecurityLevel::Privileged {
        return Vec::new();
    }
    let is_replaced = |replaced: &Option<u32>| is_restricted && replaced.is_some_and(|since| pod.minor >= since);
    let baseline = BASELINE.iter().filter(|(_, replaced)| !is_replaced(replaced)).map(|(check, _)| check);
    let restricted = RESTRICTED.iter().filter(|_| is_restricted);
    baseline.chain(restricted).filter_map(|check| check(&pod)).collect()
}

impl<'p> CheckedPod<'p> {
    fn containers(&self) -> impl Iterator<Item = &'p Value> + use<'p> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| spec.items_at(&[list])).inspect(|_| work::step())
    }

    /// The names of the containers for which `is_bad` is true.
    fn bad(&self, is_bad: impl FnMut(&&'p Value) -> bool) -> Vec<&'p str> {
        self.containers().filter(is_bad).map(name).collect()
    }

    /// A field of the pod's security context.
    fn own(&self, path: &[&str]) -> Option<&'p Value> {
        self.spec.get("securityContext")?.at(path).filter(|value| !value.is_null())
    }

    fn is_of_windows(&self) -> bool {
        self.minor >= 25 && self.spec.str_at(&["os", "name"]) == "windows"
    }

    /// Whether the pod has a user namespace: its users have no rights on the host.
    fn has_own_users(&self) -> bool {
        self.minor >= 35 && self.spec.get("hostUsers") == Some(&Value::Bool(false))
    }
}

fn name(container: &Value) -> &str {
    container.str_at(&["name"])
}

/// A field of a container's security context.
fn context<'c>(container: &'c Value, path: &[&str]) -> Option<&'c Value> {
    container.get("securityContext")?.at(path).filter(|value| !value.is_null())
}

fn is_true(value: Option<&Value>) -> bool {
    value == Some(&Value::Bool(true))
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn quoted<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let joined = texts.into_iter().collect::<Vec<_>>().join("\", \"");
    format!("\"{joined}\"")
}

fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

/// Formats names as `container "a"` or `containers "a", "b"`.
fn called(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container", "containers"), quoted(names.iter().copied()))
}

/// Formats the pod, if it is bad itself, and the bad containers; `None` if there are none.
fn setters(is_pod: bool, names: &[&str]) -> Option<String> {
    let pod = is_pod.then(|| "pod".to_owned());
    let containers = (!names.is_empty()).then(|| called(names));
    let setters: Vec<String> = pod.into_iter().chain(containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

fn violation(reason: &str, detail: String) -> Option<Violation> {
    Some(Violation { reason: reason.to_owned(), detail })
}

fn app_armor(pod: &CheckedPod<'_>) -> Option<Violation> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let is_bad = |type_: Option<&Value>| type_.is_some_and(|type_| !PROFILES.contains(&text(Some(type_))));
    let mut values = BTreeSet::new();
    let own = pod.own(&["appArmorProfile", "type"]);
    values.extend(is_bad(own).then(|| text(own).to_owned()));
    let bad = pod.bad(|container| {
        let type_ = context(container, &["appArmorProfile", "type"]);
        values.extend(is_bad(type_).then(|| text(type_).to_owned()));
        is_bad(type_)
    });
    let annotations = pod.metadata.get("annotations").and_then(Value::as_object);
    let is_fit = |value: &str| value.is_empty() || value == "runtime/default" || value.starts_with("localhost/");
    let entries = annotations.into_iter().flat_map(|entries| entries.iter());
    let odd: Vec<String> = entries
        .filter(|(key, value)| key.starts_with(PREFIX) && !is_fit(text(Some(value))))
        .map(|(key, value)| format!("{key}={}", go_quote(text(Some(value)))))
        .collect();
    let noted = (!odd.is_empty()).then(|| plural(odd.len(), "annotation", "annotations").to_owned());
    let setters: Vec<String> = setters(is_bad(own), &bad).into_iter().chain(noted).collect();
    if setters.is_empty() {
        return None;
    }
    let values: Vec<String> = values.into_iter().chain(odd).collect();
    let reason = plural(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let values = quoted(values.iter().map(String::as_str));
    violation(reason, format!("{} must not set AppArmor profile type to {values}", setters.join(" and ")))
}

fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).unwrap_or_default().iter().filter_map(Value::as_str)
}

fn capabilities(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut odd = BTreeSet::new();
    let bad = pod.bad(|container| {
        let own: Vec<&str> = texts(context(container, &["capabilities", "add"]))
            .filter(|capability| !CAPABILITIES.contains(capability))
            .collect();
        odd.extend(own.iter().copied());
        !own.is_empty()
    });
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must not include {} in securityContext.capabilities.add", called(&bad), quoted(odd));
    violation("non-default capabilities", detail)
}

fn host_namespaces(pod: &CheckedPod<'_>) -> Option<Violation> {
    let names = ["hostNetwork", "hostPID", "hostIPC"];
    let shared: Vec<String> =
        names.iter().filter(|name| is_true(pod.spec.get(name))).map(|name| format!("{name}=true")).collect();
    if shared.is_empty() { None } else { violation("host namespaces", shared.join(", ")) }
}

fn host_path(pod: &CheckedPod<'_>) -> Option<Violation> {
    let volumes = pod.spec.items_at(&["volumes"]).iter();
    let bad: Vec<&str> = volumes.filter(|volume| has(volume, "hostPath")).map(name).collect();
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} {}", plural(bad.len(), "volume", "volumes"), quoted(bad));
    violation("hostPath volumes", detail)
}

fn has(object: &Value, field: &str) -> bool {
    object.get(field).is_some_and(|value| !value.is_null())
}

fn host_ports(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut ports = BTreeSet::new();
    let bad = pod.bad(|container| {
        let numbers = container.items_at(&["ports"]).iter().filter_map(|port| port.get("hostPort")?.as_i64());
        let own: Vec<String> = numbers.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        let is_bad = !own.is_empty();
        ports.extend(own);
        is_bad
    });
    if bad.is_empty() {
        return None;
    }
    let uses = plural(bad.len(), "uses", "use");
    let noun = plural(ports.len(), "hostPort", "hostPorts");
    let ports = ports.into_iter().collect::<Vec<_>>().join(", ");
    violation("hostPort", format!("{} {uses} {noun} {ports}", called(&bad)))
}

fn probe_hosts(pod: &CheckedPod<'_>) -> Option<Violation> {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    if pod.minor < 34 {
        return None;
    }
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        let handlers = HANDLERS.iter().filter_map(|path| container.at(path));
        let named = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|way| handler.str_at(&[way, "host"])));
        for host in named.filter(|host| !host.is_empty()) {
            bad.insert(name(container));
            hosts.insert(host);
        }
    }
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    let noun = plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    let detail = format!("{} {} {noun} {}", called(&bad), plural(bad.len(), "uses", "use"), quoted(hosts));
    violation("probe or lifecycle host", detail)
}

fn privileged(pod: &CheckedPod<'_>) -> Option<Violation> {
    let bad = pod.bad(|container| is_true(context(container, &["privileged"])));
    if bad.is_empty() {
        return None;
    }
    violation("privileged", format!("{} must not set securityContext.privileged=true", called(&bad)))
}

fn proc_mount(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.has_own_users() { None } else { mounted(pod) }
}

fn proc_mount_always(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.minor < 35 { None } else { mounted(pod) }
}

fn mounted(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let bad = pod.bad(|container| {
        let own = context(container, &["procMount"]).and_then(Value::as_str).filter(|own| *own != "Default");
        types.extend(own);
        own.is_some()
    });
    if bad.is_empty() {
        return None;
    }
    violation("procMount", format!("{} must not set securityContext.procMount to {}", called(&bad), quoted(types)))
}

fn selinux(pod: &CheckedPod<'_>) -> Option<Violation> {
    let (mut types, mut has_user, mut has_role) = (BTreeSet::new(), false, false);
    let mut is_bad = |options: Option<&Value>| {
        let Some(options) = options else { return false };
        let type_ = options.str_at(&["type"]);
        let is_known = SELINUX_TYPES.contains(&type_) || (type_ == SELINUX_ENGINE.0 && pod.minor >= SELINUX_ENGINE.1);
        types.extend((!is_known).then(|| type_.to_owned()));
        let (user, role) = (!options.str_at(&["user"]).is_empty(), !options.str_at(&["role"]).is_empty());
        has_user |= user;
        has_role |= role;
        !is_known || user || role
    };
    let is_pod = is_bad(pod.own(&["seLinuxOptions"]));
    let bad = pod.bad(|container| is_bad(context(container, &["seLinuxOptions"])));
    let setters = setters(is_pod, &bad)?;
    let named = (!types.is_empty())
        .then(|| format!("{} {}", plural(types.len(), "type", "types"), quoted(types.iter().map(String::as_str))));
    let user = has_user.then(|| "user may not be set".to_owned());
    let role = has_role.then(|| "role may not be set".to_owned());
    let data: Vec<String> = named.into_iter().chain(user).chain(role).collect();
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {}", data.join("; "));
    violation("seLinuxOptions", detail)
}

fn seccomp(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.minor < 19 { seccomp_annotations(pod) } else { forbidden_seccomp(pod) }
}

fn seccomp_annotations(pod: &CheckedPod<'_>) -> Option<Violation> {
    let own = "seccomp.security.alpha.kubernetes.io/pod".to_owned();
    let prefix = "container.seccomp.security.alpha.kubernetes.io/";
    let keys = std::iter::once(own).chain(pod.containers().map(|container| format!("{prefix}{}", name(container))));
    let is_fit = |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let odd: BTreeSet<String> = keys
        .filter_map(|key| {
            let value = pod.metadata.at(&["annotations", &key])?.as_str()?;
            (!is_fit(value)).then(|| format!("{key}={}", go_quote(value)))
        })
        .collect();
    if odd.is_empty() {
        return None;
    }
    let noun = plural(odd.len(), "annotation", "annotations");
    violation("seccompProfile", format!("forbidden {noun} {}", odd.into_iter().collect::<Vec<_>>().join(", ")))
}

fn forbidden_seccomp(pod: &CheckedPod<'_>) -> Option<Violation> {
    let mut values = BTreeSet::new();
    let mut is_bad = |type_: Option<&Value>| {
        let odd = type_.and_then(Value::as_str).filter(|type_| !PROFILES.contains(type_));
        values.extend(odd.map(str::to_owned));
        odd.is_some()
    };
    let is_pod = is_bad(pod.own(&["seccompProfile", "type"]));
    let bad = pod.bad(|container| is_bad(context(container, &["seccompProfile", "type"])));
    let setters = setters(is_pod, &bad)?;
    let values = quoted(values.iter().map(String::as_str));
    violation("seccompProfile", format!("{setters} must not set securityContext.seccompProfile.type to {values}"))
}

fn sysctls(pod: &CheckedPod<'_>) -> Option<Violation> {
    let list = pod.own(&["sysctls"]).and_then(Value::as_array).unwrap_or_default();
    let is_safe = |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && pod.minor >= *since);
    let bad: Vec<&str> = list.iter().map(name).filter(|name| !is_safe(name)).collect();
    if bad.is_empty() { None } else { violation("forbidden sysctls", bad.join(", ")) }
}

fn host_process(pod: &CheckedPod<'_>) -> Option<Violation> {
    const PATH: &[&str] = &["windowsOptions", "hostProcess"];
    let bad = pod.bad(|container| is_true(context(container, PATH)));
    let setters = setters(is_true(pod.own(PATH)), &bad)?;
    violation("hostProcess", format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"))
}

fn privilege_escalation(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.minor < 8 || pod.is_of_windows() {
        return None;
    }
    let bad = pod.bad(|container| context(container, &["allowPrivilegeEscalation"]) != Some(&Value::Bool(false)));
    if bad.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", called(&bad));
    violation("allowPrivilegeEscalation != false", detail)
}

fn dropped_capabilities(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.minor < 22 || pod.is_of_windows() {
        return None;
    }
    let keeping = pod.bad(|container| !texts(context(container, &["capabilities", "drop"])).any(|name| name == "ALL"));
    let mut odd = BTreeSet::new();
    let adding = pod.bad(|container| {
        let own: Vec<&str> = texts(context(container, &["capabilities", "add"]))
            .filter(|capability| *capability != "NET_BIND_SERVICE")
            .collect();
        odd.extend(own.iter().copied());
        !own.is_empty()
    });
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", called(&keeping)));
    }
    if !adding.is_empty() {
        let odd = quoted(odd);
        details.push(format!("{} must not include {odd} in securityContext.capabilities.add", called(&adding)));
    }
    if details.is_empty() { None } else { violation("unrestricted capabilities", details.join("; ")) }
}

fn volume_types(pod: &CheckedPod<'_>) -> Option<Violation> {
    let volumes = pod.spec.items_at(&["volumes"]).iter();
    let bad: Vec<&Value> = volumes.filter(|volume| !VOLUMES.iter().any(|kind| has(volume, kind))).collect();
    if bad.is_empty() {
        return None;
    }
    let kind = |volume: &&Value| OTHER_VOLUMES.iter().find(|kind| has(volume, kind)).copied().unwrap_or("unknown");
    let types: BTreeSet<&str> = bad.iter().map(kind).collect();
    let (volumes, uses) = (plural(bad.len(), "volume", "volumes"), plural(bad.len(), "uses", "use"));
    let noun = plural(types.len(), "restricted volume type", "restricted volume types");
    let names = quoted(bad.into_iter().map(name));
    violation("restricted volume types", format!("{volumes} {names} {uses} {noun} {}", quoted(types)))
}

fn run_as_non_root(pod: &CheckedPod<'_>) -> Option<Violation> {
    const PATH: &[&str] = &["runAsNonRoot"];
    const REASON: &str = "runAsNonRoot != true";
    if pod.has_own_users() {
        return None;
    }
    let own = pod.own(PATH).and_then(Value::as_bool);
    let of = |container: &Value| context(container, PATH).and_then(Value::as_bool);
    let refusing = pod.bad(|container| of(container) == Some(false));
    if let Some(setters) = setters(own == Some(false), &refusing) {
        return violation(REASON, format!("{setters} must not set securityContext.runAsNonRoot=false"));
    }
    let silent = pod.bad(|container| of(container).is_none() && own != Some(true));
    if silent.is_empty() {
        return None;
    }
    violation(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", called(&silent)))
}

fn run_as_user(pod: &CheckedPod<'_>) -> Option<Violation> {
    if pod.minor < 23 || pod.has_own_users() {
        return None;
    }
    let is_root = |user: Option<&Value>| user == Some(&Value::Int(0));
    let bad = pod.bad(|container| is_root(context(container, &["runAsUser"])));
    let setters = setters(is_root(pod.own(&["runAsUser"])), &bad)?;
    violation("runAsUser=0", format!("{setters} must not set runAsUser=0"))
}

fn required_seccomp(pod: &CheckedPod<'_>) -> Option<Violation> {
    const PATH: &[&str] = &["seccompProfile", "type"];
    if pod.minor < 19 || pod.is_of_windows() {
        return None;
    }
    if let Some(forbidden) = forbidden_seccomp(pod) {
        return Some(forbidden);
    }
    let is_set = pod.own(PATH).is_some();
    let silent = pod.bad(|container| !is_set && context(container, PATH).is_none());
    if silent.is_empty() {
        return None;
    }
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        called(&silent)
    );
    violation("seccompProfile", detail)
}
