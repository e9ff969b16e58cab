//! Labels in little memory: servers keep those of all objects.

use std::fmt;
use std::sync::Arc;

use super::Labels;
use crate::work;

/// Labels, sorted by name, each once. A copy shares their memory.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PackedLabels(Option<Arc<LabelTable>>);

/// Names and values, one after the other in one text.
#[derive(PartialEq, Eq)]
struct LabelTable {
    text: Box<str>,
    /// Where each name and each value ends: first those of the first label.
    ends: Box<[[u32; 2]]>,
}

impl LabelTable {
    fn get(&self, at: usize) -> (&str, &str) {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before][1]);
        let [name, value] = self.ends[at];
        (&self.text[from as usize..name as usize], &self.text[name as usize..value as usize])
    }
}

impl PackedLabels {
    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |table| table.ends.len())
    }

    /// Whether an object with the labels `of` has all of these.
    pub fn are_among(&self, of: &(impl Labels + ?Sized)) -> bool {
        let has = |(name, value): (&str, &str)| {
            work::step();
            of.value(name) == Some(value)
        };
        self.len() <= of.count() && self.pairs().all(has)
    }
}

/// Packs the labels of an object.
impl<L: Labels + ?Sized> From<&L> for PackedLabels {
    fn from(labels: &L) -> Self {
        let mut sorted: Vec<(&str, &str)> = labels.pairs().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        if sorted.is_empty() {
            return PackedLabels(None);
        }
        let mut text = String::with_capacity(sorted.iter().map(|(name, value)| name.len() + value.len()).sum());
        let mut ends = Vec::with_capacity(sorted.len());
        for (name, value) in sorted {
            // An object has far less than 4 GiB.
            let end = |text: &mut String, part: &str| {
                text.push_str(part);
                u32::try_from(text.len()).unwrap_or(u32::MAX)
            };
            ends.push([end(&mut text, name), end(&mut text, value)]);
        }
        PackedLabels(Some(Arc::new(LabelTable { text: text.into(), ends: ends.into() })))
    }
}

impl Labels for PackedLabels {
    fn count(&self) -> usize {
        self.len()
    }

    fn value(&self, name: &str) -> Option<&str> {
        let table = self.0.as_deref()?;
        let (mut from, mut to) = (0, table.ends.len());
        while from < to {
            let middle = from.midpoint(to);
            let (found, value) = table.get(middle);
            match found.cmp(name) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|table| (0..table.ends.len()).map(|at| table.get(at)))
    }
}

impl fmt::Debug for PackedLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pairs()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_labels_are_the_same_in_less_memory() {
        let pairs: Vec<_> = (0..1000).map(|at| (format!("n{at}"), format!("v{}", at % 7))).collect();
        let packed = PackedLabels::from(&pairs[..]);
        assert_eq!(packed.count(), 1000);
        assert!(pairs.iter().all(|(name, value)| packed.value(name) == Some(value)));
        assert_eq!([packed.value("n"), packed.value("n1000"), packed.value("o")], [None; 3]);
        let names: Vec<&str> = packed.pairs().map(|(name, _)| name).collect();
        assert!(names.is_sorted());
        let table = packed.0.as_ref().expect("it is not empty");
        assert!(table.text.len() + size_of_val(&*table.ends) < 1000 * 16);
        let mut turned = pairs;
        turned.reverse();
        assert_eq!(PackedLabels::from(&turned[..]), packed);
    }

    #[test]
    fn labels_are_among_those_that_have_all_of_them() {
        let packed = |pairs: &[(&str, &str)]| PackedLabels::from(pairs);
        let (of, some) = (packed(&[("a", "1"), ("b", "2"), ("c", "")]), packed(&[("c", ""), ("a", "1")]));
        assert!(some.are_among(&of) && of.are_among(&of) && PackedLabels::default().are_among(&of));
        assert!(!of.are_among(&some) && !packed(&[("a", "2")]).are_among(&of) && !packed(&[("d", "")]).are_among(&of));
    }

    #[test]
    fn no_labels_take_no_memory() {
        let none: [(&str, &str); 0] = [];
        let packed = PackedLabels::from(&none[..]);
        assert_eq!((packed.0.is_none(), packed.value("a"), packed.pairs().count()), (true, None, 0));
        assert_eq!(packed, PackedLabels::default());
    }
}
