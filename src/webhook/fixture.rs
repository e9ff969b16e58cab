//! A webhook for tests.

use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Starts a webhook that answers every call with these bytes; its certificate has a common name only. Returns its URL and
/// certificate, in PEM.
pub(super) async fn webhook(answer: Vec<u8>) -> (String, Vec<u8>) {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "127.0.0.1");
    let key = rcgen::KeyPair::generate().expect("a key can be made");
    let certificate = params.self_signed(&key).expect("it can be signed");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key));
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("the certificate fits its key")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut asked = [0; 4096];
            while matches!(stream.read(&mut asked).await, Ok(1..)) {
                _ = stream.write_all(&answer).await;
                _ = stream.flush().await;
            }
        }
    });
    (format!("https://{address}/"), certificate.pem().into_bytes())
}
