//! Ranges of keys.

/// A range of the keys of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    from: Box<str>,
    /// The first key after the range; `None` if it has all that follow.
    end: Option<Box<str>>,
}

impl KeyRange {
    /// The keys that begin with `prefix`.
    pub fn of(prefix: &str) -> Self {
        KeyRange { from: prefix.into(), end: end_of(prefix).map(Into::into) }
    }

    /// One key.
    pub fn one(key: &str) -> Self {
        KeyRange { from: key.into(), end: Some(after(key).into()) }
    }

    /// The keys of the range from `start` on.
    pub fn starting(self, start: &str) -> Self {
        if *start > *self.from { KeyRange { from: start.into(), ..self } } else { self }
    }

    /// The keys of the range before `end`.
    pub(super) fn before(self, end: &str) -> Self {
        KeyRange { end: Some(end.into()), ..self }
    }

    /// Whether it has a key.
    pub fn has(&self, key: &str) -> bool {
        *key >= *self.from && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// The first key.
    pub(super) fn from(&self) -> &str {
        &self.from
    }

    /// The first key after the range; `None` if it has all that follow.
    pub(super) fn end(&self) -> Option<&str> {
        self.end.as_deref()
    }
}

/// The first key after `key`.
pub(super) fn after(key: &str) -> String {
    format!("{key}\0")
}

/// The end of the texts that begin with `prefix`: the first text that is greater than all of them, if there is one.
pub(super) fn end_of(prefix: &str) -> Option<String> {
    let (head, last) = prefix.char_indices().rev().find(|(_, last)| *last < char::MAX)?;
    let next = (last..=char::MAX).nth(1)?;
    Some(format!("{}{next}", &prefix[..head]))
}
