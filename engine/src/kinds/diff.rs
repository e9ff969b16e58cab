//! The difference between two texts, line by line, as messages about immutable fields show it.
//!
//! Source: `apimachinery/pkg/util/diff`, which is the unified diff of Python's difflib with three lines of context.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::work;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// From this many lines on, frequent lines are not searched for.
const POPULAR_FROM: usize = 200;
/// DIFFERS: the number of lines and comparisons after which the rest is reported as replaced. Kubernetes has no limit.
const STEPS_MAX: usize = 4_000_000;

/// The unified diff from `old` to `new`; every line ends with a line feed.
pub fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    work::steps(old.len() + new.len());
    let mut matcher = Matcher::new(&old, &new);
    let mut text = String::new();
    for group in grouped(edits(&matcher.blocks())) {
        write_group(&mut text, &group, &old, &new);
    }
    text
}

/// JSON in lines, each level one space further in, as Go indents it.
pub fn in_lines(json: &str) -> String {
    work::bytes(json.len());
    let mut text = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped, mut opened) = (0, false, false, false);
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', depth));
    };
    for char in json.chars() {
        if quoted {
            text.push(char);
            (quoted, escaped) = (escaped || char != '"', !escaped && char == '\\');
            continue;
        }
        let closes = matches!(char, '}' | ']');
        if closes {
            depth -= usize::from(depth > 0);
        }
        if opened != closes {
            // Empty values stay on one line.
            line(&mut text, depth);
        }
        opened = false;
        text.push(char);
        match char {
            '{' | '[' => (depth, opened) = (depth + 1, true),
            ',' => line(&mut text, depth),
            ':' => text.push(' '),
            '"' => quoted = true,
            _ => {}
        }
    }
    text
}

/// `size` lines that both have, from `old` and from `new` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MatchingBlock {
    old: usize,
    new: usize,
    size: usize,
}

/// Lines `old.0..old.1` become `new.0..new.1`, or are the same.
#[derive(Clone, Copy, Debug)]
struct Edit {
    same: bool,
    old: (usize, usize),
    new: (usize, usize),
}

struct Matcher {
    /// The lines as numbers: equal lines have the same.
    old: Vec<usize>,
    new: Vec<usize>,
    /// The positions of each line in the new text; none if it is too frequent.
    places: Vec<Vec<usize>>,
    steps_left: usize,
}

impl Matcher {
    fn new(old: &[&str], new: &[&str]) -> Self {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut number = |line: &&str| {
            let next = numbers.len();
            *numbers.entry((*line).to_owned()).or_insert(next)
        };
        let (old, new): (Vec<usize>, Vec<usize>) =
            (old.iter().map(&mut number).collect(), new.iter().map(&mut number).collect());
        let mut places = vec![Vec::new(); numbers.len()];
        for (at, line) in new.iter().enumerate() {
            if let Some(places) = places.get_mut(*line) {
                places.push(at);
            }
        }
        if new.len() >= POPULAR_FROM {
            let often = new.len() / 100 + 1;
            places.iter_mut().filter(|places| places.len() > often).for_each(Vec::clear);
        }
        Matcher { old, new, places, steps_left: STEPS_MAX }
    }

    /// All blocks, in order.
    fn blocks(&mut self) -> Vec<MatchingBlock> {
        let mut found = Vec::new();
        let mut open = vec![((0, self.old.len()), (0, self.new.len()))];
        while let Some((old, new)) = open.pop() {
            let block = self.longest(old, new);
            if block.size == 0 {
                continue;
            }
            found.push(block);
            if old.0 < block.old && new.0 < block.new {
                open.push(((old.0, block.old), (new.0, block.new)));
            }
            let (old_end, new_end) = (block.old + block.size, block.new + block.size);
            if old_end < old.1 && new_end < new.1 {
                open.push(((old_end, old.1), (new_end, new.1)));
            }
        }
        found.sort_unstable_by_key(|block| block.old);
        let mut blocks: Vec<MatchingBlock> = Vec::with_capacity(found.len() + 1);
        for block in found {
            match blocks.last_mut() {
                Some(last) if last.old + last.size == block.old && last.new + last.size == block.new => {
                    last.size += block.size;
                }
                _ => blocks.push(block),
            }
        }
        blocks.push(MatchingBlock { old: self.old.len(), new: self.new.len(), size: 0 });
        blocks
    }

    /// The longest block within two ranges, the first of those.
    fn longest(&mut self, old: (usize, usize), new: (usize, usize)) -> MatchingBlock {
        let mut best = MatchingBlock { old: old.0, new: new.0, size: 0 };
        let mut lengths: HashMap<usize, usize> = HashMap::new();
        for at in old.0..old.1 {
            if self.steps_left == 0 {
                return best;
            }
            self.steps_left -= 1;
            work::step();
            let places = self.places.get(self.old[at]).map(Vec::as_slice).unwrap_or_default();
            let from = places.partition_point(|place| *place < new.0);
            let places = places[from..].iter().copied().take_while(|place| *place < new.1);
            let mut next = HashMap::new();
            for place in places {
                if self.steps_left == 0 {
                    return best;
                }
                self.steps_left -= 1;
                work::step();
                let before = place.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or_default();
                let size = before + 1;
                next.insert(place, size);
                if size > best.size {
                    best = MatchingBlock { old: at + 1 - size, new: place + 1 - size, size };
                }
            }
            lengths = next;
        }
        self.widen(best, old, new)
    }

    /// Extends the block to the surrounding lines that are equal, too, however frequent they are.
    fn widen(&self, mut block: MatchingBlock, old: (usize, usize), new: (usize, usize)) -> MatchingBlock {
        while block.old > old.0 && block.new > new.0 && self.old[block.old - 1] == self.new[block.new - 1] {
            block = MatchingBlock { old: block.old - 1, new: block.new - 1, size: block.size + 1 };
        }
        while block.old + block.size < old.1
            && block.new + block.size < new.1
            && self.old[block.old + block.size] == self.new[block.new + block.size]
        {
            block.size += 1;
        }
        work::steps(block.size);
        block
    }
}

/// The edits between blocks, and the blocks.
fn edits(blocks: &[MatchingBlock]) -> Vec<Edit> {
    let (mut old, mut new) = (0, 0);
    let mut edits = Vec::new();
    for block in blocks {
        if old < block.old || new < block.new {
            edits.push(Edit { same: false, old: (old, block.old), new: (new, block.new) });
        }
        (old, new) = (block.old + block.size, block.new + block.size);
        if block.size > 0 {
            edits.push(Edit { same: true, old: (block.old, old), new: (block.new, new) });
        }
    }
    edits
}

/// The edits in groups, each with some context.
fn grouped(mut edits: Vec<Edit>) -> Vec<Vec<Edit>> {
    if let Some(first) = edits.first_mut().filter(|first| first.same) {
        *first = tail(*first);
    }
    if let Some(last) = edits.last_mut().filter(|last| last.same) {
        *last = head(*last);
    }
    let mut groups = Vec::new();
    let mut group = Vec::new();
    for mut edit in edits {
        if edit.same && edit.old.1 - edit.old.0 > 2 * CONTEXT {
            group.push(head(edit));
            groups.push(std::mem::take(&mut group));
            edit = tail(edit);
        }
        group.push(edit);
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|edit| !edit.same));
    groups
}

/// The last lines of an equal part.
fn tail(edit: Edit) -> Edit {
    let from = |(from, to): (usize, usize)| (from.max(to.saturating_sub(CONTEXT)), to);
    Edit { old: from(edit.old), new: from(edit.new), ..edit }
}

/// The first lines of an equal part.
fn head(edit: Edit) -> Edit {
    let to = |(from, to): (usize, usize)| (from, to.min(from + CONTEXT));
    Edit { old: to(edit.old), new: to(edit.new), ..edit }
}

fn write_group(text: &mut String, group: &[Edit], old: &[&str], new: &[&str]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let (from, to) = (range((first.old.0, last.old.1)), range((first.new.0, last.new.1)));
    _ = writeln!(text, "@@ -{from} +{to} @@");
    let mut lines = |sign: char, lines: &[&str]| {
        for line in lines {
            work::bytes(line.len());
            text.push(sign);
            text.push_str(line);
            text.push('\n');
        }
    };
    for edit in group {
        if edit.same {
            lines(' ', &old[edit.old.0..edit.old.1]);
        } else {
            lines('-', &old[edit.old.0..edit.old.1]);
            lines('+', &new[edit.new.0..edit.new.1]);
        }
    }
}

/// Lines as the head of a group counts them, from one.
fn range((from, to): (usize, usize)) -> String {
    match to - from {
        0 => format!("{from},0"),
        1 => format!("{}", from + 1),
        length => format!("{},{length}", from + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_in_their_context() {
        let text = |changed: &str| {
            let lines: Vec<_> =
                (0..20).map(|line| if line == 9 { changed.to_owned() } else { line.to_string() }).collect();
            lines.join("\n")
        };
        assert_eq!(unified(&text("x"), &text("y")), "@@ -7,7 +7,7 @@\n 6\n 7\n 8\n-x\n+y\n 10\n 11\n 12\n");
        assert_eq!(unified("a", "a"), "");
        assert_eq!(unified("a\nb", "b"), "@@ -1,2 +1 @@\n-a\n b\n");
        assert_eq!(unified("b", "a\nb"), "@@ -1 +1,2 @@\n+a\n b\n");
        assert_eq!(unified("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
    }

    #[test]
    fn json_stands_in_lines() {
        let json = r#"{"a":[],"b":{"c":["x{","\\\\"],"d":{}}}"#;
        let lines = "{\n \"a\": [],\n \"b\": {\n  \"c\": [\n   \"x{\",\n   \"\\\\\\\\\"\n  ],\n  \"d\": {}\n }\n}";
        assert_eq!(in_lines(json), lines);
    }

    #[test]
    fn a_text_of_one_line_many_times_ends() {
        let text = |lines: usize| "x\n".repeat(lines);
        assert!(unified(&text(150), &text(140)).starts_with("@@ -"));
        assert!(unified(&text(20_000), &text(10_000)).starts_with("@@ -"));
    }
}
