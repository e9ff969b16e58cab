//! A server without sockets: the router, over a database in memory, on the thread that asks.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use kubeskiff::admission::Chain;
use kubeskiff::auth::{AlwaysAllow, UserInfo};
use kubeskiff::controllers::{self, NodePlan, Switches};
use kubeskiff::http::{App, router};
use kubeskiff::memory::Memory;
use kubeskiff::registry::{Converter, Definitions, Registry};
use kubeskiff::store::{Config, Storage};
use kubeskiff::value::Value;
use kubeskiff::webhook;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

pub struct Server {
    runtime: Runtime,
    router: Router,
}

/// A request as any client may make it.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'s> {
    pub method: &'s str,
    pub path: &'s str,
    pub accept: &'s str,
    pub content_type: &'s str,
    pub body: &'s [u8],
}

impl Server {
    /// A server that serves what a definition defines.
    pub fn start(definition: Value) -> Server {
        Server::of(serve(definition))
    }

    /// A server whose controllers run, as long as somebody waits for something.
    pub fn with_controllers(switches: Switches, nodes: NodePlan) -> Server {
        Server::of(async {
            let registry = registry().await;
            start_controllers(&registry, switches, nodes);
            router(App::new(registry, Arc::new(AlwaysAllow)))
        })
    }

    fn of(router: impl Future<Output = Router>) -> Server {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there are threads");
        let router = runtime.block_on(router);
        Server { runtime, router }
    }

    /// Lets controllers work.
    pub fn wait(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }

    /// The code and the body of an answer; `None` for what is not a request, and where the answer has no end within `wait`.
    pub fn send(&self, sent: Sent<'_>, wait: Duration) -> Option<(u16, Vec<u8>)> {
        let request = Request::builder().method(sent.method).uri(sent.path).header("accept", sent.accept);
        let request = request.header("content-type", sent.content_type).body(Body::from(sent.body.to_vec()));
        let mut request = request.ok()?;
        request.extensions_mut().insert(UserInfo::unsecured());
        self.runtime.block_on(async {
            let Ok(answer) = self.router.clone().oneshot(request).await;
            let code = answer.status().as_u16();
            let body = tokio::time::timeout(wait, answer.into_body().collect()).await.ok()?;
            Some((code, body.ok()?.to_bytes().to_vec()))
        })
    }
}

async fn serve(definition: Value) -> Router {
    let registry = registry().await;
    let controllers = start_controllers(&registry, Switches::SERVER, NodePlan::default());
    let name = definition.str_at(&["metadata", "name"]).to_owned();
    registry.register(definition).await.expect("the definition is valid");
    assert_eq!(registry.wait_until_served(&name).await.expect("the store works"), None);
    // From here on there are requests and nothing else.
    controllers.abort();
    router(App::new(registry, Arc::new(AlwaysAllow)))
}

fn start_controllers(registry: &Arc<Registry>, switches: Switches, nodes: NodePlan) -> JoinHandle<()> {
    let begin = Arc::new(tokio::sync::Notify::new());
    let authority = controllers::Authority::default();
    let controllers = controllers::start(Arc::clone(registry), switches, nodes, authority, Arc::clone(&begin));
    begin.notify_one();
    controllers
}

/// What is served beside definitions, with the first namespaces.
async fn registry() -> Arc<Registry> {
    let storage = Storage::open(&Config::memory()).await.expect("a database in memory opens");
    let memory = Arc::new(Memory::of_system());
    let client = webhook::WebhookClient::new(Vec::new(), Vec::new(), Arc::clone(&memory));
    let registry = Arc::new(Registry {
        storage,
        definitions: Definitions::new(&Default::default()),
        admission: Arc::new(Chain::default()),
        convert: Arc::new(Converter(Arc::new(client))),
        authorizer: Arc::new(AlwaysAllow),
        policy: None,
        clock: Default::default(),
        guards_namespaces: false,
        memory,
        background: Default::default(),
        network: Default::default(),
        lifetimes: Default::default(),
        deferred: Default::default(),
    });
    registry.make_initial_namespaces().await.expect("nothing stands in the way");
    registry
}
