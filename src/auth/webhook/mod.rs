//! The webhook authorizer: it sends a SubjectAccessReview to a service, and caches the answers.
//!
//! Input: the attributes of a request. Output: the service's decision, or no opinion if the match
//! conditions exclude the request. If a service can't be called, or its answer can't be decoded,
//! the failure policy decides between no opinion and a refusal.
//!
//! Source: `k8s.io/apiserver/plugin/pkg/authorizer/webhook`, release 1.36; answers recorded from
//! it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;

use super::answers::Answers;
use super::chain::aggregate;
use super::figures::{AuthorizerLabel, Conditions, Figures};
use super::{Attributes, Authorizer, Decision, Rules, UserInfo, Verdict};
use crate::crd::review_answer::AnswerError;
use crate::kinds;
use crate::meta::minor::Minor;
use crate::meta::scheme::SchemeError;
use crate::object;
use crate::policy::access;
use crate::policy::expression::Expression;
use crate::value::{Value, json};
use crate::webhook::{AnswerBody, Endpoint, FailedCall, Manner, WebhookClient, patience};

const GROUP: &str = "authorization.k8s.io";
const KIND: &str = "SubjectAccessReview";
const SCHEME: &str = "k8s.io/client-go/kubernetes/scheme/register.go:82";
/// The first pause before a call is retried.
const RETRY_BACKOFF: Duration = Duration::from_millis(500);
/// The total length of the attributes of a request from which on the answer is not cached, in
/// bytes.
const CHOSEN_BYTES_MAX: usize = 10_000;
/// The first minor version that sends a request's selectors to the service.
const FIRST_WITH_SELECTORS: u16 = 32;
const BOTH: &str = "webhook subject access review returned both allow and deny response";
const RULES_UNKNOWN: &str = "webhook authorizer does not support user rule resolution";

/// The API version of the reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessReviewVersion {
    V1,
    V1beta1,
}

impl AccessReviewVersion {
    /// The version called `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(AccessReviewVersion::V1),
            "v1beta1" => Some(AccessReviewVersion::V1beta1),
            _ => None,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            AccessReviewVersion::V1 => "v1",
            AccessReviewVersion::V1beta1 => "v1beta1",
        }
    }
}

/// How a service is called, and how its answers are used.
#[derive(Debug)]
pub struct Answering {
    pub version: AccessReviewVersion,
    /// The time limit of a call.
    pub timeout: Duration,
    /// How long the answer for an allowed request is cached; zero for not at all.
    pub authorized_ttl: Duration,
    /// How long the answer for a request that is not allowed is cached.
    pub unauthorized_ttl: Duration,
    /// The verdict if the service can't be called.
    pub on_failure: Verdict,
    /// The service is called only if all of them are true.
    pub conditions: Vec<Expression>,
    pub minor: Minor,
}

fn not_registered(kind: &str, api_version: &str) -> SchemeError {
    SchemeError::not_registered(kind, api_version, SCHEME)
}

/// The answer of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ReviewAnswer {
    allowed: bool,
    denied: bool,
    reason: String,
}

impl ReviewAnswer {
    /// Decodes the answer to a review of a version. It may omit its `apiVersion` and `kind`.
    fn decode(body: &[u8], version: AccessReviewVersion) -> Result<Self, AnswerError> {
        let review = json::decode(body).map_err(AnswerError::Json)?;
        check_type(&review, version)?;
        // The answers of both versions are alike.
        let message = kinds::message_of("authorization.k8s.io/v1", KIND);
        let message = message.ok_or_else(|| not_registered(KIND, "authorization.k8s.io/v1"))?;
        let (review, _) = message.decode(&review)?;
        let is = |name: &str| review.at(&["status", name]).and_then(Value::as_bool) == Some(true);
        let reason = review.str_at(&["status", "reason"]).to_owned();
        Ok(ReviewAnswer { allowed: is("allowed"), denied: is("denied"), reason })
    }

    fn decide(self) -> Decision {
        let (verdict, error) = match (self.denied, self.allowed) {
            (true, true) => (Verdict::Deny, BOTH),
            (true, false) => (Verdict::Deny, ""),
            (false, true) => (Verdict::Allow, ""),
            (false, false) => (Verdict::NoOpinion, ""),
        };
        Decision { verdict, reason: self.reason, error: error.to_owned() }
    }
}

/// Rejects an answer that claims to be anything else than a review of the version, in the words of
/// Kubernetes.
fn check_type(answer: &Value, version: AccessReviewVersion) -> Result<(), SchemeError> {
    let expected = format!("{GROUP}/{}", version.as_str());
    let said = |field: &str, default: &str| match answer.str_at(&[field]) {
        "" => default.to_owned(),
        text => text.to_owned(),
    };
    let (api_version, kind) = (said("apiVersion", &expected), said("kind", KIND));
    if (api_version.as_str(), kind.as_str()) == (expected.as_str(), KIND) {
        return Ok(());
    }
    let is_other_version = kind == KIND && api_version.strip_prefix(GROUP).is_some_and(|rest| rest == "/v1beta1");
    if !is_other_version && kinds::type_of(&api_version, &kind).is_none() {
        return Err(not_registered(&kind, &api_version));
    }
    let found = api_version.rsplit('/').next().unwrap_or_default();
    Err(SchemeError::not_convertible((found, &kind), (version.as_str(), KIND)))
}

/// Why there is no answer.
enum Unanswered {
    /// The service can't be called, or its answer can't be decoded.
    Failed(String),
    /// Too many requests wait for services, or there is no memory for their answers. That must not
    /// decide what somebody may do, so the request is refused.
    Crowded,
}

impl From<String> for Unanswered {
    fn from(error: String) -> Self {
        Unanswered::Failed(error)
    }
}

impl From<FailedCall> for Unanswered {
    fn from(failure: FailedCall) -> Self {
        if failure.is_crowded { Unanswered::Crowded } else { Unanswered::Failed(failure.text) }
    }
}

/// A service that decides whether users may do things.
pub struct AccessWebhook {
    name: AuthorizerLabel,
    figures: Arc<Figures>,
    endpoint: Endpoint,
    client: Arc<WebhookClient>,
    answering: Answering,
    answers: Mutex<Answers<ReviewAnswer>>,
}

impl AccessWebhook {
    /// Calls are counted in `figures` under `name`.
    pub fn new(
        name: &str,
        figures: Arc<Figures>,
        endpoint: Endpoint,
        client: Arc<WebhookClient>,
        answering: Answering,
    ) -> Self {
        AccessWebhook {
            name: AuthorizerLabel::webhook(name),
            figures,
            endpoint,
            client,
            answering,
            answers: Mutex::default(),
        }
    }

    /// Whether the service must be asked about `request`; the errors of the match conditions, if
    /// they can't be evaluated.
    fn is_asked(&self, request: &Value) -> Result<bool, Vec<String>> {
        let began = Instant::now();
        let holds = access::ask(&self.answering.conditions, request);
        let came_to = match holds {
            Ok(true) => Conditions::Hold,
            Ok(false) => Conditions::Exclude,
            Err(_) => Conditions::Fail,
        };
        self.figures.evaluated(&self.name, came_to, began.elapsed());
        holds
    }

    /// Calls the service, with retries.
    async fn call(&self, review: &Value) -> Result<ReviewAnswer, FailedCall> {
        let Answering { version, timeout, .. } = self.answering;
        let (body, manner) = (Bytes::from(json::encode(review)), Manner::of_conversion(timeout));
        let read = |answer: &AnswerBody| ReviewAnswer::decode(answer, version);
        let mut last = "error";
        let count = |outcome: &Result<AnswerBody, FailedCall>, took| {
            last = match outcome {
                Ok(answer) if read(answer).is_ok() => "success",
                Err(failure) if failure.is_timeout => "timeout",
                _ => "error",
            };
            self.figures.called(&self.name, last, took);
        };
        let answer = self.client.post_patiently(&self.endpoint, body, manner, RETRY_BACKOFF, count).await;
        let answer = answer.and_then(|answer| read(&answer).map_err(|error| error.to_string().into()));
        if answer.is_err() && self.answering.on_failure == Verdict::NoOpinion {
            self.figures.passed_over(&self.name, last);
        }
        answer
    }

    fn failed(&self, error: String) -> Decision {
        Decision { verdict: self.answering.on_failure, reason: String::new(), error }
    }

    /// The answer of the service, new or cached. It is cached only if `is_short`.
    async fn answer(&self, spec: Value, is_short: bool) -> Result<ReviewAnswer, Unanswered> {
        let key = json::encode_to_string(&spec);
        let known = self.answers().recall(&key, Instant::now());
        if let Some(known) = known {
            return Ok(known);
        }
        let review = object! {
            "kind" => KIND, "apiVersion" => format!("{GROUP}/{}", self.answering.version.as_str()),
            "metadata" => object! {},
            "spec" => spec, "status" => object! { "allowed" => false },
        };
        if !patience::release().await {
            return Err(Unanswered::Crowded);
        }
        let answer = self.call(&review).await?;
        if is_short {
            self.remember(key, &answer);
        }
        Ok(answer)
    }

    fn answers(&self) -> MutexGuard<'_, Answers<ReviewAnswer>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, key: String, answer: &ReviewAnswer) {
        let ttl = if answer.allowed { self.answering.authorized_ttl } else { self.answering.unauthorized_ttl };
        self.answers().remember(key, answer.clone(), answer.reason.len(), (Instant::now(), ttl));
    }
}

#[async_trait]
impl Authorizer for AccessWebhook {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        let Answering { conditions, minor, version, .. } = &self.answering;
        let wanted = ReviewRequest { user, attributes, selects: minor.number() >= FIRST_WITH_SELECTORS };
        if !conditions.is_empty() {
            match self.is_asked(&wanted.seen()) {
                Ok(true) => {}
                Ok(false) => return Decision::NO_OPINION,
                Err(errors) => return self.failed(aggregate(errors)),
            }
        }
        match self.answer(wanted.spec(*version), wanted.chosen_bytes() < CHOSEN_BYTES_MAX).await {
            Ok(answer) => answer.decide(),
            Err(Unanswered::Failed(error)) => self.failed(error),
            Err(Unanswered::Crowded) => {
                Decision { verdict: Verdict::Deny, reason: String::new(), error: patience::CROWDED.to_owned() }
            }
        }
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules { incomplete: true, error: RULES_UNKNOWN.to_owned(), ..Rules::default() }
    }
}

/// The request that a service is asked about.
struct ReviewRequest<'a> {
    user: &'a UserInfo,
    attributes: &'a Attributes<'a>,
    /// Whether the service receives the request's selectors.
    selects: bool,
}

impl ReviewRequest<'_> {
    /// The name of the field that holds the attributes, and the attributes with their names.
    fn texts(&self) -> (&'static str, Vec<(&'static str, &str)>) {
        match self.attributes {
            Attributes::Path { verb, path } => ("nonResourceAttributes", vec![("path", *path), ("verb", *verb)]),
            Attributes::Resource(of) => (
                "resourceAttributes",
                vec![
                    ("namespace", of.namespace),
                    ("verb", of.verb),
                    ("group", of.group),
                    ("version", of.version),
                    ("resource", of.resource),
                    ("subresource", of.subresource),
                    ("name", of.name),
                ],
            ),
        }
    }

    fn chosen_bytes(&self) -> usize {
        self.texts().1.into_iter().map(|(_, text)| text.len()).sum()
    }

    /// The selectors that are not empty, as requirements.
    fn selectors(&self) -> Vec<(&'static str, Value)> {
        let Attributes::Resource(of) = self.attributes else { return Vec::new() };
        let fields = of.fields.map(|fields| ("fieldSelector", fields.requirements()));
        let labels = of.labels.map(|labels| ("labelSelector", labels.requirements()));
        let told =
            fields.into_iter().chain(labels).filter(|(_, requirements)| self.selects && !requirements.is_empty());
        told.map(|(name, requirements)| (name, object! { "requirements" => requirements })).collect()
    }

    fn attributes(&self, keeps_empty: bool) -> (&'static str, Value) {
        let (name, texts) = self.texts();
        let mut attributes = object! {};
        for (field, text) in texts.into_iter().filter(|(_, text)| keeps_empty || !text.is_empty()) {
            attributes.make_object().insert(field, Value::from(text));
        }
        for (field, selector) in self.selectors() {
            attributes.make_object().insert(field, selector);
        }
        (name, attributes)
    }

    /// The `spec` of the review that the service receives, without empty fields.
    fn spec(&self, version: AccessReviewVersion) -> Value {
        let (name, attributes) = self.attributes(false);
        let mut spec = object! {};
        let fields = spec.make_object();
        fields.insert(name, attributes);
        let groups = match version {
            AccessReviewVersion::V1 => "groups",
            AccessReviewVersion::V1beta1 => "group",
        };
        let user = self.user.encode();
        for (told, known) in [("user", "username"), (groups, "groups"), ("extra", "extra"), ("uid", "uid")] {
            if let Some(value) = user.get(known) {
                fields.insert(told, value.clone());
            }
        }
        spec
    }

    /// The `spec` as match conditions see it, including empty texts.
    fn seen(&self) -> Value {
        let (name, attributes) = self.attributes(true);
        let user = self.user.encode();
        let known = |name: &str, default: Value| user.get(name).cloned().unwrap_or(default);
        let mut seen = object! {
            "user" => self.user.name.as_str(), "groups" => known("groups", Value::Array(Vec::new())),
            "uid" => self.user.uid.as_str(), "extra" => known("extra", object! {}),
        };
        seen.make_object().insert(name, attributes);
        seen
    }
}

#[cfg(test)]
mod tests;
