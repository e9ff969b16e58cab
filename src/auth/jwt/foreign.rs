//! The forms of claims that other issuers use and this one does not, whose tokens are accepted if their key is known.
//!
//! Source: `NumericDate` and `Audience` of `go-jose/v2/jwt`, which kube-apiserver reads tokens with.

use serde::{Deserialize, Deserializer};

/// The expiry of a token that has none.
pub fn never() -> i64 {
    i64::MAX
}

/// The expiry of a token.
pub fn expiry<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(read(deserializer)?.unwrap_or_else(never))
}

/// Seconds since 1970, if there are any.
pub fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(read(deserializer)?.unwrap_or_default())
}

/// Seconds, possibly with a fraction, which does not count.
fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Whole(i64),
        Fractional(f64),
    }
    let number = Option::<Number>::deserialize(deserializer)?;
    Ok(number.map(|number| match number {
        Number::Whole(seconds) => seconds,
        Number::Fractional(seconds) => seconds as i64,
    }))
}

/// One audience, or several.
pub fn audiences<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(audience) => vec![audience],
        OneOrMany::Many(audiences) => audiences,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Claims;

    #[test]
    fn a_token_of_another_issuer_may_leave_out_claims_and_have_other_forms() {
        const ABOUT: &str =
            r#""iss":"i","sub":"s","kubernetes.io":{"namespace":"n","serviceaccount":{"name":"a","uid":"u"}}"#;
        let claims = |more: &str| serde_json::from_str::<Claims>(&format!("{{{ABOUT}{more}}}"));
        let plain = claims("").expect("they are enough");
        assert!(plain.check_time(i64::MAX).is_ok() && plain.id.is_empty() && plain.user().extra.is_empty());
        assert_eq!(claims(r#","exp":null,"nbf":null"#).expect("they are valid"), plain);
        let other = claims(r#","aud":"one","exp":99.5,"iat":-1.5,"nbf":1e300,"jti":"x""#).expect("they are valid");
        assert_eq!((other.audiences, other.expires_at_s, other.issued_at_s), (vec!["one".to_owned()], 99, -1));
        assert_eq!((other.not_before_s, other.id.as_str()), (i64::MAX, "x"));
        for wrong in [r#","exp":"99""#, r#","aud":[1]"#, r#","aud":{}"#, r#","jti":1"#] {
            assert!(claims(wrong).is_err(), "{wrong}");
        }
    }
}
