//! Which version of a document the client says it already has.
//!
//! Source: `http.ServeContent` of Go, which serves OpenAPI documents.

/// Whether a value of `If-None-Match` contains the entity tag, or `*`: weak and strong tags compare as equal. What
/// follows a malformed tag is not read.
pub fn names_tag(if_none_match: &str, tag: &str) -> bool {
    let mut left = if_none_match;
    loop {
        left = left.trim_start_matches([' ', '\t', '\n', '\r', ',']);
        if left.starts_with('*') {
            return true;
        }
        let Some((found, behind)) = first_tag(left) else { return false };
        if strong(found) == strong(tag) {
            return true;
        }
        left = behind;
    }
}

fn strong(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// The entity tag at the start of a text, and what follows it.
fn first_tag(text: &str) -> Option<(&str, &str)> {
    let begin = text.len() - strong(text).len();
    let quoted = text[begin..].strip_prefix('"')?;
    let length = quoted.find(|character: char| !matches!(character, '!' | '#'..='~') && character.is_ascii())?;
    quoted[length..].starts_with('"').then(|| text.split_at(begin + length + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_a_list_whether_it_is_weak_or_not() {
        for known in [r#""a""#, r#"W/"a""#, "*", r#""x", "a""#, r#""x","a""#, r#" , ,W/"x" "a""#] {
            assert!(names_tag(known, r#""a""#), "{known}");
        }
        for other in ["", "a", r#""b""#, r#"""a"""#, r#"w/"a""#, r#"x, "a""#, r#""a"#, r#""x y", "a""#, r#""é"#, "W/"]
        {
            assert!(!names_tag(other, r#""a""#), "{other}");
        }
    }
}
