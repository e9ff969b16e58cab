//! Tags: the declared types of nodes.
//!
//! Input: a tag as it is written, with its handle replaced. Output: which of the known tags it is; the names of others
//! are not kept, as a long prefix of many short tags would make them long.

const PREFIX: &str = "tag:yaml.org,2002:";
const KNOWN: [&str; 8] = ["binary", "bool", "float", "int", "merge", "null", "str", "timestamp"];
/// The longest known tag, in bytes.
const BYTES_MAX: usize = PREFIX.len() + "timestamp".len();

/// The tag of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// None is given.
    None,
    /// `!`
    NonSpecific,
    /// A type of YAML: `str`, `int`, …
    Known(&'static str),
    Other,
}

impl Tag {
    /// The tag made of `prefix` and `suffix`.
    pub fn of(prefix: &str, suffix: &str) -> Tag {
        if prefix.len() + suffix.len() > BYTES_MAX {
            return Tag::Other;
        }
        let tag = format!("{prefix}{suffix}");
        match (tag.as_str(), tag.strip_prefix(PREFIX)) {
            ("", _) => Tag::None,
            ("!", _) => Tag::NonSpecific,
            (_, Some(name)) => KNOWN.iter().find(|known| **known == name).map_or(Tag::Other, |known| Tag::Known(known)),
            _ => Tag::Other,
        }
    }
}
