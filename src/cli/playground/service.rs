//! Routes requests to their handlers.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};
use hyper::Request;
use hyper::body::Incoming;
use tokio::task::spawn_blocking;

use super::super::project::Project;
use super::live::LiveApi;
use super::questions::{Question, Questions};
use super::{answer, assets, examples, guard};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::Value;

/// The page with its parts and questions.
#[derive(Clone)]
pub struct PlaygroundPage {
    address: SocketAddr,
    questions: Arc<Questions>,
    project: Arc<Project>,
    live: Option<LiveApi>,
}

impl PlaygroundPage {
    /// The page at `address` without a server; its examples include the definitions of `project`.
    pub fn alone(address: SocketAddr, project: Project) -> PlaygroundPage {
        PlaygroundPage { address, questions: Arc::default(), project: Arc::new(project), live: None }
    }

    /// The page with access to a server.
    pub fn beside(address: SocketAddr, live: LiveApi) -> PlaygroundPage {
        PlaygroundPage { live: Some(live), ..PlaygroundPage::alone(address, Project::default()) }
    }

    async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let is_page = path == "/";
        if let Some(why) = guard::refusal(self.address, request.method(), request.headers(), is_page) {
            return answer::refusal(StatusCode::FORBIDDEN, why);
        }
        if let Some(live) = self.live.as_ref().filter(|_| LiveApi::is_for(path)) {
            return live.answer(request).await;
        }
        match *request.method() {
            Method::GET if path == "/examples" => {
                let project = Arc::clone(&self.project);
                match spawn_blocking(move || examples::list(&project)).await {
                    Ok(examples) => answer::value(&examples),
                    Err(_) => answer::refusal(StatusCode::INTERNAL_SERVER_ERROR, "the examples could not be read"),
                }
            }
            Method::GET => self.part(path),
            Method::POST => match Question::named(path) {
                Some(question) => self.questions.answer(question, request).await,
                None => not_found(),
            },
            _ => answer::refusal(StatusCode::METHOD_NOT_ALLOWED, "the method is not allowed"),
        }
    }

    fn part(&self, path: &str) -> Response<Body> {
        match path {
            "/" => {
                let nonce = uuid::Uuid::new_v4().simple().to_string();
                answer::page(assets::INDEX.replace("{nonce}", &nonce), &nonce)
            }
            "/about" => {
                let live = self.live.as_ref().map_or("none", LiveApi::mode);
                let all = Minor::all().map(|minor| minor.to_string());
                let minors = [format!("{}-{}", Minor::OLDEST, Minor::NEWEST)].into_iter().chain(all).rev();
                let minors: Vec<Value> = minors.map(Value::from).collect();
                answer::value(&object! { "version" => env!("CARGO_PKG_VERSION"), "live" => live, "minors" => minors })
            }
            path => match assets::ASSETS.iter().find(|asset| asset.path == path) {
                Some(asset) => answer::bytes(StatusCode::OK, asset.content_type, asset.file.bytes()),
                None => not_found(),
            },
        }
    }
}

fn not_found() -> Response<Body> {
    answer::refusal(StatusCode::NOT_FOUND, "there is no such part")
}

impl tower::Service<Request<Incoming>> for PlaygroundPage {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let page = self.clone();
        Box::pin(async move { Ok(page.answer(request).await) })
    }
}
