//! `/metrics`: metrics of the server, under the names that Kubernetes gives them.
//!
//! Only requests for what is served are counted under their own labels, and only so many of them, so that no client can
//! create an unlimited number of time series.
//! Source: `k8s.io/apiserver/pkg/endpoints/metrics` and `pkg/storage/etcd3/metrics`, release 1.37.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::admission::Figures;
use crate::auth;
use crate::meta::minor::Minor;
use crate::store::Storage;
use crate::work;

use super::version_of;

/// The type of the text that [`Metrics::text`] gives.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// How many routes are told apart; of further ones, only the verb and the scope are. Definitions come and go, and what
/// is counted of a route stays.
const ROUTES_MAX: usize = 2_000;

/// What Kubernetes puts for the value of a label that is not to be told apart.
const UNEXPECTED: &str = "unexpected";

/// The lines of a route, about.
const ROUTE_LINES: usize = 50;

const SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

/// What a request was about.
#[derive(Clone, Debug, Default, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Route {
    pub verb: &'static str,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    /// `resource`, `namespace`, `cluster`, or empty if it is not a resource.
    pub scope: &'static str,
    pub component: Component,
}

impl Route {
    /// The route of all that are not told apart.
    fn unexpected(self) -> Self {
        let [group, version, resource, subresource] = [UNEXPECTED; 4].map(str::to_owned);
        Route { group, version, resource, subresource, ..self }
    }
}

/// Of three fields alone, as each request is hashed several times: few routes have them all in common.
impl Hash for Route {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.verb, &self.group, &self.resource).hash(hasher);
    }
}

/// Always `apiserver`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Component;

impl prometheus_client::encoding::EncodeLabelValue for Component {
    fn encode(&self, encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>) -> std::fmt::Result {
        "apiserver".encode(encoder)
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AnsweredLabels {
    dry_run: &'static str,
    #[prometheus(flatten)]
    route: Route,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Timed {
    dry_run: &'static str,
    #[prometheus(flatten)]
    route: Route,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Watched {
    group: String,
    version: String,
    resource: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Deprecated {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    removed_release: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ImpersonationLabels {
    mode: String,
    decision: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InFlight {
    request_kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Collected {
    group: String,
    resource: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Built {
    git_version: String,
    major: &'static str,
    minor: String,
}

/// The metrics of a server.
pub(super) struct Metrics {
    registry: Registry,
    /// The routes that are told apart.
    routes: RwLock<HashSet<Route>>,
    requests: Family<AnsweredLabels, Counter>,
    durations: Family<Timed, Histogram, fn() -> Histogram>,
    sizes: Family<Route, Histogram, fn() -> Histogram>,
    terminations: Family<AnsweredLabels, Counter>,
    long_running: Family<Route, Gauge>,
    deprecated: Family<Deprecated, Gauge>,
    impersonations: Family<ImpersonationLabels, Counter>,
    impersonation_durations: Family<ImpersonationLabels, Histogram, fn() -> Histogram>,
    in_flight: Family<InFlight, Gauge>,
    watch_events: Family<Watched, Counter>,
    watch_event_sizes: Family<Watched, Histogram, fn() -> Histogram>,
    objects: Family<Collected, Gauge>,
    revision: Gauge,
    compacted: Gauge,
    writes: Gauge,
    batches: Gauge,
    commits: Gauge,
    statements: Gauge,
    resident_bytes: Gauge,
    started: Gauge<f64, AtomicU64>,
}

/// Counts the events of one watch.
#[derive(Clone)]
pub(super) struct WatchCounters {
    events: Counter,
    sizes: Histogram,
}

impl WatchCounters {
    pub fn count(&self, size_bytes: usize) {
        self.events.inc();
        self.sizes.observe(size_bytes as f64);
    }
}

impl Metrics {
    /// The metrics of a server that speaks for `minor`.
    pub fn new(minor: Minor) -> Self {
        let seconds: fn() -> Histogram = || Histogram::new(SECONDS);
        let answer_sizes: fn() -> Histogram = || Histogram::new(exponential_buckets(1000.0, 10.0, 7));
        let event_sizes: fn() -> Histogram = || Histogram::new(exponential_buckets(1024.0, 2.0, 8));
        let impersonation_seconds: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let metrics = Metrics {
            registry: Registry::default(),
            routes: RwLock::default(),
            requests: Family::default(),
            durations: Family::new_with_constructor(seconds),
            sizes: Family::new_with_constructor(answer_sizes),
            terminations: Family::default(),
            long_running: Family::default(),
            deprecated: Family::default(),
            impersonations: Family::default(),
            impersonation_durations: Family::new_with_constructor(impersonation_seconds),
            in_flight: Family::default(),
            watch_events: Family::default(),
            watch_event_sizes: Family::new_with_constructor(event_sizes),
            objects: Family::default(),
            revision: Gauge::default(),
            compacted: Gauge::default(),
            writes: Gauge::default(),
            batches: Gauge::default(),
            commits: Gauge::default(),
            statements: Gauge::default(),
            resident_bytes: Gauge::default(),
            started: Gauge::default(),
        };
        metrics.started.set(Timestamp::now().as_duration().as_secs_f64());
        metrics.registered(minor)
    }

    fn registered(mut self, minor: Minor) -> Self {
        let built = Family::<Built, Gauge>::default();
        let git_version = version_of(minor).into_owned();
        built.get_or_create(&Built { git_version, major: "1", minor: minor.number().to_string() }).set(1);
        let registry = &mut self.registry;
        registry.register("apiserver_request", "Requests by verb, resource and code", self.requests.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "How long requests took, watches apart",
            self.durations.clone(),
        );
        registry.register("apiserver_response_sizes", "Bytes of answers to reads", self.sizes.clone());
        registry.register(
            "apiserver_request_terminations",
            "Requests that the server ended or refused to protect itself",
            self.terminations.clone(),
        );
        registry.register(
            "apiserver_longrunning_requests",
            "Watches and connections that are open",
            self.long_running.clone(),
        );
        registry.register(
            "apiserver_requested_deprecated_apis",
            "Deprecated versions that were asked for, by the release without them",
            self.deprecated.clone(),
        );
        registry.register(
            "apiserver_impersonation_attempts",
            "Attempts to impersonate, by mode and decision",
            self.impersonations.clone(),
        );
        registry.register(
            "apiserver_impersonation_attempts_duration_seconds",
            "How long it took to decide about them",
            self.impersonation_durations.clone(),
        );
        registry.register("apiserver_current_inflight_requests", "Requests at work", self.in_flight.clone());
        registry.register("apiserver_watch_events", "Events sent to watches", self.watch_events.clone());
        registry.register("apiserver_watch_events_sizes", "Bytes of events", self.watch_event_sizes.clone());
        registry.register(
            "apiserver_resource_objects",
            "Objects of the resources that are in memory",
            self.objects.clone(),
        );
        registry.register("skiff_storage_revision", "The newest revision", self.revision.clone());
        registry.register("skiff_storage_compacted_revision", "What the log reaches back to", self.compacted.clone());
        registry.register("skiff_storage_writes", "Writes since the start", self.writes.clone());
        registry.register("skiff_storage_batches", "Batches of writes since the start", self.batches.clone());
        registry.register("skiff_storage_commits", "Transactions that changed something", self.commits.clone());
        registry.register("skiff_storage_statements", "Statements of any kind", self.statements.clone());
        registry.register("process_resident_memory_bytes", "Resident memory", self.resident_bytes.clone());
        registry.register("process_start_time_seconds", "When the process started, since 1970", self.started.clone());
        registry.register("kubernetes_build_info", "What the server says it is", built);
        self
    }

    /// Adds the metrics of admission.
    pub fn show_admission(&mut self, figures: &Figures) {
        figures.register(&mut self.registry);
    }

    /// Adds the metrics of authorization.
    pub fn show_authorization(&mut self, figures: &auth::Figures) {
        figures.register(&mut self.registry);
    }

    /// The route that `route` is counted as.
    fn counted(&self, route: Route) -> Route {
        {
            let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
            if routes.contains(&route) {
                return route;
            }
            if routes.len() >= ROUTES_MAX {
                return route.unexpected();
            }
        }
        self.routes.write().unwrap_or_else(PoisonError::into_inner).insert(route.clone());
        route
    }

    /// Counts an answer.
    pub fn answered(&self, route: Route, dry_run: &'static str, code: u16, took: Duration, size_bytes: Option<u64>) {
        let route = self.counted(route);
        if let (Some(size), "GET" | "LIST") = (size_bytes, route.verb) {
            self.sizes.get_or_create(&route).observe(size as f64);
        }
        let timed = Timed { dry_run, route };
        self.durations.get_or_create(&timed).observe(took.as_secs_f64());
        let Timed { dry_run, route } = timed;
        self.requests.get_or_create(&AnsweredLabels { dry_run, route, code }).inc();
    }

    /// Counts a request that was cut short or never started.
    pub fn terminated(&self, route: Route, code: u16) {
        let route = self.counted(route);
        self.terminations.get_or_create(&AnsweredLabels { dry_run: "", route, code }).inc();
    }

    /// The gauge of the watches of a route.
    pub fn long_running(&self, route: &Route) -> Gauge {
        self.long_running.get_or_create_owned(&self.counted(route.clone()))
    }

    /// Notes that a deprecated version was asked for, which release `removed` does not have any more.
    pub fn deprecated(&self, route: &Route, removed: &str) {
        let Route { group, version, resource, subresource, .. } = self.counted(route.clone());
        let removed_release = removed.to_owned();
        self.deprecated.get_or_create(&Deprecated { group, version, resource, subresource, removed_release }).set(1);
    }

    /// Counts an attempt to impersonate; a refused one has no mode.
    pub fn impersonated(&self, mode: Option<&str>, took: Duration) {
        let decision = if mode.is_some() { "allowed" } else { "denied" };
        let labels = ImpersonationLabels { mode: mode.unwrap_or_default().to_owned(), decision };
        self.impersonations.get_or_create(&labels).inc();
        self.impersonation_durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// The gauge of the requests at work: `readOnly` or `mutating`.
    pub fn in_flight(&self, request_kind: &'static str) -> Gauge {
        self.in_flight.get_or_create_owned(&InFlight { request_kind })
    }

    /// The counters of the events of a watch.
    pub fn watch(&self, group: &str, version: &str, resource: &str) -> WatchCounters {
        let [group, version, resource] = [group, version, resource].map(str::to_owned);
        let route = self.counted(Route { verb: "WATCH", group, version, resource, ..Route::default() });
        let watched = Watched { group: route.group, version: route.version, resource: route.resource };
        let events = self.watch_events.get_or_create_owned(&watched);
        WatchCounters { events, sizes: self.watch_event_sizes.get_or_create_owned(&watched) }
    }

    /// Everything, in Prometheus' text format.
    pub fn text(&self, storage: &Storage) -> String {
        self.look_at(storage);
        // Before: nothing waits while the counters are locked.
        work::steps(self.routes.read().unwrap_or_else(PoisonError::into_inner).len() * ROUTE_LINES);
        let mut text = String::new();
        // Writing to a String does not fail.
        _ = encode(&mut text, &self.registry);
        as_prometheus(&text)
    }

    fn look_at(&self, storage: &Storage) {
        let counts = storage.counts();
        let set = |gauge: &Gauge, number: u64| gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        set(&self.writes, counts.writes);
        set(&self.batches, counts.batches);
        set(&self.commits, counts.commits);
        set(&self.statements, counts.statements);
        let (newest, compacted) = storage.main_revisions();
        self.revision.set(newest.get());
        self.compacted.set(compacted.get());
        set(&self.resident_bytes, resident_bytes().unwrap_or_default());
        self.objects.clear();
        for (collection, count) in storage.object_counts() {
            let (group, resource) = collection.as_str().split_once('/').unwrap_or_default();
            let collected = Collected { group: group.to_owned(), resource: resource.to_owned() };
            set(&self.objects.get_or_create(&collected), count as u64);
        }
    }
}

/// Memory that the process has in RAM; `None` where the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Kubernetes counters with this ending get no other suffix.
const COUNT: &str = "_count";

/// Histograms with this ending are summaries in Kubernetes, which have no buckets.
const SUMMARY: &str = "_summary";

/// OpenMetrics as Prometheus' older text format, which differs in the names of counters, in the bounds of buckets and
/// at the end.
fn as_prometheus(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len() + 256);
    let mut lines = open_metrics.lines().peekable();
    while let Some(line) = lines.next() {
        work::bytes(line.len());
        let named = |kind: &str| line.strip_prefix(kind).and_then(|rest| rest.split_once(' '));
        if line == "# EOF" {
            continue;
        }
        if let Some((name, help)) = named("# HELP ") {
            let counts = lines.peek().is_some_and(|next| *next == format!("# TYPE {name} counter"));
            let suffix = if counts && !name.ends_with(COUNT) { "_total" } else { "" };
            out.push_str(&format!("# HELP {name}{suffix} {help}\n"));
        } else if let Some((name, "counter")) = named("# TYPE ") {
            let suffix = if name.ends_with(COUNT) { "" } else { "_total" };
            out.push_str(&format!("# TYPE {name}{suffix} counter\n"));
        } else if let Some((name, "histogram")) = named("# TYPE ").filter(|(name, _)| name.ends_with(SUMMARY)) {
            out.push_str(&format!("# TYPE {name} summary\n"));
        } else if let Some((name, rest)) = line.split_once("_count_total") {
            out.push_str(&format!("{name}{COUNT}{rest}\n"));
        } else if bucket(line).is_some_and(|(name, _)| name.ends_with(SUMMARY)) {
            // A summary without quantiles has a sum and a count.
        } else if let Some((name, (bound, rest))) = bucket(line) {
            out.push_str(&format!("{name}{BOUND}{}\"{rest}\n", go_float(bound)));
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The bound of a bucket, whose label comes first.
const BOUND: &str = "_bucket{le=\"";

/// The name of a histogram whose bucket a line is, with the bound and what follows.
fn bucket(line: &str) -> Option<(&str, (&str, &str))> {
    let (name, rest) = line.split_once(BOUND)?;
    Some((name, rest.split_once('"')?))
}

/// A number as Go prints it: `1` for `1.0`, and `1e+06` for a million.
fn go_float(text: &str) -> String {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let Some(number) = number else { return text.to_owned() };
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_buckets_are_as_go_prints_them() {
        for (bound, printed) in [
            ("0.005", "0.005"),
            ("1.0", "1"),
            ("2.5", "2.5"),
            ("100000.0", "100000"),
            ("1000000.0", "1e+06"),
            ("0.00001", "1e-05"),
            ("+Inf", "+Inf"),
        ] {
            assert_eq!(
                as_prometheus(&format!("a_bucket{{le=\"{bound}\",verb=\"GET\"}} 1")),
                format!("a_bucket{{le=\"{printed}\",verb=\"GET\"}} 1\n")
            );
        }
    }

    #[test]
    fn a_summary_has_a_sum_and_a_count_alone() {
        let lines = "# HELP a_summary A.\n# TYPE a_summary histogram\na_summary_sum{b=\"c\"} 1.5\n\
                     a_summary_count{b=\"c\"} 2\na_summary_bucket{le=\"1.0\",b=\"c\"} 1\n";
        let expected = "# HELP a_summary A.\n# TYPE a_summary summary\na_summary_sum{b=\"c\"} 1.5\n\
                        a_summary_count{b=\"c\"} 2\n";
        assert_eq!(as_prometheus(lines), expected);
    }

    #[test]
    fn a_server_tells_the_minor_that_it_speaks_for() {
        let metrics = Metrics::new(Minor::of(34));
        let mut text = String::new();
        encode(&mut text, &metrics.registry).expect("a text takes everything");
        let built = text.lines().find(|line| line.starts_with("kubernetes_build_info{")).expect("it is told");
        assert!(built.contains("minor=\"34\"") && built.contains("git_version=\"v1.34."), "{built}");
    }

    #[test]
    fn routes_are_told_apart_up_to_a_number() {
        let metrics = Metrics::new(Minor::NEWEST);
        let text = |count: usize| {
            for at in 0..count {
                let route = Route { verb: "GET", group: "g".into(), resource: format!("r{at}"), ..Route::default() };
                metrics.terminated(route.clone(), 504);
                metrics.long_running(&route).inc();
                metrics.deprecated(&route, "1.40");
                metrics.watch("g", "v1", &format!("w{at}")).count(10);
                metrics.answered(route, "", 200, Duration::ZERO, Some(10));
            }
            let mut text = String::new();
            encode(&mut text, &metrics.registry).expect("a text takes everything");
            text
        };
        let few = text(ROUTES_MAX / 2);
        assert!(few.contains("resource=\"r999\"") && !few.contains(UNEXPECTED));
        let many = text(3 * ROUTES_MAX);
        assert!(many.contains("resource=\"r999\"") && many.contains("resource=\"unexpected\""));
        assert!(many.lines().count() < few.lines().count() + 200);
    }

    #[test]
    fn counters_have_their_suffix_in_every_line() {
        let metrics = Metrics::new(Minor::NEWEST);
        let route = Route {
            verb: "LIST",
            group: "g".into(),
            version: "v1".into(),
            resource: "widgets".into(),
            scope: "namespace",
            ..Route::default()
        };
        metrics.answered(route, "", 200, Duration::from_millis(30), Some(10));
        let mut text = String::new();
        encode(&mut text, &metrics.registry).expect("a text takes everything");
        let text = as_prometheus(&text);
        let labels = r#"dry_run="",verb="LIST",group="g",version="v1",resource="widgets",subresource="",scope="namespace",component="apiserver""#;
        for line in [
            "# TYPE apiserver_request_total counter".to_owned(),
            format!("apiserver_request_total{{{labels},code=\"200\"}} 1"),
            "# TYPE apiserver_request_duration_seconds histogram".to_owned(),
            format!("apiserver_request_duration_seconds_bucket{{le=\"0.05\",{labels}}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
        assert!(!text.contains("# EOF"));
    }
}
