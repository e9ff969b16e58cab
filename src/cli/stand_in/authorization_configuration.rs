//! The file of `--authorization-config`: authorisers in their order, and how webhooks among them are asked.
//!
//! In: an AuthorizationConfiguration in YAML or JSON. Out: what it names, or all that is wrong with it in the words of
//! kube-apiserver.
//!
//! DIFFERS: the file is read at the start, and not again where it changes.
//!
//! Source: `k8s.io/apiserver/pkg/apis/apiserver/{load,validation,v1}`, release 1.36.

use std::fs;
use std::path::Path as FilePath;
use std::time::Duration;

use super::files::go_reason;
use crate::auth::{AccessReviewVersion, Verdict};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::meta::type_meta::Document;
use crate::meta::unmarshal::UnmarshalError;
use crate::meta::{duration, names};
use crate::policy::access;
use crate::policy::expression::Expression;
use crate::value::{Value, go_quote, json, json_type};

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const KIND: &str = "AuthorizationConfiguration";
/// Other configurations of the group, which a file may be by mistake.
const OTHER_KINDS: [&str; 5] = [
    "AdmissionConfiguration",
    "AuthenticationConfiguration",
    "EgressSelectorConfiguration",
    "EncryptionConfiguration",
    "TracingConfiguration",
];
const SCHEME: &str = "k8s.io/apiserver/pkg/apis/apiserver/load/load.go:32";
/// Every mode that there is.
pub const MODES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", WEBHOOK];
const WEBHOOK: &str = "Webhook";
const CONDITIONS_MAX: usize = 64;
const TIMEOUT_MAX_NS: i64 = 30_000_000_000;
const AUTHORIZED_TTL_NS: i64 = 5 * 60 * 1_000_000_000;
const UNAUTHORIZED_TTL_NS: i64 = 30_000_000_000;

/// An authoriser that is to be made.
#[derive(Debug)]
pub enum Configured {
    /// By its mode.
    Mode(String),
    Webhook(ConfiguredWebhook),
}

/// A webhook that is to be asked.
#[derive(Debug)]
pub struct ConfiguredWebhook {
    pub name: String,
    /// The file that says where it is; `None` for where a pod would look.
    pub kubeconfig: Option<String>,
    pub version: String,
    pub timeout: Duration,
    pub authorized_ttl: Duration,
    pub unauthorized_ttl: Duration,
    pub on_failure: Verdict,
    pub conditions: Vec<Expression>,
}

/// Reads the file, for a server of that minor.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse(text: &[u8], minor: Minor) -> Result<Vec<Configured>, String> {
    let authorizers = load(text).map_err(|why| format!("failed to load {KIND} from file: {why}"))?;
    let (configured, errors) = validate(authorizers, minor);
    if !errors.is_empty() {
        return Err(errors.aggregate());
    }
    let misnamed: Vec<String> = configured.iter().filter_map(|(name, configured)| misnamed(name, configured)).collect();
    match misnamed.as_slice() {
        [] => Ok(configured.into_iter().map(|(_, configured)| configured).collect()),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// Only webhooks have names of their own.
fn misnamed(name: &str, configured: &Configured) -> Option<String> {
    let Configured::Mode(mode) = configured else { return None };
    let expected = mode.to_lowercase();
    (expected != name).then(|| format!("expected name {expected} for authorizer {mode} instead of {name}"))
}

/// An authoriser as it stands in the file.
#[derive(Debug, Default)]
struct Authorizer {
    kind: String,
    name: String,
    webhook: Option<Webhook>,
}

#[derive(Debug)]
struct Webhook {
    timeout_ns: i64,
    authorized_ttl_ns: i64,
    caches_authorized: bool,
    unauthorized_ttl_ns: i64,
    caches_unauthorized: bool,
    version: String,
    conditions_version: String,
    failure_policy: String,
    connection: String,
    kubeconfig: Option<String>,
    conditions: Vec<String>,
}

fn load(text: &[u8]) -> Result<Vec<Authorizer>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let Document { value, api_version, kind } = Document::read(text).map_err(|error| error.to_string())?;
    for (field, said) in [("Kind", &kind), ("apiVersion", &api_version)] {
        if said.is_empty() {
            return Err(format!("Object '{field}' is missing in '{}'", json::encode_to_string(&value)));
        }
    }
    let is_of_group = api_version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
    let is_known = is_of_group.is_some_and(|version| VERSIONS.contains(&version));
    if is_known && OTHER_KINDS.contains(&kind.as_str()) {
        return Err(format!("expected {KIND}, got *apiserver.{kind}"));
    }
    if !is_known || kind != KIND {
        let (kind, version) = (go_quote(&kind), go_quote(&api_version));
        return Err(format!("no kind {kind} is registered for version {version} in scheme \"{SCHEME}\""));
    }
    let mut unknown = Unknown::default();
    let authorizers = Object::of(&value, KIND)
        .list("authorizers", "[]v1.AuthorizerConfiguration", |one| read_authorizer(one, &mut unknown));
    let authorizers = authorizers.map_err(|error| error.to_string())?;
    unknown.note(&value, "", &["apiVersion", "kind", "authorizers"]);
    unknown.refuse()?;
    Ok(authorizers)
}

/// Fields that nothing is known of, by their paths.
#[derive(Default)]
struct Unknown {
    /// How many authorisers were read.
    read: usize,
    paths: Vec<String>,
}

impl Unknown {
    fn note(&mut self, object: &Value, path: &str, known: &[&str]) {
        let unknown = object.as_object().into_iter().flat_map(|fields| fields.keys());
        let unknown = unknown.filter(|name| !known.contains(name));
        self.paths.extend(unknown.map(|name| format!("unknown field {}", go_quote(&format!("{path}{name}")))));
    }

    fn refuse(self) -> Result<(), String> {
        if self.paths.is_empty() { Ok(()) } else { Err(format!("strict decoding error: {}", self.paths.join(", "))) }
    }
}

/// An object that is read into a Go struct.
struct Object<'v> {
    value: &'v Value,
    structure: &'static str,
}

impl<'v> Object<'v> {
    fn of(value: &'v Value, structure: &'static str) -> Self {
        Object { value, structure }
    }

    fn field(&self, name: &str) -> Option<&'v Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    fn unfit(&self, name: &str, found: &Value, go_type: &str) -> UnmarshalError {
        UnmarshalError::of_type(json_type(found), go_type).below(self.structure, name)
    }

    fn optional_text(&self, name: &str) -> Result<Option<String>, UnmarshalError> {
        let read = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(|| self.unfit(name, value, "string"));
        self.field(name).map(read).transpose()
    }

    fn text(&self, name: &str) -> Result<String, UnmarshalError> {
        self.optional_text(name).map(Option::unwrap_or_default)
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, UnmarshalError> {
        let read = |value: &Value| value.as_bool().ok_or_else(|| self.unfit(name, value, "bool"));
        self.field(name).map_or(Ok(default), read)
    }

    /// A length of time in nanoseconds; zero is as good as none.
    fn time(&self, name: &str, default_ns: i64) -> Result<i64, UnmarshalError> {
        let text = self.text(name)?;
        let read = if text.is_empty() { 0 } else { duration::parse_go(&text).map_err(UnmarshalError::other)? };
        Ok(if read == 0 { default_ns } else { read })
    }

    fn object(&self, name: &str, structure: &'static str) -> Result<Option<Object<'v>>, UnmarshalError> {
        match self.field(name) {
            None => Ok(None),
            Some(value) if value.as_object().is_some() => Ok(Some(Object::of(value, structure))),
            Some(other) => Err(self.unfit(name, other, &format!("v1.{structure}"))),
        }
    }

    fn list<T>(
        &self,
        name: &str,
        go_type: &str,
        mut read: impl FnMut(&'v Value) -> Result<T, UnmarshalError>,
    ) -> Result<Vec<T>, UnmarshalError> {
        match self.field(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| read(item).map_err(|error| error.below(self.structure, name))).collect()
            }
            Some(other) => Err(self.unfit(name, other, go_type)),
        }
    }
}

fn read_authorizer(value: &Value, unknown: &mut Unknown) -> Result<Authorizer, UnmarshalError> {
    let path = format!("authorizers[{}].", unknown.read);
    unknown.read += 1;
    if value.is_null() {
        return Ok(Authorizer::default());
    }
    let object = Object::of(value, "AuthorizerConfiguration");
    if value.as_object().is_none() {
        return Err(UnmarshalError::of_type(json_type(value), "v1.AuthorizerConfiguration"));
    }
    let webhook = object.object("webhook", "WebhookConfiguration")?;
    let webhook = webhook.map(|webhook| read_webhook(&webhook, &format!("{path}webhook."), unknown)).transpose();
    let webhook = webhook.map_err(|error| error.below(object.structure, "webhook"))?;
    unknown.note(value, &path, &["type", "name", "webhook"]);
    Ok(Authorizer { kind: object.text("type")?, name: object.text("name")?, webhook })
}

fn read_webhook(object: &Object<'_>, path: &str, unknown: &mut Unknown) -> Result<Webhook, UnmarshalError> {
    let connection = object.object("connectionInfo", "WebhookConnectionInfo")?;
    let connection = connection.unwrap_or(Object::of(&Value::Null, "WebhookConnectionInfo"));
    let below = |error: UnmarshalError| error.below(object.structure, "connectionInfo");
    unknown.note(connection.value, &format!("{path}connectionInfo."), &["type", "kubeConfigFile"]);
    let conditions = object.list("matchConditions", "[]v1.WebhookMatchCondition", |condition| {
        if condition.as_object().is_none() && !condition.is_null() {
            return Err(UnmarshalError::of_type(json_type(condition), "v1.WebhookMatchCondition"));
        }
        Object::of(condition, "WebhookMatchCondition").text("expression")
    })?;
    for (at, condition) in object.value.items_at(&["matchConditions"]).iter().enumerate() {
        unknown.note(condition, &format!("{path}matchConditions[{at}]."), &["expression"]);
    }
    let known = [
        "timeout",
        "authorizedTTL",
        "cacheAuthorizedRequests",
        "unauthorizedTTL",
        "cacheUnauthorizedRequests",
        "subjectAccessReviewVersion",
        "matchConditionSubjectAccessReviewVersion",
        "failurePolicy",
        "connectionInfo",
        "matchConditions",
    ];
    unknown.note(object.value, path, &known);
    Ok(Webhook {
        timeout_ns: object.time("timeout", 0)?,
        authorized_ttl_ns: object.time("authorizedTTL", AUTHORIZED_TTL_NS)?,
        caches_authorized: object.flag("cacheAuthorizedRequests", true)?,
        unauthorized_ttl_ns: object.time("unauthorizedTTL", UNAUTHORIZED_TTL_NS)?,
        caches_unauthorized: object.flag("cacheUnauthorizedRequests", true)?,
        version: object.text("subjectAccessReviewVersion")?,
        conditions_version: object.text("matchConditionSubjectAccessReviewVersion")?,
        failure_policy: object.text("failurePolicy")?,
        connection: connection.text("type").map_err(below)?,
        kubeconfig: connection.optional_text("kubeConfigFile").map_err(below)?,
        conditions,
    })
}

/// What is to be made, by its names, and all that is wrong with it.
fn validate(authorizers: Vec<Authorizer>, minor: Minor) -> (Vec<(String, Configured)>, ErrorList) {
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
                // As Go's internal type has its fields.
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
        Err(error) => Some(format!("error loading file: stat {file}: {}", go_reason(&error))),
    }
}

/// What is wrong with a text that must be one of a few.
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";

    fn told(authorizers: &str) -> Result<Vec<Configured>, String> {
        parse(format!("{HEAD}authorizers:\n{authorizers}\n").as_bytes(), Minor::NEWEST)
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
            assert_eq!(parse(text.as_bytes(), Minor::NEWEST).err(), Some(why), "{text}");
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
        assert_eq!(parse(b"", Minor::NEWEST).err().as_deref(), Some(nothing));
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
