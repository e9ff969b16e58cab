//! Authentication and authorization: who sends a request, and what they may do.
//!
//! In: a client certificate that our CA signed, or a bearer token: from a file, or one that was issued here for a service
//! account. Out: a [`UserInfo`], or nothing, which is a 401. An [`Authorizer`] then allows or denies the user's
//! [`Attributes`]. Nothing here reads a request's body, or the database: callers that do so hand in what is stored.
//!
//! - **Identities** are found in one place (`server::gate`) by a chain (`auth::Tokens`): the token file, then the
//!   issuer of service accounts' tokens. What a token says is pure (`auth::jwt`); whether its account, and what it is
//!   bound to, are still there is read from the view (`registry::accounts`), and once more from the newest where they
//!   are not. So nothing is revoked: what is deleted is gone. A verified signature is remembered by the digest of its
//!   token, as checking it takes longer than all the rest; times and objects are checked each time. The key is in the
//!   main database beside the CA.
//! - **Nodes** are decided about by a graph of what leads to them (`auth::node`), which `registry::StoredNodes` keeps as
//!   roles are kept, and reads when a node asks.

mod figures;
mod authorize;
mod chain;
mod abac;
mod answers;
mod webhook;
mod certificate;
pub mod node;
pub mod rbac;
mod jwt;
mod jwt_crypto;
mod keys;
mod request_header;
mod secret_token;
mod token;
mod token_error;
mod token_file;
mod user;

pub use abac::{PolicyFault, PolicyList};
pub use authorize::{
    AlwaysAllow, AlwaysDeny, Attributes, Authorizer, Decision, Masters, NonResourceRule, ResourceAttributes,
    ResourceRule, Rules, Verdict,
};
pub use certificate::user_of_certificate;
pub use chain::{Chain, ChainMember};
pub use figures::{AuthorizerLabel as NamedAuthorizer, Figures};
pub use jwt::{About, Claims, LEEWAY_S, NamedObject, OwnToken, TokenIssuer, new_token_id};
pub use keys::{NoSigningKey, SigningKey, VerifyingKey};
pub use request_header::RequestHeader;
pub use secret_token::SecretClaims;
pub use token::{Authenticated, TokenAuthenticator, Tokens, bearer_token};
pub use token_error::{AccountError, TokenError};
pub use token_file::{TokenFile, TokenFileError};
pub use user::UserInfo;
pub use webhook::{AccessReviewVersion, AccessWebhook, Answering};
