//! What somebody types into a large definition: letters in rules, bounds, keys, comments and descriptions, each taken back.

/// An edit: a line, from where to where in it in UTF-16, and what comes there.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    pub line: usize,
    pub from: usize,
    pub to: usize,
    pub comes: &'static str,
}

/// A place where somebody types.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// What stands there.
    pub name: &'static str,
    line: usize,
    column: usize,
    letter: &'static str,
}

impl Spot {
    /// The letter comes.
    pub fn letter(&self) -> Edit {
        Edit { line: self.line, from: self.column, to: self.column, comes: self.letter }
    }

    /// The letter goes.
    pub fn back(&self) -> Edit {
        Edit { line: self.line, from: self.column, to: self.column + self.letter.encode_utf16().count(), comes: "" }
    }
}

/// Spots in a text, those of each sort that it has, from its middle on or before.
pub fn spots(text: &str) -> Vec<Spot> {
    let lines: Vec<&str> = text.lines().collect();
    let middle = lines.len() / 2;
    let find = |is_it: &dyn Fn(&str) -> bool| (middle..lines.len()).chain(0..middle).find(|line| is_it(lines[*line]));
    let begins =
        |line: &str, words: &[&str]| words.iter().any(|word| line.trim_start_matches([' ', '-']).starts_with(word));
    let end = |line: usize| lines[line].encode_utf16().count();
    let spot = |name, letter, line: Option<usize>, column: &dyn Fn(usize) -> usize| {
        line.map(|line| Spot { name, line, column: column(line), letter })
    };
    // The value stands on the line itself.
    let is_below = |line: &str| line.ends_with(['|', '>', '-', '+']);
    let rule = find(&|line| begins(line, &["rule: "]) && !is_below(line));
    let bound = find(&|line| begins(line, &["maxLength: ", "maximum: ", "minimum: ", "maxItems: ", "minLength: "]));
    let key = find(&|line| line.ends_with(':') && !begins(line, &["items:", "properties:", "required:"]));
    let description = find(&|line| begins(line, &["description: "]) && !is_below(line));
    let plain = find(&|line| line.trim_start() == "type: object");
    let found = [
        spot("rule", "x", rule, &|line| text_end(lines[line])),
        spot("bound", "1", bound, &end),
        spot("key", "x", key, &|line| end(line) - 1),
        spot("comment", " # 𝄞", plain, &end),
        spot("description", "x", description, &|line| text_end(lines[line])),
    ];
    found.into_iter().flatten().collect()
}

/// Where a text ends, before the quote.
fn text_end(line: &str) -> usize {
    line.trim_end_matches(['"', '\'']).encode_utf16().count()
}
