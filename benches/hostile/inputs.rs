//! The worst requests that were found, and the small ones beside them.

use std::fmt::Write as _;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FREE: &str = "/apis/load.example.com/v1/namespaces/default/frees";
const JSON: &str = "Content-Type: application/json\r\n";
const YAML: &str = "Content-Type: application/yaml\r\n";
const AS_YAML: &str = "Content-Type: application/json\r\nAccept: application/yaml\r\n";
const AS_TABLE: &str = "Content-Type: application/json\r\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\r\nAccept-Encoding: gzip\r\n";
const JSON_PATCH: &str = "Content-Type: application/json-patch+json\r\n";
const MERGE_PATCH: &str = "Content-Type: application/merge-patch+json\r\n";
const STRATEGIC_PATCH: &str = "Content-Type: application/strategic-merge-patch+json\r\n";
const APPLY: &str = "Content-Type: application/apply-patch+yaml\r\n";

/// A request, and what is answered to it where that is known.
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub headers: &'static str,
    pub body: Vec<u8>,
    pub status: u16,
}

/// One of the worst requests.
pub struct Input {
    pub name: &'static str,
    /// Sent before.
    pub setup: Vec<Request>,
    /// The request, of which there are many.
    pub request: Box<dyn Fn(usize) -> Request + Send + Sync>,
    /// Whether it is tried a thousand times at once.
    pub is_queued: bool,
}

impl Input {
    /// No request: nobody sends it.
    pub fn none() -> Self {
        input("nothing", |_| request("GET", "/livez", JSON, ""))
    }

    fn after(self, setup: Vec<Request>) -> Self {
        Input { setup, ..self }
    }

    fn queued(self) -> Self {
        Input { is_queued: true, ..self }
    }
}

fn input(name: &'static str, request: impl Fn(usize) -> Request + Send + Sync + 'static) -> Input {
    Input { name, setup: Vec::new(), request: Box::new(request), is_queued: false }
}

fn request(method: &'static str, path: impl Into<String>, headers: &'static str, body: impl Into<Vec<u8>>) -> Request {
    Request { method, path: path.into(), headers, body: body.into(), status: 200 }
}

/// What every server has: a kind without much of a schema, and an object to read.
pub fn setup() -> Vec<Request> {
    vec![
        definition("frees", r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#),
        request("POST", CONFIG_MAPS, JSON, config_map("small", r#""a":"b""#)),
    ]
}

/// The requests that others send: a health check, a read, a write.
pub fn small(at: usize) -> [Request; 3] {
    let created = config_map(&format!("small-{at}"), r#""a":"b""#);
    [
        request("GET", "/livez", JSON, ""),
        request("GET", format!("{CONFIG_MAPS}/small"), JSON, ""),
        Request { status: 201, ..request("POST", CONFIG_MAPS, JSON, created) },
    ]
}

/// Every input.
pub fn all() -> Vec<Input> {
    let mut all = objects();
    all.extend(lists());
    all.extend(definitions());
    all.extend(patches());
    all.extend(products());
    all
}

/// Bodies of objects.
fn objects() -> Vec<Input> {
    let metadata = |name: &'static str, field: &'static str, item: &'static str, count: usize| {
        let items = numbered(count, item);
        input(name, move |_| request("POST", FREE, JSON, free("x", &format!(r#","{field}":[{items}]"#), "")))
    };
    let owner = r#"{"apiVersion":"v1","kind":"ConfigMap","name":"n","uid":"u-#"}"#;
    let controller = r#"{"apiVersion":"v1","kind":"ConfigMap","name":"n","uid":"u-#","controller":true}"#;
    let unknown = numbered(80_000, r#""unknown-#":1"#);
    let labels = numbered(60_000, r#""-bad label #-":"-also bad-""#);
    let numbers = format!("[{}]", numbered(1_400_000, "1"));
    vec![
        input("unknown fields", move |_| {
            request(
                "POST",
                CONFIG_MAPS,
                JSON,
                format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"x"}},{unknown}}}"#),
            )
        })
        .queued(),
        metadata("ownerReferences", "ownerReferences", owner, 14_000),
        metadata("controllers", "ownerReferences", controller, 4_000),
        metadata("finalizers", "finalizers", r#""example.com/f-#""#, 20_000),
        input("bad labels", move |_| request("POST", FREE, JSON, free("x", &format!(r#","labels":{{{labels}}}"#), ""))),
        input("YAML aliases", |_| {
            let keys = numbered(390, "k#: *a").replace(',', "\n  ");
            let body = format!(
                "apiVersion: load.example.com/v1\nkind: Free\nmetadata: {{name: x}}\nspec:\n  a: &a {}\n  {keys}\n",
                "x".repeat(1 << 20)
            );
            request("POST", FREE, YAML, body)
        }),
        input("dry run of a million values", move |_| {
            request("POST", format!("{FREE}?dryRun=All"), JSON, free("x", "", &format!(r#","spec":{{"n":{numbers}}}"#)))
        }),
        input("deep objects as YAML", |_| request("GET", format!("{FREE}/deep"), AS_YAML, "")).after(vec![request(
            "POST",
            FREE,
            JSON,
            free(
                "deep",
                "",
                &format!(r#","spec":{}[{}]{}"#, r#"{"a":"#.repeat(4_900), numbered(400_000, "1"), "}".repeat(4_900)),
            ),
        )]),
    ]
}

/// Reads of many objects.
fn lists() -> Vec<Input> {
    let many = || {
        let text = "x".repeat(20_000);
        (0..2_000)
            .map(|at| {
                request("POST", CONFIG_MAPS, JSON, config_map(&format!("many-{at}"), &format!(r#""a":"{text}""#)))
            })
            .collect::<Vec<_>>()
    };
    let labels = numbered(2_000, "a# notin (b)").replace(' ', "%20");
    vec![
        input("list of 40 MB", |_| request("GET", CONFIG_MAPS, JSON, "")).after(many()),
        input("table of 2,000, gzip", |_| request("GET", CONFIG_MAPS, AS_TABLE, "")).after(many()),
        input("list of 40 MB as YAML", |_| request("GET", CONFIG_MAPS, AS_YAML, "")).after(many()),
        input("selector of 2,000 terms", move |_| {
            request("GET", format!("{CONFIG_MAPS}?labelSelector={labels}"), JSON, "")
        })
        .after(many()),
    ]
}

/// Definitions, and what follows from them.
fn definitions() -> Vec<Input> {
    let pattern = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"t":{"type":"string","pattern":"(\\pL|x){1000}(\\pL|y){1000}!"}}}}}"#;
    let text = "é".repeat(200_000);
    let defaults = format!(
        r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{"l":{{"type":"array","items":{{"type":"object","properties":{{"d":{{"type":"string","default":"{}"}}}}}}}}}}}}}}}}"#,
        "d".repeat(1_000)
    );
    let items = numbered(100_000, "{}");
    let rule = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","maxItems":500,"items":{"type":"integer"},"x-kubernetes-validations":[{"rule":"self.all(a, self.all(b, a + b >= 0))"}]}}}}}"#;
    let numbers = numbered(500, "#");
    let keys = numbered(200_000, r#""k""#);
    let role = |field: &str| format!(r#""{field}":[{}]"#, numbered(64, &format!(r#""{field}-#""#)));
    let rules = format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{{"name":"x"}},"rules":[{{{},{},{},{}}}]}}"#,
        role("verbs"),
        role("apiGroups"),
        role("resources"),
        role("resourceNames")
    );
    let versions = (0..8_000)
        .map(|at| {
            format!(
                r#"{{"name":"v{}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object"}}}}}}"#,
                at + 1,
                at == 0
            )
        })
        .collect::<Vec<_>>()
        .join(",");
    let properties = numbered(20_000, r##""p#":{"type":"object","properties":{"a":{"type":"string"}}}"##);
    vec![
        input("pattern", move |_| {
            let spec = format!(r#","spec":{{"t":"{text}"}}"#);
            request("POST", path("patterns"), JSON, object("Patterns", "x", "", &spec))
        })
        .after(vec![definition("patterns", pattern)])
        .queued(),
        input("defaults", move |_| {
            let spec = format!(r#","spec":{{"l":[{items}]}}"#);
            request("POST", path("defaults"), JSON, object("Defaults", "x", "", &spec))
        })
        .after(vec![definition("defaults", &defaults)]),
        input("costly rule", move |at| {
            let spec = format!(r#","spec":{{"l":[{numbers}]}}"#);
            request(
                "POST",
                format!("{}?dryRun=All", path("rules")),
                JSON,
                object("Rules", &format!("x-{at}"), "", &spec),
            )
        })
        .after(vec![definition("rules", rule)])
        .queued(),
        input("list-map-keys", move |at| {
            let schema = format!(
                r#"{{"type":"object","properties":{{"l":{{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":[{keys}],"items":{{"type":"object","properties":{{"k":{{"type":"string"}}}}}}}}}}}}"#
            );
            definition(&format!("keys{at}"), &schema)
        }),
        input("role of 64 x 64 x 64 x 64", move |_| {
            request(
                "POST",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles?dryRun=All",
                JSON,
                rules.clone(),
            )
        }),
        input("8,000 versions", |_| request("GET", "/apis", JSON, "")).after(vec![request(
            "POST",
            DEFINITIONS,
            JSON,
            of_definition("manies", &versions),
        )]),
        input("OpenAPI of a large schema", |_| request("GET", "/openapi/v2", JSON, ""))
            .after(vec![definition("larges", &format!(r#"{{"type":"object","properties":{{{properties}}}}}"#))]),
    ]
}

/// Patches of all kinds.
fn patches() -> Vec<Input> {
    let inserts = numbered(10_000, r#"{"op":"add","path":"/spec/n/0","value":1}"#);
    let data = numbered(100_000, r#""key-#":"v""#);
    let fields = numbered(100_000, r#""f#":1"#);
    vec![
        input("JSON patch", move |_| {
            request("PATCH", format!("{FREE}/million?dryRun=All"), JSON_PATCH, format!("[{inserts}]"))
        })
        .after(vec![request(
            "POST",
            FREE,
            JSON,
            free("million", "", &format!(r#","spec":{{"n":[{}]}}"#, numbered(1_000_000, "0"))),
        )])
        .queued(),
        input("merge patch that grows", |at| {
            let body = format!(r#"{{"spec":{{"k{at}":"{}"}}}}"#, "x".repeat(2_900_000));
            request("PATCH", format!("{FREE}/grows"), MERGE_PATCH, body)
        })
        .after(vec![request("POST", FREE, JSON, free("grows", "", ""))]),
        input("strategic merge patch", move |_| {
            let body = format!(r#"{{"data":{{{data}}}}}"#);
            request("PATCH", format!("{CONFIG_MAPS}/small?dryRun=All"), STRATEGIC_PATCH, body)
        }),
        input("apply of 100,000 fields", move |at| {
            let body = free("applied", "", &format!(r#","spec":{{{fields}}}"#));
            request("PATCH", format!("{FREE}/applied?fieldManager=m{at}&force=true"), APPLY, body)
        }),
    ]
}

/// Little that becomes much: what is stored times what is sent, or each variable times the one before.
fn products() -> Vec<Input> {
    const NAMESPACED: &str = "/api/v1/namespaces/default";
    const SECRETS: &str = "/api/v1/namespaces/default/secrets?dryRun=All";
    let secret = |_| request("POST", SECRETS, JSON, r#"{"metadata":{"name":"x"},"data":{"a":"YQ=="}}"#);
    let amounts = numbered(10_000, r#""example.com/x#":"1""#);
    let limits = format!(
        r#"{{"metadata":{{"name":"x"}},"spec":{{"limits":[{{"type":"Container","default":{{{amounts}}}}}]}}}}"#
    );
    let containers = numbered(2_000, r#"{"name":"c#","image":"b"}"#);
    let hard = numbered(30_000, r#""count/things#.example.com":"1""#);
    let quotas = (0..30).map(move |at| {
        let quota = format!(r#"{{"metadata":{{"name":"q{at}"}},"spec":{{"hard":{{{hard}}}}}}}"#);
        request("POST", format!("{NAMESPACED}/resourcequotas"), JSON, quota)
    });
    let pod = |containers: &str| format!(r#"{{"metadata":{{"name":"x"}},"spec":{{"containers":[{containers}]}}}}"#);
    let (large, small) = (pod(&containers), pod(r#"{"name":"c","image":"b"}"#));
    let pods = format!("{NAMESPACED}/pods?dryRun=All");
    let pods_again = pods.clone();
    let lists =
        (1..60).map(|at| format!(r#"{{"name":"v{at}","expression":"variables.v{0} + variables.v{0}"}}"#, at - 1));
    let variables = format!(r#"{{"name":"v0","expression":"[1]"}},{}"#, lists.collect::<Vec<_>>().join(","));
    let validations =
        format!(r#""variables":[{variables}],"validations":[{{"expression":"variables.v59.size() > 0"}}]"#);
    let doubled = r#"[JSONPatch{op: 'add', path: '/stringData', value: {'a': object.?stringData.a.orValue('x') + object.?stringData.a.orValue('x')}}]"#;
    let mutation = format!(r#"{{"patchType":"JSONPatch","jsonPatch":{{"expression":"{doubled}"}}}}"#);
    let mutations = format!(r#""reinvocationPolicy":"Never","mutations":[{}]"#, vec![mutation; 40].join(","));
    vec![
        input("LimitRange, 2,000 containers", move |_| request("POST", pods.clone(), JSON, large.clone()))
            .after(vec![request("POST", format!("{NAMESPACED}/limitranges"), JSON, limits)]),
        input("pod under 30 quotas of 1 MB", move |_| request("POST", pods_again.clone(), JSON, small.clone()))
            .after(quotas.collect()),
        input("policy that doubles a list", secret).after(policy("Validating", &validations)),
        input("mutations that double a text", secret).after(policy("Mutating", &mutations)),
    ]
}

/// A policy about secrets, and its binding.
fn policy(kind: &str, spec: &str) -> Vec<Request> {
    let path = |what: &str| format!("/apis/admissionregistration.k8s.io/v1/{}admission{what}", kind.to_lowercase());
    let rules = r#"{"apiGroups":[""],"apiVersions":["*"],"operations":["*"],"resources":["secrets"]}"#;
    let policy =
        format!(r#"{{"metadata":{{"name":"x"}},"spec":{{"matchConstraints":{{"resourceRules":[{rules}]}},{spec}}}}}"#);
    let actions = if kind == "Validating" { r#","validationActions":["Deny"]"# } else { "" };
    let binding = format!(r#"{{"metadata":{{"name":"x"}},"spec":{{"policyName":"x"{actions}}}}}"#);
    vec![request("POST", path("policies"), JSON, policy), request("POST", path("policybindings"), JSON, binding)]
}

/// `count` copies of `item` with their numbers in place of `#`.
fn numbered(count: usize, item: &str) -> String {
    let mut text = String::with_capacity(count * (item.len() + 6));
    for at in 0..count {
        if at > 0 {
            text.push(',');
        }
        match item.split_once('#') {
            Some((before, after)) => _ = write!(text, "{before}{at}{after}"),
            None => text.push_str(item),
        }
    }
    text
}

fn config_map(name: &str, data: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{{data}}}}}"#)
}

fn free(name: &str, metadata: &str, rest: &str) -> String {
    object("Frees", name, metadata, rest)
}

fn object(kind: &str, name: &str, metadata: &str, rest: &str) -> String {
    format!(r#"{{"apiVersion":"load.example.com/v1","kind":"{kind}","metadata":{{"name":"{name}"{metadata}}}{rest}}}"#)
}

fn path(plural: &str) -> String {
    format!("/apis/load.example.com/v1/namespaces/default/{plural}")
}

fn definition(plural: &str, schema: &str) -> Request {
    let version = format!(r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}"#);
    request("POST", DEFINITIONS, JSON, of_definition(plural, &version))
}

/// A definition whose kind is its plural with a capital.
fn of_definition(plural: &str, versions: &str) -> String {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.load.example.com"}},"spec":{{"group":"load.example.com","scope":"Namespaced","names":{{"plural":"{plural}","kind":"{kind}"}},"versions":[{versions}]}}}}"#
    )
}
