//! Selectors of fields.

use super::SelectorError;
use super::labels::requirement;
use crate::value::Value;
use crate::work;

/// Allocators hand out memory in multiples of about so many bytes.
const BLOCK_BYTES: usize = 16;

/// Selects objects by fields; the default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Box<[Term]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    field: Box<str>,
    value: Box<str>,
    equal: bool,
}

impl FieldSelector {
    /// Reads `a=b,c!=d,e==f`; a backslash escapes a comma, an equals sign and a backslash.
    ///
    /// # Errors
    ///
    /// The text is not a selector.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(text);
        work::bytes(text.len());
        work::steps(parts.len());
        // The error reported is that of the first part in byte order.
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (field, equal, value) =
                split_operator(part).ok_or_else(|| SelectorError::Term { text: text.into(), part: part.into() })?;
            terms.push(Term { field: field.into(), value: unescape(value)?.into(), equal });
        }
        // A term without field and value selects everything.
        terms.retain(|term| !term.field.is_empty() || !term.value.is_empty());
        Ok(FieldSelector { terms: terms.into() })
    }

    /// Reads the requirements of an access review, each with a `key`, an `operator` (`In` or `NotIn`) and one value.
    pub fn of_requirements<'v>(requirements: impl Iterator<Item = &'v Value>) -> Self {
        let terms = requirements.map(|requirement| {
            work::step();
            let value = requirement.items_at(&["values"]).first().and_then(Value::as_str).unwrap_or_default();
            Term {
                field: requirement.str_at(&["key"]).into(),
                value: value.into(),
                equal: requirement.str_at(&["operator"]) == "In",
            }
        });
        FieldSelector { terms: terms.collect() }
    }

    /// As the requirements of an access review.
    pub fn requirements(&self) -> Vec<Value> {
        work::steps(self.terms.len());
        let requirement = |term: &Term| {
            let operator = if term.equal { "In" } else { "NotIn" };
            requirement(&term.field, operator, [&*term.value])
        };
        self.terms.iter().map(requirement).collect()
    }

    /// Selects the objects whose field has a value.
    pub fn exactly(field: &str, value: &str) -> Self {
        FieldSelector { terms: Box::new([Term { field: field.into(), value: value.into(), equal: true }]) }
    }

    /// How many bytes of memory it holds.
    pub fn size_bytes(&self) -> usize {
        work::steps(self.terms.len());
        let block = |text: &str| text.len().next_multiple_of(BLOCK_BYTES);
        self.terms.iter().map(|term| size_of::<Term>() + block(&term.field) + block(&term.value)).sum()
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The fields that it selects by.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| &*term.field)
    }

    /// Its terms: a field, a value, and whether the field must have that value; otherwise it must not.
    pub fn terms(&self) -> impl Iterator<Item = (&str, &str, bool)> {
        self.terms.iter().map(|term| (&*term.field, &*term.value, term.equal))
    }

    /// Whether it selects an object whose fields `field` returns.
    pub fn matches(&self, field: impl Fn(&str) -> String) -> bool {
        work::steps(self.terms.len());
        self.terms.iter().all(|term| (*field(&term.field) == *term.value) == term.equal)
    }

    /// The value that `field` must have, if there is one.
    pub fn requires_exact(&self, field: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && *term.field == *field).map(|term| &*term.value)
    }
}

/// Splits at commas that are not escaped with a backslash.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_operator(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find("!=").into_iter().chain(term.find('=')).min()?;
    let (field, rest) = term.split_at(at);
    ["!=", "==", "="].into_iter().find_map(|operator| Some((field, operator != "!=", rest.strip_prefix(operator)?)))
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => return Err(SelectorError::Escape(other)),
            },
            ',' | '=' => return Err(SelectorError::Unescaped(character)),
            other => plain.push(other),
        }
    }
    Ok(plain)
}
