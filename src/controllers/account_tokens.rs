//! Secrets that hold tokens of service accounts: they are filled in, are deleted with their account, and are removed
//! from its list once they are gone.
//!
//! Source: `pkg/controller/serviceaccount/tokens_controller.go` of Kubernetes, release 1.36.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;

use super::client::{Client, Kind, read};
use super::first_error::FirstError;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::auth::{SecretClaims, TokenIssuer};
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection, Stored};
use crate::value::{Value, base64};

const SECRETS: Kind = Kind("", "secrets");
const ACCOUNTS: Kind = Kind("", "serviceaccounts");

const TYPE: &str = "kubernetes.io/service-account-token";
/// A text that the bytes of every such Secret contain.
const OF_TYPE: &[u8] = b"\"kubernetes.io/service-account-token\"";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
/// The maximum length of the name of an account.
const ACCOUNT_BYTES_MAX: usize = 253;

struct AccountTokens {
    client: Client,
    issuer: Arc<TokenIssuer>,
    authority_pem: String,
    /// The account of each known Secret, and its uid if that is given, by the Secret's key.
    known: Mutex<HashMap<Arc<str>, (String, String)>>,
}

/// A key of this controller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Look<'k> {
    /// A Secret: its namespace and name.
    Secret([&'k str; 2]),
    /// An account that is gone: its namespace, name and uid.
    Account([&'k str; 3]),
    /// A Secret that is gone: its namespace and name, and the name and the uid of its account.
    Gone([&'k str; 4]),
}

impl<'k> Look<'k> {
    fn key(&self) -> String {
        match self {
            Look::Secret([namespace, name]) => format!("{namespace}/secret/{name}"),
            Look::Account([namespace, account @ ..]) => format!("{namespace}/account/{}", account.join("/")),
            Look::Gone([namespace, secret @ ..]) => format!("{namespace}/gone/{}", secret.join("/")),
        }
    }

    fn read(key: &'k str) -> Option<Self> {
        let (namespace, rest) = key.split_once('/')?;
        let (what, rest) = rest.split_once('/')?;
        let parts: Vec<&str> = std::iter::once(namespace).chain(rest.split('/')).collect();
        match what {
            "secret" => parts.try_into().ok().map(Look::Secret),
            "account" => parts.try_into().ok().map(Look::Account),
            _ => parts.try_into().ok().map(Look::Gone),
        }
    }
}

impl Reconciler for AccountTokens {
    const TASK: &str = "seeing to tokens of service accounts";

    fn collections(&self) -> Vec<Collection> {
        vec![SECRETS.collection()]
    }

    fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        match &change.stored {
            None if ACCOUNTS.is(&change.collection) => {
                let Some((namespace, name)) = change.key.split_once('/') else { return Vec::new() };
                vec![Look::Account([namespace, name, &change.uid]).key()]
            }
            _ if SECRETS.is(&change.collection) => self.note_secret(change),
            _ => Vec::new(),
        }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        match Look::read(key) {
            Some(Look::Secret(secret)) => self.fill(&secret.join("/")).await?,
            Some(Look::Account(account)) => self.delete_of(account).await?,
            Some(Look::Gone(secret)) => self.drop_reference(secret).await?,
            None => {}
        }
        Ok(Progress::Done)
    }
}

impl AccountTokens {
    fn note_secret(&self, change: &ChangeEvent) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stored) = &change.stored else {
            let account = known.remove(&change.key).zip(change.key.split_once('/'));
            let gone = |((account, uid), (namespace, name)): ((String, String), (&str, &str))| {
                Look::Gone([namespace, name, &account, &uid]).key()
            };
            return account.map(gone).into_iter().collect();
        };
        let Some((account, uid)) = of_account(stored) else { return Vec::new() };
        // No account has a longer name or uid.
        if account.len().max(uid.len()) <= ACCOUNT_BYTES_MAX {
            known.insert(Arc::clone(&change.key), (account, uid));
        } else {
            known.remove(&change.key);
        }
        change.key.split_once('/').map(|(namespace, name)| Look::Secret([namespace, name]).key()).into_iter().collect()
    }

    /// Fills in what a Secret lacks; it is deleted if its account does not exist.
    async fn fill(&self, key: &str) -> Result<(), Status> {
        let Some(mut secret) = self.client.get(SECRETS, key).await? else { return Ok(()) };
        let text = |path: &[&str]| secret.str_at(path).to_owned();
        let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
        let (account, uid) = (text(&["metadata", "annotations", NAME]), text(&["metadata", "annotations", UID]));
        let found = self.client.get(ACCOUNTS, &format!("{namespace}/{account}")).await?;
        let found = found.filter(|found| is_meant(&uid, found.str_at(&["metadata", "uid"])));
        let Some(found) = found else { return self.client.delete(SECRETS, &secret, None).await };
        let uid = found.str_at(&["metadata", "uid"]);
        let lacks = |field: &str| secret.str_at(&["data", field]).is_empty();
        let authority = base64::encode(self.authority_pem.as_bytes());
        let mut missing = Vec::new();
        if !authority.is_empty() && secret.str_at(&["data", "ca.crt"]) != authority {
            missing.push(("ca.crt", authority));
        }
        if lacks("namespace") {
            missing.push(("namespace", base64::encode(namespace.as_bytes())));
        }
        if lacks("token") {
            let token = self.issuer.issue_for_secret(&SecretClaims::new(&namespace, &name, &account, uid));
            let token = token.map_err(|error| Status::internal_error(&format!("failed to generate token: {error}")))?;
            missing.push(("token", base64::encode(token.as_bytes())));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let data = secret.make_object().entry("data").make_object();
        missing.into_iter().for_each(|(field, text)| _ = data.insert(field, Value::String(text)));
        let annotations = secret.make_object().entry("metadata").make_object().entry("annotations").make_object();
        annotations.insert(UID, Value::from(uid));
        match self.client.update(SECRETS, &secret).await {
            // A change by another writer queues it again; an immutable Secret stays as it is.
            Err(status) if !matches!(status.code, 404 | 409 | 422) => Err(status),
            _ => Ok(()),
        }
    }

    /// Deletes the Secrets of an account that is gone.
    async fn delete_of(&self, [namespace, name, uid]: [&str; 3]) -> Result<(), Status> {
        let account = self.client.get(ACCOUNTS, &format!("{namespace}/{name}")).await?;
        if account.is_some_and(|account| account.str_at(&["metadata", "uid"]) == uid) {
            return Ok(());
        }
        let is_its = |stored: &Stored| of_account(stored).is_some_and(|(own, of)| own == name && is_meant(&of, uid));
        let mut failed = FirstError::default();
        for secret in self.client.stored(SECRETS, namespace, is_its).await? {
            failed.keep(self.client.delete(SECRETS, &read(&secret)?, None).await);
        }
        failed.end()
    }

    /// Removes the reference to a deleted Secret from an account.
    async fn drop_reference(&self, [namespace, secret, name, uid]: [&str; 4]) -> Result<(), Status> {
        let Some(mut account) = self.client.get(ACCOUNTS, &format!("{namespace}/{name}")).await? else { return Ok(()) };
        let names = |reference: &Value| reference.str_at(&["name"]) == secret;
        if !is_meant(uid, account.str_at(&["metadata", "uid"])) || !account.items_at(&["secrets"]).iter().any(names) {
            return Ok(());
        }
        let kept = account.items_at(&["secrets"]).iter().filter(|reference| !names(reference)).cloned().collect();
        account.make_object().insert("secrets", Value::Array(kept));
        self.client.update(ACCOUNTS, &account).await.map(drop)
    }
}

/// The account of a Secret that holds, or is to hold, a token, and its uid if that is given.
fn of_account(stored: &Stored) -> Option<(String, String)> {
    memmem::find(&stored.bytes, OF_TYPE)?;
    let secret = read(stored).ok().filter(|secret| secret.str_at(&["type"]) == TYPE)?;
    let said = |name: &str| secret.str_at(&["metadata", "annotations", name]).to_owned();
    Some((said(NAME), said(UID)))
}

/// Whether an account with `uid` is the wanted one; any is if `wanted` is empty.
fn is_meant(wanted: &str, uid: &str) -> bool {
    wanted.is_empty() || wanted == uid
}

/// Starts it; if no tokens are issued, it has nothing to do.
pub(super) fn start(context: &ControllerContext) -> Running {
    let Some(issuer) = context.authority.issuer.clone() else { return Box::pin(async {}) };
    let client = context.client("tokens-controller").of_user("system:kube-controller-manager");
    let (authority_pem, known) = (context.authority.certificate_pem.clone(), Mutex::default());
    let tokens = AccountTokens { client, issuer, authority_pem, known };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), tokens))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_stands_in_a_key() {
        for look in [
            Look::Secret(["n", "s"]),
            Look::Account(["n", "ci", "u"]),
            Look::Gone(["n", "s", "ci", "u"]),
            Look::Gone(["n", "s", "ci", ""]),
        ] {
            assert_eq!(Look::read(&look.key()), Some(look.clone()), "{look:?}");
        }
    }

    #[test]
    fn an_account_is_meant_by_its_uid_or_by_its_name_alone() {
        assert!(is_meant("", "u") && is_meant("u", "u") && !is_meant("u", "v"));
    }
}
