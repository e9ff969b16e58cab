//! Sources that are file systems of the network.

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

pub fn nfs(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(source, &["server", "path"]);
    let path = source.field("path");
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must be an absolute path"));
    }
    errors
}

pub fn glusterfs(source: &FieldRef<'_>) -> ErrorList {
    checks::required_fields(source, &["endpoints", "path"])
}

pub fn rbd(source: &FieldRef<'_>) -> ErrorList {
    checks::required_fields(source, &["monitors", "image"])
}

pub fn cephfs(source: &FieldRef<'_>) -> ErrorList {
    checks::required_fields(source, &["monitors"])
}

pub fn azure_file(source: &FieldRef<'_>) -> ErrorList {
    checks::required_fields(source, &["secretName", "shareName"])
}

pub fn flocker(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, uuid) = (source.field("datasetName"), source.field("datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(source.required("one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let why = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(Error::invalid(source.path(), "resource", why));
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
    errors
}

pub fn quobyte(source: &FieldRef<'_>) -> ErrorList {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    const TENANT_BYTES_MAX: usize = 64;
    let mut errors = ErrorList::new();
    let (registry, tenant) = (source.field("registry"), source.field("tenant"));
    if registry.is_empty() {
        errors.push(registry.required(PAIRS));
    } else if tenant.text().len() > TENANT_BYTES_MAX {
        errors.push(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        let unfit = registry.text().split(',').filter(|pair| !is_host_and_port(pair));
        unfit.for_each(|_| errors.push(registry.invalid(PAIRS)));
    }
    errors.extend(checks::required_fields(source, &["volume"]));
    errors
}

/// Whether Go's `net.SplitHostPort` splits it.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let rest = match host.strip_prefix('[') {
        Some(inner) => match inner.strip_suffix(']') {
            Some(inner) if !inner.contains(']') => inner,
            _ => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    !rest.contains('[') && !rest.contains(']') && !port.contains(['[', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for text in ["a:1", ":", "[::1]:80", "[a]:", "a:b"] {
            assert!(is_host_and_port(text), "{text}");
        }
        for text in ["a", "a:b:c", "[::1]", "[a]b:1", "a]:1", "a:[", "::1"] {
            assert!(!is_host_and_port(text), "{text}");
        }
    }
}
