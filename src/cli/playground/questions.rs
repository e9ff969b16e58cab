//! The questions of the page: requests and responses in JSON, within bounds.

use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::{Response, StatusCode, header};
use hyper::Request;
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::super::policies::Given;
use super::answer;
use crate::author::playground::{self, InputError, Inputs, Pane};
use crate::object;
use crate::value::{Value, json};
use crate::work::{Broken, Ended, Meter, Oversee};

/// The maximum size of the page's texts in JSON.
const BODY_BYTES_MAX: usize = 2 << 20;
/// How long the body may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the computation of an answer may take.
const TIME_MAX: Duration = Duration::from_secs(5);
/// How many answers are computed at once.
const AT_ONCE_MAX: usize = 2;
/// How many more questions may wait: the page asks one after the other.
const WAITING_MAX: usize = 16;

/// The kinds of questions.
#[derive(Clone, Copy)]
pub enum Question {
    /// Everything about the texts.
    Evaluate,
    /// Completions.
    Complete,
    /// The definitions with a finding fixed.
    Fix,
    /// The definitions with bounds that make a rule cheaper.
    Bound,
    /// A case for a suite.
    Case,
    /// The request with another user.
    User,
    /// The request with another value of a parameter.
    Param,
}

impl Question {
    /// The question for a path.
    pub fn named(path: &str) -> Option<Question> {
        match path {
            "/evaluate" => Some(Question::Evaluate),
            "/complete" => Some(Question::Complete),
            "/fix" => Some(Question::Fix),
            "/bound" => Some(Question::Bound),
            "/case" => Some(Question::Case),
            "/user" => Some(Question::User),
            "/param" => Some(Question::Param),
            _ => None,
        }
    }
}

/// Answers questions, a few at a time.
pub struct Questions {
    turns: Semaphore,
    places: Semaphore,
}

impl Default for Questions {
    fn default() -> Self {
        Questions { turns: Semaphore::new(AT_ONCE_MAX), places: Semaphore::new(AT_ONCE_MAX + WAITING_MAX) }
    }
}

impl Questions {
    /// Answers a question, or returns an error.
    pub async fn answer(&self, question: Question, request: Request<Incoming>) -> Response<Body> {
        // A form can't send this type without a preflight request, which is not answered.
        if request.headers().get(header::CONTENT_TYPE).is_none_or(|value| value != "application/json") {
            return answer::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json");
        }
        let Ok(_place) = self.places.try_acquire() else {
            return answer::refusal(StatusCode::TOO_MANY_REQUESTS, "too many questions wait");
        };
        let body = to_bytes(Body::new(request.into_body()), BODY_BYTES_MAX);
        let body = match timeout(BODY_TIME_MAX, body).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => return answer::refusal(StatusCode::PAYLOAD_TOO_LARGE, "the texts are larger than 2 MiB"),
            Err(_) => return answer::refusal(StatusCode::REQUEST_TIMEOUT, "the body did not come"),
        };
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        let thought = spawn_blocking(move || {
            let mut meter = Meter::new(TimeLimit { end: Instant::now() + TIME_MAX });
            meter.run(|| think(question, &body))
        });
        match thought.await {
            Ok(Ok(Ok(value))) => answer::value(&value),
            Ok(Ok(Err(error))) => answer::refusal(StatusCode::BAD_REQUEST, &error.to_string()),
            Ok(Err(Broken::Ended(_))) => {
                let message = format!("this takes more than {} s to think about", TIME_MAX.as_secs());
                answer::refusal(StatusCode::UNPROCESSABLE_ENTITY, &message)
            }
            Ok(Err(Broken::Panicked(_))) | Err(_) => answer::refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "a fault of skiff: please report it with these texts",
            ),
        }
    }
}

/// Aborts work that takes too long.
struct TimeLimit {
    end: Instant,
}

impl Oversee for TimeLimit {
    fn look(&mut self) -> Result<(), Ended> {
        if Instant::now() < self.end { Ok(()) } else { Err(Ended::Deadline) }
    }
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
enum QuestionError {
    #[error("the body is not JSON: {0}")]
    Body(#[from] json::JsonError),
    #[error(transparent)]
    Inputs(#[from] InputError),
    #[error("`{0}` is not a number")]
    Number(&'static str),
    #[error("there is no pane `{0}`")]
    Pane(String),
}

fn think(question: Question, body: &[u8]) -> Result<Value, QuestionError> {
    let sent = json::decode(body)?;
    let inputs = Inputs::read(&sent)?;
    let number = |name: &'static str| {
        let number = sent.get(name).and_then(Value::as_i64).and_then(|number| usize::try_from(number).ok());
        number.ok_or(QuestionError::Number(name))
    };
    Ok(match question {
        Question::Evaluate => {
            let given = Given::new(inputs.minor(), inputs.manifests());
            playground::evaluate(&inputs, &given.set, &|user| given.request_user(user))
        }
        Question::Complete => {
            let pane = sent.str_at(&["pane"]);
            let pane = Pane::named(pane).ok_or_else(|| QuestionError::Pane(pane.to_owned()))?;
            let given = Given::new(inputs.minor(), inputs.manifests());
            playground::complete(
                &inputs,
                pane,
                number("line")?,
                number("column")?,
                Box::new(move |user| given.request_user(user)),
            )
        }
        Question::Fix => text(playground::fix(&inputs, number("finding")?)),
        Question::Bound => text(playground::add_bound(&inputs, &sent)),
        Question::User => text(playground::with_user(&inputs, sent.get("user").unwrap_or(&Value::Null))),
        Question::Param => text(playground::with_param(&inputs, sent.get("param").unwrap_or(&Value::Null))),
        Question::Case => {
            let given = Given::new(inputs.minor(), inputs.manifests());
            text(playground::case(&inputs, &given.set, &|user| given.request_user(user)))
        }
    })
}

/// A text as an object; null if there is none.
fn text(text: Option<String>) -> Value {
    object! { "text" => text.map_or(Value::Null, Value::from) }
}
