//! Policies of admission: read, and asked.

use std::sync::Arc;

use kubeskiff::author::policies::admit::{AdmissionSetup, SentRequest};
use kubeskiff::author::policies::{Policies, RequestUser};
use kubeskiff::author::{Catalog, Checked};
use kubeskiff::cel::library::authorizer::{AuthorizerAnswer, AuthorizerCheck, RuleAuthorizer};
use kubeskiff::meta::minor::Minor;
use kubeskiff::value::Value;

use crate::inputs::{Shape, fields, list, value};
use crate::pass::{Pass, pass};

const SIZE: usize = 10;

/// Lets nobody do anything.
#[derive(Debug)]
struct Nobody;

impl RuleAuthorizer for Nobody {
    fn decide(&self, _: &AuthorizerCheck) -> AuthorizerAnswer {
        AuthorizerAnswer::default()
    }

    fn service_account(&self, _: &str, _: &str) -> Arc<dyn RuleAuthorizer> {
        Arc::new(Nobody)
    }
}

/// The shape of those that are refused.
const BROKEN: &str = "a broken expression";

/// Fields of policies that are large in one way each.
const SPECS: [Shape; 4] = [
    ("many validations", |size| {
        format!(r#""validations":{}"#, list(size, |at| format!(r#"{{"expression":"object.data.k{at} == 'v'"}}"#)))
    }),
    ("many variables", |size| {
        let variable = |at: usize| match at {
            0 => r#"{"name":"v0","expression":"1"}"#.to_owned(),
            _ => format!(r#"{{"name":"v{at}","expression":"variables.v{} + 1"}}"#, at - 1),
        };
        let last = size - 1;
        format!(
            r#""variables":{},"validations":[{{"expression":"variables.v{last} == {size}"}}]"#,
            list(size, variable)
        )
    }),
    ("a long expression", |size| {
        let terms: Vec<String> = (0..size).map(|at| format!("object.data.k{at} == 'v'")).collect();
        format!(r#""validations":[{{"expression":"{}"}}]"#, terms.join(" && "))
    }),
    (BROKEN, |size| format!(r#""validations":[{{"expression":"{}"}}]"#, "(a ".repeat(size))),
];

fn policy(name: &str, rest: &str) -> Value {
    value(&format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{{"name":"{name}"}},
        "spec":{{"matchConstraints":{{"resourceRules":[{{"apiGroups":["*"],"apiVersions":["*"],"operations":["*"],
        "resources":["*"]}}]}},{rest}}}}}"#
    ))
}

fn binding(policy: &str) -> Value {
    value(&format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding",
        "metadata":{{"name":"{policy}"}},"spec":{{"policyName":"{policy}","validationActions":["Deny"]}}}}"#
    ))
}

fn object(size: usize) -> Value {
    let data = fields(size, |at| format!(r#""k{at}":"v""#));
    value(&format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{data}}}"#))
}

/// Asks policies about an object.
fn ask((policies, object): &(Policies, Value)) -> bool {
    let request_user = RequestUser { user: Value::Null, authorizer: Arc::new(Nobody) };
    let catalog = Catalog::default();
    let admission = AdmissionSetup {
        policies,
        catalog: &catalog,
        request_user: &request_user,
        beside: &[],
        namespace: "",
        home: "",
    };
    let sent = SentRequest { object, old: None, subresource: "", operation: None };
    let mut check = |object: &Value| Checked { object: object.clone(), prepared: object.clone(), ..Checked::default() };
    admission.admit(sent, &mut check, &mut |_| {}).is_some_and(|admitted| admitted.denial.is_none())
}

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, spec) in SPECS {
        let manifests = move |size| [policy("p", &spec(size)), binding("p")];
        passes.push(pass("policy read", shape, SIZE, manifests, |manifests| {
            Policies::read(Minor::NEWEST, manifests).is_empty()
        }));
        // A broken one is refused.
        if shape != BROKEN {
            let read = move |size| (Policies::read(Minor::NEWEST, &manifests(size)), object(size));
            passes.push(pass("policy asked", shape, SIZE, read, ask));
        }
    }
    let many = |size: usize| {
        let name = |at: usize| format!("p{at}");
        let one = r#""validations":[{"expression":"object.data.k0 == 'v'"}]"#;
        let manifests: Vec<_> = (0..size).flat_map(|at| [policy(&name(at), one), binding(&name(at))]).collect();
        (Policies::read(Minor::NEWEST, &manifests), object(1))
    };
    passes.push(pass("policy asked", "many policies", SIZE, many, ask));
    passes
}
