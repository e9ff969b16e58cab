//! Sends what a connection writes in one turn together.
//!
//! HTTP/2 writes one frame at a time: each would be a separate TLS record and system call, and fifty events of fifty
//! watches fifty of them. So small writes are gathered while the connection has its turn (a poll of its future), a TLS
//! record's worth at most, and go to the stream when the turn is over. Nothing waits longer than that. A stream that
//! takes no more holds what was gathered, and nothing is added to it.
//!
//! An upgraded connection ends, and leaves its stream to another task. What it has gathered is sent before anything of that.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is gathered before it is written to the stream within a turn: what fits into a TLS record.
const GATHERED_BYTES_MAX: usize = 16 << 10;
/// After how much a connection ends its turn. What it has read begins before it reads on: a head of HTTP/2 takes a hundred
/// times as much memory as it has bytes, and the requests of a connection are a thousand.
const TURN_READ_BYTES: usize = 16 << 10;
/// A write of this size gains nothing by being copied beside others.
const DIRECT_BYTES_MIN: usize = 8 << 10;

thread_local! {
    /// A buffer for whichever connection has its turn on this thread, so that idle ones hold none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The wrapped `stream` for the connection, and the handle that ends the connection's turns.
pub fn cork<S>(stream: S) -> (Corked<S>, Cork<S>) {
    let gathered = Gathered {
        stream,
        bytes: Vec::new(),
        written: 0,
        is_over: false,
        is_blocked: false,
        is_flushed: true,
        turn_read_bytes: 0,
        successor: None,
    };
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
    is_over: bool,
    /// The stream currently accepts no more.
    is_blocked: bool,
    /// Whether nothing was written to the stream since it was last flushed.
    is_flushed: bool,
    /// How much was read in this turn.
    turn_read_bytes: usize,
    /// The holder of the stream, which waits until the rest of the connection's bytes is sent.
    successor: Option<Waker>,
}

fn lock<S>(shared: &Mutex<Gathered<S>>) -> MutexGuard<'_, Gathered<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: AsyncWrite + Unpin> Cork<S> {
    /// Runs `connection`, which uses this stream, to its end; after each of its turns, what it wrote is sent.
    ///
    /// Errors: those of the connection, or those of the stream. Cancel-safe where it is polled on by reference.
    pub fn turns<F: Future>(self, connection: Pin<&mut F>) -> Turns<'_, F, S> {
        Turns { connection, cork: self, ended: None }
    }
}

/// See [`Cork::turns`].
pub struct Turns<'c, F: Future, S> {
    connection: Pin<&'c mut F>,
    cork: Cork<S>,
    /// The result of the connection, while its last output is waiting.
    ended: Option<F::Output>,
}

impl<F: Future, S> Turns<'_, F, S> {
    /// The connection, unless it has ended.
    pub fn running(&mut self) -> Option<Pin<&mut F>> {
        self.ended.is_none().then_some(self.connection.as_mut())
    }
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
        lock(&turns.cork.0).turn_read_bytes = 0;
        if turns.ended.is_none()
            && let Poll::Ready(ended) = turns.connection.as_mut().poll(context)
        {
            turns.ended = Some(ended);
        }
        let mut gathered = lock(&turns.cork.0);
        gathered.is_over = turns.ended.is_some();
        let sent = ready!(gathered.poll_send(context));
        if let (Some(successor), true) = (gathered.successor.take(), gathered.is_over) {
            successor.wake();
        }
        match (sent, turns.ended.take()) {
            (Ok(()), None) => Poll::Pending,
            (Ok(()), Some(ended)) => Poll::Ready(ended),
            (Err(error), None | Some(Ok(_))) => Poll::Ready(Err(error.into())),
            (Err(_), Some(Err(error))) => Poll::Ready(Err(error)),
        }
    }
}

impl<S: AsyncWrite + Unpin> Gathered<S> {
    /// Ready when everything that was gathered has been written to the stream.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.bytes.len() {
            self.is_blocked = true;
            match ready!(Pin::new(&mut self.stream).poll_write(context, &self.bytes[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.written += taken,
            }
            self.is_flushed = false;
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

    /// Ready when `size_bytes` more may be written: true if they must be gathered, false if they go to the stream.
    fn poll_room(&mut self, context: &mut Context<'_>, size_bytes: usize) -> Poll<io::Result<bool>> {
        if self.is_over {
            ready!(self.poll_succeed(context));
            return Poll::Ready(Ok(false));
        }
        if self.is_blocked || self.bytes.len() + size_bytes > GATHERED_BYTES_MAX {
            ready!(self.poll_drain(context))?;
        }
        Poll::Ready(Ok(size_bytes < DIRECT_BYTES_MIN || !self.bytes.is_empty()))
    }

    /// Ready when nothing is left of the connection that is over. It is the connection's task that sends it.
    fn poll_succeed(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.bytes.is_empty() {
            return Poll::Ready(());
        }
        self.successor = Some(context.waker().clone());
        Poll::Pending
    }

    /// Records that the stream has accepted something.
    fn noted<T>(&mut self, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_flushed &= written.is_pending();
        written
    }

    fn gather(&mut self, part: &[u8]) {
        if self.bytes.capacity() == 0 {
            self.bytes = SPARE.take();
            self.bytes.reserve(GATHERED_BYTES_MAX);
        }
        self.bytes.extend_from_slice(part);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Corked<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut gathered = lock(&self.0);
        if gathered.is_over {
            return Pin::new(&mut gathered.stream).poll_read(context, out);
        }
        if gathered.turn_read_bytes >= TURN_READ_BYTES {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = out.filled().len();
        ready!(Pin::new(&mut gathered.stream).poll_read(context, out))?;
        gathered.turn_read_bytes += out.filled().len() - before;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut gathered = lock(&self.0);
        if ready!(gathered.poll_room(context, bytes.len()))? {
            gathered.gather(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut gathered.stream).poll_write(context, bytes);
        gathered.noted(written)
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
        let written = Pin::new(&mut gathered.stream).poll_write_vectored(context, parts);
        gathered.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        lock(&self.0).stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = lock(&self.0);
        if !gathered.is_over {
            return Poll::Ready(Ok(()));
        }
        ready!(gathered.poll_succeed(context));
        Pin::new(&mut gathered.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gathered = lock(&self.0);
        if gathered.is_over {
            ready!(gathered.poll_succeed(context));
        } else {
            ready!(gathered.poll_send(context))?;
        }
        Pin::new(&mut gathered.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, timeout};

    use super::super::stall::CutStalled;
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

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            parts: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.poll_write(context, &parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<u8>>())
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_connection_reads_so_much_in_a_turn() {
        const SENT_BYTES: usize = 10 * TURN_READ_BYTES;
        let (ours, mut theirs) = duplex(SENT_BYTES);
        theirs.write_all(&vec![0; SENT_BYTES]).await.expect("there is room");
        let (mut corked, cork) = cork(ours);
        let mut read = 0;
        let connection = async {
            while read < SENT_BYTES {
                read += corked.read(&mut [0; 1 << 10]).await?;
            }
            Ok::<_, io::Error>(())
        };
        let (mut connection, mut turns) = (pin!(connection), 0);
        let mut ran = pin!(cork.turns(connection.as_mut()));
        std::future::poll_fn(|context| {
            turns += 1;
            ran.as_mut().poll(context)
        })
        .await
        .expect("nothing fails");
        assert_eq!(turns, 10);
    }

    /// What a connection leaves in the stream that writes these parts, flushes each, and has another turn after each row.
    async fn written(stream: Kept, turns: &[&[&[u8]]]) -> (Vec<usize>, Vec<u8>, usize) {
        let (mut corked, cork) = cork(stream);
        let shared = Arc::clone(&corked.0);
        let connection = async move {
            for turn in turns {
                for part in *turn {
                    // As HTTP/2 writes: the head of a frame, and what is in it.
                    let (head, rest) = part.split_at(1);
                    let written = corked.write_vectored(&[IoSlice::new(head), IoSlice::new(rest)]).await?;
                    corked.write_all(&part[written..]).await?;
                    corked.flush().await?;
                }
                tokio::task::yield_now().await;
            }
            Ok::<_, io::Error>(())
        };
        cork.turns(pin!(connection)).await.expect("the stream takes it");
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
            let ended: io::Result<()> = cork.turns(pin!(connection)).await;
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
        cork.turns(pin!(connection)).await.expect("there is nothing to send");
        for part in [b"ab", b"cd"] {
            corked.write_all(part).await.expect("there is room");
            corked.flush().await.expect("it is there");
        }
        let gathered = lock(&corked.0);
        assert_eq!((gathered.stream.writes.len(), gathered.stream.flushes), (2, 2));
    }

    #[tokio::test]
    async fn what_a_connection_leaves_is_sent_before_what_follows_it() {
        let (ours, mut theirs) = duplex(1);
        let (corked, cork) = cork(ours);
        let (connection, mut follows) = (Corked(Arc::clone(&corked.0)), corked);
        let task = tokio::spawn(async move {
            let ends = async move {
                let mut connection = connection;
                connection.write_all(b"first").await
            };
            cork.turns(pin!(ends)).await
        });
        tokio::task::yield_now().await;
        let written = tokio::spawn(async move { follows.write_all(b"second").await });
        let mut read = [0; 11];
        theirs.read_exact(&mut read).await.expect("both are written");
        assert_eq!(&read, b"firstsecond");
        task.await.expect("it does not panic").expect("it is sent");
        written.await.expect("it does not panic").expect("it is sent");
    }

    #[tokio::test]
    async fn an_end_is_known_to_whoever_waits_on_for_it() {
        let kept = Kept { room: [0].into(), ..Kept::default() };
        let (mut corked, cork) = cork(kept);
        let connection = async move {
            corked.write_all(b"refused").await?;
            Err::<(), _>(io::Error::from(io::ErrorKind::InvalidData))
        };
        let mut connection = pin!(connection);
        let mut turns = cork.turns(connection.as_mut());
        assert!(turns.running().is_some());
        assert!((&mut turns).now_or_never().is_none(), "the stream takes nothing yet");
        assert!(turns.running().is_none(), "what has ended is not polled again");
        let ended = turns.await.map_err(|error| error.kind());
        assert_eq!(ended, Err(io::ErrorKind::InvalidData));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_of_a_large_write_is_cut_off() {
        const AFTER: Duration = Duration::from_secs(30);
        let (ours, _theirs) = duplex(1);
        let stalled = CutStalled::new(ours, AFTER);
        let backlog = stalled.backlog();
        let (mut corked, cork) = cork(stalled);
        let connection = async move { corked.write_all(&[0; 2 * DIRECT_BYTES_MIN]).await };
        let mut connection = pin!(connection);
        let mut turns = cork.turns(connection.as_mut());
        let begun = Instant::now();
        assert!(timeout(AFTER / 2, &mut turns).await.is_err());
        let waits = std::future::poll_fn(|context| Poll::Ready(backlog.poll_cleared(context).is_pending()));
        assert!(waits.await, "no more is handed over meanwhile");
        let ended = timeout(AFTER * 2, turns).await.expect("it is cut off").map_err(|error| error.kind());
        assert_eq!((ended, begun.elapsed().as_secs()), (Err(io::ErrorKind::TimedOut), AFTER.as_secs()));
    }
}
