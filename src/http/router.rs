//! The fallback handler: from a path to the code that answers it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response};
use tokio::time::timeout;

use crate::audit::PLANE;
use crate::auth::Attributes;
use crate::meta::Status;
use crate::meta::gate::Gate;
use crate::processor::{ExpectedWork, Share, metered};
use crate::webhook::patience;

use super::app::App;
use super::authorization;
use super::classify::{self, document_route};
use super::exchange::{AUDIT_ID, Exchange};
use super::impersonation::Impersonated;
use super::limits::RequestKind;
use super::observe::Observed;
use super::path::{self, BAD_REQUEST_TEXT, NOT_FOUND_TEXT, Target};
use super::{answer, documents, faults, health, impersonation, issuer, metrics, resources, share, skiff};

/// How long the change of one object may take at most, whatever the request timeout is.
const CHANGE_TIMEOUT_MAX: Duration = Duration::from_secs(34);

/// Everything that is served.
pub fn router(app: App) -> Router {
    Router::new().fallback(handle).with_state(Arc::new(app))
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    if let Some(asked) = &app.asked {
        asked.notify_one();
    }
    let (mut exchange, body) = Exchange::read(request);
    exchange.is_compressed = app.registry.definitions.minor.opens(Gate::ApiResponseCompression);
    let target = path::parse(&exchange.path).ok();
    if exchange.query.timeout().is_err()
        && let Some(refusal) = app.early_refusals().wrong_timeout(&mut exchange, target.as_ref())
    {
        return identified(&exchange, refusal);
    }
    let observed = classify::begin(&app.observer, &exchange, target.as_ref());
    let share = share::of(&app, &exchange, target.as_ref(), observed.kind());
    if !app.plane.is_empty() {
        observed.annotate(PLANE, &app.plane);
    }
    // They are set only here.
    _ = exchange.observed.set(Arc::clone(&observed));
    _ = exchange.share.set(Arc::clone(&share));
    let is_apart = observed.kind() == RequestKind::Mutating || share.expected() == ExpectedWork::Long;
    let work = work(app, exchange, observed, Arc::clone(&share), target, body);
    if is_apart { share::apart(share, work).await } else { work.await }
}

/// Answers a request, with its share of the processors.
async fn work(
    app: Arc<App>,
    mut exchange: Exchange,
    observed: Arc<Observed>,
    share: Arc<Share>,
    target: Option<Target>,
    body: Body,
) -> Response<Body> {
    let is_change = target.as_ref().is_some_and(|target| changes_one_object(&exchange, &observed, target));
    let answered = metered(&share, respond(&app, &mut exchange, &observed, target, body)).await;
    app.processor.done(&share);
    let response = answered.unwrap_or_else(|broken| share::broken_off(&exchange, &observed, is_change, broken));
    observed.answered(response.status().as_u16(), response.body().size_hint().exact());
    share::while_sent(&app, &share, observed.kind(), identified(&exchange, response))
}

/// The answer with the id of its request in the audit log.
fn identified(exchange: &Exchange, mut response: Response<Body>) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(&exchange.audit_id) {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    response
}

async fn respond(
    app: &App,
    exchange: &mut Exchange,
    observed: &Observed,
    target: Option<Target>,
    body: Body,
) -> Response<Body> {
    let Some(target) = target else { return answer::text(exchange, 400, BAD_REQUEST_TEXT) };
    let mut patience = Patience::of(app, exchange, observed, &target);
    if !exchange.impersonation.is_empty() {
        let begun = Instant::now();
        let headers = std::mem::take(&mut exchange.impersonation);
        // Boxed as a whole: most requests have no part in it.
        let impersonated = Box::pin(async {
            let impersonated = impersonate(app, exchange, headers, &target);
            within_limits(app, exchange, observed, patience, impersonated).await
        });
        match impersonated.await {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(impersonated))) => {
                observed.impersonated(&impersonated);
                exchange.user = impersonated.user;
            }
            Ok(Err(status)) => return answer::denial(exchange, &status),
            Err(refusal) => return refusal,
        }
        patience = patience.after(begun.elapsed());
    }
    let (app, exchange) = (app, &*exchange);
    let is_change = changes_one_object(exchange, observed, &target);
    let serve = async |target, body| {
        let answered = within_limits(app, exchange, observed, patience, answer(app, exchange, target, body)).await;
        let answer = answered.unwrap_or_else(|refusal| refusal);
        let Some(taken) = answer::taken_memory(&answer) else { return answer };
        match Box::pin(answer::held(exchange, &app.registry.memory, answer, taken)).await {
            Ok(answer) => answer,
            // What it has done can't be told.
            Err(_) if observed.kind() == RequestKind::Mutating => share::out_of_time(exchange, observed, is_change),
            Err(status) => answer::status(exchange, &status),
        }
    };
    faults::answer(app, exchange, target, body, serve).await
}

/// The user that the request is made as, if its `headers` ask for one.
///
/// Errors: 400 for parts of a user without a name, 403 with the right that is missing.
async fn impersonate(
    app: &App,
    exchange: &Exchange,
    headers: HeaderMap,
    target: &Target,
) -> Result<Option<Impersonated>, Status> {
    let wanted = impersonation::wanted(&headers);
    drop(headers);
    let Some(wanted) = wanted.map_err(|nameless| nameless.refuse(constrains_impersonation(app)))? else {
        return Ok(None);
    };
    app.refresh_policy().await?;
    let method = exchange.method.as_str().to_lowercase();
    let (verb, name, selected);
    let attributes = match target {
        Target::Resource(path) => {
            verb = exchange.verb(path);
            name = exchange.object_name(path, verb);
            selected = exchange.selected(path, verb);
            path.attributes(verb, &name, &selected)
        }
        _ => Attributes::Path { verb: &method, path: &exchange.path },
    };
    let authorizer = (&*app.authorizer, constrains_impersonation(app));
    let begun = Instant::now();
    let outcome =
        impersonation::impersonate(authorizer, &app.impersonations, &exchange.user, &wanted, &attributes).await;
    if constrains_impersonation(app) {
        let (mode, took) = (outcome.as_ref().ok().map(Impersonated::mode), begun.elapsed());
        app.observer.metrics.impersonated(mode, took);
        exchange.observe(|observed| observed.took(|latencies| latencies.impersonation += took));
    }
    outcome.map(Some)
}

/// Whether a request changes one object: then the verb itself tells when its time is over.
fn changes_one_object(exchange: &Exchange, observed: &Observed, target: &Target) -> bool {
    observed.kind() == RequestKind::Mutating
        && matches!(target, Target::Resource(path) if !path.name.is_empty() || exchange.method == axum::http::Method::POST)
}

fn constrains_impersonation(app: &App) -> bool {
    app.registry.definitions.minor.opens(Gate::ConstrainedImpersonation)
}

/// How long a request may take.
#[derive(Clone, Copy)]
enum Patience {
    /// As long as it takes, without a permit.
    Unlimited,
    Limited {
        allowed: Duration,
        /// See [`changes_one_object`].
        is_change: bool,
    },
}

impl Patience {
    fn of(app: &App, exchange: &Exchange, observed: &Observed, target: &Target) -> Self {
        if observed.kind() == RequestKind::LongRunning || matches!(target, Target::Probe { .. }) {
            return Patience::Unlimited;
        }
        // A wrong one has been refused.
        let wanted = exchange.query.timeout().ok().flatten().unwrap_or(Duration::MAX);
        let allowed = wanted.min(app.limits.request_timeout);
        let is_change = changes_one_object(exchange, observed, target);
        let allowed = if is_change { allowed.min(CHANGE_TIMEOUT_MAX) } else { allowed };
        Patience::Limited { allowed, is_change }
    }

    /// The time that is left after `spent`.
    fn after(self, spent: Duration) -> Self {
        match self {
            Patience::Unlimited => self,
            Patience::Limited { allowed, is_change } => {
                Patience::Limited { allowed: allowed.saturating_sub(spent), is_change }
            }
        }
    }
}

/// Works on a request with a permit, within its time limit.
///
/// Errors: the answer if there is no permit, or no time left.
async fn within_limits<T>(
    app: &App,
    exchange: &Exchange,
    observed: &Observed,
    patience: Patience,
    work: impl Future<Output = T>,
) -> Result<T, Response<Body>> {
    let Patience::Limited { allowed, is_change } = patience else { return Ok(work.await) };
    let share = exchange.share.get();
    let expected = share.map_or(ExpectedWork::Short, |share| share.expected());
    let Some(permit) = app.permits.take(observed.kind(), expected, exchange.limited_user()).await else {
        return Err(share::too_many_requests(exchange, observed));
    };
    if let Some(share) = share {
        share.set_deadline(Instant::now() + allowed);
    }
    let answered = timeout(allowed, patience::holding(Arc::new(permit), work)).await;
    answered.map_err(|_| share::out_of_time(exchange, observed, is_change))
}

async fn answer(app: &App, exchange: &Exchange, target: Target, body: Body) -> Response<Body> {
    if let Target::Resource(path) = target {
        return resources::serve(app, exchange, path, body).await;
    }
    let route = document_route(&target);
    if let Target::Probe { probe, check } = &target {
        exchange.observe(|observed| observed.routed(route));
        return health::serve(app, exchange, *probe, check.as_deref()).await;
    }
    let verb = exchange.method.as_str().to_lowercase();
    if let Err(status) = app.refresh_policy().await {
        return answer::status(exchange, &status);
    }
    let attributes = Attributes::Path { verb: &verb, path: &exchange.path };
    let decision = authorization::decide(app, exchange, &attributes).await;
    if !decision.is_allowed() {
        if !decision.error.is_empty() {
            return answer::failed_authorization(exchange, &decision.error);
        }
        let why = attributes.refusal(&exchange.user, &decision.reason);
        return answer::denial(exchange, &Status::forbidden_path(&why));
    }
    let response = match target {
        Target::Undetermined => answer::text(exchange, 500, path::undetermined(&exchange.uri)),
        Target::Unknown => answer::text(exchange, 404, NOT_FOUND_TEXT),
        Target::Metrics => {
            let text = app.observer.metrics.text(&app.registry.storage);
            answer::body(exchange, 200, metrics::CONTENT_TYPE, text.into_bytes())
        }
        Target::Issuer | Target::IssuerKeys => issuer::serve(app, exchange, &target),
        Target::Skiff(path) => skiff::serve(app, exchange, &path, body).await,
        target => match exchange.ready().await {
            Ok(()) => documents::serve(app, exchange, &target).await,
            Err(status) => answer::status(exchange, &status),
        },
    };
    if !route.subresource.is_empty() || (!route.group.is_empty() && response.status().is_success()) {
        exchange.observe(|observed| observed.routed(route));
    }
    response
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use axum::body::Bytes;
    use futures_util::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;
    use tokio::task::yield_now;
    use tower::ServiceExt as _;

    use crate::auth::{AlwaysAllow, Authorizer, Decision, Rules, UserInfo};
    use crate::controllers::{self, NodePlan, Switches};
    use crate::registry::fixture;
    use crate::store;
    use crate::value::json;

    use super::super::limits::Limits;
    use super::*;

    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

    /// A router that serves `count` Widgets.
    async fn serve_widgets(count: usize) -> Router {
        let registry = fixture::registry().await;
        let definition = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
            "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
            "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":
            {"text":{"type":"string"},"size":{"type":"integer","default":1}}}}}}}]}}"#;
        let begin = Arc::new(tokio::sync::Notify::new());
        let controllers = controllers::start(
            Arc::clone(&registry),
            Switches::SERVER,
            NodePlan::default(),
            controllers::Authority::default(),
            Arc::clone(&begin),
        );
        begin.notify_one();
        registry.register(json::decode(definition).expect("it is JSON")).await.expect("it is valid");
        let unserved = registry.wait_until_served("widgets.example.com").await.expect("the store works");
        assert_eq!(unserved, None);
        // From here on nothing but the requests reads anything on this thread.
        controllers.abort();
        let router = router(App::new(registry, Arc::new(AlwaysAllow)));
        for at in 0..count {
            let widget = format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w-{at}"}},"spec":{{"text":"{}"}}}}"#,
                "x".repeat(500)
            );
            assert_eq!(send(&router, "POST", WIDGETS, widget).await.0, 201);
        }
        router
    }

    async fn send(router: &Router, method: &str, uri: &str, body: String) -> (u16, Vec<u8>) {
        send_as(router, "application/json", method, uri, body).await
    }

    async fn send_as(router: &Router, accept: &str, method: &str, uri: &str, body: String) -> (u16, Vec<u8>) {
        let request = axum::http::Request::builder().method(method).uri(uri).header("accept", accept);
        let request = request.header("content-type", "application/json");
        let mut request = request.body(Body::from(body)).expect("it is a request");
        request.extensions_mut().insert(UserInfo::unsecured());
        let Ok(answer) = router.clone().oneshot(request).await;
        let code = answer.status().as_u16();
        (code, answer.into_body().collect().await.expect("it is in memory").to_bytes().to_vec())
    }

    /// The cost of an answer: values read, and bytes of objects copied.
    async fn cost(router: &Router, uri: &str) -> (usize, usize, usize) {
        cost_as(router, "application/json", uri).await
    }

    async fn cost_as(router: &Router, accept: &str, uri: &str) -> (usize, usize, usize) {
        let (decoded, copied) = (json::tally::decoded(), store::tally::copied());
        let (code, body) = send_as(router, accept, "GET", uri, String::new()).await;
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&body));
        (json::tally::decoded() - decoded, store::tally::copied() - copied, body.len())
    }

    #[tokio::test]
    async fn the_future_of_a_request_is_small_as_those_around_it_move_it() {
        let app = Arc::new(App::new(fixture::registry().await, Arc::new(AlwaysAllow)));
        let (request, _) = axum::http::Request::builder().body(Body::empty()).expect("it is a request").into_parts();
        let (mut exchange, body) = Exchange::read(Request::from_parts(request, Body::empty()));
        let observed = classify::begin(&app.observer, &exchange, None);
        let answered = respond(&app, &mut exchange, &observed, None, body);
        let (bytes, bytes_max) = (size_of_val(&answered), 8 << 10);
        assert!(bytes <= bytes_max, "{bytes} bytes");
        let handled = handle(State(Arc::clone(&app)), Request::new(Body::empty()));
        assert!(size_of_val(&handled) <= bytes_max, "{} bytes", size_of_val(&handled));
    }

    /// A future that never completes.
    struct Hangs;

    #[async_trait]
    impl Authorizer for Hangs {
        async fn authorize(&self, _: &UserInfo, _: &Attributes<'_>) -> Decision {
            std::future::pending().await
        }

        fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
            Rules::default()
        }
    }

    #[tokio::test]
    async fn whether_a_user_may_become_another_is_decided_within_the_time_of_the_request() {
        let router = router(App::new(fixture::registry().await, Arc::new(Hangs)));
        let request = axum::http::Request::builder().uri("/api/v1/namespaces?timeout=10ms");
        let mut request = request.header("impersonate-user", "joe").body(Body::empty()).expect("it is a request");
        request.extensions_mut().insert(UserInfo::authenticated("jane", Vec::new()));
        let Ok(answer) = router.oneshot(request).await;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.expect("it is in memory").to_bytes();
        let status = json::decode(&body).expect("it is JSON");
        let why = "Timeout: request did not complete within the allotted timeout";
        assert_eq!((code, status.str_at(&["message"])), (504, why));
    }

    /// What `app` answers to a request of `user`, who belongs to no group.
    async fn answer_to(app: &Arc<App>, user: &str, (method, uri): (&str, &str), body: Body) -> Response<Body> {
        let request = axum::http::Request::builder().method(method).uri(uri).header("content-type", "application/json");
        let mut request = request.body(body).expect("it is a request");
        request.extensions_mut().insert(UserInfo { name: user.to_owned(), ..UserInfo::default() });
        handle(State(Arc::clone(app)), request).await
    }

    /// An app with one place for requests of each kind.
    async fn app_with_one_place(authorizer: Arc<dyn Authorizer>) -> Arc<App> {
        let limits = Limits { read_only: 1, mutating: 1, ..Limits::default() };
        Arc::new(App::with(fixture::registry().await, authorizer, Arc::default(), limits, Arc::new([])))
    }

    #[tokio::test]
    async fn a_body_that_does_not_arrive_holds_no_place() {
        const CONFIG_MAPS: (&str, &str) = ("POST", "/api/v1/namespaces/default/configmaps");
        let app = app_with_one_place(Arc::new(AlwaysAllow)).await;
        let asked = Arc::new(tokio::sync::Notify::new());
        let begins = Arc::clone(&asked);
        let begin = stream::once(async move {
            begins.notify_one();
            Ok::<_, std::io::Error>(Bytes::from_static(b"{"))
        });
        let stalled = Body::from_stream(begin.chain(stream::pending()));
        let held = Arc::clone(&app);
        let stalled = tokio::spawn(async move { answer_to(&held, "jane", CONFIG_MAPS, stalled).await });
        asked.notified().await;
        let whole = r#"{"metadata":{"name":"a"}}"#;
        assert_eq!(answer_to(&app, "bob", CONFIG_MAPS, Body::from(whole)).await.status(), 201);
        assert!(!stalled.is_finished());
        stalled.abort();
    }

    #[tokio::test]
    async fn a_request_that_waits_for_a_revision_holds_no_place() {
        const NAMESPACE: &str = "/api/v1/namespaces/default";
        let app = app_with_one_place(Arc::new(AlwaysAllow)).await;
        let held = Arc::clone(&app);
        let waiting = tokio::spawn(async move {
            answer_to(&held, "jane", ("GET", "/api/v1/namespaces/default?resourceVersion=99999999"), Body::empty())
                .await
        });
        while app.observer.metrics.in_flight("readOnly").get() == 0 {
            yield_now().await;
        }
        assert_eq!(answer_to(&app, "bob", ("GET", NAMESPACE), Body::empty()).await.status(), 200);
        assert_eq!(waiting.await.expect("it does not panic").status(), 504);
    }

    #[tokio::test]
    async fn requests_beyond_the_limit_are_told_to_come_back() {
        let app = app_with_one_place(Arc::new(Hangs)).await;
        let held = Arc::clone(&app);
        let first = tokio::spawn(async move { answer_to(&held, "jane", ("GET", "/api"), Body::empty()).await });
        while app.observer.metrics.in_flight("readOnly").get() == 0 {
            yield_now().await;
        }
        let refused = answer_to(&app, "bob", ("GET", "/api"), Body::empty()).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (429, &HeaderValue::from_static("1"))
        );
        let text = refused.into_body().collect().await.expect("it is in memory").to_bytes();
        assert_eq!(text, "Too many requests, please try again later.\n");
        assert_eq!(
            answer_to(&app, "bob", ("GET", "/readyz/ping"), Body::empty()).await.status(),
            200,
            "no place is needed"
        );
        first.abort();
    }

    #[tokio::test]
    async fn a_get_reads_nothing_and_copies_its_object_once() {
        let router = serve_widgets(1).await;
        let path = format!("{WIDGETS}/w-0");
        let (first, ..) = cost(&router, &path).await;
        assert_eq!(first, 0, "what was written here is answered as it is stored");
        let (decoded, copied, size) = cost(&router, &path).await;
        assert_eq!(decoded, 0);
        assert!((size - 48..size).contains(&copied), "{copied} of {size} bytes");
    }

    #[tokio::test]
    async fn a_list_reads_nothing_and_copies_each_object_once() {
        let router = serve_widgets(50).await;
        cost(&router, WIDGETS).await;
        for uri in [WIDGETS.to_owned(), format!("{WIDGETS}?limit=20"), format!("{WIDGETS}?labelSelector=!a")] {
            let (decoded, copied, size) = cost(&router, &uri).await;
            // The labels of an object are decoded once, in the first selection.
            let (again, ..) = cost(&router, &uri).await;
            assert_eq!(again, 0, "{uri}, after {decoded}");
            assert!(copied < size && copied * 10 > size * 9, "{uri}: {copied} of {size} bytes");
        }
        let (decoded, ..) = cost(&router, WIDGETS).await;
        assert_eq!(decoded, 0);
    }

    #[tokio::test]
    async fn built_in_objects_go_out_without_being_read() {
        const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
        let router = router(App::new(fixture::registry().await, Arc::new(AlwaysAllow)));
        let list = format!("{PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
        let event = format!("{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
        for (accept, uri) in [
            ("application/json", "/api/v1/namespaces/default"),
            ("application/json", "/api/v1/namespaces"),
            ("application/json", "/api/v1/namespaces?watch=1&timeoutSeconds=1"),
            (PROTOBUF, "/api/v1/namespaces/default"),
            (PROTOBUF, "/api/v1/namespaces"),
            (PROTOBUF, "/api/v1/namespaces?watch=1&timeoutSeconds=1"),
            (list.as_str(), "/api/v1/namespaces"),
            (event.as_str(), "/api/v1/namespaces?watch=1&timeoutSeconds=1"),
        ] {
            cost_as(&router, accept, uri).await;
            let (decoded, _, size) = cost_as(&router, accept, uri).await;
            assert_eq!(decoded, 0, "{uri} as {accept}");
            assert!(size > 100, "{uri} as {accept}: {size} bytes");
        }
    }

    #[tokio::test]
    async fn a_deletion_reads_one_text_and_what_it_has_below_spec_stays_unread() {
        let router = serve_widgets(1).await;
        let decoded = json::tally::decoded();
        let (code, _) = send(&router, "DELETE", &format!("{WIDGETS}/w-0"), String::new()).await;
        assert_eq!((code, json::tally::decoded() - decoded), (200, 1));
    }

    #[tokio::test]
    async fn a_watch_reads_nothing_and_copies_each_object_once() {
        let router = serve_widgets(20).await;
        let path = format!("{WIDGETS}?watch=1&timeoutSeconds=1");
        cost(&router, &path).await;
        let (decoded, copied, size) = cost(&router, &path).await;
        assert_eq!(decoded, 0);
        assert!(copied < size && copied * 10 > size * 8, "{copied} of {size} bytes");
    }
}
