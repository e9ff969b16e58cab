//! Whether a database can be written to, as the last write found it.

use std::sync::{Mutex, PoisonError};

use super::StoreError;

/// Why the last write failed, if it did.
#[derive(Default)]
pub(super) struct Health(Mutex<Option<StoreError>>);

impl Health {
    /// Records the outcome of a write. A damaged database stays damaged.
    pub fn note(&self, failed: Option<&StoreError>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*known, Some(StoreError::Malformed)) {
            *known = failed.cloned();
        }
    }

    pub fn fault(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Errors: nothing may be written any more.
    pub fn check_writable(&self) -> Result<(), StoreError> {
        match self.fault() {
            Some(StoreError::Malformed) => Err(StoreError::Malformed),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_passes_and_a_damaged_database_does_not() {
        let health = Health::default();
        health.note(Some(&StoreError::DiskFull));
        assert!(health.fault().is_some() && health.check_writable().is_ok());
        health.note(None);
        assert!(health.fault().is_none());
        health.note(Some(&StoreError::Malformed));
        health.note(None);
        assert!(health.check_writable().is_err());
    }
}
