//! How long a pod may take to end once it is deleted.
//!
//! Source: `CheckGracefulDelete` of `pkg/registry/core/pod/strategy.go`.

use crate::value::Value;

/// The grace period of the pod in seconds: as requested, or by its spec; zero if nothing of it runs.
pub fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let own = || pod.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or_default();
    let runs = !pod.str_at(&["spec", "nodeName"]).is_empty()
        && !matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded");
    match asked.unwrap_or_else(own) {
        _ if !runs => 0,
        ..0 => 1,
        seconds => seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn only_what_runs_has_time() {
        let check = |pod: &str, asked| grace_period(&yaml::decode(pod.as_bytes()).expect("YAML"), asked);
        assert_eq!(check("spec: {terminationGracePeriodSeconds: 30}", None), 0);
        let runs = "spec: {terminationGracePeriodSeconds: 30, nodeName: a}\nstatus: {phase: Running}";
        assert_eq!((check(runs, None), check(runs, Some(5)), check(runs, Some(-1))), (30, 5, 1));
        assert_eq!(
            check("spec: {terminationGracePeriodSeconds: 30, nodeName: a}\nstatus: {phase: Failed}", Some(5)),
            0
        );
    }
}
