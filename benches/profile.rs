//! What a release is optimized for: the requests of controllers and of `kubectl` over one HTTP/2 connection, starts, and
//! the commands of schema authors.
//!
//!     packages/profile
//!     cargo bench --bench profile
//!
//! The first runs it with a program that counts what it does; the counts then tell the compiler which code is hot. By
//! itself it prints the processor time of each request, as rows of a table in Markdown: 16 clients on one connection, as
//! client-go has it. Lists have 2,000 objects; those of built-in kinds are asked for as protobuf.

#[expect(dead_code, reason = "this one has a client of its own")]
mod server;
#[expect(dead_code, reason = "this one has objects of its own")]
#[path = "server/widgets.rs"]
mod widgets;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use server::{Failure, PROGRAM, Server};

const CLIENTS: usize = 16;
const OBJECTS: usize = 2_000;
const LISTS: usize = 20;
const WATCHES: usize = 50;
const EVENTS: usize = 100;
const STARTS: usize = 10;
const EXAMPLES: &str = "crd-examples";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf,application/json";
/// What clients ask for before anything else, and how they want it.
const DISCOVERY: [(&str, &str); 6] = [
    ("/api", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"),
    ("/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"),
    ("/api/v1", JSON),
    ("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
    ("/openapi/v3", JSON),
    ("/version", JSON),
];

/// Objects of a kind.
struct Kind {
    name: &'static str,
    path: &'static str,
    api_version: &'static str,
    /// The parts of an object beside its metadata.
    parts: &'static str,
    /// A merge patch.
    patch: &'static str,
    /// What lists are asked for as.
    accept: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "Widget",
        path: "/apis/load.example.com/v1/namespaces/default/widgets",
        api_version: "load.example.com/v1",
        parts: r#""spec":{"replicas":3,"labels":{"a":"b","c":"d"},"ports":[{"name":"http","port":80},{"name":"tls","port":443}],
            "text":"TEXT"}"#,
        patch: r#"{"spec":{"labels":{"a":"changed"}}}"#,
        accept: JSON,
    },
    Kind {
        name: "ConfigMap",
        path: "/api/v1/namespaces/default/configmaps",
        api_version: "v1",
        parts: r#""data":{"a":"b","text":"TEXT"}"#,
        patch: r#"{"data":{"a":"changed"}}"#,
        accept: PROTOBUF,
    },
    Kind {
        name: "Deployment",
        path: "/apis/apps/v1/namespaces/default/deployments",
        api_version: "apps/v1",
        parts: r#""spec":{"replicas":3,"selector":{"matchLabels":{"app":"load"}},"template":{"metadata":{"labels":{"app":"load"}},
            "spec":{"terminationGracePeriodSeconds":30,"containers":[{"name":"web","image":"example.com/web:1","args":["--text=TEXT"],
            "ports":[{"name":"http","containerPort":8080}],"env":[{"name":"A","value":"b"}],
            "resources":{"requests":{"cpu":"100m","memory":"64Mi"},"limits":{"memory":"128Mi"}},
            "readinessProbe":{"httpGet":{"path":"/ready","port":"http"}},"volumeMounts":[{"name":"data","mountPath":"/data"}]}],
            "volumes":[{"name":"data","emptyDir":{}}]}}}"#,
        patch: r#"{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5}}}}"#,
        accept: PROTOBUF,
    },
];

/// The definition of widgets, with defaults, a list with keys and three rules.
const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"widgets.load.example.com"},"spec":{"group":"load.example.com","scope":"Namespaced",
    "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
    "schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
    "x-kubernetes-validations":[{"rule":"self.replicas <= 10 || self.mode == 'fast'"}],"properties":{
    "replicas":{"type":"integer","minimum":0},"mode":{"type":"string","enum":["fast","safe"],"default":"safe"},
    "text":{"type":"string","maxLength":4096,"x-kubernetes-validations":[{"rule":"self.size() > 3 && !self.startsWith('-')"}]},
    "labels":{"type":"object","maxProperties":8,"additionalProperties":{"type":"string","maxLength":64}},
    "ports":{"type":"array","maxItems":8,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
    "x-kubernetes-validations":[{"rule":"self.all(it, it.port > 0 && it.port < 65536)"}],"items":{"type":"object","required":["name"],
    "properties":{"name":{"type":"string","maxLength":64},"port":{"type":"integer"},
    "protocol":{"type":"string","default":"TCP"}}}}}},"status":{"type":"object","properties":{"ready":{"type":"integer"}}}}}}}]}}"#;

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profile");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    println!("| store | request | processor time of the server, µs |\n|---|---|---:|");
    let runtime = tokio::runtime::Runtime::new()?;
    for (store, arguments) in [("SQLite", &[][..]), ("memory", &["--store", "memory"])] {
        let server = Server::start(&folder.join(store), arguments)?;
        runtime.block_on(requests(&server, store))?;
    }
    for at in 0..STARTS {
        Server::start(&folder.join(format!("start-{at}")), &[])?;
    }
    commands()?;
    Ok(std::fs::remove_dir_all(&folder)?)
}

async fn requests(server: &Server, store: &str) -> Result<(), Failure> {
    let client = Client::connect(server).await?;
    for (path, accept) in DISCOVERY {
        client.send(&Sent { accept, ..Sent::new(Method::GET, path) }).await?;
    }
    client.send(&Sent::new(Method::POST, DEFINITIONS).body(JSON, DEFINITION)).await?;
    for kind in &KINDS {
        let print = |what: &str, each: Duration| {
            println!("| {store} | {} {what} | {:.1} |", kind.name, each.as_secs_f64() * 1e6)
        };
        verbs(server, &client, kind, &print).await?;
    }
    Ok(())
}

async fn verbs(
    server: &Server,
    client: &Client,
    kind: &'static Kind,
    print: &dyn Fn(&str, Duration),
) -> Result<(), Failure> {
    let path = |at: usize| format!("{}/{}", kind.path, name(at));
    let create = |at: usize| Sent::new(Method::POST, kind.path).body(JSON, &kind.object(at, "text"));
    let patch = |at, type_, body: &str| Sent::new(Method::PATCH, &path(at)).body(type_, body);
    let apply = |at: usize| Sent {
        path: format!("{}?fieldManager=load&force=true", path(at)),
        ..patch(at, "application/apply-patch+yaml", &kind.object(at, "other text"))
    };
    print("create", each(server, client, OBJECTS, create).await?);
    print("get", each(server, client, OBJECTS, |at| Sent::new(Method::GET, &path(at))).await?);
    print(
        "merge patch",
        each(server, client, OBJECTS, |at| patch(at, "application/merge-patch+json", kind.patch)).await?,
    );
    print("apply", each(server, client, OBJECTS, apply).await?);
    print("get and update", updates(server, client, kind).await?);
    let dry_run = |at: usize| Sent { path: format!("{}?dryRun=All", kind.path), ..create(OBJECTS + at) };
    print("dry run of a create", each(server, client, OBJECTS, dry_run).await?);
    for (what, accept, query) in [
        ("list", kind.accept, ""),
        ("list as JSON", JSON, ""),
        ("list of metadata", METADATA, ""),
        ("table", TABLE, ""),
        ("page of 500", kind.accept, "?limit=500"),
    ] {
        let list = |_| Sent { accept, ..Sent::new(Method::GET, &format!("{}{query}", kind.path)) };
        let took = each(server, client, LISTS, list).await?;
        print(what, took);
        if query.is_empty() {
            print(&format!("{what}, for each object"), took / u32::try_from(OBJECTS)?);
        }
    }
    print("event to one of 50 watches", events(server, client, kind).await?);
    print("delete", each(server, client, OBJECTS, |at| Sent::new(Method::DELETE, &path(at))).await?);
    Ok(())
}

/// Sends so many requests, 16 at once; returns the processor time of the server for each.
async fn each(
    server: &Server,
    client: &Client,
    count: usize,
    request: impl Fn(usize) -> Sent,
) -> Result<Duration, Failure> {
    let requests: Arc<Vec<Sent>> = Arc::new((0..count).map(request).collect());
    side_by_side(server, client, count, move |client, at| {
        let requests = Arc::clone(&requests);
        async move { client.send(&requests[at]).await.map(drop) }
    })
    .await
}

/// Reads each object and sends it back changed.
async fn updates(server: &Server, client: &Client, kind: &'static Kind) -> Result<Duration, Failure> {
    side_by_side(server, client, OBJECTS, move |client, at| async move {
        let path = format!("{}/{}", kind.path, name(at));
        let read = client.send(&Sent::new(Method::GET, &path)).await?;
        let changed = String::from_utf8_lossy(&read).replacen(r#""app":"load""#, r#""app":"changed""#, 1);
        client.send(&Sent::new(Method::PUT, &path).body(JSON, &changed)).await.map(drop)
    })
    .await
}

/// Does something so many times, 16 at once.
async fn side_by_side<W: Future<Output = Result<(), Failure>> + Send>(
    server: &Server,
    client: &Client,
    count: usize,
    work: impl Fn(Client, usize) -> W + Clone + Send + Sync + 'static,
) -> Result<Duration, Failure> {
    let next = Arc::new(AtomicUsize::new(0));
    let before = server.processor_time()?;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (client, work, next) = (client.clone(), work.clone(), Arc::clone(&next));
        clients.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return Ok::<_, Failure>(());
                }
                work(client.clone(), at).await?;
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done??;
    }
    Ok((server.processor_time()? - before) / u32::try_from(count)?)
}

/// Changes objects while 50 clients watch; returns the processor time of the server for each event that arrived.
async fn events(server: &Server, client: &Client, kind: &Kind) -> Result<Duration, Failure> {
    let page = client.send(&Sent::new(Method::GET, &format!("{}?limit=1", kind.path))).await?;
    let page = String::from_utf8_lossy(&page).into_owned();
    let (_, rest) = page.split_once(r#""resourceVersion":""#).ok_or("the list has a revision")?;
    let (revision, _) = rest.split_once('"').ok_or("the revision ends")?;
    let watch = Sent::new(Method::GET, &format!("{}?watch=1&resourceVersion={revision}", kind.path));
    let mut bodies = Vec::new();
    for _ in 0..WATCHES {
        bodies.push(client.answer(&watch).await?.into_body());
    }
    let before = server.processor_time()?;
    let mut watches = JoinSet::new();
    for mut body in bodies {
        watches.spawn(async move {
            let mut arrived = 0;
            while arrived < EVENTS {
                let piece = body.frame().await.ok_or("the watch ended early")??.into_data().unwrap_or_default();
                arrived += piece.iter().filter(|byte| **byte == b'\n').count();
            }
            Ok::<_, Failure>(())
        });
    }
    for at in 0..EVENTS {
        let body = format!(r#"{{"metadata":{{"labels":{{"at":"{at}"}}}}}}"#);
        let path = format!("{}/{}", kind.path, name(at));
        client.send(&Sent::new(Method::PATCH, &path).body("application/merge-patch+json", &body)).await?;
    }
    while let Some(watch) = watches.join_next().await {
        watch??;
    }
    Ok((server.processor_time()? - before) / u32::try_from(WATCHES * EVENTS)?)
}

/// The commands of schema authors, on the examples of this repository.
fn commands() -> Result<(), Failure> {
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_skiff").into());
    for example in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(EXAMPLES))? {
        let example = example?.path();
        let (definition, valid) = (example.join("crd.yaml"), example.join("valid"));
        let lint: [&Path; 2] = ["lint".as_ref(), &definition];
        let cost: [&Path; 2] = ["cost".as_ref(), &definition];
        let validate: [&Path; 4] = ["validate".as_ref(), "-f".as_ref(), &definition, &valid];
        for arguments in [&lint[..], &cost, &validate] {
            // What a command says of an example is no concern here.
            Command::new(&program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        }
    }
    Ok(())
}

impl Kind {
    fn object(&self, at: usize, text: &str) -> String {
        let text = text.repeat(1_600 / text.len());
        format!(
            r#"{{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}","labels":{{"app":"load"}}}},{}}}"#,
            self.api_version,
            self.name,
            name(at),
            self.parts.replace("TEXT", &text)
        )
    }
}

fn name(at: usize) -> String {
    format!("object-{at}")
}

struct Sent {
    method: Method,
    path: String,
    accept: &'static str,
    content_type: &'static str,
    body: Bytes,
}

impl Sent {
    fn new(method: Method, path: &str) -> Self {
        Sent { method, path: path.to_owned(), accept: JSON, content_type: JSON, body: Bytes::new() }
    }

    fn body(self, content_type: &'static str, body: &str) -> Self {
        Sent { content_type, body: Bytes::copy_from_slice(body.as_bytes()), ..self }
    }
}

/// A stream of one HTTP/2 connection.
#[derive(Clone)]
struct Client(SendRequest<Full<Bytes>>);

impl Client {
    async fn connect(server: &Server) -> Result<Self, Failure> {
        let mut config = ClientConfig::clone(&server.tls);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(&server.address).await?;
        stream.set_nodelay(true)?;
        let stream = TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, stream).await?;
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Client(sender))
    }

    async fn answer(&self, sent: &Sent) -> Result<hyper::Response<hyper::body::Incoming>, Failure> {
        let request = Request::builder()
            .method(sent.method.clone())
            .uri(format!("https://localhost{}", sent.path))
            .header("accept", sent.accept)
            .header("content-type", sent.content_type)
            .body(Full::new(sent.body.clone()))?;
        let answer = self.0.clone().send_request(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let text = answer.into_body().collect().await?.to_bytes();
        Err(format!("{} {}: {status} {}", sent.method, sent.path, String::from_utf8_lossy(&text)).into())
    }

    /// Sends a request and reads the answer.
    async fn send(&self, sent: &Sent) -> Result<Bytes, Failure> {
        Ok(self.answer(sent).await?.into_body().collect().await?.to_bytes())
    }
}
