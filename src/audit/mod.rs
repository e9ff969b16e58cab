//! The audit log: who asked for what, when, and what they were answered.
//!
//! In: requests as they come and as they are answered, with their objects where a policy wants them. Out: one line of JSON a
//! stage, an `audit.k8s.io/v1` Event, or one of the older form.
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

/// Longer User-Agents are cut, as kube-apiserver cuts them.
const USER_AGENT_BYTES_MAX: usize = 1024;

/// The annotation of a request that met a fault which a test has asked for.
pub const FAULT: &str = "skiff.kubeskiff.dev/fault";

/// The annotation of a request to another control plane than the main one of the process.
pub const PLANE: &str = "skiff.kubeskiff.dev/plane";

/// The order of Go's fields; the objects of the request and of its answer come between the two.
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

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditStage {
    RequestReceived,
    /// Of a watch: its head is sent, its events follow.
    ResponseStarted,
    ResponseComplete,
    /// Policies know it; no request of ours ends in it.
    Panic,
}

impl AuditStage {
    const ALL: [AuditStage; 4] =
        [AuditStage::RequestReceived, AuditStage::ResponseStarted, AuditStage::ResponseComplete, AuditStage::Panic];

    const fn as_str(self) -> &'static str {
        match self {
            AuditStage::RequestReceived => "RequestReceived",
            AuditStage::ResponseStarted => "ResponseStarted",
            AuditStage::ResponseComplete => "ResponseComplete",
            AuditStage::Panic => "Panic",
        }
    }
}

/// One request, and what became of it so far.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent {
    pub id: String,
    pub uri: String,
    pub verb: String,
    pub user: UserInfo,
    /// In whose name the request is.
    pub impersonated: Option<UserInfo>,
    /// The verb that allowed that; empty where it is allowed for every request.
    pub impersonation_constraint: String,
    /// The addresses that the request came through, the first sender first.
    pub source_ips: Vec<String>,
    pub user_agent: String,
    /// `None` for paths that are not resources.
    pub object: Option<ObjectReference>,
    pub received: Timestamp,
    /// Of the answer; 0 while there is none.
    pub code: u16,
    /// What a refusal says.
    pub failure: Option<Status>,
    /// The objects that were sent and answered, where a log has them.
    pub bodies: Bodies,
    /// Of a request from nobody known, how its sender tried to be known, which people are told; empty for all others.
    pub attempted: String,
    pub annotations: Vec<(Cow<'static, str>, String)>,
}

/// What a request is about; empty texts are left out.
#[derive(Clone, Debug, Default)]
pub struct ObjectReference {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    /// Of the object that was sent, as is the next.
    pub uid: String,
    pub resource_version: String,
}

impl AuditEvent {
    /// The line of the log, with its line break.
    fn line(&self, stage: AuditStage, extent: &Extent, now: Timestamp) -> Vec<u8> {
        let mut line = json::encode_as(&self.beginning(stage, extent.level), BEGINNING);
        // Both are objects, and neither is empty.
        line.pop();
        self.bodies.append_to(&mut line, extent);
        line.push(b',');
        line.extend_from_slice(&json::encode_as(&self.end(stage, now), END)[1..]);
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

    fn end(&self, stage: AuditStage, now: Timestamp) -> Value {
        let mut end = object! {
            "requestReceivedTimestamp" => micro_time(self.received),
            "stageTimestamp" => micro_time(now),
        };
        if stage != AuditStage::RequestReceived && !self.annotations.is_empty() {
            let annotations =
                self.annotations.iter().map(|(name, text)| (name.to_string(), Value::from(text.as_str())));
            end.make_object().insert("annotations", Value::Object(annotations.collect::<Map>()));
        }
        end
    }

    /// `list /api/v1/pods 200 1.2 ms jane kubectl/v1.37`, and why it was refused; `[a] ` before it where the plane `a` was asked.
    fn brief_line(&self, stage: AuditStage, now: Timestamp) -> Vec<u8> {
        let took_us = now.as_microsecond().saturating_sub(self.received.as_microsecond());
        let agent = self.user_agent.split(' ').next().unwrap_or_default();
        let user = if self.user.name.is_empty() { "-" } else { &self.user.name };
        let plane = self.annotations.iter().find(|(name, _)| name == PLANE);
        let mut line = plane.map(|(_, plane)| format!("[{plane}] ")).unwrap_or_default();
        let (whole, tenth) = (took_us / 1000, took_us / 100 % 10);
        line.push_str(&format!("{} {} {} {whole}.{tenth} ms", self.verb, self.uri, self.code));
        line.push_str(&format!(" {user} {agent}"));
        if stage == AuditStage::ResponseStarted && self.attempted.is_empty() {
            line.push_str(" begins");
        }
        let faults = self.annotations.iter().filter(|(name, _)| name == FAULT);
        faults.for_each(|(_, fault)| line.push_str(&format!(" [fault {fault}]")));
        if !self.attempted.is_empty() {
            line.push_str(&format!(": {}", self.attempted));
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

/// Go's `MicroTime`: RFC 3339 with six digits behind the second.
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

/// Where the lines go. Each is written whole, before its request goes on.
pub struct Log {
    out: Mutex<Box<dyn Write + Send>>,
    form: LineFormat,
    /// Without one, everything is logged.
    policy: Option<Policy>,
}

/// What a line says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineFormat {
    /// A whole event, a line a stage.
    Json,
    /// The older form of that.
    Legacy,
    /// What was asked and answered, for people: a line a request, a second one for a watch that begins.
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

    /// Writes to `out`.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Log { out: Mutex::new(Box::new(out)), form: LineFormat::Json, policy: None }
    }

    /// Writes short lines to `out`.
    pub fn brief(out: impl Write + Send + 'static) -> Self {
        Log { form: LineFormat::Brief, ..Log::to(out) }
    }

    /// The same, in kube-apiserver's older form.
    pub fn in_legacy_form(self) -> Self {
        Log { form: LineFormat::Legacy, ..self }
    }

    /// The same, of what a policy says.
    pub fn of(self, policy: Policy) -> Self {
        Log { policy: Some(policy), ..self }
    }

    /// What the log has of a request, which is decided before anything else is known of it.
    pub fn extent(&self, event: &AuditEvent) -> Extent {
        match &self.policy {
            Some(policy) => policy.extent(event),
            None => Extent::of(AuditLevel::Metadata),
        }
    }

    /// Writes the line of `event`, if the log has it. A log that can't be written to does not stop the server; that is told on standard error.
    pub fn write(&self, event: &AuditEvent, extent: &Extent, stage: AuditStage, now: Timestamp) {
        if !extent.has(stage) {
            return;
        }
        let line = match (self.form, stage) {
            (LineFormat::Json, _) => event.line(stage, extent, now),
            (LineFormat::Legacy, _) => event.legacy_line(stage),
            (LineFormat::Brief, AuditStage::RequestReceived) => return,
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
        let attempted = "Authentication failed, attempted: bearer".to_owned();
        let failure = Some(Status::unauthorized());
        let event = AuditEvent { code: 401, failure, attempted, user: UserInfo::default(), ..event() };
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
        let event = AuditEvent { code: 404, failure, annotations: vec![("a".into(), "b".into())], ..event() };
        let line = event.line(AuditStage::ResponseComplete, &Extent::of(AuditLevel::Metadata), Timestamp::UNIX_EPOCH);
        let line = String::from_utf8_lossy(&line);
        let expected = concat!(
            r#""responseStatus":{"metadata":{},"status":"Failure","message":"widgets.g \"w\" not found","#,
            r#""reason":"NotFound","details":{"name":"w","group":"g","kind":"widgets"},"code":404}"#
        );
        assert!(line.contains(expected) && line.contains(r#""annotations":{"a":"b"}"#), "{line}");
    }
}
