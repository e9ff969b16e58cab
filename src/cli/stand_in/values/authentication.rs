//! Validates the flags about users and tokens.
//!
//! Source: `pkg/kubeapiserver/options/authentication.go`, `pkg/controlplane/apiserver/options` and
//! `k8s.io/apiserver/pkg/server/options/authentication.go`, release 1.36.

use super::super::flags::Flags;
use crate::meta::url;
use crate::value::go_quote;

/// Flags about headers of a proxy; their lists may not have empty parts.
const HEADERS: [&str; 5] = [
    "requestheader-username-headers",
    "requestheader-group-headers",
    "requestheader-extra-headers-prefix",
    "requestheader-allowed-names",
    UID_HEADERS,
];
/// Flags for the signer of tokens, of which only one may be set.
const SIGNERS: [&str; 2] = ["service-account-signing-key-file", "service-account-signing-endpoint"];
const UID_HEADERS: &str = "requestheader-uid-headers";
const UID_HEADER: &str = "X-Remote-Uid";

pub fn faults(flags: &Flags) -> Vec<String> {
    let issuers = flags.texts("service-account-issuer");
    let has_both_signers = SIGNERS.iter().all(|name| flags.text(name).is_some());
    if has_both_signers && issuers.first().is_some_and(|first| !first.is_empty()) {
        let [file, endpoint] = SIGNERS;
        return vec![format!("{file} and {endpoint} are mutually exclusive and cannot be set at the same time")];
    }
    let mut faults: Vec<_> = openid(flags).into_iter().collect();
    faults.extend(issuer_faults(&issuers));
    faults.extend(flags.text("service-account-jwks-uri").and_then(keys_address));
    faults.extend(
        HEADERS
            .into_iter()
            .filter(|name| has_empty_part(flags, name))
            .map(|name| format!("empty value in {}", go_quote(name))),
    );
    let uid_headers = flags.list(UID_HEADERS);
    if !uid_headers.is_empty() && !uid_headers.iter().any(|header| header.eq_ignore_ascii_case(UID_HEADER)) {
        let why = format!("is set without specifying the standard {UID_HEADER} header - API aggregation will not work");
        faults.push(format!("--{UID_HEADERS} {why}"));
    }
    if issuers.first().is_some_and(String::is_empty) {
        let together = "--service-account-signing-key-file, --service-account-issuer, and --api-audiences";
        faults.push(format!("{together} should be specified together"));
    }
    faults
}

/// The flags about an OpenID issuer must name it and its client, and exclude a configuration file.
fn openid(flags: &Flags) -> Option<String> {
    if !flags.names().any(|name| name.starts_with("oidc-")) {
        return None;
    }
    if flags.text("authentication-config").is_some() {
        return Some("authentication-config file and oidc-* flags are mutually exclusive".to_owned());
    }
    let is_named = ["oidc-issuer-url", "oidc-client-id"].iter().all(|name| flags.text(name).is_some());
    let told = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
    (!is_named).then(|| told.to_owned())
}

fn issuer_faults(issuers: &[String]) -> Vec<String> {
    let fault = |(at, issuer): (usize, &String)| {
        let quoted = go_quote(issuer);
        if let Some(why) = url::parse(issuer).err().filter(|_| issuer.contains(':')) {
            Some(format!("service-account-issuer {quoted} contained a ':' but was not a valid URL: {why}"))
        } else if issuer.is_empty() {
            Some("service-account-issuer should not be an empty string".to_owned())
        } else if issuers[..at].contains(issuer) {
            Some(format!("service-account-issuer {quoted} is already specified"))
        } else {
            None
        }
    };
    issuers.iter().enumerate().filter_map(fault).collect()
}

/// The error for an invalid URL of public keys.
fn keys_address(text: &str) -> Option<String> {
    match url::parse(text) {
        Err(why) => Some(format!("service-account-jwks-uri must be a valid URL: {why}")),
        Ok(parsed) if parsed.scheme != "https" => {
            Some(format!("service-account-jwks-uri requires https scheme, parsed as: {text}"))
        }
        Ok(_) => None,
    }
}

fn has_empty_part(flags: &Flags, name: &str) -> bool {
    let texts = flags.texts(name);
    texts.iter().filter(|text| !text.is_empty()).any(|text| text.split(',').any(|part| part.trim().is_empty()))
}
