//! Request paths.

use kubeskiff::http::path;

use super::{Linear, Target};

const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get"];

pub const TARGET: Target = Target {
    name: "paths",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 1 << 20, per_byte: 1_000 },
};

/// Escapes change nothing, only escapes can be malformed, and what a path within a version wants is decided for any method.
fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(target) = path::parse(&text) else {
        assert!(text.contains('%'), "only escapes can be malformed");
        return;
    };
    assert_eq!(path::parse(&escaped(&unescaped(&text))), Ok(target.clone()), "escapes change nothing");
    let path::Target::Resource(path) = target else { return };
    // A namespace is in a namespace of its own name.
    if path.group.is_empty() && path.resource == "namespaces" {
        return;
    }
    for method in METHODS {
        for watch in [false, true] {
            let verb = path.verb(method, watch);
            assert!(path.fits_scope(false, verb) == path.namespace.is_empty(), "cluster scope has no namespace");
            assert!(path.fits_scope(true, verb) || path.namespace.is_empty(), "a namespace fits a namespaced kind");
        }
    }
}

/// Every byte but slashes as an escape.
fn escaped(path: &[u8]) -> String {
    path.iter().map(|byte| if *byte == b'/' { "/".to_owned() } else { format!("%{byte:02x}") }).collect()
}

/// The bytes of a path whose escapes are well-formed.
fn unescaped(path: &str) -> Vec<u8> {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.extend(part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()));
        bytes.extend(part.get(2..).unwrap_or_default().as_bytes());
    }
    bytes
}
