//! The admission plugin Priority: resolves the name of a priority class.
//!
//! Source: `plugin/pkg/admission/priority`.

use thiserror::Error;

use crate::value::Value;

use super::keep;

/// The priority of pods if there is no default class.
const PRIORITY: i64 = 0;
const POLICY: &str = "PreemptLowerPriority";

/// What is read of classes.
pub const READ: [&[&str]; 4] = [&["metadata", "name"], &["value"], &["globalDefault"], &["preemptionPolicy"]];

/// The class that applies if none is named: of several, the one with the lowest value.
pub fn default_class<'c>(classes: impl IntoIterator<Item = &'c Value>) -> Option<&'c Value> {
    let is_default = |class: &&Value| class.get("globalDefault").and_then(Value::as_bool) == Some(true);
    classes.into_iter().filter(is_default).min_by_key(|class| value(class))
}

fn value(class: &Value) -> i64 {
    class.get("value").and_then(Value::as_i64).unwrap_or_default()
}

/// Why a pod's priority is forbidden.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PriorityError {
    /// There is no class of that name.
    #[error("no PriorityClass with name {0} was found")]
    NoClass(String),
    /// The priority of the pod differs from that of its class.
    #[error(
        "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed \
         {computed} from the given PriorityClass name"
    )]
    Priority {
        /// The priority of the pod.
        given: i64,
        /// The priority of its class.
        computed: i64,
    },
    /// The preemption policy of the pod differs from that of its class.
    #[error(
        "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller \
         computed {computed} from the given PriorityClass name"
    )]
    Preemption {
        /// The policy of the pod.
        given: String,
        /// The policy of its class.
        computed: String,
    },
}

/// Sets the priority of a new pod. `find` looks up a class, `default` that of [`default_class`].
///
/// # Errors
///
/// Why it is forbidden.
pub fn admit_create<'c>(
    pod: &mut Value,
    find: impl FnOnce(&str) -> Option<&'c Value>,
    default: Option<&'c Value>,
) -> Result<(), PriorityError> {
    let spec = pod.make_object().entry("spec");
    let name = spec.str_at(&["priorityClassName"]).to_owned();
    let class =
        if name.is_empty() { default } else { Some(find(&name).ok_or_else(|| PriorityError::NoClass(name.clone()))?) };
    let priority = class.map_or(PRIORITY, value);
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return Err(PriorityError::Priority { given, computed: priority });
    }
    let policy = class.map_or(POLICY, |class| class.str_at(&["preemptionPolicy"]));
    let given = spec.str_at(&["preemptionPolicy"]);
    if !policy.is_empty() && !given.is_empty() && given != policy {
        return Err(PriorityError::Preemption { given: given.to_owned(), computed: policy.to_owned() });
    }
    let fields = spec.make_object();
    fields.insert("priority", Value::Int(priority));
    if !policy.is_empty() {
        fields.insert("preemptionPolicy", Value::from(policy));
    }
    if let Some(class) = class.filter(|_| name.is_empty()) {
        fields.insert("priorityClassName", Value::from(class.str_at(&["metadata", "name"])));
    }
    Ok(())
}

/// Keeps the priority that a changed pod leaves out.
pub fn admit_update(new: &mut Value, old: &Value) {
    let null = Value::Null;
    let (spec, old_spec) = (new.make_object().entry("spec"), old.get("spec").unwrap_or(&null));
    for name in ["priority", "preemptionPolicy"] {
        if spec.get(name).is_none_or(Value::is_null) {
            keep(spec, old_spec, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{json, yaml};

    fn check(spec: &str, class: &str) -> Result<String, String> {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
        let (mut pod, class) = (read(&format!("spec: {spec}")), read(class));
        let find = |name: &str| Some(&class).filter(|class| class.str_at(&["metadata", "name"]) == name);
        let default = default_class([&class]);
        let admitted = admit_create(&mut pod, find, default).map_err(|error| error.to_string());
        admitted.map(|()| json::encode_to_string(pod.get("spec").unwrap_or(&Value::Null)))
    }

    #[test]
    fn a_class_says_the_priority() {
        let none = check("{}", "{}");
        assert_eq!(none.as_deref(), Ok(r#"{"preemptionPolicy":"PreemptLowerPriority","priority":0}"#));
        let class = "{metadata: {name: high}, value: 9, preemptionPolicy: Never, globalDefault: true}";
        let high = r#"{"preemptionPolicy":"Never","priority":9,"priorityClassName":"high"}"#;
        assert_eq!(check("{}", class).as_deref(), Ok(high));
        assert_eq!(check("{priorityClassName: high}", class).as_deref(), Ok(high));
        assert_eq!(
            check("{priorityClassName: low}", class),
            Err("no PriorityClass with name low was found".to_owned())
        );
        let told = check("{priority: 8}", class).expect_err("it is another");
        assert_eq!(
            told,
            "the integer value of priority (8) must not be provided in pod spec; priority admission controller computed 9 from the \
             given PriorityClass name"
        );
    }
}
