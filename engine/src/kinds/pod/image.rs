//! References to images, as far as the policy of pulling one depends on them: `registry.example.com:5000/team/app:v1@sha256:…`.
//!
//! Source: `github.com/distribution/reference`, which the reference reads images with.

/// With `library/` before the path of an image that Docker Hub keeps for everybody.
const PATH_BYTES_MAX: usize = 255;
const OFFICIAL: &str = "library/";
const TAG_BYTES_MAX: usize = 128;
const IDENTIFIER_BYTES: usize = 64;

/// The default pull policy of an image: a moving tag is pulled each time. A text that is not a reference has no tag.
pub fn default_pull_policy(image: &str) -> &'static str {
    if tag(image) == Some("latest") { "Always" } else { "IfNotPresent" }
}

/// The tag of an image, `latest` if it has neither tag nor digest; `None` for a lone digest and for a text that is not
/// a reference.
fn tag(image: &str) -> Option<&str> {
    if is_identifier(image) {
        return None;
    }
    let (domain, rest) = split_domain(image);
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match rest.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (rest, None),
    };
    // A domain that can't be one may still be the begin of the path.
    let is_domain = domain.is_none_or(|domain| is_domain(domain) || is_path_component(domain));
    let is_fit = is_domain
        && is_path(path)
        && path_bytes(domain, path) <= PATH_BYTES_MAX
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    match (tag, digest) {
        _ if !is_fit => None,
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

/// How long the path is in an image's whole name.
fn path_bytes(domain: Option<&str>, path: &str) -> usize {
    let is_official = matches!(domain, None | Some("docker.io" | "index.docker.io")) && !path.contains('/');
    path.len() + if is_official { OFFICIAL.len() } else { 0 }
}

/// The domain, if the part before the first slash looks like one.
fn split_domain(image: &str) -> (Option<&str>, &str) {
    let Some((first, rest)) = image.split_once('/') else { return (None, image) };
    let is_domain =
        first == "localhost" || first.contains(['.', ':']) || first.chars().any(|char| char.to_lowercase().ne([char]));
    if is_domain { (Some(first), rest) } else { (None, image) }
}

/// 64 hexadecimal digits name an image by themselves, and can't be the name of one.
fn is_identifier(text: &str) -> bool {
    text.len() == IDENTIFIER_BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A name or an address, perhaps with a port.
fn is_domain(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let is_address = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_number));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    host.split('.').all(is_domain_component) && port.is_none_or(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_domain_component(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn is_path(path: &str) -> bool {
    path.split('/').all(is_path_component)
}

/// Lower case letters and digits; between them one dot, one or two underscores or any dashes.
fn is_path_component(text: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let is_separator = |bytes: &[u8]| matches!(bytes, b"." | b"_" | b"__") || bytes.iter().all(|byte| *byte == b'-');
    bytes.first().is_some_and(is_letter)
        && bytes.last().is_some_and(is_letter)
        && bytes.split(is_letter).all(|between| between.is_empty() || is_separator(between))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    tag.len() <= TAG_BYTES_MAX
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// An algorithm that is known, with as many digits as it has.
fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pulled_always_if_its_tag_moves() {
        let digest = "a".repeat(64);
        for (image, tag_of_it) in [
            ("busybox", Some("latest")),
            ("busybox:1.36", Some("1.36")),
            ("team/app:latest", Some("latest")),
            ("registry.example.com:5000/team/app", Some("latest")),
            ("localhost/app:v1", Some("v1")),
            ("[::1]:5000/app", Some("latest")),
            ("Registry/app", Some("latest")),
            ("", None),
            ("App", None),
            ("a b", None),
            ("a..b", None),
            ("a__b---c.d", Some("latest")),
            ("app:", None),
            ("other@sha256:abc", None),
        ] {
            assert_eq!(tag(image), tag_of_it, "{image}");
        }
        assert_eq!(tag(&digest), None);
        assert_eq!(tag(&format!("app@sha256:{digest}")), None);
        assert_eq!(tag(&format!("app:latest@sha256:{digest}")), Some("latest"));
        assert_eq!(default_pull_policy("app"), "Always");
        let long = "x".repeat(254);
        assert_eq!(tag(&long), None);
        assert_eq!(tag(&format!("docker.io/{long}")), None);
        assert_eq!(tag(&format!("a.b/{long}")), Some("latest"));
        assert_eq!(tag(&format!("a/{}", "x".repeat(252))), Some("latest"));
    }
}
