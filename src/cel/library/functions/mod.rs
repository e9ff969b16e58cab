//! What the functions do: one family per file, found by the ids of their overloads.
//!
//! The ids, results and texts of errors are those of cel-go 0.29 and the Kubernetes libraries 1.37. What the evaluator
//! does itself has no implementation here: `&&`, `||`, `?:`, `==`, `!=`, selection, indices, and `or` and `orValue` of
//! optionals, whose right side may stay unevaluated.

pub mod authorizer;

mod arithmetic;
mod arguments;
mod comparison;
mod conversion;
mod formatting;
mod json_patch;
mod lists;
mod maps;
mod named_format;
mod network;
mod optionals;
mod order;
mod quantity;
mod regex;
mod semver;
mod sets;
mod strings;
pub(in crate::cel) mod time;
mod urls;

#[cfg(test)]
mod tests;

pub use time::{duration_text, timestamp_text};

use crate::cel::eval::Function;

/// What the overload `id` does; `None` if that is unknown, or the evaluator's own business.
pub fn implementation(id: &str) -> Option<Function> {
    const FAMILIES: [fn(&str) -> Option<Function>; 17] = [
        arithmetic::implementation,
        comparison::implementation,
        conversion::implementation,
        strings::implementation,
        lists::implementation,
        maps::implementation,
        time::implementation,
        sets::implementation,
        optionals::implementation,
        regex::implementation,
        network::implementation,
        urls::implementation,
        quantity::implementation,
        semver::implementation,
        named_format::implementation,
        authorizer::implementation,
        json_patch::implementation,
    ];
    FAMILIES.iter().find_map(|family| family(id))
}
