//! The stand-in for etcd: it answers health checks, and tells a stand-in for kube-apiserver where
//! the objects are stored.
//!
//! They are in a file of its data folder, which every kube-apiserver that uses it opens: an
//! acknowledged write has been passed to the operating system, nothing waits for a disk, and no
//! object passes through a second process. No key is ever stored by etcd's own protocol.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::uri::InvalidUri;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::crypto::ring;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use super::super::parent::end_with_parent;
use super::super::print::{note, output};
use super::flags::{Flags, Manner, Table};
use crate::private;
use crate::server::{CertificateError, Identity, stop_requested};

/// The path at which a stand-in for kube-apiserver asks for the store.
pub const STORE_PATH: &str = "/skiff/store";
/// The database in the data folder; its path tells a stand-in for kube-apiserver that this is one for etcd.
pub const DATABASE: &str = "skiff.db";
/// The version of etcd that it stands in for.
const VERSION: &str = "3.6.5";
const DEFAULT_CLIENT_URLS: &str = "http://localhost:2379";
/// The pause after an error while accepting a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// etcd's exit code for an invalid argument.
const WRONG_USE: u8 = 2;

/// Runs as etcd does with these arguments.
pub async fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let table = Table::new(Manner::Flag, include_str!("../../../schemas/etcd-flags.txt"));
    let flags = match table.parse(arguments) {
        Ok(flags) => flags,
        Err(fault) => {
            note(format_args!("{fault}\n{}", help(&table)));
            return ExitCode::from(WRONG_USE);
        }
    };
    if flags.truth("help") == Some(true) {
        return output(help(&table), ExitCode::SUCCESS);
    }
    if flags.truth("version") == Some(true) {
        let skiff = env!("CARGO_PKG_VERSION");
        return output(format!("etcd Version: {VERSION}\nGit SHA: skiff-{skiff}\n"), ExitCode::SUCCESS);
    }
    match serve(&flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            note(format_args!("etcd (skiff): {fault}"));
            ExitCode::FAILURE
        }
    }
}

fn help(table: &Table) -> String {
    let mut text = concat!(
        "Usage:\n\n  etcd [flags]\n    Start what stands in for an etcd server: skiff ",
        env!("CARGO_PKG_VERSION"),
        ", for its own kube-apiserver.\n\nFlags:\n"
    )
    .to_owned();
    table.names().for_each(|name| text.push_str(&format!("  --{name}\n")));
    text
}

/// Why the stand-in for etcd can't start.
#[derive(Debug, thiserror::Error)]
enum EtcdError {
    /// Signals or the end of the parent process can't be watched.
    #[error(transparent)]
    Process(#[from] io::Error),
    #[error("the data folder `{}`: {error}", folder.display())]
    Folder { folder: PathBuf, error: io::Error },
    #[error("can't listen on {url}: {error}")]
    Listen { url: String, error: ListenError },
}

/// Why it can't listen on a URL.
#[derive(Debug, thiserror::Error)]
enum ListenError {
    #[error(transparent)]
    Url(InvalidUri),
    #[error("it has no address of this machine")]
    NoAddress,
    #[error("it is neither http nor https")]
    Scheme,
    #[error(transparent)]
    Bind(io::Error),
    #[error("--{0} is missing")]
    NoFlag(&'static str),
    #[error("{path}: {error}")]
    File { path: String, error: io::Error },
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

async fn serve(flags: &Flags) -> Result<(), EtcdError> {
    let signals = stop_requested()?;
    end_with_parent(None)?;
    let state = Arc::new(State::new(flags)?);
    for name in ["listen-client-urls", "listen-client-http-urls", "listen-metrics-urls"] {
        let urls = match (name, flags.list(name)) {
            ("listen-client-urls", urls) if urls.is_empty() => vec![DEFAULT_CLIENT_URLS.to_owned()],
            (_, urls) => urls,
        };
        for url in urls {
            listen(&url, flags, &state).await?;
        }
    }
    // Everything is stored by kube-apiserver: there is nothing to wait for.
    _ = signals.await;
    Ok(())
}

async fn listen(url: &str, flags: &Flags, state: &Arc<State>) -> Result<(), EtcdError> {
    let failed = |error: ListenError| EtcdError::Listen { url: url.to_owned(), error };
    let uri: Uri = url.parse().map_err(|error| failed(ListenError::Url(error)))?;
    let address = address_of(&uri).await.ok_or_else(|| failed(ListenError::NoAddress))?;
    let tls = match uri.scheme_str() {
        Some("https") => Some(acceptor(flags).map_err(failed)?),
        Some("http") => None,
        _ => return Err(failed(ListenError::Scheme)),
    };
    let listener = TcpListener::bind(address).await.map_err(|error| failed(ListenError::Bind(error)))?;
    tokio::spawn(accept(listener, tls, Arc::clone(state)));
    Ok(())
}

/// The address of a URL on this machine.
async fn address_of(uri: &Uri) -> Option<SocketAddr> {
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    lookup_host((host, uri.port_u16()?)).await.ok()?.next()
}

fn acceptor(flags: &Flags) -> Result<TlsAcceptor, ListenError> {
    let read = |name: &'static str| {
        let path = flags.text(name).ok_or(ListenError::NoFlag(name))?;
        fs::read_to_string(path).map_err(|error| ListenError::File { path: path.to_owned(), error })
    };
    let identity = Identity { certificate_pem: read("cert-file")?, key_pem: read("key-file")? };
    let (chain, key) = identity.to_der()?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    Ok(TlsAcceptor::from(Arc::new(config?)))
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    loop {
        let Some(stream) = next(&listener).await else { continue };
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            match tls {
                None => answer(stream, state).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        answer(stream, state).await;
                    }
                }
            }
        });
    }
}

/// The next connection. `None` after a pause if accepting fails, as it does for lack of a file
/// descriptor: there may be one a moment later.
async fn next(listener: &TcpListener) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(_) => {
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = state.response(request.uri().path());
        async move { Ok::<_, Infallible>(response) }
    });
    // A client that disconnects is not an error.
    _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// What the responses need.
struct State {
    store: PathBuf,
}

impl State {
    fn new(flags: &Flags) -> Result<Self, EtcdError> {
        let name = flags.text("name").unwrap_or("default");
        let folder = flags.text("data-dir").map_or_else(|| PathBuf::from(format!("{name}.etcd")), PathBuf::from);
        let failed = |error| EtcdError::Folder { folder: folder.clone(), error };
        make_private(&folder).map_err(failed)?;
        Ok(State { store: folder.canonicalize().map_err(failed)?.join(DATABASE) })
    }

    fn response(&self, path: &str) -> Response<Full<Bytes>> {
        const JSON: &str = "application/json";
        const TEXT: &str = "text/plain; charset=utf-8";
        let (status, content_type, body) = match path {
            "/health" => (StatusCode::OK, JSON, r#"{"health":"true","reason":""}"#.to_owned()),
            "/livez" | "/readyz" => (StatusCode::OK, TEXT, "ok\n".to_owned()),
            "/version" => {
                let version = format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"3.6.0","storage":"3.6.0"}}"#);
                (StatusCode::OK, JSON, version)
            }
            STORE_PATH => (StatusCode::OK, TEXT, self.store.display().to_string()),
            _ => (StatusCode::NOT_FOUND, TEXT, "404 page not found\n".to_owned()),
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        response
    }
}

/// Creates a folder that only its owner may read.
fn make_private(folder: &Path) -> std::io::Result<()> {
    private::folders().recursive(true).create(folder)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, Shutdown};
    use std::os::fd::OwnedFd;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_is_a_pause_where_no_connection_can_be_accepted() {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("it is a socket");
        let same = std::net::TcpStream::from(OwnedFd::from(listener.try_clone().expect("it can be cloned")));
        same.shutdown(Shutdown::Both).expect("it is a socket");
        let listener = TcpListener::from_std(listener).expect("it does not block");
        let began = Instant::now();
        assert!(next(&listener).await.is_none(), "nobody can connect any more");
        assert!(began.elapsed() >= ACCEPT_PAUSE);
    }
}
