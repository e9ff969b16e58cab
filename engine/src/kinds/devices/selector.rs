//! Selectors of devices: expressions of a device's driver, attributes and capacity.
//!
//! Source: `k8s.io/dynamic-resource-allocation/cel`, release 1.37.

use std::sync::OnceLock;

use crate::cel::declared::{DeclField, DeclType, ObjectType};
use crate::cel::env::{Env, Expressions};
use crate::cel::types::Type;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::work;

use super::list;

const SELECTORS_MAX: usize = 32;
const EXPRESSION_BYTES_MAX: usize = 10 << 10;
const NAMES_MAX: u64 = 32;
const DOMAIN_BYTES_MAX: u64 = 63;
const ID_BYTES_MAX: u64 = 32;

/// By minor, of new expressions and of stored ones.
static ENVIRONMENTS: [[OnceLock<Env>; 2]; Minor::COUNT] = [const { [const { OnceLock::new() }; 2] }; Minor::COUNT];

/// The errors of selectors in that version of Kubernetes.
pub fn selectors(minor: Minor, field: &FieldRef<'_>, is_stored: bool) -> ErrorList {
    let env = known_environment(minor, is_stored);
    list(field, SELECTORS_MAX, |selector| {
        let cel = selector.field("cel");
        if !cel.is_set() {
            return [cel.required("")].into_iter().collect();
        }
        let expression = cel.field("expression");
        fault(env, &expression).into_iter().collect()
    })
}

fn known_environment(minor: Minor, is_stored: bool) -> &'static Env {
    let expressions = if is_stored { Expressions::Stored } else { Expressions::New };
    let made = || work::essential(|| environment(minor, expressions));
    ENVIRONMENTS[minor.index()][usize::from(is_stored)].get_or_init(made)
}

fn fault(env: &Env, expression: &FieldRef<'_>) -> Option<Error> {
    let text = expression.text();
    if text.len() > EXPRESSION_BYTES_MAX {
        return Some(expression.too_long(EXPRESSION_BYTES_MAX as i64));
    }
    let invalid = |why: String| Some(Error::invalid(expression.path(), text, why));
    let checked = match env.compile(text) {
        Ok(checked) => checked,
        Err(issues) => return invalid(format!("compilation failed: {issues}")),
    };
    match checked.result_type() {
        Type::Bool | Type::Any => None,
        other => invalid(format!("must evaluate to bool or the unknown type, not {}", other.go_name())),
    }
}

fn environment(minor: Minor, expressions: Expressions) -> Env {
    let text = |bytes_max: u64| DeclType::scalar(Type::String, bytes_max, 0);
    let by_domain = |value: DeclType| {
        let in_domain = DeclType::map(text(ID_BYTES_MAX), value, NAMES_MAX);
        DeclType::map(text(DOMAIN_BYTES_MAX), in_domain, NAMES_MAX)
    };
    let quantity = DeclType::scalar(Type::object("kubernetes.Quantity"), 0, 0);
    let fields = [
        ("driver", text(DOMAIN_BYTES_MAX)),
        ("attributes", by_domain(DeclType::scalar(Type::Any, 0, 0))),
        ("capacity", by_domain(quantity)),
        ("allowMultipleAllocations", DeclType::scalar(Type::Bool, 0, 0)),
    ];
    let declared = |(name, decl): (&str, DeclType)| (name.to_owned(), DeclField { decl, required: true });
    let device = ObjectType { name: "kubernetes.DRADevice".to_owned(), fields: fields.map(declared).into() };
    Env::of(minor, expressions).with_variable("device", DeclType::object(device, 0).ty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_selector_gives_a_truth_value_or_what_is_not_known() {
        let told = |expression: &str| {
            let object = object! { "expression" => expression };
            let root = FieldRef::root(&object);
            fault(known_environment(Minor::NEWEST, false), &root.field("expression")).map(|error| error.body())
        };
        // Answers of kube-apiserver 1.36.2.
        for (expression, found) in [
            ("null", "null_type"),
            ("[null]", "list(null_type)"),
            ("dyn(true)", "dyn"),
            ("duration('1s')", "google.protobuf.Duration"),
            ("device.attributes['a']", "map(string, google.protobuf.Any)"),
        ] {
            let error = told(expression).expect("it is refused");
            assert!(error.ends_with(&format!(": must evaluate to bool or the unknown type, not {found}")), "{error}");
        }
        assert_eq!(told("device.driver == 'a'"), None);
        assert_eq!(told("device.attributes['a'].b"), None);
    }
}
