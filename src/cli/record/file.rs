//! The file format: lines of JSON, each written as a whole when it happens.
//!
//! The first line names the format. Then each request is a line with its answer:
//!
//! ```json
//! {"id":1,"time":"…","request":{"method":"GET","uri":"/api?x=1","headers":{"accept":"…"}},
//!  "response":{"code":200,"headers":{"content-type":"…"},"body":"…"},"tookMs":12}
//! ```
//!
//! A body that is not text is encoded in base64 as `bodyBase64`; one that could not be masked is
//! `"bodyLeftOut":true`. If the answer is not the server's, `failed` says why, beside `response`.
//! Each part of a streamed answer (`"stream":true`) is a line of its own,
//! `{"id":1,"afterMs":30,"data":"…"}`, and so is its end, `{"id":1,"afterMs":900,"end":"closed"}`:
//! `closed` by the server, `broken`, or `left` by the client.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::string::FromUtf8Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;

use crate::object;
use crate::private;
use crate::value::{Map, Value, json};

const FORMAT: &str = "skiff-record/v1";

/// Header names in lower case, with their values.
pub type Headers = Vec<(String, String)>;

/// A recorded request.
pub struct RecordedRequest {
    pub id: u64,
    pub method: String,
    pub uri: String,
    pub headers: Headers,
    /// `None` if it is left out.
    pub body: Option<Bytes>,
}

/// A recorded answer.
#[derive(Clone, Debug, Default)]
pub struct RecordedAnswer {
    pub code: u16,
    pub headers: Headers,
    pub content: RecordedContent,
}

/// The body of an answer.
#[derive(Clone, Debug)]
pub enum RecordedContent {
    /// `None` if the body is left out.
    Whole(Option<Bytes>),
    Stream(Vec<StreamPart>, EndedStream),
}

impl Default for RecordedContent {
    fn default() -> Self {
        RecordedContent::Whole(Some(Bytes::new()))
    }
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub struct StreamPart {
    /// The time since the headers of the answer.
    pub after: Duration,
    pub data: Option<Bytes>,
}

/// The end of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndedStream {
    pub how: StreamEnd,
    /// The time since the headers of the answer.
    pub after: Duration,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamEnd {
    Closed,
    Broken,
    #[default]
    Left,
}

const ENDS: [(&str, StreamEnd); 3] =
    [("closed", StreamEnd::Closed), ("broken", StreamEnd::Broken), ("left", StreamEnd::Left)];

/// Writes a record.
pub struct RecordWriter {
    state: Mutex<RecordingState>,
    last_id: AtomicU64,
}

struct RecordingState {
    file: File,
    /// Why the record is incomplete.
    failure: Option<String>,
}

impl RecordWriter {
    /// Creates the file; only its owner may read it.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = private::options().write(true).create(true).truncate(true).open(path)?;
        let state = RecordingState { file, failure: None };
        let writer = RecordWriter { state: Mutex::new(state), last_id: AtomicU64::new(0) };
        let made = Timestamp::now().to_string();
        writer.write(&object! { "format" => FORMAT, "made" => made, "program" => env!("CARGO_PKG_VERSION") });
        Ok(writer)
    }

    /// The id of the next request.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Writes a request and its answer; if the answer is not the server's, `failed` says why. The
    /// parts of a stream follow later.
    pub fn exchange(
        &self,
        begun: Timestamp,
        took: Duration,
        asked: &RecordedRequest,
        answer: &RecordedAnswer,
        failed: Option<&str>,
    ) {
        let mut request = object! {
            "method" => asked.method.as_str(),
            "uri" => asked.uri.as_str(),
            "headers" => encode_headers(&asked.headers),
        };
        insert_bytes(request.make_object(), "body", asked.body.as_ref());
        let mut line = object! { "id" => integer(asked.id), "time" => begun.to_string(), "request" => request };
        let fields = line.make_object();
        fields.insert("response", answer.to_value());
        if let Some(why) = failed {
            fields.insert("failed", Value::from(why));
        }
        fields.insert("tookMs", milliseconds(took));
        self.write(&line);
    }

    /// Writes a part of a stream; `None` if it is left out.
    pub fn part(&self, id: u64, after: Duration, data: Option<&Bytes>) {
        let mut line = object! { "id" => integer(id), "afterMs" => milliseconds(after) };
        insert_bytes(line.make_object(), "data", data);
        self.write(&line);
    }

    /// Writes the end of a stream.
    pub fn end(&self, id: u64, after: Duration, end: StreamEnd) {
        let name = ENDS.iter().find(|(_, known)| *known == end).map_or("", |(name, _)| name);
        self.write(&object! { "id" => integer(id), "afterMs" => milliseconds(after), "end" => name });
    }

    /// The number of requests.
    ///
    /// # Errors
    ///
    /// Why the record is incomplete.
    pub fn finish(&self) -> Result<u64, FileError> {
        match &self.state.lock().unwrap_or_else(PoisonError::into_inner).failure {
            None => Ok(self.last_id.load(Ordering::Relaxed)),
            Some(why) => Err(FileError::NotWhole(why.clone())),
        }
    }

    fn write(&self, line: &Value) {
        let mut bytes = json::encode(line);
        bytes.push(b'\n');
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = state.file.write_all(&bytes) {
            state.failure.get_or_insert_with(|| error.to_string());
        }
    }
}

/// Why a record can't be read or is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Utf8(#[from] FromUtf8Error),
    #[error("it is not a record: its first line has no format {FORMAT}")]
    Format,
    #[error("line {number}: {fault}")]
    Line {
        number: usize,
        #[source]
        fault: LineFault,
    },
    #[error("the record is not whole: {0}")]
    NotWhole(String),
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    #[error(transparent)]
    Json(#[from] json::JsonError),
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    #[error("it has no id")]
    Id,
    #[error("its request does not stand before it")]
    Request,
    #[error("a response has no code")]
    Code,
    #[error("its answer is not a stream")]
    Stream,
    #[error("its end is unknown")]
    End,
}

impl RecordedAnswer {
    fn to_value(&self) -> Value {
        let mut value = object! { "code" => Value::Int(self.code.into()), "headers" => encode_headers(&self.headers) };
        match &self.content {
            RecordedContent::Whole(body) => insert_bytes(value.make_object(), "body", body.as_ref()),
            RecordedContent::Stream(..) => _ = value.make_object().insert("stream", Value::Bool(true)),
        }
        value
    }

    fn of_value(value: &Value) -> Result<Self, LineFault> {
        let code = value.get("code").and_then(Value::as_i64).and_then(|code| u16::try_from(code).ok());
        let content = match value.get("stream") {
            Some(Value::Bool(true)) => RecordedContent::Stream(Vec::new(), EndedStream::default()),
            _ => RecordedContent::Whole(bytes_of(value, "body")?),
        };
        Ok(RecordedAnswer { code: code.ok_or(LineFault::Code)?, headers: headers_of(value), content })
    }
}

/// Reads the requests of a record, in order, each with its answer. An incomplete last line is
/// ignored, as when the recorder was killed.
///
/// # Errors
///
/// The file can't be read, or is not a record.
pub fn read(path: &Path) -> Result<Vec<(RecordedRequest, RecordedAnswer)>, FileError> {
    let mut bytes = fs::read(path)?;
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or_default());
    let whole = String::from_utf8(bytes)?;
    let mut lines = whole.lines().enumerate();
    let first = lines.next().and_then(|(_, line)| json::decode(line.as_bytes()).ok()).unwrap_or_default();
    if first.str_at(&["format"]) != FORMAT {
        return Err(FileError::Format);
    }
    let mut read: Vec<(RecordedRequest, RecordedAnswer)> = Vec::new();
    let mut place_of = HashMap::new();
    for (at, line) in lines {
        let faulty = |fault: LineFault| FileError::Line { number: at + 1, fault };
        let line = json::decode(line.as_bytes()).map_err(|error| faulty(error.into()))?;
        let id = line.get("id").and_then(Value::as_i64).ok_or_else(|| faulty(LineFault::Id))?;
        if line.get("request").is_none() {
            let place = place_of.get(&id).copied().ok_or_else(|| faulty(LineFault::Request))?;
            let (_, answer): &mut (RecordedRequest, RecordedAnswer) = &mut read[place];
            add_part(answer, &line).map_err(faulty)?;
        } else if let Some(response) = line.get("response") {
            place_of.insert(id, read.len());
            let answer = RecordedAnswer::of_value(response).map_err(faulty)?;
            read.push((asked_of(&line, id).map_err(faulty)?, answer));
        }
    }
    Ok(read)
}

fn asked_of(line: &Value, id: i64) -> Result<RecordedRequest, LineFault> {
    let request = line.get("request").cloned().unwrap_or_default();
    let text = |name: &str| request.str_at(&[name]).to_owned();
    let body = bytes_of(&request, "body")?;
    Ok(RecordedRequest {
        id: id.unsigned_abs(),
        method: text("method"),
        uri: text("uri"),
        headers: headers_of(&request),
        body,
    })
}

fn add_part(answer: &mut RecordedAnswer, line: &Value) -> Result<(), LineFault> {
    let RecordedContent::Stream(parts, end) = &mut answer.content else { return Err(LineFault::Stream) };
    let after = Duration::from_millis(line.get("afterMs").and_then(Value::as_i64).unwrap_or_default().unsigned_abs());
    match line.get("end").and_then(Value::as_str) {
        Some(name) => {
            let known = ENDS.iter().find(|(known, _)| *known == name);
            *end = EndedStream { how: known.ok_or(LineFault::End)?.1, after };
        }
        None => parts.push(StreamPart { after, data: bytes_of(line, "data")? }),
    }
    Ok(())
}

fn insert_bytes(fields: &mut Map, name: &str, bytes: Option<&Bytes>) {
    match bytes.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => _ = fields.insert(format!("{name}LeftOut"), Value::Bool(true)),
        Some((Ok(""), _)) => {}
        Some((Ok(text), _)) => _ = fields.insert(name, Value::from(text)),
        Some((Err(_), bytes)) => _ = fields.insert(format!("{name}Base64"), Value::from(STANDARD.encode(bytes))),
    }
}

fn bytes_of(value: &Value, name: &str) -> Result<Option<Bytes>, LineFault> {
    if value.get(&format!("{name}LeftOut")).is_some() {
        return Ok(None);
    }
    match value.get(&format!("{name}Base64")).and_then(Value::as_str) {
        None => Ok(Some(Bytes::copy_from_slice(value.str_at(&[name]).as_bytes()))),
        Some(text) => Ok(Some(STANDARD.decode(text)?.into())),
    }
}

fn encode_headers(headers: &Headers) -> Value {
    let mut fields = Map::new();
    for (name, value) in headers {
        // There may be several warnings.
        let joined = fields.get(name).and_then(Value::as_str).map(|before| format!("{before}, {value}"));
        fields.insert(name.as_str(), Value::from(joined.unwrap_or_else(|| value.clone())));
    }
    Value::Object(fields)
}

fn headers_of(value: &Value) -> Headers {
    let fields = value.get("headers").and_then(Value::as_object);
    let texts = fields.into_iter().flat_map(|fields| fields.iter());
    texts.map(|(name, value)| (name.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
}

fn integer(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn milliseconds(duration: Duration) -> Value {
    integer(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
