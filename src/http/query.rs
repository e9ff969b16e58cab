//! Options from the query, typed and validated.
//!
//! Input: the query as it was sent. Output: the options of one verb, or a [`QueryError`] that says which Status it
//! becomes. Unknown parameters are ignored; of a repeated one the first counts, except for `dryRun`, which is a list.
//! Source: answers recorded from apiserver 1.37.

use std::time::Duration;

use crate::meta::duration::{self, DurationError};
use crate::meta::field::{self, ErrorList, Path};
use crate::meta::object_meta::{MANAGER_BYTES_MAX, validate_manager};
use crate::meta::parse_int;
use crate::object;
use crate::registry::FieldValidation;
use crate::value::{Value, is_printable};
use crate::work;

/// The parameters of a query, decoded, in the order they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Parses the part after the `?`. Parameters that don't decode, and those with a semicolon, are left out.
    pub fn parse(query: &str) -> Self {
        work::bytes(query.len());
        let parameters = query
            .split('&')
            .filter(|parameter| !parameter.is_empty() && !parameter.contains(';'))
            .filter_map(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                Some((decode(name)?, decode(value)?))
            })
            .collect();
        Query { parameters }
    }

    /// The first value of `name`.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }

    /// Every value of `name`.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.parameters.iter().filter(move |(parameter, _)| parameter == name).map(|(_, value)| value.as_str())
    }

    /// Whether `name` is given at all, as `?verbose` is.
    pub fn contains(&self, name: &str) -> bool {
        self.first(name).is_some()
    }

    fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// `0` and `false`, in any case, are false; everything else is true, even the empty text.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, QueryError> {
        self.first(name)
            .map(|text| parse_int(text).map_err(|error| QueryError::BadRequest(error.to_string())))
            .transpose()
    }

    /// How long the client wants to wait; zero or less means no limit.
    ///
    /// # Errors The value is not a duration.
    pub fn timeout(&self) -> Result<Option<Duration>, DurationError> {
        let Some(text) = self.first("timeout").filter(|text| !text.is_empty()) else { return Ok(None) };
        let nanoseconds = u64::try_from(duration::parse_go(text)?).unwrap_or_default();
        Ok(Some(Duration::from_nanos(nanoseconds)).filter(|timeout| !timeout.is_zero()))
    }

    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.all(name).map(str::to_owned).collect()
    }
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryError {
    /// 400 with this message.
    BadRequest(String),
    /// 422 about a kind of the group `meta.k8s.io`, without a name.
    Invalid { kind: &'static str, errors: ErrorList },
}

pub(super) fn check(kind: &'static str, errors: ErrorList) -> Result<(), QueryError> {
    if errors.is_empty() { Ok(()) } else { Err(QueryError::Invalid { kind, errors }) }
}

/// What to list, watch, or delete as a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    /// The value in the query; a watch by path leaves it false, and is then validated as a list.
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    pub resource_version: String,
    /// `Exact`, `NotOlderThan` or empty.
    pub resource_version_match: String,
    /// Zero or less means that the client sets no limit.
    pub timeout_seconds: Option<i64>,
    /// Zero or less means all.
    pub limit: i64,
    pub continue_token: String,
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Decodes the options. The selectors stay text: parse them next, as their errors come before [`Self::validate`]'s.
    pub fn decode(query: &Query) -> Result<Self, QueryError> {
        Ok(ListOptions {
            label_selector: query.text("labelSelector"),
            field_selector: query.text("fieldSelector"),
            watch: query.flag("watch").unwrap_or_default(),
            allow_watch_bookmarks: query.flag("allowWatchBookmarks").unwrap_or_default(),
            resource_version: query.text("resourceVersion"),
            resource_version_match: query.text("resourceVersionMatch"),
            timeout_seconds: query.integer("timeoutSeconds")?,
            limit: query.integer("limit")?.unwrap_or_default(),
            continue_token: query.text("continue"),
            send_initial_events: query.flag("sendInitialEvents"),
        })
    }

    /// A watch without a revision or from revision 0, with no other options, starts with the existing objects.
    fn set_defaults(&mut self) {
        let from_anywhere = matches!(self.resource_version.as_str(), "" | "0");
        let unsaid = self.send_initial_events.is_none() && self.resource_version_match.is_empty();
        if self.watch && from_anywhere && unsaid {
            self.send_initial_events = Some(true);
            self.resource_version_match = "NotOlderThan".to_owned();
        }
    }

    /// Sets defaults and checks which options go together, depending on whether watches may list first (`WatchList`).
    pub fn validate(&mut self, lists_in_watches: bool) -> Result<(), QueryError> {
        if lists_in_watches {
            self.set_defaults();
        }
        let errors = if self.watch { self.watch_errors(lists_in_watches) } else { self.list_errors() };
        check("ListOptions", errors)
    }

    /// A watch that begins with the existing objects and marks the end of them: its answer may be compressed.
    pub fn is_watch_list(&self) -> bool {
        self.send_initial_events == Some(true) && self.allow_watch_bookmarks
    }

    fn list_errors(&self) -> ErrorList {
        const MATCH: Path<'static> = Path::new("resourceVersionMatch");
        let mut errors = ErrorList::new();
        let wanted = self.resource_version_match.as_str();
        if !wanted.is_empty() {
            if self.resource_version.is_empty() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(field::Error::forbidden(&MATCH, detail));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(field::Error::forbidden(&MATCH, detail));
            }
            if !matches!(wanted, "Exact" | "NotOlderThan") {
                errors.push(field::Error::not_supported(&MATCH, wanted, &["Exact", "NotOlderThan", ""]));
            }
            if wanted == "Exact" && self.resource_version == "0" {
                let detail = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
                errors.push(field::Error::forbidden(&MATCH, detail));
            }
        }
        if self.send_initial_events.is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(field::Error::forbidden(&Path::new("sendInitialEvents"), detail));
        }
        errors
    }

    fn watch_errors(&self, lists_in_watches: bool) -> ErrorList {
        const MATCH: Path<'static> = Path::new("resourceVersionMatch");
        let mut errors = ErrorList::new();
        let wanted = self.resource_version_match.as_str();
        if self.send_initial_events.is_some() && wanted != "NotOlderThan" {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(field::Error::forbidden(&MATCH, detail));
        }
        if self.send_initial_events.is_some() && !lists_in_watches {
            let detail = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            errors.push(field::Error::forbidden(&Path::new("sendInitialEvents"), detail));
        }
        if !wanted.is_empty() {
            if self.send_initial_events.is_none() {
                let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(field::Error::forbidden(&MATCH, detail));
            }
            if wanted != "NotOlderThan" {
                errors.push(field::Error::not_supported(&MATCH, wanted, &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(field::Error::forbidden(&MATCH, detail));
            }
        }
        errors
    }
}

/// How to read one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GetOptions {
    pub resource_version: String,
}

impl GetOptions {
    pub fn decode(query: &Query) -> Result<Self, QueryError> {
        if query.flag("export") == Some(true) {
            let message = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(QueryError::BadRequest(message.to_owned()));
        }
        Ok(GetOptions { resource_version: query.text("resourceVersion") })
    }
}

/// The options that all writes share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteOptions {
    pub dry_run: bool,
    /// Empty where the User-Agent names the manager.
    pub field_manager: String,
    pub field_validation: FieldValidation,
    /// For apply patches only: take fields from other managers.
    pub force: bool,
    /// As admission sees them, without `force`, which creations and updates don't have.
    pub encoded: Value,
}

impl WriteOptions {
    /// The options of a POST.
    pub fn create(query: &Query) -> Result<Self, QueryError> {
        Self::decode(query, "CreateOptions", ErrorList::new())
    }

    /// The options of a PUT.
    pub fn update(query: &Query) -> Result<Self, QueryError> {
        Self::decode(query, "UpdateOptions", ErrorList::new())
    }

    /// The options of a PATCH; an apply needs a manager, and only an apply may have `force`, even if it is false.
    pub fn patch(query: &Query, is_apply: bool) -> Result<Self, QueryError> {
        let mut errors = ErrorList::new();
        if is_apply && query.text("fieldManager").is_empty() {
            errors.push(field::Error::required(&Path::new("fieldManager"), "is required for apply patch"));
        }
        if !is_apply && query.contains("force") {
            errors.push(field::Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
        }
        Self::decode(query, "PatchOptions", errors)
    }

    fn decode(query: &Query, kind: &'static str, mut errors: ErrorList) -> Result<Self, QueryError> {
        let field_manager = query.text("fieldManager");
        let dry_run = query.list("dryRun");
        let field_validation = query.text("fieldValidation");
        errors.extend(validate_manager(&field_manager, &Path::new("fieldManager")));
        errors.extend(dry_run_errors(&dry_run));
        let level = match field_validation.as_str() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            _ => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(field::Error::not_supported(
                    &Path::new("fieldValidation"),
                    field_validation.as_str(),
                    &supported,
                ));
                FieldValidation::Warn
            }
        };
        check(kind, errors)?;
        let force = query.flag("force").unwrap_or_default();
        let mut encoded = object! {};
        let fields = encoded.make_object();
        if !dry_run.is_empty() {
            fields.insert("dryRun", texts(&dry_run));
        }
        for (name, text) in [("fieldManager", &field_manager), ("fieldValidation", &field_validation)] {
            if !text.is_empty() {
                fields.insert(name, Value::from(text.as_str()));
            }
        }
        Ok(WriteOptions { dry_run: !dry_run.is_empty(), field_manager, field_validation: level, force, encoded })
    }
}

pub(super) fn texts(texts: &[String]) -> Value {
    Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect())
}

/// The manager of a write that names none: the User-Agent up to its first slash, printable and cut to the limit.
pub fn default_field_manager(user_agent: &str) -> String {
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for character in name.chars().filter(|character| is_printable(*character)) {
        if manager.len() + character.len_utf8() > MANAGER_BYTES_MAX {
            break;
        }
        manager.push(character);
    }
    if manager.is_empty() { "unknown".to_owned() } else { manager }
}

pub(super) fn dry_run_errors(values: &[String]) -> ErrorList {
    if values.iter().all(|value| value == "All") {
        ErrorList::new()
    } else {
        let shown: Vec<Value> = values.iter().map(|value| Value::from(value.as_str())).collect();
        field::Error::not_supported(&Path::new("dryRun"), shown, &["All"]).into()
    }
}

/// Which object a row of a Table carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// The value of the parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            IncludeObject::None => "None",
            IncludeObject::Metadata => "Metadata",
            IncludeObject::Object => "Object",
        }
    }

    /// Read only if a Table is requested.
    pub fn decode(query: &Query) -> Result<Self, QueryError> {
        match query.first("includeObject").unwrap_or_default() {
            "" | "Metadata" => Ok(IncludeObject::Metadata),
            "None" => Ok(IncludeObject::None),
            "Object" => Ok(IncludeObject::Object),
            other => {
                let detail = "must be 'Metadata', 'Object', 'None', or empty";
                let error = field::Error::invalid(&Path::new("includeObject"), other, detail);
                Err(QueryError::BadRequest(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// Decodes percent-escapes and plus signs; `None` for an escape that is not valid.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => super::path::hex(rest.next())? << 4 | super::path::hex(rest.next())?,
            b'+' => b' ',
            byte => byte,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(error: QueryError) -> Vec<String> {
        match error {
            QueryError::BadRequest(message) => vec![message],
            QueryError::Invalid { errors, .. } => errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[track_caller]
    fn check_list(query: &str, expected: &[&str]) {
        let result = ListOptions::decode(&Query::parse(query)).and_then(|mut options| options.validate(true));
        assert_eq!(result.err().map(texts).unwrap_or_default(), expected, "{query}");
    }

    #[test]
    fn booleans_are_true_unless_they_are_zero_or_false() {
        for (query, expected) in
            [("watch=yes", true), ("watch", true), ("watch=0", false), ("watch=FALSE", false), ("", false)]
        {
            assert_eq!(ListOptions::decode(&Query::parse(query)).map(|options| options.watch), Ok(expected), "{query}");
        }
    }

    #[test]
    fn integers_err_in_the_words_of_strconv() {
        check_list("limit=", &[r#"strconv.ParseInt: parsing "": invalid syntax"#]);
        check_list("limit=1.5", &[r#"strconv.ParseInt: parsing "1.5": invalid syntax"#]);
        check_list(
            "limit=99999999999999999999",
            &[r#"strconv.ParseInt: parsing "99999999999999999999": value out of range"#],
        );
        check_list("timeoutSeconds=-1&limit=-1", &[]);
    }

    #[test]
    fn list_options_are_checked_in_a_fixed_order() {
        let unless =
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided";
        let with_continue =
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided";
        check_list("resourceVersionMatch=Exact&continue=a", &[unless, with_continue]);
        check_list(
            "resourceVersionMatch=Exact&resourceVersion=0",
            &[r#"resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#],
        );
        check_list("sendInitialEvents=abc", &["sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"]);
    }

    #[test]
    fn a_watch_from_anywhere_starts_with_what_there_is() {
        let mut options = ListOptions { watch: true, resource_version: "0".to_owned(), ..ListOptions::default() };
        assert_eq!(options.validate(true), Ok(()));
        assert_eq!(options.send_initial_events, Some(true));
        check_list(
            "watch=1&continue=abc",
            &["resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"],
        );
    }

    #[test]
    fn only_an_apply_may_have_force_and_must_have_a_manager() {
        let of = |query: &str, is_apply| WriteOptions::patch(&Query::parse(query), is_apply).err().map(texts);
        assert_eq!(of("", true), Some(vec!["fieldManager: Required value: is required for apply patch".to_owned()]));
        assert_eq!(
            of("force=0", false),
            Some(vec!["force: Forbidden: may not be specified for non-apply patch".to_owned()])
        );
        assert_eq!(of("force=abc&fieldManager=with%20space", true), None);
    }

    #[test]
    fn field_managers_are_printable_and_short() {
        let of = |query: &str| WriteOptions::create(&Query::parse(query)).err().map(texts);
        let long = format!("fieldManager={}", "ü".repeat(65));
        assert_eq!(of(&long), Some(vec!["fieldManager: Too long: may not be more than 128 bytes".to_owned()]));
        let unprintable = of("fieldManager=a%0Ab").unwrap_or_default();
        assert_eq!(unprintable, [r#"fieldManager: Invalid value: "a\nb": invalid character U+000A (at position 1)"#]);
    }

    #[test]
    fn the_user_agent_names_the_manager_of_who_names_none() {
        assert_eq!(default_field_manager("a(b)c/d/e"), "a(b)c");
        assert_eq!(default_field_manager(""), "unknown");
        assert_eq!(default_field_manager(&"t".repeat(200)).len(), 128);
    }

    #[test]
    fn a_timeout_is_a_duration_of_go() {
        let of = |query: &str| Query::parse(query).timeout();
        assert_eq!(of("timeout=1m2.5s"), Ok(Some(Duration::from_millis(62_500))));
        assert_eq!(
            [of("timeout="), of("timeout=0"), of("timeout=-3s"), of("")],
            [Ok(None), Ok(None), Ok(None), Ok(None)]
        );
        for (query, expected) in [
            ("timeout=5", r#"time: missing unit in duration "5""#),
            ("timeout=soon", r#"time: invalid duration "soon""#),
            ("timeout=5y", r#"time: unknown unit "y" in duration "5y""#),
        ] {
            assert_eq!(of(query).map_err(|error| error.to_string()), Err(expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn parameters_that_do_not_decode_are_left_out() {
        let query = Query::parse("a=%zz&b=1+2&c;d=1&e=%C3%BC&b=3");
        assert_eq!((query.first("a"), query.first("b"), query.first("e")), (None, Some("1 2"), Some("ü")));
        assert!(!query.contains("c"));
    }
}
