//! The texts of rules, packed: a role may have a hundred thousand of them, and all roles are in memory.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Index, Range};
use std::sync::Arc;

/// Lists of texts, one after the other in one text.
#[derive(Default)]
struct TextTable {
    text: Box<str>,
    /// Where each text ends.
    ends: Box<[u32]>,
}

impl TextTable {
    fn get(&self, at: usize) -> &str {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        &self.text[from..self.ends[at] as usize]
    }
}

/// Some lists of texts of one rule.
#[derive(Clone)]
pub struct TextLists<const LISTS: usize> {
    table: Arc<TextTable>,
    first: u32,
    /// Where each list ends, as an index of texts.
    ends: [u32; LISTS],
}

/// The lists of several rules on their way into one table.
#[derive(Default)]
pub struct TextListsBuilder<const LISTS: usize> {
    text: String,
    ends: Vec<u32>,
    lists: Vec<(u32, [u32; LISTS])>,
}

impl<const LISTS: usize> TextListsBuilder<LISTS> {
    /// Adds a text to a list, which is added by [`TextListsBuilder::close`].
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(index(self.text.len()));
    }

    /// How many texts there are: where a list ends.
    pub fn end(&self) -> u32 {
        index(self.ends.len())
    }

    /// Adds the lists of a rule, which begin and end there.
    pub fn close(&mut self, first: u32, ends: [u32; LISTS]) {
        self.lists.push((first, ends));
    }

    pub fn finish(self) -> impl Iterator<Item = TextLists<LISTS>> {
        let table = Arc::new(TextTable { text: self.text.into(), ends: self.ends.into() });
        self.lists.into_iter().map(move |(first, ends)| TextLists { table: Arc::clone(&table), first, ends })
    }
}

/// A role has far fewer texts than that, as its JSON has a limit.
fn index(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl<const LISTS: usize> TextLists<LISTS> {
    /// The list with this index.
    pub fn list(&self, at: usize) -> PackedTexts<'_> {
        let from = at.checked_sub(1).map_or(self.first, |before| self.ends[before]);
        PackedTexts { table: &self.table, range: from as usize..self.ends[at] as usize }
    }
}

impl<const LISTS: usize> Default for TextLists<LISTS> {
    fn default() -> Self {
        TextLists { table: Arc::default(), first: 0, ends: [0; LISTS] }
    }
}

/// A list of texts.
#[derive(Clone)]
pub struct PackedTexts<'t> {
    table: &'t TextTable,
    range: Range<usize>,
}

impl<'t> PackedTexts<'t> {
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'t str> + ExactSizeIterator + use<'t> {
        let table = self.table;
        self.range.clone().map(move |at| table.get(at))
    }

    pub fn len(&self) -> usize {
        self.range.len()
    }

    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<&'t str> {
        (at < self.len()).then(|| self.table.get(self.range.start + at))
    }

    pub fn contains(&self, wanted: &str) -> bool {
        self.iter().any(|text| text == wanted)
    }

    pub fn to_vec(&self) -> Vec<String> {
        self.iter().map(str::to_owned).collect()
    }
}

impl Index<usize> for PackedTexts<'_> {
    type Output = str;

    fn index(&self, at: usize) -> &str {
        assert!(at < self.len(), "the list is shorter");
        self.table.get(self.range.start + at)
    }
}

impl PartialEq for PackedTexts<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for PackedTexts<'_> {}

impl PartialOrd for PackedTexts<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PackedTexts<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl fmt::Debug for PackedTexts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
