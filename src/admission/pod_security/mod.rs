//! `PodSecurity`: labels of a namespace set how restricted its pods are; pod templates only cause
//! warnings and audit annotations.
//!
//! Source: `k8s.io/pod-security-admission/admission`, release 1.37.

mod checks;
mod policy;
mod settings;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;

use super::{Admission, Attributes, Objects, Operation, ScopedResource, denied_name};
use crate::meta::Status;
use crate::meta::field::ErrorList;
use crate::meta::minor::Minor;
use crate::value::Value;
use checks::{Violation, violations};
use policy::{PodSecurityLevel, PodSecurityPolicy, Standard};

pub use settings::Settings;

/// How many pods of a namespace are checked when its level is raised.
const PODS_MAX: usize = 3000;
/// Subresources of pods that are not checked.
const OTHER_PARTS: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];
/// Kinds with a pod template, and its path.
const TEMPLATES: [(&str, &str, &[&str]); 8] = [
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
];

/// The prefix of the plugin's audit annotations.
const ANNOTATION: &str = "pod-security.kubernetes.io/";

pub struct PodSecurity {
    pub objects: Arc<dyn Objects>,
    pub settings: Settings,
}

#[async_trait]
impl Admission for PodSecurity {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if attributes.operation == Operation::Delete {
            return Ok(());
        }
        let (group, plural) = (attributes.version.group.as_str(), attributes.version.names.plural.as_str());
        match (group, plural) {
            ("", "namespaces") => self.validate_namespace(attributes, object).await,
            ("", "pods") => self.validate_pod(attributes, object).await,
            _ => match TEMPLATES.iter().find(|(known, kind, _)| (*known, *kind) == (group, plural)) {
                Some((_, _, path)) if attributes.subresource.is_empty() => {
                    self.validate_template(attributes, object.at(path)).await
                }
                _ => Ok(()),
            },
        }
    }
}

impl PodSecurity {
    /// The policy of the request's namespace, and the errors of its labels.
    async fn policy(&self, attributes: &Attributes<'_>) -> Result<(PodSecurityPolicy, ErrorList), Status> {
        let place = ScopedResource { group: "", plural: "namespaces", namespace: "" };
        let labels = self.objects.labels(place, attributes.namespace).await?;
        Ok(PodSecurityPolicy::of(&labels, self.settings.defaults))
    }

    /// Whether the namespace or the user of a request is exempt.
    fn exempts(&self, attributes: &Attributes<'_>) -> bool {
        let by_namespace = self.settings.exempts_namespace(attributes.namespace);
        if by_namespace || self.settings.exempts_user(&attributes.user.name) {
            annotate(attributes, "exempt", if by_namespace { "namespace" } else { "user" });
            return true;
        }
        false
    }

    async fn validate_namespace(&self, attributes: &Attributes<'_>, namespace: &Value) -> Result<(), Status> {
        if !attributes.subresource.is_empty() {
            return Ok(());
        }
        let defaults = self.settings.defaults;
        let (new, errors) = PodSecurityPolicy::of(labels(namespace), defaults);
        let known = attributes.old.map(|old| PodSecurityPolicy::of(labels(old), defaults));
        if !errors.is_empty() && known.as_ref().is_none_or(|(_, old_errors)| *old_errors != errors) {
            return Err(Status::invalid("", "Namespace", attributes.name, &errors));
        }
        let is_exempt = self.settings.exempts_namespace(attributes.name);
        let Some((old, _)) = known else {
            if is_exempt {
                self.warn_exempt(attributes, new, labels(namespace));
            }
            return Ok(());
        };
        let asks_less = new.enforce.minor == old.enforce.minor && new.enforce.level <= old.enforce.level;
        if new.enforce.level > PodSecurityLevel::Privileged && !asks_less {
            if is_exempt {
                self.warn_exempt(attributes, new, labels(namespace));
                return Ok(());
            }
            let place = ScopedResource { group: "", plural: "pods", namespace: attributes.name };
            let pods = self.objects.list(place).await?;
            let checked = prioritized(&pods, &self.settings);
            for warning in warnings_of_pods(attributes.name, (new.enforce, attributes.version.minor), &checked) {
                attributes.told.warn(&warning);
            }
        }
        Ok(())
    }

    /// Warns that the labels of an exempt namespace have no effect.
    fn warn_exempt(&self, attributes: &Attributes<'_>, policy: PodSecurityPolicy, labels: &Value) {
        if policy.asks_nothing() || policy == self.settings.defaults {
            return;
        }
        let asked = policy.asked_by(labels).join(", ");
        let name = attributes.name;
        let text =
            format!("namespace \"{name}\" is exempt from Pod Security, and the policy ({asked}) will be ignored");
        attributes.told.warn(&text);
    }

    async fn validate_pod(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
        if OTHER_PARTS.contains(&attributes.subresource) {
            return Ok(());
        }
        if self.exempts(attributes) {
            return Ok(());
        }
        let (policy, faults) = self.policy(attributes).await?;
        if faults.is_empty() && policy.asks_nothing() {
            annotate(attributes, "enforce-policy", &PodSecurityPolicy::default().enforce.to_string());
            return Ok(());
        }
        if attributes.old.is_some_and(|old| !is_significant(pod, old)) {
            return Ok(());
        }
        let (metadata, spec) = parts(pod);
        if self.exempts_class(attributes, spec) {
            return Ok(());
        }
        annotate(attributes, "enforce-policy", &policy.enforce.to_string());
        note(attributes, (policy, &faults), metadata, spec);
        let found = violations(policy.enforce, attributes.version.minor, metadata, spec);
        if !found.is_empty() {
            let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, details(&found));
            return Err(Status::forbidden("", "pods", denied_name(attributes, pod), &why));
        }
        warn(attributes, policy.warn, metadata, spec);
        Ok(())
    }

    async fn validate_template(&self, attributes: &Attributes<'_>, template: Option<&Value>) -> Result<(), Status> {
        let Some(template) = template.filter(|template| !template.is_null()) else { return Ok(()) };
        if self.exempts(attributes) {
            return Ok(());
        }
        let (policy, faults) = self.policy(attributes).await?;
        if faults.is_empty() && [policy.warn, policy.audit].iter().all(|it| it.level == PodSecurityLevel::Privileged) {
            return Ok(());
        }
        let (metadata, spec) = parts(template);
        if self.exempts_class(attributes, spec) {
            return Ok(());
        }
        note(attributes, (policy, &faults), metadata, spec);
        warn(attributes, policy.warn, metadata, spec);
        Ok(())
    }
}

impl PodSecurity {
    /// Whether the runtime class of a pod is exempt.
    fn exempts_class(&self, attributes: &Attributes<'_>, spec: &Value) -> bool {
        let is_exempt = self.settings.exempts_runtime_class_of(spec);
        if is_exempt {
            annotate(attributes, "exempt", "runtimeClass");
        }
        is_exempt
    }
}

/// Adds an audit annotation.
fn annotate(attributes: &Attributes<'_>, name: &str, text: &str) {
    attributes.told.annotate(format!("{ANNOTATION}{name}"), text);
}

/// Adds audit annotations for violations of the audit level and for invalid labels.
fn note(
    attributes: &Attributes<'_>,
    (policy, faults): (PodSecurityPolicy, &ErrorList),
    metadata: &Value,
    spec: &Value,
) {
    if !faults.is_empty() {
        annotate(attributes, "error", &format!("Failed to parse policy: {}", faults.aggregate()));
    }
    let found = violations(policy.audit, attributes.version.minor, metadata, spec);
    if !found.is_empty() {
        let why = format!("would violate PodSecurity \"{}\": {}", policy.audit, details(&found));
        annotate(attributes, "audit-violations", &why);
    }
}

fn labels(namespace: &Value) -> &Value {
    namespace.at(&["metadata", "labels"]).unwrap_or(&Value::Null)
}

fn parts(pod: &Value) -> (&Value, &Value) {
    (pod.get("metadata").unwrap_or(&Value::Null), pod.get("spec").unwrap_or(&Value::Null))
}

fn warn(attributes: &Attributes<'_>, standard: Standard, metadata: &Value, spec: &Value) {
    let found = violations(standard, attributes.version.minor, metadata, spec);
    if !found.is_empty() {
        attributes.told.warn(&format!("would violate PodSecurity \"{standard}\": {}", details(&found)));
    }
}

fn details(found: &[Violation]) -> String {
    let detail = |Violation { reason, detail }: &Violation| match detail.as_str() {
        "" => reason.clone(),
        detail => format!("{reason} ({detail})"),
    };
    found.iter().map(detail).collect::<Vec<_>>().join(", ")
}

/// Whether an update of a pod is checked: if it has other containers, or other images.
fn is_significant(new: &Value, old: &Value) -> bool {
    let image = |container: &Value| container.str_at(&["image"]).to_owned();
    let images = |pod: &Value, list: &str| -> Vec<String> { pod.items_at(&["spec", list]).iter().map(image).collect() };
    let is_other = |list: &str| images(new, list) != images(old, list);
    if ["containers", "initContainers"].iter().any(|list| is_other(list)) {
        return true;
    }
    let named = |pod: &Value| -> HashSet<(String, String)> {
        let containers = pod.items_at(&["spec", "ephemeralContainers"]).iter();
        containers.map(|container| (container.str_at(&["name"]).to_owned(), image(container))).collect()
    };
    !named(new).is_subset(&named(old))
}

/// The warnings about existing pods when a namespace raises its level: for each set of reasons the
/// first pod and how many others there are. `pods` are in the order in which they are checked.
fn warnings_of_pods(namespace: &str, (standard, spoken): (Standard, Minor), pods: &[&Value]) -> Vec<String> {
    let mut by_reason: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in pods.iter().take(PODS_MAX) {
        let (metadata, spec) = parts(pod);
        let reasons: Vec<String> =
            violations(standard, spoken, metadata, spec).into_iter().map(|violation| violation.reason).collect();
        if reasons.is_empty() {
            continue;
        }
        let name = pod.str_at(&["metadata", "name"]);
        let (first, count) = by_reason.entry(reasons.join(", ")).or_insert_with(|| (name.to_owned(), 0));
        if name < first.as_str() {
            *first = name.to_owned();
        }
        *count += 1;
    }
    let mut warnings = Vec::new();
    if pods.len() > PODS_MAX {
        let total = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {total} existing pods"
        ));
    }
    if !by_reason.is_empty() {
        warnings.push(format!(
            "existing pods in namespace \"{namespace}\" violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let mut told: Vec<String> = by_reason.into_iter().map(|(reason, found)| told_of(&reason, &found)).collect();
    told.sort();
    warnings.extend(told);
    warnings
}

fn told_of(reason: &str, (first, count): &(String, usize)) -> String {
    match count {
        0 | 1 => format!("{first}: {reason}"),
        2 => format!("{first} (and 1 other pod): {reason}"),
        _ => format!("{first} (and {} other pods): {reason}", count - 1),
    }
}

/// The pods in the order in which they are checked: one pod of each controller first. Pods whose runtime class is exempt
/// are left out.
fn prioritized<'p>(pods: &'p [Value], settings: &Settings) -> Vec<&'p Value> {
    let mut seen = HashSet::new();
    let checked = pods.iter().filter(|pod| !settings.exempts_runtime_class_of(parts(pod).1));
    let (mut first, rest): (Vec<&Value>, Vec<&Value>) =
        checked.partition(|pod| controller(pod).is_none_or(|uid| seen.insert(uid)));
    first.extend(rest);
    first
}

/// The uid of the controller of a pod.
fn controller(pod: &Value) -> Option<&str> {
    let mut owners = pod.items_at(&["metadata", "ownerReferences"]).iter();
    let controller = owners.find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    controller.map(|owner| owner.str_at(&["uid"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[track_caller]
    fn check(standard: &str, spec: &str, expected: &str) {
        let level = yaml::decode(format!("pod-security.kubernetes.io/enforce: {standard}").as_bytes()).expect("YAML");
        let (policy, errors) = PodSecurityPolicy::of(&level, PodSecurityPolicy::default());
        assert!(errors.is_empty());
        let spec = yaml::decode(spec.as_bytes()).expect("the test is YAML");
        let found = violations(policy.enforce, Minor::default(), &Value::Null, &spec);
        assert_eq!(details(&found), expected, "{spec:?}");
    }

    #[test]
    fn the_newest_standard_is_that_of_the_minor_that_is_spoken() {
        let spec = "securityContext: {sysctls: [{name: net.ipv4.tcp_notsent_lowat}, {name: net.ipv4.tcp_rmem}]}";
        let spec = yaml::decode(spec.as_bytes()).expect("the test is YAML");
        let found = |version: &str, spoken: Minor| {
            let standard = Standard::parse("baseline", version).expect("it is a standard");
            details(&violations(standard, spoken, &Value::Null, &spec))
        };
        let one = "forbidden sysctls (net.ipv4.tcp_notsent_lowat)";
        let both = "forbidden sysctls (net.ipv4.tcp_notsent_lowat, net.ipv4.tcp_rmem)";
        assert_eq!(found("latest", Minor::of(37)), "");
        assert_eq!(found("v1.36", Minor::of(37)), one);
        assert_eq!(found("latest", Minor::of(36)), one);
        assert_eq!(found("v1.37", Minor::of(36)), one);
        assert_eq!(found("v1.37", Minor::of(31)), both);
    }

    #[test]
    fn baseline_keeps_pods_from_the_host() {
        check("baseline", "{containers: [{name: c}]}", "");
        check("baseline", "{hostPID: true, hostIPC: true}", "host namespaces (hostPID=true, hostIPC=true)");
        check(
            "baseline",
            "containers: [{name: a, ports: [{hostPort: 80}]}, {name: b, ports: [{hostPort: 9}, {hostPort: 80}]}]",
            "hostPort (containers \"a\", \"b\" use hostPorts 80, 9)",
        );
        check(
            "baseline",
            "{securityContext: {seLinuxOptions: {type: odd, user: u}, sysctls: [{name: kernel.x}]}}",
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"odd\"; user may not be set), \
             forbidden sysctls (kernel.x)",
        );
    }

    #[test]
    fn pods_of_an_exempt_runtime_class_are_not_counted() {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
        let settings = Settings::parse(&read(
            "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, \
             exemptions: {runtimeClasses: [kata]}}",
        ));
        let settings = settings.expect("it is valid");
        let level = read("pod-security.kubernetes.io/enforce: baseline");
        let (policy, _) = PodSecurityPolicy::of(&level, PodSecurityPolicy::default());
        let pod = |name: &str, class: &str| {
            read(&format!("{{metadata: {{name: {name}}}, spec: {{hostPID: true, runtimeClassName: {class}}}}}"))
        };
        let pods = [pod("a", "kata"), pod("b", "gvisor"), pod("c", "''"), pod("d", "kata")];
        assert_eq!(
            warnings_of_pods("n", (policy.enforce, Minor::NEWEST), &prioritized(&pods, &settings)),
            [
                "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
                "b (and 1 other pod): host namespaces",
            ]
        );
    }

    #[test]
    fn restricted_asks_for_more_and_replaces_what_is_weaker() {
        check(
            "restricted",
            "{containers: [{name: c, securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, \
             capabilities: {drop: [ALL], add: [SYS_ADMIN]}, seccompProfile: {type: RuntimeDefault}}}], \
             volumes: [{name: h, hostPath: {path: /x}}]}",
            "unrestricted capabilities (container \"c\" must not include \"SYS_ADMIN\" in \
             securityContext.capabilities.add), restricted volume types (volume \"h\" uses restricted volume type \
             \"hostPath\")",
        );
    }
}
