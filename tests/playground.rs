//! The page of `skiff playground` and `skiff serve --ui`: its questions with bad input, its protection against other
//! pages, the committed bundle, and a browser that uses it.

#[path = "playground/program.rs"]
mod program;
#[path = "playground/questions.rs"]
mod questions;
#[path = "playground/protection.rs"]
mod protection;
#[path = "playground/bundle.rs"]
mod bundle;
#[path = "playground/browser.rs"]
mod browser;
