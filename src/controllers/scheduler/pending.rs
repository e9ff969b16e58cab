//! A pod that needs a node, and what it says about where that should be.

use super::pod::Pod;
use super::term::Term;
use crate::value::Value;

/// A pod that needs a node.
pub(super) struct PendingPod<'w> {
    pub object: &'w Value,
    pub pod: Pod,
    /// Its required affinity.
    pub attracted: Vec<Term>,
    /// Its preferred affinity with the weights, and its preferred anti-affinity with these below zero.
    pub preferred: Vec<(i64, Term)>,
    /// The node affinity of its volumes.
    pub volumes: Vec<Value>,
}

impl<'w> PendingPod<'w> {
    pub fn of(object: &'w Value) -> Self {
        let pod = Pod::of(object);
        let of = |term: &Value| Term::of(term, &pod.namespace);
        let weighted = |kind: &str, sign: i64| {
            let term = |weighted: &Value| {
                let weight = weighted.get("weight").and_then(Value::as_i64).unwrap_or_default();
                (sign.saturating_mul(weight), of(weighted.get("podAffinityTerm").unwrap_or(&Value::Null)))
            };
            affinity(object, kind, "preferred").iter().map(term).collect::<Vec<_>>()
        };
        let attracted = affinity(object, "podAffinity", "required").iter().map(of).collect();
        let preferred = [weighted("podAffinity", 1), weighted("podAntiAffinity", -1)];
        PendingPod { object, attracted, preferred: preferred.concat(), volumes: Vec::new(), pod }
    }

    pub fn spec(&self) -> &Value {
        self.object.get("spec").unwrap_or(&Value::Null)
    }

    pub fn affinity(&self, kind: &str, strength: &str) -> &[Value] {
        affinity(self.object, kind, strength)
    }

    /// Whether it has affinity or anti-affinity to other pods.
    pub fn has_terms(&self) -> bool {
        !(self.attracted.is_empty() && self.pod.repels.is_empty() && self.preferred.is_empty())
    }
}

fn affinity<'w>(pod: &'w Value, kind: &str, strength: &str) -> &'w [Value] {
    pod.items_at(&["spec", "affinity", kind, &format!("{strength}DuringSchedulingIgnoredDuringExecution")])
}
