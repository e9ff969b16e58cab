//! The file of `--authorization-config`: authorizers in their order, and how the webhooks among
//! them are called.
//!
//! Input: an AuthorizationConfiguration in YAML or JSON. Output: the authorizers in it, or all its errors
//! in the words of kube-apiserver.
//!
//! DIFFERS: the file is read at startup, and not again when it changes.
//!
//! Source: `k8s.io/apiserver/pkg/apis/apiserver/{load,validation,v1}`, release 1.36.

mod decode;
mod validate;

use std::time::Duration;

use self::decode::{DecodeError, KIND};
use super::files::Aggregate;
use crate::auth::Verdict;
use crate::meta::field::ErrorList;
use crate::meta::minor::Minor;
use crate::policy::expression::Expression;

/// All modes.
pub const MODES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", WEBHOOK];
const WEBHOOK: &str = "Webhook";

/// An authorizer to set up.
#[derive(Debug)]
pub enum Configured {
    /// An authorizer by its mode.
    Mode(String),
    Webhook(ConfiguredWebhook),
}

/// A webhook to set up.
#[derive(Debug)]
pub struct ConfiguredWebhook {
    pub name: String,
    /// The kubeconfig of the service; `None` for the configuration of a pod in a cluster.
    pub kubeconfig: Option<String>,
    pub version: String,
    pub timeout: Duration,
    pub authorized_ttl: Duration,
    pub unauthorized_ttl: Duration,
    pub on_failure: Verdict,
    pub conditions: Vec<Expression>,
}

/// Why the file is rejected, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    #[error("failed to load {KIND} from file: {0}")]
    Load(#[from] DecodeError),
    #[error("{}", .0.aggregate())]
    Invalid(ErrorList),
    #[error(transparent)]
    Names(#[from] Aggregate<NameError>),
}

/// A mode whose name is not the mode in lower case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected name {expected} for authorizer {mode} instead of {name}")]
pub struct NameError {
    expected: String,
    mode: String,
    name: String,
}

/// Parses the file for a server of a minor version.
///
/// # Errors
///
/// What is wrong with the file.
pub fn parse(text: &[u8], minor: Minor) -> Result<Vec<Configured>, ConfigurationError> {
    let (configured, errors) = validate::validate(decode::load(text)?, minor);
    if !errors.is_empty() {
        return Err(ConfigurationError::Invalid(errors));
    }
    Aggregate::refuse(configured.iter().filter_map(|(name, configured)| misnamed(name, configured)).collect())?;
    Ok(configured.into_iter().map(|(_, configured)| configured).collect())
}

/// The error for a mode with a wrong name: only webhooks have names of their own.
fn misnamed(name: &str, configured: &Configured) -> Option<NameError> {
    let Configured::Mode(mode) = configured else { return None };
    let expected = mode.to_lowercase();
    (expected != name).then(|| NameError { expected, mode: mode.clone(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";

    fn told(authorizers: &str) -> Result<Vec<Configured>, String> {
        read(&format!("{HEAD}authorizers:\n{authorizers}\n"))
    }

    fn read(text: &str) -> Result<Vec<Configured>, String> {
        parse(text.as_bytes(), Minor::NEWEST).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(authorizers: &str, expected: &str) {
        assert_eq!(told(authorizers).err().as_deref(), Some(expected), "{authorizers}");
    }

    const VALID: &str = "timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: Deny";

    #[test]
    fn authorizers_are_asked_in_the_order_of_the_file() {
        let file = std::env::temp_dir().join(format!("skiff-authorization-{}", std::process::id()));
        fs::write(&file, "").expect("it is written");
        let read = told(&format!(
            "- {{type: Node, name: node}}\n- {{type: Webhook, name: w, webhook: {{{VALID}, cacheAuthorizedRequests: false, \
             matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{{expression: 'request.user != \"\"'}}], \
             connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}}}}}\n- {{type: RBAC, name: rbac}}",
            file.display()
        ));
        fs::remove_file(&file).expect("it is there");
        let read = read.expect("it is valid");
        let [Configured::Mode(node), Configured::Webhook(webhook), Configured::Mode(rbac)] = read.as_slice() else {
            panic!("there are three: {read:?}")
        };
        assert_eq!((node.as_str(), rbac.as_str()), ("Node", "RBAC"));
        let (timeout, unauthorized) = (Duration::from_secs(3), Duration::from_secs(30));
        assert_eq!((webhook.timeout, webhook.authorized_ttl), (timeout, Duration::ZERO));
        assert_eq!((webhook.unauthorized_ttl, webhook.on_failure), (unauthorized, Verdict::Deny));
        assert_eq!(webhook.conditions.len(), 1);
    }

    #[test]
    fn a_file_that_is_something_else_is_told_as_there() {
        let check = |text: &str, expected: &str| {
            let why = format!("failed to load AuthorizationConfiguration from file: {expected}");
            assert_eq!(read(text).err(), Some(why), "{text}");
        };
        check(
            "apiVersion: apiserver.config.k8s.io/v2\nkind: AuthorizationConfiguration",
            "no kind \"AuthorizationConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\" in scheme \
             \"k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32\"",
        );
        check(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration",
            "expected AuthorizationConfiguration, got *apiserver.AuthenticationConfiguration",
        );
        let of = |rest: &str| format!("{HEAD}authorizers: {rest}");
        check(
            &of("1"),
            "json: cannot unmarshal number into Go struct field AuthorizationConfiguration.authorizers of type \
             []v1.AuthorizerConfiguration",
        );
        check(
            &of("[{type: Webhook, name: w, webhook: {timeout: 3}}]"),
            "json: cannot unmarshal number into Go struct field WebhookConfiguration.authorizers.webhook.timeout of type \
             string",
        );
        check(&of("[{type: Webhook, name: w, webhook: {timeout: abc}}]"), "time: invalid duration \"abc\"");
        check(&of("[{type: RBAC, nosuch: 1}]"), "strict decoding error: unknown field \"authorizers[0].nosuch\"");
        check(
            &of("[{type: Webhook, webhook: {nosuch: 1}}]"),
            "strict decoding error: unknown field \"authorizers[0].webhook.nosuch\"",
        );
        let nothing = "authorizers: Required value: at least one authorization mode must be defined";
        assert_eq!(read("").err().as_deref(), Some(nothing));
    }

    #[test]
    fn all_that_is_wrong_with_authorizers_is_told() {
        check(
            "- {type: Foo, name: foo}\n- {type: RBAC}\n- {type: RBAC, name: rbac}\n- {name: x}\n- {type: Node, name: x_y}\n\
             - {type: ABAC, name: x, webhook: {}}\n- {type: Webhook, name: w}",
            "[authorizers[0].type: Unsupported value: \"Foo\": supported values: \"ABAC\", \"AlwaysAllow\", \
             \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\", authorizers[1].name: Required value, authorizers[2].type: \
             Duplicate value: \"RBAC\", authorizers[3].type: Required value, authorizers[4].name: Invalid value: \"x_y\": \
             authorizer name is invalid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
             characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
             used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), \
             authorizers[5].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook, \
             authorizers[6].webhook: Required value: required when type=Webhook]",
        );
        check(
            "- {type: RBAC, name: foo}\n- {type: Node, name: bar}",
            "[expected name rbac for authorizer RBAC instead of foo, expected name node for authorizer Node instead of bar]",
        );
    }

    #[test]
    fn all_that_is_wrong_with_a_webhook_is_told() {
        let of = |webhook: &str| format!("- {{type: Webhook, name: w, webhook: {{{webhook}}}}}");
        check(
            &of(""),
            "[authorizers[0].timeout: Required value, authorizers[0].subjectAccessReviewVersion: Required value, \
             authorizers[0].failurePolicy: Required value, authorizers[0].connectionInfo.type: Required value]",
        );
        check(
            &of("timeout: 31s, authorizedTTL: -1s, unauthorizedTTL: -1s, subjectAccessReviewVersion: v2, \
                 matchConditionSubjectAccessReviewVersion: v1beta1, failurePolicy: X, connectionInfo: \
                 {type: KubeConfigFile, kubeConfigFile: a}, matchConditions: [{expression: ''}, {expression: 'a'}, \
                 {expression: '1'}, {expression: '1'}, {expression: 'request.nosuch'}]"),
            "[authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s, authorizers[0].authorizedTTL: \
             Invalid value: \"-1s\": must be > 0s, authorizers[0].unauthorizedTTL: Invalid value: \"-1s\": must be > 0s, \
             authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\", \
             authorizers[0].matchConditionSubjectAccessReviewVersion: Unsupported value: \"v1beta1\": supported values: \
             \"v1\", authorizers[0].failurePolicy: Unsupported value: \"X\": supported values: \"NoOpinion\", \"Deny\", \
             authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"a\": must be an absolute path, \
             authorizers[0].matchConditions[0].expression: Required value, \
             authorizers[0].matchConditions[1].expression: Invalid value: \"a\": compilation failed: ERROR: <input>:1:1: \
             undeclared reference to 'a' (in container '')\n | a\n | ^, authorizers[0].matchConditions[2].expression: \
             Invalid value: \"1\": must evaluate to bool but got int, authorizers[0].matchConditions[3].expression: \
             Duplicate value: \"1\", authorizers[0].matchConditions[4].expression: Invalid value: \"request.nosuch\": \
             compilation failed: ERROR: <input>:1:8: undefined field 'nosuch'\n | request.nosuch\n | .......^]",
        );
        check(
            &of(&format!("{VALID}, connectionInfo: {{type: X}}, matchConditions: [{{expression: 'true'}}]")),
            "[authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are \
             specified, authorizers[0].connectionInfo.type: Unsupported value: {\"Type\":\"X\",\"KubeConfigFile\":null}: \
             supported values: \"InClusterConfig\", \"KubeConfigFile\"]",
        );
        check(
            &of(&format!("{VALID}, connectionInfo: {{type: KubeConfigFile, kubeConfigFile: /nonexistent}}")),
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/nonexistent\": error loading file: stat \
             /nonexistent: no such file or directory",
        );
        check(
            &of(&format!("{VALID}, connectionInfo: {{type: InClusterConfig, kubeConfigFile: /x}}")),
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/x\": can only be set when \
             type=KubeConfigFile",
        );
    }
}
