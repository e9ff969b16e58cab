//! Texts of columns.
//!
//! Source: `pkg/printers/internalversion`, release 1.37.

/// How many items of a list a column shows.
const SHOWN_MAX: usize = 3;

/// The first items with commas between them, and how many more there are; `empty` if there are none.
pub fn listed(items: impl Iterator<Item = String>, empty: &str) -> String {
    let items: Vec<String> = items.collect();
    match items.len() {
        0 => empty.to_owned(),
        count if count > SHOWN_MAX => format!("{} + {} more...", items[..SHOWN_MAX].join(","), count - SHOWN_MAX),
        _ => items.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_show_three_items() {
        let items = |count: usize| listed((0..count).map(|item| item.to_string()), "<unset>");
        assert_eq!((items(0), items(3), items(5)), ("<unset>".into(), "0,1,2".into(), "0,1,2 + 2 more...".into()));
    }
}
