//! Where a stand-in for kube-apiserver keeps its objects: the stand-in for etcd tells it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;

use super::etcd::STORE_PATH;
use crate::webhook::trust;

/// How long etcd may take to be there. Source: kube-apiserver's `--storage-initialization-timeout` is a minute.
const THERE_MAX: Duration = Duration::from_secs(20);
const ASKED_EVERY: Duration = Duration::from_millis(20);
const ANSWER_MAX: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// The file of the store that the etcd at one of `urls` has.
///
/// # Errors
///
/// None of them answers in time, or one that does is not ours.
pub async fn find(urls: &[String], authority: Option<&str>) -> Result<PathBuf, String> {
    let began = Instant::now();
    loop {
        let mut fault = "--etcd-servers must be specified".to_owned();
        for url in urls {
            match ask(url, authority).await {
                Ok(found) => return found,
                Err(error) => fault = format!("etcd at {url}: {error}"),
            }
        }
        if began.elapsed() >= THERE_MAX || urls.is_empty() {
            return Err(fault);
        }
        sleep(ASKED_EVERY).await;
    }
}

/// What the etcd at `url` says of its store; an error where it does not answer.
async fn ask(url: &str, authority: Option<&str>) -> Result<Result<PathBuf, String>, String> {
    let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
    let host = uri.host().unwrap_or_default();
    let place = format!("{host}:{}", uri.port_u16().unwrap_or(2379));
    let stream = TcpStream::connect(&place).await.map_err(|error| error.to_string())?;
    let answer = match uri.scheme_str() {
        Some("https") => {
            let roots = authority.map(std::fs::read).transpose().map_err(|error| error.to_string())?;
            let connector = TlsConnector::from(Arc::new(trust::config(&roots.unwrap_or_default())?));
            let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
            get(connector.connect(name, stream).await.map_err(|error| error.to_string())?, &place).await
        }
        _ => get(stream, &place).await,
    };
    let answer = answer.map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    if head.starts_with("HTTP/1.1 200") && body.starts_with('/') {
        Ok(Ok(PathBuf::from(body.trim_end())))
    } else {
        Ok(Err(format!(
            "etcd at {url} is not skiff's own: this kube-apiserver keeps its objects with the etcd of `skiff assets` only"
        )))
    }
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
