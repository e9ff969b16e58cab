//! URLs: `url(…)`, `isURL(…)` and functions for their parts.

use super::arguments::{opaque, text};
use super::network::downcast;
use crate::cel::cost::Cost;
use crate::cel::cost::formula::{PARSE, TRAVERSE};
use crate::cel::eval::map::Map;
use crate::cel::eval::value::{Opaque, pointer_syntax};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Implementation, Overload};
use crate::cel::types::Type::{self, Bool};
use crate::meta::url::{self, Url};

pub(super) fn functions() -> Vec<Function> {
    let query_type = Type::map(Type::String, Type::list(Type::String));
    vec![
        part("getEscapedPath", "url_get_escaped_path", Type::String, |_, arguments| {
            Ok(Value::string(url(arguments)?.escaped_path.as_str()))
        }),
        part("getHost", "url_get_host", Type::String, |_, arguments| Ok(Value::string(url(arguments)?.host.as_str()))),
        part("getHostname", "url_get_hostname", Type::String, |_, arguments| {
            Ok(Value::string(url(arguments)?.host_and_port().0))
        }),
        part("getPort", "url_get_port", Type::String, |_, arguments| {
            Ok(Value::string(url(arguments)?.host_and_port().1))
        }),
        part("getQuery", "url_get_query", query_type, |_, arguments| Ok(Value::Map(query(url(arguments)?)))),
        part("getScheme", "url_get_scheme", Type::String, |_, arguments| {
            Ok(Value::string(url(arguments)?.scheme.as_str()))
        }),
        Function::new(
            "isURL",
            [Overload::global("is_url_string", [Type::String], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(url::parse_request(text(arguments, 0)?).is_ok()))
            })],
        ),
        Function::new(
            "url",
            [Overload::global("string_to_url", [Type::String], url_type(), TRAVERSE, |_, arguments| {
                parse(text(arguments, 0)?).map(Value::opaque)
            })
            .before(32, PARSE)],
        ),
    ]
}

fn url_type() -> Type {
    Type::object("kubernetes.URL")
}

fn part(name: &'static str, id: &'static str, result: Type, run: Implementation) -> Function {
    Function::new(name, [Overload::member(id, [url_type()], result, Cost::One, run)])
}

/// `kubernetes.URL`
#[derive(Debug)]
struct UrlValue(Url);

impl Opaque for UrlValue {
    fn ty(&self) -> Type {
        url_type()
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let UrlValue(other) = downcast(other)?;
        Some(self.0.to_string() == other.to_string())
    }

    fn go_type(&self) -> &'static str {
        "cel.URL"
    }

    fn native(&self) -> (&'static str, String) {
        const NATIVE: &str = "*url.URL";
        (NATIVE, pointer_syntax(NATIVE))
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }
}

fn url<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Url, EvalError> {
    opaque::<UrlValue>(arguments, 0).map(|UrlValue(url)| url)
}

/// Parses an absolute URL or path. The fragment is split off only after the text has been accepted as one.
fn parse(text: &str) -> Result<UrlValue, EvalError> {
    let parsed = url::parse_request(text).and_then(|_| url::parse(text));
    parsed
        .map(UrlValue)
        .map_err(|error| EvalError::new(format!("URL parse error during conversion from string: {error}")))
}

/// The query parameters, each with its values.
fn query<'a>(url: &Url) -> Map<'a> {
    let mut parameters: Vec<(String, Vec<Value<'a>>)> = Vec::new();
    let mut sorted = url.query_parameters();
    sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
    for (name, value) in sorted {
        let value = Value::string(value);
        match parameters.last_mut() {
            Some((last, values)) if *last == name => values.push(value),
            _ => parameters.push((name, vec![value])),
        }
    }
    Map::owned(parameters.into_iter().map(|(name, values)| (Value::string(name), Value::texts(values))))
}
