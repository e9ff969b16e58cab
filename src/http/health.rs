//! `/healthz`, `/livez`, `/readyz`: is the server alive, and is it ready for requests?
//!
//! Source: `k8s.io/apiserver/pkg/server/healthz`, release 1.37, and the names of kube-apiserver's checks.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};

use crate::store::StoreError;
use crate::value::go_quote;

use super::answer;
use super::app::App;
use super::exchange::Exchange;
use super::path::{NOT_FOUND_TEXT, Probe};

/// How long the database may take to answer before it counts as unreachable.
const STORE_WAIT: Duration = Duration::from_secs(2);

/// A health check. Everything that must have started has started before the first request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HealthProbe {
    /// Passes whenever it is asked.
    Started,
    /// The main database answers.
    Store,
    /// The other database of that number answers.
    OtherStore(usize),
    /// The server is not about to stop.
    Running,
}

const HEALTHZ: &[(&str, HealthProbe)] = &[
    ("ping", HealthProbe::Started),
    ("log", HealthProbe::Started),
    ("etcd", HealthProbe::Store),
    ("poststarthook/start-apiextensions-informers", HealthProbe::Started),
    ("poststarthook/start-apiextensions-controllers", HealthProbe::Started),
    ("poststarthook/crd-informer-synced", HealthProbe::Started),
];

/// A server whose database is unreachable need not be restarted.
const LIVEZ: &[(&str, HealthProbe)] = &[
    ("ping", HealthProbe::Started),
    ("log", HealthProbe::Started),
    ("poststarthook/start-apiextensions-informers", HealthProbe::Started),
    ("poststarthook/start-apiextensions-controllers", HealthProbe::Started),
    ("poststarthook/crd-informer-synced", HealthProbe::Started),
];

const READYZ: &[(&str, HealthProbe)] = &[
    ("ping", HealthProbe::Started),
    ("log", HealthProbe::Started),
    ("etcd", HealthProbe::Store),
    ("etcd-readiness", HealthProbe::Store),
    ("informer-sync", HealthProbe::Started),
    ("poststarthook/start-apiextensions-informers", HealthProbe::Started),
    ("poststarthook/start-apiextensions-controllers", HealthProbe::Started),
    ("poststarthook/crd-informer-synced", HealthProbe::Started),
    ("shutdown", HealthProbe::Running),
];

/// Answers a health check: all of `probe`, or one by its name.
pub(super) async fn serve(app: &App, exchange: &Exchange, probe: Probe, check: Option<&str>) -> Response<Body> {
    let (name, fixed) = match probe {
        Probe::Healthz => ("healthz", HEALTHZ),
        Probe::Livez => ("livez", LIVEZ),
        Probe::Readyz => ("readyz", READYZ),
    };
    let checks = with_other_stores(fixed, app.registry.storage.other_count());
    let Some(wanted) = check else { return all(app, exchange, name, &checks).await };
    let Some((_, check)) = checks.iter().find(|(name, _)| *name == wanted) else {
        return answer::text(exchange, 404, NOT_FOUND_TEXT);
    };
    match look(app, exchange, *check).await {
        Ok(()) => answer::text(exchange, 200, "ok"),
        Err(why) => answer::text(exchange, 500, format!("internal server error: {why}\n")),
    }
}

/// The checks of a probe, and those of the main database once more for each other database, under the names that
/// kube-apiserver uses for overrides.
fn with_other_stores(
    fixed: &'static [(&'static str, HealthProbe)],
    others: usize,
) -> Vec<(Cow<'static, str>, HealthProbe)> {
    let is_store = |check: &HealthProbe| *check == HealthProbe::Store;
    let of_other = |number: usize| {
        let names = fixed.iter().filter(|(_, check)| is_store(check)).map(|(name, _)| *name);
        names.map(move |name| {
            let name = name.replacen("etcd", "etcd-override", 1);
            (Cow::Owned(format!("{name}-{number}")), HealthProbe::OtherStore(number))
        })
    };
    let mut checks: Vec<_> = fixed.iter().map(|(name, check)| (Cow::Borrowed(*name), *check)).collect();
    if let Some(last) = checks.iter().rposition(|(_, check)| is_store(check)) {
        checks.splice(last + 1..last + 1, (0..others).flat_map(of_other));
    }
    checks
}

async fn all(app: &App, exchange: &Exchange, name: &str, checks: &[(Cow<'_, str>, HealthProbe)]) -> Response<Body> {
    let mut unknown: Vec<&str> = exchange.query.all("exclude").collect();
    unknown.sort_unstable();
    unknown.dedup();
    let mut lines = String::new();
    let mut failed = false;
    for (check, what) in checks {
        if let Some(at) = unknown.iter().position(|excluded| *excluded == check.as_ref()) {
            unknown.remove(at);
            lines.push_str(&format!("[+]{check} excluded: ok\n"));
            continue;
        }
        match look(app, exchange, *what).await {
            Ok(()) => lines.push_str(&format!("[+]{check} ok\n")),
            Err(error) => {
                tracing::warn!(%check, why = error.to_string(), "a health check of {name} failed");
                failed = true;
                // Anybody may ask.
                lines.push_str(&format!("[-]{check} failed: reason withheld\n"));
            }
        }
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| go_quote(name)).collect();
        let names = names.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
    }
    if failed {
        return answer::text(exchange, 500, format!("{lines}{name} check failed\n"));
    }
    let text =
        if exchange.query.contains("verbose") { format!("{lines}{name} check passed\n") } else { "ok".to_owned() };
    let mut response = answer::text(exchange, 200, text);
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Why a check fails.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error("process is shutting down")]
    Stopping,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the database does not answer")]
    NoAnswer,
}

async fn look(app: &App, exchange: &Exchange, check: HealthProbe) -> Result<(), CheckError> {
    match check {
        HealthProbe::Started => Ok(()),
        HealthProbe::Store => in_time(app.registry.storage.ping()).await,
        HealthProbe::OtherStore(number) => in_time(app.registry.storage.ping_other(number)).await,
        HealthProbe::Running => {
            if exchange.stopping.as_ref().is_some_and(super::Stopping::is_stopping) {
                Err(CheckError::Stopping)
            } else {
                Ok(())
            }
        }
    }
}

async fn in_time(ping: impl Future<Output = Result<(), StoreError>>) -> Result<(), CheckError> {
    match tokio::time::timeout(STORE_WAIT, ping).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(CheckError::NoAnswer),
    }
}
