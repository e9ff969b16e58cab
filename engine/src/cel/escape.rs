//! Escapes names of properties as CEL identifiers.
//!
//! A property that is not an identifier is reachable under an escaped name: `__dash__` for `-`, `__namespace__` for the
//! reserved word. Source: Kubernetes documentation, "Validation expression", field names.

use std::borrow::Cow;

/// Words that cannot be identifiers.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The escapes for sequences that are not allowed in identifiers.
const SEQUENCES: [(&str, &str); 4] = [("underscores", "__"), ("dot", "."), ("dash", "-"), ("slash", "/")];

/// Whether the name is reserved, so that no variable or function may have it.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The identifier for the property `name`; `None` if it has none.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    if name.chars().all(plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        match SEQUENCES.iter().find(|(_, sequence)| rest.starts_with(sequence)) {
            Some((word, sequence)) => {
                escaped.push_str("__");
                escaped.push_str(word);
                escaped.push_str("__");
                rest = &rest[sequence.len()..];
            }
            None if plain(first) => {
                escaped.push(first);
                rest = &rest[1..];
            }
            None => return None,
        }
    }
    Some(Cow::Owned(escaped))
}

/// The property of the identifier `escaped`; `None` if it contains an unknown escape.
pub fn unescape(escaped: &str) -> Option<Cow<'_, str>> {
    if !escaped.contains("__") {
        return Some(Cow::Borrowed(escaped));
    }
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((at, word)) = next_escape(rest) {
        name.push_str(&rest[..at]);
        let length = word.len() + 4;
        match SEQUENCES.iter().find(|(known, _)| *known == word) {
            Some((_, sequence)) => name.push_str(sequence),
            None if RESERVED.contains(&word) && length == escaped.len() => name.push_str(word),
            None => return None,
        }
        rest = &rest[at + length..];
    }
    name.push_str(rest);
    Some(Cow::Owned(name))
}

/// The start of the first `__word__`, and its word, which contains no underscore.
fn next_escape(text: &str) -> Option<(usize, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("__") {
        let at = from + found;
        let word = &text[at + 2..];
        let end = word.find('_').unwrap_or(word.len());
        if end > 0 && word[end..].starts_with("__") {
            return Some((at, &word[..end]));
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_found_again() {
        for (name, escaped) in [
            ("replicas", Some("replicas")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("___", Some("__underscores___")),
            ("", None),
            ("1st", None),
            ("a b", None),
            ("ä", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
            if let Some(escaped) = escaped {
                assert_eq!(unescape(escaped).as_deref(), Some(name), "{escaped}");
            }
        }
        assert_eq!(unescape("__what__"), None);
        assert_eq!(unescape("x__if__"), None);
        assert_eq!(unescape("a-b").as_deref(), Some("a-b"));
    }
}
