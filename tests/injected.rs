//! What tests of controllers ask a control plane for: faults on demand, and conversations that are recorded and played back.

#[path = "kubectl.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod kubectl;
#[path = "server.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod server;

#[path = "injected/asking.rs"]
mod asking;
#[path = "injected/faults.rs"]
mod faults;
#[path = "injected/watches.rs"]
mod watches;
#[path = "injected/command.rs"]
mod command;
#[path = "injected/records.rs"]
mod records;
#[path = "injected/played.rs"]
mod played;
#[path = "helpers/rust_forks.rs"]
mod rust_forks;
