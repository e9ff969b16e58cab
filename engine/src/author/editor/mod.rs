//! What an editor shows and offers at a position of a text.
//!
//! Input: texts as they are being typed, with the definitions and policies around them. Output: diagnostics,
//! completions, hovers, definitions, edits, symbols and tokens, all by positions in the text. Nothing here reads a file
//! or implements a protocol: the language server does that, and a page in a browser could do it, too.
//!
//! - **Diagnostics come from the strict parser and the server's own passes** ([`check`]), document by document: what
//!   has not changed is not checked again.
//! - **Everything else comes from an [`outline`]**, which works line by line and does not need valid YAML: a text that
//!   is being typed is invalid most of the time.
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
