//! Bearer tokens from a file, as kube-apiserver's `--token-auth-file` reads them.

use std::collections::HashMap;
use std::fmt;

use sha2::{Digest, Sha256};

use super::UserInfo;

/// Tells whose a bearer token is.
pub trait TokenAuthenticator: Send + Sync {
    fn user_of(&self, token: &str) -> Option<UserInfo>;
}

impl TokenAuthenticator for TokenFile {
    fn user_of(&self, token: &str) -> Option<UserInfo> {
        let digest: [u8; 32] = Sha256::digest(token.trim()).into();
        self.users.get(&digest).cloned()
    }
}

/// Tokens and whom each stands for.
#[derive(Default)]
pub struct TokenFile {
    /// By digest: a look-up's duration then tells nothing about a token.
    users: HashMap<[u8; 32], UserInfo>,
}

/// Why a token file cannot be read, with the line.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenFileError {
    line: usize,
    problem: &'static str,
}

impl fmt::Display for TokenFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for TokenFileError {}

impl TokenFile {
    /// Reads lines of `token,user,uid,"group1,group2"`; the groups are optional.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut file = TokenFile::default();
        for (at, row) in text.lines().enumerate().filter(|(_, row)| !row.trim().is_empty()) {
            let error = |problem| TokenFileError { line: at + 1, problem };
            let columns = columns(row).ok_or_else(|| error("a quote is not closed"))?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(error("a token, a user and a uid are needed"));
            };
            if token.is_empty() {
                return Err(error("the token is empty"));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default().split(',');
            let groups = groups.map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned).collect();
            let user = UserInfo { uid: uid.clone(), ..UserInfo::authenticated(name.as_str(), groups) };
            file.users.insert(Sha256::digest(token).into(), user);
        }
        Ok(file)
    }

    /// The user that an `Authorization` header's value stands for, if it is `Bearer` and a token we know.
    pub fn user_of_header(&self, authorization: &str) -> Option<&UserInfo> {
        let (scheme, token) = authorization.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let digest: [u8; 32] = Sha256::digest(token.trim()).into();
        self.users.get(&digest)
    }
}

/// The columns of one row of CSV; `None` when a quote stays open.
fn columns(row: &str) -> Option<Vec<String>> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    for letter in row.trim().chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            _ => columns.last_mut()?.push(letter),
        }
    }
    (!quoted).then(|| columns.iter().map(|column| column.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_token_is_its_user() {
        let file = TokenFile::parse("s3cret,jane,u-1,\"system:masters, dev\"\n\nother,joe,u-2\n").expect("well-formed");
        let jane = file.user_of_header("Bearer s3cret").expect("the token is known");
        assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "u-1"));
        assert_eq!(jane.groups, ["system:masters", "dev", "system:authenticated"]);
        assert_eq!(file.user_of_header("bearer other").map(|user| user.name.as_str()), Some("joe"));
    }

    #[test]
    fn an_unknown_token_and_another_scheme_are_nobody() {
        let file = TokenFile::parse("s3cret,jane,u-1").expect("well-formed");
        for header in ["Bearer s3cre", "Bearer ", "Bearer", "Basic s3cret", "s3cret"] {
            assert_eq!(file.user_of_header(header), None, "{header}");
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = |text| TokenFile::parse(text).err().map(|error| error.to_string());
        assert_eq!(error("a,b,c\nx,y").as_deref(), Some("line 2: a token, a user and a uid are needed"));
        assert_eq!(error("a,b,c,\"d").as_deref(), Some("line 1: a quote is not closed"));
        assert_eq!(error(",b,c").as_deref(), Some("line 1: the token is empty"));
    }
}
