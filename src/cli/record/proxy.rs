//! Forwards requests, and records them with their answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use jiff::Timestamp;
use tokio::time::sleep;

use super::super::cluster::{ClusterClient, Forwarded};
use super::file::{EndedStream, Headers, RecordWriter, RecordedAnswer, RecordedContent, RecordedRequest, StreamEnd};
use super::frames::{Splitter, StreamFraming};
use super::mask::Sensitive;
use crate::http::query::Query;
use crate::http::websocket;
use crate::meta::Status;
use crate::value::json;

/// The longest request body, in bytes: somewhat more than in `http::exchange`.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// The longest answer that is not a stream, in bytes.
const ANSWER_BYTES_MAX: usize = 512 << 20;
/// How long sent data may take to leave before the connection is broken off.
pub const BEFORE_BREAK: Duration = Duration::from_millis(20);
const JSON: &str = "application/json";

/// Headers that concern a single connection, or the program's credentials for the proxy.
const HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::HOST,
    header::TRANSFER_ENCODING,
    header::CONTENT_LENGTH,
    header::TE,
    header::UPGRADE,
    header::AUTHORIZATION,
    // Responses are uncompressed and complete.
    header::ACCEPT_ENCODING,
    header::IF_NONE_MATCH,
    HeaderName::from_static("keep-alive"),
];
/// Response headers that are not recorded.
const UNKEPT: [&str; 4] = ["set-cookie", "www-authenticate", "date", "audit-id"];
/// Request headers that are recorded, and the prefix of those for impersonation.
const KEPT: [&str; 3] = ["accept", "content-type", "user-agent"];
const IMPERSONATE: &str = "impersonate-";

/// The state of the proxy.
pub struct Proxy {
    pub client: ClusterClient,
    pub writer: RecordWriter,
}

/// A router that forwards every request.
pub fn router(proxy: Arc<Proxy>) -> Router {
    Router::new().fallback(handle).with_state(proxy)
}

async fn handle(State(proxy): State<Arc<Proxy>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let (begun, started) = (Timestamp::now(), Instant::now());
    let uri = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let body = Limited::new(body, REQUEST_BYTES_MAX).collect().await.map(|body| body.to_bytes());
    let sensitive = Sensitive::of(head.uri.path());
    let asked = RecordedRequest {
        id: proxy.writer.next_id(),
        method: head.method.to_string(),
        uri: uri.clone(),
        headers: kept(&head.headers),
        body: masked(sensitive, body.as_ref().unwrap_or(&Bytes::new())),
    };
    // The program gets the same refusal from the record.
    let refuse = |code: u16, why: &str| {
        let status = Status::plain(code, why);
        let headers = vec![("content-type".to_owned(), JSON.to_owned())];
        let content = RecordedContent::Whole(Some(json::encode(&status.to_value()).into()));
        proxy.writer.exchange(begun, started.elapsed(), &asked, &RecordedAnswer { code, headers, content }, Some(why));
        refusal(&status)
    };
    let Ok(body) = body else { return refuse(413, "the body of the request is too long to be recorded") };
    if websocket::is_upgrade(&head.headers) || head.headers.contains_key(header::UPGRADE) {
        return refuse(501, "skiff record passes no connections on: exec, attach and port-forward can't be recorded");
    }
    let headers = passed_on(&head.headers, sensitive);
    let (response, held) = match proxy.client.forward(head.method, &uri, &headers, body).await {
        Ok(Forwarded { response, held }) => (response, held),
        Err(error) => return refuse(502, &format!("the server can't be asked: {error}")),
    };
    let (head, body) = response.into_parts();
    let mut answer = RecordedAnswer {
        code: head.status.as_u16(),
        headers: headers_of(&head.headers),
        content: RecordedContent::default(),
    };
    let body = if is_stream(&uri) {
        answer.content = RecordedContent::Stream(Vec::new(), EndedStream::default());
        proxy.writer.exchange(begun, started.elapsed(), &asked, &answer, None);
        let form = StreamFraming::of(text(&head.headers, header::CONTENT_TYPE));
        let begun = Instant::now();
        let (proxy, splitter) = (Arc::clone(&proxy), Splitter::new(form));
        StreamParts { proxy, id: asked.id, sensitive, begun, splitter, end: StreamEnd::Left }.body(body, held)
    } else {
        let whole = match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return refuse(502, &format!("the answer breaks off: {error}")),
        };
        answer.content = RecordedContent::Whole(masked(sensitive, &whole));
        proxy.writer.exchange(begun, started.elapsed(), &asked, &answer, None);
        Body::from(whole)
    };
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    HOP.iter().for_each(|name| _ = response.headers_mut().remove(name));
    response
}

/// The parts of a stream on their way to the program; each is recorded before it is sent.
struct StreamParts {
    proxy: Arc<Proxy>,
    id: u64,
    sensitive: Option<Sensitive>,
    begun: Instant,
    splitter: Splitter,
    /// The recorded end, if the stream is dropped now.
    end: StreamEnd,
}

impl StreamParts {
    fn body(self, body: Incoming, held: impl Send + 'static) -> Body {
        Body::from_stream(stream::unfold((self, body, held), |(mut parts, mut body, held)| async move {
            let next = parts.next(&mut body).await?;
            Some((next, (parts, body, held)))
        }))
    }

    /// The next complete part; `None` at the end.
    async fn next(&mut self, body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
        if self.end != StreamEnd::Left {
            return None;
        }
        loop {
            if let Some(part) = self.splitter.next() {
                return Some(Ok(self.write(part)));
            }
            match body.frame().await {
                Some(Ok(frame)) => self.splitter.push(&frame.into_data().unwrap_or_default()),
                Some(Err(error)) => {
                    self.end = StreamEnd::Broken;
                    sleep(BEFORE_BREAK).await;
                    return Some(Err(error));
                }
                None => {
                    self.end = StreamEnd::Closed;
                    return self.splitter.rest().map(|rest| Ok(self.write(rest)));
                }
            }
        }
    }

    fn write(&self, part: Bytes) -> Bytes {
        let kept = masked(self.sensitive, &part).map(|kept| match (self.sensitive, part.ends_with(b"\n")) {
            (Some(_), true) => [&kept[..], b"\n"].concat().into(),
            _ => kept,
        });
        self.proxy.writer.part(self.id, self.begun.elapsed(), kept.as_ref());
        part
    }
}

impl Drop for StreamParts {
    fn drop(&mut self) {
        self.proxy.writer.end(self.id, self.begun.elapsed(), self.end);
    }
}

/// Whether the answer is a stream: a watch, or logs that are followed.
fn is_stream(uri: &str) -> bool {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let query = Query::parse(query);
    let flag = |name: &str| query.flag(name).unwrap_or_default();
    flag("watch") || flag("follow") || path.contains("/watch/")
}

/// The recorded form of a body; `None` if it can't be masked.
fn masked(sensitive: Option<Sensitive>, body: &Bytes) -> Option<Bytes> {
    match sensitive {
        None => Some(body.clone()),
        Some(sensitive) => sensitive.masked_body(body).map(Bytes::from),
    }
}

/// The headers for the server. Sensitive objects are requested as JSON, so they can be masked.
fn passed_on(headers: &HeaderMap, sensitive: Option<Sensitive>) -> HeaderMap {
    let mut headers = headers.clone();
    HOP.iter().for_each(|name| _ = headers.remove(name));
    if sensitive.is_some() && text(&headers, header::ACCEPT).contains("protobuf") {
        headers.insert(header::ACCEPT, HeaderValue::from_static(JSON));
    }
    headers
}

/// The request headers that are recorded.
fn kept(headers: &HeaderMap) -> Headers {
    let all = headers_of(headers).into_iter();
    all.filter(|(name, _)| KEPT.contains(&name.as_str()) || name.starts_with(IMPERSONATE)).collect()
}

/// The headers that are text, except for those of a single connection and those that are not
/// recorded.
fn headers_of(headers: &HeaderMap) -> Headers {
    let named = headers.iter().filter(|(name, _)| !HOP.contains(name) && !UNKEPT.contains(&name.as_str()));
    let texts = named.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    texts.collect()
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// A response with a Status of our own.
pub fn refusal(status: &Status) -> Response<Body> {
    let mut response = Response::new(Body::from(json::encode(&status.to_value())));
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
