//! The admission plugin DefaultTolerationSeconds: pods stay for some time on a node that is not ready or not reached.
//!
//! Source: `plugin/pkg/admission/defaulttolerationseconds`.

use crate::object;
use crate::value::Value;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const EFFECT: &str = "NoExecute";

/// How long pods stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds {
    /// On a node that is not ready.
    pub not_ready: i64,
    /// On a node that is not reached.
    pub unreachable: i64,
}

impl Seconds {
    /// The server's default.
    pub const DEFAULT: i64 = 300;
}

/// Adds tolerations for the taints that a pod, new or changed, does not mention.
pub fn admit(pod: &mut Value, seconds: Seconds) {
    let own = pod.items_at(&["spec", "tolerations"]);
    let is_tolerated = |taint: &str| {
        own.iter().any(|toleration| {
            let (key, effect) = (toleration.str_at(&["key"]), toleration.str_at(&["effect"]));
            (key.is_empty() || key == taint) && (effect.is_empty() || effect == EFFECT)
        })
    };
    let taints = [(NOT_READY, seconds.not_ready), (UNREACHABLE, seconds.unreachable)].into_iter();
    let missing: Vec<Value> = taints.filter(|(taint, _)| !is_tolerated(taint)).map(toleration).collect();
    if missing.is_empty() {
        return;
    }
    match pod.make_object().entry("spec").make_object().entry("tolerations") {
        Value::Array(tolerations) => tolerations.extend(missing),
        none => *none = Value::Array(missing),
    }
}

fn toleration((key, seconds): (&str, i64)) -> Value {
    object! { "key" => key, "operator" => "Exists", "effect" => EFFECT, "tolerationSeconds" => seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn what_is_tolerated_already_stays() {
        let check = |tolerations: &str| {
            let text = format!("spec: {{tolerations: {tolerations}}}");
            let mut pod = yaml::decode(text.as_bytes()).expect("YAML");
            admit(&mut pod, Seconds { not_ready: 1, unreachable: 2 });
            pod.items_at(&["spec", "tolerations"]).len()
        };
        assert_eq!(check("[]"), 2);
        assert_eq!(check("[{operator: Exists}]"), 1);
        assert_eq!(check("[{key: node.kubernetes.io/not-ready, effect: NoSchedule}]"), 3);
        assert_eq!(check("[{key: node.kubernetes.io/not-ready}]"), 2);
    }
}
