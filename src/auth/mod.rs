//! Authentication and authorization: who sends a request, and whether they may do so.
//!
//! Input: a client certificate that our CA signed, or a bearer token from a file or issued here for a
//! service account. Output: a [`UserInfo`], or nothing, which leads to a 401. An [`Authorizer`] then
//! allows or denies the user's [`Attributes`]. Nothing here reads a request's body or the database:
//! the callers pass in what is stored.
//!
//! - **Authentication** happens in one place (`server::gate`) by a chain (`auth::Tokens`): the
//!   token file, then the issuer of service account tokens. Verifying a token is pure
//!   (`auth::jwt`); whether its account, and the objects that it is bound to, still exist is read
//!   from the view (`registry::accounts`), and once more from the newest state if they are missing
//!   there. So tokens need not be revoked: deleting the account or the object is enough. A verified
//!   signature is cached by the digest of its token, as verifying it takes longer than all the
//!   rest; times and objects are checked each time. The key is stored in the main database beside
//!   the CA.
//! - **Nodes** are authorized by a graph of the objects that lead to them (`auth::node`), which
//!   `registry::StoredNodes` maintains like the roles, and updates when a node sends a request.

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
pub use answers::Answers;
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
pub use token::{Authenticated, AuthenticationNotes, TokenAuthenticator, Tokens, bearer_token, extra_space_warning};
pub use token_error::{AccountError, TokenError};
pub use token_file::{TokenFile, TokenFileError};
pub use user::UserInfo;
pub use webhook::{AccessReviewVersion, AccessWebhook, Answering};
