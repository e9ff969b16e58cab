//! Decimals of any size, and arithmetic on them, which counts its steps.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint, Sign};

use super::error::QuantityError;
use crate::work;

/// DIFFERS: the most digits that a quantity may have, and the most zeros that a power of ten or an addition may write
/// out. Kubernetes is only limited by memory; but arithmetic takes more than linear time.
pub(super) const DIGITS_MAX: usize = 10_000;

/// The decimal places of a quantity.
pub(super) const SCALE_NANO: i32 = 9;

/// `unscaled / 10^scale`
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    pub unscaled: BigInt,
    pub scale: i32,
}

impl Decimal {
    pub fn negated(self) -> Self {
        Decimal { unscaled: -self.unscaled, scale: self.scale }
    }

    /// The number times `10^places`, rounded up; if it is too large, its low bits.
    pub fn scaled(&self, places: i32) -> i64 {
        let low = |number: &BigInt| {
            let bits = number.magnitude().iter_u64_digits().next().unwrap_or(0).cast_signed();
            if number.sign() == Sign::Minus { bits.wrapping_neg() } else { bits }
        };
        let shift = self.scale.saturating_sub(places);
        let power = shift.unsigned_abs().min(DIGITS_MAX as u32);
        if shift <= 0 {
            return low(&self.unscaled).wrapping_mul(10_i64.wrapping_pow(power));
        }
        let divisor = BigInt::from(10).pow(power);
        let quotient = &self.unscaled / &divisor;
        let is_exact = &quotient * &divisor == self.unscaled;
        low(&if is_exact { quotient } else { quotient + 1 })
    }
}

/// Counts a multiplication or a division of numbers with this many digits: each machine word with each other.
pub(super) fn count_arithmetic(digit_count: usize) {
    const WORD_PAIRS_PER_STEP: usize = 64;
    let words = digit_count / 19 + 1;
    work::steps(words * words / WORD_PAIRS_PER_STEP);
}

/// Parses decimal digits by halves: the library's own parser takes quadratic time.
pub(super) fn parse_digits(digits: &[u8]) -> BigUint {
    const PIECE: usize = 512;
    if digits.len() <= PIECE {
        return BigUint::parse_bytes(digits, 10).unwrap_or_default();
    }
    let (high, low) = digits.split_at(digits.len() / 2);
    parse_digits(high) * BigUint::from(10_u32).pow(low.len() as u32) + parse_digits(low)
}

/// `magnitude / 10^scale` in billionths, rounded away from zero.
pub(super) fn round_up(magnitude: BigUint, scale: i32) -> Result<BigUint, QuantityError> {
    let shift = i64::from(SCALE_NANO) - i64::from(scale);
    if shift >= 0 {
        return Ok(magnitude * ten_to(shift)?);
    }
    // A number far below a billionth rounds to one.
    if -shift > decimal_digits_max(&magnitude) {
        return Ok(BigUint::from(1_u32));
    }
    let divisor = BigUint::from(10_u32).pow(u32::try_from(-shift).unwrap_or(u32::MAX));
    let quotient = &magnitude / &divisor;
    let is_exact = &quotient * &divisor == magnitude;
    Ok(if is_exact { quotient } else { quotient + 1_u32 })
}

/// An upper bound on the number of digits.
pub(super) fn decimal_digits_max(magnitude: &BigUint) -> i64 {
    i64::try_from(magnitude.bits()).unwrap_or(i64::MAX) / 3 + 1
}

pub(super) fn ten_to(exponent: i64) -> Result<BigUint, QuantityError> {
    match u32::try_from(exponent) {
        Ok(small) if exponent <= DIGITS_MAX as i64 => Ok(BigUint::from(10_u32).pow(small)),
        _ => Err(QuantityError::Numeric),
    }
}

/// Both with the same number of decimal places.
pub(super) fn upscale(left: Decimal, right: Decimal) -> Result<(Decimal, Decimal), QuantityError> {
    let raise = |decimal: Decimal, scale: i32| -> Result<Decimal, QuantityError> {
        let shift = i64::from(scale) - i64::from(decimal.scale);
        Ok(match shift {
            0 => decimal,
            _ => Decimal { unscaled: decimal.unscaled * BigInt::from(ten_to(shift)?), scale },
        })
    };
    let scale = left.scale.max(right.scale);
    Ok((raise(left, scale)?, raise(right, scale)?))
}

/// Both are not zero.
pub(super) fn compare_magnitudes(left: &Decimal, right: &Decimal) -> Ordering {
    let shift = i64::from(right.scale) - i64::from(left.scale);
    let (left, right) = (left.unscaled.magnitude(), right.unscaled.magnitude());
    // If the magnitudes are far apart, the exponents decide.
    if shift > decimal_digits_max(right) {
        return Ordering::Greater;
    }
    if -shift > decimal_digits_max(left) {
        return Ordering::Less;
    }
    let power = || BigUint::from(10_u32).pow(u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX));
    match shift {
        0 => left.cmp(right),
        1.. => (left * power()).cmp(right),
        _ => left.cmp(&(right * power())),
    }
}

/// The nearest double; ties go to the even one; infinite beyond the range.
pub(super) fn to_f64(number: &BigInt) -> f64 {
    let magnitude = number.magnitude();
    let bits = magnitude.bits();
    let value = match bits {
        0..=64 => magnitude.iter_u64_digits().next().unwrap_or(0) as f64,
        65..=1024 => {
            let shift = bits - 64;
            let kept = (magnitude >> shift).iter_u64_digits().next().unwrap_or(0);
            // Bits that are cut off set the last bit, so that the number is not taken for a tie.
            let is_more = magnitude.trailing_zeros().is_some_and(|zeros| zeros < shift);
            let exponent = i32::try_from(shift).unwrap_or(i32::MAX);
            (kept | u64::from(is_more)) as f64 * 2.0_f64.powi(exponent)
        }
        _ => f64::INFINITY,
    };
    if number.sign() == Sign::Minus { -value } else { value }
}

/// `10^exponent` as Go computes it.
pub(super) fn pow10(exponent: i32) -> f64 {
    let table = |exponent: i32| format!("1e{exponent}").parse::<f64>().unwrap_or(0.0);
    match exponent {
        0..=308 => table(exponent / 32 * 32) * table(exponent % 32),
        -323..=-1 => table(exponent / 32 * 32) / table(-exponent % 32),
        ..-323 => 0.0,
        _ => f64::INFINITY,
    }
}
