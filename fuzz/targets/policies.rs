//! Policies of admission: from what they say to what becomes of an object.

use std::sync::Arc;

use kubeskiff::author::policies::admit::{AdmissionSetup, Admitted, SentRequest};
use kubeskiff::author::policies::{Policies, RequestUser, price};
use kubeskiff::author::{Catalog, Checked};
use kubeskiff::cel::library::authorizer::{AuthorizerAnswer, AuthorizerCheck, RuleAuthorizer};
use kubeskiff::meta::minor::Minor;
use kubeskiff::object;
use kubeskiff::value::{Value, json};

use super::{Linear, Target};

/// The expressions of a policy have a limit of cost together.
pub const TARGET: Target = Target {
    name: "policies",
    run,
    steps: Linear { beside: 1 << 23, per_byte: 2_000 },
    allocated_bytes: Linear { beside: 64 << 20, per_byte: 50_000 },
};

const VERSION: &str = "admissionregistration.k8s.io/v1";

/// Lets everybody read.
#[derive(Debug)]
struct OnlyReading;

impl RuleAuthorizer for OnlyReading {
    fn decide(&self, check: &AuthorizerCheck) -> AuthorizerAnswer {
        let (AuthorizerCheck::Path { verb, .. } | AuthorizerCheck::Resource { verb, .. }) = check;
        AuthorizerAnswer { allowed: verb == "get", ..AuthorizerAnswer::default() }
    }

    fn service_account(&self, _: &str, _: &str) -> Arc<dyn RuleAuthorizer> {
        Arc::new(OnlyReading)
    }
}

/// The input is what a policy says, a line `---`, and the data of a ConfigMap. A policy is read or refused, and has a price.
/// The same request ends in the same way a second time; only mutating policies change the object.
fn run(data: &[u8]) {
    let (spec, data) = super::parts(data);
    let Ok(spec) = json::decode(spec) else { return };
    let object = object! {
        "apiVersion" => "v1",
        "kind" => "ConfigMap",
        "metadata" => object! { "name" => "a", "namespace" => "default" },
        "data" => json::decode(data).unwrap_or_default(),
    };
    for kind in ["Validating", "Mutating"] {
        let manifests = manifests(kind, &spec);
        let catalog = Catalog::default();
        _ = price::price(&manifests[0], &catalog);
        let policies = Policies::read(Minor::NEWEST, &manifests);
        let first = admit(&policies, &catalog, &object);
        let again = admit(&policies, &catalog, &object);
        assert_eq!(shown(&first), shown(&again), "a request ends in the same way a second time");
        let is_mutated = first.is_some_and(|admitted| admitted.is_mutated);
        assert!(kind == "Mutating" || !is_mutated, "who validates changes nothing");
    }
}

/// A policy for all, and its binding.
fn manifests(kind: &str, spec: &Value) -> [Value; 2] {
    let mut spec = spec.clone();
    let all = || vec![Value::from("*")];
    let rule = object! { "apiGroups" => all(), "apiVersions" => all(), "operations" => all(), "resources" => all() };
    let fields = spec.make_object();
    fields.insert("matchConstraints", object! { "resourceRules" => vec![rule] });
    let mut binding = object! { "policyName" => "p" };
    if kind == "Validating" {
        binding.make_object().insert("validationActions", Value::Array(vec!["Deny".into(), "Audit".into()]));
    }
    let manifest = |kind: String, spec: Value| {
        object! { "apiVersion" => VERSION, "kind" => kind, "metadata" => object! { "name" => "p" }, "spec" => spec }
    };
    [manifest(format!("{kind}AdmissionPolicy"), spec), manifest(format!("{kind}AdmissionPolicyBinding"), binding)]
}

fn admit(policies: &Policies, catalog: &Catalog, object: &Value) -> Option<Admitted> {
    let user = object! { "username" => "u", "groups" => vec![Value::from("g")] };
    let request_user = RequestUser { user, authorizer: Arc::new(OnlyReading) };
    let admission =
        AdmissionSetup { policies, catalog, request_user: &request_user, beside: &[], namespace: "", home: "" };
    let sent = SentRequest { object, old: None, subresource: "", operation: None };
    let mut check = |object: &Value| Checked { object: object.clone(), prepared: object.clone(), ..Checked::default() };
    admission.admit(sent, &mut check, &mut |_| {})
}

/// What a client would be told.
fn shown(admitted: &Option<Admitted>) -> String {
    admitted.as_ref().map_or_else(String::new, |admitted| {
        let Admitted { checked, denial, warnings, annotations, .. } = admitted;
        format!("{denial:?} {warnings:?} {annotations:?} {}", json::encode_to_string(&checked.object))
    })
}
