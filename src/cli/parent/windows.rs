//! A process keeps its parent's id after the parent has ended, so this waits for a handle.

use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use winsafe::guard::CloseHandleGuard;
use winsafe::{GetCurrentProcessId, HPROCESS, HPROCESSLIST, co};

use super::gone_already;

const LOOKED_EVERY: Duration = Duration::from_millis(200);

/// The process that started this one.
pub struct Parent {
    process: CloseHandleGuard<HPROCESS>,
}

impl Parent {
    /// Finds the parent; `known` is its id, if the caller knows it.
    ///
    /// # Errors
    ///
    /// As for `end_with_parent`.
    pub fn find(known: Option<NonZeroU32>) -> io::Result<Self> {
        let number = match known {
            Some(number) => number.get(),
            None => starter()?,
        };
        let process = HPROCESS::OpenProcess(co::PROCESS::SYNCHRONIZE, false, number).map_err(|_| gone_already())?;
        let parent = Parent { process };
        if parent.is_there() { Ok(parent) } else { Err(gone_already()) }
    }

    /// Waits until the parent has ended.
    pub async fn gone(self) {
        while self.is_there() {
            tokio::time::sleep(LOOKED_EVERY).await;
        }
    }

    fn is_there(&self) -> bool {
        self.process.WaitForSingleObject(Some(0)) == Ok(co::WAIT::TIMEOUT)
    }
}

/// The id of the process that started this one.
fn starter() -> io::Result<u32> {
    let mut list = HPROCESSLIST::CreateToolhelp32Snapshot(co::TH32CS::SNAPPROCESS, None).map_err(io::Error::other)?;
    let own = GetCurrentProcessId();
    let found = list.iter_processes().filter_map(Result::ok).find(|process| process.th32ProcessID == own);
    found.map(|process| process.th32ParentProcessID).ok_or_else(gone_already)
}
