//! The program under measurement, and a client of its own over TLS.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

pub type Failure = Box<dyn Error + Send + Sync>;

/// Names another program to measure, such as an earlier build.
pub const PROGRAM: &str = "SKIFF_BENCH_PROGRAM";

/// The release binary, ended with its value.
pub struct Server {
    pub child: Child,
    pub address: String,
    pub tls: Arc<ClientConfig>,
    /// From the start of the process to the answer of `/readyz`.
    pub ready_after: Duration,
}

impl Server {
    pub fn start(data: &Path, arguments: &[&str]) -> Result<Server, Failure> {
        let begun = Instant::now();
        let mut child = Command::new(std::env::var_os(PROGRAM).unwrap_or_else(|| env!("CARGO_BIN_EXE_skiff").into()))
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut ready = String::new();
        BufReader::new(child.stdout.take().ok_or("stdout is a pipe")?).read_line(&mut ready)?;
        let address = ready.trim().strip_prefix("ready https://").ok_or("the server did not start")?.to_owned();
        let tls = Arc::new(client_config(&fs::read_to_string(data.join("kubeconfig"))?)?);
        let mut server = Server { child, address, tls, ready_after: Duration::ZERO };
        server.connect()?.expect(200, "GET", "/readyz", b"")?;
        server.ready_after = begun.elapsed();
        Ok(server)
    }

    pub fn connect(&self) -> Result<Client, Failure> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        let connection = ClientConnection::new(Arc::clone(&self.tls), ServerName::try_from("localhost")?)?;
        Ok(Client(BufReader::with_capacity(64 << 10, StreamOwned::new(connection, stream)), ""))
    }

    pub fn resident_bytes(&self) -> Result<u64, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        if !asked.is_ok_and(|status| status.success()) {
            _ = self.child.kill();
        }
        _ = self.child.wait();
    }
}

/// TLS with the CA and the client's identity of a kubeconfig.
fn client_config(kubeconfig: &str) -> Result<ClientConfig, Failure> {
    let data = |field: &str| -> Result<Vec<u8>, Failure> {
        let line = kubeconfig.lines().find_map(|line| line.split_once(field)).ok_or("the kubeconfig lacks a field")?;
        Ok(STANDARD.decode(line.1.trim().trim_matches('"'))?)
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&data("certificate-authority-data:")?)?)?;
    let certificate = CertificateDer::from_pem_slice(&data("client-certificate-data:")?)?;
    let key = PrivateKeyDer::from_pem_slice(&data("client-key-data:")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_client_auth_cert(vec![certificate], key)?)
}

/// One connection that is kept, and the headers that its requests have beside those of every client.
pub struct Client(pub BufReader<StreamOwned<ClientConnection, TcpStream>>, pub &'static str);

impl Client {
    pub fn expect(&mut self, status: u16, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
        match self.send(method, path, body)? {
            (got, body) if got == status => Ok(body),
            (got, body) => Err(format!("{method} {path}: {got} {}", String::from_utf8_lossy(&body)).into()),
        }
    }

    pub fn send(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(u16, Vec<u8>), Failure> {
        self.send_as(&self.headers(), method, path, body)
    }

    /// With headers of its own, each with its line break.
    pub fn send_as(&mut self, headers: &str, method: &str, path: &str, body: &[u8]) -> Result<(u16, Vec<u8>), Failure> {
        self.request_as(headers, method, path, body)?;
        self.answer()
    }

    /// The answer to what was asked.
    pub fn answer(&mut self) -> Result<(u16, Vec<u8>), Failure> {
        let (status, length) = self.head()?;
        let mut answer = Vec::new();
        match length {
            Some(length) => {
                answer.resize(length, 0);
                self.0.read_exact(&mut answer)?;
            }
            None => loop {
                let chunk = self.chunk()?;
                if chunk.is_empty() {
                    break;
                }
                answer.extend(chunk);
            },
        }
        Ok((status, answer))
    }

    pub fn headers(&self) -> String {
        format!("Content-Type: application/json\r\n{}", self.1)
    }

    pub fn request_as(&mut self, headers: &str, method: &str, path: &str, body: &[u8]) -> Result<(), Failure> {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n");
        let mut request = head.into_bytes();
        request.extend(body);
        Ok(self.0.get_mut().write_all(&request)?)
    }

    /// The status, and the length of the body unless it comes in chunks.
    pub fn head(&mut self) -> Result<(u16, Option<usize>), Failure> {
        let status = self.line()?.split(' ').nth(1).ok_or("no status")?.parse()?;
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                return Ok((status, length));
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse()?);
            }
        }
    }

    pub fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The next chunk; the last one is empty.
    pub fn chunk(&mut self) -> Result<Vec<u8>, Failure> {
        let size = usize::from_str_radix(&self.line()?, 16)?;
        let mut chunk = vec![0; size + 2];
        self.0.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok(chunk)
    }
}

/// The figure below which so many of a hundred are. Sorts them.
pub fn percentile(durations: &mut [Duration], percent: usize) -> Duration {
    durations.sort_unstable();
    durations.get((durations.len() * percent / 100).min(durations.len() - 1)).copied().unwrap_or_default()
}

/// As text.
pub fn millis(duration: Duration) -> String {
    format!("{:.3} ms", duration.as_secs_f64() * 1_000.0)
}
