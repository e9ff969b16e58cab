//! What is said in which minor of Kubernetes.
//!
//! Input: for each minor, statements. Output: each statement once, with the minors that make it.

use crate::meta::minor::Minor;

/// What is said in one minor.
#[derive(Default)]
pub struct Said {
    /// Statements, one a line.
    pub lines: Vec<String>,
    /// Whether nothing is wrong there.
    pub is_fine: bool,
    /// Whether all could be read.
    pub is_readable: bool,
}

impl Said {
    fn is_right(&self) -> bool {
        self.is_fine && self.is_readable
    }
}

/// A statement, and the minors that make it, in rising order.
pub struct Row {
    /// The statement.
    pub line: String,
    /// The minors.
    pub minors: Vec<Minor>,
}

/// All statements, in the order of the newest minor, which comes last in `said`; what only others say stands where they say
/// it.
pub fn rows(said: &[(Minor, Said)]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (minor, said) in said.iter().rev() {
        let mut next = 0;
        for line in &said.lines {
            // Most stand where they stood in the minor before.
            let is_it = |row: &Row| row.line == *line;
            let found = rows[next..].iter().position(is_it).map(|at| at + next);
            match found.or_else(|| rows[..next].iter().position(is_it)) {
                Some(at) => {
                    if rows[at].minors.last() != Some(minor) {
                        rows[at].minors.push(*minor);
                    }
                    next = next.max(at + 1);
                }
                None => {
                    rows.insert(next, Row { line: line.clone(), minors: vec![*minor] });
                    next += 1;
                }
            }
        }
    }
    rows.iter_mut().for_each(|row| row.minors.reverse());
    rows
}

/// The first minor from which on all is fine.
pub fn fine_from(said: &[(Minor, Said)]) -> Option<Minor> {
    said.iter().rev().take_while(|(_, said)| said.is_right()).last().map(|(minor, _)| *minor)
}

/// From when on all is fine, in words.
pub fn fine(said: &[(Minor, Said)]) -> String {
    match (fine_from(said), said.first()) {
        (None, _) => {
            let all: Vec<Minor> = said.iter().map(|(minor, _)| *minor).collect();
            let others: Vec<Minor> =
                said.iter().filter(|(_, said)| !said.is_right()).map(|(minor, _)| *minor).collect();
            if others == all { "fine in none".to_owned() } else { format!("not fine: {}", ranges(&all, &others)) }
        }
        (Some(first), Some((oldest, _))) if first == *oldest => "fine in all".to_owned(),
        (Some(first), _) => format!("fine from {first} on"),
    }
}

/// Some of `minors` in words: `all`, `until 1.30`, `from 1.34`, `1.31-1.33`, and several of these with commas between.
pub fn ranges(minors: &[Minor], those: &[Minor]) -> String {
    if those.len() == minors.len() {
        return "all".to_owned();
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in those.iter().filter_map(|minor| minors.iter().position(|known| known == minor)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => ranges.push((at, at)),
        }
    }
    let show = |(first, last): &(usize, usize)| match (*first, *last) {
        (first, last) if first == last => minors[first].to_string(),
        (0, last) => format!("until {}", minors[last]),
        (first, last) if last + 1 == minors.len() => format!("from {}", minors[first]),
        (first, last) => format!("{}-{}", minors[first], minors[last]),
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_all_is_fine_is_told_in_words() {
        let told = |fine_in: &[u16]| {
            let said = |minor| Said { is_fine: fine_in.contains(&minor), is_readable: true, ..Said::default() };
            fine(&[30, 31, 32, 33].map(|minor| (Minor::of(minor), said(minor))))
        };
        assert_eq!(told(&[30, 31, 32, 33]), "fine in all");
        assert_eq!(told(&[30, 32, 33]), "fine from 1.32 on");
        assert_eq!(told(&[30, 31]), "not fine: from 1.32");
        assert_eq!(told(&[]), "fine in none");
    }
}
