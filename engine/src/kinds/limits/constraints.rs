//! The check of requests and limits against one limit.

use super::Faults;
use crate::kinds::pod::aggregate::Totals;
use crate::kinds::resources;
use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};
use crate::work;

/// The largest amount that can be expressed in thousandths.
const MILLI_MAX: i64 = i64::MAX / 1000;

/// The subject of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitType {
    Container,
    Pod,
    /// Only has requests.
    Claim,
}

impl LimitType {
    const fn name(self) -> &'static str {
        match self {
            LimitType::Container => "Container",
            LimitType::Pod => "Pod",
            LimitType::Claim => "PersistentVolumeClaim",
        }
    }
}

/// The resources that an object asks for.
pub struct AskedResources {
    pub requests: Totals,
    pub limits: Totals,
}

impl AskedResources {
    /// Checks them against a limit.
    pub fn check(&self, limit: &Value, kind: LimitType, faults: &mut Faults) {
        let entries = |list: &'static str| {
            let list = limit.get(list).and_then(Value::as_object);
            let entries = list.into_iter().flat_map(Map::iter).inspect(|_| work::step());
            entries.map(|(name, amount)| (name, resources::parse(Some(amount))))
        };
        let least = entries("min").filter_map(|(name, bound)| self.check_min(name, &bound, kind));
        let most = entries("max").filter_map(|(name, bound)| match kind {
            LimitType::Claim => self.check_max_request(name, &bound, kind),
            _ => self.check_max(name, &bound, kind),
        });
        let ratios = entries("maxLimitRequestRatio").filter(|_| kind != LimitType::Claim);
        let ratios = ratios.filter_map(|(name, bound)| self.check_ratio(name, &bound, kind));
        for fault in least.chain(most).chain(ratios) {
            faults.push(fault);
            if faults.is_full() {
                return;
            }
        }
    }

    fn check_min(&self, name: &str, bound: &Quantity, kind: LimitType) -> Option<String> {
        let what = format!("minimum {name} usage per {} is {bound}", kind.name());
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{what}.  No request is specified"));
        };
        if is_less(request, bound) {
            return Some(format!("{what}, but request is {request}"));
        }
        let limit = self.limits.get(name).filter(|limit| is_less(limit, bound))?;
        Some(format!("{what}, but limit is {limit}"))
    }

    fn check_max_request(&self, name: &str, bound: &Quantity, kind: LimitType) -> Option<String> {
        let what = format!("maximum {name} usage per {} is {bound}", kind.name());
        match self.requests.get(name) {
            None => Some(format!("{what}.  No request is specified")),
            Some(request) if is_less(bound, request) => Some(format!("{what}, but request is {request}")),
            Some(_) => None,
        }
    }

    fn check_max(&self, name: &str, bound: &Quantity, kind: LimitType) -> Option<String> {
        let what = format!("maximum {name} usage per {} is {bound}", kind.name());
        let Some(limit) = self.limits.get(name) else {
            return Some(format!("{what}.  No limit is specified"));
        };
        if is_less(bound, limit) {
            return Some(format!("{what}, but limit is {limit}"));
        }
        let request = self.requests.get(name).filter(|request| is_less(bound, request))?;
        Some(format!("{what}, but request is {request}"))
    }

    fn check_ratio(&self, name: &str, bound: &Quantity, kind: LimitType) -> Option<String> {
        let what = format!("{name} max limit to request ratio per {} is {bound}", kind.name());
        let above_zero = |amount: &&Quantity| amount.signum() != 0;
        let Some(request) = self.requests.get(name).filter(above_zero) else {
            return Some(format!("{what}, but no request is specified or request is 0"));
        };
        let Some(limit) = self.limits.get(name).filter(above_zero) else {
            return Some(format!("{what}, but no limit is specified or limit is 0"));
        };
        let (request, limit) = comparable(request, limit);
        let ratio = limit as f64 / request as f64;
        let is_above = if bound.value() <= MILLI_MAX {
            ratio * 1000.0 > bound.milli_value() as f64
        } else {
            ratio > bound.value() as f64
        };
        is_above.then(|| format!("{what}, but provided ratio is {ratio:.6}"))
    }
}

/// Two amounts in thousandths, or in whole units if they are too large for that.
fn comparable(left: &Quantity, right: &Quantity) -> (i64, i64) {
    if left.value() <= MILLI_MAX && right.value() <= MILLI_MAX {
        (left.milli_value(), right.milli_value())
    } else {
        (left.value(), right.value())
    }
}

fn is_less(left: &Quantity, right: &Quantity) -> bool {
    let (left, right) = comparable(left, right);
    left < right
}

#[cfg(test)]
mod tests {
    use super::super::{TooMuch, check_claim, check_pod, set_pod_defaults};
    use crate::value::{Value, yaml};
    use crate::work::counted;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("it is YAML")
    }

    #[test]
    fn a_container_gets_its_defaults_and_keeps_to_the_bounds() {
        let range = read(
            "spec: {limits: [{type: Container, default: {cpu: 200m}, defaultRequest: {cpu: 100m}, max: {cpu: '1'}, \
             maxLimitRequestRatio: {cpu: '2'}}]}",
        );
        let mut pod = read("spec: {containers: [{name: a}, {name: b, resources: {limits: {cpu: '2'}}}]}");
        set_pod_defaults(&range, &mut pod).expect("it is little");
        assert_eq!(
            pod.str_at(&["metadata", "annotations", "kubernetes.io/limit-ranger"]),
            "LimitRanger plugin set: cpu request for container a; cpu limit for container a; cpu request for container b"
        );
        assert_eq!(
            check_pod(&range, &pod).as_deref(),
            Some(
                "[maximum cpu usage per Container is 1, but limit is 2, cpu max limit to request ratio per Container is 2, but \
                 provided ratio is 20.000000]"
            )
        );
    }

    #[test]
    fn what_a_pod_is_given_and_told_has_a_bound() {
        let amounts = (0..2_000).map(|at| format!("example.com/amount-{at}: '1'")).collect::<Vec<_>>().join(", ");
        let containers = |count| {
            let containers = (0..count).map(|at| format!("{{name: c{at}}}")).collect::<Vec<_>>().join(", ");
            read(&format!("spec: {{containers: [{containers}]}}"))
        };
        let defaults = read(&format!("spec: {{limits: [{{type: Container, default: {{{amounts}}}}}]}}"));
        let given = set_pod_defaults(&defaults, &mut containers(10));
        let (refused, few) = counted(|| set_pod_defaults(&defaults, &mut containers(200)));
        let (_, many) = counted(|| set_pod_defaults(&defaults, &mut containers(2_000)));
        assert_eq!((given, refused), (Ok(()), Err(TooMuch)));
        assert!(many < 2 * few + 100_000, "{few} and {many} steps");

        let bounds = read(&format!("spec: {{limits: [{{type: Container, max: {{{amounts}}}}}]}}"));
        let told = check_pod(&bounds, &containers(10)).expect("it names none of them");
        assert!(told.len() < 3 << 19, "{} bytes", told.len());
        let bounds = |count| {
            let limits = (0..count).map(|at| format!("{{type: Container, min: {{x{at}: '1'}}, max: {{{amounts}}}}}"));
            read(&format!("spec: {{limits: [{}]}}", limits.collect::<Vec<_>>().join(", ")))
        };
        let told = check_pod(&bounds(20), &containers(1)).expect("it names none of them");
        assert!(told.len() < 3 << 19, "{} bytes", told.len());
    }

    #[test]
    fn a_claim_keeps_to_the_bounds_of_its_requests() {
        let range = read("spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}");
        let claim = read("spec: {resources: {requests: {storage: 2Gi}}}");
        let why = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi";
        assert_eq!(check_claim(&range, &claim).as_deref(), Some(why));
    }
}
