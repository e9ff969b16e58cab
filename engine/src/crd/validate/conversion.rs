//! `conversion`: the strategy, and the webhook that it may call.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

use std::collections::BTreeSet;

use super::internal::review_versions;
use super::{ca_bundle, options::ValidationOptions};
use crate::crd::definition::{ClientConfig, Conversion, ServiceReference};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names::{is_dns1035_label, is_dns1123_subdomain};
use crate::meta::url;
use crate::value::{Value, base64};

const STRATEGIES: [&str; 2] = ["None", "Webhook"];
/// The review versions that the server knows.
pub const KNOWN_REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Whether `versions` has a version of ConversionReview that the server knows.
pub fn names_known_review_version(versions: &[String]) -> bool {
    versions.iter().any(|version| KNOWN_REVIEW_VERSIONS.contains(&version.as_str()))
}

/// Whether a bundle, in base64, is valid; an empty one counts as none, which is valid.
pub fn is_valid_ca_bundle(bundle: &str) -> bool {
    bundle.is_empty() || base64::decode(bundle).is_ok_and(|bytes| ca_bundle::fault(&bytes).is_none())
}

pub fn validate_conversion(conversion: &Conversion, options: &ValidationOptions, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let strategy_path = path.child("strategy");
    match conversion.strategy.as_str() {
        "" => errors.push(Error::required(&strategy_path, "")),
        strategy if !STRATEGIES.contains(&strategy) => {
            errors.push(Error::not_supported(&strategy_path, strategy, &STRATEGIES));
        }
        _ => {}
    }
    let config = conversion.webhook.as_ref().and_then(|webhook| webhook.client_config.as_ref());
    let (config_path, reviews_path) = (path.child("webhookClientConfig"), path.child("conversionReviewVersions"));
    let reviews = review_versions(conversion);
    if conversion.strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(Error::forbidden(&config_path, detail));
        }
        if !reviews.is_empty() {
            errors.push(Error::forbidden(&reviews_path, detail));
        }
        return errors;
    }
    match config {
        None => errors.push(Error::required(&config_path, "required when strategy is set to Webhook")),
        Some(config) => errors.extend(validate_client_config(config, options, &config_path)),
    }
    errors.extend(validate_review_versions(reviews, options.require_known_review_version, "", &reviews_path));
    errors
}

fn validate_client_config(config: &ClientConfig, options: &ValidationOptions, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    match (&config.url, &config.service) {
        (Some(url), None) => errors.extend(validate_url(url, &path.child("url"))),
        (None, Some(service)) => errors.extend(validate_service(service, &path.child("service"))),
        _ => errors.push(Error::required(path, "exactly one of url or service is required")),
    }
    let bundle = config.ca_bundle.as_deref().filter(|bundle| !bundle.is_empty() && options.require_valid_ca_bundle);
    if let Some(bundle) = bundle {
        let fault = base64::decode(bundle)
            .map(|bytes| ca_bundle::fault(&bytes))
            .unwrap_or_else(|error| Some(error.to_string()));
        let path = path.child("caBundle");
        errors.extend(fault.map(|fault| Error::invalid(&path, bundle, fault).shown_as_json()));
    }
    errors
}

/// The errors of a webhook's URL.
pub fn validate_url(text: &str, path: &Path<'_>) -> ErrorList {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match url::parse(text) {
        Ok(url) => url,
        Err(error) => return Error::required(path, format!("url must be a valid URL: {error}{FORM}")).into(),
    };
    let mut errors = ErrorList::new();
    if url.scheme != "https" {
        errors.push(Error::invalid(path, url.scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if url.host.is_empty() {
        errors.push(Error::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = url.user {
        errors.push(Error::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !url.fragment.is_empty() {
        errors.push(Error::invalid(path, url.fragment, "fragments are not permitted in the URL"));
    }
    if !url.query.is_empty() {
        errors.push(Error::invalid(path, url.query, "query parameters are not permitted in the URL"));
    }
    errors
}

/// The errors of the service behind a webhook.
pub fn validate_service(service: &ServiceReference, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    // Kubernetes swaps the two here.
    for (field, value) in [("name", &service.namespace), ("namespace", &service.name)] {
        if value.is_empty() {
            errors.push(Error::required(&path.child(field), ""));
        }
    }
    let port = i64::from(service.port.unwrap_or_default());
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid(&path.child("port"), port, detail));
    }
    if let Some(url_path) = &service.path {
        errors.extend(validate_url_path(url_path, &path.child("path")));
    }
    errors
}

fn validate_url_path(text: &str, path: &Path<'_>) -> ErrorList {
    let invalid = |detail: String| Error::invalid(path, text, detail);
    let mut errors = ErrorList::new();
    match text {
        "" | "/" => return errors,
        "//" => return invalid("segment[0] may not be empty".to_owned()).into(),
        _ => {}
    }
    if !text.starts_with('/') {
        errors.push(invalid("must start with a '/'".to_owned()));
    }
    // The first byte is not checked.
    let rest = String::from_utf8_lossy(&text.as_bytes()[1..]);
    for (index, segment) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
        if segment.is_empty() {
            errors.push(invalid(format!("segment[{index}] may not be empty")));
            continue;
        }
        let faults = is_dns1123_subdomain(segment).into_iter();
        errors.extend(faults.map(|fault| invalid(format!("segment[{index}]: {fault}"))));
    }
    errors
}

/// The errors of the review versions that a webhook accepts; `if_none` is the error's detail if there are none.
pub fn validate_review_versions(versions: &[String], require_known: bool, if_none: &str, path: &Path<'_>) -> ErrorList {
    if versions.is_empty() {
        return Error::required(path, if_none).into();
    }
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = path.index(index);
        if !seen.insert(version) {
            errors.push(Error::invalid(&path, version.as_str(), "duplicate version"));
            continue;
        }
        let faults = is_dns1035_label(version).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path, version.as_str(), fault)));
    }
    if require_known && !names_known_review_version(versions) {
        let shown: Vec<Value> = versions.iter().map(|version| version.as_str().into()).collect();
        let detail = format!("must include at least one of {}", KNOWN_REVIEW_VERSIONS.join(", "));
        errors.push(Error::invalid(path, shown, detail));
    }
    errors
}
