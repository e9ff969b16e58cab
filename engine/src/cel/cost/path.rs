//! Paths from a variable to a value, as the estimate follows them through the declared types.

use std::cell::RefCell;
use std::rc::Rc;

/// The steps from a variable: the variable itself, then names of fields, `@items`, `@indices`, `@keys` and `@values`.
/// Empty for a value that is not reached from a variable.
///
/// An extended path shares its steps with the original path as long as there is capacity, so that a second extension of
/// the same path changes the first one. That is how slices grow in the reference, and it has visible effects: in
/// `self.a.b.all(x, x.c.all(y, y.d.all(z, y.e == z)))` the path of `z` goes through `e`, not `d`, once `y.e` was seen.
#[derive(Clone, Debug, Default)]
pub struct Path<'e> {
    steps: Option<Rc<RefCell<Vec<&'e str>>>>,
    length: usize,
    /// The capacity of `steps` in Go; the vector itself may have reserved more.
    capacity: usize,
}

impl<'e> Path<'e> {
    pub fn of_variable(name: &'e str) -> Path<'e> {
        Path::default().child(name)
    }

    /// Returns this path with one more step; overwrites the step that was appended to this path before, if there is
    /// capacity for it.
    pub fn child(&self, step: &'e str) -> Path<'e> {
        match &self.steps {
            Some(steps) if self.length < self.capacity => {
                let mut shared = steps.borrow_mut();
                match shared.get_mut(self.length) {
                    Some(place) => *place = step,
                    None => shared.push(step),
                }
                Path { steps: Some(steps.clone()), length: self.length + 1, capacity: self.capacity }
            }
            _ => {
                let mut steps = Vec::with_capacity(self.length + 1);
                self.read(|own| steps.extend_from_slice(own));
                steps.push(step);
                let capacity = (self.capacity * 2).max(1);
                Path { steps: Some(Rc::new(RefCell::new(steps))), length: self.length + 1, capacity }
            }
        }
    }

    /// Copies the steps to new memory, and adds one.
    pub fn copied_child(&self, step: &'e str) -> Path<'e> {
        let mut steps = Vec::with_capacity(self.length + 1);
        self.read(|own| steps.extend_from_slice(own));
        steps.push(step);
        Path { length: steps.len(), capacity: steps.len(), steps: Some(Rc::new(RefCell::new(steps))) }
    }

    /// Returns the result of `look` for the steps.
    pub fn read<R>(&self, look: impl FnOnce(&[&'e str]) -> R) -> R {
        match &self.steps {
            Some(steps) => look(&steps.borrow()[..self.length]),
            None => look(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps<'e>(path: &Path<'e>) -> Vec<&'e str> {
        path.read(<[&str]>::to_vec)
    }

    #[test]
    fn a_second_child_overwrites_the_first_where_there_is_room() {
        let three = Path::of_variable("self").child("a").child("b");
        let (first, second) = (three.child("c"), three.child("d"));
        assert_eq!(steps(&first), ["self", "a", "b", "d"]);
        assert_eq!(steps(&second), ["self", "a", "b", "d"]);
    }

    #[test]
    fn children_of_a_full_path_are_apart() {
        let two = Path::of_variable("self").child("a");
        let (first, second) = (two.child("c"), two.child("d"));
        assert_eq!(steps(&first), ["self", "a", "c"]);
        assert_eq!(steps(&second), ["self", "a", "d"]);
    }
}
