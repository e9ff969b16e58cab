//! Converts between file URIs and paths.

use std::str::FromStr;

use lsp_types::Uri;

/// The name of a file by its URI: its path, or the URI itself if it is not a file.
pub fn name_of(uri: &Uri) -> String {
    let text = uri.as_str();
    let Some(path) = text.strip_prefix("file://") else { return text.to_owned() };
    // The part before the path is a host.
    let path = path.find('/').map_or(path, |start| &path[start..]);
    let decoded = decoded(path);
    // A Windows path such as `/C:/a`.
    let is_drive = decoded.as_bytes().get(2) == Some(&b':');
    decoded.strip_prefix('/').filter(|_| is_drive).unwrap_or(&decoded).to_owned()
}

/// The URI of a file by its path.
pub fn uri_of(name: &str) -> Option<Uri> {
    let path = name.replace('\\', "/");
    if path.contains("://") {
        return Uri::from_str(name).ok();
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    Uri::from_str(&format!("file://{slash}{}", encoded(&path))).ok()
}

fn encoded(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn decoded(path: &str) -> String {
    let mut out = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = (*first == b'%').then(|| behind.get(..2)).flatten();
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                rest = &behind[2..];
            }
            None => {
                out.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_uris_are_made_of_each_other() {
        for path in ["/a/b c/ä%.yaml", "/tmp/x.yaml"] {
            assert_eq!(name_of(&uri_of(path).expect("it is a path")), path);
        }
        let check = |uri: &str, name: &str| assert_eq!(name_of(&Uri::from_str(uri).expect("it is a URI")), name);
        check("file:///c%3A/a.yaml", "c:/a.yaml");
        check("file://host/a", "/a");
        check("file://%C3%A4:", "ä:");
        check("untitled:Untitled-1", "untitled:Untitled-1");
    }
}
