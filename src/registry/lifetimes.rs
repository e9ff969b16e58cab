//! The lifetimes of objects and tokens that expire.

use std::time::Duration;

use crate::kinds::strategy::Strategy;

/// The lifetime, in seconds, that the kubelet requests for a token that it mounts by default: the pod may not know yet
/// that tokens expire.
/// Source: `pkg/serviceaccount/claims.go`, release 1.36, as is the next.
const WARN_ONLY_S: i64 = 60 * 60 + 7;
/// How long such a token lives.
const EXTENDED_S: i64 = 24 * 365 * 60 * 60;

/// The settings of kube-apiserver's flags `--event-ttl`, `--service-account-max-token-expiration` and
/// `--service-account-extend-token-expiration`.
#[derive(Clone, Copy, Debug)]
pub struct Lifetimes {
    /// How long an event stays after its last write, in whole seconds; 0 for until it is deleted, and `None` for the
    /// lifetime of its kind.
    pub event: Option<Duration>,
    /// The longest that a service account's token lives; `None` for no limit.
    pub token_max: Option<Duration>,
    /// Whether tokens that are mounted by default live longer than they say.
    pub extends_tokens: bool,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Lifetimes { event: None, token_max: None, extends_tokens: true }
    }
}

impl Lifetimes {
    /// How long an object of a kind stays after its last write; `None` for until it is deleted.
    pub fn of(&self, kind: &dyn Strategy) -> Option<Duration> {
        // Events are the only kind that has one.
        let own = kind.lifetime()?;
        let seconds = self.event.map_or(own.as_secs(), |given| given.as_secs());
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// The maximum lifetime of a token, if that is less than the requested `asked_s` seconds.
    pub fn shortened_s(&self, asked_s: i64) -> Option<i64> {
        let max_s = i64::try_from(self.token_max?.as_secs()).ok()?;
        (asked_s > max_s).then_some(max_s)
    }

    /// The real lifetime of a token that is bound to a pod and is for this server, if that is longer than `asked_s`.
    pub fn extended_s(&self, asked_s: i64) -> Option<i64> {
        (self.extends_tokens && asked_s == WARN_ONLY_S).then_some(EXTENDED_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    #[test]
    fn events_alone_end_by_themselves() {
        let of = |event: Option<u64>, group: &str, plural: &str| {
            let kind = kinds::all().find(|kind| kind.group == group && kind.plural == plural).expect("it is built in");
            let event = event.map(Duration::from_millis);
            Lifetimes { event, ..Lifetimes::default() }.of(kind.strategy).map(|found| found.as_secs())
        };
        assert_eq!(of(None, "", "events"), Some(3600));
        assert_eq!(of(Some(90_500), "", "events"), Some(90));
        assert_eq!(of(Some(90_500), "events.k8s.io", "events"), Some(90));
        // Less than a second counts as zero, as in kube-apiserver.
        assert_eq!([of(Some(0), "", "events"), of(Some(500), "", "events")], [None; 2]);
        assert_eq!([of(None, "", "pods"), of(Some(90_000), "", "pods")], [None; 2]);
    }

    #[test]
    fn what_is_asked_for_is_shortened() {
        let lifetimes = Lifetimes { token_max: Some(Duration::from_secs(7200)), ..Lifetimes::default() };
        assert_eq!([lifetimes.shortened_s(7200), lifetimes.shortened_s(7201)], [None, Some(7200)]);
        assert_eq!(Lifetimes::default().shortened_s(i64::MAX), None);
    }

    #[test]
    fn what_the_kubelet_asks_for_is_extended() {
        let lifetimes = Lifetimes::default();
        assert_eq!([lifetimes.extended_s(3607), lifetimes.extended_s(3600)], [Some(31_536_000), None]);
        assert_eq!(Lifetimes { extends_tokens: false, ..lifetimes }.extended_s(3607), None);
    }
}
