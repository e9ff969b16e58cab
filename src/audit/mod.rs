//! The audit log: who requested what, when, and how the request was answered.
//!
//! Input: requests as they arrive and as they are answered, with their objects if a policy asks for
//! them. Output: one line for each stage, either an `audit.k8s.io/v1` Event in JSON or a line of the
//! legacy format.
//!
//! Source: `k8s.io/apiserver/pkg/apis/audit/v1` and `pkg/audit`, release 1.37.

mod bodies;
mod legacy;
mod policy;
mod rotated;

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::auth::UserInfo;
use crate::meta::Status;
use crate::object;
use crate::value::json::Layout::{self, Sorted, Struct};
use crate::value::{Map, Value, json};

pub use bodies::Bodies;
pub use policy::{AuditLevel, Extent, Policy, PolicyFileError};
pub use rotated::{RotatedFile, Rotation};

/// The longest User-Agent that is logged, in bytes; kube-apiserver truncates longer ones at the
/// same length.
const USER_AGENT_BYTES_MAX: usize = 1024;

/// The annotation of a request that hit a fault injected by a test.
pub const FAULT: &str = "skiff.kubeskiff.dev/fault";

/// The annotation of a request to a control plane other than the main one of the process.
pub const PLANE: &str = "skiff.kubeskiff.dev/plane";

/// The first fields of an event, in the order of the Go type. The objects of the request and of its
/// response follow, then `END`.
static BEGINNING: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("level", &Sorted),
    ("auditID", &Sorted),
    ("stage", &Sorted),
    ("requestURI", &Sorted),
    ("verb", &Sorted),
    ("user", &USER),
    ("impersonatedUser", &USER),
    ("authenticationMetadata", &Sorted),
    ("sourceIPs", &Sorted),
    ("userAgent", &Sorted),
    (
        "objectRef",
        &Struct(&[
            ("resource", &Sorted),
            ("namespace", &Sorted),
            ("name", &Sorted),
            ("uid", &Sorted),
            ("apiGroup", &Sorted),
            ("apiVersion", &Sorted),
            ("resourceVersion", &Sorted),
            ("subresource", &Sorted),
        ]),
    ),
    (
        "responseStatus",
        &Struct(&[
            ("metadata", &Sorted),
            ("status", &Sorted),
            ("message", &Sorted),
            ("reason", &Sorted),
            ("details", &DETAILS),
            ("code", &Sorted),
        ]),
    ),
]);

static END: Layout =
    Struct(&[("requestReceivedTimestamp", &Sorted), ("stageTimestamp", &Sorted), ("annotations", &Sorted)]);

static USER: Layout = Struct(&[("username", &Sorted), ("uid", &Sorted), ("groups", &Sorted), ("extra", &Sorted)]);

static DETAILS: Layout = Struct(&[
    ("name", &Sorted),
    ("group", &Sorted),
    ("kind", &Sorted),
    ("uid", &Sorted),
    ("causes", &Struct(&[("reason", &Sorted), ("message", &Sorted), ("field", &Sorted)])),
    ("retryAfterSeconds", &Sorted),
]);

/// The stage that a request has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStage {
    RequestReceived,
    /// Watches, connections and early refusals only: the response headers are sent.
    ResponseStarted,
    ResponseComplete,
    /// Known to policies; no request of this server ends in this stage.
    Panic,
}

impl AuditStage {
    const ALL: [AuditStage; 4] =
        [AuditStage::RequestReceived, AuditStage::ResponseStarted, AuditStage::ResponseComplete, AuditStage::Panic];

    /// The stage that policies call `name`.
    fn named(name: &str) -> Option<AuditStage> {
        AuditStage::ALL.into_iter().find(|stage| stage.as_str() == name)
    }

    const fn as_str(self) -> &'static str {
        match self {
            AuditStage::RequestReceived => "RequestReceived",
            AuditStage::ResponseStarted => "ResponseStarted",
            AuditStage::ResponseComplete => "ResponseComplete",
            AuditStage::Panic => "Panic",
        }
    }
}

/// One request, and its outcome so far.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent {
    pub id: String,
    pub uri: String,
    pub verb: String,
    pub user: UserInfo,
    /// The user whom the request impersonates.
    pub impersonated: Option<UserInfo>,
    /// The verb that allowed the impersonation; empty if it is allowed for every request.
    pub impersonation_constraint: String,
    /// The addresses that the request came through, the original sender first.
    pub source_ips: Vec<String>,
    pub user_agent: String,
    /// `None` for non-resource paths.
    pub object: Option<ObjectReference>,
    pub received: Timestamp,
    /// The status code of the response; 0 before there is one.
    pub code: u16,
    /// The `Status` of a refused or failed request.
    pub failure: Option<Status>,
    /// The objects that were sent and returned, as far as a log holds them.
    pub bodies: Bodies,
    /// For a request that is refused before its sender is known, why, for brief lines; empty for all
    /// others.
    pub refused_early: String,
    pub annotations: Vec<(Cow<'static, str>, String)>,
    /// Those that lines of the level `Request` and above have, too.
    pub request_annotations: Vec<(Cow<'static, str>, String)>,
}

/// The object that a request is about; empty fields are left out.
#[derive(Clone, Debug, Default)]
pub struct ObjectReference {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// The uid of the object that was sent, as is the resource version.
    pub uid: String,
    pub resource_version: String,
}

impl AuditEvent {
    /// The event as one line of JSON, with its line break.
    fn line(&self, stage: AuditStage, extent: &Extent, now: Timestamp) -> Vec<u8> {
        let mut line = json::encode_as(&self.beginning(stage, extent.level), BEGINNING);
        // Both parts are objects, and neither is empty: join them into one.
        line.pop();
        self.bodies.append_to(&mut line, extent);
        line.push(b',');
        line.extend_from_slice(&json::encode_as(&self.end(extent.level, now), END)[1..]);
        line.push(b'\n');
        line
    }

    fn beginning(&self, stage: AuditStage, level: AuditLevel) -> Value {
        let mut event = object! {
            "kind" => "Event",
            "apiVersion" => "audit.k8s.io/v1",
            "level" => level.as_str(),
            "auditID" => self.id.as_str(),
            "stage" => stage.as_str(),
            "requestURI" => self.uri.as_str(),
            "verb" => self.verb.as_str(),
            "user" => self.user.encode(),
        };
        let fields = event.make_object();
        if let Some(user) = &self.impersonated {
            fields.insert("impersonatedUser", user.encode());
        }
        if !self.impersonation_constraint.is_empty() {
            let constraint = self.impersonation_constraint.as_str();
            fields.insert("authenticationMetadata", object! { "impersonationConstraint" => constraint });
        }
        if !self.source_ips.is_empty() {
            fields.insert("sourceIPs", texts(&self.source_ips));
        }
        if !self.user_agent.is_empty() {
            fields.insert("userAgent", Value::String(cut(&self.user_agent)));
        }
        if let Some(object) = &self.object {
            fields.insert("objectRef", object.to_value());
        }
        if stage != AuditStage::RequestReceived {
            fields.insert("responseStatus", self.response_status());
        }
        event
    }

    fn end(&self, level: AuditLevel, now: Timestamp) -> Value {
        let mut end = object! {
            "requestReceivedTimestamp" => micro_time(self.received),
            "stageTimestamp" => micro_time(now),
        };
        let of_requests = if level >= AuditLevel::Request { &self.request_annotations[..] } else { &[] };
        // Of several values the first one stays: it comes last, as the last one wins.
        let annotations = self.annotations.iter().chain(of_requests).rev();
        let annotations = annotations.map(|(name, text)| (name.to_string(), Value::from(text.as_str())));
        let annotations: Map = annotations.collect();
        if !annotations.is_empty() {
            end.make_object().insert("annotations", Value::Object(annotations));
        }
        end
    }

    /// Whether another line follows the one for [`AuditStage::ResponseStarted`] that tells people the same.
    fn goes_on_unseen(&self) -> bool {
        self.refused_early.is_empty() && self.verb != "watch"
    }

    /// A line such as `list /api/v1/pods 200 1.2 ms jane kubectl/v1.37`, followed by the reason of
    /// a refusal; a request to the plane `a` has the prefix `[a] `.
    fn brief_line(&self, stage: AuditStage, now: Timestamp) -> Vec<u8> {
        let took_us = now.as_microsecond().saturating_sub(self.received.as_microsecond());
        let agent = self.user_agent.split(' ').next().unwrap_or_default();
        let user = if self.user.name.is_empty() { "-" } else { &self.user.name };
        let plane = self.annotations.iter().find(|(name, _)| name == PLANE);
        let mut line = plane.map(|(_, plane)| format!("[{plane}] ")).unwrap_or_default();
        let (whole, tenth) = (took_us / 1000, took_us / 100 % 10);
        line.push_str(&format!("{} {} {} {whole}.{tenth} ms", self.verb, self.uri, self.code));
        line.push_str(&format!(" {user} {agent}"));
        if stage == AuditStage::ResponseStarted && self.refused_early.is_empty() {
            line.push_str(" begins");
        }
        let faults = self.annotations.iter().filter(|(name, _)| name == FAULT);
        faults.for_each(|(_, fault)| line.push_str(&format!(" [fault {fault}]")));
        if !self.refused_early.is_empty() {
            line.push_str(&format!(": {}", self.refused_early));
        } else if let Some(failure) = &self.failure {
            line.push_str(&format!(": {}", failure.message.replace('\n', " ")));
        }
        line.push('\n');
        line.into_bytes()
    }

    fn response_status(&self) -> Value {
        let mut status = match (&self.failure, self.bodies.status()) {
            (Some(failure), _) => failure.to_value(),
            (None, Some(status)) => status.clone(),
            (None, None) => object! { "metadata" => object! {} },
        };
        let fields = status.make_object();
        fields.remove("apiVersion");
        fields.remove("kind");
        fields.insert("code", Value::Int(self.code.into()));
        status
    }
}

impl ObjectReference {
    fn to_value(&self) -> Value {
        let parts = [
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
            ("apiGroup", &self.group),
            ("apiVersion", &self.version),
            ("resourceVersion", &self.resource_version),
            ("subresource", &self.subresource),
        ];
        let present = parts.into_iter().filter(|(_, text)| !text.is_empty());
        Value::Object(present.map(|(name, text)| (name.to_owned(), Value::from(text.as_str()))).collect())
    }
}

fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect())
}

/// Go's `MicroTime`: RFC 3339 with six fractional digits.
fn micro_time(time: Timestamp) -> String {
    format!("{time:.6}")
}

fn cut(user_agent: &str) -> String {
    if user_agent.len() > USER_AGENT_BYTES_MAX {
        format!("{}...TRUNCATED", String::from_utf8_lossy(&user_agent.as_bytes()[..USER_AGENT_BYTES_MAX]))
    } else {
        user_agent.to_owned()
    }
}

/// The destination of the lines. Each line is written as a whole before its request continues.
pub struct Log {
    out: Mutex<Box<dyn Write + Send>>,
    form: LineFormat,
    /// Without a policy, every request is logged.
    policy: Option<Policy>,
}

/// The format of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineFormat {
    /// A whole event in JSON, one line for each stage.
    Json,
    /// The legacy format, one line for each stage.
    Legacy,
    /// The request and its outcome, for people: one line for each request, and a second one for a
    /// watch that begins.
    Brief,
}

impl Log {
    /// Appends to the file at `path`; `-` is standard output.
    ///
    /// # Errors
    ///
    /// The file can't be opened for writing.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Log::to(io::stdout()));
        }
        Ok(Log::to(OpenOptions::new().create(true).append(true).open(path)?))
    }

    /// Writes JSON lines to `out`.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Log { out: Mutex::new(Box::new(out)), form: LineFormat::Json, policy: None }
    }

    /// Writes brief lines to `out`.
    pub fn brief(out: impl Write + Send + 'static) -> Self {
        Log { form: LineFormat::Brief, ..Log::to(out) }
    }

    /// The same log in kube-apiserver's legacy format.
    pub fn in_legacy_form(self) -> Self {
        Log { form: LineFormat::Legacy, ..self }
    }

    /// The same log, limited to what a policy selects.
    pub fn of(self, policy: Policy) -> Self {
        Log { policy: Some(policy), ..self }
    }

    /// How much of a request is logged. This is decided before anything else is known about the
    /// request.
    pub fn extent(&self, event: &AuditEvent) -> Extent {
        match &self.policy {
            Some(policy) => policy.extent(event),
            None => Extent::of(AuditLevel::Metadata),
        }
    }

    /// Writes the line of `event`, if the log has one for this stage. A write error does not stop
    /// the server; it is reported by `tracing`.
    pub fn write(&self, event: &AuditEvent, extent: &Extent, stage: AuditStage, now: Timestamp) {
        if !extent.has(stage) {
            return;
        }
        let line = match (self.form, stage) {
            (LineFormat::Json, AuditStage::RequestReceived) => event.line(stage, extent, event.received),
            (LineFormat::Json, _) => event.line(stage, extent, now),
            (LineFormat::Legacy, _) => event.legacy_line(stage),
            (LineFormat::Brief, AuditStage::RequestReceived) => return,
            (LineFormat::Brief, AuditStage::ResponseStarted) if event.goes_on_unseen() => return,
            (LineFormat::Brief, _) => event.brief_line(stage, now),
        };
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = out.write_all(&line).and_then(|()| out.flush()) {
            tracing::error!(%error, "the audit log can't be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> AuditEvent {
        AuditEvent {
            id: "a-1".into(),
            uri: "/apis/g/v1/namespaces/n/widgets/w?x=1".into(),
            verb: "get".into(),
            user: UserInfo::authenticated("jane", vec!["ops".into()]),
            source_ips: vec!["10.0.0.1".into()],
            user_agent: "kubectl/v1".into(),
            object: Some(ObjectReference {
                group: "g".into(),
                version: "v1".into(),
                resource: "widgets".into(),
                namespace: "n".into(),
                name: "w".into(),
                ..ObjectReference::default()
            }),
            received: Timestamp::UNIX_EPOCH,
            ..AuditEvent::default()
        }
    }

    #[test]
    fn a_line_has_the_fields_of_an_event_in_gos_order() {
        let line = event().line(AuditStage::RequestReceived, &Extent::of(AuditLevel::Metadata), Timestamp::UNIX_EPOCH);
        let expected = concat!(
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a-1","#,
            r#""stage":"RequestReceived","requestURI":"/apis/g/v1/namespaces/n/widgets/w?x=1","verb":"get","#,
            r#""user":{"username":"jane","groups":["ops","system:authenticated"]},"sourceIPs":["10.0.0.1"],"#,
            r#""userAgent":"kubectl/v1","objectRef":{"resource":"widgets","namespace":"n","name":"w","apiGroup":"g","#,
            r#""apiVersion":"v1"},"requestReceivedTimestamp":"1970-01-01T00:00:00.000000Z","#,
            r#""stageTimestamp":"1970-01-01T00:00:00.000000Z"}"#,
            "\n"
        );
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }

    #[test]
    fn a_brief_line_says_what_was_asked_and_answered() {
        let failure = Some(Status::not_found("g", "widgets", "w"));
        let event = AuditEvent { code: 404, failure, ..event() };
        let now = Timestamp::from_microsecond(1_250).expect("it is a time");
        let line = event.brief_line(AuditStage::ResponseComplete, now);
        let expected =
            "get /apis/g/v1/namespaces/n/widgets/w?x=1 404 1.2 ms jane kubectl/v1: widgets.g \"w\" not found\n";
        assert_eq!(String::from_utf8_lossy(&line), expected);
    }

    #[test]
    fn a_request_from_nobody_known_has_one_line() {
        let refused_early = "Authentication failed, attempted: bearer".to_owned();
        let failure = Some(Status::unauthorized());
        let event = AuditEvent { code: 401, failure, refused_early, user: UserInfo::default(), ..event() };
        let brief = event.brief_line(AuditStage::ResponseStarted, Timestamp::UNIX_EPOCH);
        let expected = "get /apis/g/v1/namespaces/n/widgets/w?x=1 401 0.0 ms - kubectl/v1: \
            Authentication failed, attempted: bearer\n";
        assert_eq!(String::from_utf8_lossy(&brief), expected);
        let line = event.line(AuditStage::ResponseStarted, &Extent::of(AuditLevel::Metadata), Timestamp::UNIX_EPOCH);
        let line = String::from_utf8_lossy(&line);
        let expected = r#""responseStatus":{"metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
        assert!(line.contains(expected) && line.contains(r#""user":{},"#), "{line}");
    }

    #[test]
    fn a_refusal_is_told_with_its_reason() {
        let failure = Some(Status::not_found("g", "widgets", "w"));
        let annotations = vec![("a".into(), "b".into()), ("a".into(), "c".into())];
        let event = AuditEvent { code: 404, failure, annotations, ..event() };
        let line = event.line(AuditStage::ResponseComplete, &Extent::of(AuditLevel::Metadata), Timestamp::UNIX_EPOCH);
        let line = String::from_utf8_lossy(&line);
        let expected = concat!(
            r#""responseStatus":{"metadata":{},"status":"Failure","message":"widgets.g \"w\" not found","#,
            r#""reason":"NotFound","details":{"name":"w","group":"g","kind":"widgets"},"code":404}"#
        );
        assert!(line.contains(expected) && line.contains(r#""annotations":{"a":"b"}"#), "{line}");
    }
}
