//! A pass over an input of any size.

use std::hint::black_box;

/// A pass, on inputs of one shape.
pub struct Pass {
    /// What is done, such as `json decode`.
    pub what: &'static str,
    /// To which inputs: `many keys`.
    pub shape: &'static str,
    /// How many items the smallest input has.
    pub size: usize,
    /// Makes an input of so many items, and tells what to do with it.
    pub prepare: Box<dyn Fn(usize) -> Work + Send>,
}

/// The pass over one input, which is made already.
pub type Work = Box<dyn FnOnce()>;

impl Pass {
    pub fn name(&self) -> String {
        format!("{}: {}", self.what, self.shape)
    }

    /// The sizes that it is measured with, two equal steps apart; the last is ten times the first.
    pub fn sizes(&self) -> [usize; 3] {
        let times: usize = std::env::var(crate::TIMES).ok().and_then(|times| times.parse().ok()).unwrap_or(1);
        let smallest = self.size * times;
        [smallest, smallest * 11 / 2, smallest * 10]
    }
}

/// Shapes for which work has a bound with a name: these inputs go beyond it.
const BOUNDED: [(&str, usize); 13] = [
    ("controllers", 30),
    // All of these are accepted: another shape has those that are refused.
    ("a long label", 6),
    ("one map key many times", 600),
    ("verbs of groups of resources of names", 24),
    ("many rules", 300),
    ("one rule many times", 120),
    ("inserts at the front", 120),
    ("removals at the front", 120),
    // What is deep is wide where paths are told.
    ("nested properties", 16),
    ("nested items", 16),
    ("nested values", 16),
    ("nested defaults", 16),
    ("nested not", 16),
];

/// A pass over what `input` makes.
pub fn pass<I: 'static, T: 'static>(
    what: &'static str,
    shape: &'static str,
    size: usize,
    input: impl Fn(usize) -> I + Send + 'static,
    run: fn(&I) -> T,
) -> Pass {
    let size = BOUNDED.iter().find(|bounded| bounded.0 == shape).map_or(size, |bounded| bounded.1);
    let prepare = move |size| -> Work {
        let input = input(size);
        Box::new(move || drop(black_box(run(black_box(&input)))))
    };
    Pass { what, shape, size, prepare: Box::new(prepare) }
}
