//! What a request was charged for so far, by the names of quotas.
//!
//! It lives as long as the request, which may be tried again: what a try that came to nothing was charged for is not charged
//! once more.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::name_of;
use crate::kinds::quota::{self, Charge};
use crate::value::Value;

/// The charges of one request; clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct Charges(Arc<Mutex<BTreeMap<String, Charge>>>);

impl Charges {
    /// The quota as if the request had not been charged for it yet.
    pub(super) fn refunded<'q>(&self, quota: &'q Value) -> Cow<'q, Value> {
        let charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let charge = charges.get(name_of(quota));
        charge.map_or(Cow::Borrowed(quota), |charge| Cow::Owned(quota::refunded(quota, charge)))
    }

    pub(super) fn note(&self, quota: &str, charge: Charge) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(quota.to_owned(), charge);
    }
}
