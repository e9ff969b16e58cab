//! Match conditions of an authorization webhook: expressions about the request that it would decide on.
//!
//! Input: conditions, and a request in the form of a SubjectAccessReview. Output: the errors of a condition, and
//! whether all conditions are true.
//!
//! Source: `k8s.io/apiserver/pkg/authorization/cel`, release 1.36.

use super::environment::{object, scalar, texts};
use super::expression::{self, CompileError, Expression};
use crate::cel::cost::model::CALL_LIMIT;
use crate::cel::declared::DeclType;
use crate::cel::env::{Env, Expressions};
use crate::cel::eval::Value as Cel;
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::value::Value;

/// The first minor in which requests have selectors.
const FIRST_WITH_SELECTORS: u16 = 32;

/// The environment: the variable `request` is the `spec` of a SubjectAccessReview.
pub fn environment(minor: Minor) -> Env {
    Env::of(minor, Expressions::Stored).with_variable("request", request(minor).ty)
}

/// Compiles a condition.
///
/// # Errors
///
/// The errors that Kubernetes reports for it.
pub fn compile(env: &Env, text: &str) -> Result<Expression, CompileError> {
    let (program, _) = expression::compile(env, text, &[Type::Bool])?;
    Ok(Expression { text: text.to_owned(), program: Ok(program) })
}

/// Evaluates whether all conditions are true for a request. If one is false, the result is false, whatever the others
/// are.
///
/// # Errors
///
/// If no condition is false, the messages of all that failed to evaluate.
pub fn ask(conditions: &[Expression], request: &Value) -> Result<bool, Vec<String>> {
    let mut errors = Vec::new();
    for Expression { text, program } in conditions {
        let holds = match program {
            Ok(program) => program.evaluate(&[Some(Ok(Cel::json(request)))], CALL_LIMIT).result,
            Err(why) => {
                errors.push(why.to_string());
                continue;
            }
        };
        match holds {
            Ok(value) if value.as_bool() == Some(true) => {}
            Ok(_) => return Ok(false),
            Err(error) => {
                errors.push(format!("cel evaluation error: expression '{text}' resulted in error: {error}"));
            }
        }
    }
    if errors.is_empty() { Ok(true) } else { Err(errors) }
}

fn request(minor: Minor) -> DeclType {
    let text = || scalar(Type::String);
    let mut of_resource: Vec<(&str, DeclType)> =
        ["namespace", "verb", "group", "version", "resource", "subresource", "name"].map(|name| (name, text())).into();
    if minor.number() >= FIRST_WITH_SELECTORS {
        of_resource.push(("fieldSelector", selector("kubernetes.FieldSelectorAttributes")));
        of_resource.push(("labelSelector", selector("kubernetes.LabelSelectorAttributes")));
    }
    object(
        "kubernetes.SubjectAccessReviewSpec",
        &[
            ("resourceAttributes", object("kubernetes.ResourceAttributes", &of_resource)),
            (
                "nonResourceAttributes",
                object("kubernetes.NonResourceAttributes", &[("path", text()), ("verb", text())]),
            ),
            ("user", text()),
            ("groups", texts()),
            ("extra", DeclType::map(text(), texts(), 0)),
            ("uid", text()),
        ],
    )
}

fn selector(name: &str) -> DeclType {
    let text = || scalar(Type::String);
    let requirement =
        object("kubernetes.SelectorRequirement", &[("key", text()), ("operator", text()), ("values", texts())]);
    object(name, &[("rawSelector", text()), ("requirements", DeclType::list(requirement, 0))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn evaluate(conditions: &[&str]) -> Result<bool, Vec<String>> {
        let env = environment(Minor::NEWEST);
        let compiled = conditions.iter().map(|text| compile(&env, text).expect("it compiles"));
        let request = "{user: jane, uid: u, groups: [dev], extra: {}, resourceAttributes: {namespace: n, verb: list, \
                       group: '', version: v1, resource: pods, subresource: '', name: '', \
                       labelSelector: {requirements: [{key: a, operator: In, values: [b]}]}}}";
        ask(&compiled.collect::<Vec<_>>(), &yaml::decode(request.as_bytes()).expect("the test is YAML"))
    }

    #[test]
    fn conditions_see_who_wants_what() {
        assert_eq!(evaluate(&["request.user == 'jane' && 'dev' in request.groups"]), Ok(true));
        assert_eq!(
            evaluate(&["has(request.resourceAttributes)", "request.resourceAttributes.verb == 'get'"]),
            Ok(false)
        );
        let selected = "request.resourceAttributes.labelSelector.requirements.all(r, r.values == ['b'])";
        assert_eq!(evaluate(&[selected, "!has(request.nonResourceAttributes)"]), Ok(true));
    }

    #[test]
    fn what_is_false_decides_and_errors_are_told_together() {
        let missing = "request.nonResourceAttributes.path == '/'";
        assert_eq!(evaluate(&[missing, "request.user == 'joe'"]), Ok(false));
        let why = format!(
            "cel evaluation error: expression '{missing}' resulted in error: no such key: nonResourceAttributes"
        );
        assert_eq!(evaluate(&[missing]), Err(vec![why]));
    }

    #[test]
    fn a_condition_must_compile_to_a_bool() {
        let fault = |minor, text: &str| compile(&environment(minor), text).err().map(|error| error.text().to_owned());
        assert_eq!(fault(Minor::NEWEST, "1").as_deref(), Some("must evaluate to bool but got int"));
        let selects = "has(request.resourceAttributes.fieldSelector)";
        assert_eq!(fault(Minor::NEWEST, selects), None);
        assert!(fault(Minor::of(31), selects).is_some_and(|why| why.contains("undefined field 'fieldSelector'")));
    }
}
