//! Match conditions: expressions that must all be true for a webhook to be called.
//!
//! In: the conditions of a webhook, and a request as expressions see it. Out: what is wrong with a condition when it is
//! written; later, whether the webhook is called. Nothing here does I/O: whom `authorizer` asks comes with the request.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/cel` and `plugin/webhook/matchconditions`, release 1.37.

use std::sync::{Arc, LazyLock};

use crate::cel::cost::model::CALL_LIMIT;
use crate::cel::declared::{DeclField, DeclType, ObjectType};
use crate::cel::env::{Env, Expressions};
use crate::cel::eval::map::Map as CelMap;
use crate::cel::eval::{EvalError, Program, Value as Cel};
use crate::cel::library::functions::authorizer::{self, Authorizer, Resource};
use crate::cel::types::Type;
use crate::value::Value;
use crate::work;

/// What all conditions of a webhook may cost together.
const BUDGET: u64 = 2_500_000;

static NEW: LazyLock<Env> = LazyLock::new(|| work::essential(|| environment(Expressions::New)));
static STORED: LazyLock<Env> = LazyLock::new(|| work::essential(|| environment(Expressions::Stored)));

/// A condition, ready to be evaluated.
pub struct Condition {
    expression: String,
    program: Result<Program, String>,
}

/// A request as conditions see it. What there is not, is null.
pub struct Variables<'v> {
    pub object: &'v Value,
    pub old_object: &'v Value,
    /// The AdmissionRequest without its objects.
    pub request: &'v Value,
    pub authorizer: Arc<dyn Authorizer>,
    pub request_resource: Resource,
}

/// Compiles an expression.
///
/// # Errors
///
/// What Kubernetes has against it.
pub fn compile(expression: &str, expressions: Expressions) -> Result<Program, String> {
    let env = match expressions {
        Expressions::New => &*NEW,
        Expressions::Stored => &*STORED,
    };
    let checked = env.compile(expression).map_err(|issues| format!("compilation failed: {issues}"))?;
    let found = checked.result_type();
    if *found != Type::Bool {
        return Err(format!("must evaluate to bool but got {found}"));
    }
    Program::new(&checked, env).map_err(|error| format!("program instantiation failed: {error}"))
}

impl Condition {
    /// A condition that is stored. What is wrong with it is told when it is evaluated.
    pub fn stored(expression: &str) -> Self {
        Condition { expression: expression.to_owned(), program: compile(expression, Expressions::Stored) }
    }
}

/// Whether all of `conditions` hold. One that is false decides, whatever the others are.
///
/// # Errors
///
/// Why that can't be told: every condition that failed, or that they cost too much.
pub fn hold(conditions: &[Condition], variables: &Variables<'_>) -> Result<bool, String> {
    let values = [
        json(variables.object),
        json(variables.old_object),
        Cel::Null,
        json(variables.request),
        authorizer::authorizer(Arc::clone(&variables.authorizer)),
        authorizer::request_resource(Arc::clone(&variables.authorizer), variables.request_resource.clone()),
    ];
    let values = values.map(|value| Some(Ok(value)));
    let mut left = BUDGET;
    let mut outcomes = Vec::with_capacity(conditions.len());
    for Condition { expression, program } in conditions {
        let program = match program {
            Ok(program) => program,
            Err(why) => {
                outcomes.push(Err(format!("compilation error: {why}")));
                continue;
            }
        };
        let evaluation = program.evaluate(&values, CALL_LIMIT);
        left = left.checked_sub(evaluation.cost).ok_or_else(|| {
            "validation failed due to running out of cost budget, no further validation rules will be run".to_owned()
        })?;
        outcomes.push(match evaluation.result {
            Ok(value) => Ok(value.as_bool() == Some(true)),
            Err(error) => Err(failed(expression, &error)),
        });
    }
    if outcomes.contains(&Ok(false)) {
        return Ok(false);
    }
    let mut errors: Vec<String> = Vec::new();
    for error in outcomes.into_iter().filter_map(Result::err) {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

fn failed(expression: &str, error: &EvalError) -> String {
    format!("expression '{expression}' resulted in error: {error}")
}

/// JSON as expressions see what has no schema.
fn json(value: &Value) -> Cel<'_> {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(truth) => Cel::Bool(*truth),
        Value::Int(number) => Cel::Int(*number),
        Value::Float(number) => Cel::Double(*number),
        Value::String(text) => Cel::borrowed(text),
        Value::Array(items) => Cel::list(items.iter().map(json).collect()),
        Value::Object(fields) => {
            Cel::Map(CelMap::owned(fields.iter().map(|(name, value)| (Cel::borrowed(name), json(value)))))
        }
    }
}

pub(super) fn environment(expressions: Expressions) -> Env {
    Env::kubernetes(expressions)
        .with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("namespaceObject", namespace().ty)
        .with_variable("request", request().ty)
        .with_variable("authorizer", authorizer::type_of("Authorizer"))
        .with_variable("authorizer.requestResource", authorizer::type_of("ResourceCheck"))
}

fn object(name: &str, fields: &[(&str, DeclType)]) -> DeclType {
    let declared =
        |(field, decl): &(&str, DeclType)| ((*field).to_owned(), DeclField { decl: decl.clone(), required: false });
    DeclType::object(ObjectType { name: name.to_owned(), fields: fields.iter().map(declared).collect() }, 0)
}

fn scalar(ty: Type) -> DeclType {
    DeclType::scalar(ty, 0, 0)
}

fn texts() -> DeclType {
    DeclType::list(scalar(Type::String), 0)
}

fn request() -> DeclType {
    let text = || scalar(Type::String);
    let kind = object("kubernetes.GroupVersionKind", &[("group", text()), ("version", text()), ("kind", text())]);
    let resource =
        object("kubernetes.GroupVersionResource", &[("group", text()), ("version", text()), ("resource", text())]);
    let user = object(
        "kubernetes.UserInfo",
        &[("username", text()), ("uid", text()), ("groups", texts()), ("extra", DeclType::map(text(), texts(), 0))],
    );
    object(
        "kubernetes.AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", scalar(Type::Bool)),
            ("options", scalar(Type::Dyn)),
        ],
    )
}

/// A namespace, of which conditions of webhooks never see one: the variable is null.
fn namespace() -> DeclType {
    let text = || scalar(Type::String);
    let time = || scalar(Type::Timestamp);
    let labels = || DeclType::map(text(), text(), 0);
    let condition = object(
        "kubernetes.NamespaceCondition",
        &[
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        &[
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", scalar(Type::Int)),
            ("deletionTimestamp", time()),
            ("generation", scalar(Type::Int)),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let status =
        object("kubernetes.NamespaceStatus", &[("conditions", DeclType::list(condition, 0)), ("phase", text())]);
    let spec = object("kubernetes.NamespaceSpec", &[("finalizers", texts())]);
    object("kubernetes.Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::library::functions::authorizer::{Check, Decision};
    use crate::value::yaml;

    /// Lets Jane read.
    #[derive(Debug)]
    struct OnlyReading(&'static str);

    impl Authorizer for OnlyReading {
        fn decide(&self, check: &Check) -> Decision {
            let (Check::Path { verb, .. } | Check::Resource { verb, .. }) = check;
            Decision { allowed: verb == "get" && self.0 == "jane", reason: format!("{} asked", self.0) }
        }

        fn service_account(&self, _: &str, _: &str) -> Arc<dyn Authorizer> {
            Arc::new(OnlyReading("account"))
        }
    }

    fn evaluate(expressions: &[&str]) -> Result<bool, String> {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
        let (object, request) = (
            read("{metadata: {name: a, labels: {team: x}}, spec: {count: 3, f: 1.5, list: [1, 2]}}"),
            read("{name: a, operation: CREATE, userInfo: {username: jane, groups: [dev]}, dryRun: false}"),
        );
        let variables = Variables {
            object: &object,
            old_object: &Value::Null,
            request: &request,
            authorizer: Arc::new(OnlyReading("jane")),
            request_resource: Resource { resource: "widgets".to_owned(), ..Resource::default() },
        };
        let conditions: Vec<_> = expressions.iter().map(|expression| Condition::stored(expression)).collect();
        hold(&conditions, &variables)
    }

    #[track_caller]
    fn check(expression: &str, expected: Result<bool, &str>) {
        assert_eq!(evaluate(&[expression]), expected.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn conditions_see_the_request_and_its_objects() {
        check("object.metadata.labels.team == 'x' && object.spec.count + 1 == 4 && object.spec.f < 2.0", Ok(true));
        check("oldObject == null && namespaceObject == null", Ok(true));
        check("request.operation == 'CREATE' && 'dev' in request.userInfo.groups && !request.dryRun", Ok(true));
        check("has(request.namespace)", Ok(false));
        check("object.spec.list.all(x, x > 1)", Ok(false));
    }

    #[test]
    fn conditions_ask_what_somebody_may_do() {
        check("authorizer.group('g').resource('widgets').namespace('n').check('get').allowed()", Ok(true));
        check("authorizer.requestResource.check('delete').allowed()", Ok(false));
        check("authorizer.path('/healthz').check('get').reason() == 'jane asked'", Ok(true));
        check("authorizer.serviceAccount('n', 'a').path('/x').check('get').allowed()", Ok(false));
        check(
            "authorizer.serviceAccount('n', 'A').path('/x').check('get').errored()",
            Err(
                "expression 'authorizer.serviceAccount('n', 'A').path('/x').check('get').errored()' resulted in error: \
                 Invalid service account name",
            ),
        );
        let checks = vec!["authorizer.path('/x').check('get').allowed()"; 8];
        assert_eq!(
            evaluate(&checks),
            Err("validation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned())
        );
    }

    #[test]
    fn what_is_false_decides_and_errors_are_told_together() {
        let missing = "object.metadata.missing == 'x'";
        assert_eq!(evaluate(&[missing, "false"]), Ok(false));
        let why = format!("expression '{missing}' resulted in error: no such key: missing");
        assert_eq!(evaluate(&[missing, "true", missing]), Err(why.clone()));
        let other = "object.other";
        let found = evaluate(&[missing, &format!("{other} == 1")]);
        assert_eq!(
            found,
            Err(format!("[{why}, expression 'object.other == 1' resulted in error: no such key: other]"))
        );
    }

    #[test]
    fn an_expression_must_compile_to_a_bool() {
        let check = |expression: &str, expected: &str| {
            assert_eq!(compile(expression, Expressions::New).err().as_deref(), Some(expected));
        };
        check("request.name", "must evaluate to bool but got string");
        check(
            "request.object == null",
            "compilation failed: ERROR: <input>:1:8: undefined field 'object'\n | request.object == null\n | .......^",
        );
        check(
            "params.x",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x\n | ^",
        );
    }
}
