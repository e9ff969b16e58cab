//! The error of work over many objects: one that can't be written does not keep the others from being handled.

use crate::meta::Status;

/// The first error of many objects. One that says that an object is gone (404) gives way to a later one: it is no
/// reason to try again.
#[derive(Default)]
pub(super) struct FirstError(Option<Status>);

impl FirstError {
    /// Keeps the error of one object, or returns its result.
    pub fn keep<T>(&mut self, outcome: Result<T, Status>) -> Option<T> {
        match outcome {
            Ok(result) => Some(result),
            Err(status) => {
                if self.0.as_ref().is_none_or(|known| known.code == 404) {
                    self.0 = Some(status);
                }
                None
            }
        }
    }

    /// Ends the work.
    ///
    /// # Errors
    ///
    /// The first error that was kept.
    pub fn end(self) -> Result<(), Status> {
        self.0.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_that_of_an_object_which_is_there() {
        let mut failed = FirstError::default();
        assert_eq!(failed.keep(Ok(1)), Some(1));
        for status in [Status::not_found_generic(), Status::internal_error("one"), Status::internal_error("two")] {
            assert_eq!(failed.keep(Err::<(), _>(status)), None);
        }
        assert_eq!(failed.end().map_err(|status| status.message), Err("Internal error occurred: one".to_owned()));
        assert!(FirstError::default().end().is_ok());
    }
}
