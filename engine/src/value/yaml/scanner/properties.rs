//! Directives, and the properties of a node: anchors, aliases and tags.

use super::{Scanned, YamlScanner, YamlTokenKind};
use crate::value::yaml::source::Mark;

impl YamlScanner {
    pub(super) fn directive(&mut self) -> Scanned {
        self.close_blocks(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        self.source.skip(1);
        let name = self.word();
        if name.is_empty() {
            return self.fault(start, "could not find expected directive name");
        }
        if !self.source.is_blank_or_end(0) {
            return self.fault(start, "found unexpected non-alphabetical character");
        }
        let kind = match name.as_str() {
            "YAML" => {
                self.source.skip_blanks();
                let major = self.version_number(start)?;
                if self.source.peek(0) != '.' {
                    return self.fault(start, "did not find expected digit or '.' character");
                }
                self.source.skip(1);
                YamlTokenKind::VersionDirective(major, self.version_number(start)?)
            }
            "TAG" => {
                self.source.skip_blanks();
                let handle = self.tag_handle(true, start)?;
                if !self.source.is_blank(0) {
                    return self.fault(start, "did not find expected whitespace");
                }
                self.source.skip_blanks();
                let prefix = self.tag_uri(None, start)?;
                if !self.source.is_blank_or_end(0) {
                    return self.fault(start, "did not find expected whitespace or line break");
                }
                YamlTokenKind::TagDirective { handle, prefix }
            }
            _ => return self.fault(start, "found unknown directive name"),
        };
        self.end_line(start)?;
        self.push(start, kind);
        Ok(())
    }

    /// Reads the rest of a line, which may only be a comment, and its line break.
    pub(super) fn end_line(&mut self, context: Mark) -> Scanned {
        self.source.skip_blanks();
        self.source.skip_comment();
        if !self.source.is_break_or_end(0) {
            return self.fault(context, "did not find expected comment or line break");
        }
        self.source.take_break();
        Ok(())
    }

    /// A number of one or two digits.
    fn version_number(&mut self, context: Mark) -> Scanned<u8> {
        let mut number = 0;
        let mut digits = 0;
        while let Some(digit) = self.source.peek(0).to_digit(10) {
            digits += 1;
            if digits > 2 {
                return self.fault(context, "found extremely long version number");
            }
            number = number * 10 + digit as u8;
            self.source.skip(1);
        }
        if digits == 0 { self.fault(context, "did not find expected version number") } else { Ok(number) }
    }

    /// ASCII letters, digits, `_` and `-`.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' = self.source.peek(0) {
            word.push(self.source.take());
        }
        word
    }

    pub(super) fn anchor(&mut self, kind: fn(String) -> YamlTokenKind) -> Scanned {
        self.start_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        self.source.skip(1);
        let name = self.word();
        let ends_well = self.source.is_blank_or_end(0)
            || matches!(self.source.peek(0), '?' | ':' | ',' | ']' | '}' | '%' | '@' | '`');
        if name.is_empty() || !ends_well {
            return self.fault(start, "did not find expected alphabetic or numeric character");
        }
        self.push(start, kind(name));
        Ok(())
    }

    /// `!<uri>`, `!handle!suffix`, `!suffix` or `!`.
    pub(super) fn tag(&mut self) -> Scanned {
        self.start_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        let (handle, suffix) = if self.source.peek(1) == '<' {
            self.source.skip(2);
            let suffix = self.tag_uri(None, start)?;
            if self.source.peek(0) != '>' {
                return self.fault(start, "did not find the expected '>'");
            }
            self.source.skip(1);
            (String::new(), suffix)
        } else {
            let handle = self.tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.tag_uri(None, start)?;
                (handle, suffix)
            } else {
                match self.tag_uri(Some(&handle[1..]), start)? {
                    suffix if suffix.is_empty() => (suffix, "!".to_owned()),
                    suffix => ("!".to_owned(), suffix),
                }
            }
        };
        if !self.source.is_blank_or_end(0) {
            return self.fault(start, "did not find expected whitespace or line break");
        }
        self.push(start, YamlTokenKind::Tag { handle, suffix });
        Ok(())
    }

    /// `!`, `!!`, `!word!`; outside a directive also `!word`, which is then the start of a suffix.
    fn tag_handle(&mut self, in_directive: bool, context: Mark) -> Scanned<String> {
        if self.source.peek(0) != '!' {
            return self.fault(context, "did not find expected '!'");
        }
        self.source.skip(1);
        let mut handle = format!("!{}", self.word());
        if self.source.peek(0) == '!' {
            handle.push(self.source.take());
        } else if in_directive && handle != "!" {
            return self.fault(context, "did not find expected '!'");
        }
        Ok(handle)
    }

    /// A URI; `head` is the part already read, and allows the rest to be empty.
    fn tag_uri(&mut self, head: Option<&str>, context: Mark) -> Scanned<String> {
        let mut uri = head.unwrap_or_default().as_bytes().to_vec();
        let mut is_there = head.is_some();
        loop {
            match self.source.peek(0) {
                '%' => self.uri_escape(context, &mut uri)?,
                sign if sign.is_ascii_alphanumeric() || "_-;/?:@&=+$,.!~*'()[]".contains(sign) => {
                    uri.push(sign as u8);
                    self.source.skip(1);
                }
                _ => break,
            }
            is_there = true;
        }
        if is_there {
            Ok(String::from_utf8_lossy(&uri).into_owned())
        } else {
            self.fault(context, "did not find expected tag URI")
        }
    }

    /// A character as `%C3%A9`.
    fn uri_escape(&mut self, context: Mark, uri: &mut Vec<u8>) -> Scanned {
        let mut width = 0;
        let mut read = 0;
        while read == 0 || read < width {
            let (high, low) = (self.source.peek(1).to_digit(16), self.source.peek(2).to_digit(16));
            let ('%', Some(high), Some(low)) = (self.source.peek(0), high, low) else {
                return self.fault(context, "did not find URI escaped octet");
            };
            let octet = (high * 16 + low) as u8;
            if read > 0 && octet & 0xc0 != 0x80 {
                return self.fault(context, "found an incorrect trailing UTF-8 octet");
            }
            if read == 0 {
                width = match octet {
                    0x00..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => return self.fault(context, "found an incorrect leading UTF-8 octet"),
                };
            }
            uri.push(octet);
            self.source.skip(3);
            read += 1;
        }
        Ok(())
    }
}
