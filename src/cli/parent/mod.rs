//! A server that a test started ends with the process of that test: one that is killed leaves no server behind.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::io;
use std::num::NonZeroU32;

use crate::server::request_stop;

#[cfg(unix)]
use unix::Parent;
#[cfg(windows)]
use windows::Parent;

/// Has this process stop, as by SIGTERM, once its parent is gone.
///
/// `parent` is the number of the process that started this one, for those who know it: it may be gone by now, and this
/// process another's.
///
/// # Errors
///
/// The system refuses to tell, or the parent is gone already.
pub fn end_with_parent(parent: Option<NonZeroU32>) -> io::Result<()> {
    let parent = Parent::find(parent)?;
    tokio::spawn(async move {
        parent.gone().await;
        request_stop();
    });
    Ok(())
}

fn gone_already() -> io::Error {
    io::Error::other("the process that started this one is gone")
}
