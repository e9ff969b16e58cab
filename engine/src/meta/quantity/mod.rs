//! Quantities of resources: `500m`, `1.5Gi`, `12e6`.
//!
//! A number with up to 18 digits is held as an `i64` and a power of ten, others as a decimal of any size, because
//! callers see the difference: only the former [is an integer](Quantity::as_i64). The precision is a billionth.
//! Source: Kubernetes documentation, "Quantity"; answers of apimachinery 0.37.

mod error;
mod decimal;
mod text;

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};

use self::decimal::{
    DIGITS_MAX, Decimal, SCALE_NANO, compare_magnitudes, count_arithmetic, decimal_digits_max, parse_digits, pow10,
    round_up, to_f64, upscale,
};
use self::text::{Factor, QuantityParts, SuffixFamily, binary_parts, decimal_parts, decimal_suffix, factor_of};
use crate::work;

pub use self::error::QuantityError;

/// A quantity, and its preferred notation.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: SuffixFamily,
    /// The text that it was read from, if that is canonical.
    text: Option<String>,
}

#[derive(Clone, Debug)]
enum Amount {
    /// `value * 10^exponent`
    Small {
        value: i64,
        exponent: i32,
    },
    Decimal(Decimal),
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// In Kubernetes' words.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        if text == "0" {
            let amount = Amount::Small { value: 0, exponent: 0 };
            return Ok(Quantity { amount, format: SuffixFamily::DecimalSi, text: Some(text.to_owned()) });
        }
        work::bytes(text.len());
        let parts = QuantityParts::of(text)?;
        let (factor, format) = factor_of(parts.suffix).ok_or(QuantityError::Suffix)?;
        match small(&parts, &factor) {
            Some(small) => {
                let canonical = small.is_canonical.then(|| text.to_owned());
                Ok(Quantity { amount: small.amount, format, text: canonical })
            }
            None => large(&parts, &factor, format),
        }
    }

    /// A whole number, written with an exponent.
    pub fn from_i64(value: i64) -> Self {
        let amount = Amount::Small { value, exponent: 0 };
        Quantity { amount, format: SuffixFamily::DecimalExponent, text: None }
    }

    /// The whole number; `None` if it is too large, written in parts like `1000m`, or held as a decimal.
    pub fn as_i64(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { value, exponent } => scale_up(value, exponent),
            Amount::Decimal(_) => None,
        }
    }

    /// The number with some digits lost; infinite if an intermediate step is too large.
    pub fn as_approximate_f64(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            Amount::Small { value, exponent } => (*value as f64, *exponent),
            Amount::Decimal(decimal) => (to_f64(&decimal.unscaled), decimal.scale.wrapping_neg()),
        };
        if exponent == 0 { base } else { base * pow10(exponent) }
    }

    /// The number in whole units, rounded up; 0 if it is held with an exponent and too large.
    pub fn value(&self) -> i64 {
        self.scaled(0)
    }

    /// The number in thousandths, as [`Quantity::value`].
    pub fn milli_value(&self) -> i64 {
        self.scaled(3)
    }

    /// Whether the number is whole.
    pub fn is_whole(&self) -> bool {
        self.milli_value() % 1000 == 0
    }

    /// The number times `10^places`, rounded up.
    fn scaled(&self, places: i32) -> i64 {
        match &self.amount {
            Amount::Small { value, exponent } => match exponent.saturating_add(places) {
                shift @ ..0 => scale_down(*value, shift.unsigned_abs()),
                shift => scale_up(*value, shift).unwrap_or(0),
            },
            Amount::Decimal(decimal) => decimal.scaled(places),
        }
    }

    /// The number, rounded away from zero to thousandths: the precision of stored lists of resources.
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        const MILLI: i32 = 3;
        let amount = match self.amount {
            Amount::Small { exponent, .. } if exponent >= -MILLI => return self,
            Amount::Small { value, exponent } => {
                Amount::Small { value: scale_down(value, (-MILLI - exponent).unsigned_abs()), exponent: -MILLI }
            }
            Amount::Decimal(decimal) if decimal.scale <= MILLI => Amount::Decimal(decimal),
            Amount::Decimal(decimal) => {
                let divisor = BigInt::from(10).pow((decimal.scale - MILLI).unsigned_abs());
                let quotient = &decimal.unscaled / &divisor;
                let is_exact = &quotient * &divisor == decimal.unscaled;
                let unscaled = match decimal.unscaled.sign() {
                    _ if is_exact => quotient,
                    Sign::Minus => quotient - 1,
                    _ => quotient + 1,
                };
                Amount::Decimal(Decimal { unscaled, scale: MILLI })
            }
        };
        Quantity { amount, format: self.format, text: None }
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i64 {
        match &self.amount {
            Amount::Small { value, .. } => value.signum(),
            Amount::Decimal(decimal) => match decimal.unscaled.sign() {
                Sign::Minus => -1,
                Sign::NoSign => 0,
                Sign::Plus => 1,
            },
        }
    }

    /// Whether it is held as a decimal.
    pub fn is_decimal(&self) -> bool {
        matches!(self.amount, Amount::Decimal(_))
    }

    /// The same number, held as a decimal.
    #[must_use]
    pub fn to_decimal(&self) -> Self {
        Quantity { amount: Amount::Decimal(self.decimal()), ..self.clone() }
    }

    fn decimal(&self) -> Decimal {
        match &self.amount {
            Amount::Small { value, exponent } => {
                Decimal { unscaled: BigInt::from(*value), scale: exponent.wrapping_neg() }
            }
            Amount::Decimal(decimal) => decimal.clone(),
        }
    }

    /// The sum, written as `self` is, or as `other` if `self` is zero.
    ///
    /// # Errors
    ///
    /// [`QuantityError::Numeric`] if the two are too far apart.
    pub fn add(&self, other: &Quantity) -> Result<Self, QuantityError> {
        let format = if self.signum() == 0 { other.format } else { self.format };
        if let (Amount::Small { .. }, Amount::Small { .. }) = (&self.amount, &other.amount)
            && let Some(amount) = add_small(&self.amount, &other.amount)
        {
            return Ok(Quantity { amount, format, text: None });
        }
        let (left, right) = upscale(self.decimal(), other.decimal())?;
        let sum = Decimal { unscaled: left.unscaled + right.unscaled, scale: left.scale };
        Ok(Quantity { amount: Amount::Decimal(sum), format, text: None })
    }

    /// The difference, written as `self` is, or as `other` if `self` is zero.
    ///
    /// # Errors
    ///
    /// [`QuantityError::Numeric`] if the two are too far apart.
    pub fn sub(&self, other: &Quantity) -> Result<Self, QuantityError> {
        let amount = match &other.amount {
            // The least number is its own negative, as in Kubernetes.
            Amount::Small { value, exponent } => {
                let negative = Amount::Small { value: value.wrapping_neg(), exponent: *exponent };
                match add_small(&self.amount, &negative) {
                    Some(amount) => {
                        let format = if self.signum() == 0 { other.format } else { self.format };
                        return Ok(Quantity { amount, format, text: None });
                    }
                    None => Amount::Decimal(other.decimal().negated()),
                }
            }
            Amount::Decimal(decimal) => Amount::Decimal(decimal.clone().negated()),
        };
        self.add(&Quantity { amount, format: other.format, text: None })
    }
}

struct Small {
    amount: Amount,
    is_canonical: bool,
}

/// A number of at most 18 digits; fewer with a binary suffix.
fn small(parts: &QuantityParts<'_>, factor: &Factor) -> Option<Small> {
    let digit_count = (parts.whole.len() + parts.fraction.len()) as i64;
    let (exponent, mantissa, room) = match factor {
        Factor::Ten(exponent) => (*exponent, 1, 18 - digit_count),
        Factor::Two(exponent) if parts.fraction.is_empty() => {
            (0, 1_i64 << exponent, 15 - digit_count - i64::from(*exponent) * 3 / 10 - 1)
        }
        Factor::Two(_) => return None,
    };
    if room < 0 {
        return None;
    }
    let exponent = exponent.wrapping_sub(parts.fraction.len() as i32);
    if exponent < -SCALE_NANO {
        return None;
    }
    let digits = parts.digits();
    let number: i64 = digits.parse().ok()?;
    let value = number.checked_mul(mantissa)?;
    let is_canonical = match factor {
        Factor::Two(_) => number % 8 != 0,
        Factor::Ten(_) => exponent % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    };
    let value = if parts.negative { -value } else { value };
    Some(Small { amount: Amount::Small { value, exponent }, is_canonical })
}

fn large(parts: &QuantityParts<'_>, factor: &Factor, mut format: SuffixFamily) -> Result<Quantity, QuantityError> {
    let digit_count = parts.whole.len() + parts.fraction.len();
    if !parts.has_digits || digit_count > DIGITS_MAX {
        return Err(QuantityError::Numeric);
    }
    count_arithmetic(digit_count);
    let mut magnitude = parse_digits(parts.digits().as_bytes());
    let mut scale = parts.fraction.len() as i32;
    match factor {
        Factor::Ten(exponent) => scale = scale.wrapping_sub(*exponent),
        Factor::Two(exponent) => magnitude <<= *exponent,
    }
    if magnitude != BigUint::ZERO {
        magnitude = round_up(magnitude, scale)?;
        scale = SCALE_NANO;
    }
    let one = BigUint::from(10_u32).pow(u32::try_from(scale.clamp(0, SCALE_NANO)).unwrap_or(0));
    if format == SuffixFamily::BinarySi && magnitude != BigUint::ZERO {
        let most = BigUint::from(i64::MAX.unsigned_abs());
        if magnitude > &most * &one {
            (magnitude, scale) = (most, 0);
        } else if magnitude < one {
            format = SuffixFamily::DecimalSi;
        }
    }
    let sign = if parts.negative { Sign::Minus } else { Sign::Plus };
    let decimal = Decimal { unscaled: BigInt::from_biguint(sign, magnitude), scale };
    Ok(Quantity { amount: Amount::Decimal(decimal), format, text: None })
}

/// `value * 10^exponent`, if that is a whole number that fits.
fn scale_up(value: i64, exponent: i32) -> Option<i64> {
    match (value, exponent) {
        (_, ..0) => None,
        (0, _) => Some(0),
        (_, 0..=18) => value.checked_mul(10_i64.pow(exponent.unsigned_abs())),
        _ => None,
    }
}

/// `value / 10^places`, rounded away from zero.
fn scale_down(value: i64, places: u32) -> i64 {
    match 10_i64.checked_pow(places) {
        Some(divisor) => value / divisor + if value % divisor == 0 { 0 } else { value.signum() },
        None => value.signum(),
    }
}

fn add_small(left: &Amount, right: &Amount) -> Option<Amount> {
    let (Amount::Small { value: a, exponent: x }, Amount::Small { value: b, exponent: y }) = (left, right) else {
        return None;
    };
    let (value, exponent) = match (a, b) {
        (_, 0) => (*a, *x),
        (0, _) => (*b, *y),
        _ if x >= y => (scale_up(*a, x.checked_sub(*y)?)?.checked_add(*b)?, *y),
        _ => (scale_up(*b, y.checked_sub(*x)?)?.checked_add(*a)?, *x),
    };
    Some(Amount::Small { value, exponent })
}

/// The order of the numbers; how they are written does not matter.
impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.signum().cmp(&other.signum());
        if by_sign.is_ne() || self.signum() == 0 {
            return by_sign;
        }
        let (left, right) = (self.decimal(), other.decimal());
        let by_magnitude = compare_magnitudes(&left, &right);
        if self.signum() < 0 { by_magnitude.reverse() } else { by_magnitude }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

/// Canonical: no fraction where a smaller suffix avoids it, the largest suffix that leaves a whole number.
impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return formatter.write_str(text);
        }
        if self.signum() == 0 {
            return formatter.write_str("0");
        }
        let decimal = self.decimal();
        count_arithmetic(usize::try_from(decimal_digits_max(decimal.unscaled.magnitude())).unwrap_or(DIGITS_MAX));
        if self.format == SuffixFamily::BinarySi
            && let Some((number, suffix)) = binary_parts(&decimal)
        {
            return write!(formatter, "{number}{suffix}");
        }
        let (number, exponent) = decimal_parts(decimal);
        let suffix = if self.format == SuffixFamily::DecimalExponent { None } else { decimal_suffix(exponent) };
        match (suffix, self.format) {
            (Some(suffix), _) => write!(formatter, "{number}{suffix}"),
            (None, SuffixFamily::DecimalExponent) if exponent != 0 => write!(formatter, "{number}e{exponent}"),
            // Beyond the range of suffixes, Kubernetes writes none.
            _ => write!(formatter, "{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn quantities_are_written_canonically() {
        for (text, canonical) in [
            ("0", "0"),
            ("1000m", "1"),
            ("1.5Gi", "1536Mi"),
            ("1024", "1024"),
            ("0.5Ki", "512"),
            ("12e6", "12e6"),
            ("1200e4", "12e6"),
            ("-1.50", "-1500m"),
            ("1.0000000001", "1000000001n"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1Ei", "1Ei"),
        ] {
            assert_eq!(quantity(text).to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn only_numbers_without_parts_are_integers() {
        for (text, value) in
            [("5k", Some(5000)), ("1000m", None), ("1Gi", Some(1 << 30)), ("9223372036854775807", None), ("10E", None)]
        {
            assert_eq!(quantity(text).as_i64(), value, "{text}");
        }
    }

    #[test]
    fn numbers_of_any_size_are_compared() {
        assert!(quantity("1e2000000000") > quantity("123456789012345678901234567890"));
        assert!(quantity("-1e2000000000") < quantity("1n"));
        assert_eq!(quantity("1Ki"), quantity("1024.000"));
    }

    #[test]
    fn sums_keep_the_way_of_writing() {
        let sum = |left: &str, right: &str| quantity(left).add(&quantity(right)).map(|sum| sum.to_string());
        assert_eq!(sum("1Gi", "512Mi"), Ok("1536Mi".to_owned()));
        assert_eq!(sum("0", "1Ki"), Ok("1Ki".to_owned()));
        assert_eq!(sum("999999999999999999", "999999999999999999E"), Ok("999999999999999999999999999999999999".into()));
        assert_eq!(sum("1e2000000000", "1"), Err(QuantityError::Numeric));
        assert_eq!(quantity("1").sub(&quantity("1n")).map(|rest| rest.to_string()), Ok("999999999n".to_owned()));
    }

    #[test]
    fn whole_units_and_thousandths_are_rounded_up() {
        for (text, value, milli) in
            [("1500m", 2, 1500), ("1n", 1, 1), ("1Gi", 1 << 30, 1000 << 30), ("0.5", 1, 500), ("10E", 0, 0)]
        {
            assert_eq!((quantity(text).value(), quantity(text).milli_value()), (value, milli), "{text}");
        }
        assert!(quantity("1k").is_whole() && !quantity("1500m").is_whole());
        for (text, rounded) in
            [("1", "1"), ("100u", "1m"), ("1.0001", "1001m"), ("-1u", "-1m"), ("1.00000000001Gi", "1073741824011m")]
        {
            assert_eq!(quantity(text).round_up_to_milli().to_string(), rounded, "{text}");
        }
    }

    #[test]
    fn digits_beyond_the_limit_are_refused_before_they_are_computed_with() {
        let digits = |count| "7".repeat(count);
        assert_eq!(quantity(&digits(DIGITS_MAX)).to_string(), digits(DIGITS_MAX));
        for text in [digits(1 << 20), format!("0.{}", digits(1 << 20)), format!("-1.{}Ki", digits(1 << 20))] {
            let (result, steps) = work::counted(|| Quantity::parse(&text));
            assert_eq!(result.err(), Some(QuantityError::Numeric));
            assert!(steps < 2 * (text.len() / 64) as u64, "{steps}");
        }
        let (_, steps) = work::counted(|| quantity(&digits(DIGITS_MAX)).to_string());
        assert!(steps > 1_000, "{steps} steps for arithmetic on {DIGITS_MAX} digits");
    }

    #[test]
    fn what_is_not_a_quantity_is_told_in_kubernetes_words() {
        assert_eq!(Quantity::parse("1.2.3"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1K"), Err(QuantityError::Suffix));
        assert_eq!(Quantity::parse("1e99999999999999999999"), Err(QuantityError::Suffix));
    }
}
