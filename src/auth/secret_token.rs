//! Service account tokens that are stored in Secrets: they are valid as long as their Secret exists
//! and contains them.
//!
//! Input: the account and the Secret. Output: the token; later, its [`SecretClaims`], once signature and
//! audience are verified.
//!
//! Source: `pkg/serviceaccount/legacy.go` of Kubernetes, release 1.36.

use serde::{Deserialize, Serialize};

use super::jwt::{SignError, TokenIssuer, common_audiences, key_id_of};
use super::{TokenError, UserInfo};

/// The issuer of such tokens.
const ISSUER: &str = "kubernetes/serviceaccount";

/// The claims of such a token, in the order of its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretClaims {
    #[serde(rename = "iss")]
    issuer: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub account_uid: String,
    #[serde(rename = "sub")]
    subject: String,
}

impl SecretClaims {
    /// The claims of a token in `secret` for that account.
    pub fn new(namespace: &str, secret: &str, account: &str, account_uid: &str) -> Self {
        SecretClaims {
            issuer: ISSUER.to_owned(),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            account: account.to_owned(),
            account_uid: account_uid.to_owned(),
            subject: UserInfo::account_name(namespace, account),
        }
    }

    /// Checks that the claims are complete and consistent.
    pub fn check(&self) -> Result<(), TokenError> {
        let claims = [
            ("sub", &self.subject),
            ("namespace", &self.namespace),
            ("secretName", &self.secret),
            ("serviceAccountName", &self.account),
            ("serviceAccountUID", &self.account_uid),
        ];
        if let Some((name, _)) = claims.iter().find(|(_, text)| text.is_empty()) {
            return Err(TokenError::MissingClaim(name));
        }
        if self.subject != UserInfo::account_name(&self.namespace, &self.account) {
            return Err(TokenError::Subject);
        }
        Ok(())
    }

    /// The user that stands for the account.
    pub fn user(&self) -> UserInfo {
        let name = UserInfo::account_name(&self.namespace, &self.account);
        let mut user = UserInfo::authenticated(name, UserInfo::account_groups(&self.namespace));
        user.uid.clone_from(&self.account_uid);
        user
    }
}

impl TokenIssuer {
    /// Signs a token for a Secret. It has no audience, and does not expire.
    pub fn issue_for_secret(&self, claims: &SecretClaims) -> Result<String, SignError> {
        self.sign(claims)
    }

    /// Returns the claims of a token from a Secret, and those of `audiences` that it is for; `None`
    /// for a token of another kind.
    ///
    /// # Errors
    ///
    /// The token was not signed here, or it is not for any of `audiences`.
    pub fn read_from_secret(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<(SecretClaims, Vec<String>)>, TokenError> {
        let Some(key_id) = key_id_of(token, |issuer| issuer == ISSUER) else { return Ok(None) };
        // The time of issue does not matter: the Secret must contain the token.
        let claims: SecretClaims = self.signed(token, &key_id, |_| None)?;
        let audiences = common_audiences(self.api_audiences(), audiences)?;
        Ok(Some((claims, audiences)))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;
    use crate::auth::SigningKey;

    fn issuer() -> TokenIssuer {
        let key = SigningKey::from_der(&SigningKey::generate().expect("ring makes keys")).expect("it is a key");
        TokenIssuer::new(vec!["https://issuer.example.com".to_owned()], vec!["api".to_owned()], key)
    }

    #[test]
    fn a_token_says_whose_it_is_and_where_it_is_kept() {
        let (issuer, claims, api) = (issuer(), SecretClaims::new("n", "s", "ci", "u-1"), ["api".to_owned()]);
        let token = issuer.issue_for_secret(&claims).expect("it is signed");
        let payload = token.split('.').nth(1).expect("there are three parts");
        let expected = concat!(
            r#"{"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"n","#,
            r#""kubernetes.io/serviceaccount/secret.name":"s","kubernetes.io/serviceaccount/service-account.name":"ci","#,
            r#""kubernetes.io/serviceaccount/service-account.uid":"u-1","sub":"system:serviceaccount:n:ci"}"#
        );
        let payload = URL_SAFE_NO_PAD.decode(payload).expect("it is base64");
        assert_eq!(String::from_utf8_lossy(&payload), expected);
        assert_eq!(issuer.read_from_secret(&token, &api), Ok(Some((claims.clone(), api.to_vec()))));
        assert_eq!(issuer.read(&token, &api), Ok(None));
        assert_eq!((claims.check(), claims.user().name.as_str()), (Ok(()), "system:serviceaccount:n:ci"));
        let refused = issuer.read_from_secret(&token, &["other".to_owned()]);
        let why = r#"token audiences ["api"] is invalid for the target audiences ["other"]"#;
        assert_eq!(refused.expect_err("it is for others").to_string(), why);
        let other = self::issuer().read_from_secret(&token, &api);
        assert_eq!(other, Err(TokenError::NoKey));
    }

    #[test]
    fn what_a_token_does_not_say_is_told() {
        let check = |claims: SecretClaims, why: &str| {
            assert_eq!(claims.check().expect_err("it is not whole").to_string(), why);
        };
        let whole = || SecretClaims::new("n", "s", "ci", "u-1");
        check(SecretClaims { subject: String::new(), ..whole() }, "sub claim is missing");
        check(SecretClaims { secret: String::new(), ..whole() }, "secretName claim is missing");
        check(SecretClaims { account_uid: String::new(), ..whole() }, "serviceAccountUID claim is missing");
        check(SecretClaims { account: "other".to_owned(), ..whole() }, "sub claim is invalid");
    }
}
