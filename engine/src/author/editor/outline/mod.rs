//! The positions of a document's keys and values, read line by line.
//!
//! Input: the text of a document, valid or not. Output: its nodes, each with its step, its key and its value as byte
//! ranges. What cannot be understood is skipped, and what follows is read as if it were not there: the text may be
//! incomplete.
//!
//! It implements less than the YAML parser: aliases, tags and complex keys have no meaning here.

mod node;
mod flow;
mod scanner;

use std::ops::Range;

use crate::work;

pub(super) use self::flow::{CollectionPart, Flow};
pub use self::node::{OutlineNode, OutlineStep, ValueStyle, shown, steps};
pub(super) use self::node::{below_version, path};
pub(super) use self::scanner::{Scanner, WrittenKey, key_of};

/// The nodes of a document, in text order; the first one is the document.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The nodes; each comes after its parent.
    pub nodes: Vec<OutlineNode>,
}

/// Reads the nodes of a text.
pub fn outline(text: &str) -> Outline {
    let mut scanner = Scanner::new(text);
    scanner.run(text.len());
    Outline { nodes: scanner.nodes }
}

impl Outline {
    /// The path of a node.
    pub fn path(&self, node: usize) -> Vec<OutlineStep> {
        path(&self.nodes, node)
    }

    /// The direct children of a node.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        // The descendants of a node directly follow it.
        let is_below = move |at: &usize| self.nodes[*at].parent.is_some_and(|parent| parent >= node);
        (node + 1..self.nodes.len()).take_while(is_below).filter(move |at| self.nodes[*at].parent == Some(node))
    }

    /// The node at the end of a path.
    pub fn find(&self, path: &[OutlineStep]) -> Option<usize> {
        path.iter().try_fold(0, |node, step| self.children(node).find(|child| self.nodes[*child].step == *step))
    }

    /// The scalar value of a node without quotes, if it is on one line; else empty.
    pub fn scalar<'t>(&self, text: &'t str, node: usize) -> &'t str {
        let OutlineNode { value, form, .. } = &self.nodes[node];
        let written = text.get(value.clone()).unwrap_or_default();
        match form {
            ValueStyle::Quoted(_) => written.trim_matches(['"', '\'']),
            ValueStyle::Plain => written,
            ValueStyle::Below | ValueStyle::Block | ValueStyle::Flow => "",
        }
    }

    /// The scalar at the path of fields `names`; empty if there is none.
    pub fn scalar_at<'t>(&self, text: &'t str, names: &[&str]) -> &'t str {
        self.find(&steps(names)).map_or("", |node| self.scalar(text, node))
    }

    /// The last node whose key or value contains a byte or ends there.
    pub fn at(&self, offset: usize) -> Option<usize> {
        let holds = |range: &Range<usize>| range.start <= offset && offset <= range.end;
        // Nodes are sorted by their keys; a value that continues after other nodes belongs to one of their ancestors.
        let last = self.nodes.partition_point(|node| node.key.start <= offset).checked_sub(1)?;
        let mut ways = std::iter::successors(Some(last), |node| self.nodes[*node].parent).take_while(|node| *node > 0);
        let is_it = |node: &usize| {
            work::step();
            let OutlineNode { key, value, .. } = &self.nodes[*node];
            holds(key) || (!value.is_empty() && holds(value))
        };
        ways.find(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the nodes, as `path=value`, or `path?` for one without a colon.
    fn check(text: &str, expected: &[&str]) {
        let outline = outline(text);
        let node = |at: usize| {
            let path = shown(&outline.path(at));
            let OutlineNode { value, is_whole, .. } = &outline.nodes[at];
            if *is_whole { format!("{path}={}", &text[value.clone()]) } else { format!("{path}?") }
        };
        assert_eq!((1..outline.nodes.len()).map(node).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn blocks_have_nodes() {
        check(
            "a: 1 # one\nb:\n  c: 'x: y'\n  d:\n  - e: f\n    g: h\n  - i\n# no\nj: \"k\"\n",
            &["a=1", "b=", "b.c='x: y'", "b.d=", "b.d[0]=", "b.d[0].e=f", "b.d[0].g=h", "b.d[1]=i", "j=\"k\""],
        );
        check("a:\n- - b\n  - c: d\n", &["a=", "a[0]=", "a[0][0]=b", "a[0][1]=", "a[0][1].c=d"]);
    }

    #[test]
    fn long_texts_are_one_value() {
        check(
            "a: |\n  b: c\n\n  d\ne: >-\n    f\ng: h\n  i\nj: 'k\n  l'\n",
            &["a=|\n  b: c\n\n  d", "e=>-\n    f", "g=h\n  i", "j='k\n  l'"],
        );
    }

    #[test]
    fn collections_on_a_line_have_nodes() {
        check(
            "a: {b: 1, 'c': [d, {e: f}], g}\nh: []\n\"i\": {\"j\":1,\n  k: l}\n",
            &[
                "a={b: 1, 'c': [d, {e: f}], g}",
                "a.b=1",
                "a.c=[d, {e: f}]",
                "a.c[0]=d",
                "a.c[1]={e: f}",
                "a.c[1].e=f",
                "a.g?",
                "h=[]",
                "i={\"j\":1,\n  k: l}",
                "i.j=1",
                "i.k=l",
            ],
        );
    }

    #[test]
    fn json_has_nodes_however_it_is_laid_out() {
        let nodes = ["a=1", "b={\"c\": [\"d\"]}", "b.c=[\"d\"]", "b.c[0]=\"d\"", "e=f"];
        check("{\"a\": 1, \"b\": {\"c\": [\"d\"]}, \"e\":\nf}\n", &nodes);
        check("---\n# x\n{\n\"a\": 1,\n\"b\": {\"c\": [\"d\"]},\n\t\"e\": f\n}\n", &nodes);
        check("{\"a\": 1,\n\"b\": {\"c\"\n", &["a=1", "b={", "b.\"c\"?"]);
        check("{{- if x }}\na: 1\n", &["{{- if x }}?", "a=1"]);
    }

    #[test]
    fn what_is_being_typed_hides_nothing() {
        check("a:\n  b\nc: 1\n", &["a=", "a.b?", "c=1"]);
        check("a: \"x\nb: {c: 1\nd: [\ne: f\n", &["a=\"x", "b={c: 1", "b.c=1", "d=[", "e=f"]);
        check("a:\n  - \n  - b: 1\n    c\n", &["a=", "a[0]=", "a[1]=", "a[1].b=1", "a[1].c?"]);
    }
}
