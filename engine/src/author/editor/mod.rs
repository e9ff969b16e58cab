//! What an editor tells and offers at a place of a text.
//!
//! In: texts as somebody types them, with the definitions and policies around them. Out: diagnostics, completions, hovers,
//! definitions, edits, symbols and tokens, all by positions in the text. Nothing here reads a file or speaks a protocol: the
//! language server does that, and a page in a browser may do it, too.
//!
//! - **Verdicts come from the strict reader and the server's own passes** ([`check`]), document by document: what did not
//!   change is not looked at again.
//! - **Everything else comes from an [`outline`]**, which takes lines as they are and needs no valid YAML: a text that is
//!   being typed is broken most of the time.
//! - **Positions are those of the protocol** ([`text`]): lines and UTF-16 code units, from 0.

pub mod text;
pub mod outline;
pub mod cursor;
pub mod documents;
pub mod workspace;
mod shape;
mod expression;
mod types;
mod ways;
pub mod names;
pub mod check;
pub mod complete;
pub mod hover;
pub mod definition;
mod rewrite;
mod paths;
pub mod actions;
pub mod symbols;
pub mod tokens;
#[cfg(test)]
mod tests;

pub use text::{Edit, Position, Text, TextRange};
pub use workspace::Workspace;
