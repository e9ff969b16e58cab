//! What policies and rules add to the creation of an object: the release binary with its objects in memory, one client over TLS.
//!
//!     cargo bench --bench admission
//!
//! Four kinds take the same objects: one alone, one that ten policies are bound to with ten validations each, one with a hundred
//! rules in its definition, and one with both. Objects are made turn and turn about, so that whatever else happens happens to
//! all of them.

#[expect(dead_code, reason = "the other programs measure more")]
mod server;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use server::{Failure, Server, percentile};

const GROUP: &str = "admission.example.com";
const OBJECTS: usize = 2_000;
const POLICIES: usize = 10;
const VALIDATIONS: usize = 10;
const RULES: usize = 100;

/// A kind, and what looks at its objects.
struct Kind {
    plural: &'static str,
    has_policies: bool,
    has_rules: bool,
}

const KINDS: [Kind; 4] = [
    Kind { plural: "plains", has_policies: false, has_rules: false },
    Kind { plural: "guarded", has_policies: true, has_rules: false },
    Kind { plural: "ruled", has_policies: false, has_rules: true },
    Kind { plural: "boths", has_policies: true, has_rules: true },
];

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("admission");
    _ = std::fs::remove_dir_all(&folder);
    let server = Server::start(&folder, &["--store", "memory"])?;
    let mut client = server.connect()?;
    for kind in &KINDS {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        client.expect(201, "POST", definitions, definition(kind).as_bytes())?;
        while client.send("GET", &path(kind), b"")?.0 != 200 {}
    }
    for at in 0..POLICIES {
        let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
        client.expect(201, "POST", policies, policy(at).as_bytes())?;
        let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
        client.expect(201, "POST", bindings, binding(at).as_bytes())?;
    }
    let mut took: [Vec<Duration>; KINDS.len()] = std::array::from_fn(|_| Vec::with_capacity(OBJECTS));
    for at in 0..OBJECTS {
        for (kind, took) in KINDS.iter().zip(&mut took) {
            let body = object(kind, at);
            let begun = Instant::now();
            client.expect(201, "POST", &path(kind), body.as_bytes())?;
            took.push(begun.elapsed());
        }
    }
    for (kind, took) in KINDS.iter().zip(&mut took) {
        println!("create, {:<50} p50 {}", described(kind), micros(percentile(took, 50)));
    }
    drop(server);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

fn described(kind: &Kind) -> String {
    let policies = if kind.has_policies { POLICIES } else { 0 };
    let rules = if kind.has_rules { RULES } else { 0 };
    format!("{policies} policies of {VALIDATIONS} validations, {rules} rules")
}

fn micros(time: Duration) -> String {
    format!("{} us", time.as_micros())
}

fn path(kind: &Kind) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/{}", kind.plural)
}

fn object(kind: &Kind, at: usize) -> String {
    let spec = r#"{"replicas":3,"image":"registry.example.com/team/app:1.2.3","tier":"web"}"#;
    let kind = kind.plural;
    format!(r#"{{"apiVersion":"{GROUP}/v1","kind":"{kind}","metadata":{{"name":"o-{at}"}},"spec":{spec}}}"#)
}

/// An expression that holds; no two are the same text.
fn expression(of: &str, at: usize) -> String {
    format!("{of}.replicas < {} && {of}.image.startsWith('registry.example.com/')", 100 + at)
}

fn definition(kind: &Kind) -> String {
    let rules = if kind.has_rules { RULES } else { 0 };
    let rules: Vec<String> =
        (0..rules).map(|at| format!(r#"{{"rule":"{}","message":"m"}}"#, expression("self", at))).collect();
    let text = |max: usize| format!(r#"{{"type":"string","maxLength":{max}}}"#);
    let (image, tier, plural) = (text(100), text(10), kind.plural);
    let properties = format!(r#"{{"replicas":{{"type":"integer"}},"image":{image},"tier":{tier}}}"#);
    let rules = rules.join(",");
    let spec = format!(r#"{{"type":"object","properties":{properties},"x-kubernetes-validations":[{rules}]}}"#);
    let schema = format!(r#"{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{spec}}}}}}}"#);
    let version = format!(r#"{{"name":"v1","served":true,"storage":true,"schema":{schema}}}"#);
    let names = format!(r#"{{"plural":"{plural}","kind":"{plural}"}}"#);
    let spec = format!(r#"{{"group":"{GROUP}","scope":"Namespaced","names":{names},"versions":[{version}]}}"#);
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.{GROUP}"}},"spec":{spec}}}"#
    )
}

fn policy(at: usize) -> String {
    let validations: Vec<String> = (0..VALIDATIONS)
        .map(|number| {
            format!(r#"{{"expression":"{}","message":"m"}}"#, expression("object.spec", at * VALIDATIONS + number))
        })
        .collect();
    let guarded: Vec<String> =
        KINDS.iter().filter(|kind| kind.has_policies).map(|kind| format!(r#""{}""#, kind.plural)).collect();
    let rule = format!(
        r#"{{"apiGroups":["{GROUP}"],"apiVersions":["v1"],"operations":["CREATE","UPDATE"],"resources":[{}]}}"#,
        guarded.join(",")
    );
    let spec =
        format!(r#"{{"matchConstraints":{{"resourceRules":[{rule}]}},"validations":[{}]}}"#, validations.join(","));
    format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{{"name":"p-{at}"}},"spec":{spec}}}"#
    )
}

fn binding(at: usize) -> String {
    let spec = format!(r#"{{"policyName":"p-{at}","validationActions":["Deny"]}}"#);
    format!(
        r#"{{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{{"name":"p-{at}"}},"spec":{spec}}}"#
    )
}
