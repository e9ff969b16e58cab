//! `ImagePolicyWebhook`: a service decides which images pods may run.
//!
//! Input: the images of a new or changed pod, those of its annotations that are meant for the service,
//! and its namespace. Output: the service's decision, which is cached for a while. The service's
//! address comes from a kubeconfig.
//!
//! Source: `plugin/pkg/admission/imagepolicy`, release 1.36, and answers of client-go 0.37.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;

use super::forbidden;
use crate::admission::{Admission, Attributes, Operation};
use crate::auth::Answers;
use crate::crd::review_answer::{self, AnswerError, Answered};
use crate::kinds;
use crate::meta::api_version::split_api_version;
use crate::meta::scheme::SchemeError;
use crate::meta::unmarshal::UnmarshalError;
use crate::meta::{Status, duration};
use crate::object;
use crate::types::decoder::{Stop, TypedDecoder};
use crate::value::{Map, Value, json};
use crate::webhook::{Endpoint, FailedCall, Manner, WebhookClient, patience};

const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
const KIND: &str = "ImageReview";
/// The prefix of the plugin's audit annotations.
const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// A pod's annotations are sent to the service if their keys contain this.
const ANNOTATION_PART: &str = ".image-policy.k8s.io/";
/// What an annotation of a decision takes beside its texts.
const ANNOTATION_BYTES: usize = 100;
const MANNER: Manner = Manner::of_image_review(Duration::from_secs(30));

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ImagePolicyError {
    #[error("no config specified")]
    Missing,
    #[error("imagePolicy.{0} is not an integer")]
    NotInteger(String),
    #[error("valid value is between {least} and {most}, got {asked}")]
    Range { least: String, most: String, asked: String },
}

/// The plugin's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePolicy {
    /// The file with the service's address and credentials.
    pub kubeconfig: String,
    allow_ttl: Duration,
    deny_ttl: Duration,
    retry_backoff: Duration,
    /// Whether images are allowed if the service can't be asked.
    default_allow: bool,
}

impl ImagePolicy {
    /// Decodes `imagePolicy` of the configuration, which the plugin requires.
    ///
    /// # Errors
    ///
    /// There is no configuration, or a value has another type or is out of range.
    pub fn parse(configuration: Option<&Value>) -> Result<Self, ImagePolicyError> {
        let configuration = configuration.ok_or(ImagePolicyError::Missing)?;
        let policy = configuration.get("imagePolicy").unwrap_or(&Value::Null);
        let limits =
            |unit: Duration, max_s: u64, default: Duration| Limits { unit, max: Duration::from_secs(max_s), default };
        let ttl = |default_s: u64| limits(Duration::from_secs(1), 30 * 60, Duration::from_secs(default_s));
        let (unit, default) = (Duration::from_millis(1), Duration::from_millis(500));
        let retry_backoff = limits(unit, 5 * 60, default).read(policy, "retryBackoff")?;
        Ok(ImagePolicy {
            kubeconfig: policy.str_at(&["kubeConfigFile"]).to_owned(),
            allow_ttl: ttl(5 * 60).read(policy, "allowTTL")?,
            deny_ttl: ttl(30).read(policy, "denyTTL")?,
            retry_backoff,
            default_allow: policy.get("defaultAllow").and_then(Value::as_bool) == Some(true),
        })
    }
}

/// The unit, maximum and default of a duration in the configuration. There, 0 stands for the
/// default, and -1 for zero.
struct Limits {
    unit: Duration,
    max: Duration,
    default: Duration,
}

impl Limits {
    fn read(&self, policy: &Value, field: &str) -> Result<Duration, ImagePolicyError> {
        let number = match policy.get(field) {
            None | Some(Value::Null) => 0,
            Some(Value::Int(number)) => *number,
            Some(_) => return Err(ImagePolicyError::NotInteger(field.to_owned())),
        };
        let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let asked = number.saturating_mul(nanoseconds(self.unit));
        // Pauses may be as short as a nanosecond, TTLs as short as a second: both are at least one
        // unit.
        let least = if self.unit < Duration::from_secs(1) { 1 } else { nanoseconds(self.unit) };
        match number {
            -1 => Ok(Duration::ZERO),
            0 => Ok(self.default),
            _ if (least..=nanoseconds(self.max)).contains(&asked) => Ok(Duration::from_nanos(asked.unsigned_abs())),
            _ => {
                let [least, most, asked] = [least, nanoseconds(self.max), asked].map(duration::print_go);
                Err(ImagePolicyError::Range { least, most, asked })
            }
        }
    }
}

/// The service's decision about some images.
#[derive(Clone, Debug, Default)]
struct ImageDecision {
    is_allowed: bool,
    reason: String,
    /// Audit annotations, by key.
    annotations: Vec<(String, String)>,
}

impl ImageDecision {
    fn size_bytes(&self) -> usize {
        let annotations = self.annotations.iter();
        self.reason.len() + annotations.map(|(key, text)| ANNOTATION_BYTES + key.len() + text.len()).sum::<usize>()
    }

    fn decode(answer: &[u8]) -> Result<Self, AnswerError> {
        let answered = review_answer::decode(answer)?;
        check_kind(&answered)?;
        Ok(ImageDecision::decode_review(&answered.body)?)
    }

    fn decode_review(review: &Value) -> Result<Self, UnmarshalError> {
        let mut decision = ImageDecision::default();
        TypedDecoder::run(|typed| {
            typed.structure_in("v1alpha1", review, KIND, |typed, name, value| {
                if name == "status" {
                    decision.decode_status(typed, value)?;
                }
                Ok(true)
            })
        })?;
        Ok(decision)
    }

    fn decode_status<'v>(&mut self, typed: &mut TypedDecoder<'v>, status: &'v Value) -> Result<(), Stop> {
        typed.structure_in("v1alpha1", status, "ImageReviewStatus", |typed, name, value| {
            match name {
                "allowed" => self.is_allowed = typed.boolean(value).unwrap_or_default(),
                "reason" => self.reason = typed.string(value).unwrap_or_default(),
                "auditAnnotations" => {
                    let text = |typed: &mut TypedDecoder<'v>, text| Ok(typed.string(text).unwrap_or_default());
                    let annotations = typed.map(value, "map[string]string", text)?.unwrap_or_default();
                    self.annotations = annotations.into_iter().map(|(name, text)| (name.into(), text)).collect();
                }
                _ => {}
            }
            Ok(true)
        })
    }
}

/// Rejects an answer that claims to be anything else than a review, in the words of Kubernetes. It
/// may omit its `apiVersion` and `kind`.
fn check_kind(answer: &Answered) -> Result<(), AnswerError> {
    let said =
        |text: &'_ str, expected: &'static str| if text.is_empty() { expected.to_owned() } else { text.to_owned() };
    let (api_version, kind) = (said(&answer.api_version, API_VERSION), said(&answer.kind, KIND));
    if api_version == API_VERSION && kind == KIND {
        return Ok(());
    }
    split_api_version(&api_version)?;
    let is_status = (api_version.as_str(), kind.as_str()) == ("v1", "Status");
    if !is_status && kinds::type_of(&api_version, &kind).is_none() {
        return Err(SchemeError::not_registered(&kind, &api_version, "pkg/api/legacyscheme/scheme.go:30").into());
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Err(SchemeError::not_convertible((version, &kind), ("v1alpha1", KIND)).into())
}

/// Why there is no decision.
enum Undecided {
    /// The service can't be called, or its answer can't be read.
    Failed(FailedCall),
    /// Too many requests wait for services, or there is no memory for their answers. That must not
    /// decide which images run, so the request is refused, whatever `defaultAllow` says.
    Crowded,
}

impl From<FailedCall> for Undecided {
    fn from(failure: FailedCall) -> Self {
        if failure.is_crowded { Undecided::Crowded } else { Undecided::Failed(failure) }
    }
}

/// The plugin, with its cached decisions.
pub struct ImagePolicyWebhook {
    policy: ImagePolicy,
    endpoint: Endpoint,
    client: Arc<WebhookClient>,
    decisions: Mutex<Answers<ImageDecision>>,
}

impl ImagePolicyWebhook {
    pub fn new(policy: ImagePolicy, endpoint: Endpoint, client: Arc<WebhookClient>) -> Self {
        ImagePolicyWebhook { policy, endpoint, client, decisions: Mutex::default() }
    }

    /// The decision about images, cached or new.
    async fn decide(&self, spec: &Value) -> Result<ImageDecision, Undecided> {
        let key = json::encode_to_string(spec);
        let now = Instant::now();
        if let Some(known) = self.decisions().recall(&key, now) {
            return Ok(known);
        }
        let review = object! {
            "kind" => KIND, "apiVersion" => API_VERSION, "metadata" => object! {}, "spec" => spec.clone(),
            "status" => object! { "allowed" => false },
        };
        if !patience::release().await {
            return Err(Undecided::Crowded);
        }
        let body = Bytes::from(json::encode(&review));
        let backoff = self.policy.retry_backoff;
        let answer = self.client.post_patiently(&self.endpoint, body, MANNER, backoff, |_, _| {}).await?;
        let decision = ImageDecision::decode(&answer).map_err(|error| FailedCall::from(error.to_string()))?;
        self.remember(key, &decision, now);
        Ok(decision)
    }

    /// Whether images are allowed without a decision.
    fn allows_without(&self, why: &Undecided) -> bool {
        self.policy.default_allow && matches!(why, Undecided::Failed(_))
    }

    fn remember(&self, key: String, decision: &ImageDecision, now: Instant) {
        let ttl = if decision.is_allowed { self.policy.allow_ttl } else { self.policy.deny_ttl };
        self.decisions().remember(key, decision.clone(), decision.size_bytes(), (now, ttl));
    }

    fn decisions(&self) -> MutexGuard<'_, Answers<ImageDecision>> {
        self.decisions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Admission for ImagePolicyWebhook {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let version = attributes.version;
        let is_pods = version.group.is_empty() && version.names.plural == "pods";
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let lists: &[&str] = match attributes.subresource {
            "" => &["containers", "initContainers"],
            "ephemeralcontainers" => &["ephemeralContainers"],
            _ => return Ok(()),
        };
        if !is_pods || !is_write {
            return Ok(());
        }
        let decision = match self.decide(&spec_of(object, lists, attributes.namespace)).await {
            Ok(decision) => decision,
            Err(why) if self.allows_without(&why) => {
                attributes.told.annotate(format!("{AUDIT_PREFIX}failed-open"), "true");
                return Ok(());
            }
            Err(Undecided::Failed(failure)) => return Err(refusal(attributes, object, failure)),
            Err(Undecided::Crowded) => return Err(Status::too_many_requests(patience::CROWDED, 1)),
        };
        for (key, text) in &decision.annotations {
            attributes.told.annotate(format!("{AUDIT_PREFIX}{key}"), text);
        }
        match (decision.is_allowed, decision.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err(forbidden(attributes, object, "one or more images rejected by webhook backend")),
            (false, reason) => {
                let why = format!("image policy webhook backend denied one or more images: {reason}");
                Err(forbidden(attributes, object, &why))
            }
        }
    }
}

/// The refusal for a failed call. A `Forbidden` answer is passed on unchanged.
fn refusal(attributes: &Attributes<'_>, object: &Value, failure: FailedCall) -> Status {
    match failure.stated.filter(|stated| stated.is_for("Forbidden", 403)) {
        Some(mut stated) => {
            if !(400..600).contains(&stated.code) {
                stated.code = 500;
            }
            *stated
        }
        None => forbidden(attributes, object, &failure.text),
    }
}

/// The `spec` of the review that is sent to the service.
fn spec_of(pod: &Value, lists: &[&str], namespace: &str) -> Value {
    let containers = lists.iter().flat_map(|list| pod.items_at(&["spec", list]));
    let images = containers.map(|container| match container.str_at(&["image"]) {
        "" => object! {},
        image => object! { "image" => image },
    });
    let images: Vec<Value> = images.collect();
    let annotations = pod.at(&["metadata", "annotations"]).and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let mut told = object! {};
    for (key, text) in annotations.filter(|(key, _)| key.contains(ANNOTATION_PART)) {
        told.make_object().insert(key, text.clone());
    }
    let mut spec = object! {};
    let fields = spec.make_object();
    if !images.is_empty() {
        fields.insert("containers", Value::from(images));
    }
    if told.as_object().is_some_and(|told| !told.is_empty()) {
        fields.insert("annotations", told);
    }
    fields.insert("namespace", Value::from(namespace));
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::value::yaml;

    fn decide(answer: &str) -> Result<bool, String> {
        let decision = ImageDecision::decode(answer.as_bytes()).map_err(|error| error.to_string())?;
        Ok(decision.is_allowed)
    }

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    /// Lets nobody wait for a service.
    struct Crowded;

    #[async_trait]
    impl patience::Releasable for Crowded {
        async fn release(&self) -> bool {
            false
        }

        fn make_room(&self) {}
    }

    #[tokio::test]
    async fn images_are_not_allowed_because_too_many_requests_wait() {
        let policy = ImagePolicy::parse(Some(&read("imagePolicy: {defaultAllow: true}"))).expect("it is valid");
        let address = crate::webhook::Address::Url("https://localhost".to_owned());
        let endpoint = Endpoint { address, ca_bundle: Vec::new(), access: None };
        let client = Arc::new(WebhookClient::new(Vec::new(), Vec::new(), Arc::new(Memory::of_system())));
        let plugin = ImagePolicyWebhook::new(policy, endpoint, client);
        let decision = patience::holding(Arc::new(Crowded), plugin.decide(&object! {})).await;
        let why = decision.expect_err("nobody was asked");
        assert!(matches!(why, Undecided::Crowded) && !plugin.allows_without(&why));
        assert!(plugin.allows_without(&Undecided::Failed("no".to_owned().into())));
    }

    #[test]
    fn decisions_are_kept_unless_they_are_large() {
        let policy = ImagePolicy::parse(Some(&read("imagePolicy: {allowTTL: 60}"))).expect("it is valid");
        let address = crate::webhook::Address::Url("https://localhost".to_owned());
        let endpoint = Endpoint { address, ca_bundle: Vec::new(), access: None };
        let client = Arc::new(WebhookClient::new(Vec::new(), Vec::new(), Arc::new(Memory::of_system())));
        let plugin = ImagePolicyWebhook::new(policy, endpoint, client);
        let now = Instant::now();
        let keeps = |key: &str, reason: &str| {
            let reason = reason.to_owned();
            plugin.remember(key.to_owned(), &ImageDecision { is_allowed: true, reason, annotations: Vec::new() }, now);
            plugin.decisions().recall(key, now).is_some()
        };
        let long = "a".repeat(1 << 20);
        assert_eq!([keeps("images", "no"), keeps(&long, ""), keeps("others", &long)], [true, false, false]);
    }

    #[test]
    fn times_have_defaults_and_ranges() {
        let parse = |policy: &str| {
            let parsed = ImagePolicy::parse(Some(&read(&format!("imagePolicy: {policy}"))));
            parsed.map_err(|error| error.to_string())
        };
        let policy = parse("{kubeConfigFile: k, allowTTL: 2, denyTTL: -1}").expect("it is valid");
        let (allow_ttl, retry_backoff) = (Duration::from_secs(2), Duration::from_millis(500));
        let (kubeconfig, deny_ttl) = ("k".to_owned(), Duration::ZERO);
        assert_eq!(policy, ImagePolicy { kubeconfig, allow_ttl, deny_ttl, retry_backoff, default_allow: false });
        for (policy, expected) in [
            ("{allowTTL: 1801}", "valid value is between 1s and 30m0s, got 30m1s"),
            ("{denyTTL: -2}", "valid value is between 1s and 30m0s, got -2s"),
            ("{retryBackoff: 300001}", "valid value is between 1ns and 5m0s, got 5m0.001s"),
            ("{allowTTL: 1m}", "imagePolicy.allowTTL is not an integer"),
        ] {
            assert_eq!(parse(policy).err().as_deref(), Some(expected));
        }
        assert!(matches!(ImagePolicy::parse(None), Err(ImagePolicyError::Missing)));
    }

    #[test]
    fn an_answer_of_another_kind_decides_nothing() {
        let decide_head = |head: &str| {
            let answer = read(&format!("{{{head}status: {{allowed: true}}}}"));
            decide(&json::encode_to_string(&answer))
        };
        for head in ["", "kind: ImageReview, ", "apiVersion: imagepolicy.k8s.io/v1alpha1, "] {
            assert_eq!(decide_head(head), Ok(true), "{head}");
        }
        let unknown = |kind: &str, version: &str| {
            let scheme = "pkg/api/legacyscheme/scheme.go:30";
            format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{scheme}\"")
        };
        for (head, expected) in [
            (
                "apiVersion: apps/v1, kind: Deployment, ",
                "converting (v1.Deployment) to (v1alpha1.ImageReview): unknown conversion",
            ),
            ("apiVersion: v1, kind: ImageReview, ", &unknown("ImageReview", "v1")),
            ("kind: Pod, ", &unknown("Pod", API_VERSION)),
            ("apiVersion: v1, kind: Status, ", "converting (v1.Status) to (v1alpha1.ImageReview): unknown conversion"),
            ("apiVersion: a/b/c, ", "unexpected GroupVersion string: a/b/c"),
        ] {
            assert_eq!(decide_head(head), Err(expected.to_owned()), "{head}");
        }
    }

    #[test]
    fn answers_that_can_not_be_read_are_told_as_client_go_tells_them() {
        let unlike = |found: &str| {
            let type_meta = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                             \"json:\\\"kind,omitempty\\\"\" }";
            let parse = "couldn't get version/kind; json parse error: json";
            format!("{parse}: cannot unmarshal {found} into Go value of type {type_meta}")
        };
        for (answer, expected) in [
            ("hello", unlike("string").as_str()),
            ("<html>\n<body>no</body></html>", &unlike("string")),
            ("[]", &unlike("array")),
            ("5", &unlike("number")),
            ("{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
            ("{}}", "couldn't get version/kind; json parse error: invalid character '}' after top-level value"),
            ("a: b: c", "yaml: mapping values are not allowed in this context"),
            (
                r#"{"status":{"allowed":"yes"}}"#,
                "json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool",
            ),
            (
                r#"{"status":5}"#,
                "json: cannot unmarshal number into Go struct field ImageReview.status of type \
                 v1alpha1.ImageReviewStatus",
            ),
            (
                r#"{"status":{"allowed":true,"auditAnnotations":{"a":5}}}"#,
                "json: cannot unmarshal number into Go struct field ImageReviewStatus.status.auditAnnotations of type \
                 string",
            ),
        ] {
            assert_eq!(decide(answer), Err(expected.to_owned()), "{answer}");
        }
        for (answer, expected) in [
            ("kind: ImageReview\nstatus: {allowed: true}", true),
            ("hello there: x", false),
            ("null", false),
            ("{}", false),
        ] {
            assert_eq!(decide(answer), Ok(expected), "{answer}");
        }
    }

    #[test]
    fn the_service_is_told_images_its_annotations_and_the_namespace() {
        let pod = read(
            "{metadata: {annotations: {a.image-policy.k8s.io/b: c, other: d}}, \
             spec: {containers: [{name: a, image: i}], initContainers: [{name: b, image: j}], \
             ephemeralContainers: [{name: e, image: k}]}}",
        );
        let expected =
            "{containers: [{image: i}, {image: j}], annotations: {a.image-policy.k8s.io/b: c}, namespace: shop}";
        assert_eq!(spec_of(&pod, &["containers", "initContainers"], "shop"), read(expected));
    }
}
