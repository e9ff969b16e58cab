//! Bearer tokens from a file, as kube-apiserver's `--token-auth-file` reads them.
//!
//! CSV is parsed by hand: the `csv` crate accepts quotes that Go rejects, and its errors have no
//! column.

use std::collections::HashMap;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::{Authenticated, AuthenticationNotes, TokenAuthenticator, TokenError, UserInfo};

/// Tokens and the user of each.
#[derive(Default)]
pub struct TokenFile {
    /// By digest, so the duration of a look-up reveals nothing about a token.
    users: HashMap<[u8; 32], UserInfo>,
    /// The audiences of the tokens: those of this server.
    audiences: Vec<String>,
    /// Warnings about the file.
    pub warnings: Vec<String>,
}

/// Why a token file cannot be read.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum TokenFileError {
    /// A record with this many columns.
    #[error("must have at least 3 columns (token, user name, user uid), found {0}")]
    Columns(usize),
    /// Not CSV, with the line and the column in bytes, both counted from 1.
    #[error("is not CSV: {}parse error on line {line}, column {column}: {problem}", record(*.start_line, *.line))]
    Syntax { start_line: usize, line: usize, column: usize, problem: &'static str },
}

/// Names the record that can't be parsed, if it began on an earlier line.
fn record(start_line: usize, line: usize) -> String {
    if start_line == line { String::new() } else { format!("record on line {start_line}; ") }
}

impl TokenFile {
    /// Parses records of `token,user,uid,"group1,group2"`; the groups are optional. The tokens are
    /// for `audiences`.
    pub fn parse(text: &str, audiences: &[String]) -> Result<Self, TokenFileError> {
        let mut file = TokenFile { audiences: audiences.to_vec(), ..TokenFile::default() };
        for (number, record) in records(text)?.into_iter().enumerate() {
            let [token, name, uid, rest @ ..] = record.as_slice() else {
                return Err(TokenFileError::Columns(record.len()));
            };
            if token.is_empty() {
                file.warnings.push(format!("the token of record {} is empty, it is left out", number + 1));
                continue;
            }
            let groups = rest.first().map(|groups| groups.split(',').map(str::to_owned).collect());
            let user = UserInfo::authenticated(name.as_str(), groups.unwrap_or_default());
            let user = UserInfo { uid: uid.clone(), ..user };
            if file.users.insert(Sha256::digest(token).into(), user).is_some() {
                file.warnings.push(format!("the token of record {} was there before, the last one counts", number + 1));
            }
        }
        Ok(file)
    }

    fn user_of(&self, token: &str) -> Option<&UserInfo> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        self.users.get(&digest)
    }
}

#[async_trait]
impl TokenAuthenticator for TokenFile {
    async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Option<Authenticated>, TokenError> {
        let audiences: Vec<_> = audiences.iter().filter(|wanted| self.audiences.contains(wanted)).cloned().collect();
        if audiences.is_empty() {
            return Ok(None);
        }
        Ok(self.user_of(token).cloned().map(|user| Authenticated {
            user,
            audiences,
            notes: AuthenticationNotes::default(),
        }))
    }
}

/// The records of a text in CSV, as Go's `encoding/csv` reads it: empty lines are skipped, a quoted
/// field may span several lines, and a quote within it is doubled.
fn records(text: &str) -> Result<Vec<Vec<String>>, TokenFileError> {
    let mut records = Vec::new();
    let mut rest = TokenFileReader { text, at: 0, line: 1, line_start: 0 };
    while let Some(next) = rest.peek() {
        match next {
            '\n' => rest.take(),
            '\r' if rest.text[rest.at..].starts_with("\r\n") => rest.take(),
            _ => records.push(rest.record()?),
        }
    }
    Ok(records)
}

struct TokenFileReader<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    line_start: usize,
}

impl TokenFileReader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take(&mut self) {
        let Some(taken) = self.peek() else { return };
        self.at += taken.len_utf8();
        if taken == '\n' {
            self.line += 1;
            self.line_start = self.at;
        }
    }

    /// Whether a line, or the text, ends here.
    fn is_at_end(&self) -> bool {
        let rest = &self.text[self.at..];
        matches!(rest, "" | "\r") || rest.starts_with('\n') || rest.starts_with("\r\n")
    }

    fn record(&mut self) -> Result<Vec<String>, TokenFileError> {
        let start_line = self.line;
        let mut fields = Vec::new();
        loop {
            fields.push(match self.peek() {
                Some('"') => self.quoted(start_line)?,
                _ => self.plain(start_line)?,
            });
            let ends = self.is_at_end();
            if ends && self.peek() == Some('\r') {
                self.take();
            }
            self.take();
            if ends {
                return Ok(fields);
            }
        }
    }

    /// Reads a field up to its comma or the end of the line.
    fn plain(&mut self, start_line: usize) -> Result<String, TokenFileError> {
        let mut field = String::new();
        while let Some(next) = self.peek().filter(|next| *next != ',' && !self.is_at_end()) {
            if next == '"' {
                return Err(self.error(start_line, "bare \" in non-quoted-field"));
            }
            field.push(next);
            self.take();
        }
        Ok(field)
    }

    /// Reads a quoted field; a comma or the end of the line must follow.
    fn quoted(&mut self, start_line: usize) -> Result<String, TokenFileError> {
        const EXTRANEOUS: &str = "extraneous or missing \" in quoted-field";
        let mut field = String::new();
        self.take();
        loop {
            match self.peek() {
                None => {
                    self.go_back_to_last_line();
                    return Err(self.error(start_line, EXTRANEOUS));
                }
                Some('"') => {
                    let quote = self.at;
                    self.take();
                    match self.peek() {
                        Some('"') => field.push('"'),
                        Some(',') => return Ok(field),
                        _ if self.is_at_end() => return Ok(field),
                        _ => {
                            self.at = quote;
                            return Err(self.error(start_line, EXTRANEOUS));
                        }
                    }
                }
                // A line break is one byte, even if it was written as two.
                Some('\r') if self.is_at_end() => {}
                Some(other) => field.push(other),
            }
            self.take();
        }
    }

    /// Goes back to the last line if the text ends in a line break: Go reports the error there.
    fn go_back_to_last_line(&mut self) {
        if self.at == self.line_start && self.line > 1 {
            self.line -= 1;
            self.line_start = self.text[..self.at - 1].rfind('\n').map_or(0, |at| at + 1);
        }
    }

    fn error(&self, start_line: usize, problem: &'static str) -> TokenFileError {
        TokenFileError::Syntax { start_line, line: self.line, column: self.at - self.line_start + 1, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TokenFile, TokenFileError> {
        TokenFile::parse(text, &["api".to_owned()])
    }

    #[test]
    fn a_known_token_is_its_user() {
        let file = parse("s3cret,jane,u-1,\"system:masters,dev\"\n\nother,joe,u-2\r\n").expect("well-formed");
        let jane = file.user_of("s3cret").expect("the token is known");
        assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "u-1"));
        assert_eq!(jane.groups, ["system:masters", "dev", "system:authenticated"]);
        assert_eq!(file.user_of("other").map(|user| user.name.as_str()), Some("joe"));
        assert_eq!(file.user_of("s3cre"), None);
    }

    #[test]
    fn fields_are_taken_as_they_stand() {
        let file = parse(" a, b , c,\n\"d\"\"e\",\"f\ng\",h,\"x, y\"\n").expect("well-formed");
        let user = |token| file.user_of(token).map(|user| (user.name.clone(), user.uid.clone(), user.groups.join("|")));
        let is = |name: &str, uid: &str, groups: &str| Some((name.to_owned(), uid.to_owned(), groups.to_owned()));
        assert_eq!(user(" a"), is(" b ", " c", "|system:authenticated"));
        assert_eq!(user("d\"e"), is("f\ng", "h", "x| y|system:authenticated"));
    }

    #[test]
    fn odd_tokens_are_told() {
        let file = parse(",a,b\nt,a,b\nt,c,d\n").expect("well-formed");
        assert_eq!(file.user_of("t").map(|user| user.name.as_str()), Some("c"));
        assert_eq!(file.user_of(""), None);
        assert_eq!(file.warnings.len(), 2);
    }

    /// Source: the errors of Go 1.26 for the same texts.
    #[test]
    fn a_bad_file_is_told_by_line_and_column() {
        let check = |text, expected| assert_eq!(parse(text).err().map(|error| error.to_string()).as_deref(), expected);
        check("a,b,c\nx,y", Some("must have at least 3 columns (token, user name, user uid), found 2"));
        check(
            "a,b,c,\"d",
            Some("is not CSV: parse error on line 1, column 9: extraneous or missing \" in quoted-field"),
        );
        check("a,b\"c,d", Some("is not CSV: parse error on line 1, column 4: bare \" in non-quoted-field"));
        check(
            "a,\"b\"c,d",
            Some("is not CSV: parse error on line 1, column 5: extraneous or missing \" in quoted-field"),
        );
        check(
            "a,\"b\nc\"d",
            Some(
                "is not CSV: record on line 1; parse error on line 2, column 2: extraneous or missing \" in quoted-field",
            ),
        );
        check(
            "a,b,c\n\n\"x\n",
            Some("is not CSV: parse error on line 3, column 4: extraneous or missing \" in quoted-field"),
        );
        check("a,b,c\r", None);
        check("", None);
    }

    #[tokio::test]
    async fn a_token_of_a_file_is_for_this_server() {
        let file = parse("t,a,b").expect("well-formed");
        let audiences = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let found = file.authenticate("t", &audiences(&["other", "api"])).await.expect("no token is refused");
        assert_eq!(found.map(|found| found.audiences), Some(audiences(&["api"])));
        assert_eq!(file.authenticate("t", &audiences(&["other"])).await, Ok(None));
    }
}
