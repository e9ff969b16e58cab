//! Who sends a request, and what they may do.
//!
//! In: a client certificate that our CA signed, or a bearer token. Out: a [`UserInfo`], or nothing, which is a 401. An
//! [`Authorizer`] then allows or denies the user's [`Attributes`]. Nothing here reads a request's body.

mod authorize;
mod certificate;
mod token;
mod user;

pub use authorize::{
    Attributes, Authorizer, Decision, MastersOnly, NonResourceRule, ResourceAttributes, ResourceRule, Rules,
};
pub use certificate::user_of_certificate;
pub use token::{TokenAuthenticator, TokenFile, TokenFileError};
pub use user::UserInfo;
