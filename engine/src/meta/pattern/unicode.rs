//! Sets of characters as Go knows them: its names for classes, and the folds of Unicode 15.
//!
//! The tables of `regex-syntax` are of a newer version of Unicode; later additions are removed.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// The characters from `low` to `high`, both code points; surrogates are left out.
pub(super) fn set_between(low: u32, high: u32) -> ClassUnicode {
    let low = (low..=high).take(0x801).find_map(char::from_u32);
    let high = (0..=high).rev().take(0x801).find_map(char::from_u32);
    ClassUnicode::new(
        low.zip(high).filter(|(low, high)| low <= high).map(|(low, high)| ClassUnicodeRange::new(low, high)),
    )
}

pub(super) fn negated(ranges: impl Iterator<Item = (char, char)>) -> ClassUnicode {
    let mut set = ClassUnicode::new(ranges.map(|(low, high)| ClassUnicodeRange::new(low, high)));
    set.negate();
    set
}

pub(super) fn posix_ranges(name: &str) -> Option<&'static [(char, char)]> {
    Some(match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}

/// The scripts of Unicode 15 that Go finds by name: those of one word, as it drops underscores before it looks.
pub(super) const SCRIPTS: &str = "\
    Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese \
    Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra \
    Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul \
    Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage \
    Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo \
    Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto \
    Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

/// `name` as Go looks it up: case, spaces, hyphens and underscores don't matter.
pub(super) fn canonical_name(name: &str) -> String {
    let mut canonical: String = name.chars().filter(|char| !matches!(char, '_' | '-' | ' ')).collect();
    canonical.make_ascii_lowercase();
    if let Some(first) = canonical.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    canonical
}

/// The set that `\p{name}` stands for, by its canonical name.
pub(super) fn unicode_group(name: &str, fold: bool) -> Option<ClassUnicode> {
    let special = match name {
        "Any" => negated(std::iter::empty()),
        "Ascii" => fold_if(fold, ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')])),
        "Assigned" => assigned(),
        "Unassigned" | "Cn" => unassigned(),
        "Other" | "C" => {
            let mut other = unassigned();
            for part in ["Cc", "Cf", "Co"] {
                other.union(&table(&format!("gc={part}")));
            }
            other
        }
        // Text has no surrogates.
        "Surrogate" | "Cs" => ClassUnicode::empty(),
        script if SCRIPTS.split(' ').any(|name| name == script) => {
            fold_if(fold, within_assigned(table(&format!("sc={script}"))))
        }
        _ => return category(name).map(|short| of_category(short, fold)),
    };
    Some(special)
}

fn of_category(short: &str, fold: bool) -> ClassUnicode {
    let mut set = within_assigned(table(&format!("gc={short}")));
    match short {
        "Mn" => set.union(&of_chars([MOVED_MARK])),
        "Mc" => set.difference(&of_chars([MOVED_MARK])),
        _ => {}
    }
    // Go has no table of the characters that cased letters fold to.
    fold_if(fold && short != "LC", set)
}

fn unassigned() -> ClassUnicode {
    let mut unassigned = assigned();
    unassigned.negate();
    unassigned
}

/// The short name of a category, by one of its canonical names.
fn category(name: &str) -> Option<&'static str> {
    Some(match name {
        "Casedletter" | "Lc" => "LC",
        "Closepunctuation" | "Pe" => "Pe",
        "Combiningmark" | "Mark" | "M" => "M",
        "Connectorpunctuation" | "Pc" => "Pc",
        "Control" | "Cntrl" | "Cc" => "Cc",
        "Currencysymbol" | "Sc" => "Sc",
        "Dashpunctuation" | "Pd" => "Pd",
        "Decimalnumber" | "Digit" | "Nd" => "Nd",
        "Enclosingmark" | "Me" => "Me",
        "Finalpunctuation" | "Pf" => "Pf",
        "Format" | "Cf" => "Cf",
        "Initialpunctuation" | "Pi" => "Pi",
        "Letter" | "L" => "L",
        "Letternumber" | "Nl" => "Nl",
        "Lineseparator" | "Zl" => "Zl",
        "Lowercaseletter" | "Ll" => "Ll",
        "Mathsymbol" | "Sm" => "Sm",
        "Modifierletter" | "Lm" => "Lm",
        "Modifiersymbol" | "Sk" => "Sk",
        "Nonspacingmark" | "Mn" => "Mn",
        "Number" | "N" => "N",
        "Openpunctuation" | "Ps" => "Ps",
        "Otherletter" | "Lo" => "Lo",
        "Othernumber" | "No" => "No",
        "Otherpunctuation" | "Po" => "Po",
        "Othersymbol" | "So" => "So",
        "Paragraphseparator" | "Zp" => "Zp",
        "Privateuse" | "Co" => "Co",
        "Punctuation" | "Punct" | "P" => "P",
        "Separator" | "Z" => "Z",
        "Spaceseparator" | "Zs" => "Zs",
        "Spacingmark" | "Mc" => "Mc",
        "Symbol" | "S" => "S",
        "Titlecaseletter" | "Lt" => "Lt",
        "Uppercaseletter" | "Lu" => "Lu",
        _ => return None,
    })
}

pub(super) fn fold_if(fold: bool, set: ClassUnicode) -> ClassUnicode {
    if fold { folded(set) } else { set }
}

/// A property of the Unicode tables, by its name in `regex-syntax`.
pub(super) fn table(property: &str) -> ClassUnicode {
    match regex_syntax::parse(&format!("\\p{{{property}}}")).map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(set))) => set,
        Ok(HirKind::Literal(literal)) => {
            let chars = String::from_utf8_lossy(&literal.0).into_owned();
            of_chars(chars.chars())
        }
        _ => ClassUnicode::empty(),
    }
}

/// The code points assigned in Unicode 15: Go's tables are of that version, ours are newer. Noncharacters have an age,
/// but are not assigned.
pub(super) fn assigned() -> ClassUnicode {
    let mut assigned = table("gc=Cn");
    assigned.negate();
    assigned.intersect(&table("Age=15.0"));
    assigned
}

/// Characters with a case that were added after Unicode 15, or that fold to each other only since then.
pub(super) const NEWER_FOLDS: [(char, char); 10] = [
    ('\u{390}', '\u{390}'),
    ('\u{3b0}', '\u{3b0}'),
    ('\u{1c89}', '\u{1c8a}'),
    ('\u{1fd3}', '\u{1fd3}'),
    ('\u{1fe3}', '\u{1fe3}'),
    ('\u{a7cb}', '\u{a7cd}'),
    ('\u{a7da}', '\u{a7dc}'),
    ('\u{fb05}', '\u{fb06}'),
    ('\u{10d50}', '\u{10d65}'),
    ('\u{10d70}', '\u{10d85}'),
];

/// A mark that became a spacing one (`Mc`) after Unicode 15, in which it is nonspacing (`Mn`).
pub(super) const MOVED_MARK: char = '\u{1171e}';

pub(super) fn of_chars(chars: impl IntoIterator<Item = char>) -> ClassUnicode {
    ClassUnicode::new(chars.into_iter().map(|char| ClassUnicodeRange::new(char, char)))
}

pub(super) fn within_assigned(mut set: ClassUnicode) -> ClassUnicode {
    set.intersect(&assigned());
    set
}

/// `set` and all characters equal to its own by simple case folding.
pub(super) fn folded(set: ClassUnicode) -> ClassUnicode {
    let mut wide = set.clone();
    if set.is_ascii() {
        wide.case_fold_simple();
        return wide;
    }
    let newer = ClassUnicode::new(NEWER_FOLDS.map(|(low, high)| ClassUnicodeRange::new(low, high)));
    wide.difference(&newer);
    wide.case_fold_simple();
    wide.difference(&newer);
    wide.union(&set);
    wide
}

pub(super) fn has_case(char: char) -> bool {
    if char.is_ascii() {
        return char.is_ascii_alphabetic();
    }
    let one = of_chars([char]);
    folded(one.clone()) != one
}

/// The approximate number of states of a UTF-8 automaton that `set` takes.
pub(super) fn states_of(set: &ClassUnicode) -> u64 {
    if set.is_ascii() { 1 } else { 4 + 2 * set.ranges().len() as u64 }
}
