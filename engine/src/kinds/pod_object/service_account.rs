//! The account of a pod: its default, the token that its containers get, and the secrets that it may name.
//!
//! Source: `plugin/pkg/admission/serviceaccount`, release 1.36.

use std::collections::BTreeSet;

use thiserror::Error;

use super::references;
use crate::kinds::defaults::structure;
use crate::kinds::pod::annotations::MIRROR;
use crate::object;
use crate::value::Value;

/// The account of pods that name none.
const DEFAULT: &str = "default";
/// Says of an account that its pods use no secrets but those that it names.
const ENFORCES: &str = "kubernetes.io/enforce-mountable-secrets";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const DEFAULT_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3607;

/// Whether a kubelet has made the pod by itself: nothing is added to it.
pub fn is_mirror(pod: &Value) -> bool {
    pod.at(&["metadata", "annotations", MIRROR]).is_some()
}

/// The account of a pod, which gets the default one if it names none.
pub fn set_default(pod: &mut Value) -> String {
    let spec = structure(pod, "spec").make_object();
    let named = spec.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default();
    let name = if named.is_empty() { DEFAULT } else { named }.to_owned();
    for field in ["serviceAccountName", "serviceAccount"] {
        spec.insert(field, Value::from(name.as_str()));
    }
    name
}

/// Adds what a pod gets from its account: a token, and the secrets by which images are pulled. `suffix` makes the name of
/// the volume.
pub fn admit(pod: &mut Value, account: &Value, suffix: &dyn Fn() -> String) {
    let truth = |object: &Value, path: &[&str]| object.at(path).and_then(Value::as_bool);
    const FIELD: &str = "automountServiceAccountToken";
    if truth(pod, &["spec", FIELD]).or_else(|| truth(account, &[FIELD])).unwrap_or(true) {
        mount_token(pod, suffix);
    }
    let secrets = account.items_at(&["imagePullSecrets"]);
    if pod.items_at(&["spec", "imagePullSecrets"]).is_empty() && !secrets.is_empty() {
        let named = secrets.iter().map(|secret| object! { "name" => secret.str_at(&["name"]) });
        let named: Vec<Value> = named.collect();
        structure(pod, "spec").make_object().insert("imagePullSecrets", named.into());
    }
}

fn mount_token(pod: &mut Value, suffix: &dyn Fn() -> String) {
    let volumes = pod.items_at(&["spec", "volumes"]).iter();
    let known = volumes.map(|volume| volume.str_at(&["name"])).find(|name| name.starts_with(VOLUME_PREFIX));
    let has_volume = known.is_some();
    let name = known.map_or_else(|| format!("{VOLUME_PREFIX}{}", suffix()), str::to_owned);
    let mut is_needed = false;
    for list in ["initContainers", "containers"] {
        let Some(Value::Array(containers)) = pod.at_mut(&["spec", list]) else { continue };
        for container in containers {
            let mut mounts = container.items_at(&["volumeMounts"]).iter();
            if mounts.any(|mount| mount.str_at(&["mountPath"]) == MOUNT_PATH) {
                continue;
            }
            push(
                container.make_object().entry("volumeMounts"),
                object! { "name" => name.as_str(), "readOnly" => true, "mountPath" => MOUNT_PATH },
            );
            is_needed = true;
        }
    }
    if is_needed && !has_volume {
        let volume = object! { "name" => name, "projected" => token_source() };
        push(structure(pod, "spec").make_object().entry("volumes"), volume);
    }
}

fn push(list: &mut Value, item: Value) {
    match list {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array(vec![item]),
    }
}

/// A token, the authority that signs for the server, and the namespace.
fn token_source() -> Value {
    let token = object! { "path" => "token", "expirationSeconds" => TOKEN_SECONDS };
    let authority = object! {
        "name" => "kube-root-ca.crt",
        "items" => vec![object! { "key" => "ca.crt", "path" => "ca.crt" }],
    };
    let reference = object! { "apiVersion" => "v1", "fieldPath" => "metadata.namespace" };
    let namespace = object! { "items" => vec![object! { "path" => "namespace", "fieldRef" => reference }] };
    object! {
        "defaultMode" => DEFAULT_MODE,
        "sources" => vec![
            object! { "serviceAccountToken" => token },
            object! { "configMap" => authority },
            object! { "downwardAPI" => namespace },
        ],
    }
}

/// Whether a mirror pod names nothing that the server would have to give it.
///
/// # Errors
/// What it names.
pub fn check_mirror(pod: &Value) -> Result<(), &'static str> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Err("a mirror pod may not reference service accounts");
    }
    if references::secrets(pod).next().is_some() {
        return Err("a mirror pod may not reference secrets");
    }
    let sources = |volume: &'_ Value| volume.items_at(&["projected", "sources"]).to_vec();
    let mut projected = pod.items_at(&["spec", "volumes"]).iter().flat_map(sources);
    if projected.any(|source| source.get("serviceAccountToken").is_some()) {
        Err("a mirror pod may not use ServiceAccountToken volume projections")
    } else {
        Ok(())
    }
}

/// The first secret that a pod names and its account does not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SecretError {
    /// A variable of a container refers to it.
    #[error(
        "{what} {container} with envVar {variable} referencing secret.secretName=\"{secret}\" is not allowed because service \
         account {account} does not reference that secret"
    )]
    Variable {
        /// `container`, `init container` or `ephemeral container`.
        what: &'static str,
        /// The container's name.
        container: String,
        /// The variable's name.
        variable: String,
        /// The secret's name.
        secret: String,
        /// The account's name.
        account: String,
    },
    /// A container takes all its variables from it.
    #[error(
        "{what} {container} with envFrom referencing secret.secretName=\"{secret}\" is not allowed because service account \
         {account} does not reference that secret"
    )]
    Variables {
        /// `container`, `init container` or `ephemeral container`.
        what: &'static str,
        /// The container's name.
        container: String,
        /// The secret's name.
        secret: String,
        /// The account's name.
        account: String,
    },
    /// A volume refers to it.
    #[error(
        "volume with secret.secretName=\"{secret}\" is not allowed because service account {account} does not reference that \
         secret"
    )]
    Volume {
        /// The secret's name.
        secret: String,
        /// The account's name.
        account: String,
    },
    /// Images are pulled with it.
    #[error(
        "imagePullSecrets[{index}].name=\"{secret}\" is not allowed because service account {account} does not reference that \
         imagePullSecret"
    )]
    Pulling {
        /// Where it is in the list.
        index: usize,
        /// The secret's name.
        secret: String,
        /// The account's name.
        account: String,
    },
}

/// Checks that a pod only names secrets of its account, if the account enforces that. `is_ephemeral` is for writes of
/// ephemeral containers: only these are checked.
///
/// # Errors
/// The first secret that is not the account's.
pub fn check_secrets(pod: &Value, account: &Value, is_ephemeral: bool) -> Result<(), SecretError> {
    let enforces = account.at(&["metadata", "annotations", ENFORCES]).and_then(Value::as_str).unwrap_or_default();
    if !matches!(enforces, "1" | "t" | "T" | "true" | "TRUE" | "True") {
        return Ok(());
    }
    let names = |list: &str| -> BTreeSet<&str> {
        account.items_at(&[list]).iter().map(|secret| secret.str_at(&["name"])).collect()
    };
    let (mountable, owner) = (names("secrets"), account.str_at(&["metadata", "name"]));
    if is_ephemeral {
        return check_containers(pod, "ephemeralContainers", "ephemeral container", &mountable, owner);
    }
    for volume in pod.items_at(&["spec", "volumes"]).iter().filter(|volume| volume.get("secret").is_some()) {
        let name = volume.str_at(&["secret", "secretName"]);
        if !mountable.contains(name) {
            return Err(SecretError::Volume { secret: name.to_owned(), account: owner.to_owned() });
        }
    }
    for (list, what) in [("initContainers", "init container"), ("containers", "container")] {
        check_containers(pod, list, what, &mountable, owner)?;
    }
    let pulling = names("imagePullSecrets");
    for (index, secret) in pod.items_at(&["spec", "imagePullSecrets"]).iter().enumerate() {
        let name = secret.str_at(&["name"]);
        if !pulling.contains(name) {
            return Err(SecretError::Pulling { index, secret: name.to_owned(), account: owner.to_owned() });
        }
    }
    Ok(())
}

fn check_containers(
    pod: &Value,
    list: &str,
    what: &'static str,
    mountable: &BTreeSet<&str>,
    account: &str,
) -> Result<(), SecretError> {
    let foreign = |reference: &Value| {
        let secret = reference.str_at(&["name"]);
        (!mountable.contains(secret)).then(|| secret.to_owned())
    };
    for container in pod.items_at(&["spec", list]) {
        let (name, account) = (|| container.str_at(&["name"]).to_owned(), || account.to_owned());
        for env in container.items_at(&["env"]) {
            let reference = env.at(&["valueFrom", "secretKeyRef"]);
            if let Some(secret) = reference.and_then(foreign) {
                let variable = env.str_at(&["name"]).to_owned();
                return Err(SecretError::Variable { what, container: name(), variable, secret, account: account() });
            }
        }
        for source in container.items_at(&["envFrom"]) {
            if let Some(secret) = source.get("secretRef").and_then(foreign) {
                return Err(SecretError::Variables { what, container: name(), secret, account: account() });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    fn admitted(pod: &str, account: &str) -> Value {
        let mut pod = read(pod);
        set_default(&mut pod);
        admit(&mut pod, &read(account), &|| "abcde".to_owned());
        pod
    }

    #[test]
    fn a_pod_gets_the_token_of_the_default_account() {
        let pod = admitted("spec: {containers: [{name: c}], initContainers: [{name: i}]}", "metadata: {name: default}");
        let expected = "
spec:
  serviceAccountName: default
  serviceAccount: default
  containers:
  - &container
    name: c
    volumeMounts: [{name: kube-api-access-abcde, readOnly: true, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]
  initContainers: [{<<: *container, name: i}]
  volumes:
  - name: kube-api-access-abcde
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {path: token, expirationSeconds: 3607}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}
";
        assert_eq!(pod, read(expected));
    }

    #[test]
    fn the_pod_decides_before_its_account_whether_there_is_a_token() {
        let has_volume = |pod: &str, account: &str| !admitted(pod, account).items_at(&["spec", "volumes"]).is_empty();
        let (yes, no) = ("automountServiceAccountToken: true", "automountServiceAccountToken: false");
        let pod = |rest: &str| format!("spec: {{containers: [{{name: c}}], {rest}}}");
        assert!(!has_volume(&pod(""), no));
        assert!(has_volume(&pod(yes), no));
        assert!(!has_volume(&pod(no), yes));
        let mounted = format!("spec: {{containers: [{{name: c, volumeMounts: [{{mountPath: {MOUNT_PATH}}}]}}]}}");
        assert!(!has_volume(&mounted, yes));
    }

    #[test]
    fn a_pod_without_secrets_for_images_gets_those_of_its_account() {
        let account = "imagePullSecrets: [{name: a}]";
        let secrets = |pod: &str| admitted(pod, account).at(&["spec", "imagePullSecrets"]).cloned();
        assert_eq!(secrets("spec: {containers: []}"), Some(read("[{name: a}]")));
        assert_eq!(secrets("spec: {containers: [], imagePullSecrets: [{name: b}]}"), Some(read("[{name: b}]")));
    }

    #[test]
    fn an_account_may_limit_secrets_to_its_own() {
        let account = read(
            "{metadata: {name: s, annotations: {kubernetes.io/enforce-mountable-secrets: 'true'}}, secrets: [{name: own}]}",
        );
        let check = |pod: &str, is_ephemeral: bool, expected: Result<(), &str>| {
            let checked = check_secrets(&read(pod), &account, is_ephemeral).map_err(|error| error.to_string());
            assert_eq!(checked, expected.map_err(str::to_owned), "{pod}");
        };
        let volume = |name: &str| format!("spec: {{volumes: [{{name: v, secret: {{secretName: {name}}}}}]}}");
        check(&volume("own"), false, Ok(()));
        let why = "volume with secret.secretName=\"x\" is not allowed because service account s does not reference that \
                   secret";
        check(&volume("x"), false, Err(why));
        let container = |list: &str| {
            format!("spec: {{{list}: [{{name: c, env: [{{name: E, valueFrom: {{secretKeyRef: {{name: x}}}}}}]}}]}}")
        };
        let why = |what: &str| {
            format!(
                "{what} c with envVar E referencing secret.secretName=\"x\" is not allowed because service account s does \
                 not reference that secret"
            )
        };
        check(&container("initContainers"), false, Err(&why("init container")));
        check(&container("containers"), false, Err(&why("container")));
        check(&container("ephemeralContainers"), false, Ok(()));
        check(&container("ephemeralContainers"), true, Err(&why("ephemeral container")));
        check(
            "spec: {containers: [{name: c, envFrom: [{configMapRef: {name: x}}, {secretRef: {name: own}}]}]}",
            false,
            Ok(()),
        );
        let all = |list: &str| format!("spec: {{{list}: [{{name: c, envFrom: [{{secretRef: {{name: x}}}}]}}]}}");
        let why = |what: &str| {
            format!(
                "{what} c with envFrom referencing secret.secretName=\"x\" is not allowed because service account s does \
                 not reference that secret"
            )
        };
        check(&all("initContainers"), false, Err(&why("init container")));
        check(&all("containers"), false, Err(&why("container")));
        check(&all("ephemeralContainers"), true, Err(&why("ephemeral container")));
        let why = "imagePullSecrets[0].name=\"x\" is not allowed because service account s does not reference that \
                   imagePullSecret";
        check("spec: {imagePullSecrets: [{name: x}]}", false, Err(why));
        assert_eq!(check_secrets(&read(&volume("x")), &read("metadata: {name: s}"), false), Ok(()));
    }

    #[test]
    fn a_mirror_pod_names_nothing_of_the_server() {
        let check =
            |spec: &str, expected| assert_eq!(check_mirror(&read(&format!("spec: {spec}"))), expected, "{spec}");
        check("{containers: []}", Ok(()));
        check("{serviceAccountName: a}", Err("a mirror pod may not reference service accounts"));
        let secrets = Err("a mirror pod may not reference secrets");
        check("{imagePullSecrets: [{name: a}]}", secrets);
        check("{imagePullSecrets: [{}]}", Ok(()));
        check("{volumes: [{azureFile: {secretName: a}}]}", secrets);
        check("{volumes: [{iscsi: {secretRef: {name: a}}}]}", secrets);
        check("{volumes: [{csi: {driver: d, nodePublishSecretRef: {name: a}}}]}", secrets);
        check(
            "{volumes: [{projected: {sources: [{serviceAccountToken: {}}]}}]}",
            Err("a mirror pod may not use ServiceAccountToken volume projections"),
        );
    }
}
