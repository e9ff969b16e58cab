//! Formats costs together with their limits.

/// Formats `1,234 (0.1% of 1,000,000)`.
pub fn share(cost: u64, limit: u64) -> String {
    let percent = percent(cost, limit);
    let shown = match percent {
        _ if cost > limit && percent < 1000.0 => format!("OVER THE LIMIT: {percent:.0}% of"),
        _ if cost > limit => format!("OVER THE LIMIT: {} times", grouped(cost / limit)),
        percent if percent > 0.0 && percent < 0.1 => "less than 0.1% of".to_owned(),
        percent => format!("{percent:.1}% of"),
    };
    // The counter is saturated: the cost is at least this.
    let at_least = if cost == u64::MAX { "at least " } else { "" };
    format!("{at_least}{} ({shown} {})", grouped(cost), grouped(limit))
}

/// Formats a number with a comma after every three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub fn percent(cost: u64, limit: u64) -> f64 {
    cost as f64 * 100.0 / limit as f64
}
