//! Mail addresses as Go's `mail.ParseAddress` reads them: RFC 5322 with display names, comments, groups of one address
//! and encoded words.

use super::address;

/// Whether `text` is one address.
pub fn is_email(text: &str) -> bool {
    let mut parser = EmailParser { rest: text };
    parser.addresses(true).is_some_and(|count| parser.skip_comments() && parser.rest.is_empty() && count == 1)
}

/// The rest of the text. Every failure ends in `None` or `false`.
#[derive(Clone, Copy)]
struct EmailParser<'t> {
    rest: &'t str,
}

/// The decoded content of an encoded word (`=?utf-8?q?x?=`).
enum Word {
    Plain,
    Encoded { empty: bool },
    UnknownCharset,
}

fn is_visible(char: char) -> bool {
    matches!(char, '!'..='~') || !char.is_ascii()
}

fn is_atom(char: char) -> bool {
    is_visible(char) && !"()<>[]:;@\\,\"".contains(char)
}

fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t')
}

impl<'t> EmailParser<'t> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(is_blank);
    }

    fn take(&mut self, char: char) -> bool {
        match self.rest.strip_prefix(char) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// The number of addresses: one, or those of a group.
    fn addresses(&mut self, may_be_group: bool) -> Option<usize> {
        self.skip_blanks();
        if self.rest.is_empty() {
            return None;
        }
        if self.plain_address() {
            self.skip_blanks();
            if self.take('(') {
                let comment = self.comment()?;
                let known = |word: &str| !matches!(decode_word(word), Word::UnknownCharset);
                if !comment.split(is_blank).filter(|word| !word.is_empty()).all(known) {
                    return None;
                }
            }
            return Some(1);
        }
        if !self.rest.starts_with('<') && !self.display_name() {
            return None;
        }
        self.skip_blanks();
        if may_be_group && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.plain_address() && self.take('>')).then_some(1)
    }

    /// The rest of a group after its colon.
    fn group(&mut self) -> Option<usize> {
        self.skip_blanks();
        if self.take(';') {
            return self.skip_comments().then_some(0);
        }
        let mut count = 0;
        loop {
            self.skip_blanks();
            count += self.addresses(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.take(';') {
                return self.skip_comments().then_some(count);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// `local@domain`; consumes nothing on failure.
    fn plain_address(&mut self) -> bool {
        let before = *self;
        let found = self.local_part() && self.take('@') && self.domain();
        if !found {
            *self = before;
        }
        found
    }

    fn local_part(&mut self) -> bool {
        self.skip_blanks();
        if self.rest.starts_with('"') { self.quoted().is_some_and(|empty| !empty) } else { self.dotted_atom() }
    }

    fn domain(&mut self) -> bool {
        self.skip_blanks();
        if !self.take('[') {
            return self.dotted_atom();
        }
        let Some((literal, rest)) = self.rest.split_once(']') else { return false };
        self.rest = rest;
        address::is_ip(literal)
    }

    /// An atom without misplaced dots.
    fn dotted_atom(&mut self) -> bool {
        let is_well_dotted = |atom: &str| !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        self.atom().is_some_and(is_well_dotted)
    }

    fn atom(&mut self) -> Option<&'t str> {
        let rest = self.rest.trim_start_matches(is_atom);
        let atom = &self.rest[..self.rest.len() - rest.len()];
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// A quoted text, and whether it is empty. Consumes nothing unless it is terminated.
    fn quoted(&mut self) -> Option<bool> {
        let mut chars = self.rest.chars();
        chars.next();
        let mut empty = true;
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => {
                    chars.next().filter(|char| is_visible(*char) || is_blank(*char))?;
                }
                char if is_visible(char) || is_blank(char) => {}
                _ => return None,
            }
            empty = false;
        }
        self.rest = chars.as_str();
        Some(empty)
    }

    /// Reads as many words as there are; false if there are none.
    fn display_name(&mut self) -> bool {
        let mut words = 0;
        let mut encoded = false;
        loop {
            if words > 0 && !self.skip_comments() {
                return false;
            }
            self.skip_blanks();
            if self.rest.is_empty() {
                // A missing word at the end is not an error.
                return true;
            }
            let word = if self.rest.starts_with('"') {
                self.quoted().map(|_| Word::Plain)
            } else {
                self.atom().map(decode_word)
            };
            match word {
                Some(Word::Plain) => {
                    words += 1 + usize::from(encoded);
                    encoded = false;
                }
                Some(Word::Encoded { empty }) => encoded |= !empty,
                Some(Word::UnknownCharset) | None => return words > 0 || encoded,
            }
        }
    }

    /// Skips blanks and comments; false if a comment is not terminated.
    fn skip_comments(&mut self) -> bool {
        self.skip_blanks();
        while self.take('(') {
            if self.comment().is_none() {
                return false;
            }
            self.skip_blanks();
        }
        true
    }

    /// The text of a comment, after its opening parenthesis.
    fn comment(&mut self) -> Option<String> {
        let mut depth = 1;
        let mut text = String::new();
        let mut chars = self.rest.chars();
        while let Some(mut char) = chars.next() {
            match char {
                '\\' => char = chars.next().unwrap_or('\\'),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = chars.as_str();
                return Some(text);
            }
            text.push(char);
        }
        None
    }
}

fn decode_word(word: &str) -> Word {
    let inner = word.strip_prefix("=?").and_then(|rest| rest.strip_suffix("?="));
    let parts: Vec<&str> = inner.unwrap_or_default().split('?').collect();
    let [charset, encoding, text] = parts[..] else { return Word::Plain };
    let empty = match encoding {
        "B" | "b" => base64_is_empty(text),
        "Q" | "q" => quoted_printable_is_empty(text),
        _ => None,
    };
    match empty {
        Some(empty) if word.len() >= 8 && !charset.is_empty() => {
            let known = ["utf-8", "iso-8859-1", "us-ascii"].iter().any(|known| known.eq_ignore_ascii_case(charset));
            if known { Word::Encoded { empty } } else { Word::UnknownCharset }
        }
        _ => Word::Plain,
    }
}

/// Whether base64 decodes to nothing; `None` if it does not decode.
fn base64_is_empty(text: &str) -> Option<bool> {
    let text: String = text.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
    (text.is_empty() || super::is_base64(&text)).then_some(text.is_empty())
}

/// Whether the text decodes to nothing; `None` if it does not decode.
fn quoted_printable_is_empty(text: &str) -> Option<bool> {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'=' => {
                let pair = (bytes.next()?, bytes.next()?);
                if !(pair.0.is_ascii_hexdigit() && pair.1.is_ascii_hexdigit()) {
                    return None;
                }
            }
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => {}
            _ => return None,
        }
    }
    Some(text.is_empty())
}
