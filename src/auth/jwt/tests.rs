//! Tests of tokens that are issued, and of those that are refused.

use jsonwebtoken::{Algorithm, EncodingKey};

use super::*;

const ISSUER: &str = "https://issuer.example.com";

fn issuer() -> TokenIssuer {
    let key = SigningKey::from_der(&SigningKey::generate().expect("ring makes keys")).expect("it is a key");
    TokenIssuer::new(vec![ISSUER.to_owned()], vec!["api".to_owned()], key)
}

/// The public point of the issuer's key, from its key set.
fn point_of(issuer: &TokenIssuer) -> Vec<u8> {
    let keys = issuer.key_set();
    let key = &keys.items_at(&["keys"])[0];
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(key.str_at(&[name])).expect("it is base64");
    [vec![4], coordinate("x"), coordinate("y")].concat()
}

fn claims() -> Claims {
    let named = |name: &str, uid: &str| NamedObject { name: name.to_owned(), uid: uid.to_owned() };
    Claims {
        audiences: vec!["api".to_owned(), "vault".to_owned()],
        expires_at_s: 4_600,
        issued_at_s: 1_000,
        not_before_s: 1_000,
        id: "j-1".to_owned(),
        about: About { namespace: "n".to_owned(), serviceaccount: named("ci", "u-1"), ..About::default() },
        subject: "system:serviceaccount:n:ci".to_owned(),
        ..Claims::default()
    }
}

fn audiences(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A token with this header and payload, in JSON, and this signature.
fn forge(header: &str, payload: &str, signature: &[u8]) -> String {
    let encode = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
    format!("{}.{}.{}", encode(header.as_bytes()), encode(payload.as_bytes()), encode(signature))
}

#[test]
fn a_token_says_what_it_was_issued_with() {
    let issuer = issuer();
    let token = issuer.issue(claims()).expect("it is signed");
    for _ in 0..2 {
        let read = issuer.read(&token, &audiences(&["vault", "x"])).expect("it is ours").expect("it is whole");
        assert_eq!(*read.claims, Claims { issuer: ISSUER.to_owned(), ..claims() });
        assert_eq!(read.audiences, ["vault"]);
    }
    let payload = token.split('.').nth(1).expect("there are three parts");
    let payload = URL_SAFE_NO_PAD.decode(payload).expect("it is base64");
    let expected = concat!(
        r#"{"aud":["api","vault"],"exp":4600,"iat":1000,"iss":"https://issuer.example.com","jti":"j-1","#,
        r#""kubernetes.io":{"namespace":"n","serviceaccount":{"name":"ci","uid":"u-1"}},"nbf":1000,"#,
        r#""sub":"system:serviceaccount:n:ci"}"#
    );
    assert_eq!(String::from_utf8_lossy(&payload), expected);
}

#[test]
fn an_heir_believes_what_was_issued_before_and_nothing_later() {
    let (issuer, fresh) = (issuer(), || Claims { id: new_token_id(), ..claims() });
    let key = || SigningKey::from_der(&SigningKey::generate().expect("ring makes keys")).expect("it is a key");
    let before = issuer.issue(fresh()).expect("it is signed");
    let heir = issuer.heir(key());
    let grandchild = heir.heir(key());
    let (after, own) = (issuer.issue(fresh()).expect("it is signed"), heir.issue(fresh()).expect("it is signed"));
    let believed = |issuer: &TokenIssuer| {
        [&before, &after, &own].map(|token| matches!(issuer.read(token, &audiences(&["api"])), Ok(Some(_))))
    };
    assert_eq!(believed(&issuer), [true, true, false]);
    assert_eq!(believed(&heir), [true, false, true]);
    assert_eq!(believed(&grandchild), [true, false, false]);
    assert_eq!(heir.key_set().items_at(&["keys"]).len(), 2);
}

#[test]
fn the_id_of_a_token_tells_when_it_was_issued() {
    let (before, id, after) = (Stamp::now(), new_token_id(), Stamp::now());
    let stamp = Stamp::of(&id).expect("it tells");
    assert!(before <= stamp && stamp <= after, "{id}");
    assert_eq!(Stamp::of(&Uuid::new_v4().to_string()), None);
    assert_ne!(new_token_id(), new_token_id());
}

#[test]
fn an_account_is_a_user_with_its_groups() {
    let user = claims().user();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:n:ci", "u-1"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"]);
    assert_eq!(user.extra["authentication.kubernetes.io/credential-id"], ["JTI=j-1"]);
}

#[test]
fn a_token_for_others_is_refused() {
    let issuer = issuer();
    let token = issuer.issue(claims()).expect("it is signed");
    let error = issuer.read(&token, &audiences(&["x"])).expect_err("it is for others");
    let told = r#"token audiences ["api" "vault"] is invalid for the target audiences ["x"]"#;
    assert_eq!(error.to_string(), told);
}

#[test]
fn a_token_holds_from_its_beginning_to_its_end_give_or_take_a_minute() {
    let check = |now_s, expected: Result<(), TokenError>| {
        assert_eq!(claims().check_time(now_s), expected, "{now_s}");
    };
    check(939, Err(TokenError::NotYetValid));
    check(940, Ok(()));
    check(4_660, Ok(()));
    check(4_661, Err(TokenError::Expired));
}

#[test]
fn a_token_that_is_not_ours_is_left_to_others() {
    let payload = format!(r#"{{"iss":"{ISSUER}"}}"#);
    for token in [
        "",
        "a",
        "a.b",
        "a.b.c",
        "....",
        &forge("{}", r#"{"iss":"https://other.example.com"}"#, b"x"),
        &forge("{}", r#"{"iss":7}"#, b"x"),
        &forge("[]", &payload, b"x"),
        &format!("{}.", forge("{}", &payload, b"x")),
        &forge("{}", &payload, b"x").replace('e', "!"),
    ] {
        assert_eq!(issuer().read(token, &audiences(&["api"])), Ok(None), "{token}");
    }
}

#[test]
fn of_many_ancestors_the_last_ones_count_and_only_for_tokens_that_name_their_key() {
    let key = || SigningKey::from_der(&SigningKey::generate().expect("ring makes keys")).expect("it is a key");
    let (first, mut heir, mut tokens) = (issuer(), issuer().heir(key()), Vec::new());
    for _ in 0..INHERITED_MAX {
        tokens.push(heir.issue(claims()).expect("it is signed"));
        heir = heir.heir(key());
    }
    assert_eq!(heir.inherited.len(), INHERITED_MAX);
    let believes = |token: &str| heir.read(token, heir.api_audiences()).is_ok();
    assert!(believes(&tokens[0]) && believes(&tokens[INHERITED_MAX - 1]));
    assert!(!believes(&first.issue(claims()).expect("it is signed")));

    let (der, first_key) = (SigningKey::generate().expect("ring makes keys"), issuer());
    let same = || SigningKey::from_der(&der).expect("it is a key");
    assert_eq!(first_key.heir(same()).heir(same()).heir(key()).inherited.len(), 2, "one key counts once");

    let header = Header::new(Algorithm::ES256);
    let nameless = jsonwebtoken::encode(&header, &Claims { issuer: ISSUER.to_owned(), ..claims() }, &first.key.private);
    let nameless = nameless.expect("it is signed");
    let of_first = |issuer: &TokenIssuer| issuer.read(&nameless, issuer.api_audiences()).is_ok();
    assert_eq!([of_first(&first), of_first(&first.heir(key()))], [true, false]);
}

#[test]
fn a_long_token_is_not_cached() {
    let issuer = issuer();
    for (count, cached) in [(8, 1), (9, 1), (10_000, 1)] {
        let audiences = vec!["api".to_owned(); count];
        let token = issuer.issue(Claims { audiences, ..claims() }).expect("it is signed");
        let read = issuer.read(&token, issuer.api_audiences()).expect("it was signed here").expect("it is ours");
        assert_eq!((read.audiences, issuer.verified().len()), (vec!["api".to_owned()], cached), "{count}");
    }
}

#[test]
fn many_audiences_are_compared_in_linear_time() {
    let audiences = |from: usize, count| (from..from + count).map(|at| format!("a{at:06}")).collect::<Vec<_>>();
    let counted = |count| {
        work::counted(|| common_audiences(&audiences(0, count), &audiences(count - 1, count)).expect("they share one"))
    };
    let ((few, before), (_, steps)) = (counted(1_000), counted(10_000));
    assert_eq!(few, ["a000999"]);
    assert!((9 * before..=11 * before).contains(&steps), "{before}, then {steps}");
}

#[test]
fn a_token_that_was_not_signed_with_our_key_is_refused() {
    let issuer = issuer();
    let token = issuer.issue(claims()).expect("it is signed");
    let parts: Vec<&str> = token.split('.').collect();
    let payload = format!(r#"{{"iss":"{ISSUER}","aud":["api"],"exp":9999999999}}"#);
    let own = |alg: &str| format!(r#"{{"alg":"{alg}","kid":"{}"}}"#, issuer.key.public.id);
    let tampered = [parts[0], &URL_SAFE_NO_PAD.encode(&payload), parts[2]].join(".");
    let hmac = {
        // The public key is not a secret, and must not be accepted as an HMAC key.
        let key = EncodingKey::from_secret(&point_of(&issuer));
        assert!(jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims(), &key).is_err());
        forge(&own("HS256"), &payload, &Sha256::digest(point_of(&issuer)))
    };
    let huge = forge(&own("ES256"), &format!(r#"{{"iss":"{ISSUER}","x":"{}"}}"#, "x".repeat(1 << 20)), &[0; 64]);
    for token in [
        forge(&own("none"), &payload, b""),
        forge(r#"{"alg":"none"}"#, &payload, b""),
        forge("{}", &payload, b""),
        forge(&own("ES256"), &payload, &[0; 64]),
        forge(&own("ES256"), &payload, b"short"),
        forge(&own("RS256"), &payload, &[1; 256]),
        tampered,
        hmac,
        huge,
    ] {
        let error = issuer.read(&token, &audiences(&["api"]));
        assert_eq!(error, Err(TokenError::Signature));
    }
    let other = self::issuer();
    let error = other.read(&token, &audiences(&["api"]));
    assert_eq!(error, Err(TokenError::NoKey));
}

#[test]
fn tokens_of_several_keys_and_issuers_are_believed() {
    for pem in [include_str!("../../../tests/data/keys/rsa.pem"), include_str!("../../../tests/data/keys/p384.pem")] {
        let names = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let key = || SigningKey::from_pem(pem.as_bytes()).expect("it is a key");
        let signer = TokenIssuer::new(names(&[ISSUER]), audiences(&["api"]), key());
        let token = signer.issue(claims()).expect("it is signed");
        let known = vec![issuer().key.public, key().public];
        let reader = TokenIssuer::new(names(&["https://x", ISSUER]), audiences(&["api"]), issuer().key).knowing(known);
        let read = reader.read(&token, &audiences(&["api"])).expect("it is ours").expect("it is whole");
        assert_eq!(read.claims.issuer, ISSUER);
        assert_eq!(reader.key_set().items_at(&["keys"]).len(), 2);
    }
}

#[test]
fn the_documents_tell_the_key() {
    let issuer = issuer();
    let found = issuer.discovery("https://h/openid/v1/jwks").expect("the name is a URL");
    assert_eq!(found.str_at(&["issuer"]), ISSUER);
    let keys = issuer.key_set();
    assert_eq!(keys.items_at(&["keys"]).len(), 1);
    assert_eq!(point_of(&issuer).len(), 65);
}
