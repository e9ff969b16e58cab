//! Tests through the real binary, and those that read the whole source.

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
mod store;
#[cfg(target_os = "linux")]
mod faults;
mod clients;
mod spec {
    mod conformance;
    mod corpus;
    mod testdata;
    mod vectors;
}
mod supply;
mod tidy;
mod tour;
