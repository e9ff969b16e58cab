//! One expression of a policy.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/cel/compile.go`, release 1.37.

use crate::cel::env::Env;
use crate::cel::eval::Program;
use crate::cel::types::Type;

/// An expression as it is stored, ready to be evaluated. What is wrong with it is told when it is evaluated.
#[derive(Debug)]
pub struct Expression {
    /// The expression.
    pub text: String,
    /// The program; an error where it does not compile.
    pub program: Result<Program, String>,
}

impl Expression {
    /// An expression in `env` that must come to one of the `wanted` types.
    pub fn new(text: &str, env: &Env, wanted: &[Type]) -> Self {
        Expression { text: text.to_owned(), program: compile(env, text, wanted).map(|(program, _)| program) }
    }
}

/// Compiles an expression, which must give one of `wanted` if there are any: its program, and its type.
///
/// # Errors
/// What Kubernetes has against it.
pub fn compile(env: &Env, text: &str, wanted: &[Type]) -> Result<(Program, Type), String> {
    let checked = env.compile(text).map_err(|issues| format!("compilation failed: {issues}"))?;
    let found = checked.result_type();
    if !wanted.is_empty() && !wanted.contains(found) {
        let names: Vec<String> = wanted.iter().map(go_name).collect();
        let found = go_name(found);
        return Err(match names.as_slice() {
            [only] => format!("must evaluate to {only} but got {found}"),
            several => format!("must evaluate to one of [{}] but got {found}", several.join(" ")),
        });
    }
    let program = Program::new(&checked, env).map_err(|error| format!("program instantiation failed: {error}"))?;
    Ok((program, found.clone()))
}

/// The name of a type as Go prints it outside of the checker's own messages.
pub(super) fn go_name(ty: &Type) -> String {
    let name = ty.runtime_name();
    match ty {
        Type::Wrapper(_) => format!("wrapper({name})"),
        Type::List(element) => format!("{name}({})", go_name(element)),
        Type::Map(entry) => format!("{name}({}, {})", go_name(&entry.0), go_name(&entry.1)),
        Type::Type(Some(of)) => format!("{name}({})", go_name(of)),
        Type::Opaque(opaque) if !opaque.params.is_empty() => {
            let params: Vec<String> = opaque.params.iter().map(go_name).collect();
            format!("{name}({})", params.join(", "))
        }
        _ => name.to_owned(),
    }
}
