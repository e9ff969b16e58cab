//! Answers: objects, lists and statuses in the form that the client accepts.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use futures_util::stream;
use hyper::body::{Frame, SizeHint};

use crate::audit::AuditLevel;
use crate::kinds::{self, layout};
use crate::memory::{Full, Memory};
use crate::meta::Status;
use crate::registry::{WARNING_CHARACTERS_MAX, WARNINGS_CHARACTERS_MAX};
use crate::store::TakenBack;
use crate::value::{Value, json, yaml};
use crate::webhook::patience;

use super::around::around;
use super::document_cache::CachedDocument;
use super::exchange::{Exchange, no_memory};
use super::frame::{Compressed, GZIP_THRESHOLD_BYTES, gzip};
use super::list_pieces::ListPieces;
use super::negotiate::{self, AnswerFormat, Encoding};
use super::path;

/// How many bytes the indentation may add to a text beyond the size of its value in another form: a deeply nested value
/// has a long line for each of its members. The reference has no such limit.
const INDENTATION_BYTES_MAX: usize = 16 << 20;
const TOO_DEEP_FOR_YAML: &str = "the object is nested too deep to be indented, ask for application/json";

/// Answers of at most so many bytes are part of what a request takes in any case.
pub(super) const UNCOUNTED_BYTES_MAX: usize = 16 << 10;
/// What an answer takes at least that is made as it is taken by its client, whose next pieces wait for it.
const PIECES_BYTES: usize = 64 << 10;
/// What the compressor of such an answer takes.
const COMPRESSOR_BYTES: usize = 320 << 10;

const TEXT_PLAIN: &str = "text/plain; charset=utf-8";

/// The content of an answer, before it is encoded.
pub(super) enum AnswerContent {
    Value(Value),
    /// Compact JSON.
    Json(Vec<u8>),
}

/// Passes the content of an answer to the audit log, if there is one that wants it.
fn tell(exchange: &Exchange, content: &AnswerContent) {
    exchange.observe(|observed| match content {
        AnswerContent::Value(value) => observed.answers(value),
        // It is not a Status; only Statuses are recorded at lower levels.
        AnswerContent::Json(bytes) if observed.is_logged(AuditLevel::RequestResponse) => {
            observed.answers(&json::decode(bytes).unwrap_or_default());
        }
        AnswerContent::Json(_) => {}
    });
}

/// An object or list in the form chosen. A kind that has no message goes out as JSON in place of protobuf.
pub(super) fn content(exchange: &Exchange, code: u16, format: AnswerFormat, content: AnswerContent) -> Response<Body> {
    tell(exchange, &content);
    let (encoding, bytes) = match format.encoding {
        Encoding::Json => (Encoding::Json, to_json(format, content)),
        Encoding::Yaml => {
            let value = value(content);
            match yaml::encode_within(&value, indented_bytes_max(value.size_bytes())) {
                Ok(text) => (Encoding::Yaml, text.into_bytes()),
                Err(yaml::TooLong) => return status(exchange, &Status::not_acceptable(TOO_DEEP_FOR_YAML)),
            }
        }
        Encoding::Protobuf => {
            let sealed = match &content {
                AnswerContent::Value(value) => kinds::seal(value),
                AnswerContent::Json(bytes) => kinds::seal_text(bytes),
            };
            match sealed {
                Some(bytes) => (Encoding::Protobuf, bytes),
                None => (Encoding::Json, to_json(format, AnswerContent::Value(value(content)))),
            }
        }
    };
    body(exchange, code, encoding.content_type(), bytes)
}

/// A body that is already encoded, and that no audit log wants.
pub(super) fn encoded(exchange: &Exchange, encoding: Encoding, bytes: Vec<u8>) -> Response<Body> {
    body(exchange, 200, encoding.content_type(), bytes)
}

/// How long the indented form of a value of `bytes` may be.
fn indented_bytes_max(bytes: usize) -> usize {
    bytes.saturating_mul(4).saturating_add(INDENTATION_BYTES_MAX)
}

/// A text that would be too long when indented stays on one line.
fn to_json(format: AnswerFormat, content: AnswerContent) -> Vec<u8> {
    let mut bytes = match content {
        AnswerContent::Json(bytes) => layout::lay_out(bytes),
        AnswerContent::Value(value) => json::encode_as(&value, layout::of(&value)),
    };
    if format.pretty
        && let Some(indented) = json::indent_within(&bytes, indented_bytes_max(bytes.len()))
    {
        return indented;
    }
    bytes.push(b'\n');
    bytes
}

fn value(content: AnswerContent) -> Value {
    match content {
        AnswerContent::Value(value) => value,
        // We encoded it ourselves; if it can't be decoded, it is shown as null.
        AnswerContent::Json(bytes) => json::decode(&bytes).unwrap_or_default(),
    }
}

/// A Status, in the form that the client accepts.
pub(super) fn status(exchange: &Exchange, status: &Status) -> Response<Body> {
    let mut format = negotiate::error_format(&exchange.accept, &exchange.user_agent, &exchange.query);
    format.transform = None;
    exchange.observe(|observed| observed.refused(status));
    let mut response = content(exchange, status.code, format, AnswerContent::Value(status.to_value()));
    if let Some(seconds) = status.retry_after_seconds() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A Status that refuses a request before its target has been looked at.
///
/// Source: `RespondWithError` of apiserver 1.37.
pub(super) fn denial(exchange: &Exchange, denial: &Status) -> Response<Body> {
    let mut response = status(exchange, denial);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The 504 of a request that was not answered in time: a Status without its kind, whatever the client accepts.
///
/// Source: `WithTimeoutForNonLongRunningRequests` of apiserver 1.37, whose answer has no type but the one that Go finds for
/// its text.
pub(super) fn timed_out(exchange: &Exchange) -> Response<Body> {
    let status = Status::timeout("request did not complete within the allotted timeout");
    exchange.observe(|observed| observed.refused(&status));
    let message = json::encode_to_string(&Value::from(status.message.as_str()));
    let body = format!(
        r#"{{"metadata":{{}},"status":"Failure","message":{message},"reason":"Timeout","details":{{}},"code":504}}"#
    );
    self::body(exchange, status.code, TEXT_PLAIN, (body + "\n").into_bytes())
}

/// Plain text.
pub(super) fn text(exchange: &Exchange, code: u16, text: impl Into<String>) -> Response<Body> {
    let mut response = body(exchange, code, TEXT_PLAIN, text.into().into_bytes());
    if code == 404 || code == 500 {
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    response
}

/// The answer if it can't be decided whether the request is allowed: 429 if too many wait for the webhook that decides.
pub(super) fn failed_authorization(exchange: &Exchange, why: &str) -> Response<Body> {
    if why == patience::CROWDED {
        return status(exchange, &Status::too_many_requests(why, 1));
    }
    text(exchange, 500, path::internal_error(&exchange.uri, why))
}

/// Whether an answer of `size_bytes` is compressed.
fn is_compressed(exchange: &Exchange, size_bytes: usize) -> bool {
    exchange.is_compressed && size_bytes > GZIP_THRESHOLD_BYTES && negotiate::accepts_gzip(&exchange.accept_encoding)
}

/// A list as JSON, as it is taken by its client.
pub(super) fn pieces(exchange: &Exchange, list: ListPieces) -> Response<Body> {
    let list = list.with_line_break();
    let compress = is_compressed(exchange, list.left_bytes());
    let body =
        if compress { Body::from_stream(stream::iter(Compressed::new(list))) } else { Body::new(ListBody(list)) };
    sent_in_pieces(finish(exchange, 200, Encoding::Json.content_type(), body, compress), PIECES_BYTES, compress)
}

/// JSON that is made as it is taken by its client, of some `size_bytes`, in pieces of at most `piece_bytes`.
pub(super) fn in_pieces(
    exchange: &Exchange,
    (size_bytes, piece_bytes): (usize, usize),
    pieces: impl Iterator<Item = Result<Bytes, TakenBack>> + Send + Unpin + 'static,
) -> Response<Body> {
    let compress = is_compressed(exchange, size_bytes);
    let body = if compress {
        Body::from_stream(stream::iter(Compressed::new(pieces)))
    } else {
        Body::from_stream(stream::iter(pieces))
    };
    let answer = finish(exchange, 200, Encoding::Json.content_type(), body, compress);
    sent_in_pieces(answer, PIECES_BYTES.max(piece_bytes), compress)
}

/// An answer that takes the memory of its pieces while it is sent, and of its compressor.
fn sent_in_pieces(mut answer: Response<Body>, pieces_bytes: usize, compress: bool) -> Response<Body> {
    let bytes = if compress { pieces_bytes + COMPRESSOR_BYTES } else { pieces_bytes };
    answer.extensions_mut().insert(TakenMemory { bytes, is_whole: false });
    answer
}

/// A list as a body of known length.
struct ListBody(ListPieces);

impl HttpBody for ListBody {
    type Data = Bytes;
    type Error = TakenBack;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TakenBack>>> {
        Poll::Ready(self.0.next().map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.left_bytes() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.left_bytes() as u64)
    }
}

/// A document of a given type.
pub(super) async fn document(exchange: &Exchange, content_type: &str, document: &CachedDocument) -> Response<Body> {
    let compressed = if is_compressed(exchange, document.bytes.len()) { document.compressed().await } else { None };
    let is_compressed = compressed.is_some();
    let bytes = compressed.unwrap_or_else(|| document.bytes.clone());
    finish(exchange, 200, content_type, Body::from(bytes), is_compressed)
}

/// Bytes of a given type.
pub(super) fn body(exchange: &Exchange, code: u16, content_type: &str, bytes: Vec<u8>) -> Response<Body> {
    let compressed = if is_compressed(exchange, bytes.len()) { gzip(&bytes).ok() } else { None };
    let is_compressed = compressed.is_some();
    let bytes = compressed.unwrap_or(bytes);
    let size_bytes = bytes.len();
    let mut response = finish(exchange, code, content_type, Body::from(bytes), is_compressed);
    if size_bytes > UNCOUNTED_BYTES_MAX {
        response.extensions_mut().insert(TakenMemory { bytes: size_bytes, is_whole: true });
    }
    response
}

/// The memory that a large answer takes by itself, that no other request shares, until its client has read it.
#[derive(Clone, Copy)]
pub(super) struct TakenMemory {
    bytes: usize,
    /// Whether it was made as a whole, of the memory for the work of the request.
    is_whole: bool,
}

/// The memory that an answer takes until it is sent, beyond what a request takes in any case.
pub(super) fn taken_memory(answer: &Response<Body>) -> Option<TakenMemory> {
    answer.extensions().get().copied()
}

/// The answer to a request, with its memory until it is sent: of what was reserved for the request, or more.
///
/// Errors: there is no memory for it.
pub(super) async fn held(
    exchange: &Exchange,
    memory: &Memory,
    answer: Response<Body>,
    TakenMemory { bytes, is_whole }: TakenMemory,
) -> Result<Response<Body>, Status> {
    if !is_whole {
        let reserved = memory.for_changes(exchange.limited_user(), bytes).await.map_err(|Full| no_memory())?;
        return Ok(holding(answer, reserved));
    }
    let mut reserved = exchange.reserved_for_answer(bytes);
    if reserved.as_ref().is_none_or(|reserved| reserved.bytes() < bytes) {
        // What a user has at most must be free for that.
        drop(reserved);
        exchange.reserve_answer(memory, bytes).await?;
        reserved = exchange.reserved_for_answer(bytes);
    }
    Ok(holding(answer, reserved))
}

fn holding(answer: Response<Body>, held: impl Send + Unpin + 'static) -> Response<Body> {
    around(answer, move |body, context| {
        let _held = &held;
        body.poll_frame(context)
    })
}

fn finish(exchange: &Exchange, code: u16, content_type: &str, body: Body, is_compressed: bool) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Ok(content_type) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if is_compressed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    add_warnings(exchange, headers);
    response
}

/// The warnings that are sent: if they are too long in total, each is truncated, and the last ones may be left out.
///
/// Source: `k8s.io/apiserver/pkg/endpoints/filters/warning.go`, release 1.37.
fn fitting(texts: &[String]) -> Vec<&str> {
    let length = |text: &str| text.chars().count();
    let mut written = 0;
    let all_fit = |text: &String| {
        written += length(text);
        written <= WARNINGS_CHARACTERS_MAX
    };
    let Some(first_beyond) = texts.iter().map(all_fit).position(|fits| !fits) else {
        return texts.iter().map(String::as_str).collect();
    };
    let mut written = 0;
    let mut sent = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        // The warnings that were added before the limit was passed are sent in any case.
        if at > first_beyond && written >= WARNINGS_CHARACTERS_MAX {
            break;
        }
        let end = text.char_indices().nth(WARNING_CHARACTERS_MAX).map_or(text.len(), |(end, _)| end);
        written += length(&text[..end]);
        sent.push(&text[..end]);
    }
    sent
}

/// Warning headers in the form of RFC 7234: code 299, no agent, the text quoted.
pub(super) fn add_warnings(exchange: &Exchange, headers: &mut axum::http::HeaderMap) {
    const WARNING: HeaderName = header::WARNING;
    let warnings = exchange.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Line breaks and other controls aren't allowed in a header: a text that contains any is not sent.
    for text in fitting(warnings.texts()).into_iter().filter(|text| !text.contains(char::is_control)) {
        let mut quoted = String::with_capacity(text.len() + 10);
        quoted.push_str("299 - \"");
        for character in text.chars() {
            match character {
                '"' | '\\' => quoted.extend(['\\', character]),
                character => quoted.push(character),
            }
        }
        quoted.push('"');
        if let Ok(value) = HeaderValue::from_bytes(quoted.as_bytes()) {
            headers.append(WARNING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_above_the_threshold_is_compressed() {
        let request = axum::http::Request::builder().header("accept-encoding", "gzip").body(Body::empty());
        let (exchange, _) = Exchange::read(request.expect("it is a request"));
        let is_compressed = |size_bytes: usize| {
            let answer = body(&exchange, 200, TEXT_PLAIN, vec![b'x'; size_bytes]);
            answer.headers().contains_key(header::CONTENT_ENCODING)
        };
        assert_eq!([0, 1].map(|more| is_compressed(GZIP_THRESHOLD_BYTES + more)), [false, true]);
    }

    #[test]
    fn who_finds_too_many_waiting_for_the_authorizer_tries_again() {
        let (exchange, _) = Exchange::read(axum::http::Request::new(Body::empty()));
        let answers = [patience::CROWDED, "it hangs"].map(|why| failed_authorization(&exchange, why));
        let told = answers.each_ref().map(|answer| answer.headers().contains_key(header::RETRY_AFTER));
        assert_eq!((answers.map(|answer| answer.status().as_u16()), told), ([429, 500], [true, false]));
    }

    #[test]
    fn warnings_that_are_too_long_together_are_cut() {
        let sent = |lengths: &[usize]| -> Vec<usize> {
            let texts: Vec<_> = lengths.iter().map(|length| "ä".repeat(*length)).collect();
            fitting(&texts).into_iter().map(|text| text.chars().count()).collect()
        };
        assert_eq!(sent(&[4000, 96]), [4000, 96]);
        assert_eq!(sent(&[4000, 97, 10]), [256, 97, 10]);
        assert_eq!(sent(&[4097; 20]), [256; 16]);
        assert_eq!(sent(&[200; 40]), [200; 21]);
    }
}
