//! Bearer tokens: the authenticators, which are asked one after the other.
//!
//! Source: the token authenticators of kube-apiserver 1.37 and their combined errors.

use async_trait::async_trait;

use super::{TokenError, UserInfo};

/// The user and the audiences of an authenticated token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub user: UserInfo,
    /// The audiences of the token, as far as they were asked for.
    pub audiences: Vec<String>,
    pub notes: AuthenticationNotes,
}

/// What authentication tells beside the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationNotes {
    /// Warnings for the client.
    pub warnings: Vec<&'static str>,
    /// Annotations of the audit log.
    pub annotations: Vec<(&'static str, String)>,
}

/// Determines the user of a bearer token.
#[async_trait]
pub trait TokenAuthenticator: Send + Sync {
    /// Returns the user of `token`, if it is for one of `audiences`; `None` for a token that
    /// another authenticator may know.
    ///
    /// # Errors
    ///
    /// Why a token of this authenticator is rejected, in a form that clients may see.
    async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Option<Authenticated>, TokenError>;
}

/// All token authenticators.
#[derive(Default)]
pub struct Tokens {
    /// The server's audiences; a token needs one of them.
    pub api_audiences: Vec<String>,
    pub authenticators: Vec<Box<dyn TokenAuthenticator>>,
}

impl Tokens {
    /// Returns the user of `token`, if it is for one of `audiences`, or of this server's if none
    /// are given.
    ///
    /// # Errors
    ///
    /// All reasons why the token is rejected.
    pub async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Authenticated, TokenError> {
        let audiences = if audiences.is_empty() { &self.api_audiences } else { audiences };
        // In kube-apiserver, this error is that of the authenticator of its own loopback client.
        let mut errors = vec![TokenError::Unknown];
        for authenticator in &self.authenticators {
            match authenticator.authenticate(token, audiences).await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        Err(match errors.len() {
            1 => errors.remove(0),
            _ => TokenError::Several(errors),
        })
    }
}

/// The token in the value of an `Authorization` header; `None` if it has none.
pub fn bearer_token(authorization: &str) -> Option<&str> {
    let mut parts = authorization.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next().filter(|token| !token.is_empty())?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// The warning about a value of an `Authorization` header whose token is behind more than one blank, and does not count.
pub fn extra_space_warning(authorization: &str) -> Option<&'static str> {
    const WARNING: &str =
        "the provided Authorization header contains extra space before the bearer token, and is ignored";
    let mut parts = authorization.trim().splitn(3, ' ');
    let scheme = parts.next().filter(|scheme| scheme.eq_ignore_ascii_case("bearer"));
    (scheme.is_some() && parts.next() == Some("") && parts.next().is_some()).then_some(WARNING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_behind_two_blanks_is_warned_of() {
        for (header, is_warned) in [
            ("Bearer  abc", true),
            (" bearer  abc", true),
            ("Bearer abc", false),
            ("Bearer ", false),
            ("Basic  abc", false),
        ] {
            assert_eq!(extra_space_warning(header).is_some(), is_warned, "{header}");
        }
    }

    #[test]
    fn a_header_has_a_token_behind_one_blank() {
        for (header, expected) in [
            ("Bearer abc", Some("abc")),
            (" bearer abc ", Some("abc")),
            ("BEARER abc def", Some("abc")),
            ("Bearer  abc", None),
            ("Bearer", None),
            ("Basic abc", None),
            ("", None),
        ] {
            assert_eq!(bearer_token(header), expected, "{header}");
        }
    }

    struct Says(Result<Option<&'static str>, TokenError>);

    #[async_trait]
    impl TokenAuthenticator for Says {
        async fn authenticate(&self, _: &str, audiences: &[String]) -> Result<Option<Authenticated>, TokenError> {
            let found = self.0.clone()?;
            let user = found.map(|name| UserInfo::authenticated(name, Vec::new()));
            Ok(user.map(|user| Authenticated {
                user,
                audiences: audiences.to_vec(),
                notes: AuthenticationNotes::default(),
            }))
        }
    }

    #[tokio::test]
    async fn the_first_who_knows_a_token_decides() {
        let check = async |says: Vec<Says>, expected: Result<&str, &str>| {
            let authenticators = says.into_iter().map(|one| Box::new(one) as Box<dyn TokenAuthenticator>).collect();
            let tokens = Tokens { api_audiences: vec!["api".to_owned()], authenticators };
            let found = tokens.authenticate("t", &[]).await;
            let found = found.map(|found| format!("{} {}", found.user.name, found.audiences.join(" ")));
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        };
        check(vec![], Err("invalid bearer token")).await;
        check(vec![Says(Ok(None))], Err("invalid bearer token")).await;
        let both = "[invalid bearer token, service account token has expired]";
        check(vec![Says(Err(TokenError::Expired)), Says(Ok(None))], Err(both)).await;
        check(vec![Says(Err(TokenError::Expired)), Says(Ok(Some("jane")))], Ok("jane api")).await;
    }
}
