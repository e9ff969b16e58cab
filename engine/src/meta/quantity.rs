//! Quantities of resources: `500m`, `1.5Gi`, `12e6`.
//!
//! A number with up to 18 digits is held as an `i64` and a power of ten, others as a decimal of any size, because this is
//! what callers can tell apart: only the former [is an integer](Quantity::as_i64). Nothing is finer than a billionth.
//! Source: Kubernetes documentation, "Quantity"; answers of apimachinery 0.37.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};

use crate::work;

/// DIFFERS: digits that a quantity may have, and zeros that a power of ten or an addition may write out. Kubernetes takes
/// as many as memory holds; but arithmetic on them takes more than linear time.
const DIGITS_MAX: usize = 10_000;
/// Places behind the point of a decimal.
const SCALE_NANO: i32 = 9;

/// A quantity, and how it likes to be written.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    format: SuffixFamily,
    /// The text that it was read from, where that is canonical.
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

/// `unscaled / 10^scale`
#[derive(Clone, Debug)]
struct Decimal {
    unscaled: BigInt,
    scale: i32,
}

/// The family of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuffixFamily {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// Why a text is not a quantity, or a sum not representable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It is not a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// Its suffix is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// No digits, or more than [`DIGITS_MAX`] of them or of zeros to write.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
}

/// The parts of a quantity's text.
struct QuantityParts<'t> {
    negative: bool,
    /// Digits before the point without leading zeros, `0` if there are none.
    whole: &'t str,
    /// Whether there is a digit at all.
    has_digits: bool,
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> QuantityParts<'t> {
    fn of(text: &'t str) -> Result<Self, QuantityError> {
        let negative = text.starts_with('-');
        let number = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = split_digits(number.trim_start_matches('0'));
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        let after_letters = suffix.trim_start_matches(|char| "eEinumkKMGTP".contains(char));
        let after_sign = match after_letters {
            "" => "",
            rest => rest.strip_prefix(['-', '+']).unwrap_or(rest),
        };
        if !split_digits(after_sign).1.is_empty() {
            return Err(QuantityError::Format);
        }
        // Nothing at all is zero; a point alone is none unless it is small.
        let has_digits = number.starts_with(|first: char| first.is_ascii_digit()) || !fraction.is_empty();
        Ok(QuantityParts { negative, whole: if whole.is_empty() { "0" } else { whole }, has_digits, fraction, suffix })
    }

    /// Both parts in a row.
    fn digits(&self) -> String {
        [self.whole, self.fraction].concat()
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// What a suffix multiplies with.
enum Factor {
    Ten(i32),
    Two(u32),
}

fn factor_of(suffix: &str) -> Option<(Factor, SuffixFamily)> {
    let decimal = |exponent| Some((Factor::Ten(exponent), SuffixFamily::DecimalSi));
    let binary = |exponent| Some((Factor::Two(exponent), SuffixFamily::BinarySi));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // Kubernetes keeps the low 32 bits.
            Some((Factor::Ten(exponent as i32), SuffixFamily::DecimalExponent))
        }
    }
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

    /// The whole number that this is; none if it is too large, or written in parts, as `1000m` is, or was held as a
    /// decimal.
    pub fn as_i64(&self) -> Option<i64> {
        match self.amount {
            Amount::Small { value, exponent } => scale_up(value, exponent),
            Amount::Decimal(_) => None,
        }
    }

    /// The number, some digits lost; infinite if a step on the way is too large.
    pub fn as_approximate_f64(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            Amount::Small { value, exponent } => (*value as f64, *exponent),
            Amount::Decimal(decimal) => (to_f64(&decimal.unscaled), decimal.scale.wrapping_neg()),
        };
        if exponent == 0 { base } else { base * pow10(exponent) }
    }

    /// The number in whole units, rounded up; 0 for one that is held with an exponent and is too large.
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

    /// The number, rounded away from zero to thousandths: nothing finer is stored in a list of resources.
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
            // The least number is its own negative: so it is in Kubernetes.
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

/// Counts a multiplication or a division of numbers with so many digits: each digit of a machine's word with each other.
fn count_arithmetic(digit_count: usize) {
    const WORD_PAIRS_PER_STEP: usize = 64;
    let words = digit_count / 19 + 1;
    work::steps(words * words / WORD_PAIRS_PER_STEP);
}

/// The number that decimal digits stand for, by halves: the library's own reading takes quadratic time.
fn parse_digits(digits: &[u8]) -> BigUint {
    const PIECE: usize = 512;
    if digits.len() <= PIECE {
        return BigUint::parse_bytes(digits, 10).unwrap_or_default();
    }
    let (high, low) = digits.split_at(digits.len() / 2);
    parse_digits(high) * BigUint::from(10_u32).pow(low.len() as u32) + parse_digits(low)
}

/// `magnitude / 10^scale` in billionths, rounded away from zero.
fn round_up(magnitude: BigUint, scale: i32) -> Result<BigUint, QuantityError> {
    let shift = i64::from(SCALE_NANO) - i64::from(scale);
    if shift >= 0 {
        return Ok(magnitude * ten_to(shift)?);
    }
    // What is far below a billionth rounds to one.
    if -shift > decimal_digits_max(&magnitude) {
        return Ok(BigUint::from(1_u32));
    }
    let divisor = BigUint::from(10_u32).pow(u32::try_from(-shift).unwrap_or(u32::MAX));
    let quotient = &magnitude / &divisor;
    let is_exact = &quotient * &divisor == magnitude;
    Ok(if is_exact { quotient } else { quotient + 1_u32 })
}

/// At least as many as the number has.
fn decimal_digits_max(magnitude: &BigUint) -> i64 {
    i64::try_from(magnitude.bits()).unwrap_or(i64::MAX) / 3 + 1
}

fn ten_to(exponent: i64) -> Result<BigUint, QuantityError> {
    match u32::try_from(exponent) {
        Ok(small) if exponent <= DIGITS_MAX as i64 => Ok(BigUint::from(10_u32).pow(small)),
        _ => Err(QuantityError::Numeric),
    }
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

impl Decimal {
    fn negated(self) -> Self {
        Decimal { unscaled: -self.unscaled, scale: self.scale }
    }

    /// The number times `10^places`, rounded up; of what is too large, the low bits.
    fn scaled(&self, places: i32) -> i64 {
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

/// The two with as many places behind the point.
fn upscale(left: Decimal, right: Decimal) -> Result<(Decimal, Decimal), QuantityError> {
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

/// Both are not zero.
fn compare_magnitudes(left: &Decimal, right: &Decimal) -> Ordering {
    let shift = i64::from(right.scale) - i64::from(left.scale);
    let (left, right) = (left.unscaled.magnitude(), right.unscaled.magnitude());
    // Far apart, the exponents decide.
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

/// The nearest double, of two equally near the even one; infinite beyond.
fn to_f64(number: &BigInt) -> f64 {
    let magnitude = number.magnitude();
    let bits = magnitude.bits();
    let value = match bits {
        0..=64 => magnitude.iter_u64_digits().next().unwrap_or(0) as f64,
        65..=1024 => {
            let shift = bits - 64;
            let kept = (magnitude >> shift).iter_u64_digits().next().unwrap_or(0);
            // What is cut off counts as a last bit, so that a tie is told from more.
            let is_more = magnitude.trailing_zeros().is_some_and(|zeros| zeros < shift);
            let exponent = i32::try_from(shift).unwrap_or(i32::MAX);
            (kept | u64::from(is_more)) as f64 * 2.0_f64.powi(exponent)
        }
        _ => f64::INFINITY,
    };
    if number.sign() == Sign::Minus { -value } else { value }
}

/// `10^exponent` as Go computes it.
fn pow10(exponent: i32) -> f64 {
    let table = |exponent: i32| format!("1e{exponent}").parse::<f64>().unwrap_or(0.0);
    match exponent {
        0..=308 => table(exponent / 32 * 32) * table(exponent % 32),
        -323..=-1 => table(exponent / 32 * 32) / table(-exponent % 32),
        ..-323 => 0.0,
        _ => f64::INFINITY,
    }
}

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
            // Kubernetes has no suffix for what is out of their range, and writes none.
            _ => write!(formatter, "{number}"),
        }
    }
}

fn decimal_suffix(exponent: i64) -> Option<&'static str> {
    const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    SUFFIXES.get(usize::try_from(exponent / 3 + 3).ok()?).copied()
}

/// A whole number and a power of 1024; none for fractions and numbers below 1024.
fn binary_parts(decimal: &Decimal) -> Option<(BigInt, &'static str)> {
    let ten = BigInt::from(10);
    let whole = match u32::try_from(decimal.scale) {
        Ok(scale) => {
            let divisor = ten.pow(scale);
            let whole = &decimal.unscaled / &divisor;
            (&whole * &divisor == decimal.unscaled).then_some(whole)?
        }
        Err(_) => &decimal.unscaled * BigInt::from(ten_to(-i64::from(decimal.scale)).ok()?),
    };
    if *whole.magnitude() < BigUint::from(1024_u32) {
        return None;
    }
    let thousands = whole.magnitude().trailing_zeros().unwrap_or(0) / 10;
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let suffix = usize::try_from(thousands).ok().and_then(|at| SUFFIXES.get(at)).copied();
    Some((whole >> (thousands * 10), suffix.unwrap_or("")))
}

/// A whole number without trailing zeros beyond what makes the exponent a multiple of three.
fn decimal_parts(decimal: Decimal) -> (BigInt, i64) {
    let digits = decimal.unscaled.magnitude().to_string();
    let kept = digits.trim_end_matches('0');
    let mut exponent = (digits.len() - kept.len()) as i64 - i64::from(decimal.scale);
    let mut digits = kept.to_owned();
    while exponent % 3 != 0 {
        digits.push('0');
        exponent -= 1;
    }
    (BigInt::from_biguint(decimal.unscaled.sign(), parse_digits(digits.as_bytes())), exponent)
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
    fn what_is_no_quantity_is_told_in_kubernetes_words() {
        assert_eq!(Quantity::parse("1.2.3"), Err(QuantityError::Format));
        assert_eq!(Quantity::parse("1K"), Err(QuantityError::Suffix));
        assert_eq!(Quantity::parse("1e99999999999999999999"), Err(QuantityError::Suffix));
    }
}
