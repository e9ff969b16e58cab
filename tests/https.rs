//! HTTPS on loopback, for tests that are a webhook: an identity of its own, and an answer to each request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeskiff::server::Authority;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

/// How long a caller may take to send its request.
const READ_MAX: Duration = Duration::from_secs(60);

/// What a server is known by.
#[derive(Clone)]
pub struct Identity {
    /// The CA's certificate, base64 of PEM, as `caBundle` takes it.
    pub authority: String,
    /// The same, the server's certificate and its key, in PEM.
    pem: [String; 3],
    tls: Arc<ServerConfig>,
}

impl Identity {
    /// A certificate of a CA of its own for `name`, a host name or an IP address.
    pub fn new(name: &str) -> Identity {
        let authority = Authority::generate().expect("a CA can be made");
        let identity = authority.issue_server(&[name.to_owned()]).expect("the name is well formed");
        let (chain, key) = identity.to_der().expect("the certificate is well formed");
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .expect("the certificate fits its key");
        let pem = [authority.certificate_pem().to_owned(), identity.certificate_pem, identity.key_pem];
        Identity { authority: STANDARD.encode(authority.certificate_pem()), pem, tls: Arc::new(tls) }
    }

    /// Writes `ca.pem`, `tls.pem` and `key.pem` for a server that is another program.
    pub fn write_to(&self, folder: &Path) {
        for (file, pem) in ["ca.pem", "tls.pem", "key.pem"].iter().zip(&self.pem) {
            std::fs::write(folder.join(file), pem).expect("the folder can be written to");
        }
    }
}

/// What a request is answered with.
pub struct Reply {
    pub status: u64,
    pub content_type: String,
    pub body: String,
}

/// A server that listens until it is dropped.
pub struct Https {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Https {
    /// Listens on `address`. `answer` is called once for each request, in a thread of its own; `None` closes the connection.
    pub fn listen(
        address: SocketAddr,
        identity: &Identity,
        answer: impl Fn(Value) -> Option<Reply> + Send + Sync + 'static,
    ) -> Https {
        Https::serve(address, identity, Kept::Once, answer)
    }

    /// Like [`Https::listen`]; `kept` tells how long a connection is kept.
    pub fn serve(
        address: SocketAddr,
        identity: &Identity,
        kept: Kept,
        answer: impl Fn(Value) -> Option<Reply> + Send + Sync + 'static,
    ) -> Https {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, tls, answer) = (Arc::clone(&stop), Arc::clone(&identity.tls), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (tls, answer) = (Arc::clone(&tls), Arc::clone(&answer));
                // A caller that does not trust the certificate goes away; that is its answer.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, tls, kept, &*answer)));
            }
        });
        Https { address, stop, thread: Some(thread) }
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The listener waits for a connection: this is the last one.
        _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the listener does not panic");
        }
    }
}

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// How long a connection is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// For one request.
    Once,
    /// Until a request is not answered.
    Alive,
}

/// Answers the requests of a connection.
fn serve(
    stream: TcpStream,
    tls: Arc<ServerConfig>,
    kept: Kept,
    answer: &dyn Fn(Value) -> Option<Reply>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_MAX))?;
    let connection = ServerConnection::new(tls).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let Some(Reply { status, content_type, body }) = answer(read_request(&mut reader)?) else { return Ok(()) };
        let (length, end) = (body.len(), if kept == Kept::Once { "Connection: close\r\n" } else { "" });
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{end}\r\n"
        );
        let stream: &mut Stream = reader.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        if kept == Kept::Once {
            stream.conn.send_close_notify();
            return stream.flush();
        }
        stream.flush()?;
    }
}

/// A request: `method`, `path`, `contentType`, and its body as text in `review`.
fn read_request(reader: &mut BufReader<Stream>) -> std::io::Result<Value> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = json!({"method": method, "path": path, "contentType": null});
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => request["authorization"] = json!(value),
            "content-type" => request["contentType"] = json!(value),
            "content-length" => length = value.parse().unwrap_or_default(),
            "transfer-encoding" => chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim_end(), 16).map_err(std::io::Error::other)?;
        let from = body.len();
        body.resize(from + size, 0);
        reader.read_exact(&mut body[from..])?;
        reader.read_line(&mut String::new())?;
        chunked = size > 0;
    }
    request["review"] = json!(String::from_utf8_lossy(&body));
    Ok(request)
}
