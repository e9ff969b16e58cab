//! Numbers as text, the way Go prints them.

/// A double as Go's `encoding/json` prints it: the shortest digits that read back as the same double, with an exponent
/// below 1e-6 and from 1e21 on (`1e-7`, `1e+21`). Whole numbers have no point, so they read back as integers.
///
/// `number` must be finite, as every [`super::Value::Float`] is.
pub fn format_float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        return Decimal::of(number).with_exponent(1);
    }
    Decimal::of(number).plain()
}

/// A double as Go's `%v` prints it: with an exponent of at least two digits below 1e-4 and from 1e6 on (`1e+06`).
pub fn format_float_v(number: f64) -> String {
    let decimal = Decimal::of(number);
    if number != 0.0 && !(-4..6).contains(&decimal.exponent) { decimal.with_exponent(2) } else { decimal.plain() }
}

/// Reads a double as Go's `strconv.ParseFloat` does: also `0x1p-2`, `1_000`, `inf` and `NaN` in any case. `None` if it
/// is not a number or too large.
pub fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let size = match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => f64::INFINITY,
        // NaN may not have a sign.
        "nan" => return (unsigned.len() == text.len()).then_some(f64::NAN),
        lower if lower.starts_with(['+', '-']) => return None,
        lower => parse_size(lower)?,
    };
    Some(if text.starts_with('-') { -size } else { size })
}

/// `text` is in lower case and without a sign.
fn parse_size(text: &str) -> Option<f64> {
    let hexadecimal = text.strip_prefix("0x");
    let is_digit = |byte: u8| byte.is_ascii_digit() || hexadecimal.is_some() && byte.is_ascii_hexdigit();
    // Underscores stand between digits; a prefix counts as one.
    let bytes = text.as_bytes();
    let fits = |at: usize| {
        let before = at.checked_sub(1).is_some_and(|at| is_digit(bytes[at]) || at == 1 && hexadecimal.is_some());
        before && bytes.get(at + 1).is_some_and(|byte| is_digit(*byte))
    };
    if !bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').all(|(at, _)| fits(at)) {
        return None;
    }
    let plain = text.replace('_', "");
    let number = match plain.strip_prefix("0x") {
        Some(digits) => parse_hexadecimal(digits)?,
        None if plain.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-')) => {
            plain.parse().ok()?
        }
        None => return None,
    };
    number.is_finite().then_some(number)
}

/// `1.8p-2`, with an exponent of base two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    const BITS_MAX: u32 = 60;
    let (mantissa, exponent) = text.split_once('p')?;
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let exponent: i64 = digits.parse().unwrap_or(i64::from(u32::MAX)).min(i64::from(u32::MAX));
    let mut exponent = if text.contains("p-") { -exponent } else { exponent };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let mut bits = 0_u64;
    let places = whole.chars().map(|digit| (digit, 0)).chain(fraction.chars().map(|digit| (digit, 4)));
    for (digit, shift) in places {
        let digit = u64::from(digit.to_digit(16)?);
        exponent -= shift;
        match bits >> BITS_MAX {
            0 => bits = bits << 4 | digit,
            // Digits that do not fit set the last bit, so that the number is not taken for a tie.
            _ => {
                exponent += 4;
                bits |= u64::from(digit != 0);
            }
        }
    }
    Some(scale(bits, exponent))
}

/// `bits * 2^exponent`, rounded once.
fn scale(bits: u64, exponent: i64) -> f64 {
    const DIGITS: i64 = 53;
    const EXPONENT_MIN: i64 = -1074;
    if bits == 0 {
        return 0.0;
    }
    let length = 64 - i64::from(bits.leading_zeros());
    // The exponent of the last bit that a double of this size has.
    let last = (exponent + length - DIGITS).max(EXPONENT_MIN);
    let cut = last - exponent;
    let kept = match cut {
        ..=0 => return bits as f64 * power_of_two(exponent),
        1..64 => {
            let (kept, rest, half) = (bits >> cut, bits & ((1 << cut) - 1), 1_u64 << (cut - 1));
            kept + u64::from(rest > half || rest == half && kept & 1 == 1)
        }
        64 => u64::from(bits > 1 << 63),
        _ => 0,
    };
    kept as f64 * power_of_two(last)
}

/// For the exponents of doubles; infinite beyond.
fn power_of_two(exponent: i64) -> f64 {
    let half = i32::try_from(exponent / 2).unwrap_or(if exponent < 0 { -2000 } else { 2000 });
    let rest = i32::try_from(exponent - exponent / 2).unwrap_or(half);
    // In two steps, as the powers for the smallest doubles would overflow in one.
    2.0_f64.powi(half) * 2.0_f64.powi(rest)
}

/// A double as Go's `strconv` prints it with `'f'`: never with an exponent.
pub fn format_float_f(number: f64) -> String {
    Decimal::of(number).plain()
}

/// The digits of a double that is exactly between two shortest decimals: Go chooses the even one.
fn even_of_two(number: f64, digits: String) -> String {
    /// With fewer digits, no two decimals stand for the same double.
    const DIGITS_MIN: usize = 16;
    /// Any difference from a tie shows within this many digits.
    const DIGITS_SURE: usize = 60;
    let is_odd = digits.bytes().last().is_some_and(|digit| digit % 2 == 1);
    if digits.len() < DIGITS_MIN || !is_odd {
        return digits;
    }
    let exact = format!("{number:.DIGITS_SURE$e}");
    let (mantissa, exponent) = exact.split_once('e').expect("the exponent form of a finite double has an `e`");
    let exact = mantissa.replace('.', "");
    let (kept, rest) = exact.split_at(digits.len());
    if !rest.starts_with('5') || !rest[1..].bytes().all(|digit| digit == b'0') {
        return digits;
    }
    let below: u64 = kept.parse().expect("it is 17 digits at most");
    let even = (below + below % 2).to_string();
    let places = i64::try_from(even.len()).unwrap_or(0) - 1;
    let exponent: i64 = exponent.parse().expect("a double's exponent is a small integer");
    if format!("{even}e{}", exponent - places).parse() == Ok(number) && even.len() == digits.len() {
        even
    } else {
        digits
    }
}

/// The shortest decimal that reads back as the same double: `digits[0].digits[1..] * 10^exponent`.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    fn of(number: f64) -> Self {
        let text = format!("{:e}", number.abs());
        let (mantissa, exponent) = text.split_once('e').expect("the exponent form of a finite double has an `e`");
        let digits = mantissa.replace('.', "");
        Decimal {
            negative: number.is_sign_negative(),
            digits: even_of_two(number.abs(), digits),
            exponent: exponent.parse().expect("a double's exponent is a small integer"),
        }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    fn plain(&self) -> String {
        let sign = self.sign();
        let digits = &self.digits;
        let Ok(exponent) = usize::try_from(self.exponent) else {
            let zeros = "0".repeat(self.exponent.unsigned_abs() as usize - 1);
            return format!("{sign}0.{zeros}{digits}");
        };
        match digits.split_at_checked(exponent + 1) {
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{digits}{}", "0".repeat(exponent + 1 - digits.len())),
        }
    }

    fn with_exponent(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let direction = if self.exponent < 0 { '-' } else { '+' };
        format!("{}{first}{point}{rest}e{direction}{:0width$}", self.sign(), self.exponent.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_print_as_go_prints_them() {
        for (number, json, v) in [
            (0.0, "0", "0"),
            (-2.25, "-2.25", "-2.25"),
            (100000.0, "100000", "100000"),
            (1e6, "1000000", "1e+06"),
            (123456789.0, "123456789", "1.23456789e+08"),
            (12345678901234567890.0, "12345678901234567000", "1.2345678901234567e+19"),
            (1e20, "100000000000000000000", "1e+20"),
            (1.5e21, "1.5e+21", "1.5e+21"),
            (1e-4, "0.0001", "0.0001"),
            (1e-5, "0.00001", "1e-05"),
            (1e-6, "0.000001", "1e-06"),
            (1.25e-7, "1.25e-7", "1.25e-07"),
            (5e-324, "5e-324", "5e-324"),
            (f64::MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"),
        ] {
            assert_eq!(format_float(number), json);
            assert_eq!(format_float_v(number), v);
        }
    }
}
