//! `EventRateLimit`: limits the events per second of the server, of a namespace, of a user, or of a
//! source about an object.
//!
//! Source: `plugin/pkg/admission/eventratelimit`, release 1.37.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};

use crate::admission::configuration::{ConfigurationError, check_fields, check_type};
use crate::admission::{Admission, Attributes, Operation};
use crate::meta::Status;
use crate::value::Value;

const GROUP_VERSION: &str = "eventratelimit.admission.k8s.io/v1alpha1";
/// How many keys are tracked if the configuration has no `cacheSize`.
const KEYS_DEFAULT: usize = 4096;

/// By which property events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitScope {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

impl LimitScope {
    const ALL: [(&'static str, LimitScope); 4] = [
        ("Server", LimitScope::Server),
        ("Namespace", LimitScope::Namespace),
        ("User", LimitScope::User),
        ("SourceAndObject", LimitScope::SourceAndObject),
    ];

    fn name(self) -> &'static str {
        LimitScope::ALL.iter().find(|(_, scope)| *scope == self).map_or("", |(name, _)| name)
    }

    /// The key of an event; events with the same key are counted together.
    fn key(self, attributes: &Attributes<'_>, event: &Value) -> String {
        match self {
            LimitScope::Server => String::new(),
            LimitScope::Namespace => attributes.namespace.to_owned(),
            LimitScope::User => attributes.user.name.clone(),
            LimitScope::SourceAndObject => source_and_object(event),
        }
    }
}

/// The source of an event and its object, concatenated.
fn source_and_object(event: &Value) -> String {
    let (source, object) = ("source", "involvedObject");
    let parts = [
        event.str_at(&[source, "component"]),
        event.str_at(&[source, "host"]),
        event.str_at(&[object, "kind"]),
        event.str_at(&[object, "namespace"]),
        event.str_at(&[object, "name"]),
        event.str_at(&[object, "uid"]),
        event.str_at(&[object, "apiVersion"]),
    ];
    parts.concat()
}

/// A limit, and what is left of it for each key.
#[derive(Debug)]
struct Limit {
    scope: LimitScope,
    per_second: f64,
    burst: f64,
    keys_max: usize,
    left: Mutex<Buckets>,
}

/// A digest of a key, as clients may choose keys of any length.
type KeyDigest = [u8; 32];

/// What is left for each key.
#[derive(Debug, Default)]
struct Buckets {
    by_key: HashMap<KeyDigest, Bucket>,
    by_time: BTreeSet<(Instant, KeyDigest)>,
}

/// How many events are still allowed, as of a time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Buckets {
    /// Takes a bucket out; `None` for a key that is new or was dropped.
    fn take(&mut self, key: &KeyDigest) -> Option<Bucket> {
        let bucket = self.by_key.remove(key)?;
        self.by_time.remove(&(bucket.at, *key));
        Some(bucket)
    }

    /// Puts a bucket back. If there are too many keys, the one that was idle for the longest time is dropped; if it
    /// returns, it starts with a full burst.
    fn put(&mut self, key: KeyDigest, bucket: Bucket, keys_max: usize) {
        if self.by_key.len() >= keys_max
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.by_key.remove(&oldest);
        }
        self.by_time.insert((bucket.at, key));
        self.by_key.insert(key, bucket);
    }
}

impl Limit {
    fn parse(limit: &Value, path: &str) -> Result<Self, ConfigurationError> {
        check_fields(limit, path, &["type", "qps", "burst", "cacheSize"])?;
        let name = limit.str_at(&["type"]);
        let Some((_, scope)) = LimitScope::ALL.into_iter().find(|(known, _)| *known == name) else {
            let known = LimitScope::ALL.map(|(known, _)| format!("{known:?}")).join(", ");
            let (path, name) = (format!("{path}.type"), name.to_owned());
            return Err(ConfigurationError::Unsupported { path, name, known });
        };
        let number = |field: &str| match limit.get(field) {
            None | Some(Value::Null) => Ok(0),
            Some(Value::Int(number)) => {
                i32::try_from(*number).map_err(|_| ConfigurationError::TooLarge(format!("{path}.{field}")))
            }
            Some(_) => Err(ConfigurationError::Type { path: format!("{path}.{field}"), wanted: "an integer" }),
        };
        let invalid = |field: &str, number: i32, why: &str| ConfigurationError::Invalid {
            path: format!("{path}.{field}"),
            value: number.to_string(),
            why: why.to_owned(),
        };
        let positive = |field: &str| match number(field)? {
            number if number > 0 => Ok(f64::from(number)),
            number => Err(invalid(field, number, "must be positive")),
        };
        let (burst, per_second) = (positive("burst")?, positive("qps")?);
        let keys_max = match number("cacheSize")? {
            0 => KEYS_DEFAULT,
            size => usize::try_from(size).map_err(|_| invalid("cacheSize", size, "must not be negative"))?,
        };
        Ok(Limit { scope, per_second, burst, keys_max, left: Mutex::default() })
    }

    /// Counts one event of a key; returns whether it is allowed.
    fn takes(&self, key: &str, now: Instant) -> bool {
        let key = Sha256::digest(key).into();
        let mut buckets = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bucket = buckets.take(&key).unwrap_or(Bucket { left: self.burst, at: now });
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * self.per_second).min(self.burst);
        bucket.at = now;
        let takes = bucket.left >= 1.0;
        if takes {
            bucket.left -= 1.0;
        }
        buckets.put(key, bucket, self.keys_max);
        takes
    }
}

/// The plugin; clones share the state of the limits.
#[derive(Clone, Debug, Default)]
pub struct EventRateLimit {
    limits: Arc<[Limit]>,
}

impl EventRateLimit {
    /// Decodes the limits of a Configuration, which the plugin requires.
    ///
    /// # Errors
    ///
    /// The configuration is missing, is of another type, or is invalid.
    pub fn parse(configuration: Option<&Value>) -> Result<Self, ConfigurationError> {
        let empty = || ConfigurationError::Invalid {
            path: "limits".to_owned(),
            value: "[]".to_owned(),
            why: "must not be empty".to_owned(),
        };
        let configuration = configuration.ok_or_else(empty)?;
        check_type(configuration, &[GROUP_VERSION], "Configuration")?;
        check_fields(configuration, "", &["apiVersion", "kind", "limits"])?;
        let limits = configuration.items_at(&["limits"]).iter().enumerate();
        let limits: Vec<Limit> =
            limits.map(|(at, limit)| Limit::parse(limit, &format!("limits[{at}]"))).collect::<Result<_, _>>()?;
        if limits.is_empty() {
            return Err(empty());
        }
        Ok(EventRateLimit { limits: limits.into() })
    }
}

#[async_trait]
impl Admission for EventRateLimit {
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_write = matches!(attributes.operation, Operation::Create | Operation::Update);
        let version = attributes.version;
        // Events of the group events.k8s.io are not limited.
        let is_event = version.names.plural == "events" && version.group.is_empty();
        if !is_write || !is_event || attributes.dry_run {
            return Ok(());
        }
        let now = Instant::now();
        // Each limit counts the event, whatever the other limits decide.
        let reached = self.limits.iter().filter_map(|limit| {
            let key = limit.scope.key(attributes, object);
            let name = limit.scope.name();
            (!limit.takes(&key, now)).then(|| format!("limit reached on type {name} for key {key}"))
        });
        match reached.collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            [one] => Err(too_many(one)),
            several => Err(too_many(&format!("[{}]", several.join(", ")))),
        }
    }
}

/// A refusal without `Retry-After`.
fn too_many(why: &str) -> Status {
    let reason = "TooManyRequests".to_owned();
    Status { reason, ..Status::plain(429, &format!("Too many requests: {why}")) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::value::yaml;

    fn parse(limits: &str) -> Result<EventRateLimit, String> {
        let text = format!("{{apiVersion: {GROUP_VERSION}, kind: Configuration, limits: {limits}}}");
        let value = yaml::decode(text.as_bytes()).expect("the test is YAML");
        EventRateLimit::parse(Some(&value)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_burst_is_taken_and_then_so_many_a_second() {
        let plugin = parse("[{type: Namespace, qps: 2, burst: 3}]").expect("it is valid");
        let (limit, start) = (&plugin.limits[0], Instant::now());
        let taken = |key: &str, at_ms: u64| limit.takes(key, start + Duration::from_millis(at_ms));
        assert_eq!([taken("a", 0), taken("a", 0), taken("a", 0), taken("a", 0)], [true, true, true, false]);
        assert!(taken("b", 0), "another namespace has a limit of its own");
        assert_eq!([taken("a", 500), taken("a", 600)], [true, false]);
        assert_eq!([9_000, 9_000, 9_000, 9_000].map(|at| taken("a", at)), [true, true, true, false]);
    }

    #[test]
    fn the_key_that_was_quiet_for_the_longest_time_is_forgotten() {
        let plugin = parse("[{type: User, qps: 1, burst: 1, cacheSize: 2}]").expect("it is valid");
        let (limit, start) = (&plugin.limits[0], Instant::now());
        let taken = |key: &str, at_ms: u64| limit.takes(key, start + Duration::from_millis(at_ms));
        assert!(taken("a", 0) && taken("b", 1) && taken("c", 2));
        assert!(taken("a", 3), "it is new again");
        let buckets = limit.left.lock().expect("nobody panics");
        assert_eq!((buckets.by_key.len(), buckets.by_time.len()), (2, 2));
    }

    #[test]
    fn a_key_takes_as_much_memory_as_any_other() {
        let plugin = parse("[{type: SourceAndObject, qps: 1, burst: 2}]").expect("it is valid");
        let (limit, start) = (&plugin.limits[0], Instant::now());
        let long = "a".repeat(1 << 20);
        assert_eq!([1, 2, 3].map(|_| limit.takes(&long, start)), [true, true, false]);
        assert_eq!(limit.left.lock().expect("nobody panics").by_key.len(), 1);
        assert!(size_of::<(KeyDigest, Bucket)>() < 100, "whatever the length of the key is");
    }

    #[test]
    fn what_is_not_valid_is_named() {
        for (limits, expected) in [
            ("[]", "limits: Invalid value: []: must not be empty"),
            ("[{type: Server, qps: 0, burst: 1}]", "limits[0].qps: Invalid value: 0: must be positive"),
            ("[{type: Server, qps: 1, burst: -1}]", "limits[0].burst: Invalid value: -1: must be positive"),
            (
                "[{type: User, qps: 1, burst: 1, cacheSize: -1}]",
                "limits[0].cacheSize: Invalid value: -1: must not be negative",
            ),
            (
                "[{type: All, qps: 1, burst: 1}]",
                "limits[0].type: Unsupported value: \"All\": supported values: \"Server\", \"Namespace\", \"User\", \
                 \"SourceAndObject\"",
            ),
            ("[{type: User, qps: a, burst: 1}]", "limits[0].qps is not an integer"),
        ] {
            assert_eq!(parse(limits).err().as_deref(), Some(expected));
        }
        assert!(EventRateLimit::parse(None).is_err());
    }

    #[test]
    fn an_event_has_a_source_and_an_object() {
        let event = "{apiVersion: v1, source: {component: c, host: h}, involvedObject: {kind: Pod, name: p}}";
        let event = yaml::decode(event.as_bytes()).expect("the test is YAML");
        assert_eq!(source_and_object(&event), "chPodp");
    }
}
