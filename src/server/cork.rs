//! What a connection writes in one turn leaves together.
//!
//! HTTP/2 writes a frame at a time: each would be a TLS record and a system call of its own, and fifty events of fifty watches
//! fifty of them. So writes are gathered while the connection has its turn (a poll of its future), and go to the stream when
//! the turn is over. Nothing waits longer than that, and a stream that takes no more holds one turn's worth.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is gathered before it goes to the stream within a turn.
const GATHERED_BYTES_MAX: usize = 32 << 10;
/// A write of this size gains nothing by being copied beside others.
const DIRECT_BYTES_MIN: usize = 8 << 10;

thread_local! {
    /// A buffer for whichever connection has its turn on this thread, so that idle ones hold none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// `stream` as its connection is to use it, and what ends the turns of that.
pub fn cork<S>(stream: S) -> (Corked<S>, Cork<S>) {
    let gathered =
        Gathered { stream, bytes: Vec::new(), written: 0, is_open: false, is_blocked: false, is_flushed: true };
    let shared = Arc::new(Mutex::new(gathered));
    (Corked(Arc::clone(&shared)), Cork(shared))
}

/// The stream as the connection uses it.
pub struct Corked<S>(Arc<Mutex<Gathered<S>>>);

/// Writes out what was gathered in a turn.
pub struct Cork<S>(Arc<Mutex<Gathered<S>>>);

struct Gathered<S> {
    stream: S,
    bytes: Vec<u8>,
    /// How much of `bytes` the stream has taken.
    written: usize,
    /// The connection is over, and whoever has the stream now writes to it as to any other.
    is_open: bool,
    /// The stream takes no more for now.
    is_blocked: bool,
    /// Nothing was written to the stream since it was last flushed.
    is_flushed: bool,
}

fn lock<S>(shared: &Mutex<Gathered<S>>) -> MutexGuard<'_, Gathered<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncWrite + Unpin> Cork<S> {
    /// Runs `connection` to its end, whose stream this is; after each of its turns what it wrote is sent.
    ///
    /// Errors: those of the connection and, as they are, those of the stream. Cancel-safe.
    pub fn turns<'c, F>(&'c self, connection: Pin<&'c mut F>) -> Turns<'c, F, S>
    where
        F: Future,
    {
        Turns { connection, cork: self, ended: None }
    }
}

/// See [`Cork::turns`].
pub struct Turns<'c, F: Future, S> {
    connection: Pin<&'c mut F>,
    cork: &'c Cork<S>,
    ended: Option<F::Output>,
}

impl<F, T, E, S> Future for Turns<'_, F, S>
where
    F: Future<Output = Result<T, E>>,
    T: Unpin,
    E: From<io::Error> + Unpin,
    S: AsyncWrite + Unpin,
{
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let turns = &mut *self;
        if turns.ended.is_none()
            && let Poll::Ready(ended) = turns.connection.as_mut().poll(context)
        {
            turns.ended = Some(ended);
        }
        let mut gathered = lock(&turns.cork.0);
        gathered.is_open = turns.ended.is_some();
        let sent = gathered.poll_send(context);
        drop(gathered);
        match (sent, turns.ended.take()) {
            (Poll::Ready(Ok(())), Some(ended)) => Poll::Ready(ended),
            (Poll::Ready(Err(error)), ended) => Poll::Ready(ended.unwrap_or_else(|| Err(error.into()))),
            (Poll::Ready(Ok(())), None) => Poll::Pending,
            (Poll::Pending, ended) => {
                turns.ended = ended;
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    /// Ready when everything that was gathered is the stream's.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            self.is_blocked = true;
            self.is_flushed = false;
            match ready!(Pin::new(&mut self.stream).poll_write(context, &self.bytes[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.written += taken,
            }
        }
        self.is_blocked = false;
        self.give_back();
        Poll::Ready(Ok(()))
    }

    /// Ready when everything is sent.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        if !self.is_flushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Leaves the empty buffer to the connection that has the next turn on this thread.
    fn give_back(&mut self) {
        if self.bytes.capacity() > 0 {
            let mut spare = std::mem::take(&mut self.bytes);
            spare.clear();
            SPARE.set(spare);
        }
        self.written = 0;
    }

    /// Ready when `size_bytes` more may be written: true where they are to be gathered, false where they go to the stream.
    fn poll_room(&mut self, context: &mut Context<'_>, size_bytes: usize) -> Poll<io::Result<bool>> {
        let is_full = self.bytes.len() + size_bytes > GATHERED_BYTES_MAX;
        if self.is_blocked || self.is_open || is_full {
            ready!(self.poll_drain(context))?;
        }
        Poll::Ready(Ok(!self.is_open && (size_bytes < DIRECT_BYTES_MIN || !self.bytes.is_empty())))
    }

    fn gather(&mut self, part: &[u8]) {
        if self.bytes.capacity() == 0 {
            self.bytes = SPARE.take();
            self.bytes.reserve(GATHERED_BYTES_MAX);
        }
        self.bytes.extend_from_slice(part);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Corked<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut gathered = lock(&self.0);
        if gathered.is_open
            && let Poll::Ready(Err(error)) = gathered.poll_send(context)
        {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut gathered.stream).poll_read(context, out)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut gathered = lock(&self.0);
        if ready!(gathered.poll_room(context, bytes.len()))? {
            gathered.gather(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        gathered.is_flushed = false;
        Pin::new(&mut gathered.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let size_bytes = parts.iter().map(|part| part.len()).sum();
        let mut gathered = lock(&self.0);
        if ready!(gathered.poll_room(context, size_bytes))? {
            parts.iter().for_each(|part| gathered.gather(part));
            return Poll::Ready(Ok(size_bytes));
        }
        gathered.is_flushed = false;
        Pin::new(&mut gathered.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        lock(&self.0).stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = lock(&self.0);
        if gathered.is_open { gathered.poll_send(context) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = lock(&self.0);
        ready!(gathered.poll_send(context))?;
        Pin::new(&mut gathered.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// A stream that keeps what it is given, write by write, as long as it has room.
    #[derive(Default)]
    struct Kept {
        writes: Vec<Vec<u8>>,
        flushes: usize,
        /// How much each of the next writes may take; beyond them any amount.
        room: VecDeque<usize>,
    }

    impl AsyncWrite for Kept {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let taken = self.room.pop_front().unwrap_or(bytes.len()).min(bytes.len());
            if taken == 0 && !bytes.is_empty() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.writes.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// What a connection leaves in the stream that writes these parts, flushes each, and has another turn after each row.
    async fn written(stream: Kept, turns: &[&[&[u8]]]) -> (Vec<usize>, Vec<u8>, usize) {
        let (mut corked, cork) = cork(stream);
        let shared = Arc::clone(&corked.0);
        let connection = async move {
            for turn in turns {
                for part in *turn {
                    corked.write_all(part).await?;
                    corked.flush().await?;
                }
                tokio::task::yield_now().await;
            }
            Ok::<_, io::Error>(())
        };
        cork.turns(std::pin::pin!(connection)).await.expect("the stream takes it");
        let gathered = lock(&shared);
        let lengths = gathered.stream.writes.iter().map(Vec::len).collect();
        (lengths, gathered.stream.writes.concat(), gathered.stream.flushes)
    }

    #[tokio::test]
    async fn the_writes_of_a_turn_are_one() {
        let (lengths, bytes, flushes) = written(Kept::default(), &[&[b"ab", b"c", b"d"], &[], &[b"ef"]]).await;
        assert_eq!((lengths, bytes, flushes), (vec![4, 2], b"abcdef".to_vec(), 2));
    }

    #[tokio::test]
    async fn large_writes_are_not_copied_and_none_is_overtaken() {
        let (small, large) = ([1; 10], [2; GATHERED_BYTES_MAX]);
        let (lengths, bytes, _) = written(Kept::default(), &[&[&large, &small, &large, &small]]).await;
        assert_eq!(lengths, [large.len(), small.len(), large.len(), small.len()]);
        assert_eq!(bytes, [&large[..], &small, &large, &small].concat());
    }

    #[tokio::test]
    async fn what_the_stream_does_not_take_at_once_is_sent_in_order() {
        let kept = Kept { room: [0, 3, 0, 1].into(), ..Kept::default() };
        let (lengths, bytes, _) = written(kept, &[&[b"abc", b"def"], &[b"gh"]]).await;
        assert_eq!(lengths, [3, 1, 2, 2]);
        assert_eq!(bytes, b"abcdefgh");
    }

    #[tokio::test]
    async fn a_stream_that_takes_nothing_holds_one_turn() {
        let (ours, mut theirs) = duplex(1);
        let (mut corked, cork) = cork(ours);
        let shared = Arc::clone(&corked.0);
        let connection = async move {
            loop {
                corked.write_all(&[0; 1000]).await?;
                tokio::task::yield_now().await;
            }
        };
        let task = tokio::spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended: io::Result<()> = cork.turns(connection.as_mut()).await;
            ended
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(lock(&shared).bytes.len() <= 2_000);
        theirs.read_exact(&mut [0; 3_000]).await.expect("it goes on");
        drop(theirs);
        let ended = task.await.expect("it does not panic").map_err(|error| error.kind());
        assert_eq!(ended, Err(io::ErrorKind::BrokenPipe));
    }

    #[tokio::test]
    async fn whoever_takes_the_stream_over_writes_as_to_any_other() {
        let (mut corked, cork) = cork(Kept::default());
        let connection = async { Ok::<_, io::Error>(()) };
        cork.turns(std::pin::pin!(connection)).await.expect("there is nothing to send");
        for part in [b"ab", b"cd"] {
            corked.write_all(part).await.expect("there is room");
            corked.flush().await.expect("it is there");
        }
        let gathered = lock(&corked.0);
        assert_eq!((gathered.stream.writes.len(), gathered.stream.flushes), (2, 2));
    }
}
