//! What the functions take and give, one family per file: names, overloads, types.
//!
//! The order matters: of the functions of one name, overloads are tried in the order of [`functions`].

pub mod json_patch;
pub mod standard;

mod authorizer;
mod comprehensions;
mod format;
mod list_extensions;
mod lists;
mod network;
mod optionals;
mod quantity;
mod regex;
mod semver;
mod sets;
mod strings;
mod urls;

use crate::cel::env::{Expressions, FunctionDecl};

/// All functions that a rule of a CustomResourceDefinition may name.
pub fn functions(expressions: Expressions) -> Vec<FunctionDecl> {
    let mut functions = standard::functions();
    // The version of lists that knows `includes` came last.
    if expressions == Expressions::New {
        functions.extend(lists::functions(expressions));
    }
    functions.extend(urls::functions());
    functions.extend(regex::functions());
    functions.extend(authorizer::functions());
    functions.extend(optionals::functions());
    functions.extend(quantity::functions());
    functions.extend(strings::functions());
    functions.extend(sets::functions());
    functions.extend(network::functions());
    functions.extend(format::functions());
    functions.extend(comprehensions::functions());
    functions.extend(semver::functions());
    functions.extend(list_extensions::functions());
    if expressions == Expressions::Stored {
        functions.extend(lists::functions(expressions));
    }
    functions
}
