//! Many control planes in one process: made, copied, told apart, deleted; and their clocks.

#[path = "planes/server.rs"]
mod server;
#[path = "planes/lifecycle.rs"]
mod lifecycle;
#[path = "planes/forks.rs"]
mod forks;
#[path = "planes/isolation.rs"]
mod isolation;
#[path = "planes/clock.rs"]
mod clock;
#[path = "planes/command.rs"]
mod command;
