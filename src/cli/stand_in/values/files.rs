//! Checks that the files that flags name exist, including those that this program does not read.
//!
//! Source: the texts were recorded from kube-apiserver 1.36.

use std::fs;

use super::super::files::go_reason;
use super::super::flags::Flags;
use crate::value::go_quote;

/// The error for a missing file: a text with `PATH` or `"PATH"` for its path, and `WHY` for the
/// reason in Go's words.
const FILES: [(&str, &str); 11] = [
    ("service-account-signing-key-file", "failed to parse service-account-issuer-key-file: open PATH: WHY"),
    ("service-account-key-file", "open PATH: WHY"),
    ("token-auth-file", "open PATH: WHY"),
    ("authentication-config", "failed to load authentication configuration from file \"PATH\": open PATH: WHY"),
    ("authentication-token-webhook-config-file", "stat PATH: WHY"),
    (
        "encryption-provider-config",
        "error while parsing file: error while loading file: error reading encryption provider configuration file \"PATH\": \
         open PATH: WHY",
    ),
    (
        "egress-selector-config-file",
        "failed to read egress selector config: unable to read egress selector configuration from \"PATH\" [open PATH: WHY]",
    ),
    (
        "tracing-config-file",
        "failed to read tracing config: unable to read tracing configuration from \"PATH\": open PATH: WHY",
    ),
    (
        "allow-metric-labels-manifest",
        "metrics.allowListMappingManifest: Invalid value: \"PATH\": failed to read allow list manifest: open PATH: WHY",
    ),
    ("audit-policy-file", "loading audit policy file: failed to read file path \"PATH\": open PATH: WHY"),
    ("etcd-cafile", "open PATH: WHY"),
];

/// The error for the first file that can't be opened.
pub fn fault(flags: &Flags) -> Option<String> {
    FILES.into_iter().find_map(|(name, told)| {
        let missing = |path: &String| fs::File::open(path).err().map(|error| (path.clone(), go_reason(&error)));
        let (path, why) = flags.texts(name).iter().filter(|path| !path.is_empty()).find_map(missing)?;
        Some(told.replace("\"PATH\"", &go_quote(&path)).replace("PATH", &path).replace("WHY", &why))
    })
}
