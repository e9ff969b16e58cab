//! Service account tokens: JSON web tokens that this server signs and verifies.
//!
//! Input: whom a token is for and what it is bound to; later, the token. Output: the token; later, its
//! [`Claims`], once signature, issuer and audience are verified. The caller checks the times, and
//! whether the account still exists.
//!
//! Source: `pkg/serviceaccount` of Kubernetes and its error texts, release 1.36.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Header, Validation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::keys::{SigningKey, VerifyingKey};
use super::{TokenError, UserInfo};
use crate::object;
use crate::value::Value;
use crate::work;

mod foreign;

/// Why claims can't be signed.
pub type SignError = jsonwebtoken::errors::Error;

/// The allowed clock skew, in seconds.
pub const LEEWAY_S: i64 = 60;
/// How many tokens with verified signatures are cached.
const VERIFIED_MAX: usize = 1_000;
/// How long they may be, and for how many audiences: each takes twenty times its text. A token of a pod has a third of this.
const VERIFIED_BYTES_MAX: usize = 4096;
const VERIFIED_AUDIENCES_MAX: usize = 8;
/// The keys of how many control planes are accepted that an issuer is a copy of, the last ones.
const INHERITED_MAX: usize = 32;

/// The claims of a token, in the order of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    #[serde(default, rename = "aud", deserialize_with = "foreign::audiences")]
    pub audiences: Vec<String>,
    #[serde(default = "foreign::never", rename = "exp", deserialize_with = "foreign::expiry")]
    pub expires_at_s: i64,
    #[serde(default, rename = "iat", deserialize_with = "foreign::seconds")]
    pub issued_at_s: i64,
    #[serde(rename = "iss")]
    pub issuer: String,
    #[serde(default, rename = "jti")]
    pub id: String,
    #[serde(rename = "kubernetes.io")]
    pub about: About,
    #[serde(default, rename = "nbf", deserialize_with = "foreign::seconds")]
    pub not_before_s: i64,
    #[serde(rename = "sub")]
    pub subject: String,
}

/// The account that a token is for, and the objects that it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NamedObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<NamedObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<NamedObject>,
    pub serviceaccount: NamedObject,
    /// The time after which the use of the token causes a warning, in seconds since 1970, if its
    /// lifetime was extended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warnafter: Option<i64>,
}

/// One specific object, by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedObject {
    pub name: String,
    pub uid: String,
}

impl Claims {
    /// Checks that the token is valid at a time, in seconds since 1970; otherwise the error is the
    /// reason.
    pub fn check_time(&self, now_s: i64) -> Result<(), TokenError> {
        if now_s.saturating_add(LEEWAY_S) < self.not_before_s {
            Err(TokenError::NotYetValid)
        } else if now_s.saturating_sub(LEEWAY_S) > self.expires_at_s {
            Err(TokenError::Expired)
        } else if now_s.saturating_add(LEEWAY_S) < self.issued_at_s {
            Err(TokenError::IssuedInFuture)
        } else {
            Ok(())
        }
    }

    /// The unique id of this token, as the user's extra value holds it.
    pub fn credential_id(&self) -> String {
        format!("JTI={}", self.id)
    }

    /// The user that stands for the account.
    pub fn user(&self) -> UserInfo {
        let About { namespace, node, pod, serviceaccount, .. } = &self.about;
        let groups = UserInfo::account_groups(namespace);
        let mut user = UserInfo::authenticated(UserInfo::account_name(namespace, &serviceaccount.name), groups);
        user.uid.clone_from(&serviceaccount.uid);
        let mut extra = |key: &str, value: String| user.extra.insert(key.to_owned(), vec![value]);
        if !self.id.is_empty() {
            extra(UserInfo::CREDENTIAL_ID, self.credential_id());
        }
        if let Some(pod) = pod {
            extra(UserInfo::POD_NAME, pod.name.clone());
            extra(UserInfo::POD_UID, pod.uid.clone());
        }
        if let Some(node) = node {
            extra(UserInfo::NODE_NAME, node.name.clone());
            extra(UserInfo::NODE_UID, node.uid.clone());
        }
        user
    }
}

/// A token that this server issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnToken {
    pub claims: Arc<Claims>,
    /// Its audiences, as far as they were asked for.
    pub audiences: Vec<String>,
}

/// Issues and verifies tokens.
pub struct TokenIssuer {
    /// The issuer's names. They are URLs that clients compare; they need not be reachable. The
    /// first one is put into new tokens, all are accepted.
    names: Vec<String>,
    /// The default audiences of tokens; to be accepted here, a token needs one of them.
    api_audiences: Vec<String>,
    key: SigningKey,
    /// The keys that tokens may be signed with.
    known: Vec<VerifyingKey>,
    /// The keys of the issuers that this one was copied from.
    inherited: Vec<Inherited>,
    /// Tokens whose signature was verified, by digest: the verification takes longer than all the
    /// rest.
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

impl TokenIssuer {
    /// An issuer that signs with `key` under the first of `names`, and accepts tokens of all these
    /// names that are signed with it.
    pub fn new(names: Vec<String>, api_audiences: Vec<String>, key: SigningKey) -> Self {
        let known = vec![key.public.clone()];
        TokenIssuer { names, api_audiences, key, known, inherited: Vec::new(), verified: Mutex::default() }
    }

    /// The issuer of a copy of the control plane: it signs with `key`, and accepts the tokens that
    /// were issued here until now. Later tokens are only accepted by the control plane that issued
    /// them.
    pub fn heir(&self, key: SigningKey) -> Self {
        let until = Stamp::now();
        let own = self.known.iter().map(|key| Inherited { key: key.clone(), until });
        let mut inherited: Vec<_> = own.chain(self.inherited.iter().cloned()).collect();
        let mut ids = HashSet::new();
        // Of the same key, the newest counts.
        inherited.retain(|inherited| ids.insert(inherited.key.id.clone()));
        inherited.truncate(INHERITED_MAX);
        TokenIssuer { inherited, ..TokenIssuer::new(self.names.clone(), self.api_audiences.clone(), key) }
    }

    /// The keys that tokens may be signed with, inherited ones included.
    fn keys(&self) -> impl Iterator<Item = &VerifyingKey> {
        self.known.iter().chain(self.inherited.iter().map(|inherited| &inherited.key))
    }

    /// The same issuer, which only accepts tokens that are signed with one of `known` or an
    /// inherited key.
    pub fn knowing(self, known: Vec<VerifyingKey>) -> Self {
        TokenIssuer { known, ..self }
    }

    fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    pub fn api_audiences(&self) -> &[String] {
        &self.api_audiences
    }

    /// Signs `claims` after setting their issuer.
    pub fn issue(&self, claims: Claims) -> Result<String, SignError> {
        self.sign(&Claims { issuer: self.name().to_owned(), ..claims })
    }

    /// Signs `claims` and returns the token.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Result<String, SignError> {
        let header =
            Header { typ: None, kid: Some(self.key.public.id.clone()), ..Header::new(self.key.public.algorithm) };
        jsonwebtoken::encode(&header, claims, &self.key.private)
    }

    /// Returns the claims of a token, and those of `audiences` that it is for; `None` for a token
    /// of another issuer.
    ///
    /// # Errors
    ///
    /// The token names this issuer, but it was not signed here, or it is not for any of
    /// `audiences`.
    pub fn read(&self, token: &str, audiences: &[String]) -> Result<Option<OwnToken>, TokenError> {
        let Some(key_id) = key_id_of(token, |issuer| self.names.iter().any(|name| issuer == *name)) else {
            return Ok(None);
        };
        let claims = self.verify(token, &key_id)?;
        let audiences = common_audiences(&claims.audiences, audiences)?;
        Ok(Some(OwnToken { claims, audiences }))
    }

    fn verify(&self, token: &str, key_id: &str) -> Result<Arc<Claims>, TokenError> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(claims) = self.verified().get(&digest) {
            return Ok(Arc::clone(claims));
        }
        let claims: Claims = self.signed(token, key_id, |claims: &Claims| Stamp::of(&claims.id))?;
        let claims = Arc::new(claims);
        if token.len() > VERIFIED_BYTES_MAX || claims.audiences.len() > VERIFIED_AUDIENCES_MAX {
            return Ok(claims);
        }
        let mut verified = self.verified();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(digest, Arc::clone(&claims));
        Ok(claims)
    }

    /// The claims of a token that is signed with one of the keys; `issued` returns its time of
    /// issue, if it has one.
    ///
    /// # Errors
    ///
    /// No key has the id `key_id`, or none has signed the token.
    pub(super) fn signed<C: DeserializeOwned>(
        &self,
        token: &str,
        key_id: &str,
        issued: impl Fn(&C) -> Option<Stamp>,
    ) -> Result<C, TokenError> {
        let is_meant = |key: &VerifyingKey| key_id.is_empty() || key_id == key.id;
        if !self.keys().any(is_meant) {
            return Err(TokenError::NoKey);
        }
        let own = self.known.iter().filter(|key| is_meant(key)).find_map(|key| signed_with(token, key));
        let inherited = || {
            // Every token of this program names its key.
            let meant = self.inherited.iter().filter(|inherited| key_id == inherited.key.id);
            let mut signed = meant.filter_map(|inherited| Some((signed_with(token, &inherited.key)?, inherited.until)));
            signed.find(|(claims, until)| issued(claims).is_none_or(|issued| issued <= *until))
        };
        own.or_else(|| inherited().map(|(claims, _)| claims)).ok_or(TokenError::Signature)
    }

    fn verified(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<Claims>>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The document at `/.well-known/openid-configuration`; `None` if the issuer's name is not a
    /// URL that may have one.
    pub fn discovery(&self, key_set_url: &str) -> Option<Value> {
        let name = self.name();
        let may = name.starts_with("https://") && !name.contains(['?', '#']);
        let algorithms: BTreeSet<_> = self.keys().map(VerifyingKey::algorithm_name).collect();
        may.then(|| {
            object! {
                "issuer" => name,
                "jwks_uri" => key_set_url,
                "response_types_supported" => vec![Value::from("id_token")],
                "subject_types_supported" => vec![Value::from("public")],
                "id_token_signing_alg_values_supported" => algorithms.into_iter().map(Value::from).collect::<Vec<_>>(),
            }
        })
    }

    /// The JSON web key set.
    pub fn key_set(&self) -> Value {
        object! { "keys" => self.keys().map(VerifyingKey::to_jwk).collect::<Vec<_>>() }
    }
}

/// The id of the key that a token claims to be signed with, if the token is well formed and its
/// issuer is ours; nothing is verified.
pub(super) fn key_id_of(token: &str, is_ours: impl Fn(&str) -> bool) -> Option<String> {
    let mut parts = token.split('.');
    let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let Payload { issuer } = part_of(payload)?;
    let mut is_whole = || parts.next().is_none() && URL_SAFE_NO_PAD.decode(signature).is_ok();
    if !is_ours(&issuer) || !is_whole() {
        return None;
    }
    part_of(header).map(|header: SignedHeader| header.key_id)
}

/// What is needed of a part of a token, which is a JSON object. Anybody may send a long one: the rest of it is passed
/// over.
fn part_of<T: DeserializeOwned>(part: &str) -> Option<T> {
    let text = URL_SAFE_NO_PAD.decode(part).ok()?;
    // A struct may also be read from a list.
    if !text.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    serde_json::from_slice(&text).ok()
}

#[derive(Deserialize)]
struct Payload {
    #[serde(default, rename = "iss")]
    issuer: String,
}

#[derive(Deserialize)]
struct SignedHeader {
    #[serde(default, rename = "kid")]
    key_id: String,
}

/// Those of the wanted audiences that a token has; an error if there are none.
pub(super) fn common_audiences(own: &[String], wanted: &[String]) -> Result<Vec<String>, TokenError> {
    let known: HashSet<&String> = own.iter().inspect(|audience| work::bytes(audience.len())).collect();
    let asked = wanted.iter().inspect(|audience| work::bytes(audience.len()));
    let common: Vec<_> = asked.filter(|wanted| known.contains(wanted)).cloned().collect();
    if common.is_empty() {
        return Err(TokenError::Audience { own: own.to_vec(), wanted: wanted.to_vec() });
    }
    Ok(common)
}

/// A key that another control plane signs with.
#[derive(Clone)]
struct Inherited {
    key: VerifyingKey,
    /// Later signatures with it belong to the other control plane.
    until: Stamp,
}

/// When a token was issued, by the machine's clock: milliseconds since 1970, and 12 bits of their
/// fraction, in units of about 0.25 µs.
///
/// It is part of the token's id, a UUID of version 7. The times in the token's claims follow a
/// clock that may be set, and are in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(u64);

const FRACTION_BITS: u32 = 12;

impl Stamp {
    fn now() -> Self {
        let nanos = jiff::Timestamp::now().as_nanosecond();
        let millis = u64::try_from(nanos.div_euclid(1_000_000)).unwrap_or_default();
        let fraction = u64::try_from((nanos.rem_euclid(1_000_000) << FRACTION_BITS) / 1_000_000).unwrap_or_default();
        Stamp(millis << FRACTION_BITS | fraction)
    }

    /// The stamp in an id; `None` if the id is not a UUID of version 7.
    fn of(id: &str) -> Option<Self> {
        const VERSION: usize = 7;
        let id = Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == VERSION)?;
        let (high, _) = id.as_u64_pair();
        Some(Stamp(high >> 16 << FRACTION_BITS | high & ((1 << FRACTION_BITS) - 1)))
    }
}

/// A new id for a token.
pub fn new_token_id() -> String {
    let Stamp(stamp) = Stamp::now();
    let mut rest = [0; 10];
    rest.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
    let fraction = (stamp & ((1 << FRACTION_BITS) - 1)).to_be_bytes();
    rest[..2].copy_from_slice(&fraction[6..]);
    uuid::Builder::from_unix_timestamp_millis(stamp >> FRACTION_BITS, &rest).into_uuid().to_string()
}

/// The claims of a token, if it was signed with the private half of `key`.
fn signed_with<C: DeserializeOwned>(token: &str, key: &VerifyingKey) -> Option<C> {
    let mut validation = Validation::new(key.algorithm);
    // These are checked elsewhere, with the error texts of Kubernetes.
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    jsonwebtoken::decode::<C>(token, &key.public, &validation).ok().map(|read| read.claims)
}

#[cfg(test)]
mod tests;
