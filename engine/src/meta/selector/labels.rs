//! Selectors of labels.

use std::collections::BTreeSet;

use super::super::field::{Error, ErrorList, Path};
use super::super::names::{is_qualified_name, is_valid_label_value};
use super::super::object_meta;
use super::SelectorError;
use crate::object;
use crate::value::{Key, Map, Value, json};
use crate::work;

/// Selects objects by their labels; the default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// Sorted by key; those of one key in the order of the text.
    requirements: Box<[Requirement]>,
    /// How many labels an object must have to be selected.
    required: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: Key,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(LabelValues),
    NotIn(LabelValues),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// Values of labels. Most are so short that they have no memory of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelValues {
    One(Key),
    /// Sorted, each once.
    Many(Box<[Key]>),
}

impl LabelValues {
    fn keys(&self) -> &[Key] {
        match self {
            LabelValues::One(value) => std::slice::from_ref(value),
            LabelValues::Many(values) => values,
        }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.keys().iter().map(Key::as_str)
    }

    fn contains(&self, value: &str) -> bool {
        self.keys().binary_search_by(|own| own.as_str().cmp(value)).is_ok()
    }
}

impl Requirement {
    /// Whether only objects with the label are selected.
    fn needs_label(&self) -> bool {
        !matches!(self.test, Test::NotIn(_) | Test::Absent)
    }

    /// Whether a label with this value meets it.
    fn allows(&self, value: &str) -> bool {
        let number = || value.parse::<i64>();
        match &self.test {
            Test::In(values) => values.contains(value),
            Test::NotIn(values) => !values.contains(value),
            Test::Exists => true,
            Test::Absent => false,
            Test::Greater(than) => number().is_ok_and(|number| number > *than),
            Test::Less(than) => number().is_ok_and(|number| number < *than),
        }
    }
}

impl<'v> FromIterator<&'v str> for LabelValues {
    fn from_iter<I: IntoIterator<Item = &'v str>>(values: I) -> Self {
        let mut sorted: BTreeSet<&str> = values.into_iter().collect();
        match sorted.pop_first() {
            Some(only) if sorted.is_empty() => LabelValues::One(only.into()),
            first => LabelValues::Many(first.into_iter().chain(sorted).map(Key::from).collect()),
        }
    }
}

impl SelectorError {
    fn unexpected(found: SelectorToken<'_>, expected: &'static str) -> Self {
        SelectorError::Unexpected { found: found.text().to_owned(), expected }
    }
}

impl LabelSelector {
    fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        let of_keys = requirements.chunk_by(|one, other| one.key == other.key);
        let required = of_keys.filter(|of_key| of_key.iter().any(Requirement::needs_label)).count();
        LabelSelector { requirements: requirements.into(), required }
    }

    /// Reads `a=b,c!=d,e in (f,g),h notin (),!i,j,k>1,l<2`.
    ///
    /// # Errors
    ///
    /// The text is not a selector: `found ',', expected: identifier after ','`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = SelectorParser { tokens: tokens(text), at: 0 };
        Ok(LabelSelector::of(parser.selector()?))
    }

    /// The errors of a `LabelSelector` of `meta.k8s.io` at `path`. The values of expressions are only checked with
    /// `checks_values`: not if they were invalid before.
    ///
    /// Source: `k8s.io/apimachinery/pkg/apis/meta/v1/validation`, release 1.37.
    pub fn validate(selector: &Value, checks_values: bool, path: &Path<'_>) -> ErrorList {
        let labels = selector.get("matchLabels").unwrap_or(&Value::Null);
        let mut errors = object_meta::validate_labels(labels, &path.child("matchLabels"));
        let expressions = path.child("matchExpressions");
        for (index, requirement) in selector.items_at(&["matchExpressions"]).iter().enumerate() {
            let path = expressions.index(index);
            let values: Vec<_> = requirement.items_at(&["values"]).iter().filter_map(Value::as_str).collect();
            match requirement.str_at(&["operator"]) {
                "In" | "NotIn" if values.is_empty() => {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    errors.push(Error::required(&path.child("values"), why));
                }
                "Exists" | "DoesNotExist" if !values.is_empty() => {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    errors.push(Error::forbidden(&path.child("values"), why));
                }
                "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
                other => {
                    // An operator has a named type, so it is shown as JSON.
                    let shown = json::encode_to_string(&Value::from(other));
                    let error = Error::invalid(&path.child("operator"), other, "not a valid selector operator");
                    errors.push(error.shown_as(shown));
                }
            }
            let key = requirement.str_at(&["key"]);
            let faults = is_qualified_name(key).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&path.child("key"), key, fault)));
            let at = path.child("values");
            for (index, value) in values.into_iter().enumerate().filter(|_| checks_values) {
                let faults = is_valid_label_value(value).into_iter();
                errors.extend(faults.map(|fault| Error::invalid(&at.index(index), value, fault)));
            }
        }
        errors
    }

    /// Decodes a `LabelSelector` of `meta.k8s.io` that was validated; the empty one selects everything.
    ///
    /// # Errors
    ///
    /// An operator that does not exist.
    pub fn decode(selector: &Value) -> Result<Self, SelectorError> {
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::iter);
        let mut requirements: Vec<_> = labels
            .map(|(key, value)| {
                work::step();
                Requirement { key: key.into(), test: Test::In(value.as_str().into_iter().collect()) }
            })
            .collect();
        for expression in selector.items_at(&["matchExpressions"]) {
            let values = expression.items_at(&["values"]).iter();
            work::steps(1 + values.len());
            let values = values.filter_map(Value::as_str).collect();
            let test = match expression.str_at(&["operator"]) {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Absent,
                other => return Err(SelectorError::Operator(other.to_owned())),
            };
            requirements.push(Requirement { key: expression.str_at(&["key"]).into(), test });
        }
        Ok(LabelSelector::of(requirements))
    }

    /// As the requirements of an access review, sorted by key. Numeric comparisons have no such form.
    pub fn requirements(&self) -> Vec<Value> {
        work::steps(self.requirements.len());
        let encoded = self.requirements.iter().filter_map(|Requirement { key, test }| match test {
            Test::In(values) => Some(requirement(key, "In", values.iter())),
            Test::NotIn(values) => Some(requirement(key, "NotIn", values.iter())),
            Test::Exists => Some(requirement(key, "Exists", [])),
            Test::Absent => Some(requirement(key, "DoesNotExist", [])),
            Test::Greater(_) | Test::Less(_) => None,
        });
        encoded.collect()
    }

    /// How many bytes of memory it holds.
    pub fn size_bytes(&self) -> usize {
        let of_test = |test: &Test| match test {
            Test::In(values) | Test::NotIn(values) => values.keys().iter().map(key_bytes).sum(),
            Test::Exists | Test::Absent | Test::Greater(_) | Test::Less(_) => 0,
        };
        let sizes = self.requirements.iter().map(|Requirement { key, test }| {
            work::step();
            // The key is a part of the requirement, unless it is long.
            size_of::<Test>() + key_bytes(key) + of_test(test)
        });
        sizes.sum()
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Labels that an object must have to be selected, with the value if there is only one. There may be more
    /// requirements.
    pub fn required(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.requirements.iter().filter_map(|Requirement { key, test }| match test {
            Test::In(values) => {
                let mut values = values.iter();
                Some((key.as_str(), values.next().filter(|_| values.next().is_none())))
            }
            Test::Exists | Test::Greater(_) | Test::Less(_) => Some((key.as_str(), None)),
            Test::NotIn(_) | Test::Absent => None,
        })
    }

    /// Whether it selects an object with these labels. It takes as many steps as there are labels or requirements,
    /// whichever are fewer, and those for repeated keys.
    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        if labels.count() < self.requirements.len() {
            return self.allows_all(labels.pairs());
        }
        self.requirements.iter().all(|requirement| {
            work::step();
            match labels.value(&requirement.key) {
                Some(value) => requirement.allows(value),
                None => !requirement.needs_label(),
            }
        })
    }

    /// [`LabelSelector::matches`], which looks at the requirements about these labels only.
    fn allows_all<'l>(&self, labels: impl Iterator<Item = (&'l str, &'l str)>) -> bool {
        let mut missing = self.required;
        for (name, value) in labels {
            let from = self.requirements.partition_point(|requirement| requirement.key.as_str() < name);
            let about = self.requirements[from..].iter().take_while(|requirement| requirement.key.as_str() == name);
            let mut is_needed = false;
            work::step();
            for requirement in about {
                work::step();
                if !requirement.allows(value) {
                    return false;
                }
                is_needed |= requirement.needs_label();
            }
            missing = missing.saturating_sub(usize::from(is_needed));
        }
        missing == 0
    }
}

/// The labels of an object, each name once.
pub trait Labels {
    /// How many they are, or a few more.
    fn count(&self) -> usize;

    /// The value of the label `name`.
    fn value(&self, name: &str) -> Option<&str>;

    /// Names and values.
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)>;
}

/// Others than texts are not labels.
impl Labels for Map {
    fn count(&self) -> usize {
        self.len()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter_map(|(name, value)| Some((name, value.as_str()?)))
    }
}

/// The field `labels` of an object, which may be absent.
impl Labels for Option<&Value> {
    fn count(&self) -> usize {
        self.and_then(Value::as_object).map_or(0, Map::len)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.and_then(Value::as_object)?.value(name)
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.and_then(Value::as_object).into_iter().flat_map(Map::pairs)
    }
}

/// Sorted by name.
impl<N: AsRef<str>, V: AsRef<str>> Labels for [(N, V)] {
    fn count(&self) -> usize {
        self.len()
    }

    fn value(&self, name: &str) -> Option<&str> {
        let at = self.binary_search_by(|(known, _)| known.as_ref().cmp(name)).ok()?;
        Some(self[at].1.as_ref())
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

/// How many bytes a text takes: a long one is in memory of its own.
fn key_bytes(key: &Key) -> usize {
    size_of::<Key>() + if key.is_heap_allocated() { key.len() } else { 0 }
}

/// A requirement of an access review.
pub(super) fn requirement<'v>(key: &str, operator: &str, values: impl IntoIterator<Item = &'v str>) -> Value {
    let values: Vec<Value> = values.into_iter().map(Value::from).collect();
    work::steps(values.len());
    let mut requirement = object! { "key" => key, "operator" => operator };
    if !values.is_empty() {
        requirement.make_object().insert("values", Value::Array(values));
    }
    requirement
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SelectorToken<'t> {
    Word(&'t str),
    Symbol(&'static str),
    End,
}

impl<'t> SelectorToken<'t> {
    fn text(self) -> &'t str {
        match self {
            SelectorToken::Word(text) => text,
            SelectorToken::Symbol(text) => text,
            SelectorToken::End => "",
        }
    }

    fn begins_requirement(self) -> bool {
        matches!(self, SelectorToken::Word(_) | SelectorToken::Symbol("!"))
    }
}

/// The longer ones first.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", "(", ")", ","];

/// The tokens; the last one is the end. A NUL ends a token and is dropped, or ends everything if a token would begin
/// there.
fn tokens(text: &str) -> Vec<SelectorToken<'_>> {
    let is_space = |character: char| matches!(character, ' ' | '\t' | '\r' | '\n');
    let ends_word = |character: char| is_space(character) || "=!(),><\0".contains(character);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() && !rest.starts_with('\0') {
        let token = match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            Some(symbol) => SelectorToken::Symbol(symbol),
            None => SelectorToken::Word(&rest[..rest.find(ends_word).unwrap_or(rest.len())]),
        };
        work::bytes(token.text().len());
        rest = &rest[token.text().len()..];
        rest = rest.strip_prefix('\0').unwrap_or(rest).trim_start_matches(is_space);
        tokens.push(token);
    }
    tokens.push(SelectorToken::End);
    tokens
}

struct SelectorParser<'t> {
    tokens: Vec<SelectorToken<'t>>,
    at: usize,
}

impl<'t> SelectorParser<'t> {
    fn peek(&self) -> SelectorToken<'t> {
        self.tokens.get(self.at).copied().unwrap_or(SelectorToken::End)
    }

    fn take(&mut self) -> SelectorToken<'t> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                SelectorToken::End => return Ok(requirements),
                token if token.begins_requirement() => {}
                other => return Err(SelectorError::unexpected(other, "!, identifier, or 'end of string'")),
            }
            let requirement = self.requirement();
            requirements.push(requirement.map_err(|error| SelectorError::Requirement(Box::new(error)))?);
            match self.take() {
                SelectorToken::End => return Ok(requirements),
                SelectorToken::Symbol(",") => {
                    let next = self.peek();
                    if !next.begins_requirement() {
                        return Err(SelectorError::unexpected(next, "identifier after ','"));
                    }
                }
                other => return Err(SelectorError::unexpected(other, "',' or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek() == SelectorToken::Symbol("!");
        if absent {
            self.at += 1;
        }
        let key = match self.take() {
            SelectorToken::Word(key) => Key::from(key),
            other => return Err(SelectorError::unexpected(other, "identifier")),
        };
        let faults = is_qualified_name(&key);
        if !faults.is_empty() {
            return Err(SelectorError::Key(Box::new(Error::invalid(&Path::ROOT, key.as_str(), faults.join("; ")))));
        }
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        if let SelectorToken::End | SelectorToken::Symbol(",") = self.peek() {
            return Ok(Requirement { key, test: Test::Exists });
        }
        let test = match self.take() {
            SelectorToken::Word("in") => Test::In(checked(&key, self.values()?)?),
            SelectorToken::Word("notin") => Test::NotIn(checked(&key, self.values()?)?),
            SelectorToken::Symbol("=" | "==") => Test::In(checked(&key, LabelValues::from_iter([self.value()?]))?),
            SelectorToken::Symbol("!=") => Test::NotIn(checked(&key, LabelValues::from_iter([self.value()?]))?),
            SelectorToken::Symbol(">") => Test::Greater(number(&key, self.value()?)?),
            SelectorToken::Symbol("<") => Test::Less(number(&key, self.value()?)?),
            other => return Err(SelectorError::unexpected(other, "in, notin, =, ==, !=, gt, lt")),
        };
        Ok(Requirement { key, test })
    }

    /// A single value; it may be missing at the end of a requirement.
    fn value(&mut self) -> Result<&'t str, SelectorError> {
        if let SelectorToken::End | SelectorToken::Symbol(",") = self.peek() {
            return Ok("");
        }
        match self.take() {
            SelectorToken::Word(value) => Ok(value),
            other => Err(SelectorError::unexpected(other, "identifier")),
        }
    }

    /// `(a,b)`, sorted; one or all values may be missing.
    fn values(&mut self) -> Result<LabelValues, SelectorError> {
        match self.take() {
            SelectorToken::Symbol("(") => {}
            other => return Err(SelectorError::NoValues(other.text().to_owned())),
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            SelectorToken::Word(_) | SelectorToken::Symbol(",") => {}
            SelectorToken::Symbol(")") => _ = values.insert(""),
            other => return Err(SelectorError::unexpected(other, "',', ')' or identifier")),
        }
        while self.peek() != SelectorToken::Symbol(")") {
            match self.take() {
                SelectorToken::Word(value) => {
                    values.insert(value);
                    let next = self.peek();
                    if !matches!(next, SelectorToken::Symbol("," | ")")) {
                        return Err(SelectorError::unexpected(next, "',' or ')'"));
                    }
                }
                SelectorToken::Symbol(",") => {
                    if values.is_empty() || matches!(self.peek(), SelectorToken::Symbol("," | ")")) {
                        values.insert("");
                    }
                }
                other => return Err(SelectorError::unexpected(other, "',', or identifier")),
            }
        }
        self.at += 1;
        Ok(values.into_iter().collect())
    }
}

/// The values, if all are valid label values.
fn checked(key: &str, values: LabelValues) -> Result<LabelValues, SelectorError> {
    match value_errors(key, &values) {
        errors if errors.is_empty() => Ok(values),
        errors => Err(SelectorError::Values(errors)),
    }
}

fn number(key: &str, value: &str) -> Result<i64, SelectorError> {
    let number = value.parse();
    let mut errors = ErrorList::new();
    if number.is_err() {
        let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
        errors.push(Error::invalid(&Path::new("values").index(0), value, detail));
    }
    errors.extend(value_errors(key, &LabelValues::from_iter([value])));
    let is_fine = errors.is_empty();
    number.ok().filter(|_| is_fine).ok_or(SelectorError::Values(errors))
}

fn value_errors(key: &str, values: &LabelValues) -> ErrorList {
    let path = Path::new("values");
    let faults = values.iter().enumerate().map(|(index, value)| (index, value, is_valid_label_value(value)));
    faults
        .filter(|(_, _, faults)| !faults.is_empty())
        .map(|(index, value, faults)| Error::invalid(&path.index(index).key(key), value, faults.join("; ")))
        .collect()
}
