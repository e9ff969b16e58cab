//! CertificateSigningRequests: those of nodes are approved, approved ones are signed, old ones are deleted.
//!
//! Source: `pkg/controller/certificates` of Kubernetes 1.37.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::authority::{Sign, Unsigned};
use super::client::{Client, Kind, left, sooner, time_at, written};
use super::conditions::{self, holds};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::auth::{Attributes, ResourceAttributes, UserInfo};
use crate::kinds::certificates::{Request, RequestError, blocks};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Map, Value, base64};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: Kind = Kind(GROUP, "certificatesigningrequests");

const OF_KUBELETS: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const OF_CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
const OF_SERVING: &str = "kubernetes.io/kubelet-serving";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// How long a certificate is valid unless less is requested: the flag `--cluster-signing-duration`.
const VALID_S: i64 = 365 * 24 * 3600;
/// How long one is valid at least.
const VALID_MIN_S: i64 = 600;
/// After how long decided requests are deleted, and undecided ones.
const DECIDED_S: i64 = 3600;
const PENDING_S: i64 = 24 * 3600;

struct Approving {
    client: Client,
}

struct Signing {
    client: Client,
    signer: Arc<dyn Sign>,
}

struct Cleaning {
    client: Client,
}

fn noted(change: &ChangeEvent) -> Vec<String> {
    let is_request = REQUESTS.is(&change.collection) && change.stored.is_some();
    is_request.then(|| change.key.to_string()).into_iter().collect()
}

impl Reconciler for Approving {
    const TASK: &str = "approving certificate requests";

    fn collections(&self) -> Vec<Collection> {
        vec![REQUESTS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        noted(change)
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(mut request) = self.client.get(REQUESTS, key).await? else { return Ok(Progress::Done) };
        let Some(asked) = recognized(&request) else { return Ok(Progress::Done) };
        let (user, authorizer) = (asker(&request), &self.client.registry.authorizer);
        let may = async |subresource: &str| {
            let attributes = ResourceAttributes {
                verb: "create",
                group: GROUP,
                version: "*",
                resource: REQUESTS.1,
                subresource,
                ..ResourceAttributes::default()
            };
            authorizer.authorize(&user, &Attributes::Resource(attributes)).await.is_allowed()
        };
        authorizer.refresh().await?;
        let mut granted = None;
        for (subresource, message) in asked {
            if granted.is_none() && may(subresource).await {
                granted = Some(message);
            }
        }
        let Some(message) = granted else { return Ok(Progress::Done) };
        let mut approved = conditions::of(&request).to_vec();
        approved.push(object! {
            "type" => "Approved",
            "status" => "True",
            "reason" => "AutoApproved",
            "message" => message,
        });
        conditions::put(request.make_object().entry("status"), approved);
        self.client.update_part(REQUESTS, "approval", &request).await?;
        Ok(Progress::Done)
    }
}

/// The authorizer checks for a node's undecided request, each with the message if it is allowed.
fn recognized(request: &Value) -> Option<Vec<(&'static str, &'static str)>> {
    let conditions = conditions::of(request);
    let is_decided = ["Approved", "Denied"].iter().any(|type_| conditions::find(conditions, type_).is_some());
    if is_decided || has_certificate(request) || request.str_at(&["spec", "signerName"]) != OF_KUBELETS {
        return None;
    }
    let asked = read(request).ok()?;
    validate_client(&asked, &usages(request)).ok()?;
    let node = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.");
    let own = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.");
    let is_own = request.str_at(&["spec", "username"]) == asked.common_name;
    Some(if is_own { vec![own, node] } else { vec![node] })
}

/// The user who made a request.
fn asker(request: &Value) -> UserInfo {
    let texts = |list: &[Value]| list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let extra = request.at(&["spec", "extra"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    UserInfo {
        name: request.str_at(&["spec", "username"]).to_owned(),
        uid: request.str_at(&["spec", "uid"]).to_owned(),
        groups: texts(request.items_at(&["spec", "groups"])),
        extra: extra.map(|(name, values)| (name.to_owned(), texts(values.as_array().unwrap_or_default()))).collect(),
    }
}

impl Reconciler for Signing {
    const TASK: &str = "signing certificate requests";

    fn collections(&self) -> Vec<Collection> {
        vec![REQUESTS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        noted(change)
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(request) = self.client.get(REQUESTS, key).await? else { return Ok(Progress::Done) };
        let conditions = conditions::of(&request);
        let is_denied = conditions::find(conditions, "Denied").is_some();
        let is_approved = conditions::find(conditions, "Approved").is_some() && !is_denied;
        if !is_approved || holds(conditions, "Failed") || has_certificate(&request) {
            return Ok(Progress::Done);
        }
        let Some(verdict) = validated(&request) else { return Ok(Progress::Done) };
        let mut status = request.get("status").cloned().unwrap_or_default();
        let certificate = verdict.and_then(|()| Ok(signed(&request, &*self.signer)?));
        match certificate {
            Ok(certificate) => {
                status.make_object().insert("certificate", Value::from(base64::encode(certificate.as_bytes())));
            }
            // DIFFERS: kube-controller-manager retries forever what it can't decode or sign. Here the request stays as
            // it is.
            Err(why) => {
                let mut failed = conditions.to_vec();
                failed.push(object! {
                    "type" => "Failed",
                    "status" => "True",
                    "reason" => "SignerValidationFailure",
                    "message" => why.to_string(),
                    "lastUpdateTime" => written(self.client.now()),
                });
                conditions::put(&mut status, failed);
            }
        }
        self.client.update_status(REQUESTS, &request, status).await?;
        Ok(Progress::Done)
    }
}

/// Why a request gets no certificate, in the words of kube-controller-manager.
#[derive(Debug, thiserror::Error)]
enum SigningError {
    #[error("unable to parse csr {name:?}: {why}")]
    Unreadable { name: String, why: RequestError },
    #[error("invalid usage for client certificate: {0}")]
    Usage(String),
    #[error("missing required usage for client certificate: client auth")]
    NoClientAuth,
    #[error("subject organization is not system:nodes")]
    Organization,
    #[error("{0} subjectAltNames are not allowed")]
    AlternativeNames(&'static str),
    #[error("DNS or IP subjectAltName is required")]
    NoAddress,
    #[error("subject common name does not begin with system:node:")]
    CommonName,
    #[error("usages did not match [{}]", .0.join(" "))]
    Usages(Vec<&'static str>),
    #[error("error auto signing csr: {0}")]
    Signer(#[from] Unsigned),
}

/// The certificate that a request asks for, in PEM.
fn signed(request: &Value, signer: &dyn Sign) -> Result<String, Unsigned> {
    let asked = request.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
    let seconds = asked.map_or(VALID_S, |asked| asked.clamp(VALID_MIN_S, VALID_S));
    let der = pem_of(request).and_then(|pem| blocks(&pem).into_iter().next()).map(|block| block.bytes);
    let valid_for = Duration::from_secs(seconds.unsigned_abs());
    signer.sign(&der.unwrap_or_default(), &usages(request), valid_for)
}

/// Whether one of the built-in signers signs the request; `None` for other signers.
fn validated(request: &Value) -> Option<Result<(), SigningError>> {
    let signer = request.str_at(&["spec", "signerName"]);
    if ![OF_KUBELETS, OF_CLIENTS, OF_SERVING, LEGACY].contains(&signer) {
        return None;
    }
    let usages = usages(request);
    let asked = match read(request) {
        Ok(asked) => asked,
        Err(why) => {
            let name = request.str_at(&["metadata", "name"]);
            return Some(Err(SigningError::Unreadable { name: name.to_owned(), why }));
        }
    };
    Some(match signer {
        OF_KUBELETS => validate_client(&asked, &usages),
        OF_SERVING => validate_serving(&asked, &usages),
        OF_CLIENTS => {
            let is_known = |usage: &&&str| ["digital signature", "key encipherment", "client auth"].contains(*usage);
            match usages.iter().find(|usage| !is_known(usage)) {
                Some(usage) => Err(SigningError::Usage((*usage).to_owned())),
                None if !usages.contains(&"client auth") => Err(SigningError::NoClientAuth),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    })
}

fn validate_client(asked: &Request, usages: &[&str]) -> Result<(), SigningError> {
    if asked.organizations != ["system:nodes"] {
        return Err(SigningError::Organization);
    }
    for (count, names) in
        [(asked.names.dns, "DNS"), (asked.names.emails, "Email"), (asked.names.ips, "IP"), (asked.names.uris, "URI")]
    {
        if count > 0 {
            return Err(SigningError::AlternativeNames(names));
        }
    }
    if !asked.common_name.starts_with("system:node:") {
        return Err(SigningError::CommonName);
    }
    has_usages(usages, "client auth")
}

fn validate_serving(asked: &Request, usages: &[&str]) -> Result<(), SigningError> {
    if asked.organizations != ["system:nodes"] {
        return Err(SigningError::Organization);
    }
    if asked.names.dns == 0 && asked.names.ips == 0 {
        return Err(SigningError::NoAddress);
    }
    for (count, names) in [(asked.names.emails, "Email"), (asked.names.uris, "URI")] {
        if count > 0 {
            return Err(SigningError::AlternativeNames(names));
        }
    }
    has_usages(usages, "server auth")?;
    if !asked.common_name.starts_with("system:node:") {
        return Err(SigningError::CommonName);
    }
    Ok(())
}

/// The usages are those of a node, with `purpose`; the key need not encipher.
fn has_usages(usages: &[&str], purpose: &'static str) -> Result<(), SigningError> {
    let mut all = vec![purpose, "digital signature", "key encipherment"];
    all.sort_unstable();
    let mut found = usages.to_vec();
    found.sort_unstable();
    found.dedup();
    let is_fine =
        found == all || found == all.iter().copied().filter(|it| *it != "key encipherment").collect::<Vec<_>>();
    if is_fine { Ok(()) } else { Err(SigningError::Usages(all)) }
}

impl Reconciler for Cleaning {
    const TASK: &str = "removing old certificate requests";

    fn collections(&self) -> Vec<Collection> {
        vec![REQUESTS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        noted(change)
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(request) = self.client.get(REQUESTS, key).await? else { return Ok(Progress::Done) };
        match end_of_life(&request, self.client.now()) {
            None => Ok(Progress::Done),
            Some(Some(pause)) => Ok(Progress::After(pause)),
            Some(None) => self.client.delete(REQUESTS, &request, None).await.map(|()| Progress::Done),
        }
    }
}

/// How long a request still has to live; no time if its life is over. An approved one stays until it has its
/// certificate.
fn end_of_life(request: &Value, now: Timestamp) -> Option<Option<Duration>> {
    let conditions = conditions::of(request);
    if conditions.is_empty() {
        let created = time_at(request, &["metadata", "creationTimestamp"])?;
        return Some(left(created, PENDING_S, now));
    }
    let ends = |condition: &&Value| match condition.str_at(&["type"]) {
        "Approved" => has_certificate(request),
        "Denied" | "Failed" => true,
        _ => false,
    };
    let mut next = None;
    for condition in conditions.iter().filter(ends) {
        let Some(since) = time_at(condition, &["lastUpdateTime"]) else { continue };
        match left(since, DECIDED_S, now) {
            None => return Some(None),
            pause => next = sooner(next, pause),
        }
    }
    next.map(Some)
}

fn has_certificate(request: &Value) -> bool {
    !request.str_at(&["status", "certificate"]).is_empty()
}

fn usages(request: &Value) -> Vec<&str> {
    request.items_at(&["spec", "usages"]).iter().filter_map(Value::as_str).collect()
}

fn pem_of(request: &Value) -> Option<Vec<u8>> {
    base64::decode(request.str_at(&["spec", "request"])).ok()
}

fn read(request: &Value) -> Result<Request, RequestError> {
    Request::parse(&pem_of(request).unwrap_or_default())
}

/// Starts the one that approves.
pub(super) fn start_approving(context: &ControllerContext) -> Running {
    let approving = Approving { client: context.client("certificate-controller") };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), approving))
}

/// Starts the one that signs, if there is an authority with its key.
pub(super) fn start_signing(context: &ControllerContext) -> Running {
    let Some(signer) = context.authority.signer.clone() else { return Box::pin(async {}) };
    let signing = Signing { client: context.client("certificate-controller"), signer };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), signing))
}

/// Starts the one that removes.
pub(super) fn start_cleaning(context: &ControllerContext) -> Running {
    let cleaning = Cleaning { client: context.client("certificate-controller") };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), cleaning))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;
    use crate::value::yaml;

    fn request(organization: &str, name: &str, names: &[&str], signer: &str, usages: &str) -> Value {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("they are names");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        let pem = params.serialize_request(&key).and_then(|request| request.pem()).expect("it is a request");
        let text = format!("spec: {{signerName: kubernetes.io/{signer}, username: {name}, usages: [{usages}]}}");
        let mut request = yaml::decode(text.as_bytes()).expect("YAML");
        let spec = request.make_object().entry("spec").make_object();
        spec.insert("request", Value::from(base64::encode(pem.as_bytes())));
        request
    }

    #[test]
    fn requests_of_nodes_are_recognized() {
        let check = |request: &Value, expected: Option<&[&str]>| {
            let found = recognized(request);
            let found = found.map(|asked| asked.iter().map(|(subresource, _)| *subresource).collect::<Vec<_>>());
            assert_eq!(found.as_deref(), expected);
        };
        let of = |name: &str, names: &[&str]| {
            request("system:nodes", name, names, "kube-apiserver-client-kubelet", "digital signature, client auth")
        };
        let mut node = of("system:node:a", &[]);
        check(&node, Some(&["selfnodeclient", "nodeclient"]));
        node.make_object().entry("spec").make_object().insert("username", Value::from("bootstrap"));
        check(&node, Some(&["nodeclient"]));
        check(&of("somebody", &[]), None);
        check(&of("system:node:a", &["a.example.com"]), None);
        let decided = yaml::decode(b"{conditions: [{type: Denied, status: 'True'}]}").expect("YAML");
        node.make_object().insert("status", decided);
        check(&node, None);
    }

    #[test]
    fn each_signer_says_what_it_does_not_sign() {
        let check = |request: &Value, expected: Option<Result<(), &str>>| {
            let found = validated(request);
            let told = found.map(|found| found.map_err(|error| error.to_string()));
            assert_eq!(told, expected.map(|expected| expected.map_err(str::to_owned)));
        };
        let client = |usages| request("devs", "jane", &[], "kube-apiserver-client", usages);
        check(&client("client auth"), Some(Ok(())));
        check(&client("digital signature, key encipherment, client auth"), Some(Ok(())));
        check(&client("server auth"), Some(Err("invalid usage for client certificate: server auth")));
        check(&client("digital signature"), Some(Err("missing required usage for client certificate: client auth")));
        let serving = |organization, names: &[&str]| {
            let usages = "digital signature, key encipherment, server auth";
            request(organization, "system:node:a", names, "kubelet-serving", usages)
        };
        check(&serving("system:nodes", &["a.example.com"]), Some(Ok(())));
        check(&serving("system:nodes", &["10.0.0.1"]), Some(Ok(())));
        check(&serving("system:nodes", &[]), Some(Err("DNS or IP subjectAltName is required")));
        check(&serving("nodes", &["a"]), Some(Err("subject organization is not system:nodes")));
        let node = request("system:nodes", "system:node:a", &[], "kube-apiserver-client-kubelet", "client auth");
        let expected = "usages did not match [client auth digital signature key encipherment]";
        check(&node, Some(Err(expected)));
        check(&request("devs", "jane", &[], "other", "client auth"), None);
        let unreadable = |signer: &str| {
            let text =
                format!("metadata: {{name: r}}\nspec: {{signerName: {signer}, usages: [client auth], request: MAID}}");
            yaml::decode(text.as_bytes()).expect("YAML")
        };
        let why = "unable to parse csr \"r\": PEM block type must be CERTIFICATE REQUEST";
        check(&unreadable("kubernetes.io/kube-apiserver-client"), Some(Err(why)));
        check(&unreadable("example.com/other"), None);
    }

    /// Signs nothing.
    struct Unwilling;

    impl Sign for Unwilling {
        fn sign(&self, _: &[u8], _: &[&str], _: Duration) -> Result<String, Unsigned> {
            Err(Unsigned("no".into()))
        }
    }

    #[tokio::test]
    async fn what_can_not_be_signed_has_failed() {
        let registry = crate::registry::fixture::registry().await;
        let client =
            Client::new(&registry, &super::super::recorder::Recorder::start(&registry), "certificate-controller");
        let head = b"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: r}}";
        let mut asked = yaml::decode(head).expect("YAML");
        let signable = request("devs", "jane", &[], "kube-apiserver-client", "client auth");
        asked.make_object().insert("spec", signable.get("spec").cloned().expect("it is there"));
        let mut made = client.create(REQUESTS, &asked).await.expect("it is made");
        let approved = b"{conditions: [{type: Approved, status: 'True', reason: R, message: m}]}";
        made.make_object().insert("status", yaml::decode(approved).expect("YAML"));
        client.update_part(REQUESTS, "approval", &made).await.expect("it is approved");
        let signing = Signing { client: client.clone(), signer: Arc::new(Unwilling) };
        assert_eq!(signing.reconcile("r").await.ok(), Some(Progress::Done));
        let made = client.get(REQUESTS, "r").await.expect("it is read").expect("it is there");
        let failed = conditions::find(conditions::of(&made), "Failed").expect("it has failed");
        let told = ["reason", "message"].map(|name| failed.str_at(&[name]));
        assert_eq!(told, ["SignerValidationFailure", "error auto signing csr: no"]);
    }

    #[test]
    fn a_request_goes_when_it_is_of_no_more_use() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let check = |text: &str, now: &str, expected: Option<Option<u64>>| {
            let request = yaml::decode(text.as_bytes()).expect("YAML");
            let found = end_of_life(&request, at(now)).map(|left| left.map(|left| left.as_secs()));
            assert_eq!(found, expected, "{text}");
        };
        let pending = "metadata: {creationTimestamp: '2026-01-01T00:00:00Z'}";
        check(pending, "2026-01-01T23:00:00Z", Some(Some(3600)));
        check(pending, "2026-01-02T00:00:01Z", Some(None));
        let decided = |type_: &str, more: &str| {
            format!("status: {{conditions: [{{type: {type_}, lastUpdateTime: '2026-01-01T00:00:00Z'}}]{more}}}")
        };
        check(&decided("Denied", ""), "2026-01-01T01:00:01Z", Some(None));
        check(&decided("Approved", ""), "2026-01-01T09:00:00Z", None);
        check(&decided("Approved", ", certificate: x"), "2026-01-01T00:30:00Z", Some(Some(1800)));
    }
}
