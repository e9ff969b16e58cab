//! A text with access by line.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::work;

/// A shared text; the starts of its lines are computed when a line is first requested.
#[derive(Clone)]
pub struct SharedText(Arc<Lines>);

struct Lines {
    text: String,
    /// The first byte of each line.
    starts: OnceLock<Vec<usize>>,
}

impl<T: Into<String>> From<T> for SharedText {
    fn from(text: T) -> Self {
        SharedText(Arc::new(Lines { text: text.into(), starts: OnceLock::new() }))
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0.text
    }
}

impl SharedText {
    /// A line without its line break, by its number from 1.
    pub fn line(&self, number: usize) -> Option<&str> {
        work::step();
        let text = &self.0.text;
        let breaks = || text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let starts = self.0.starts.get_or_init(|| {
            work::bytes(text.len());
            [0].into_iter().chain(breaks()).collect()
        });
        let start = *starts.get(number.checked_sub(1)?)?;
        let end = starts.get(number).map_or(text.len(), |next| next - 1);
        text.get(start..end).map(|line| line.strip_suffix('\r').unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers() {
        let text = SharedText::from("a\r\n\nb");
        assert_eq!([0, 1, 2, 3, 4].map(|number| text.line(number)), [None, Some("a"), Some(""), Some("b"), None]);
    }
}
