//! A line diff of two texts.

use crate::work;

/// The maximum number of differences; if there are more, the texts are shown one after the other.
const DIFFERENCES_MAX: usize = 400;

/// A line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// `" "` for a line of both texts, `"-"` for one of the first text, `"+"` for one of the second.
    pub mark: &'static str,
    /// The line without its line break.
    pub text: &'t str,
}

/// All lines of both texts in order, with the fewest marks. Source: E. W. Myers, "An O(ND) Difference Algorithm and Its
/// Variations", 1986.
pub fn lines<'t>(before: &'t str, after: &'t str) -> Vec<Line<'t>> {
    let (one, other): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let tail = one[head..].iter().rev().zip(other[head..].iter().rev()).take_while(|(one, other)| one == other).count();
    let mark = |mark, lines: &[&'t str]| lines.iter().map(move |text| Line { mark, text }).collect::<Vec<_>>();
    let (middle, other_middle) = (&one[head..one.len() - tail], &other[head..other.len() - tail]);
    work::bytes(before.len() + after.len());
    let changed =
        between(middle, other_middle).unwrap_or_else(|| [mark("-", middle), mark("+", other_middle)].concat());
    [mark(" ", &one[..head]), changed, mark(" ", &one[one.len() - tail..])].concat()
}

/// The shortest edit script from one list of lines to the other; `None` if it is too long.
fn between<'t>(one: &[&'t str], other: &[&'t str]) -> Option<Vec<Line<'t>>> {
    // For each diagonal (how far the first list is ahead), the furthest line of the first list. `rounds` has that for
    // every number of differences.
    let mut furthest = vec![0_usize; 2 * DIFFERENCES_MAX + 3];
    let center = DIFFERENCES_MAX + 1;
    let mut rounds = Vec::new();
    for differences in 0..=DIFFERENCES_MAX {
        rounds.push(furthest.clone());
        for step in 0..=differences {
            let at = center + 2 * step - differences;
            let from_above = step == 0 || (step < differences && furthest[at - 1] < furthest[at + 1]);
            let mut x = if from_above { furthest[at + 1] } else { furthest[at - 1] + 1 };
            let Some(mut y) = (x + center).checked_sub(at) else { continue };
            while x < one.len() && y < other.len() && one[x] == other[y] {
                work::step();
                (x, y) = (x + 1, y + 1);
            }
            work::step();
            furthest[at] = x;
            if x >= one.len() && y >= other.len() {
                return Some(walk_back(one, other, &rounds, differences));
            }
        }
    }
    None
}

/// The lines of the edit script that was found, from its end.
fn walk_back<'t>(one: &[&'t str], other: &[&'t str], rounds: &[Vec<usize>], differences: usize) -> Vec<Line<'t>> {
    let center = DIFFERENCES_MAX + 1;
    let (mut x, mut y) = (one.len(), other.len());
    let mut found = Vec::new();
    for left in (1..=differences).rev() {
        let before = &rounds[left];
        let at = center + x - y;
        let is_lowest = at + left == center;
        let is_highest = at == center + left;
        let from_above = is_lowest || (!is_highest && before[at - 1] < before[at + 1]);
        let from = if from_above { at + 1 } else { at - 1 };
        let (from_x, from_y) = (before[from], (before[from] + center).saturating_sub(from));
        while x > from_x && y > from_y && one[x - 1] == other[y - 1] {
            (x, y) = (x - 1, y - 1);
            found.push(Line { mark: " ", text: one[x] });
        }
        if from_above {
            y -= 1;
            found.push(Line { mark: "+", text: other[y] });
        } else {
            x -= 1;
            found.push(Line { mark: "-", text: one[x] });
        }
    }
    found.extend(one[..x].iter().rev().map(|text| Line { mark: " ", text }));
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &str) {
        let split = |text: &str| text.replace(' ', "\n");
        let (before, after) = (split(before), split(after));
        let found = lines(&before, &after);
        let shown: Vec<String> = found.iter().map(|line| format!("{}{}", line.mark.trim(), line.text)).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn what_is_common_stays() {
        check("a b c", "a b c", "a b c");
        check("a c", "a b c", "a +b c");
        check("a b c", "a c", "a -b c");
        check("a b c d", "a x c y d", "a -b +x c +y d");
        check("", "a", "+a");
        check("a", "", "-a");
        check("a b c a b b a", "c b a b a c", "-a -b c +b a b -b a +c");
    }

    #[test]
    fn texts_that_have_little_in_common_are_shown_one_after_the_other() {
        let numbered = |word: &str| (0..600).map(|at| format!("{word}{at}\n")).collect::<String>();
        let (before, after) = (numbered("a"), numbered("b"));
        let found = lines(&before, &after);
        assert_eq!(found.len(), 1200);
        assert_eq!((found[0].mark, found[600].mark), ("-", "+"));
    }

    #[test]
    fn both_texts_can_be_read_from_the_diff() {
        let (before, after) = ("a\nb\nc\nd\ne\nf\nb\n", "b\nc\nx\ne\nd\ne\nb\n");
        let found = lines(before, after);
        let of = |other: &str| {
            found.iter().filter(|line| line.mark != other).map(|line| format!("{}\n", line.text)).collect::<String>()
        };
        assert_eq!((of("+"), of("-")), (before.to_owned(), after.to_owned()));
    }
}
