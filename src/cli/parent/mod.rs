//! Ends a server with the process that started it: a test that is killed leaves no server behind.

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

/// Stops this process as by SIGTERM once its parent has ended.
///
/// `parent` is the id of the process that started this one, if the caller knows it: it may have
/// ended already, so this process may have another parent.
///
/// # Errors
///
/// The system refuses to notify, or the parent has ended already.
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
