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
    match number != 0.0 && !(-4..6).contains(&decimal.exponent) {
        true => decimal.with_exponent(2),
        false => decimal.plain(),
    }
}

/// The shortest decimal that reads back as one double: `digits[0].digits[1..] * 10^exponent`.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Decimal {
    fn of(number: f64) -> Self {
        let text = format!("{:e}", number.abs());
        let (mantissa, exponent) = text.split_once('e').expect("the exponent form of a finite double has an `e`");
        Decimal {
            negative: number.is_sign_negative(),
            digits: mantissa.replace('.', ""),
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
