//! A write beside the quotas of its namespace.

use kubeskiff::kinds;
use kubeskiff::kinds::quota::{self, Counted, LimitedResources, Request};
use kubeskiff::value::{Value, json};

use crate::inputs::{fields, list, value};
use crate::pass::{Pass, pass};

const SIZE: usize = 30;
/// More than the errors that are told.
const MANY: usize = 300;
const PODS: Counted<'_> = Counted { group: "", plural: "pods", subresource: "" };

pub fn passes() -> Vec<Pass> {
    vec![
        pass("charge", "many quotas", SIZE, many_quotas, |quotas| charge(quotas, &pod(1))),
        pass("charge", "many quotas, for many containers", SIZE, beside_many, |(quotas, pod)| charge(quotas, pod)),
        pass("charge", "a quota of many resources", SIZE, one_quota, |quotas| charge(quotas, &pod(1))),
        pass("find what may limit", "many quotas", SIZE, texts(many_quotas), |quotas| find(quotas)),
        pass("find what may limit", "a quota of many resources", SIZE, texts(one_quota), |quotas| find(quotas)),
        pass(
            "validate a quota",
            "one scope many times",
            MANY,
            |size| scoped(size, |_| "Terminating".to_owned()),
            validate,
        ),
        pass("validate a quota", "unknown scopes", MANY, |size| scoped(size, |at| format!("Scope{at}")), validate),
    ]
}

/// A quota whose scopes do not fit its resources.
fn scoped(size: usize, scope: fn(usize) -> String) -> Value {
    let amounts = fields(size, |at| format!(r#""hugepages-{at}Mi":"9""#));
    let scopes = list(size, |at| format!(r#""{}""#, scope(at)));
    value(&format!(r#"{{"metadata":{{"name":"q"}},"spec":{{"hard":{amounts},"scopes":{scopes}}}}}"#))
}

fn validate(quota: &Value) -> bool {
    let kind = kinds::find("", "resourcequotas").expect("it is built in");
    kind.strategy.validate_create(&kind.served_version(), quota).is_empty()
}

fn many_quotas(size: usize) -> Vec<Value> {
    const STATUS: &str = r#"{"hard":{"pods":"9","requests.cpu":"9"},"used":{"pods":"1","requests.cpu":"1"}}"#;
    let one = |at| value(&format!(r#"{{"metadata":{{"name":"q{at}"}},"status":{STATUS}}}"#));
    (0..size).map(one).collect()
}

fn one_quota(size: usize) -> Vec<Value> {
    let amounts = fields(size, |at| format!(r#""requests.example.com/x{at}":"9""#));
    vec![value(&format!(r#"{{"metadata":{{"name":"q"}},"status":{{"hard":{amounts},"used":{amounts}}}}}"#))]
}

fn texts(quotas: fn(usize) -> Vec<Value>) -> impl Fn(usize) -> Vec<Vec<u8>> {
    move |size| quotas(size).iter().map(json::encode).collect()
}

fn pod(containers: usize) -> Value {
    let containers = list(containers, |at| format!(r#"{{"name":"c{at}","resources":{{"requests":{{"cpu":"1m"}}}}}}"#));
    value(&format!(r#"{{"spec":{{"containers":{containers}}}}}"#))
}

fn beside_many(size: usize) -> (Vec<Value>, Value) {
    (many_quotas(size), pod(size))
}

fn charge(quotas: &[Value], pod: &Value) -> bool {
    let request = Request { counted: PODS, object: pod, old: None };
    quota::charge(quotas, &request, &LimitedResources::default()).is_ok()
}

fn find(quotas: &[Vec<u8>]) -> usize {
    quotas.iter().filter(|quota| PODS.may_be_limited_by(quota)).count()
}
