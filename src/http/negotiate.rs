//! Content negotiation: the form of an answer, and the form of a body that was sent.
//!
//! Input: header values as they were sent. Output: encodings and transformations, or the text of a 406 or 415. Nothing
//! is encoded here. Source: answers recorded from apiserver 1.37.

use std::collections::BTreeMap;
use std::fmt;

use crate::work;

use super::query::Query;

/// How objects are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    /// In the order of preference, which is also the order in which messages list them.
    pub const ALL: [Encoding; 3] = [Encoding::Json, Encoding::Yaml, Encoding::Protobuf];

    /// The Content-Type of a body.
    pub const fn content_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The Content-Type of a watch.
    pub const fn stream_content_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml;stream=watch",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    const fn streams(self) -> bool {
        !matches!(self, Encoding::Yaml)
    }

    pub fn subtype(self) -> &'static str {
        &self.content_type()["application/".len()..]
    }
}

/// The form of the answer, if it is not the object or list itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transform {
    pub kind: TransformKind,
    /// `v1` or `v1beta1` of the group `meta.k8s.io`.
    pub version: &'static str,
}

impl Transform {
    /// The apiVersion of the answer.
    pub fn api_version(self) -> String {
        format!("meta.k8s.io/{}", self.version)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransformKind {
    Table,
    PartialObjectMetadata,
    PartialObjectMetadataList,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerFormat {
    pub encoding: Encoding,
    /// JSON with line breaks and two spaces of indentation.
    pub pretty: bool,
    pub transform: Option<Transform>,
}

/// The forms that an endpoint can answer in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Objects in JSON and YAML, transformations also in protobuf.
    Custom,
    /// Objects in any encoding, and transformations.
    BuiltIn,
    /// The same without tables.
    WithoutTables,
    /// Statuses and documents: any encoding, no transformation.
    Plain,
}

/// 406: nothing that the client accepts is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAcceptable {
    offered: Vec<String>,
}

impl fmt::Display for NotAcceptable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "only the following media types are accepted: {}", self.offered.join(", "))
    }
}

/// 415: the body's media type is not supported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedMediaType {
    accepted: Vec<&'static str>,
}

impl fmt::Display for UnsupportedMediaType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted = self.accepted.join(", ");
        write!(out, "the body of the request was in an unknown format - accepted media types include: {accepted}")
    }
}

/// Chooses the form of an answer. An absent Accept header is the empty text.
pub fn format(
    accept: &str,
    user_agent: &str,
    query: &Query,
    endpoint: Endpoint,
) -> Result<AnswerFormat, NotAcceptable> {
    let offered = || NotAcceptable { offered: Encoding::ALL.map(|encoding| encoding.content_type().to_owned()).into() };
    let (encoding, parameters) = choose(accept, endpoint).ok_or_else(offered)?;
    let pretty = parameters.pretty || wants_pretty(user_agent, query);
    Ok(AnswerFormat { encoding, pretty: pretty && encoding == Encoding::Json, transform: parameters.transform })
}

/// Checks that a watch can be sent in the chosen form.
pub fn stream(format: AnswerFormat) -> Result<AnswerFormat, NotAcceptable> {
    if format.encoding.streams() {
        Ok(format)
    } else {
        let streams = Encoding::ALL.into_iter().filter(|encoding| encoding.streams());
        let offered = streams.map(|encoding| format!("{};stream=watch", encoding.content_type())).collect();
        Err(NotAcceptable { offered })
    }
}

/// The Content-Type of the OpenAPI v2 document in protobuf.
pub const OPEN_API_V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Chooses the form of the OpenAPI v2 document; `None` where the client accepts neither JSON nor protobuf, which also has
/// an older name.
pub fn open_api_v2(accept: &str) -> Option<Encoding> {
    let names = ["com.github.proto-openapi.spec.v2.v1.0+protobuf", "com.github.proto-openapi.spec.v2@v1.0+protobuf"];
    open_api(accept, names)
}

/// The same for a v3 document.
pub fn open_api_v3(accept: &str) -> Option<Encoding> {
    let names = ["com.github.proto-openapi.spec.v3.v1.0+protobuf", "com.github.proto-openapi.spec.v3@v1.0+protobuf"];
    open_api(accept, names)
}

fn open_api(accept: &str, protobuf: [&str; 2]) -> Option<Encoding> {
    if accept.is_empty() {
        return Some(Encoding::Json);
    }
    clauses(accept).iter().find_map(|clause| {
        let of_any_type = ["application", "*"].contains(&clause.type_);
        match clause.subtype {
            "json" | "*" if of_any_type => Some(Encoding::Json),
            subtype if of_any_type && protobuf.contains(&subtype) => Some(Encoding::Protobuf),
            _ => None,
        }
    })
}

/// The form of an error. If the client accepts nothing that is offered, it is indented JSON.
pub fn error_format(accept: &str, user_agent: &str, query: &Query) -> AnswerFormat {
    let fallback = AnswerFormat { encoding: Encoding::Json, pretty: true, transform: None };
    format(accept, user_agent, query, Endpoint::Plain).unwrap_or(fallback)
}

/// Whether the answer may be compressed: only the bare, lower-case word `gzip` counts.
pub fn accepts_gzip(accept_encoding: &str) -> bool {
    accept_encoding.split(',').any(|token| token.trim() == "gzip")
}

/// The encoding of a body. An absent Content-Type is JSON.
pub fn body_encoding(content_type: &str) -> Result<Encoding, UnsupportedMediaType> {
    if content_type.is_empty() {
        return Ok(Encoding::Json);
    }
    media_type(content_type)
        .and_then(|media_type| Encoding::ALL.into_iter().find(|encoding| encoding.content_type() == media_type))
        .ok_or_else(|| UnsupportedMediaType { accepted: Encoding::ALL.map(Encoding::content_type).into() })
}

/// What kind of patch a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchMediaType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchMediaType {
    /// Of custom resources, in the order in which messages list them.
    pub const CUSTOM: &'static [PatchMediaType] = &[PatchMediaType::Json, PatchMediaType::Merge, PatchMediaType::Apply];
    /// Of built-in resources.
    pub const BUILT_IN: &'static [PatchMediaType] =
        &[PatchMediaType::Json, PatchMediaType::Merge, PatchMediaType::Strategic, PatchMediaType::Apply];

    pub const fn content_type(self) -> &'static str {
        match self {
            PatchMediaType::Json => "application/json-patch+json",
            PatchMediaType::Merge => "application/merge-patch+json",
            PatchMediaType::Strategic => "application/strategic-merge-patch+json",
            PatchMediaType::Apply => "application/apply-patch+yaml",
        }
    }

    /// Reads the Content-Type of a PATCH: case matters, parameters don't.
    pub fn decode(content_type: &str, supported: &[PatchMediaType]) -> Result<PatchMediaType, UnsupportedMediaType> {
        let name = match content_type.find(';') {
            Some(at) if at > 0 => &content_type[..at],
            _ => content_type,
        };
        let found = supported.iter().find(|patch_type| patch_type.content_type() == name);
        let accepted = || supported.iter().map(|patch_type| patch_type.content_type()).collect();
        found.copied().ok_or_else(|| UnsupportedMediaType { accepted: accepted() })
    }
}

/// The routes of built-in resources check headers once more, before anything else.
///
/// Their errors have `details: {}` and messages of their own. They don't know `application/*`.
pub mod built_in_route {
    use super::{Encoding, PatchMediaType};

    /// The message of a 415 on PATCH.
    pub const UNSUPPORTED_MEDIA_TYPE: &str = "415: Unsupported Media Type";

    /// Whether a PATCH with this Content-Type finds a route.
    pub fn takes_patch(content_type: &str) -> bool {
        content_type
            .split(',')
            .filter_map(|media_type| media_type.split(';').next())
            .any(|media_type| PatchMediaType::BUILT_IN.iter().any(|known| known.content_type() == media_type.trim()))
    }

    /// The message of a 406, if the client accepts nothing that is offered. Lists and watches (`streams`) offer more.
    pub fn not_acceptable(accept: &str, streams: bool) -> Option<String> {
        let mut offered: Vec<String> = Encoding::ALL.map(|encoding| encoding.content_type().to_owned()).into();
        if streams {
            let encodings = Encoding::ALL.into_iter().filter(|encoding| encoding.streams());
            offered.extend(encodings.map(|encoding| format!("{};stream=watch", encoding.content_type())));
        }
        not_offered(accept, &offered)
    }

    /// The same for a route that offers only these media types.
    pub fn not_offered<T: AsRef<str>>(accept: &str, offered: &[T]) -> Option<String> {
        let offered: Vec<&str> = offered.iter().map(AsRef::as_ref).collect();
        let is_offered = |media_type: &str| media_type == "*/*" || offered.contains(&media_type);
        let mut accepted = accept.split(',').filter_map(|media_type| media_type.split(';').next()).map(str::trim);
        if accept.is_empty() || accepted.any(is_offered) {
            None
        } else {
            Some(format!("406: Not Acceptable\n\nAvailable representations: {}", offered.join(", ")))
        }
    }
}

/// One media range of an Accept header.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause<'a> {
    pub type_: &'a str,
    pub subtype: &'a str,
    quality: f32,
    /// Everything but `q`; the last value of a repeated parameter counts.
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().rev().find(|(parameter, _)| *parameter == name).map(|(_, value)| *value)
    }

    /// Whether the range includes `type_/subtype`.
    pub fn takes(&self, type_: &str, subtype: &str) -> bool {
        (self.type_ == type_ && (self.subtype == subtype || self.subtype == "*"))
            || (self.type_ == "*" && self.subtype == "*")
    }

    fn parse(clause: &'a str) -> Option<Self> {
        let mut parts = clause.split(';');
        let range = parts.next()?;
        let (type_, subtype) = match range.split_once('/') {
            Some((_, subtype)) if subtype.contains('/') => return None,
            Some((type_, subtype)) => (type_.trim_matches(' '), subtype.trim_matches(' ')),
            None => (range.trim_matches(' '), ""),
        };
        let subtype = match (type_, subtype) {
            ("*", "") => "*",
            (_, "") => return None,
            (_, subtype) => subtype,
        };
        let mut found = Clause { type_, subtype, quality: 1.0, parameters: Vec::new() };
        for parameter in parts {
            match parameter.split_once('=') {
                Some((_, value)) if value.is_empty() || value.contains('=') => {}
                Some((name, value)) if name.trim_matches(' ') == "q" => found.quality = value.parse().unwrap_or(0.0),
                Some((name, value)) => found.parameters.push((name.trim_matches(' '), value.trim_matches(' '))),
                None => {}
            }
        }
        Some(found)
    }

    fn goes_before(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || (self.type_ != "*" && other.type_ == "*")
            || (self.subtype != "*" && other.subtype == "*")
    }
}

/// The longest Accept header that is sorted, in characters; ranges after that are ignored, as sorting takes quadratic
/// time.
const ACCEPT_CHARACTERS_MAX: usize = 2048;

/// The media ranges of an Accept header, best first. Malformed ranges are left out.
pub fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let accept = match accept.char_indices().nth(ACCEPT_CHARACTERS_MAX) {
        Some((end, _)) => &accept[..end],
        None => accept,
    };
    work::bytes(accept.len());
    let mut clauses: Vec<Clause<'_>> =
        accept.split(',').filter_map(|clause| Clause::parse(clause.trim_matches(' '))).collect();
    // `goes_before` is not a total order, as quality and wildcards may contradict each other; the result must be that
    // of an insertion sort.
    for end in 1..clauses.len() {
        let passed = clauses[..end].iter().rev().take_while(|before| clauses[end].goes_before(before)).count();
        work::steps(passed);
        clauses[end - passed..=end].rotate_right(1);
    }
    clauses
}

#[derive(Clone, Copy, Debug, Default)]
struct Parameters {
    pretty: bool,
    transform: Option<Transform>,
}

fn choose(accept: &str, endpoint: Endpoint) -> Option<(Encoding, Parameters)> {
    if accept.is_empty() {
        return Some((Encoding::Json, Parameters::default()));
    }
    clauses(accept).iter().find_map(|clause| {
        Encoding::ALL
            .into_iter()
            .filter(|encoding| clause.takes("application", encoding.subtype()))
            .find_map(|encoding| Some((encoding, parameters(clause, encoding, endpoint)?)))
    })
}

/// Whether an encoding supports the stream that a media range asks for, if any, and the endpoint the version of the group
/// `meta.k8s.io`: those of resources know one.
pub fn is_supported(clause: &Clause<'_>, encoding: Encoding, server_version: Option<&str>) -> bool {
    let is_known = clause.parameter("stream").is_none_or(|schema| schema == "watch" && encoding.streams());
    is_known && clause.parameter("sv").is_none_or(|asked| Some(asked) == server_version)
}

/// Reads the parameters of a media range; `None` where the endpoint can't answer it.
fn parameters(clause: &Clause<'_>, encoding: Encoding, endpoint: Endpoint) -> Option<Parameters> {
    let server_version = (endpoint != Endpoint::Plain).then_some("v1");
    if !is_supported(clause, encoding, server_version) {
        return None;
    }
    let pretty = clause.parameter("pretty") == Some("1");
    let (kind, group, version) = (clause.parameter("as"), clause.parameter("g"), clause.parameter("v"));
    if (kind, group, version) == (None, None, None) {
        let is_offered = endpoint != Endpoint::Custom || encoding != Encoding::Protobuf;
        return is_offered.then_some(Parameters { pretty, transform: None });
    }
    if endpoint == Endpoint::Plain || group != Some("meta.k8s.io") {
        return None;
    }
    let kind = match kind? {
        "Table" if encoding != Encoding::Protobuf && endpoint != Endpoint::WithoutTables => TransformKind::Table,
        "PartialObjectMetadata" => TransformKind::PartialObjectMetadata,
        "PartialObjectMetadataList" => TransformKind::PartialObjectMetadataList,
        _ => return None,
    };
    let version = match version? {
        "v1" => "v1",
        "v1beta1" => "v1beta1",
        _ => return None,
    };
    Some(Parameters { pretty, transform: Some(Transform { kind, version }) })
}

/// `?pretty=` decides; without it, tools whose output people read get line breaks.
pub fn wants_pretty(user_agent: &str, query: &Query) -> bool {
    match query.first("pretty") {
        Some(pretty) if !pretty.is_empty() => matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        _ => ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| user_agent.starts_with(tool)),
    }
}

/// The media type of a Content-Type header in lower case; `None` if the header is malformed.
fn media_type(content_type: &str) -> Option<String> {
    let (media_type, mut rest) = match content_type.find(';') {
        Some(at) => content_type.split_at(at),
        None => (content_type, ""),
    };
    let media_type = media_type.trim().to_lowercase();
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    while !rest.trim_start().is_empty() {
        let Some(((name, value), next)) = media_parameter(rest) else {
            // One trailing semicolon is accepted.
            return (rest.trim() == ";").then_some(media_type);
        };
        // One that comes twice has one value.
        if *seen.entry(name.to_lowercase()).or_insert_with(|| value.clone()) != value {
            return None;
        }
        rest = next;
    }
    let (type_, subtype) = media_type.split_once('/')?;
    (is_token(type_) && is_token(subtype)).then_some(media_type)
}

/// `;name=value` in front of `rest`: the name and the value, and the rest after them.
fn media_parameter(rest: &str) -> Option<((&str, String), &str)> {
    let rest = rest.trim_start().strip_prefix(';')?.trim_start();
    let (name, rest) = rest.split_once('=')?;
    let name = name.trim_end();
    let rest = rest.trim_start();
    if !is_token(name) {
        return None;
    }
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(|character| !is_token_character(character)).unwrap_or(rest.len());
        return (end > 0).then(|| ((name, rest[..end].to_owned()), &rest[end..]));
    };
    let (mut escaped, mut value) = (false, String::new());
    for (at, character) in quoted.char_indices() {
        match character {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            '"' if !escaped => return Some(((name, value), &quoted[at + 1..])),
            '\r' | '\n' if !escaped => return None,
            character => value.push(character),
        }
        escaped = false;
    }
    None
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_token_character)
}

fn is_token_character(character: char) -> bool {
    character.is_ascii_graphic() && !"()<>@,;:\\\"/[]?=".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, endpoint: Endpoint, expected: Option<(Encoding, Option<TransformKind>)>) {
        let found = format(accept, "test", &Query::default(), endpoint).ok();
        assert_eq!(found.map(|format| (format.encoding, format.transform.map(|to| to.kind))), expected, "{accept}");
    }

    #[test]
    fn no_more_ranges_are_sorted_than_a_header_has_that_people_write() {
        let many = "*/*,".repeat(100_000);
        assert_eq!(clauses(&many).len(), ACCEPT_CHARACTERS_MAX / "*/*,".len());
    }

    #[test]
    fn the_first_range_that_is_offered_wins() {
        let json = Some((Encoding::Json, None));
        for accept in [
            "",
            "*/*",
            "application/*",
            "text/html, application/json",
            "application/json;q=0",
            "text/html;q=0.9, */*;q=0.1",
        ] {
            check(accept, Endpoint::Custom, json);
        }
        check("application/yaml;q=0.1, application/json;q=0.9", Endpoint::Custom, json);
        check("application/yaml, application/json", Endpoint::Custom, Some((Encoding::Yaml, None)));
        for accept in ["APPLICATION/JSON", "junk", "text/*", "application/cbor"] {
            check(accept, Endpoint::Custom, None);
        }
    }

    #[test]
    fn resources_know_one_version_of_the_server() {
        let json = Some((Encoding::Json, None));
        check("application/json;sv=v1", Endpoint::Custom, json);
        check("application/json;sv=v1", Endpoint::BuiltIn, json);
        check("application/json;sv=v1", Endpoint::Plain, None);
        check("application/json;sv=v2", Endpoint::BuiltIn, None);
    }

    #[test]
    fn custom_objects_are_not_offered_in_protobuf_but_their_metadata_is() {
        check("application/vnd.kubernetes.protobuf", Endpoint::Custom, None);
        check("application/vnd.kubernetes.protobuf, application/json", Endpoint::Custom, Some((Encoding::Json, None)));
        check("application/vnd.kubernetes.protobuf", Endpoint::BuiltIn, Some((Encoding::Protobuf, None)));
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Endpoint::Custom,
            Some((Encoding::Protobuf, Some(TransformKind::PartialObjectMetadata))),
        );
    }

    #[test]
    fn a_table_is_asked_for_by_kind_group_and_version() {
        let table = Some((Encoding::Json, Some(TransformKind::Table)));
        check("application/json;as=Table;g=meta.k8s.io;v=v1", Endpoint::Custom, table);
        check("application/json;as=Table;g=meta.k8s.io;v=v1beta1,application/json", Endpoint::Custom, table);
        check(
            "application/json;as=Table;g=other;v=v1, application/json",
            Endpoint::Custom,
            Some((Encoding::Json, None)),
        );
        check("application/json;as=Table;g=meta.k8s.io;v=v1", Endpoint::WithoutTables, None);
        check("application/json;as=Table;g=meta.k8s.io;v=v2", Endpoint::Custom, None);
        check("application/json;as=Table", Endpoint::Custom, None);
    }

    #[test]
    fn a_watch_has_no_yaml() {
        let format = format("application/yaml, application/json", "", &Query::default(), Endpoint::Custom);
        let error = format.and_then(stream).expect_err("YAML does not stream").to_string();
        assert!(
            error.ends_with("application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"),
            "{error}"
        );
    }

    #[test]
    fn the_open_api_document_has_a_protobuf_of_its_own() {
        for (accept, expected) in [
            ("", Some(Encoding::Json)),
            ("*/*", Some(Encoding::Json)),
            ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", Some(Encoding::Protobuf)),
            (
                "application/json;q=0.5, application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
                Some(Encoding::Protobuf),
            ),
            ("application/vnd.kubernetes.protobuf", None),
        ] {
            assert_eq!(open_api_v2(accept), expected, "{accept}");
        }
    }

    #[test]
    fn people_get_line_breaks() {
        let pretty = |accept, agent, query| error_format(accept, agent, &Query::parse(query)).pretty;
        assert!(
            pretty("", "curl/8.0", "") && pretty("", "", "pretty=1") && pretty("application/json;pretty=1", "", "")
        );
        assert!(!pretty("", "curl/8.0", "pretty=false") && !pretty("", "", "pretty") && !pretty("", "", "pretty=junk"));
    }

    #[test]
    fn only_the_bare_word_asks_for_gzip() {
        assert!(accepts_gzip("gzip, deflate, br"));
        for header in ["", "gzip;q=0.5", "GZIP", "*", "identity"] {
            assert!(!accepts_gzip(header), "{header}");
        }
    }

    #[test]
    fn content_types_are_read_without_their_case() {
        for header in [
            "",
            "APPLICATION/JSON",
            "application/json; charset=utf-8",
            "application/json;foo=\"a;b\"",
            "application/json;a=b;A=\"b\"",
            "application/json;",
        ] {
            assert_eq!(body_encoding(header), Ok(Encoding::Json), "{header}");
        }
        for header in [
            "text/plain",
            "garbage",
            "*/*",
            "application/json; charset",
            "application/json;a=b;a=c",
            "application/merge-patch+json",
        ] {
            assert!(body_encoding(header).is_err(), "{header}");
        }
    }

    #[test]
    fn patches_are_known_by_their_exact_type() {
        let decode = |header| PatchMediaType::decode(header, PatchMediaType::CUSTOM);
        assert_eq!(decode("application/merge-patch+json; charset=utf-8"), Ok(PatchMediaType::Merge));
        let error = decode("application/strategic-merge-patch+json").expect_err("custom resources have none");
        assert!(
            error
                .to_string()
                .ends_with("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
        );
    }

    #[test]
    fn built_in_routes_answer_in_their_own_words() {
        let expected = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
                        application/vnd.kubernetes.protobuf, application/json;stream=watch, \
                        application/vnd.kubernetes.protobuf;stream=watch";
        assert_eq!(built_in_route::not_acceptable("text/html", true).as_deref(), Some(expected));
        assert_eq!(built_in_route::not_acceptable("application/json;as=Table;v=v9;g=meta.k8s.io", true), None);
        assert!(!built_in_route::takes_patch("application/json"));
    }
}
