//! `staticManifestsDir`: policies and webhooks in files, read once at startup.
//!
//! Input: the configuration of a plugin, which names a folder. Output: the policies with their bindings,
//! or the webhooks, from the folder's `.yaml`, `.yml` and `.json` files. They come before the
//! stored ones, and also apply to policies and webhooks, which no stored one does. Their names end
//! in `.static.k8s.io`, which stored ones must not.
//!
//! DIFFERS: Kubernetes reads the files again when they change.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/{manifest,policy/manifest,webhook/manifest}`,
//! release 1.36.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use super::configuration::{ConfigurationError, check_fields, check_type};
use super::policies::Hook;
use super::webhooks::{Configuration, WebhookKind};
use crate::author::check::BuiltIn;
use crate::crd::write::ReadError;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::policy::{GROUP, Policy, PolicyBinding, STATIC_SUFFIX};
use crate::value::{Value, go_quote as quoted, yaml};
use crate::write::metadata::metadata_mut;

const CONFIGURATION: &str = "apiserver.config.k8s.io/v1";
const FIELD: &str = "staticManifestsDir";
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Why a folder with manifests can't be loaded, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("{field}: Invalid value: {}: {fault}", quoted(value))]
    Path {
        field: &'static str,
        value: String,
        #[source]
        fault: PathFault,
    },
    #[error("{FIELD}: Forbidden: {FIELD} requires the {0} feature gate to be enabled")]
    Gate(&'static str),
    #[error("failed to load static {what} manifests from {}: {source}", shown(folder))]
    Load { what: &'static str, folder: PathBuf, source: Box<LoadError> },
}

/// What is wrong with a path.
#[derive(Debug, thiserror::Error)]
pub enum PathFault {
    #[error("must be an absolute file path")]
    Relative,
    #[error("must be a directory")]
    NotFolder,
    #[error("unable to read: {0}")]
    Unreadable(#[source] io::Error),
}

/// What is wrong with a folder.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("failed to read manifest directory {}: {source}", shown(folder))]
    Folder { folder: PathBuf, source: io::Error },
    #[error("failed to read file {}: {source}", shown(file))]
    File { file: PathBuf, source: io::Error },
    #[error("error loading {}: {fault}", file.display())]
    Manifest {
        file: PathBuf,
        #[source]
        fault: ManifestFault,
    },
    #[error(
        "binding {} references policy {} which does not exist in the manifest directory",
        quoted(binding),
        quoted(policy)
    )]
    NoPolicy { binding: String, policy: String },
}

/// What is wrong with a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestFault {
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error("Object 'Kind' is missing")]
    NoKind,
    #[error("unsupported resource type {api_version}, Kind={kind}")]
    Unsupported { api_version: String, kind: String },
    #[error("resource in file {} must have a name", shown(.0))]
    NoName(PathBuf),
    #[error("{} in file {} must have a name ending with {}", quoted(name), shown(file), quoted(STATIC_SUFFIX))]
    Suffix { name: String, file: PathBuf },
    #[error("duplicate name {} found in file {} (previously seen in {})", quoted(name), shown(file), shown(other))]
    Duplicate { name: String, file: PathBuf, other: PathBuf },
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("strict decoding error: unknown field {}", quoted(.0))]
    UnknownField(String),
    #[error("{}", joined(.0))]
    Invalid(Vec<String>),
    /// A field that static manifests must not have, or must have.
    #[error("{place}: {fault}")]
    Part { place: String, fault: String },
}

/// A single error unchanged, several in brackets.
fn joined(errors: &[String]) -> String {
    match errors {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The policies of a kind in the folder that the plugin's configuration names; none if it names no
/// folder.
///
/// # Errors
///
/// The configuration or one of the files is invalid.
pub fn policies<P: Policy>(configuration: &Value, kind: &str, minor: Minor) -> Result<Arc<[Hook<P>]>, ManifestsError> {
    check_type(configuration, &[CONFIGURATION], &format!("{kind}Configuration"))?;
    check_fields(configuration, "", &["apiVersion", "kind", FIELD])?;
    let Some(folder) = folder(configuration, minor)? else { return Ok(Arc::default()) };
    let binding = format!("{kind}Binding");
    let loaded = Loader::new(minor, &[kind, &binding]).load(&folder).and_then(|mut loaded| {
        let (policies, bindings) =
            (loaded.remove(kind).unwrap_or_default(), loaded.remove(&binding).unwrap_or_default());
        check_references(&policies, &bindings)?;
        Ok((policies, bindings))
    });
    let (policies, bindings) = loaded.map_err(|error| ManifestsError::Load {
        what: "policy",
        folder: folder.clone(),
        source: error.into(),
    })?;
    Ok(hooks(&policies, &bindings, minor))
}

/// The webhooks of a kind in the folder that the plugin's configuration names; none if it names no
/// folder.
///
/// # Errors
///
/// The configuration or one of the files is invalid.
pub fn webhooks(
    configuration: &Value,
    kind: WebhookKind,
    minor: Minor,
) -> Result<Vec<Arc<Configuration>>, ManifestsError> {
    const CREDENTIALS: &str = "kubeConfigFile";
    check_type(configuration, &[CONFIGURATION, "apiserver.k8s.io/v1alpha1"], "WebhookAdmissionConfiguration")?;
    check_fields(configuration, "", &["apiVersion", "kind", CREDENTIALS, FIELD])?;
    let credentials = configuration.str_at(&[CREDENTIALS]);
    if !credentials.is_empty() && !Path::new(credentials).is_absolute() {
        let (field, value) = (CREDENTIALS, credentials.to_owned());
        return Err(ManifestsError::Path { field, value, fault: PathFault::Relative });
    }
    let Some(folder) = folder(configuration, minor)? else { return Ok(Vec::new()) };
    let name = kind.name();
    let loaded = Loader::new(minor, &[name]).load(&folder);
    let failed =
        |error: LoadError| ManifestsError::Load { what: "webhook", folder: folder.clone(), source: error.into() };
    let loaded = loaded.map_err(failed);
    let configurations = loaded?.remove(name).unwrap_or_default();
    Ok(configurations.iter().map(|configuration| Arc::new(Configuration::decode(configuration))).collect())
}

/// The folder that a configuration names.
fn folder(configuration: &Value, minor: Minor) -> Result<Option<PathBuf>, ManifestsError> {
    let text = configuration.str_at(&[FIELD]);
    if text.is_empty() {
        return Ok(None);
    }
    let gate = Gate::ManifestBasedAdmissionControlConfig;
    if !minor.opens(gate) {
        return Err(ManifestsError::Gate(gate.name()));
    }
    let folder = PathBuf::from(text);
    let invalid = |fault| Err(ManifestsError::Path { field: FIELD, value: text.to_owned(), fault });
    if !folder.is_absolute() {
        return invalid(PathFault::Relative);
    }
    match fs::metadata(&folder) {
        Err(error) => invalid(PathFault::Unreadable(error)),
        Ok(found) if !found.is_dir() => invalid(PathFault::NotFolder),
        Ok(_) => Ok(Some(folder)),
    }
}

fn shown(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Checks that every binding has its policy. As in the database, a policy without a binding is not
/// enforced.
fn check_references(policies: &[Value], bindings: &[Value]) -> Result<(), LoadError> {
    for binding in bindings {
        let policy = binding.str_at(&["spec", "policyName"]);
        if !policies.iter().any(|known| name_of(known) == policy) {
            let (binding, policy) = (name_of(binding).to_owned(), policy.to_owned());
            return Err(LoadError::NoPolicy { binding, policy });
        }
    }
    Ok(())
}

fn hooks<P: Policy>(policies: &[Value], bindings: &[Value], minor: Minor) -> Arc<[Hook<P>]> {
    let bound = policies.iter().map(|policy| {
        let is_its = |binding: &&Value| binding.str_at(&["spec", "policyName"]) == name_of(policy);
        let bindings = bindings.iter().filter(is_its).map(|binding| Arc::new(PolicyBinding::decode(binding))).collect();
        Hook { policy: Arc::new(P::decode(policy, minor)), bindings }
    });
    bound.filter(|hook| !hook.bindings.is_empty()).collect()
}

fn name_of(object: &Value) -> &str {
    object.str_at(&["metadata", "name"])
}

/// Loads the objects of some kinds.
struct Loader<'l> {
    minor: Minor,
    kinds: &'l [&'l str],
    /// By kind and name: the file and the object.
    found: BTreeMap<String, BTreeMap<String, (PathBuf, Value)>>,
}

impl<'l> Loader<'l> {
    fn new(minor: Minor, kinds: &'l [&'l str]) -> Self {
        Loader { minor, kinds, found: BTreeMap::new() }
    }

    /// The objects in a folder by kind, sorted by name.
    fn load(mut self, folder: &Path) -> Result<BTreeMap<String, Vec<Value>>, LoadError> {
        let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let unreadable = |source| LoadError::Folder { folder: folder.to_owned(), source };
        let mut files: Vec<PathBuf> = entries.map_err(unreadable)?.iter().map(fs::DirEntry::path).collect();
        files.retain(|path| path.extension().is_some_and(|extension| is_manifest(&extension.to_string_lossy())));
        files.retain(|path| !path.is_dir());
        files.sort();
        for file in &files {
            let text = fs::read(file).map_err(|source| LoadError::File { file: file.clone(), source })?;
            let failed = |fault: ManifestFault| LoadError::Manifest { file: file.clone(), fault };
            for object in yaml::decode_all(&text).map_err(|error| failed(error.into()))? {
                self.take_in(file, &object).map_err(failed)?;
            }
        }
        let in_order =
            |named: BTreeMap<String, (PathBuf, Value)>| named.into_values().map(|(_, object)| object).collect();
        Ok(self.found.into_iter().map(|(kind, named)| (kind, in_order(named))).collect())
    }

    /// Takes in an object, or the items of a list.
    fn take_in(&mut self, file: &Path, object: &Value) -> Result<(), ManifestFault> {
        if object.is_null() {
            return Ok(());
        }
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let is_own = |kind: &str| api_version == format!("{GROUP}/v1") && self.kinds.contains(&kind);
        if is_own(kind) {
            return self.accept(file, kind, object);
        }
        if (api_version, kind) == ("v1", "List") || kind.strip_suffix("List").is_some_and(is_own) {
            return object.items_at(&["items"]).iter().try_for_each(|item| self.take_in(file, item));
        }
        if kind.is_empty() {
            return Err(ManifestFault::NoKind);
        }
        Err(ManifestFault::Unsupported { api_version: api_version.to_owned(), kind: kind.to_owned() })
    }

    fn accept(&mut self, file: &Path, kind: &str, object: &Value) -> Result<(), ManifestFault> {
        let name = name_of(object);
        if name.is_empty() {
            return Err(ManifestFault::NoName(file.to_owned()));
        }
        let Some(own) = name.strip_suffix(STATIC_SUFFIX) else {
            return Err(ManifestFault::Suffix { name: name.to_owned(), file: file.to_owned() });
        };
        if let Some((other, _)) = self.found.get(kind).and_then(|found| found.get(name)) {
            let (name, file, other) = (name.to_owned(), file.to_owned(), other.clone());
            return Err(ManifestFault::Duplicate { name, file, other });
        }
        let object = self.validated(object, own)?;
        check_parts(file, kind, &object)?;
        let named = self.found.entry(kind.to_owned()).or_default();
        named.insert(name.to_owned(), (file.to_owned(), object));
        Ok(())
    }

    /// The object with its defaults set, validated under its `own` name, without the suffix that
    /// clients may not use.
    fn validated(&self, object: &Value, own: &str) -> Result<Value, ManifestFault> {
        let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
        let Some(built_in) = BuiltIn::of_in(self.minor, api_version, kind) else {
            return Err(ManifestFault::Unsupported { api_version: api_version.to_owned(), kind: kind.to_owned() });
        };
        let mut renamed = object.clone();
        metadata_mut(&mut renamed).insert("name", Value::from(own));
        let mut checked = built_in.write(&renamed, None)?;
        if let Some(unknown) = checked.unknown.first() {
            return Err(ManifestFault::UnknownField(unknown.clone()));
        }
        if !checked.errors.is_empty() {
            let errors = checked.errors.iter().map(|rejected| rejected.error.to_string());
            return Err(ManifestFault::Invalid(errors.collect()));
        }
        metadata_mut(&mut checked.object).insert("name", Value::from(name_of(object)));
        Ok(checked.object)
    }
}

fn is_manifest(extension: &str) -> bool {
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Checks for fields that static manifests must not have, because no stored objects are looked up
/// for them.
fn check_parts(file: &Path, kind: &str, object: &Value) -> Result<(), ManifestFault> {
    let is_set = |path: &[&str]| object.at(path).is_some_and(|value| !value.is_null());
    let name = quoted(name_of(object));
    let unsupported = |place, fault| ManifestFault::Part { place, fault };
    match kind {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" if is_set(&["spec", "paramKind"]) => Err(unsupported(
            format!("{kind} {name}"),
            "spec.paramKind is not supported for static manifests".to_owned(),
        )),
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            let policy = object.str_at(&["spec", "policyName"]);
            if !policy.ends_with(STATIC_SUFFIX) {
                let (policy, suffix) = (quoted(policy), quoted(STATIC_SUFFIX));
                Err(unsupported(format!("binding {name}"), format!("spec.policyName {policy} must end with {suffix}")))
            } else if is_set(&["spec", "paramRef"]) {
                Err(unsupported(
                    format!("binding {name}"),
                    "spec.paramRef is not supported for static manifests".to_owned(),
                ))
            } else {
                Ok(())
            }
        }
        _ => object.items_at(&["webhooks"]).iter().try_for_each(|webhook| {
            let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
            let place = format!("webhook {} in {name} (file {})", quoted(webhook.str_at(&["name"])), shown(file));
            if client.get("service").is_some_and(|service| !service.is_null()) {
                let fault = "clientConfig.service is not supported for static manifests; use clientConfig.url instead";
                Err(unsupported(place, fault.to_owned()))
            } else if client.str_at(&["url"]).is_empty() {
                Err(unsupported(place, "clientConfig.url is required for static manifests".to_owned()))
            } else {
                Ok(())
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Validating;

    const POLICY: &str = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: \
                          p.static.k8s.io}, spec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], \
                          operations: [CREATE], resources: [configmaps]}]}, validations: [{expression: 'false'}]}}";
    const BINDING: &str = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: \
                           {name: b.static.k8s.io}, spec: {policyName: p.static.k8s.io, validationActions: [Deny]}}";
    const WEBHOOKS: &str = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: \
                            {name: w.static.k8s.io}, webhooks: [{name: a.example.com, sideEffects: None, \
                            admissionReviewVersions: [v1], clientConfig: {url: 'https://a.example.com/'}}]}";

    /// Loads a folder with these files; returns the names of policies and of webhooks.
    fn load(name: &str, files: &[(&str, &str)]) -> Result<(Vec<String>, Vec<String>), String> {
        let folder = std::env::temp_dir().join(format!("skiff-manifests-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("the folder is made");
        for (file, text) in files {
            fs::write(folder.join(file), text).expect("it is written");
        }
        let configuration = |kind: &str| {
            let text = format!("{{apiVersion: {CONFIGURATION}, kind: {kind}, {FIELD}: {}}}", folder.display());
            yaml::decode(text.as_bytes()).expect("the test is YAML")
        };
        let kind = "ValidatingAdmissionPolicy";
        let is_webhooks = files.iter().any(|(_, text)| text.contains("Webhook"));
        let loaded = if is_webhooks {
            let configuration = configuration("WebhookAdmissionConfiguration");
            let webhooks = webhooks(&configuration, WebhookKind::Validating, Minor::NEWEST);
            let names = |configuration: &Arc<Configuration>| configuration.webhooks[0].name.clone();
            webhooks.map(|webhooks| (Vec::new(), webhooks.iter().map(names).collect()))
        } else {
            let configuration = configuration(&format!("{kind}Configuration"));
            let hooks = policies::<Validating>(&configuration, kind, Minor::NEWEST);
            hooks.map(|hooks| (hooks.iter().map(|hook| hook.policy.head().name.clone()).collect(), Vec::new()))
        };
        fs::remove_dir_all(&folder).expect("it is there");
        loaded.map_err(|error| error.to_string().replace(&folder.display().to_string(), "DIR"))
    }

    #[test]
    fn policies_stand_in_files_and_lists() {
        let listed = format!("{{apiVersion: v1, kind: List, items: [{POLICY}, {BINDING}]}}");
        for files in [
            &[("a.yaml", &*format!("{POLICY}\n---\n{BINDING}\n---\n"))][..],
            &[("a.yml", POLICY), ("b.JSON", BINDING), ("c.txt", "not read")],
            &[("a.yaml", &listed)],
        ] {
            assert_eq!(load("files", files), Ok((vec!["p.static.k8s.io".to_owned()], Vec::new())));
        }
        assert_eq!(load("webhooks", &[("a.yaml", WEBHOOKS)]), Ok((Vec::new(), vec!["a.example.com".to_owned()])));
    }

    #[test]
    fn what_a_file_may_not_hold_is_told() {
        let in_policies = "failed to load static policy manifests from \"DIR\": ";
        let in_webhooks = "failed to load static webhook manifests from \"DIR\": ";
        let with_service = WEBHOOKS.replace("url: 'https://a.example.com/'", "service: {namespace: prod, name: guard}");
        for (name, text, expected) in [
            (
                "name",
                POLICY.replace("p.static.k8s.io", "p"),
                format!(
                    "{in_policies}error loading DIR/a.yaml: \"p\" in file \"DIR/a.yaml\" must have a name ending with \
                         \".static.k8s.io\""
                ),
            ),
            (
                "twice",
                format!("{POLICY}\n---\n{POLICY}"),
                format!(
                    "{in_policies}error loading DIR/a.yaml: duplicate name \"p.static.k8s.io\" found in file \
                         \"DIR/a.yaml\" (previously seen in \"DIR/a.yaml\")"
                ),
            ),
            (
                "policy",
                BINDING.to_owned(),
                format!(
                    "{in_policies}binding \"b.static.k8s.io\" references policy \"p.static.k8s.io\" which does not exist \
                         in the manifest directory"
                ),
            ),
            (
                "ending",
                BINDING.replace("policyName: p.static.k8s.io", "policyName: p"),
                format!(
                    "{in_policies}error loading DIR/a.yaml: binding \"b.static.k8s.io\": spec.policyName \"p\" must end \
                         with \".static.k8s.io\""
                ),
            ),
            (
                "params",
                POLICY.replace("spec: {", "spec: {paramKind: {apiVersion: v1, kind: ConfigMap}, "),
                format!(
                    "{in_policies}error loading DIR/a.yaml: ValidatingAdmissionPolicy \"p.static.k8s.io\": \
                         spec.paramKind is not supported for static manifests"
                ),
            ),
            (
                "kind",
                "{apiVersion: v1, kind: ConfigMap}".to_owned(),
                format!("{in_policies}error loading DIR/a.yaml: unsupported resource type v1, Kind=ConfigMap"),
            ),
            (
                "expression",
                POLICY.replace("'false'", "'1 +'"),
                format!(
                    "{in_policies}error loading DIR/a.yaml: spec.validations[0].expression: Invalid value: \"1 +\": \
                         compilation failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>'"
                ),
            ),
            (
                "service",
                with_service,
                format!(
                    "{in_webhooks}error loading DIR/a.yaml: webhook \"a.example.com\" in \"w.static.k8s.io\" (file \
                         \"DIR/a.yaml\"): clientConfig.service is not supported for static manifests; use clientConfig.url \
                         instead"
                ),
            ),
        ] {
            let error = load(name, &[("a.yaml", &text)]).expect_err(name);
            assert!(error.starts_with(&expected), "{error}");
        }
    }

    #[test]
    fn the_folder_is_absolute_and_there_and_the_gate_open() {
        let read = |folder: &str, minor| {
            let text = format!(
                "{{apiVersion: {CONFIGURATION}, kind: ValidatingAdmissionPolicyConfiguration, {FIELD}: {folder}}}"
            );
            let configuration = yaml::decode(text.as_bytes()).expect("the test is YAML");
            let hooks = policies::<Validating>(&configuration, "ValidatingAdmissionPolicy", minor);
            hooks.map(|hooks| hooks.len()).map_err(|error| error.to_string())
        };
        assert_eq!(read("''", Minor::NEWEST), Ok(0));
        let relative = "staticManifestsDir: Invalid value: \"a\": must be an absolute file path";
        assert_eq!(read("a", Minor::NEWEST), Err(relative.to_owned()));
        assert!(read("/nowhere/at/all", Minor::NEWEST).is_err_and(|why| why.contains("unable to read: ")));
        let closed = "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig \
                      feature gate to be enabled";
        assert_eq!(read("/", Minor::of(36)), Err(closed.to_owned()));
    }
}
