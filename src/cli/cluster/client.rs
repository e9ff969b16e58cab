//! Requests to a server, one after the other over one connection.
//!
//! kube-client is not used: even with only kubeconfig and rustls it adds 35 packages that the
//! program does not have, among them k8s-openapi with the types of all kinds. Only one request at a
//! time, with bytes as its body, is needed here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::http::uri::InvalidUri;
use hyper::{Method, Request, Response, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::kubeconfig::Config;
use crate::value::{Value, json};
use crate::webhook::trust::{self, TrustError};

/// The longest response that is read, in bytes: a page of the largest objects.
const ANSWER_BYTES_MAX: usize = 512 << 20;
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// Why a server can't be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the server `{server}`: {source}")]
    Address { server: String, source: InvalidUri },
    #[error("the server `{0}` is not an http or https address")]
    Scheme(String),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("it does not answer")]
    Silent,
    #[error(transparent)]
    Request(#[from] hyper::http::Error),
    #[error(transparent)]
    Connection(#[from] hyper::Error),
    #[error(transparent)]
    Answer(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Name(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// A server, and the credentials to ask it.
pub struct ClusterClient {
    config: Config,
    uri: Uri,
    /// `None` for plain HTTP.
    tls: Option<TlsConnector>,
    connection: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

/// A response whose body is still to be read, with the connection that it arrives on.
pub struct Forwarded {
    pub response: Response<Incoming>,
    pub held: SendRequest<Full<Bytes>>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Unanswered {
    /// The status code of an unsuccessful response.
    pub status: Option<u16>,
    text: String,
}

impl ClusterClient {
    /// Prepares a client; it does not connect yet.
    ///
    /// # Errors
    ///
    /// An address or a certificate is invalid.
    pub fn new(config: Config) -> Result<Self, ClientError> {
        let uri: Uri = config.server.parse().map_err(|source| {
            let server = config.server.clone();
            ClientError::Address { server, source }
        })?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(TlsConnector::from(Arc::new(tls_config(&config)?))),
            Some("http") => None,
            _ => return Err(ClientError::Scheme(config.server)),
        };
        Ok(ClusterClient { config, uri, tls, connection: Mutex::default() })
    }

    pub fn url(&self) -> &str {
        self.config.server.trim_end_matches('/')
    }

    /// Returns the body of the response to a GET of `path`, which may have a query.
    ///
    /// # Errors
    ///
    /// Why there is no response; for a status code other than 200, the code and the server's
    /// message.
    pub async fn get(&self, path: &str) -> Result<Bytes, Unanswered> {
        let about =
            |error: ClientError| Unanswered { status: None, text: format!("`{}` can't be asked: {error}", self.url()) };
        let (status, body) = self.call(Method::GET, path, None).await.map_err(about)?;
        if status == 200 {
            return Ok(body);
        }
        let said = json::decode(&body).ok();
        let said = said.as_ref().map_or("", |said| said.str_at(&["message"]));
        let text = format!("`{}{path}` answered {status}: {said}", self.url());
        Err(Unanswered { status: Some(status), text })
    }

    /// Returns the status code and the body of the response to any request; `content` is a media
    /// type and a body of it.
    ///
    /// # Errors
    ///
    /// Why there is no response.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        content: Option<(&'static str, Bytes)>,
    ) -> Result<(u16, Bytes), ClientError> {
        let answer = timeout(ANSWER_TIME_MAX, self.send(method, path, content)).await;
        answer.unwrap_or_else(|_| Err(ClientError::Silent))
    }

    /// Decodes the body of a response to a GET of `path`.
    ///
    /// # Errors
    ///
    /// The body is not JSON.
    pub fn read(&self, path: &str, body: &[u8]) -> Result<Value, Unanswered> {
        let unreadable = |error: json::JsonError| Unanswered {
            status: None,
            text: format!("the answer of `{}{path}` can't be understood: {error}", self.url()),
        };
        json::decode(body).map_err(unreadable)
    }

    /// Sends a request with these headers on a connection of its own; the body of the response is
    /// not read yet. The credentials of the kubeconfig are added.
    ///
    /// # Errors
    ///
    /// Why there is no response.
    pub async fn forward(
        &self,
        method: Method,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Forwarded, ClientError> {
        let mut held = self.connect().await?;
        let mut request = self.request(method, path, Some(("", body)))?;
        *request.headers_mut() = headers.clone();
        let own = self.config.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        for (name, value) in own.chain([("host", authority)]) {
            let name = HeaderName::try_from(name).map_err(hyper::http::Error::from)?;
            let value = HeaderValue::from_str(value).map_err(hyper::http::Error::from)?;
            request.headers_mut().insert(name, value);
        }
        let response = held.send_request(request).await?;
        Ok(Forwarded { response, held })
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content: Option<(&'static str, Bytes)>,
    ) -> Result<(u16, Bytes), ClientError> {
        let mut held = self.connection.lock().await;
        let mut connection = match held.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        connection.ready().await?;
        let response = connection.send_request(self.request(method, path, content)?).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(ClientError::Answer)?.to_bytes();
        *held = Some(connection);
        Ok((status, body))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        content: Option<(&'static str, Bytes)>,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.uri.path().trim_end_matches('/')))
            .header(header::HOST, authority)
            .header(header::USER_AGENT, concat!("skiff/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "application/json");
        for (name, value) in &self.config.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let (media_type, body) = content.unwrap_or_default();
        if !media_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, media_type);
        }
        Ok(request.body(Full::new(body))?)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let host = self.uri.host().unwrap_or_default();
        let port = self.uri.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let stream = TcpStream::connect(format!("{host}:{port}")).await?;
        let Some(tls) = &self.tls else { return begin(stream).await };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = self.config.server_name.as_deref().unwrap_or(bare).to_owned();
        let name = ServerName::try_from(name)?;
        begin(tls.connect(name, stream).await?).await
    }
}

async fn begin<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, ClientError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (connection, driver) = handshake(TokioIo::new(stream)).await?;
    // The task ends with the connection.
    tokio::spawn(driver);
    Ok(connection)
}

fn tls_config(config: &Config) -> Result<ClientConfig, TrustError> {
    let verifier = if config.is_insecure { trust::anybody() } else { trust::verifier(&config.authority_pem)? };
    trust::identified(verifier, config.identity.as_ref())
}
