//! A client that no longer reads is cut off.
//!
//! What is to be sent waits for the client, in buffers of bounded size; without a limit it could wait indefinitely.
//!
//! A watch holds no queue: it reads on in the log from where it is. One that reads slowly costs a position and some 8
//! KiB of events, as a large object is sent from where it is stored, and delays nobody. What is handed to a
//! connection is bounded by what its client takes (`server::pace`, `server::stall`): 16 KiB at a time, 16 KiB that are
//! gathered for one write (`server::cork`), and 64 KiB that the system has not sent. That makes some 25 KiB a slow watch on
//! plain HTTP/1.1, 40 where its last turn brought many events; a TLS connection of its own costs about 40 KiB more, half
//! of it already when it is idle. A connection on which nothing is read for 30 s is cut
//! (`server::stall`), and so is a stream of HTTP/2 beside others that are read (`server::pace`); a watch that falls
//! behind the log ends, and its client starts over. A stream's task can't see that its client grants nothing, but its
//! body can see that the next part is not asked for.
//!
//! `tokio-io-timeout` would end writes in the same way, but does not tell whether one waits ([`Backlog`]).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// How much the system keeps of what a client has not asked for yet. Beyond it a write waits, whatever the size that the
/// system gives to the socket's buffers, which is megabytes for a client that once read fast.
#[cfg(target_os = "linux")]
const UNSENT_BYTES_MAX: u32 = 64 << 10;

/// Bounds what a socket holds that is not sent. Where the system knows no such bound, its buffers are as large as it has them.
#[cfg(target_os = "linux")]
pub fn bound_unsent(stream: &TcpStream) {
    _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
}

/// Other systems have buffers of a fixed size.
#[cfg(not(target_os = "linux"))]
pub fn bound_unsent(_: &TcpStream) {}

/// Whether what was written to a stream waits for its client. Cheap to clone.
#[derive(Clone, Default)]
pub struct Backlog(Arc<WaitingWriter>);

#[derive(Default)]
struct WaitingWriter {
    is_waiting: AtomicBool,
    /// The writer that has more to write.
    writer: AtomicWaker,
}

impl Backlog {
    /// Ready once nothing waits any more.
    pub fn poll_cleared(&self, context: &Context<'_>) -> Poll<()> {
        if !self.0.is_waiting.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        self.0.writer.register(context.waker());
        if self.0.is_waiting.load(Ordering::Acquire) { Poll::Pending } else { Poll::Ready(()) }
    }

    fn set(&self, is_waiting: bool) {
        if self.0.is_waiting.swap(is_waiting, Ordering::AcqRel) && !is_waiting {
            self.0.writer.wake();
        }
    }
}

/// A stream whose writes fail once they have made no progress for a time.
pub struct CutStalled<S> {
    stream: S,
    after: Duration,
    backlog: Backlog,
    /// Runs while a write waits.
    waiting: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> CutStalled<S> {
    /// Cuts `stream` where a write waits for longer than `after`.
    pub fn new(stream: S, after: Duration) -> Self {
        CutStalled { stream, after, backlog: Backlog::default(), waiting: Box::pin(sleep(after)), is_waiting: false }
    }

    /// Tells whether the stream waits for its client.
    pub fn backlog(&self) -> Backlog {
        self.backlog.clone()
    }

    /// `written` as it is, or the end of a write that has waited for too long.
    fn within_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            self.backlog.set(false);
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.backlog.set(true);
            self.waiting.as_mut().reset(Instant::now() + self.after);
        }
        match self.waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CutStalled<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for CutStalled<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.within_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Whatever a flush says, a write that waits goes on waiting.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => self.within_time(context, Poll::Pending),
            flushed => flushed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within_time(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const AFTER: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_cut_off_and_a_slow_one_is_not() {
        let (ours, mut theirs) = duplex(4);
        let mut ours = CutStalled::new(ours, AFTER);
        let reader = tokio::spawn(async move {
            let mut byte = [0];
            for _ in 0..3 {
                tokio::time::sleep(AFTER * 2 / 3).await;
                theirs.read_exact(&mut byte).await.expect("there is something to read");
            }
            theirs
        });
        ours.write_all(b"seven b").await.expect("it is read, slowly");
        let _unread = reader.await.expect("the reader does not panic");
        let cut = ours.write_all(b"more than fits").await.map_err(|error| error.kind());
        assert_eq!(cut, Err(io::ErrorKind::TimedOut));
    }
}
