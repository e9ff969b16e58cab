//! A running server, from its start until it is told to stop: `skiff serve`, or a stand-in for
//! kube-apiserver.

use std::io::IsTerminal as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use axum::Router;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::credentials::LoadedCredentials;
use super::log::Log;
use super::planes::{Origin, Planes};
use super::playground::{CONNECTIONS_MAX, PlaygroundPage};
use super::print::{output, tell};
use super::server::{Server, reachable};
use super::service_network;
use super::serving_failure::ServingFailure;
use super::ui::{Opened, PageRequest};
use crate::audit;
use crate::auth::{TokenIssuer, Tokens};
use crate::controllers;
use crate::http::{self, App, Issuing, Shared};
use crate::registry::{Advertised, Definitions, Registry, Resource};
use crate::server::{Connections, Gate, OpenConnections, connections_max, stop_requested, threads};
use crate::store::Storage;

/// How long the shutdown may take if a server is to end at once: only responses that are already on
/// their way are sent.
const DRAIN_AT_ONCE: Duration = Duration::from_millis(5);

impl Server {
    /// Serves until it is told to stop. Exit codes: 0 for a clean end, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        let made = self.made.clone();
        match self.logged().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(ServingFailure(message)) => {
                tell(message);
                if let Some(folder) = made {
                    // Nothing in it is worth a second message.
                    _ = fs::remove_dir_all(folder);
                }
                ExitCode::FAILURE
            }
        }
    }

    async fn logged(self) -> Result<(), ServingFailure> {
        let log = Log::begin()?;
        let served = self.serve().await;
        log.flush();
        served
    }

    async fn serve(mut self) -> Result<(), ServingFailure> {
        check_clock()?;
        let signals = stop_requested()?;
        let listener = self.listener().await?;
        let address = listener.local_addr()?;
        let storage = Storage::open(&self.store).await?;
        let credentials = self.credentials.load(&storage, address).await?;
        self.users.tell_if_open();
        let (authorizer, policy) =
            self.users.authorizer((&storage, &self.store.memory), self.runtime_config.minor(), None);
        let url = format!("https://{}", reachable(address));
        let issuer = Arc::new(self.users.token_issuer(&storage).await?);
        let (definitions, clock) = (Definitions::new(&self.runtime_config), self.store.clock.clone());
        let registry = Arc::new(self.registry(storage.clone(), definitions, policy, authorizer.clone(), clock));
        let tokens = Arc::new(self.users.tokens(&registry, &issuer)?);
        let begin = Arc::new(Notify::new());
        let controllers = self.controllers(&registry, &credentials, &issuer, &begin);
        let mut seed = std::mem::take(&mut self.seed);
        if !seed.is_empty() {
            // The controllers decide about the definitions that are registered.
            begin.notify_one();
        }
        let advertised = service_network::advertised(address);
        self.populate(&registry).await?;
        let kept = service_network::keep(&registry, advertised).await;
        if !seed.is_empty() {
            seed.begin(&registry).await?;
        }

        let logs: Arc<[audit::Log]> = std::mem::take(&mut self.logs).into();
        let server = Arc::new(self);
        let (shared, places) = server.shared();
        let main = Origin { registry: Arc::clone(&registry), issuer, authorizer };
        let (app, planes) = server.app(main, (address.ip(), &url), &tokens, (&shared, &places), logs);
        let app = app.at(service_network::told(address));
        let gate = server.gate(&credentials, tokens).with_early_refusals(app.early_refusals());
        let router = http::router(app);
        let opened = open_page(server.ui, &router).await?;
        let connections = Connections::among(router, gate.clone(), places);
        credentials.write_kubeconfig(&url)?;
        connections.listen(listener, credentials.tls.clone());
        if let Some(address) = server.insecure_listen {
            listen_insecure(&connections, address).await?;
        }
        if let Some((path, _)) = &credentials.administrator {
            announce(&registry, &url, path).await;
        }
        let pages = opened.map(|opened| serve_page(opened, gate));
        begin.notify_one();
        seed.follow(Arc::clone(&registry))?;
        let deferred = make_deferred(Arc::clone(&registry));

        let signal = signals.await?;
        tracing::info!(signal, "stopping");
        let tasks = [kept, controllers, deferred];
        Served { connections, pages, shared, tasks, planes, registry, storage, advertised }
            .end(server.ends_at_once)
            .await;
        Ok(())
    }

    fn shared(&self) -> (Shared, OpenConnections) {
        // Without this value there is no runtime, so this code is not reached.
        let beside = threads().map_or(1, |threads| threads.blocking);
        (
            Shared::among(beside, Arc::clone(&self.store.memory)),
            OpenConnections::new(connections_max(), Arc::clone(&self.store.memory)),
        )
    }

    /// The application that answers requests, and the additional control planes, which share its
    /// limits.
    fn app(
        self: &Arc<Self>,
        main: Origin,
        (ip, url): (IpAddr, &str),
        tokens: &Arc<Tokens>,
        (shared, places): (&Shared, &OpenConnections),
        logs: Arc<[audit::Log]>,
    ) -> (App, Arc<Planes>) {
        let (registry, authorizer) = (Arc::clone(&main.registry), Arc::clone(&main.authorizer));
        let issuing = Issuing { issuer: Arc::clone(&main.issuer), key_set_url: format!("{url}/openid/v1/jwks") };
        let planes = Planes::new(Arc::clone(self), ip, main, shared.clone(), places.clone(), Arc::clone(&logs));
        let planes = Arc::new(planes);
        let app = App::with(registry, authorizer, Arc::clone(tokens), self.limits, logs);
        let app = app.with_issuing(issuing).sharing(shared.clone()).with_planes(Arc::clone(&planes) as _);
        (app, planes)
    }

    async fn listener(&self) -> Result<TcpListener, ServingFailure> {
        let failed = |error| ServingFailure(format!("can't listen on {}: {error}", self.listen));
        TcpListener::bind(self.listen).await.map_err(failed)
    }

    fn gate(&self, credentials: &LoadedCredentials, tokens: Arc<Tokens>) -> Gate {
        Gate::new(tokens)
            .with_anonymous(self.users.lets_anonymous_in())
            .with_request_header(credentials.request_header.clone())
            .with_allowed_origins(Arc::clone(&credentials.allowed_origins))
    }

    fn controllers(
        &self,
        registry: &Arc<Registry>,
        credentials: &LoadedCredentials,
        issuer: &Arc<TokenIssuer>,
        begin: &Arc<Notify>,
    ) -> JoinHandle<()> {
        let authority = controllers::Authority {
            certificate_pem: credentials.authority_pem.clone(),
            signer: credentials.signer.clone(),
            issuer: Some(Arc::clone(issuer)),
        };
        controllers::start(Arc::clone(registry), self.switches, self.nodes.clone(), authority, Arc::clone(begin))
    }
}

/// Prints that the server is ready: one line for programs, more for people.
async fn announce(registry: &Registry, url: &str, kubeconfig: &Path) {
    if !io::stdout().is_terminal() {
        _ = output(format!("ready {url}\n"), ExitCode::SUCCESS);
        return;
    }
    let mut text = format!("skiff {} serves the Kubernetes API on {url}\n", env!("CARGO_PKG_VERSION"));
    let resources = registry.resources().await.unwrap_or_default();
    let (custom, built_in): (Vec<_>, Vec<_>) = resources.iter().partition(|resource| resource.definition.is_some());
    let names = |resource: &Arc<Resource>| (resource.first().qualified_plural(), resource.first().api_version());
    let rows: Vec<_> = custom.into_iter().map(names).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, api_version) in rows {
        text.push_str(&format!("  {name:<width$}  {api_version}\n"));
    }
    text.push_str(&format!("  and {} built-in resources\n", built_in.len()));
    // The command works in every folder.
    let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    text.push_str(&format!("\n  export KUBECONFIG={}\n\n", kubeconfig.display()));
    _ = output(text, ExitCode::SUCCESS);
}

/// The parts that end with a server.
struct Served {
    connections: Connections<Router>,
    pages: Option<Connections<PlaygroundPage>>,
    shared: Shared,
    tasks: [JoinHandle<()>; 3],
    planes: Arc<Planes>,
    registry: Arc<Registry>,
    storage: Storage,
    advertised: Advertised,
}

impl Served {
    /// Ends the server: responses on their way are sent, and nothing more if `at_once`.
    async fn end(self, at_once: bool) {
        self.shared.processor().stop();
        let drain = at_once.then_some(DRAIN_AT_ONCE);
        let of_pages = async {
            if let Some(pages) = self.pages {
                pages.shut_down(drain).await;
            }
        };
        tokio::join!(self.connections.shut_down(drain), of_pages);
        // A server that is stopped at once may not have created the deferred objects yet: the next
        // one does.
        self.tasks.iter().for_each(JoinHandle::abort);
        if at_once {
            return;
        }
        self.planes.end().await;
        if let Err(status) = self.registry.leave_kubernetes_service(self.advertised).await {
            tracing::warn!(status.message, "this server stays among the endpoints of the service kubernetes");
        }
        self.storage.close().await;
    }
}

fn check_clock() -> Result<(), ServingFailure> {
    if Timestamp::now() < Timestamp::UNIX_EPOCH {
        return Err(ServingFailure("the clock of this machine is before 1970".to_owned()));
    }
    Ok(())
}

async fn listen_insecure(connections: &Connections<Router>, address: SocketAddr) -> Result<(), ServingFailure> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tell(format_args!("plain HTTP on http://{address} gives admin rights to every local process"));
    connections.listen_insecure(listener);
    Ok(())
}

async fn open_page(wanted: Option<PageRequest>, api: &Router) -> Result<Option<Opened>, ServingFailure> {
    match wanted {
        Some(wanted) => Ok(Some(Opened::new(wanted, api.clone()).await?)),
        None => Ok(None),
    }
}

/// Creates the objects that are not needed at startup: requests for them wait.
fn make_deferred(registry: Arc<Registry>) -> JoinHandle<()> {
    tokio::spawn(async move { registry.make_deferred_objects().await })
}

/// Serves a page, and prints its address.
fn serve_page(opened: Opened, gate: Gate) -> Connections<PlaygroundPage> {
    opened.announce();
    let pages = Connections::new(opened.page, gate, CONNECTIONS_MAX);
    pages.listen_insecure(opened.listener);
    pages
}
