//! Checks the tokens of service accounts: the account and the object that a token is bound to must still exist.
//!
//! Source: `pkg/serviceaccount/{claims,legacy}.go` of Kubernetes, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::auth::{
    AccountError, Authenticated, AuthenticationNotes, Claims, LEEWAY_S, NamedObject, OwnToken, SecretClaims,
    TokenAuthenticator, TokenError, TokenIssuer, UserInfo,
};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Stored};
use crate::value::{Value, base64, json};

/// The labels of a Secret that record when its token was last used, and since when it must not be used.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Authenticates the tokens of stored service accounts.
pub struct StoredAccounts {
    pub registry: Arc<Registry>,
    pub issuer: Arc<TokenIssuer>,
}

#[async_trait]
impl TokenAuthenticator for StoredAccounts {
    async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Option<Authenticated>, TokenError> {
        let Some(OwnToken { claims, audiences }) = self.issuer.read(token, audiences)? else {
            return self.authenticate_from_secret(token, audiences).await;
        };
        claims.check_time(self.registry.clock.now().as_second())?;
        if let Err(refusal) = self.check(&claims).await {
            // Another process may have created or recreated the object in the meantime.
            if self.registry.storage.catch_up().await.is_err() {
                return Err(refusal.into());
            }
            self.check(&claims).await?;
        }
        let notes = self.notes_of(&claims);
        Ok(Some(Authenticated { user: claims.user(), audiences, notes }))
    }
}

impl StoredAccounts {
    async fn authenticate_from_secret(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<Authenticated>, TokenError> {
        let Some((claims, audiences)) = self.issuer.read_from_secret(token, audiences)? else { return Ok(None) };
        claims.check()?;
        let account = match self.check_secret(&claims, token).await {
            Ok(account) => account,
            Err(refusal) if self.registry.storage.catch_up().await.is_err() => return Err(refusal.into()),
            Err(_) => self.check_secret(&claims, token).await?,
        };
        let notes = notes_of_secret(&claims, &json::decode(&account.bytes).unwrap_or_default());
        Ok(Some(Authenticated { user: claims.user(), audiences, notes }))
    }

    /// A token that is only valid for so long because its time was extended tells that it is used after its own.
    fn notes_of(&self, claims: &Claims) -> AuthenticationNotes {
        let mut notes = AuthenticationNotes::default();
        let now = self.registry.clock.now().as_second();
        if let Some(after) = claims.about.warnafter.filter(|after| *after != 0 && now > *after) {
            let (subject, seconds) = (&claims.subject, now.saturating_sub(after));
            let text = format!("subject: {subject}, seconds after warning threshold: {seconds}");
            notes.annotations.push(("authentication.k8s.io/stale-token", text));
        }
        notes
    }

    /// The account that the token was issued for; it still exists, and the Secret holds the token.
    async fn check_secret(&self, claims: &SecretClaims, token: &str) -> Result<Arc<Stored>, AccountError> {
        let SecretClaims { namespace, secret: name, account, account_uid, .. } = claims;
        let stored = self.get("secrets", &format!("{namespace}/{name}")).await?.ok_or(AccountError::SecretGone)?;
        let secret = json::decode(&stored.bytes).map_err(unreadable)?;
        if secret.at(&["metadata", "deletionTimestamp"]).is_some() {
            return Err(AccountError::SecretGone);
        }
        if base64::decode(secret.str_at(&["data", "token"])).unwrap_or_default() != token.as_bytes() {
            return Err(AccountError::OtherToken);
        }
        let Some(stored) = self.get("serviceaccounts", &format!("{namespace}/{account}")).await? else {
            return Err(AccountError::NotFound(Status::not_found("", "serviceaccounts", account)));
        };
        if stored.metadata_field("\"deletionTimestamp\"").is_some() {
            let (namespace, name) = (namespace.clone(), account.clone());
            return Err(AccountError::DeletedOfSecret { namespace, name });
        }
        if *stored.uid != **account_uid {
            return Err(other_uid("ServiceAccount", "claim", &stored, account_uid));
        }
        self.note_use(&secret).await;
        if secret.str_at(&["metadata", "labels", INVALID_SINCE]).is_empty() {
            return Ok(stored);
        }
        let (namespace, secret, account) = (namespace.clone(), name.clone(), account.clone());
        Err(AccountError::MarkedInvalid { namespace, secret, account, label: INVALID_SINCE })
    }

    /// Labels a Secret with the day on which its token was last used, at most once a day.
    async fn note_use(&self, secret: &Value) {
        let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
        let now = self.registry.clock.now();
        let tomorrow = now.checked_add(jiff::SignedDuration::from_hours(24)).unwrap_or(now);
        let (known, today) = (secret.str_at(&["metadata", "labels", LAST_USED]), day(now));
        if known == today || known == day(tomorrow) {
            return;
        }
        let metadata =
            object! { "uid" => secret.str_at(&["metadata", "uid"]), "labels" => object! { LAST_USED => today } };
        let request = PatchRequest {
            patch_type: PatchType::Merge,
            bytes: json::encode(&object! { "metadata" => metadata }).into(),
            field_validation: FieldValidation::Ignore,
            manager: "kube-apiserver".to_owned(),
            force: false,
            dry_run: false,
            options: Value::Null,
        };
        if let Err(status) = self.patch_secret(secret, &request).await {
            tracing::warn!(status.message, "the use of a token could not be noted at its Secret");
        }
    }

    async fn patch_secret(&self, secret: &Value, request: &PatchRequest) -> Result<(), Status> {
        let resource = self.registry.resolve("", "secrets").await?.ok_or_else(Status::not_found_generic)?;
        let version = Arc::clone(resource.storage());
        let text = |field: &str| secret.str_at(&["metadata", field]).to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
        let user = UserInfo::authenticated("system:apiserver", vec![UserInfo::MASTERS.to_owned()]);
        self.registry.patch(&target, &user, request, &mut Warnings::default()).await.map(drop)
    }

    /// Whether the account and the bound object of a token exist, and are the ones that it was issued for.
    async fn check(&self, claims: &Claims) -> Result<(), AccountError> {
        let about = &claims.about;
        let (namespace, account) = (&about.namespace, &about.serviceaccount);
        let Some(stored) = self.get("serviceaccounts", &format!("{namespace}/{}", account.name)).await? else {
            return Err(AccountError::NotFound(Status::not_found("", "serviceaccounts", &account.name)));
        };
        if *stored.uid != *account.uid {
            return Err(other_uid("service account", "claim", &stored, &account.uid));
        }
        if self.is_gone(&stored) {
            return Err(AccountError::Deleted { namespace: namespace.clone(), name: account.name.clone() });
        }
        if let Some(secret) = &about.secret {
            let key = format!("{namespace}/{}", secret.name);
            self.check_bound("secrets", &key, secret, "secret", "service account secret ref claim").await?;
        }
        if let Some(pod) = &about.pod {
            let key = format!("{namespace}/{}", pod.name);
            // The node of a pod is only recorded, not checked.
            return self.check_bound("pods", &key, pod, "pod", "service account pod ref claim").await;
        }
        if let Some(node) = &about.node {
            self.check_bound("nodes", &node.name, node, "node", "service account node ref claim").await?;
        }
        Ok(())
    }

    async fn check_bound(
        &self,
        plural: &str,
        key: &str,
        bound: &NamedObject,
        what: &'static str,
        claim: &'static str,
    ) -> Result<(), AccountError> {
        let stored = self.get(plural, key).await?.ok_or(AccountError::Invalidated)?;
        if *stored.uid != *bound.uid {
            return Err(other_uid(what, claim, &stored, &bound.uid));
        }
        if self.is_gone(&stored) { Err(AccountError::Invalidated) } else { Ok(()) }
    }

    /// Whether the object's deletion time has passed by more than the allowed clock skew.
    fn is_gone(&self, stored: &Stored) -> bool {
        let deleted = stored.metadata_field("\"deletionTimestamp\"").and_then(|text| json::decode(text).ok());
        let deleted =
            deleted.as_ref().and_then(|text| text.as_str()).and_then(|text| text.parse::<jiff::Timestamp>().ok());
        deleted
            .is_some_and(|deleted| deleted.as_second() < self.registry.clock.now().as_second().saturating_sub(LEEWAY_S))
    }

    async fn get(&self, plural: &str, key: &str) -> Result<Option<Arc<Stored>>, AccountError> {
        self.registry.storage.get(&Collection::new("", plural), key).await.map_err(unreadable)
    }
}

/// What is told of a token in a Secret: whether the account lists the Secret, as those that were made for it by the
/// server.
fn notes_of_secret(claims: &SecretClaims, account: &Value) -> AuthenticationNotes {
    const WARNING: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                           auto-generated secret-based tokens.";
    let name = claims.secret.as_str();
    let mut notes = AuthenticationNotes::default();
    notes.annotations.push(("authentication.k8s.io/legacy-token", claims.user().name));
    if account.items_at(&["secrets"]).iter().any(|secret| secret.str_at(&["name"]) == name) {
        notes.warnings.push(WARNING);
        notes.annotations.push(("authentication.k8s.io/legacy-token-autogenerated-secret", name.to_owned()));
    } else {
        notes.annotations.push(("authentication.k8s.io/legacy-token-manual-secret", name.to_owned()));
    }
    notes
}

fn unreadable(error: impl std::error::Error) -> AccountError {
    AccountError::Unreadable(error.to_string())
}

fn other_uid(what: &'static str, claim: &'static str, stored: &Stored, claimed: &str) -> AccountError {
    AccountError::Uid { what, claim, found: stored.uid.to_string(), claimed: claimed.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::registry;
    use super::*;
    use crate::auth::{About, SigningKey};

    #[tokio::test]
    async fn a_token_that_is_used_after_its_own_time_says_so() {
        let registry = registry().await;
        let now = registry.clock.now().as_second();
        let key = SigningKey::from_der(&SigningKey::generate().expect("ring makes keys")).expect("it is a key");
        let issuer = Arc::new(TokenIssuer::new(vec!["https://issuer".to_owned()], vec!["api".to_owned()], key));
        let accounts = StoredAccounts { registry, issuer };
        let told = |warnafter| {
            let about = About { warnafter, ..About::default() };
            let claims = Claims { subject: "system:serviceaccount:n:ci".to_owned(), about, ..Claims::default() };
            accounts.notes_of(&claims).annotations
        };
        assert_eq!([told(None), told(Some(0)), told(Some(now + 100))].concat(), []);
        let [(name, text)] = &told(Some(now - 100))[..] else { panic!("it is told once") };
        assert_eq!(*name, "authentication.k8s.io/stale-token");
        assert!(text.starts_with("subject: system:serviceaccount:n:ci, seconds after warning threshold: 10"), "{text}");
    }

    #[tokio::test]
    async fn a_token_in_a_secret_is_told_by_whether_its_account_lists_it() {
        let claims = SecretClaims::new("n", "s", "ci", "u-1");
        let told = |account: Value| {
            let notes = notes_of_secret(&claims, &account);
            (notes.warnings.len(), notes.annotations)
        };
        let legacy = ("authentication.k8s.io/legacy-token", "system:serviceaccount:n:ci".to_owned());
        let manual = ("authentication.k8s.io/legacy-token-manual-secret", "s".to_owned());
        assert_eq!(told(object! {}), (0, vec![legacy.clone(), manual]));
        let listed = object! { "secrets" => Value::Array(vec![object! { "name" => "s" }]) };
        let generated = ("authentication.k8s.io/legacy-token-autogenerated-secret", "s".to_owned());
        assert_eq!(told(listed), (1, vec![legacy, generated]));
    }
}
