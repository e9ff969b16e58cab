//! Impersonation: requests that a user sends as another user, by headers, and whether that is allowed.
//!
//! There are several modes. They are tried in turn: while the gate ConstrainedImpersonation is open, first those that
//! allow one verb of the request (`impersonate-on:MODE:VERB` and `impersonate:MODE`), then the one that allows all
//! requests (`impersonate`).
//! Source: `endpoints/filters/impersonation` of apiserver, release 1.37.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;

use crate::auth::{Attributes, Authorizer, Decision, ResourceAttributes, UserInfo, Verdict};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::{Status, names};
use crate::value::go_quote;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
/// From this many groups or values on, the right to all of them is checked first.
const MANY: usize = 4;
/// For how many users the last mode is remembered.
const REMEMBERED_MAX: usize = 10_000;

/// A way to be allowed to impersonate, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    /// Allows all requests.
    Legacy,
}

impl Mode {
    const ALL: [Self; 5] =
        [Mode::AssociatedNode, Mode::ArbitraryNode, Mode::ServiceAccount, Mode::UserInfo, Mode::Legacy];

    const fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    /// The verb that is checked for each part of the wanted user.
    fn verb(self) -> String {
        match self {
            Mode::Legacy => "impersonate".to_owned(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    /// Whether the mode applies to this user.
    fn suits(self, wanted: &UserInfo, requestor: &UserInfo) -> bool {
        let name_alone = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_of(&wanted.name);
        match self {
            Mode::AssociatedNode => {
                let own = requestor.extra.get(UserInfo::NODE_NAME).map(Vec::as_slice);
                let is_own = matches!(own, Some([own]) if Some(own.as_str()) == node);
                name_alone && is_own && requestor.account().is_some()
            }
            Mode::ArbitraryNode => name_alone && node.is_some(),
            Mode::ServiceAccount => name_alone && wanted.account().is_some(),
            Mode::UserInfo => node.is_none() && wanted.account().is_none(),
            Mode::Legacy => true,
        }
    }
}

/// The user that a request is made as.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Impersonated {
    pub user: UserInfo,
    /// The verb that allowed it, if it allows only some requests.
    pub constraint: String,
}

impl Impersonated {
    /// The name of the mode that allowed it, for metrics.
    pub fn mode(&self) -> &str {
        self.constraint.strip_prefix("impersonate:").unwrap_or("legacy")
    }
}

/// The mode that last succeeded for each user: it is tried first.
#[derive(Default)]
pub(super) struct LastModes(Mutex<HashMap<String, Mode>>);

impl LastModes {
    fn get(&self, user: &str) -> Option<Mode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(user).copied()
    }

    fn set(&self, user: &str, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if modes.len() >= REMEMBERED_MAX {
            modes.clear();
        }
        modes.insert(user.to_owned(), mode);
    }
}

/// Parts of a user without a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nameless(UserInfo);

impl Nameless {
    /// The 400, in the words of a server that `constrains` impersonation or in those of an older one.
    pub fn refuse(&self, constrains: bool) -> Status {
        let Nameless(user) = self;
        Status::bad_request(&if constrains {
            format!("requested {} without impersonating a user name", go_syntax(user))
        } else {
            format!("requested {} without impersonating a user", go_references(user))
        })
    }
}

/// The user that the headers ask for; `None` if they ask for none.
pub(super) fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, Nameless> {
    let texts =
        |name: &str| headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            extra.entry(unescape(key)).or_default().extend(texts(name.as_str()));
        }
    }
    let wanted = UserInfo {
        name: texts(USER).next().unwrap_or_default(),
        uid: texts(UID).next().unwrap_or_default(),
        groups: texts(GROUP).collect(),
        extra,
    };
    let is_empty = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    match (wanted.name.is_empty(), is_empty) {
        (false, _) => Ok(Some(wanted)),
        (true, true) => Ok(None),
        (true, false) => Err(Nameless(wanted)),
    }
}

/// The user as Go's `%#v` shows it.
fn go_syntax(user: &UserInfo) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<_> = texts.iter().map(|text| go_quote(text)).collect();
        quoted.join(", ")
    };
    let groups =
        if user.groups.is_empty() { "[]string(nil)".to_owned() } else { format!("[]string{{{}}}", list(&user.groups)) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs = user.extra.iter();
        let pairs = pairs.map(|(key, values)| format!("{}:[]string{{{}}}", go_quote(key), list(values)));
        format!("map[string][]string{{{}}}", pairs.collect::<Vec<_>>().join(", "))
    };
    let (name, uid) = (go_quote(&user.name), go_quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

/// The parts of a user as Go's `%v` shows a list of `ObjectReference`s: each field, in the order of the type.
///
/// Source: `buildImpersonationRequests` of `endpoints/filters/impersonation` in apiserver.
fn go_references(user: &UserInfo) -> String {
    const VERSION: &str = "authentication.k8s.io/v1";
    let reference =
        |kind: &str, name: &str, api_version: &str, path: &str| format!("{{{kind}  {name}  {api_version}  {path}}}");
    let groups = user.groups.iter().map(|group| reference("Group", group, "", ""));
    let extra = user.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    let extra = extra.map(|(key, value)| reference("UserExtra", value, VERSION, key));
    let uid = (!user.uid.is_empty()).then(|| reference("UID", &user.uid, VERSION, ""));
    format!("[{}]", groups.chain(extra).chain(uid).collect::<Vec<_>>().join(" "))
}

/// Undoes percent-escapes, unless one is malformed.
fn unescape(key: &str) -> String {
    super::path::decode(key).unwrap_or_else(|_| key.to_owned())
}

/// Lets `requestor` impersonate `wanted` for a request. Without `constrains`, only the mode that allows all requests is
/// tried.
///
/// Errors: 403 with the right that is missing.
pub(super) async fn impersonate(
    (authorizer, constrains): (&dyn Authorizer, bool),
    last_modes: &LastModes,
    requestor: &UserInfo,
    wanted: &UserInfo,
    request: &Attributes<'_>,
) -> Result<Impersonated, Status> {
    if !constrains {
        let checks = ModeChecks { authorizer, mode: Mode::Legacy, requestor, tells_errors: false };
        return checks.check(wanted, request).await;
    }
    let last = last_modes.get(&requestor.name);
    let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != last);
    let mut first_refusal = None;
    for mode in last.into_iter().chain(others).filter(|mode| mode.suits(wanted, requestor)) {
        // What a service account may do as its node does not depend on what else is known of it.
        let keys_alone = (mode == Mode::AssociatedNode).then(|| with_keys_alone(requestor));
        let requestor = keys_alone.as_ref().unwrap_or(requestor);
        match (ModeChecks { authorizer, mode, requestor, tells_errors: true }).check(wanted, request).await {
            Ok(impersonated) => {
                last_modes.set(&requestor.name, mode);
                return Ok(impersonated);
            }
            Err(refusal) => _ = first_refusal.get_or_insert(refusal),
        }
    }
    Err(first_refusal.unwrap_or_else(|| Status::internal_error("all impersonation modes failed")))
}

/// The checks of one mode.
struct ModeChecks<'a> {
    authorizer: &'a dyn Authorizer,
    mode: Mode,
    requestor: &'a UserInfo,
    /// Whether a refusal tells an error of the authorizer: since there are several modes.
    tells_errors: bool,
}

impl ModeChecks<'_> {
    fn is_constrained(&self) -> bool {
        self.mode != Mode::Legacy
    }

    async fn check(&self, wanted: &UserInfo, request: &Attributes<'_>) -> Result<Impersonated, Status> {
        if self.is_constrained() {
            self.check_request(request).await?;
        }
        let mut user = wanted.clone();
        self.check_name(wanted, &mut user).await?;
        // Before there were modes, the uid came last.
        let uid_comes_last = !self.tells_errors;
        if !uid_comes_last {
            self.check_uid(&wanted.uid).await?;
        }
        self.check_groups(&wanted.groups).await?;
        self.check_extra(&wanted.extra).await?;
        if uid_comes_last {
            self.check_uid(&wanted.uid).await?;
        }
        let added = if user.name == ANONYMOUS {
            Some(UNAUTHENTICATED)
        } else {
            Some(UserInfo::AUTHENTICATED).filter(|_| !user.is_in(UNAUTHENTICATED))
        };
        if let Some(added) = added.filter(|added| !user.is_in(added)) {
            user.groups.push(added.to_owned());
        }
        let constraint = if self.is_constrained() { self.mode.verb() } else { String::new() };
        Ok(Impersonated { user, constraint })
    }

    /// Whether the requestor may do what the request asks for, as such a user.
    async fn check_request(&self, request: &Attributes<'_>) -> Result<(), Status> {
        let on = |verb: &str| format!("impersonate-on:{}:{verb}", self.mode.name());
        match *request {
            Attributes::Resource(of) => {
                self.authorize(&Attributes::Resource(ResourceAttributes { verb: &on(of.verb), ..of })).await
            }
            Attributes::Path { verb, path } => self.authorize(&Attributes::Path { verb: &on(verb), path }).await,
        }
    }

    async fn check_name(&self, wanted: &UserInfo, user: &mut UserInfo) -> Result<(), Status> {
        let verb = self.mode.verb();
        let of = ResourceAttributes { verb: &verb, version: "v1", group: self.user_group(), ..Default::default() };
        if let Some(node) = node_of(&wanted.name).filter(|_| self.is_constrained()) {
            user.groups = vec![NODES.to_owned()];
            // A service account that runs on a node may impersonate any node that it runs on.
            let name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            return self.authorize(&Attributes::Resource(ResourceAttributes { resource: "nodes", name, ..of })).await;
        }
        if let Some((namespace, name)) = wanted.account() {
            if wanted.groups.is_empty() {
                user.groups = UserInfo::account_groups(namespace);
            }
            let of = ResourceAttributes { resource: "serviceaccounts", namespace, name, ..of };
            return self.authorize(&Attributes::Resource(of)).await;
        }
        self.authorize(&Attributes::Resource(ResourceAttributes { resource: "users", name: &wanted.name, ..of })).await
    }

    async fn check_groups(&self, groups: &[String]) -> Result<(), Status> {
        let has = |wanted: &str| groups.iter().any(|group| group == wanted);
        if self.is_constrained() && has("") {
            return Err(self.refuse("groups", "", "", "impersonating the empty string group is not allowed"));
        }
        if self.is_constrained() && has(UserInfo::MASTERS) {
            let why = "impersonating the system:masters group is not allowed";
            return Err(self.refuse("groups", "", UserInfo::MASTERS, why));
        }
        if self.is_constrained() && groups.len() >= MANY && self.check_part("groups", "", "*").await.is_ok() {
            return Ok(());
        }
        for group in groups {
            self.check_part("groups", "", group).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, extra: &BTreeMap<String, Vec<String>>) -> Result<(), Status> {
        if self.is_constrained() {
            let fault = extra.iter().find_map(|(key, values)| fault_of_extra(key, values));
            if let Some(why) = fault {
                return Err(self.refuse("userextras", "", "", &why));
            }
            let are_many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if are_many && self.check_part("userextras", "*", "*").await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.check_part("userextras", key, value).await?;
            }
        }
        Ok(())
    }

    async fn check_part(&self, resource: &str, subresource: &str, name: &str) -> Result<(), Status> {
        let verb = self.mode.verb();
        self.authorize(&self.part(&verb, resource, subresource, name)).await
    }

    fn refuse(&self, resource: &str, subresource: &str, name: &str, why: &str) -> Status {
        let verb = self.mode.verb();
        forbidden(&self.part(&verb, resource, subresource, name), self.requestor, why)
    }

    fn part<'p>(&self, verb: &'p str, resource: &'p str, subresource: &'p str, name: &'p str) -> Attributes<'p> {
        let group = if resource == "groups" { self.user_group() } else { AUTHENTICATION };
        let of = ResourceAttributes { verb, group, version: "v1", ..Default::default() };
        Attributes::Resource(ResourceAttributes { resource, subresource, name, ..of })
    }

    /// The API group of users and groups.
    fn user_group(&self) -> &'static str {
        if self.is_constrained() { AUTHENTICATION } else { "" }
    }

    async fn check_uid(&self, uid: &str) -> Result<(), Status> {
        if uid.is_empty() { Ok(()) } else { self.check_part("uids", "", uid).await }
    }

    async fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let Decision { verdict, reason, error } = self.authorizer.authorize(self.requestor, attributes).await;
        if verdict == Verdict::Allow {
            return Ok(());
        }
        let why = match (error.as_str(), reason.as_str()) {
            (error, "") if self.tells_errors => error.to_owned(),
            (error, reason) if self.tells_errors && !error.is_empty() => format!("{error}: {reason}"),
            (_, reason) => reason.to_owned(),
        };
        Err(forbidden(attributes, self.requestor, &why))
    }
}

/// The user with the keys of its extra values in place of them.
fn with_keys_alone(user: &UserInfo) -> UserInfo {
    const KEYS: &str = "authentication.kubernetes.io/associated-node-keys";
    let keys = user.extra.keys().cloned().collect();
    UserInfo { extra: BTreeMap::from([(KEYS.to_owned(), keys)]), ..user.clone() }
}

fn forbidden(attributes: &Attributes<'_>, user: &UserInfo, reason: &str) -> Status {
    let why = attributes.refusal(user, reason);
    match attributes {
        Attributes::Resource(of) => Status::forbidden(of.group, of.resource, of.name, &why),
        Attributes::Path { .. } => Status::forbidden_path(&why),
    }
}

/// What is wrong with an extra value; the legacy mode is more lenient.
fn fault_of_extra(key: &str, values: &[String]) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let errors = check_domain_prefixed_path(key);
    if !errors.is_empty() {
        return Some(format!("impersonating an invalid key in extra is not allowed: {}", errors.aggregate()));
    }
    if key.to_lowercase() != key {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {}", go_quote(key)));
    }
    let is_empty = values.iter().any(String::is_empty);
    is_empty.then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

/// Source: `IsDomainPrefixedPath` of apimachinery.
fn check_domain_prefixed_path(key: &str) -> ErrorList {
    const PATH_PUNCTUATION: &str = "/-._~%!$&'()*+,;=:";
    let extra = Path::new("extra");
    let at = extra.child("key");
    let Some((host, path)) = key.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty()) else {
        return Error::invalid(&at, key, "must be a domain-prefixed path (such as \"acme.io/foo\")").into();
    };
    let faults = names::is_dns1123_subdomain(host).into_iter();
    let mut errors: ErrorList = faults.map(|fault| Error::invalid(&at, host, fault)).collect();
    if !path.chars().all(|letter| letter.is_ascii_alphanumeric() || PATH_PUNCTUATION.contains(letter)) {
        let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.push(Error::invalid(&at, path, why));
    }
    errors
}

/// The node whose user this is.
fn node_of(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|name| names::name_is_dns1123_subdomain(name, false).is_empty())
}

#[cfg(test)]
mod tests;
