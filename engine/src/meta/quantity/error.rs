//! Why a text is not a quantity.

/// Why a text is not a quantity, or a sum not representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It is not a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its suffix is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// No digits, or more than 10,000 of them or of zeros to write.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}
