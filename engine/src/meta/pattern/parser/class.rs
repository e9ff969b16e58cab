//! Classes of characters: `[…]`, `\d`, `\pL`, `[:alpha:]`.

use std::collections::hash_map::Entry;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::PatternParser;
use super::characters::{class_char, next_char, up_to};
use super::messages::{BAD_RANGE, error};
use crate::meta::pattern::PatternError;
use crate::meta::pattern::piece::Ranges;
use crate::meta::pattern::unicode::{canonical_name, folded, posix_ranges, set_between, unicode_group};
use crate::work;

impl<'s> PatternParser<'s> {
    /// `[…]`.
    pub(super) fn class(&mut self, text: &'s str) -> Result<&'s str, PatternError> {
        let mut rest = &text[1..];
        let negative = rest.starts_with('^');
        if negative {
            rest = &rest[1..];
        }
        // One union at the end, as adding many pieces one by one would take quadratic time. Groups are folded already.
        let mut ranges = Ranges::default();
        let mut loose: Vec<ClassUnicodeRange> = Vec::new();
        let mut first = true;
        while first || !rest.starts_with(']') {
            work::step();
            first = false;
            if let Some((set, after)) = self.posix_class(rest)? {
                ranges.add(&set);
                rest = after;
                continue;
            }
            if let Some((set, after)) = self.unicode_class(rest)? {
                ranges.add(&set);
                rest = after;
                continue;
            }
            if let Some((set, after)) = self.perl_class(rest) {
                ranges.add(&set);
                rest = after;
                continue;
            }
            let start = rest;
            let (low, after) = class_char(rest, text)?;
            rest = after;
            let mut high = low;
            if let [b'-', next, ..] = rest.as_bytes()
                && *next != b']'
            {
                (high, rest) = class_char(&rest[1..], text)?;
                if high < low {
                    return Err(error(BAD_RANGE, up_to(start, rest)));
                }
            }
            loose.extend(set_between(low, high).ranges());
        }
        let mut set = ClassUnicode::new(loose);
        if self.flags.fold {
            set = folded(set);
        }
        set.union(&ranges.into_set());
        if negative {
            set.negate();
        }
        self.set(set)?;
        Ok(&rest[1..])
    }

    /// `[:alpha:]`, within a class.
    fn posix_class(&self, text: &'s str) -> Result<Option<(ClassUnicode, &'s str)>, PatternError> {
        let Some(inner) = text.strip_prefix("[:").filter(|inner| inner.len() >= self.posix_end) else {
            return Ok(None);
        };
        let Some(end) = inner.find(":]") else { return Ok(None) };
        let (whole, rest) = text.split_at(end + 4);
        let name = &whole[2..whole.len() - 2];
        let (negative, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let ranges = posix_ranges(name).ok_or_else(|| error(BAD_RANGE, whole))?;
        Ok(Some((self.ascii_group(ranges, negative), rest)))
    }

    /// `\d`, `\S` and so on.
    pub(super) fn perl_class(&self, text: &'s str) -> Option<(ClassUnicode, &'s str)> {
        let [b'\\', letter, ..] = text.as_bytes() else { return None };
        let ranges: &[(char, char)] = match letter.to_ascii_lowercase() {
            b'd' => &[('0', '9')],
            b's' => &[('\t', '\n'), ('\u{c}', '\r'), (' ', ' ')],
            b'w' => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            _ => return None,
        };
        Some((self.ascii_group(ranges, letter.is_ascii_uppercase()), &text[2..]))
    }

    fn ascii_group(&self, ranges: &[(char, char)], negative: bool) -> ClassUnicode {
        let mut set = ClassUnicode::new(ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)));
        if self.flags.fold {
            set = folded(set);
        }
        if negative {
            set.negate();
        }
        set
    }

    /// `\pL`, `\p{Greek}`, `\P{^Lu}`.
    pub(super) fn unicode_class(&mut self, text: &'s str) -> Result<Option<(ClassUnicode, &'s str)>, PatternError> {
        let [b'\\', letter @ (b'p' | b'P'), ..] = text.as_bytes() else { return Ok(None) };
        let (char, mut rest) = next_char(&text[2..]);
        let mut name = up_to(&text[2..], rest);
        if char == '{' as u32 {
            let end = text.find('}').ok_or_else(|| error(BAD_RANGE, text))?;
            (name, rest) = (&text[3..end], &text[end + 1..]);
        }
        let (inverse, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let unknown = || error(BAD_RANGE, up_to(text, rest));
        let mut set = match self.groups.entry((canonical_name(name), self.flags.fold)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let (name, fold) = new.key();
                let set = unicode_group(name, *fold).ok_or_else(unknown)?;
                new.insert(set).clone()
            }
        };
        if inverse != (*letter == b'P') {
            set.negate();
        }
        Ok(Some((set, rest)))
    }
}
