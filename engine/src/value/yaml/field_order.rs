//! The order in which the reference writes the fields of a mapping.

use std::cmp::Ordering;

use crate::value::{Map, Value};
use crate::work;

/// The fields in the reference's order: letters after other characters, and numbers by value.
pub(super) fn in_order(fields: &Map) -> Vec<(&str, &Value)> {
    merge_sort(fields.iter().collect())
}

/// Sorts by [`compare_names`]. The standard library's sort may panic if an order is inconsistent, and it is not proven
/// that this one is consistent.
fn merge_sort<'f>(mut fields: Vec<(&'f str, &'f Value)>) -> Vec<(&'f str, &'f Value)> {
    if fields.is_sorted_by(|left, right| compare_names(left.0, right.0) == Ordering::Less) {
        return fields;
    }
    let right = merge_sort(fields.split_off(fields.len() / 2));
    let left = merge_sort(fields);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let from = if compare_names(second.0, first.0) == Ordering::Less { &mut right } else { &mut left };
        merged.extend(from.next());
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

fn compare_names(left: &str, right: &str) -> Ordering {
    work::bytes(left.len().min(right.len()));
    let mut left_rest = left.chars();
    let mut right_rest = right.chars();
    let mut number_goes_on = false;
    loop {
        let (left_at, right_at) = (left_rest.as_str(), right_rest.as_str());
        let (left, right) = match (left_rest.next(), right_rest.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        if left == right {
            number_goes_on = left.is_ascii_digit() && (number_goes_on || left != '0');
            continue;
        }
        match (left.is_alphabetic(), right.is_alphabetic()) {
            (true, true) => return left.cmp(&right),
            (false, false) => {}
            (left_is_letter, right_is_letter) => return left_is_letter.cmp(&right_is_letter),
        }
        // A zero after other digits of a number is an ordinary digit.
        let start = i64::from((left == '0' || right == '0') && number_goes_on);
        let (left_number, left_digits) = leading_number(left_at, start);
        let (right_number, right_digits) = leading_number(right_at, start);
        return left_number.cmp(&right_number).then(left_digits.cmp(&right_digits)).then(left.cmp(&right));
    }
}

/// The number formed by `start` and the digits at the start of `text`, and how many those are.
fn leading_number(text: &str, start: i64) -> (i64, usize) {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold((start, 0), |(number, count), digit| {
        (number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')), count + 1)
    })
}
