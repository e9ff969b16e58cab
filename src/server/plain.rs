//! Answers clients that speak plain HTTP on a TLS port.
//!
//! Source: Go's `net/http`, which answers them in these bytes.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER: &[u8] = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// How much of the request is read before the answer: if anything stays unread, the client may lose the answer.
const READ_BYTES_MAX: usize = 4096;
/// How long the client may take to receive the answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Whether a connection begins as a request of HTTP does, and not a handshake: with a capital letter. Nothing is
/// consumed.
pub async fn is_http(stream: &TcpStream) -> bool {
    let mut first = [0];
    matches!(stream.peek(&mut first).await, Ok(1) if first[0].is_ascii_uppercase())
}

/// Sends the error, and ends the connection.
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
