//! Why a bearer token is not accepted, in the words of kube-apiserver.
//!
//! Source: `pkg/serviceaccount/{claims,jwt,legacy}.go` of Kubernetes, release 1.36.

use thiserror::Error;

use super::rbac::quote_list;
use crate::meta::Status;

/// Why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TokenError {
    /// No authenticator knows it.
    #[error("invalid bearer token")]
    Unknown,
    #[error("invalid signature, no keys found")]
    NoKey,
    /// No key has signed it.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    Signature,
    #[error("service account token is not valid yet")]
    NotYetValid,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is issued in the future")]
    IssuedInFuture,
    #[error("token audiences {} is invalid for the target audiences {}", quote_list(own), quote_list(wanted))]
    Audience { own: Vec<String>, wanted: Vec<String> },
    /// The claim of that name is missing.
    #[error("{0} claim is missing")]
    MissingClaim(&'static str),
    /// The subject is not the account that the other claims name.
    #[error("sub claim is invalid")]
    Subject,
    /// The account, or what the token is bound to, does not match the token.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// What several authenticators say.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Several(Vec<TokenError>),
}

/// Why an account does not match a token.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AccountError {
    /// What the token is bound to is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
    /// The Secret that holds the token is gone.
    #[error("Token has been invalidated")]
    SecretGone,
    /// The Secret holds another token.
    #[error("Token does not match server's copy")]
    OtherToken,
    #[error("{}", .0.message)]
    NotFound(Status),
    #[error("service account {namespace}/{name} has been deleted")]
    Deleted { namespace: String, name: String },
    /// The same of a token that a Secret holds.
    #[error("ServiceAccount {namespace}/{name} has been deleted")]
    DeletedOfSecret { namespace: String, name: String },
    /// Another object has the name now.
    #[error("{what} UID ({found}) does not match {claim} ({claimed})")]
    Uid { what: &'static str, claim: &'static str, found: String, claimed: String },
    /// The Secret has the label that says so.
    #[error(
        "the token in secret {namespace}/{secret} for service account {namespace}/{account} has been marked invalid. Use tokens \
         from the TokenRequest API or manually created secret-based tokens, or remove the '{label}' label from the secret to \
         temporarily allow use of this token"
    )]
    MarkedInvalid { namespace: String, secret: String, account: String, label: &'static str },
    /// What is stored can't be read.
    #[error("{0}")]
    Unreadable(String),
}
