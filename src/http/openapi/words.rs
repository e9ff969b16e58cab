//! Descriptions and identifiers of operations.

/// What an operation does: `partially update status of the specified Widget`.
pub(super) fn describe(verb: &str, subresource: &str, kind: &str, is_watched: bool) -> String {
    let of = match subresource {
        "" => String::new(),
        subresource => format!(" {subresource} of"),
    };
    let article = match kind {
        kind if kind.ends_with('s') && !kind.ends_with("ss") => " ",
        kind if kind.starts_with(|first: char| "aeiou".contains(first.to_ascii_lowercase())) => " an ",
        _ => " a ",
    };
    match verb {
        "list" if is_watched => format!("list or watch{of} objects of kind {kind}"),
        "list" => format!("list{of} objects of kind {kind}"),
        "watchlist" => format!(
            "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list operation instead."
        ),
        "watch" => format!(
            "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation instead, \
             filtered to a single item with the 'fieldSelector' parameter."
        ),
        "patch" => format!("partially update{of} the specified {kind}"),
        "deletecollection" => format!("delete collection of{of} {kind}"),
        "create" | "delete" => format!("{verb}{of}{article}{kind}"),
        verb => format!("{verb}{of} the specified {kind}"),
    }
}

/// A group in tags and identifiers.
pub(super) fn short_group(group: &str) -> &str {
    match group {
        "" => "core",
        group => group.strip_suffix(".k8s.io").unwrap_or(group),
    }
}

/// The tag that groups the operations of a version.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{}", identifier(short_group(group), false), identifier(version, false))
}

/// `text` as a part of an operation id: what is not a letter or digit makes the next letter a capital.
pub(super) fn identifier(text: &str, capital: bool) -> String {
    let mut capital = capital;
    let mut identifier = String::new();
    for (at, character) in text.char_indices() {
        match character {
            _ if character == '_' || character.is_alphabetic() || (at > 0 && character.is_numeric()) => {
                if std::mem::take(&mut capital) {
                    identifier.extend(character.to_uppercase())
                } else {
                    identifier.push(character)
                }
            }
            _ => capital = true,
        }
    }
    identifier
}
