//! Options from the query, typed and validated.
//!
//! In: the query as it was sent. Out: the options of one verb, or a [`QueryError`] that says which Status it becomes.
//! Unknown parameters are ignored; of a repeated one the first counts, but for `dryRun`, which is a list.
//! Source: answers recorded from apiserver 1.37.

use std::time::Duration;

use crate::crd::ServedVersion;
use crate::crd::write::{ApiVersionError, split_api_version};
use crate::kinds;
use crate::meta::duration::{self, DurationError};
use crate::meta::field::{self, ErrorList, Path};
use crate::meta::object_meta::{MANAGER_BYTES_MAX, validate_manager};
use crate::meta::parse_int;
use crate::meta::scheme::SchemeError;
use crate::meta::type_meta::{TypeMetaError, type_meta};
use crate::meta::unmarshal::UnmarshalError;
use crate::object;
use crate::protobuf;
use crate::registry::{FieldValidation, not_registered_for_options};
use crate::value::{Map, Value, is_printable, json, json_type, yaml};
use crate::work;

/// The parameters of a query, decoded, in the order they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Reads what stands behind the `?`. Parameters that don't decode, and those with a semicolon, are left out.
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

    /// `0` and `false`, in any case, are false; everything else, the empty text too, is true.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| !(value == "0" || value.eq_ignore_ascii_case("false")))
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, QueryError> {
        self.first(name)
            .map(|text| parse_int(text).map_err(|error| QueryError::BadRequest(error.to_string())))
            .transpose()
    }

    /// How long the client wants to wait; 0 and less mean no limit.
    ///
    /// # Errors
    /// What is given is not a duration.
    pub fn timeout(&self) -> Result<Option<Duration>, DurationError> {
        let Some(text) = self.first("timeout").filter(|text| !text.is_empty()) else { return Ok(None) };
        let nanoseconds = u64::try_from(duration::parse_go(text)?).unwrap_or_default();
        Ok(Some(Duration::from_nanos(nanoseconds)).filter(|timeout| !timeout.is_zero()))
    }

    fn list(&self, name: &str) -> Vec<String> {
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

fn check(kind: &'static str, errors: ErrorList) -> Result<(), QueryError> {
    if errors.is_empty() { Ok(()) } else { Err(QueryError::Invalid { kind, errors }) }
}

/// What to list, watch, or delete as a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    /// As the query says it; a watch by path leaves it false, and is then validated as a list.
    pub watch: bool,
    pub allow_watch_bookmarks: bool,
    pub resource_version: String,
    /// `Exact`, `NotOlderThan` or empty.
    pub resource_version_match: String,
    /// Not more than zero means no limit of the client's.
    pub timeout_seconds: Option<i64>,
    /// Not more than zero means all.
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

    /// A watch from nowhere or from 0, with nothing else said, starts with what there is.
    fn set_defaults(&mut self) {
        let from_anywhere = matches!(self.resource_version.as_str(), "" | "0");
        let unsaid = self.send_initial_events.is_none() && self.resource_version_match.is_empty();
        if self.watch && from_anywhere && unsaid {
            self.send_initial_events = Some(true);
            self.resource_version_match = "NotOlderThan".to_owned();
        }
    }

    /// Sets defaults and checks which options go together, where watches may list first (`WatchList`) and where not.
    pub fn validate(&mut self, lists_in_watches: bool) -> Result<(), QueryError> {
        if lists_in_watches {
            self.set_defaults();
        }
        let errors = if self.watch { self.watch_errors(lists_in_watches) } else { self.list_errors() };
        check("ListOptions", errors)
    }

    /// A watch that begins with what there is and marks the end of it: its answer may be compressed.
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
    /// Only of an apply patch: take fields from other managers.
    pub force: bool,
    /// As admission sees them, but for `force`, which no creation or update has.
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

    /// The options of a PATCH; an apply needs a manager, and only an apply may have `force`, be it false.
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

fn texts(texts: &[String]) -> Value {
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

fn dry_run_errors(values: &[String]) -> ErrorList {
    if values.iter().all(|value| value == "All") {
        ErrorList::new()
    } else {
        let shown: Vec<Value> = values.iter().map(|value| Value::from(value.as_str())).collect();
        field::Error::not_supported(&Path::new("dryRun"), shown, &["All"]).into()
    }
}

/// What becomes of an object's dependents when it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// How to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub orphan_dependents: Option<bool>,
    pub propagation_policy: Option<String>,
    pub dry_run: Vec<String>,
    pub precondition_uid: Option<String>,
    pub precondition_resource_version: Option<String>,
    /// Whether a body has preconditions at all, be they empty.
    pub has_preconditions: bool,
    pub ignore_store_read_error: Option<bool>,
}

/// The kind of the options, and what Go calls their struct.
const KIND: &str = "DeleteOptions";

/// Why a body is not [`DeleteOptions`], in Go's words.
#[derive(Debug, thiserror::Error)]
pub enum DeleteOptionsError {
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(#[from] json::JsonError),
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error(transparent)]
    Protobuf(#[from] protobuf::ProtobufError),
    #[error(transparent)]
    TypeMeta(#[from] TypeMetaError),
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    #[error(transparent)]
    Kind(#[from] SchemeError),
    /// It is of another kind, which the scheme of options has as well.
    #[error("converting ({version}.{kind}) to (v1.DeleteOptions): unknown conversion")]
    Conversion { version: &'static str, kind: String },
    /// A field has a value of another type.
    #[error(transparent)]
    Field(#[from] UnmarshalError),
}

/// Why a body of another kind holds no options, in a request for an object of the version `of`: the scheme of options has some
/// kinds in every group, and some in its own.
fn of_another_kind(api_version: &str, kind: &str, of: &ServedVersion) -> DeleteOptionsError {
    const IN_EVERY_GROUP: [&str; 7] =
        ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "CreateOptions", "Status", "UpdateOptions"];
    const IN_ITS_OWN: [&str; 4] = ["GetOptions", "ListOptions", "PatchOptions", "WatchEvent"];
    const IN_BOTH_OF_ITS_OWN: [&str; 4] =
        ["PartialObjectMetadata", "PartialObjectMetadataList", "Table", "TableOptions"];
    let known = |version| DeleteOptionsError::Conversion { version, kind: kind.to_owned() };
    match api_version {
        _ if IN_EVERY_GROUP.contains(&kind) => known("v1"),
        "meta.k8s.io/v1" if IN_ITS_OWN.contains(&kind) || IN_BOTH_OF_ITS_OWN.contains(&kind) => known("v1"),
        // The others are Go's types of v1 there, too.
        "meta.k8s.io/v1beta1" if kind == "PartialObjectMetadataList" => known("v1beta1"),
        "meta.k8s.io/v1beta1" if IN_BOTH_OF_ITS_OWN.contains(&kind) => known("v1"),
        "" => not_registered_for_options(of, kind, "v1").into(),
        _ => not_registered_for_options(of, kind, api_version).into(),
    }
}

impl DeleteOptions {
    /// Decodes the options of a DELETE without a body.
    pub fn decode(query: &Query) -> Result<Self, QueryError> {
        let non_empty = |name| query.first(name).filter(|value| !value.is_empty()).map(str::to_owned);
        Ok(DeleteOptions {
            grace_period_seconds: query.integer("gracePeriodSeconds")?,
            orphan_dependents: query.flag("orphanDependents"),
            propagation_policy: query.first("propagationPolicy").map(str::to_owned),
            dry_run: query.list("dryRun"),
            precondition_uid: non_empty("uid"),
            precondition_resource_version: non_empty("resourceVersion"),
            has_preconditions: ["uid", "resourceVersion"].into_iter().any(|name| non_empty(name).is_some()),
            ignore_store_read_error: query.flag("ignoreStoreReadErrorWithClusterBreakingPotential"),
        })
    }

    /// Decodes a `DeleteOptions` object.
    pub fn from_body(body: &Value, of: &ServedVersion) -> Result<Self, DeleteOptionsError> {
        let (api_version, kind) = type_meta(body)?;
        split_api_version(&api_version)?;
        // The options are in every group and version.
        if !matches!(kind.as_str(), "" | "DeleteOptions") {
            return Err(of_another_kind(&api_version, &kind, of));
        }
        let preconditions = body.get("preconditions");
        if let Some(other) = preconditions.filter(|value| !matches!(value, Value::Object(_) | Value::Null)) {
            return Err(mismatch(other, (KIND, "preconditions"), "v1.Preconditions").into());
        }
        let flag = |name: &str| match body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(mismatch(other, (KIND, name), "bool")),
        };
        let dry_run = match body.get("dryRun") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| {
                    work::step();
                    match item {
                        Value::String(text) => Ok(text.clone()),
                        Value::Null => Ok(String::new()),
                        other => Err(mismatch(other, (KIND, "dryRun"), "string")),
                    }
                })
                .collect::<Result<_, _>>()?,
            Some(other) => return Err(mismatch(other, (KIND, "dryRun"), "[]string").into()),
        };
        Ok(DeleteOptions {
            grace_period_seconds: match body.get("gracePeriodSeconds") {
                None | Some(Value::Null) => None,
                Some(Value::Int(seconds)) => Some(*seconds),
                Some(fraction @ Value::Float(_)) => {
                    let number = format!("number {}", json::encode_to_string(fraction));
                    return Err(UnmarshalError::of_type(number, "int64").below(KIND, "gracePeriodSeconds").into());
                }
                Some(other) => return Err(mismatch(other, (KIND, "gracePeriodSeconds"), "int64").into()),
            },
            orphan_dependents: flag("orphanDependents")?,
            propagation_policy: text_field(Some(body), (KIND, "propagationPolicy"), "v1.DeletionPropagation")?,
            dry_run,
            precondition_uid: text_field(preconditions, ("Preconditions", "uid"), "types.UID")?,
            precondition_resource_version: text_field(preconditions, ("Preconditions", "resourceVersion"), "string")?,
            has_preconditions: matches!(preconditions, Some(Value::Object(_))),
            ignore_store_read_error: flag("ignoreStoreReadErrorWithClusterBreakingPotential")?,
        })
    }

    /// The fields as admission sees them.
    pub fn encode(&self) -> Value {
        let mut options = object! {};
        let fields = options.make_object();
        if let Some(seconds) = self.grace_period_seconds {
            fields.insert("gracePeriodSeconds", Value::Int(seconds));
        }
        if self.has_preconditions {
            let mut preconditions = Map::new();
            let given = [("uid", &self.precondition_uid), ("resourceVersion", &self.precondition_resource_version)];
            for (name, text) in given {
                if let Some(text) = text {
                    preconditions.insert(name, Value::from(text.as_str()));
                }
            }
            fields.insert("preconditions", Value::Object(preconditions));
        }
        if let Some(policy) = &self.propagation_policy {
            fields.insert("propagationPolicy", Value::from(policy.as_str()));
        }
        let flags = [
            ("orphanDependents", self.orphan_dependents),
            ("ignoreStoreReadErrorWithClusterBreakingPotential", self.ignore_store_read_error),
        ];
        for (name, flag) in flags {
            if let Some(flag) = flag {
                fields.insert(name, Value::Bool(flag));
            }
        }
        if !self.dry_run.is_empty() {
            fields.insert("dryRun", texts(&self.dry_run));
        }
        options
    }

    /// The object in a protobuf body. The type is looked at before the options are.
    pub fn open(body: &[u8], of: &ServedVersion) -> Result<Value, DeleteOptionsError> {
        let envelope = protobuf::open(body)?;
        let mut options = object! { "apiVersion" => envelope.api_version, "kind" => envelope.kind };
        Self::from_body(&options, of)?;
        let message = kinds::delete_options();
        if let Value::Object(fields) = protobuf::decode(message, envelope.raw)? {
            fields.into_iter().for_each(|(name, value)| _ = options.make_object().insert(name, value));
        }
        Ok(options)
    }

    /// Checks values, and which options go together.
    pub fn validate(&self) -> Result<(), QueryError> {
        let mut errors = ErrorList::new();
        if let Some(policy) = &self.propagation_policy {
            let path = Path::new("propagationPolicy");
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(field::Error::invalid(&path, policy.as_str(), detail));
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(field::Error::not_supported(&path, policy.as_str(), &supported));
            }
        }
        errors.extend(dry_run_errors(&self.dry_run));
        errors.extend(self.ignore_store_read_errors());
        check("DeleteOptions", errors)
    }

    fn ignore_store_read_errors(&self) -> ErrorList {
        if self.ignore_store_read_error != Some(true) {
            return ErrorList::new();
        }
        let path = Path::new("ignoreStoreReadErrorWithClusterBreakingPotential");
        [
            (self.propagation_policy.is_some(), "cannot be set together with .propagationPolicy"),
            (self.orphan_dependents.is_some(), "cannot be set together with .orphanDependents"),
            (self.grace_period_seconds.is_some(), "cannot be set together with .gracePeriodSeconds"),
            (self.has_preconditions, "cannot be set together with .preconditions"),
        ]
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, detail)| field::Error::invalid(&path, true, detail))
        .collect()
    }

    /// The policy asked for, in the old words or the new. Only after [`Self::validate`].
    pub fn propagation(&self) -> Option<Propagation> {
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            _ => None,
        }
    }
}

/// A field of a struct of Go: the name of the struct, and that of the field.
type GoField<'f> = (&'f str, &'f str);

fn text_field(object: Option<&Value>, field: GoField<'_>, go_type: &str) -> Result<Option<String>, UnmarshalError> {
    match object.and_then(|object| object.get(field.1)) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(mismatch(other, field, go_type)),
    }
}

fn mismatch(found: &Value, (structure, field): GoField<'_>, go_type: &str) -> UnmarshalError {
    UnmarshalError::of_type(json_type(found), go_type).below(structure, field)
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
    /// Only asked for when a Table is.
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

/// Undoes percent-escapes and plus signs; `None` for an escape that is none.
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

    fn pods() -> ServedVersion {
        kinds::find("", "pods").expect("the kind is there").served_version()
    }

    #[test]
    fn a_body_of_another_kind_holds_no_options() {
        let check = |api_version: &str, kind: &str, expect: &str| {
            let body = crate::object! { "apiVersion" => api_version, "kind" => kind };
            let told = DeleteOptions::from_body(&body, &pods()).err().map(|error| error.to_string());
            assert_eq!(told.as_deref(), Some(expect));
        };
        let unknown = |kind: &str, api_version: &str| {
            let scheme = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27";
            format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{scheme}\"")
        };
        let known = |kind: &str| format!("converting ({kind}) to (v1.DeleteOptions): unknown conversion");
        check("v1", "Pod", &unknown("Pod", "v1"));
        check("", "Pod", &unknown("Pod", "v1"));
        check("v1", "ListOptions", &unknown("ListOptions", "v1"));
        check("apps/v1", "Status", &known("v1.Status"));
        check("meta.k8s.io/v1", "ListOptions", &known("v1.ListOptions"));
        check("meta.k8s.io/v1beta1", "Table", &known("v1.Table"));
        check("meta.k8s.io/v1beta1", "PartialObjectMetadataList", &known("v1beta1.PartialObjectMetadataList"));
        check("meta.k8s.io/v1beta1", "ListOptions", &unknown("ListOptions", "meta.k8s.io/v1beta1"));
        assert!(DeleteOptions::from_body(&crate::object! { "kind" => "DeleteOptions" }, &pods()).is_ok());
    }

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
    fn delete_options_of_a_wrong_type_err_as_go_does() {
        let body = crate::object! { "gracePeriodSeconds" => "x" };
        let expected =
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64";
        assert_eq!(DeleteOptions::from_body(&body, &pods()).expect_err("it is a text").to_string(), expected);
    }

    #[test]
    fn a_propagation_policy_is_one_of_three() {
        let options = DeleteOptions::decode(&Query::parse("propagationPolicy=Sideways")).expect("it decodes");
        let expected = r#"propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil""#;
        assert_eq!(options.validate().err().map(texts), Some(vec![expected.to_owned()]));
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
