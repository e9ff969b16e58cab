//! Queries for the values of an object that a stage checks: the part of jq that kwok's stages use.
//!
//! Input: `.metadata.annotations["a/b"]`, `.spec.containers[0]`, `.status.conditions.[] | select( .type == "Ready" ) |
//! .status`. Output: the values that exist; null does not count.

use crate::value::{Value, json};

/// A text that is not a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the expression `{0}` is not understood: paths as in .status.phase are, .a[\"b\"], .a[0], .a[] and | select(.b == \"c\")"
)]
pub struct QueryError(String);

/// A query, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Query(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field(String),
    Item(usize),
    /// `[]`: all items, or all values.
    All,
    /// `select(QUERY == "text")`, or `!=`.
    Select {
        of: Query,
        is: bool,
        text: String,
    },
}

impl Query {
    /// Errors: the part of the text that can't be parsed.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut parts = Vec::new();
        for step in text.split('|') {
            let step = step.trim();
            match step.strip_prefix("select").map(str::trim).and_then(|rest| rest.strip_prefix('(')?.strip_suffix(')'))
            {
                Some(condition) => parts.push(select(condition, text)?),
                None => path(step, text, &mut parts)?,
            }
        }
        Ok(Query(parts))
    }

    /// The values that it selects.
    pub fn values<'v>(&self, object: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![object];
        for part in &self.0 {
            found = found.into_iter().flat_map(|value| part.values(value)).collect();
        }
        found.retain(|value| !value.is_null());
        found
    }

    /// The values, as text.
    pub fn texts(&self, object: &Value) -> Vec<String> {
        self.values(object).into_iter().map(text_of).collect()
    }
}

impl Part {
    fn values<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Part::Field(name) => value.get(name).into_iter().collect(),
            Part::Item(at) => value.as_array().and_then(|items| items.get(*at)).into_iter().collect(),
            Part::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.iter().map(|(_, value)| value).collect(),
                _ => Vec::new(),
            },
            Part::Select { of, is, text } => {
                let is_equal = of.texts(value).iter().any(|found| found == text);
                if is_equal == *is { vec![value] } else { Vec::new() }
            }
        }
    }
}

/// A value as text; a string is used as it is.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => json::encode_to_string(other),
    }
}

fn misread(text: &str) -> QueryError {
    QueryError(text.to_owned())
}

fn select(condition: &str, whole: &str) -> Result<Part, QueryError> {
    let (of, is, text) = match (condition.split_once("=="), condition.split_once("!=")) {
        (Some((of, text)), _) => (of, true, text),
        (None, Some((of, text))) => (of, false, text),
        _ => return Err(misread(whole)),
    };
    let text = json::decode(text.trim().as_bytes()).map_err(|_| misread(whole))?;
    Ok(Part::Select { of: Query::parse(of.trim())?, is, text: text_of(&text) })
}

/// Reads `.a.b["c"].[0]`.
fn path(step: &str, whole: &str, parts: &mut Vec<Part>) -> Result<(), QueryError> {
    let mut rest = step.strip_prefix('.').ok_or_else(|| misread(whole))?;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            // A name in quotes may contain a bracket.
            let end = match inner.strip_prefix('"') {
                Some(quoted) => quoted.find("\"]").map(|at| at + 2),
                None => inner.find(']'),
            };
            let end = end.ok_or_else(|| misread(whole))?;
            parts.push(match &inner[..end] {
                "" => Part::All,
                index if index.starts_with('"') => {
                    let name = json::decode(index.as_bytes()).map_err(|_| misread(whole))?;
                    Part::Field(text_of(&name))
                }
                index => Part::Item(index.parse().map_err(|_| misread(whole))?),
            });
            rest = &inner[end + 1..];
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if name.is_empty() || !is_name(name) {
                return Err(misread(whole));
            }
            parts.push(Part::Field(name.to_owned()));
            rest = &rest[end..];
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn check(query: &str, expected: &[&str]) {
        let pod = "metadata: {annotations: {a.b/c: x}}\nspec: {count: 3, none: null, list: [{k: 1}, {k: 2}]}\nstatus: {conditions: \
                   [{type: Ready, status: 'True'}, {type: Other, status: 'False'}]}";
        let pod = yaml::decode(pod.as_bytes()).expect("YAML");
        let query = Query::parse(query).expect("it is one");
        assert_eq!(query.texts(&pod), expected, "{query:?}");
    }

    #[test]
    fn a_query_stands_for_the_values_that_are_there() {
        check(".spec.count", &["3"]);
        check(".metadata.annotations[\"a.b/c\"]", &["x"]);
        check(".metadata.annotations.[\"a.b/c\"]", &["x"]);
        check(".spec.list[1].k", &["2"]);
        check(".spec.list[].k", &["1", "2"]);
        check(".spec.none", &[]);
        check(".spec.missing.deeper", &[]);
        check(".status.conditions.[] | select( .type == \"Ready\" ) | .status", &["True"]);
        check(".status.conditions[] | select(.type != \"Ready\") | .status", &["False"]);
        check(".spec.list", &[r#"[{"k":1},{"k":2}]"#]);
        assert_eq!(Query::parse(".").expect("it is one").values(&Value::Int(1)), [&Value::Int(1)]);
    }

    #[test]
    fn what_is_not_understood_is_told() {
        for text in ["", "spec", ".a-b", ".a[", ".a[x]", ".a | length", ".a[] | select(.b)", ".a[] | select(.b == c)"] {
            let why = Query::parse(text).expect_err(text).to_string();
            assert!(why.starts_with("the expression `"), "{why}");
        }
    }
}
