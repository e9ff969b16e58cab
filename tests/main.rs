//! Tests through the real binary, and those that read the whole source.
//!
//! # What holds the program together
//!
//! Expected values come from the reference with its version, never from our own output.
//!
//! - `tests/golden` plays recorded conversations of a Kubernetes 1.37 server side by side and compares every answer.
//!   `KNOWN` lists those that do not hold, each with its cause: the test fails when one of them begins to hold, and
//!   when another ceases to.
//! - `tests/apply` has the chapters of Kubernetes' page on server-side apply: operations, and the object and its
//!   managers after each, as a Kubernetes 1.37 server answers.
//! - `tests/spec` runs vectors through the pure layers (`examples/vectors.rs` does so for files of your own), the CEL
//!   standard's cases and a corpus of well-known definitions. Those two stand beside the project (`tests/beside.rs`):
//!   under CI they must be there.
//! - `tests/api`, `tests/kubectl.rs` and `tests/tour.rs` run the real binary with the real kubectl; `tests/store`
//!   holds every database to one suite and to a model; `tests/faults` kills, fills and cuts. Durability is proven by
//!   a trace: a library between the server and the system (`tests/faults/shim.c`) tells every write and sync of the
//!   database's files, they are made anew as a power cut at each acknowledgement would leave them, and each
//!   acknowledged object is there. The same test fails under `relaxed`, and says so.
//! - `tests/clients` runs client libraries from their registries: programs for Python and Node.js, which
//!   `tests/setup` installs beside them, and kube-rs as a dependency of the tests, so that what both need is built
//!   once. Those for Go are tests in Go, built once by `tests/setup`, in one module with kubectl; a word on stderr,
//!   where client-go puts warnings and what it retried, fails them.
//! - `tests/packages.rs` makes packages of the binary under test, installs them where nothing else is, and runs them;
//!   `tests/helpers` runs what the helpers of `helpers/` have as tests, on those packages.
//! - `tests/api/rbac_model.rs` says in plain words, and slowly, what the documentation says of RBAC. Roles, bindings
//!   and requests made from seeds are decided by it and by the index, after every change, and some through the
//!   server.
//! - `tests/pages.rs` runs every command of the documentation's pages, with the files that they show.
//! - `tests/examples.rs` holds `crd-examples` to the errors of the reference.
//! - `tests/growth` runs each pass over inputs that grow tenfold, in many shapes, and compares three counts: the
//!   steps that the pass counts itself, the bytes that it allocates, and by hand the machine's instructions under
//!   valgrind, which see what the others miss. `KNOWN` lists what does not hold, each with its cause, and the test
//!   fails when one begins to hold. A pass that counts no steps fails, too. It is a binary of its own, since its
//!   allocator counts.
//! - `tests/fuzz.rs`, in the same binary, runs the fuzz targets over their corpora, and holds each to a bound in
//!   steps and bytes that is linear in its input; `fuzz/run` goes on for longer.
//! - `tests/rules` makes rules and objects from seeds: what checks never fails by a type, costs no more than its
//!   estimate but for causes that have a counterexample each, and comes to the same in the `cel` crate's interpreter.
//!   It is a binary of its own, since its allocator counts: comparing two fields allocates nothing.
//! - `engine/tests/checked.rs` sets each field of each built-in kind to values of its type, and writes on the page of what is
//!   checked which of them make a difference.
//! - `engine/tests/diff.rs` changes definitions at random, made-up ones and those of the corpus: where `author::diff` calls all
//!   of it safe, no object that was valid is refused or loses a field.
//! - `tests/planes` has one process with many control planes: what a copy is, what tells them apart, what is given
//!   back, and what goes by their clocks.
//! - `tests/tidy.rs` holds the table of layers, and that every file says what it is.
//! - No test asserts a time. What makes it is asserted instead: syncs and statements per batch, values read and bytes
//!   copied per answer. Times are printed by `benches/`.

mod beside;
mod cost;
mod kinds;
mod kubectl;
mod server;
mod https;
mod api;
mod apply;
mod examples;
mod author;
mod golden;
mod pages;
mod site;
mod store;
#[cfg(target_os = "linux")]
mod faults;
mod clients;
mod packages;
mod helpers;
mod spec {
    mod conformance;
    mod corpus;
    mod testdata;
    mod vectors;
}
mod supply;
mod tidy;
mod tour;
mod types;
