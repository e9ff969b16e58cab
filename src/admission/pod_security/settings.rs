//! The plugin's configuration: the defaults for namespaces without labels, and the exemptions.
//!
//! Source: `k8s.io/pod-security-admission/admission/api`, release 1.37.

use std::collections::BTreeSet;

use super::policy::{PodSecurityPolicy, Standard};
use crate::admission::configuration::{ConfigurationError, check_fields, check_type, names};
use crate::meta::names::{is_dns1123_label, is_dns1123_subdomain};
use crate::value::Value;

const GROUP_VERSIONS: [&str; 3] = [
    "pod-security.admission.config.k8s.io/v1",
    "pod-security.admission.config.k8s.io/v1beta1",
    "pod-security.admission.config.k8s.io/v1alpha1",
];

/// The settings that apply to all namespaces.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub defaults: PodSecurityPolicy,
    users: BTreeSet<String>,
    namespaces: BTreeSet<String>,
    runtime_classes: BTreeSet<String>,
}

impl Settings {
    /// Decodes a PodSecurityConfiguration.
    ///
    /// # Errors
    ///
    /// The value is of another type or invalid.
    pub fn parse(value: &Value) -> Result<Self, ConfigurationError> {
        check_type(value, &GROUP_VERSIONS, "PodSecurityConfiguration")?;
        check_fields(value, "", &["apiVersion", "kind", "defaults", "exemptions"])?;
        let part = |name: &str| value.get(name).filter(|part| !part.is_null());
        let mut settings = Settings::default();
        if let Some(defaults) = part("defaults") {
            const FIELDS: [&str; 6] = ["enforce", "enforce-version", "audit", "audit-version", "warn", "warn-version"];
            check_fields(defaults, "defaults", &FIELDS)?;
            let standard = |mode: &str| -> Result<Standard, ConfigurationError> {
                let text = |name: &str| match defaults.get(name) {
                    None | Some(Value::Null) => Ok(""),
                    Some(value) => value
                        .as_str()
                        .ok_or_else(|| ConfigurationError::Type { path: format!("defaults.{name}"), wanted: "a text" }),
                };
                let version = format!("{mode}-version");
                Standard::parse(text(mode)?, text(&version)?).map_err(|(is_version, bad, why)| {
                    let field = if is_version { &version } else { mode };
                    ConfigurationError::Invalid { path: format!("defaults.{field}"), value: format!("{bad:?}"), why }
                })
            };
            settings.defaults =
                PodSecurityPolicy { enforce: standard("enforce")?, audit: standard("audit")?, warn: standard("warn")? };
        }
        if let Some(exemptions) = part("exemptions") {
            check_fields(exemptions, "exemptions", &["usernames", "namespaces", "runtimeClasses"])?;
            let list = |name: &str, check: fn(&str) -> Vec<String>| {
                names(exemptions.get(name), &format!("exemptions.{name}"), check)
            };
            settings.namespaces = list("namespaces", is_dns1123_label)?;
            settings.runtime_classes = list("runtimeClasses", is_dns1123_subdomain)?;
            settings.users = list("usernames", |name| match name {
                "" => vec!["username must not be empty".to_owned()],
                _ => Vec::new(),
            })?;
        }
        Ok(settings)
    }

    pub fn exempts_namespace(&self, name: &str) -> bool {
        self.namespaces.contains(name)
    }

    pub fn exempts_user(&self, name: &str) -> bool {
        self.users.contains(name)
    }

    /// Whether the runtime class of a pod is exempt.
    pub fn exempts_runtime_class_of(&self, spec: &Value) -> bool {
        self.runtime_classes.contains(spec.str_at(&["runtimeClassName"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn parse(rest: &str) -> Result<Settings, String> {
        let text = format!("{{apiVersion: {}, kind: PodSecurityConfiguration, {rest}}}", GROUP_VERSIONS[0]);
        let value = yaml::decode(text.as_bytes()).expect("the test is YAML");
        Settings::parse(&value).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_and_exemptions_are_read() {
        let settings = parse(
            "defaults: {enforce: baseline, enforce-version: v1.30, warn: restricted}, \
             exemptions: {usernames: [jane], namespaces: [kube-system], runtimeClasses: [kata]}",
        );
        let settings = settings.expect("it is valid");
        let PodSecurityPolicy { enforce, audit, warn } = settings.defaults;
        let told = [enforce, audit, warn].map(|standard| standard.to_string());
        assert_eq!(told, ["baseline:v1.30", "privileged:latest", "restricted:latest"]);
        assert!(settings.exempts_user("jane") && !settings.exempts_user(""));
        assert!(settings.exempts_namespace("kube-system") && !settings.exempts_namespace("n"));
        let spec = yaml::decode(b"runtimeClassName: kata").expect("the test is YAML");
        assert!(settings.exempts_runtime_class_of(&spec) && !settings.exempts_runtime_class_of(&Value::Null));
    }

    #[test]
    fn what_is_not_valid_is_named() {
        for (rest, expected) in [
            (
                "defaults: {enforce: strict}",
                "defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
            ),
            (
                "defaults: {warn-version: '1.3'}",
                "defaults.warn-version: Invalid value: \"1.3\": must be \"latest\" or \"v1.x\"",
            ),
            ("defaults: {enforced: baseline}", "strict decoding error: unknown field \"defaults.enforced\""),
            ("exemptions: {usernames: [a, a]}", "exemptions.usernames[1]: Duplicate value: \"a\""),
            (
                "exemptions: {usernames: ['']}",
                "exemptions.usernames[0]: Invalid value: \"\": username must not be empty",
            ),
        ] {
            assert_eq!(parse(rest).err().as_deref(), Some(expected));
        }
        assert!(parse("exemptions: {namespaces: [A_b]}").is_err());
        assert!(Settings::parse(&yaml::decode(b"{kind: Pod, apiVersion: v1}").expect("YAML")).is_err());
    }
}
