//! What policies cost: a decision of a small one, and of ten.
//!
//!     cargo bench -p kubeskiff-engine --bench policies

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use kubeskiff_engine::cel::library::authorizer::{AuthorizerAnswer, AuthorizerCheck, CheckedResource, RuleAuthorizer};
use kubeskiff_engine::meta::minor::Minor;
use kubeskiff_engine::policy::{Policy as _, PolicyInput, Validating};
use kubeskiff_engine::value::{Value, yaml};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web, team: a}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: 'registry.example.com/web:1.2', resources: {limits: {memory: 1Gi}}}
      - {name: side, image: 'registry.example.com/side:1.2', resources: {limits: {memory: 1Gi}}}
";

const POLICIES: [(&str, &str); 4] = [
    ("compare a number", "{validations: [{expression: object.spec.replicas <= 5}]}"),
    (
        "look at containers",
        "{validations: [{expression: \"object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))\"}]}",
    ),
    (
        "a variable, a condition and a message",
        "{variables: [{name: containers, expression: object.spec.template.spec.containers}],
          matchConditions: [{name: c, expression: \"request.operation == 'CREATE'\"}],
          validations: [{expression: \"variables.containers.all(c, has(c.resources.limits.memory))\",
                         messageExpression: \"'of ' + string(variables.containers.size()) + ' containers'\"}]}",
    ),
    (
        "parameters",
        "{paramKind: {apiVersion: v1, kind: ConfigMap},
          validations: [{expression: object.spec.replicas <= int(params.data.max)}]}",
    ),
];

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

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("the text is YAML")
}

fn policy(spec: &str) -> Validating {
    let mut policy = read("{metadata: {name: p}}");
    policy.make_object().insert("spec", read(spec));
    Validating::decode(&policy, Minor::NEWEST)
}

fn decisions(criterion: &mut Criterion) {
    let (object, request) = (read(DEPLOYMENT), read("{operation: CREATE, name: web, namespace: default}"));
    let (params, namespace) = (read("{data: {max: '5'}}"), read("{metadata: {name: default}}"));
    let resource = CheckedResource::default();
    let input = PolicyInput {
        object: &object,
        old_object: &Value::Null,
        request: &request,
        namespace: &namespace,
        params: &params,
        authorizer: Some(Arc::new(Nobody)),
        request_resource: &resource,
    };
    let mut group = criterion.benchmark_group("decide");
    for (name, spec) in POLICIES {
        let policy = policy(spec);
        group.bench_function(name, |bench| bench.iter(|| policy.evaluate(black_box(&input))));
    }
    let ten: Vec<_> = POLICIES.iter().cycle().take(10).map(|(_, spec)| policy(spec)).collect();
    group.bench_function("ten policies", |bench| {
        bench.iter(|| ten.iter().map(|policy| policy.evaluate(black_box(&input))).collect::<Vec<_>>());
    });
    group.finish();
    let compile = "compile a policy";
    criterion.bench_function(compile, |bench| bench.iter(|| policy(black_box(POLICIES[2].1))));
}

criterion_group!(benches, decisions);
criterion_main!(benches);
