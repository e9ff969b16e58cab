//! Why a bearer token is rejected, in the words of kube-apiserver.
//!
//! Source: `pkg/serviceaccount/{claims,jwt,legacy}.go` of Kubernetes, release 1.36.

use thiserror::Error;

use super::rbac::quote_list;
use crate::meta::Status;

/// Why a token is rejected.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TokenError {
    /// No authenticator knows the token.
    #[error("invalid bearer token")]
    Unknown,
    #[error("invalid signature, no keys found")]
    NoKey,
    /// None of the keys signed the token.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Signature,
    #[error("service account token is not valid yet")]
    NotYetValid,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is issued in the future")]
    IssuedInFuture,
    #[error("token audiences {} is invalid for the target audiences {}", quoted(own), quoted(wanted))]
    Audience { own: Vec<String>, wanted: Vec<String> },
    /// The claim of this name is missing.
    #[error("{0} claim is missing")]
    MissingClaim(&'static str),
    /// The subject is not the account that the other claims name.
    #[error("sub claim is invalid")]
    Subject,
    /// The account, or an object that the token is bound to, does not match the token.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The errors of several authenticators.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<TokenError>),
}

/// Why an account does not match a token.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AccountError {
    /// An object that the token is bound to was deleted.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// The Secret that contained the token was deleted.
    #[error("Token has been invalidated")]
    SecretGone,
    /// The Secret contains another token.
    #[error("Token does not match server's copy")]
    OtherToken,
    #[error("{}", .0.message)]
    NotFound(Status),
    #[error("service account {namespace}/{name} has been deleted")]
    Deleted { namespace: String, name: String },
    /// Like `Deleted`, for a token that is stored in a Secret.
    #[error("ServiceAccount {namespace}/{name} has been deleted")]
    DeletedOfSecret { namespace: String, name: String },
    /// Another object has the name now.
    #[error("{what} UID ({found}) does not match {claim} ({claimed})")]
    Uid { what: &'static str, claim: &'static str, found: String, claimed: String },
    /// The Secret is labeled as invalid.
    #[error(
        "the token in secret {namespace}/{secret} for service account {namespace}/{account} has been marked invalid. Use tokens \
         from the TokenRequest API or manually created secret-based tokens, or remove the '{label}' label from the secret to \
         temporarily allow use of this token"
    )]
    MarkedInvalid { namespace: String, secret: String, account: String, label: &'static str },
    /// The stored object can't be read.
    #[error("{0}")]
    Unreadable(String),
}

fn quoted(texts: &[String]) -> String {
    quote_list(texts.iter().map(String::as_str))
}
