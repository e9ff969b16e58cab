//! What a request was charged so far, by quota name.
//!
//! It lives as long as the request, which may be retried: a charge of a failed attempt is not made
//! again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::name_of;
use crate::kinds::quota::{self, Charge};
use crate::value::Value;

/// The charges of one request; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Charges(Arc<Mutex<BTreeMap<String, Charge>>>);

impl Charges {
    /// The quota without the charges of this request so far.
    pub(super) fn refunded<'q>(&self, quota: &'q Value) -> Cow<'q, Value> {
        let charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let charge = charges.get(name_of(quota));
        charge.map_or(Cow::Borrowed(quota), |charge| Cow::Owned(quota::refunded(quota, charge)))
    }

    pub(super) fn note(&self, quota: &str, charge: Charge) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(quota.to_owned(), charge);
    }
}
