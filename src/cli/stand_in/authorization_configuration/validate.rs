//! Validates the configuration, with all errors at once, and converts it.

use std::fs;
use std::path::Path as FilePath;
use std::time::Duration;

use super::super::files::PathError;
use super::decode::{Authorizer, Webhook};
use super::{Configured, ConfiguredWebhook, MODES, WEBHOOK};
use crate::auth::{AccessReviewVersion, Verdict};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::meta::{duration, names};
use crate::policy::access;
use crate::policy::expression::Expression;
use crate::value::{Value, json};

const CONDITIONS_MAX: usize = 64;
const TIMEOUT_MAX_NS: i64 = 30_000_000_000;

/// The configured authorizers by name, and all errors.
pub(super) fn validate(authorizers: Vec<Authorizer>, minor: Minor) -> (Vec<(String, Configured)>, ErrorList) {
    let path = Path::new("authorizers");
    let mut errors = ErrorList::new();
    if authorizers.is_empty() {
        errors.push(Error::required(&path, "at least one authorization mode must be defined"));
    }
    let (mut kinds, mut names, mut configured) = (Vec::new(), Vec::new(), Vec::new());
    for (at, Authorizer { kind, name, webhook }) in authorizers.into_iter().enumerate() {
        let path = path.index(at);
        if let Some(error) = kind_fault(&kind, &kinds, &path) {
            errors.push(error);
            continue;
        }
        kinds.push(kind.clone());
        errors.extend(name_fault(&name, &names, &path));
        names.push(name.clone());
        match (kind == WEBHOOK, webhook) {
            (true, None) => errors.push(Error::required(&path.child("webhook"), "required when type=Webhook")),
            (true, Some(webhook)) => {
                let (webhook, found) = webhook.validate(name.clone(), &path, minor);
                errors.extend(found);
                configured.push((name, Configured::Webhook(webhook)));
            }
            (false, Some(_)) => {
                let why = "may only be specified when type=Webhook";
                errors.push(Error::invalid(&path.child("webhook"), "non-null", why));
            }
            (false, None) => configured.push((name, Configured::Mode(kind))),
        }
    }
    (configured, errors)
}

fn kind_fault(kind: &str, seen: &[String], path: &Path<'_>) -> Option<Error> {
    let path = path.child("type");
    let is_repeated = kind != WEBHOOK && seen.iter().any(|one| one == kind);
    match kind {
        "" => Some(Error::required(&path, "")),
        _ if !MODES.contains(&kind) => Some(Error::not_supported(&path, kind, &MODES)),
        _ if is_repeated => Some(Error::duplicate(&path, kind)),
        _ => None,
    }
}

fn name_fault(name: &str, seen: &[String], path: &Path<'_>) -> Option<Error> {
    let path = path.child("name");
    if name.is_empty() {
        return Some(Error::required(&path, ""));
    }
    if seen.iter().any(|one| one == name) {
        return Some(Error::duplicate(&path, name));
    }
    let faults = names::is_dns1123_subdomain(name);
    (!faults.is_empty())
        .then(|| Error::invalid(&path, name, format!("authorizer name is invalid: {}", faults.join(", "))))
}

impl Webhook {
    fn validate(self, name: String, path: &Path<'_>, minor: Minor) -> (ConfiguredWebhook, ErrorList) {
        let mut errors = ErrorList::new();
        let shown = duration::print_go;
        match self.timeout_ns {
            0 => errors.push(Error::required(&path.child("timeout"), "")),
            1..=TIMEOUT_MAX_NS => {}
            other => {
                errors.push(Error::invalid(&path.child("timeout"), shown(other), "must be > 0s and <= 30s"));
            }
        }
        for (field, ns) in [("authorizedTTL", self.authorized_ttl_ns), ("unauthorizedTTL", self.unauthorized_ttl_ns)] {
            if ns < 0 {
                errors.push(Error::invalid(&path.child(field), shown(ns), "must be > 0s"));
            }
        }
        errors.extend(self.version_faults(path));
        errors.extend(chosen(&self.failure_policy, &["NoOpinion", "Deny"], &path.child("failurePolicy")));
        errors.extend(self.connection_fault(&path.child("connectionInfo")));
        let (conditions, found) = compile(&self.conditions, &path.child("matchConditions"), minor);
        errors.extend(found);
        let time = |ns: i64, counts: bool| Duration::from_nanos(if counts { ns.max(0).unsigned_abs() } else { 0 });
        let webhook = ConfiguredWebhook {
            name,
            kubeconfig: self.kubeconfig,
            version: self.version,
            timeout: time(self.timeout_ns, true),
            authorized_ttl: time(self.authorized_ttl_ns, self.caches_authorized),
            unauthorized_ttl: time(self.unauthorized_ttl_ns, self.caches_unauthorized),
            on_failure: if self.failure_policy == "Deny" { Verdict::Deny } else { Verdict::NoOpinion },
            conditions,
        };
        (webhook, errors)
    }

    fn version_faults(&self, path: &Path<'_>) -> Vec<Error> {
        let mut faults = Vec::new();
        let at = path.child("subjectAccessReviewVersion");
        match self.version.as_str() {
            "" => faults.push(Error::required(&at, "")),
            version if AccessReviewVersion::named(version).is_none() => {
                faults.push(Error::not_supported(&at, version, &["v1", "v1beta1"]));
            }
            _ => {}
        }
        let at = path.child("matchConditionSubjectAccessReviewVersion");
        match self.conditions_version.as_str() {
            "v1" => {}
            "" if self.conditions.is_empty() => {}
            "" => faults.push(Error::required(&at, "required if match conditions are specified")),
            other => faults.push(Error::not_supported(&at, other, &["v1"])),
        }
        faults
    }

    fn connection_fault(&self, path: &Path<'_>) -> Option<Error> {
        let (at, file) = (path.child("kubeConfigFile"), self.kubeconfig.as_deref());
        match self.connection.as_str() {
            "" => Some(Error::required(&path.child("type"), "")),
            "InClusterConfig" => file.map(|file| Error::invalid(&at, file, "can only be set when type=KubeConfigFile")),
            "KubeConfigFile" => match file.unwrap_or_default() {
                "" => Some(Error::required(&at, "")),
                file => file_fault(file).map(|why| Error::invalid(&at, file, why)),
            },
            other => {
                let error = Error::not_supported(&path.child("type"), other, &["InClusterConfig", "KubeConfigFile"]);
                // The fields of Go's internal type.
                let [kind, file] = [other.into(), file.map_or(Value::Null, Value::from)]
                    .map(|value: Value| json::encode_to_string(&value));
                Some(error.shown_as(format!(r#"{{"Type":{kind},"KubeConfigFile":{file}}}"#)))
            }
        }
    }
}

fn file_fault(file: &str) -> Option<String> {
    if !FilePath::new(file).is_absolute() {
        return Some("must be an absolute path".to_owned());
    }
    match fs::metadata(file) {
        Ok(found) => (!found.is_file()).then(|| "must be a regular file".to_owned()),
        Err(source) => {
            let error = PathError { call: "stat", path: file.to_owned(), source };
            Some(format!("error loading file: {error}"))
        }
    }
}

/// The error for a text that must be one of a few.
fn chosen(text: &str, known: &[&str], path: &Path<'_>) -> Option<Error> {
    match text {
        "" => Some(Error::required(path, "")),
        _ if !known.contains(&text) => Some(Error::not_supported(path, text, known)),
        _ => None,
    }
}

fn compile(texts: &[String], path: &Path<'_>, minor: Minor) -> (Vec<Expression>, ErrorList) {
    let mut errors = ErrorList::new();
    if texts.len() > CONDITIONS_MAX {
        let count = i64::try_from(texts.len()).unwrap_or(i64::MAX);
        errors.push(Error::too_many(path, count, CONDITIONS_MAX as i64));
        return (Vec::new(), errors);
    }
    let env = access::environment(minor);
    let mut compiled: Vec<Expression> = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let path = path.index(at);
        let path = path.child("expression");
        if text.trim().is_empty() {
            errors.push(Error::required(&path, ""));
        } else if texts[..at].contains(text) {
            errors.push(Error::duplicate(&path, text.as_str()));
        } else {
            match access::compile(&env, text) {
                Ok(expression) => compiled.push(expression),
                Err(error) => errors.push(error.into_field_error(&path, text)),
            }
        }
    }
    (compiled, errors)
}
