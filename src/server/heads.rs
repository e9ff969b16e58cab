//! Long heads of requests count as memory: while they are read, for the address that they come from, and from then on for
//! the user, until the request is answered.
//!
//! A head of HTTP/1 has at most 1 MiB, and its buffer lasts as long as the answer; one of HTTP/2 comes in frames that are
//! decoded one by one. Up to 16 KiB are not counted: that is what a connection costs anyway. Whoever sends more than there
//! is memory for is cut off, or answered with 429 once the whole head is there.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use hyper::body::Incoming;
use hyper::{Request, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::auth::UserInfo;
use crate::http::PeerAddress;
use crate::memory::{Full, Memory, Reservation};

/// How much of a head is not counted.
const FREE_BYTES: usize = 16 << 10;
/// From this length of a request's head on, its connection of HTTP/1 is closed after the answer: the library would keep
/// the buffer that the head was read into.
const KEPT_BYTES_MAX: usize = 64 << 10;
/// What a client of HTTP/2 sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What a frame of HTTP/2 begins with: a length of 3 bytes, a type, flags, and the number of a stream.
const FRAME_HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
/// How many bytes the frames of a head take, sent and decoded, for each of theirs.
const FRAME_COPIES: usize = 2;

/// The heads of a connection.
#[derive(Clone)]
pub struct Heads(Arc<SharedHeads>);

struct SharedHeads {
    memory: Arc<Memory>,
    address: String,
    incoming: Mutex<IncomingHead>,
}

/// The head that is being read.
struct IncomingHead {
    protocol: Protocol,
    /// What is reserved for it.
    reserved: Vec<Reservation>,
}

enum Protocol {
    /// The first bytes are those of HTTP/2, so far.
    Unknown {
        read: usize,
    },
    /// `None` from the end of a head until the request is answered, and once the connection is upgraded.
    Http1(Option<HeadLines>),
    Http2(HeadFrames),
}

/// The lines of a head of HTTP/1, which ends with an empty one.
#[derive(Default)]
struct HeadLines {
    /// How many bytes were read.
    read: usize,
    /// Whether the line that is being read has a byte.
    has_byte: bool,
    /// Whether there was a line that is not empty: some clients send empty ones before a head.
    has_line: bool,
}

/// The frames of a connection of HTTP/2.
#[derive(Default)]
struct HeadFrames {
    /// The head of the frame that is being read, and how much of it was read.
    head: [u8; FRAME_HEAD_BYTES],
    head_read: usize,
    /// How much of the frame is left.
    left: usize,
    /// How many bytes of an incomplete head were read.
    incomplete: usize,
}

/// A request, from its whole head to the end of its answer.
pub struct RequestHead {
    heads: Heads,
    is_http1: bool,
    bytes: usize,
    reserved: Option<Reservation>,
}

/// A stream whose heads are counted, and that holds its slot as long as it lasts.
pub struct HeadsCounted<S, P> {
    stream: S,
    heads: Heads,
    _place: P,
}

impl Heads {
    /// The heads of a connection from an address.
    pub fn new(address: Option<PeerAddress>, memory: Arc<Memory>) -> Self {
        let address = address.map_or_else(String::new, |PeerAddress(address)| address.ip().to_string());
        let incoming = IncomingHead { protocol: Protocol::Unknown { read: 0 }, reserved: Vec::new() };
        Heads(Arc::new(SharedHeads { memory, address, incoming: Mutex::new(incoming) }))
    }

    /// Counts the heads in what is read from `stream`, which holds its slot.
    pub fn counted<S, P>(&self, stream: S, place: P) -> HeadsCounted<S, P> {
        HeadsCounted { stream, heads: self.clone(), _place: place }
    }

    /// The head of a request that begins.
    pub fn of(&self, request: &Request<Incoming>) -> RequestHead {
        let is_http1 = request.version() < Version::HTTP_2;
        RequestHead { heads: self.clone(), is_http1, bytes: bytes_of(request), reserved: None }
    }

    fn incoming(&self) -> MutexGuard<'_, IncomingHead> {
        self.0.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what was read.
    fn note(&self, bytes: &[u8]) -> Result<(), Full> {
        let mut incoming = self.incoming();
        let held = incoming.protocol.note(bytes);
        let wanted = if held > FREE_BYTES { held.next_power_of_two() } else { 0 };
        if wanted == 0 {
            incoming.reserved.clear();
            return Ok(());
        }
        let reserved = incoming.reserved.iter().map(Reservation::bytes).sum::<usize>();
        if wanted > reserved {
            let more = self.0.memory.for_head(Some(&self.0.address), wanted - reserved)?;
            incoming.reserved.push(more);
        }
        Ok(())
    }
}

impl Protocol {
    /// Takes in what was read; returns how many bytes an incomplete head takes.
    fn note(&mut self, mut bytes: &[u8]) -> usize {
        if let Protocol::Unknown { read } = *self {
            let expected = &PREFACE[read..];
            let length = expected.len().min(bytes.len());
            *self = if expected[..length] != bytes[..length] {
                let mut lines = HeadLines::default();
                lines.note(&PREFACE[..read]);
                Protocol::Http1(Some(lines))
            } else if length == expected.len() {
                bytes = &bytes[length..];
                Protocol::Http2(HeadFrames::default())
            } else {
                Protocol::Unknown { read: read + length }
            };
        }
        match self {
            Protocol::Unknown { .. } => 0,
            Protocol::Http1(head) => {
                if head.as_mut().is_some_and(|lines| lines.note(bytes)) {
                    *head = None;
                }
                head.as_ref().map_or(0, |lines| lines.read)
            }
            Protocol::Http2(frames) => {
                frames.note(bytes);
                frames.incomplete * FRAME_COPIES
            }
        }
    }
}

impl HeadLines {
    /// Takes in what was read; returns whether the head is whole.
    fn note(&mut self, bytes: &[u8]) -> bool {
        self.read += bytes.len();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ended = line.strip_suffix(b"\n");
            self.has_byte |= ended.unwrap_or(line).iter().any(|byte| *byte != b'\r');
            if ended.is_some() {
                if self.has_line && !self.has_byte {
                    return true;
                }
                self.has_line |= self.has_byte;
                self.has_byte = false;
            }
        }
        false
    }
}

impl HeadFrames {
    fn note(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.head_read < FRAME_HEAD_BYTES {
                self.head[self.head_read] = bytes[0];
                self.head_read += 1;
                bytes = &bytes[1..];
                let [a, b, c, ..] = self.head.map(usize::from);
                self.left = a << 16 | b << 8 | c;
            } else {
                let length = self.left.min(bytes.len());
                self.left -= length;
                bytes = &bytes[length..];
                if self.is_of_head() {
                    self.incomplete += length;
                }
            }
            if self.head_read == FRAME_HEAD_BYTES && self.left == 0 {
                if self.is_of_head() && self.head[4] & END_HEADERS != 0 {
                    self.incomplete = 0;
                }
                self.head_read = 0;
            }
        }
    }

    fn is_of_head(&self) -> bool {
        matches!(self.head[3], HEADERS | CONTINUATION)
    }
}

impl RequestHead {
    /// Counts a long head for the user who sent it, until this is dropped.
    ///
    /// # Errors
    ///
    /// The heads of the user's requests take all that they may.
    pub fn count_for(&mut self, user: &UserInfo) -> Result<(), Full> {
        if self.bytes > FREE_BYTES {
            self.reserved = Some(self.heads.0.memory.for_head(Some(user.sharer()), self.bytes)?);
        }
        Ok(())
    }

    /// Whether its connection would keep a large buffer after the request.
    pub fn leaves_large_buffer(&self) -> bool {
        self.is_http1 && self.bytes > KEPT_BYTES_MAX
    }

    /// The connection is upgraded: what follows are no requests.
    pub fn upgrade(&mut self) {
        self.is_http1 = false;
    }
}

impl Drop for RequestHead {
    fn drop(&mut self) {
        if self.is_http1 {
            self.heads.incoming().protocol = Protocol::Http1(Some(HeadLines::default()));
        }
    }
}

/// How many bytes the path and the headers of a request have, about.
fn bytes_of(request: &Request<Incoming>) -> usize {
    let of_path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    let of_headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    of_path + of_headers.sum::<usize>()
}

impl<S: AsyncRead + Unpin, P: Unpin> AsyncRead for HeadsCounted<S, P> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, out))?;
        let noted = self.heads.note(&out.filled()[before..]);
        Poll::Ready(noted.map_err(|Full| io::ErrorKind::OutOfMemory.into()))
    }
}

impl<S: AsyncWrite + Unpin, P: Unpin> AsyncWrite for HeadsCounted<S, P> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let [.., a, b, c] = length.to_be_bytes();
        [&[a, b, c, kind, flags, 0, 0, 0, 1][..], &vec![0; length]].concat()
    }

    #[test]
    fn heads_of_http_1_are_counted_from_their_first_byte() {
        let mut protocol = Protocol::Unknown { read: 0 };
        assert_eq!(protocol.note(b"P"), 0);
        assert_eq!(protocol.note(b"OST / HTTP/1.1\r\n"), 17);
        assert_eq!(protocol.note(&[b'a'; 1000]), 1017);
        assert_eq!(protocol.note(b"\r"), 1018);
        assert_eq!(protocol.note(b"\n\r"), 1020);
        assert_eq!(protocol.note(b"\nabc"), 0);
        assert_eq!(protocol.note(&[b'a'; 1000]), 0, "a body");
        protocol = Protocol::Http1(Some(HeadLines::default()));
        assert_eq!(protocol.note(b"\r\n\nGET / HTTP/1.1\n"), 18);
        assert_eq!(protocol.note(b"\n"), 0);
    }

    #[test]
    fn an_address_and_a_user_have_memory_for_so_many_long_heads() {
        let memory = Arc::new(Memory::new(1));
        let connection = || Heads::new(None, Arc::clone(&memory));
        let line = [b'a'; 100 << 10];
        let all: Vec<_> = std::iter::repeat_with(connection).take(100).collect();
        let held = all.iter().take_while(|heads| heads.note(&line).is_ok()).count();
        assert!((4..10).contains(&held), "{held}");
        assert!(all[99].note(&line[..FREE_BYTES]).is_ok());
        // A head that is whole is the user's.
        assert!(all[0].note(b"\n\n").is_ok());
        assert!(all[99].note(&line[FREE_BYTES..]).is_ok());

        let request = |user: &UserInfo| {
            let mut head = RequestHead { heads: connection(), is_http1: true, bytes: 100 << 10, reserved: None };
            head.count_for(user).map(|()| head)
        };
        let [jane, joe] = ["jane", "joe"].map(|name| UserInfo::authenticated(name, Vec::new()));
        drop(all);
        let held: Vec<_> = std::iter::repeat_with(|| request(&jane)).map_while(Result::ok).collect();
        assert!((4..20).contains(&held.len()), "{}", held.len());
        assert!(request(&joe).is_ok(), "others have theirs");
        drop(held);
        assert!(request(&jane).is_ok());
    }

    #[test]
    fn heads_of_http_2_are_counted_until_they_are_whole() {
        const DATA: u8 = 0;
        let sent = [
            PREFACE.to_vec(),
            frame(HEADERS, END_HEADERS, 100),
            frame(DATA, 0, 5_000),
            frame(HEADERS, 0, 1_000),
            frame(CONTINUATION, 0, 2_000),
        ];
        let last = [frame(CONTINUATION, END_HEADERS, 10), frame(DATA, 0, 7)].concat();
        for part_bytes in [1, 7, 10_000] {
            let mut protocol = Protocol::Unknown { read: 0 };
            let mut read =
                |bytes: &[u8]| bytes.chunks(part_bytes).map(|part| protocol.note(part)).last().unwrap_or_default();
            assert_eq!(read(&sent.concat()), 3_000 * FRAME_COPIES);
            assert_eq!(read(&last[..last.len() - 17]), 3_009 * FRAME_COPIES);
            assert_eq!(read(&last[last.len() - 17..]), 0);
            assert_eq!(read(&frame(HEADERS, END_HEADERS, 0)), 0);
        }
    }
}
