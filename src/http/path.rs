//! Parses request paths.
//!
//! Input: the path as it was sent, percent-escapes and all. Output: a [`Target`]. This module never looks at what is
//! served: whether a group, a resource or a subresource exists is the router's question. Source: answers recorded from
//! apiserver 1.37, whose handlers split paths in this way.

use crate::auth::{Attributes, ResourceAttributes};
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::work;

/// The prefix of all paths that do not belong to Kubernetes.
pub const SKIFF_PREFIX: &str = "/skiff/v1/";

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/`: the list of paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`, and one check of them.
    Probe { probe: Probe, check: Option<String> },
    /// `/metrics`.
    Metrics,
    /// `/.well-known/openid-configuration`: who issues the tokens of service accounts.
    Issuer,
    /// `/openid/v1/jwks`: the keys that these tokens are signed with.
    IssuerKeys,
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`: which documents there are.
    OpenApiV3Index,
    /// `/openapi/v3/…`: one document, `apis/GROUP/VERSION` or `api/v1`.
    OpenApiV3(String),
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: the groups.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/apis/GROUP/VERSION`; `/api/VERSION` with the empty group.
    GroupVersion { group: String, version: String },
    /// Something within a version.
    Resource(ResourcePath),
    /// `/skiff/v1/…`: features that Kubernetes has no API for; without the prefix.
    Skiff(String),
    /// `/apis/GROUP/VERSION/watch` with nothing behind it: 500, see [`undetermined`].
    Undetermined,
    /// Any other path, answered with [`NOT_FOUND_TEXT`].
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    Healthz,
    Livez,
    Readyz,
}

/// A path within a version: `[watch/][namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE[/…]]]`.
///
/// Empty texts stand for absent parts. `namespaces/NAME[/status|/finalize]` is the namespace itself: both `namespace` and
/// `name` are then its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// `watch` or `proxy` if the path contains the verb; empty otherwise.
    pub verb_prefix: String,
    pub namespace: String,
    pub resource: String,
    pub name: String,
    pub subresource: String,
    /// The path after the subresource. Custom resources ignore it, built-in ones don't know such paths.
    pub rest: Vec<String>,
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// `/proxy/…`.
    Proxy,
    /// Any other method; messages show it as an empty text.
    Unsupported,
}

impl Verb {
    /// The verb as authorisers, audit and messages write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Proxy => "proxy",
            Verb::Unsupported => "",
        }
    }
}

/// A path with an invalid percent-escape; answered as [`BAD_REQUEST_TEXT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedEscape;

/// The body of a 404 that is not a Status: `text/plain; charset=utf-8`.
pub const NOT_FOUND_TEXT: &str = "404 page not found\n";

/// The body of a 400 that is not a Status: `text/plain; charset=utf-8`, and the connection closes.
pub const BAD_REQUEST_TEXT: &str = "400 Bad Request";

/// The path of `Target::Undetermined` as the plain text of a 500. `uri` is path and query as they were sent.
pub fn undetermined(uri: &str) -> String {
    internal_error(
        uri,
        &format!("failed to create RequestInfo: unable to determine kind and namespace from url, {uri}"),
    )
}

/// The answer to a request for `uri` that fails before anything is looked up, HTML-escaped.
pub fn internal_error(uri: &str, why: &str) -> String {
    let text = format!("Internal Server Error: {}: {why}", crate::value::go_quote(uri));
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;") + "\n"
}

/// Reads the path of a request, without its query.
pub fn parse(path: &str) -> Result<Target, MalformedEscape> {
    work::bytes(path.len());
    let path = decode(path)?;
    Ok(match path.as_str() {
        "/" | "/index.html" => Target::Root,
        "/version" | "/version/" => Target::Version,
        "/metrics" => Target::Metrics,
        "/.well-known/openid-configuration" | "/.well-known/openid-configuration/" => Target::Issuer,
        "/openid/v1/jwks" | "/openid/v1/jwks/" => Target::IssuerKeys,
        "/openapi/v2" => Target::OpenApiV2,
        "/openapi/v3" => Target::OpenApiV3Index,
        "/api" | "/api/" => Target::CoreVersions,
        "/apis" | "/apis/" => Target::Groups,
        _ => parse_tree(&path),
    })
}

fn parse_tree(path: &str) -> Target {
    if let Some(document) = path.strip_prefix("/openapi/v3/") {
        return Target::OpenApiV3(document.to_owned());
    }
    if let Some(rest) = path.strip_prefix(SKIFF_PREFIX) {
        return Target::Skiff(rest.to_owned());
    }
    if let Some(rest) = path.strip_prefix("/apis/") {
        return parse_group(rest.trim_end_matches('/'));
    }
    if let Some(rest) = path.strip_prefix("/api/") {
        return parse_version("", rest.trim_matches('/'));
    }
    parse_probe(path)
}

fn parse_probe(path: &str) -> Target {
    let (name, check) = match path.trim_start_matches('/').split_once('/') {
        Some((name, check)) => (name, Some(check.to_owned())),
        None => (path.trim_start_matches('/'), None),
    };
    let probe = match name {
        "healthz" => Probe::Healthz,
        "livez" => Probe::Livez,
        "readyz" => Probe::Readyz,
        _ => return Target::Unknown,
    };
    // A path with a doubled slash at the start, or with a trailing slash, is a different path.
    if path.starts_with("//") || check.as_deref() == Some("") {
        Target::Unknown
    } else {
        Target::Probe { probe, check }
    }
}

fn parse_group(rest: &str) -> Target {
    match rest.split_once('/') {
        // The path consists of slashes.
        None if rest.is_empty() => Target::Unknown,
        Some(("", _)) => Target::Unknown,
        None => Target::Group(rest.to_owned()),
        Some((group, rest)) => parse_version(group, rest),
    }
}

fn parse_version(group: &str, rest: &str) -> Target {
    let Some((version, rest)) = rest.split_once('/') else {
        return if group.is_empty() && rest.is_empty() {
            Target::Unknown
        } else {
            Target::GroupVersion { group: group.to_owned(), version: rest.to_owned() }
        };
    };
    let mut parts: Vec<&str> = rest.split('/').collect();
    let mut path = ResourcePath { group: group.to_owned(), version: version.to_owned(), ..ResourcePath::default() };
    if matches!(parts[0], "watch" | "proxy") {
        path.verb_prefix = parts.remove(0).to_owned();
        if parts.is_empty() {
            return Target::Undetermined;
        }
    }
    if parts[0] == "namespaces" && parts.len() > 1 {
        path.namespace = parts[1].to_owned();
        if parts.len() > 2 && !matches!(parts[2], "status" | "finalize") {
            parts.drain(..2);
        }
    }
    let mut parts = parts.into_iter().map(str::to_owned);
    path.resource = parts.next().unwrap_or_default();
    path.name = parts.next().unwrap_or_default();
    if path.verb_prefix == "proxy" {
        path.rest = parts.collect()
    } else {
        path.subresource = parts.next().unwrap_or_default();
        path.rest = parts.collect();
    }
    Target::Resource(path)
}

/// What a request selects of the objects of a collection; a selector that can't be parsed counts as absent.
#[derive(Default)]
pub struct Selected {
    pub fields: Option<FieldSelector>,
    pub labels: Option<LabelSelector>,
}

impl ResourcePath {
    /// The verb of a request with `method` for this path. `watch` is the query parameter; it counts only for
    /// collections.
    ///
    /// HEAD is GET; a verb in the path wins over the method.
    pub fn verb(&self, method: &str, watch: bool) -> Verb {
        match (self.verb_prefix.as_str(), method) {
            ("watch", _) => Verb::Watch,
            ("proxy", _) => Verb::Proxy,
            (_, "GET" | "HEAD") if !self.name.is_empty() => Verb::Get,
            (_, "GET" | "HEAD") if watch => Verb::Watch,
            (_, "GET" | "HEAD") => Verb::List,
            (_, "POST") => Verb::Create,
            (_, "PUT") => Verb::Update,
            (_, "PATCH") => Verb::Patch,
            (_, "DELETE") if self.name.is_empty() => Verb::DeleteCollection,
            (_, "DELETE") => Verb::Delete,
            _ => Verb::Unsupported,
        }
    }

    /// The attributes for authorizers; `name` may come from elsewhere than the path.
    pub fn attributes<'a>(&'a self, verb: Verb, name: &'a str, selected: &'a Selected) -> Attributes<'a> {
        Attributes::Resource(ResourceAttributes {
            verb: verb.as_str(),
            group: &self.group,
            version: &self.version,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name,
            fields: selected.fields.as_ref(),
            labels: selected.labels.as_ref(),
        })
    }

    /// Whether the path has a namespace exactly if the resource has one. Lists and watches may cover all namespaces.
    ///
    /// A request for a custom resource in the wrong scope gets a 404 in plain text. A namespace is in a namespace of
    /// its own name.
    pub fn fits_scope(&self, namespaced: bool, verb: Verb) -> bool {
        if self.group.is_empty() && self.resource == "namespaces" {
            true
        } else if namespaced {
            !self.namespace.is_empty() || matches!(verb, Verb::List | Verb::Watch)
        } else {
            self.namespace.is_empty()
        }
    }
}

/// Decodes percent-escapes. Bytes that are not UTF-8 become U+FFFD.
pub(super) fn decode(path: &str) -> Result<String, MalformedEscape> {
    if !path.contains('%') {
        return Ok(path.to_owned());
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => hex(rest.next()).zip(hex(rest.next())).map(|(high, low)| high << 4 | low).ok_or(MalformedEscape)?,
            byte => byte,
        };
        bytes.push(byte);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn hex(digit: Option<u8>) -> Option<u8> {
    char::from(digit?).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, namespace: &str, resource: &str, name: &str, subresource: &str) -> ResourcePath {
        let Ok(Target::Resource(found)) = parse(path) else { panic!("{path} is not a resource path") };
        assert_eq!(
            [&found.namespace, &found.resource, &found.name, &found.subresource],
            [namespace, resource, name, subresource]
        );
        found
    }

    #[test]
    fn an_object_has_group_version_namespace_and_name() {
        let path = check("/apis/example.com/v1/namespaces/default/widgets/a", "default", "widgets", "a", "");
        assert_eq!((path.group.as_str(), path.version.as_str()), ("example.com", "v1"));
        check("/api/v1/pods", "", "pods", "", "");
    }

    #[test]
    fn subresources_and_what_follows_them_are_told_apart() {
        let path = check("/apis/g/v1/namespaces/n/widgets/a/status/more", "n", "widgets", "a", "status");
        assert_eq!(path.rest, ["more"]);
    }

    #[test]
    fn a_namespace_is_a_resource_of_its_own() {
        check("/api/v1/namespaces", "", "namespaces", "", "");
        check("/api/v1/namespaces/n", "n", "namespaces", "n", "");
        check("/api/v1/namespaces/n/finalize", "n", "namespaces", "n", "finalize");
        check("/api/v1/namespaces/n/configmaps", "n", "configmaps", "", "");
    }

    #[test]
    fn slashes_at_the_end_do_not_count_but_in_the_middle_they_do() {
        check("/apis/g/v1/widgets//", "", "widgets", "", "");
        check("/apis/g/v1//widgets", "", "", "widgets", "");
        assert_eq!(parse("//apis/g/v1/widgets"), Ok(Target::Unknown));
    }

    #[test]
    fn escapes_are_undone_before_the_path_is_split() {
        check("/apis/g/v1/widgets/a%2Fstatus", "", "widgets", "a", "status");
        assert_eq!(parse("/apis/%zz"), Err(MalformedEscape));
        assert_eq!(parse("/apis/%e"), Err(MalformedEscape));
    }

    #[test]
    fn a_watch_path_says_the_verb() {
        let path = check("/apis/g/v1/watch/namespaces/n/widgets/a", "n", "widgets", "a", "");
        assert_eq!(path.verb("GET", false), Verb::Watch);
        assert_eq!(parse("/apis/g/v1/watch"), Ok(Target::Undetermined));
    }

    #[test]
    fn methods_become_verbs_by_whether_a_name_is_given() {
        let one = check("/apis/g/v1/widgets/a", "", "widgets", "a", "");
        let all = check("/apis/g/v1/widgets", "", "widgets", "", "");
        assert_eq!([one.verb("GET", true), one.verb("DELETE", false)], [Verb::Get, Verb::Delete]);
        assert_eq!([all.verb("HEAD", false), all.verb("GET", true)], [Verb::List, Verb::Watch]);
        assert_eq!(
            [all.verb("DELETE", false), all.verb("OPTIONS", false)],
            [Verb::DeleteCollection, Verb::Unsupported]
        );
    }

    #[test]
    fn documents_about_the_server_have_fixed_paths() {
        assert_eq!(parse("/apis/"), Ok(Target::Groups));
        assert_eq!(parse("/apis/g/"), Ok(Target::Group("g".into())));
        assert_eq!(parse("/api/v1"), Ok(Target::GroupVersion { group: String::new(), version: "v1".into() }));
        assert_eq!(parse("/openapi/v3/apis/g/v1"), Ok(Target::OpenApiV3("apis/g/v1".into())));
        assert_eq!(parse("/livez/ping"), Ok(Target::Probe { probe: Probe::Livez, check: Some("ping".into()) }));
        assert_eq!(parse("/healthz/"), Ok(Target::Unknown));
        assert_eq!(parse("/nothing"), Ok(Target::Unknown));
    }
}
