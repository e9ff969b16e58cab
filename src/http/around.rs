//! Response bodies that carry extra state while they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::Response;
use hyper::body::{Frame, SizeHint};

/// What a body is asked for.
pub type Polled = Poll<Option<Result<Frame<Bytes>, axum::Error>>>;

/// The answer, with a body that gets each frame from `poll`, and that keeps `poll` until it is sent or dropped.
pub fn around(
    answer: Response<Body>,
    poll: impl FnMut(Pin<&mut Body>, &mut Context<'_>) -> Polled + Send + Unpin + 'static,
) -> Response<Body> {
    answer.map(|body| Body::new(Around { body, poll }))
}

struct Around<P> {
    body: Body,
    poll: P,
}

impl<P> HttpBody for Around<P>
where
    P: FnMut(Pin<&mut Body>, &mut Context<'_>) -> Polled + Unpin,
{
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled {
        let Around { body, poll } = &mut *self;
        poll(Pin::new(body), context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
