//! Tests through the real binary, and those that read the whole source.

mod golden;
mod server;
mod store;
mod spec {
    mod vectors;
}
mod tidy;
