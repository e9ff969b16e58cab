//! The language server as an editor drives it, references of definitions, and the project's file.
//!
//! A test binary of its own: it needs nothing but the program.

#[path = "beside.rs"]
#[expect(dead_code, reason = "other tests read other files")]
mod beside;
#[path = "editor/client.rs"]
mod client;
#[path = "editor/session.rs"]
mod session;
#[path = "editor/places.rs"]
mod places;
#[path = "editor/largest.rs"]
mod largest;
#[path = "editor/typing.rs"]
mod typing;
#[path = "editor/corpus.rs"]
mod corpus;
#[path = "editor/incremental.rs"]
mod incremental;
#[path = "editor/folders.rs"]
mod folders;
#[path = "editor/hostile.rs"]
mod hostile;
#[path = "editor/reference.rs"]
mod reference;
#[path = "editor/project.rs"]
mod project;
#[path = "editor/extension.rs"]
mod extension;
