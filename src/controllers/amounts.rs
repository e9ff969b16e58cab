//! Amounts that are a number or a percentage: `3`, `25%`.

use crate::value::Value;

/// An amount that is a number or a percentage of `total`; fractions are rounded up if `up`.
pub(super) fn amount_of(amount: Option<&Value>, total: i64, up: bool) -> i64 {
    let percentage = |text: &str| text.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    match amount {
        Some(Value::Int(number)) => *number,
        Some(Value::String(text)) => {
            let hundredths = percentage(text).unwrap_or_default().saturating_mul(total);
            if up { hundredths.saturating_add(99) / 100 } else { hundredths / 100 }
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_rounded_as_is_asked() {
        let of = |amount: &str, up| amount_of(Some(&Value::from(amount)), 10, up);
        assert_eq!([of("25%", true), of("25%", false), of("100%", true), of("x", true)], [3, 2, 10, 0]);
        assert_eq!((amount_of(Some(&Value::Int(7)), 10, true), amount_of(None, 10, true)), (7, 0));
    }
}
