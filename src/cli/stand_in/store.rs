//! Finds the file in which a stand-in for kube-apiserver stores its objects: the stand-in for etcd
//! knows it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use rustls::pki_types::ServerName;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;

use super::etcd::{DATABASE, STORE_PATH};
use crate::webhook::{cleaned, trust};

/// How long to wait for etcd. Source: kube-apiserver's `--storage-initialization-timeout` is a
/// minute.
const THERE_MAX: Duration = Duration::from_secs(20);
const ASKED_EVERY: Duration = Duration::from_millis(20);
const ANSWER_MAX: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// The prefix of kube-apiserver's keys, unless `--etcd-prefix` is set.
const PREFIX: &[u8] = b"/registry";
/// How many bytes of a prefix's hash are in the name of its file.
const HASH_BYTES: usize = 16;

/// Why the store can't be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("--etcd-servers must be specified")]
    NoServer,
    #[error("etcd at {url}: {error}")]
    NoAnswer { url: String, error: AskError },
    #[error(
        "etcd at {0} is not skiff's own: this kube-apiserver keeps its objects with the etcd of `skiff assets` only"
    )]
    NotOurs(String),
}

/// Why an etcd does not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Url(#[from] hyper::http::uri::InvalidUri),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Trust(#[from] trust::TrustError),
    #[error(transparent)]
    Name(#[from] rustls::pki_types::InvalidDnsNameError),
}

/// The file of the store of the etcd at one of `urls`.
///
/// # Errors
///
/// None of them answers in time, or one that does is not our own.
pub async fn find(urls: &[String], authority: Option<&str>) -> Result<PathBuf, FindError> {
    let began = Instant::now();
    loop {
        let mut fault = FindError::NoServer;
        for url in urls {
            match ask(url, authority).await {
                Ok(found) => return found.ok_or_else(|| FindError::NotOurs(url.clone())),
                Err(error) => fault = FindError::NoAnswer { url: url.clone(), error },
            }
        }
        if began.elapsed() >= THERE_MAX || urls.is_empty() {
            return Err(fault);
        }
        sleep(ASKED_EVERY).await;
    }
}

/// The file for a prefix of etcd's keys: each prefix has its own, since the keys of another are
/// never visible.
pub fn of_prefix(store: PathBuf, prefix: Option<&str>) -> PathBuf {
    let prefix = cleaned(prefix.map_or(PREFIX, str::as_bytes));
    if prefix == PREFIX {
        return store;
    }
    let hash: String = Sha256::digest(prefix)[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    let stem = store.file_stem().map(Path::new).unwrap_or(Path::new("")).display().to_string();
    store.with_file_name(format!("{stem}-{hash}.db"))
}

/// The store of the etcd at `url`; `None` if it is not our own.
async fn ask(url: &str, authority: Option<&str>) -> Result<Option<PathBuf>, AskError> {
    let uri: Uri = url.parse()?;
    let host = uri.host().unwrap_or_default();
    let place = format!("{host}:{}", uri.port_u16().unwrap_or(2379));
    let stream = TcpStream::connect(&place).await?;
    let answer = match uri.scheme_str() {
        Some("https") => {
            let roots = authority.map(std::fs::read).transpose()?;
            let connector = TlsConnector::from(Arc::new(trust::config(&roots.unwrap_or_default())?));
            let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = ServerName::try_from(name)?;
            get(connector.connect(name, stream).await?, &place).await
        }
        _ => get(stream, &place).await,
    };
    Ok(named_in(&answer?))
}

/// The store that an answer names; `None` if it is not our own etcd's. A path begins as the system has it.
fn named_in(answer: &str) -> Option<PathBuf> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let path = body.trim_end();
    let (_, file) = path.rsplit_once(['/', '\\'])?;
    (head.starts_with("HTTP/1.1 200") && file == DATABASE).then(|| PathBuf::from(path))
}

async fn get(mut stream: impl AsyncRead + AsyncWrite + Unpin, place: &str) -> std::io::Result<String> {
    let exchange = async {
        let request = format!("GET {STORE_PATH} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        (&mut stream).take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    timeout(ANSWER_MAX, exchange).await.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_etcd_is_known_by_what_it_answers() {
        let check = |status: &str, body: &str, is_ours: bool| {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-type: text/plain\r\n\r\n{body}");
            assert_eq!(named_in(&answer), is_ours.then(|| PathBuf::from(body)), "{body}");
        };
        check("200 OK", "/tmp/default.etcd/skiff.db", true);
        check("200 OK", r"\\?\C:\data\default.etcd\skiff.db", true);
        check("200 OK", "/another/file", false);
        check("200 OK", "<html></html>", false);
        check("404 Not Found", "/tmp/skiff.db", false);
    }

    #[test]
    fn every_prefix_has_a_file() {
        let of = |prefix: Option<&str>| of_prefix(PathBuf::from("/d/skiff.db"), prefix);
        let own = PathBuf::from("/d/skiff.db");
        assert_eq!([of(None), of(Some("/registry")), of(Some("registry/"))], [own.clone(), own.clone(), own.clone()]);
        let (one, other) = (of(Some("/a")), of(Some("/b")));
        assert!(one != other && one != own && other != own, "{one:?}, {other:?}");
        assert_eq!(of(Some("x/../a")), one);
        assert_eq!(one.parent(), own.parent());
    }
}
