//! The texts of quantities: their parts as they are read, and the suffixes that they are written with.

use num_bigint::{BigInt, BigUint};

use super::decimal::{Decimal, parse_digits, ten_to};
use super::error::QuantityError;

/// The family of suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuffixFamily {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

/// The parts of a quantity's text.
pub(super) struct QuantityParts<'t> {
    pub negative: bool,
    /// Digits before the point without leading zeros, `0` if there are none.
    pub whole: &'t str,
    /// Whether there is a digit at all.
    pub has_digits: bool,
    pub fraction: &'t str,
    pub suffix: &'t str,
}

impl<'t> QuantityParts<'t> {
    pub fn of(text: &'t str) -> Result<Self, QuantityError> {
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
        // An empty number is zero; a lone point is invalid unless the number is small.
        let has_digits = number.starts_with(|first: char| first.is_ascii_digit()) || !fraction.is_empty();
        Ok(QuantityParts { negative, whole: if whole.is_empty() { "0" } else { whole }, has_digits, fraction, suffix })
    }

    /// Both parts in a row.
    pub fn digits(&self) -> String {
        [self.whole, self.fraction].concat()
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// The factor of a suffix.
pub(super) enum Factor {
    Ten(i32),
    Two(u32),
}

pub(super) fn factor_of(suffix: &str) -> Option<(Factor, SuffixFamily)> {
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

pub(super) fn decimal_suffix(exponent: i64) -> Option<&'static str> {
    const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    SUFFIXES.get(usize::try_from(exponent / 3 + 3).ok()?).copied()
}

/// A whole number and a power of 1024; `None` for fractions and numbers below 1024.
pub(super) fn binary_parts(decimal: &Decimal) -> Option<(BigInt, &'static str)> {
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

/// A whole number without trailing zeros, except those that make the exponent a multiple of three.
pub(super) fn decimal_parts(decimal: Decimal) -> (BigInt, i64) {
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
