//! Ranges of sizes and costs.

/// From `min` to `max`, both included: a size or a cost. Arithmetic saturates at `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
}

impl Range {
    /// A size that nothing is known about.
    pub const UNKNOWN: Range = Range { min: 0, max: u64::MAX };
    /// Contains nothing: the union of no ranges.
    pub const EMPTY: Range = Range { min: u64::MAX, max: 0 };

    /// From `min` to `max`.
    pub const fn new(min: u64, max: u64) -> Range {
        Range { min, max }
    }

    /// Exactly `value`.
    pub const fn fixed(value: u64) -> Range {
        Range { min: value, max: value }
    }

    /// The sum; saturates.
    #[must_use]
    pub fn plus(self, other: Range) -> Range {
        Range { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    /// The product; saturates.
    #[must_use]
    pub fn times(self, other: Range) -> Range {
        Range { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Each bound times `factor`, rounded up.
    #[must_use]
    pub fn scale(self, factor: f64) -> Range {
        Range { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// The smallest range that contains both.
    #[must_use]
    pub fn union(self, other: Range) -> Range {
        Range { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scale(size: u64, factor: f64) -> u64 {
    let product = (size as f64 * factor).ceil();
    // A float beyond the range becomes the end of the range.
    product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_rounded_up() {
        assert_eq!(Range::new(1, 11).scale(0.1), Range::new(1, 2));
        assert_eq!(Range::new(0, u64::MAX).scale(0.1), Range::new(0, 1_844_674_407_370_955_264));
    }

    #[test]
    fn bounds_saturate() {
        assert_eq!(Range::UNKNOWN.scale(2.0), Range::UNKNOWN);
        assert_eq!(Range::UNKNOWN.plus(Range::fixed(1)), Range::new(1, u64::MAX));
        assert_eq!(Range::UNKNOWN.times(Range::fixed(3)), Range::UNKNOWN);
    }
}
