//! Clients that speak plain HTTP where TLS is spoken.
//!
//! Source: Go's `net/http`, which answers them in these bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// How much of the request is taken before the answer: what is left unread may cost the client the answer.
const READ_BYTES_MAX: usize = 4096;
/// How long it may take until the client has the answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Whether a connection begins as a request of HTTP does, and no handshake: with a capital letter. Nothing is taken of it.
pub async fn is_http(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1) if first[0].is_ascii_uppercase())
}

/// Says what is wrong, and ends the connection.
pub async fn answer(mut stream: TcpStream) {
    let answered = async {
        // However much of it is there.
        stream.read_buf(&mut Vec::with_capacity(READ_BYTES_MAX)).await?;
        stream.write_all(ANSWER).await?;
        stream.shutdown().await
    };
    // A client that does not take the answer does without.
    _ = timeout(ANSWER_MAX, answered).await;
}
