//! Answers programs from a record.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Limited};
use tokio::time::{Instant, sleep, sleep_until};

use super::super::print::note;
use super::file::{EndedStream, RecordedAnswer, RecordedContent, RecordedRequest, StreamEnd, StreamPart};
use super::key::{Matching, RequestKey};
use super::proxy::{BEFORE_BREAK, refusal};
use crate::http::Stopping;
use crate::http::query::Query;
use crate::meta::Status;

/// The longest request body, in bytes.
const REQUEST_BYTES_MAX: usize = 16 << 20;

/// The answers of a record, by request.
pub struct Answers {
    by_key: HashMap<RequestKey, Vec<RecordedAnswer>>,
    matching: Matching,
    /// Whether events are sent at once, instead of at their recorded times.
    at_once: bool,
    counts: Mutex<AnswerCounts>,
}

#[derive(Default)]
struct AnswerCounts {
    /// How often each request was received in this run.
    asked: HashMap<RequestKey, usize>,
    known: u64,
    new: u64,
}

impl Answers {
    pub fn new(read: Vec<(RecordedRequest, RecordedAnswer)>, matching: Matching, at_once: bool) -> Self {
        let mut by_key: HashMap<RequestKey, Vec<RecordedAnswer>> = HashMap::new();
        for (asked, answer) in read {
            let accept = asked.headers.iter().find(|(name, _)| name == "accept").map_or("", |(_, value)| value);
            let body = asked.body.unwrap_or_default();
            by_key.entry(matching.key(&asked.method, &asked.uri, accept, &body)).or_default().push(answer);
        }
        Answers { by_key, matching, at_once, counts: Mutex::default() }
    }

    /// How many requests were answered, how many were new, and how many answers of the record were
    /// not used.
    pub fn counts(&self) -> (u64, u64, usize) {
        let counts = self.lock();
        let asked = |key: &RequestKey| counts.asked.get(key).copied().unwrap_or_default();
        let unasked = self.by_key.iter().map(|(key, answers)| answers.len().saturating_sub(asked(key))).sum();
        (counts.known, counts.new, unasked)
    }

    /// The next answer to a request; the last one is repeated.
    fn next(&self, key: RequestKey) -> Option<RecordedAnswer> {
        let mut counts = self.lock();
        let Some(answers) = self.by_key.get(&key) else {
            counts.new += 1;
            return None;
        };
        counts.known += 1;
        let asked = counts.asked.entry(key).or_default();
        *asked += 1;
        answers.get(*asked - 1).or(answers.last()).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, AnswerCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A router that answers every request.
pub fn router(answers: Arc<Answers>) -> Router {
    Router::new().fallback(handle).with_state(answers)
}

async fn handle(State(answers): State<Arc<Answers>>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let uri = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let Ok(body) = Limited::new(body, REQUEST_BYTES_MAX).collect().await else {
        return refusal(&Status::request_entity_too_large(&format!("limit is {REQUEST_BYTES_MAX}")));
    };
    let accept = head.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = answers.matching.key(head.method.as_str(), &uri, accept, &body.to_bytes());
    let Some(answer) = answers.next(key) else {
        note(format_args!("new: {} {uri}", head.method));
        return refusal(&Status::plain(501, &format!("the record does not have {} {uri}", head.method)));
    };
    let content = match answer.content {
        RecordedContent::Whole(Some(body)) => Body::from(body),
        RecordedContent::Whole(None) => {
            return refusal(&Status::plain(501, "the answer was left out of the record, as it could not be masked"));
        }
        RecordedContent::Stream(parts, end) => {
            let played = Played {
                parts: parts.into_iter(),
                end,
                begun: Instant::now(),
                until: time_out(&uri).and_then(|time_out| Instant::now().checked_add(time_out)),
                at_once: answers.at_once,
                stopping: head.extensions.get::<Stopping>().cloned(),
            };
            played.body()
        }
    };
    let mut response = Response::new(content);
    *response.status_mut() = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The time limit of a watch, if its request has one; 0 is none, as for Kubernetes.
fn time_out(uri: &str) -> Option<Duration> {
    let (_, query) = uri.split_once('?')?;
    let seconds = Query::parse(query).first("timeoutSeconds")?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|time_out| !time_out.is_zero())
}

/// A recorded stream that is played back.
struct Played {
    parts: std::vec::IntoIter<StreamPart>,
    end: EndedStream,
    begun: Instant,
    until: Option<Instant>,
    at_once: bool,
    stopping: Option<Stopping>,
}

impl Played {
    fn body(self) -> Body {
        Body::from_stream(stream::unfold(self, |mut played| async move {
            let next = played.next().await?;
            Some((next, played))
        }))
    }

    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while let Some(part) = self.parts.next() {
            self.sleep_until(part.after).await;
            // A part that was left out of the record is skipped.
            if let Some(data) = part.data {
                return Some(Ok(data));
            }
        }
        if self.end.how != StreamEnd::Left {
            self.sleep_until(self.end.after).await;
        }
        match self.end.how {
            StreamEnd::Closed => None,
            StreamEnd::Broken => {
                self.end.how = StreamEnd::Closed;
                sleep(BEFORE_BREAK).await;
                Some(Err(io::Error::other("the stream broke off in the record")))
            }
            StreamEnd::Left => {
                self.wait().await;
                None
            }
        }
    }

    /// Waits until so long after the start, unless everything is sent at once.
    async fn sleep_until(&self, after: Duration) {
        match self.begun.checked_add(after) {
            _ if self.at_once => {}
            Some(until) => sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the time limit of the request, or the end of the process.
    async fn wait(&mut self) {
        let stopped = async {
            match &mut self.stopping {
                Some(stopping) => stopping.stopped().await,
                None => std::future::pending().await,
            }
        };
        match self.until {
            Some(until) => tokio::select! {
                () = stopped => {}
                () = sleep_until(until) => {}
            },
            None => stopped.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_of_zero_is_none() {
        let of = |query: &str| time_out(&format!("/api/v1/pods?watch=1{query}"));
        assert_eq!(of("&timeoutSeconds=5"), Some(Duration::from_secs(5)));
        assert_eq!([of(""), of("&timeoutSeconds=0"), of("&timeoutSeconds=")], [None; 3]);
    }
}
