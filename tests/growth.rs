//! Every pass over what a client sends is linear in it, or has a bound with a name.
//!
//! Each pass runs over inputs that grow tenfold, and three counts tell how its work grows with them: the steps that it
//! counts itself, the bytes that it allocates, and the instructions of the machine under valgrind, which knows nothing of
//! what the code believes (by hand, as that takes ten minutes). No times. `growth/passes` is the table; `growth/known.rs` names what does not hold.
//!
//! It is a binary of its own, since its allocator counts. `GROWTH=json cargo test --test growth` takes the passes alone
//! whose names contain that, and shows all counts; `GROWTH_TIMES=10` makes all inputs ten times as large.

mod fuzz;
#[path = "growth/inputs.rs"]
mod inputs;
#[path = "growth/known.rs"]
mod known;
#[path = "growth/measure.rs"]
mod measure;
#[path = "growth/pass.rs"]
mod pass;
#[path = "growth/passes/mod.rs"]
mod passes;
#[path = "growth/schemas.rs"]
mod schemas;
#[path = "growth/widgets.rs"]
mod widgets;
#[path = "growth/verdict.rs"]
mod verdict;
#[path = "growth/valgrind.rs"]
mod valgrind;

use pass::Pass;

/// The variable that says which passes are asked for: all without it.
const ASKED: &str = "GROWTH";
/// The variable that says by how much the sizes are larger than in the table.
const TIMES: &str = "GROWTH_TIMES";
/// As the server's threads have.
const STACK_BYTES: usize = 64 << 20;

/// The passes that are asked for.
fn wanted() -> Vec<Pass> {
    let asked = std::env::var(ASKED).unwrap_or_default();
    let mut passes = passes::all();
    passes.retain(|pass| asked.split(",").any(|asked| pass.name().contains(asked)));
    passes
}

/// Runs work with the stack that the server's threads have.
fn on_a_large_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work).expect("there is memory for a thread");
    thread.join().expect("what fails stands above")
}

#[test]
fn names_are_those_of_one_pass_each() {
    let mut names: Vec<String> = passes::all().iter().map(Pass::name).collect();
    names.sort();
    let twice: Vec<&[String]> = names.windows(2).filter(|two| two[0] == two[1]).collect();
    assert!(twice.is_empty(), "a name stands for two passes: {twice:?}");
    let unknown = known::without_a_pass(&names);
    assert!(unknown.is_empty(), "no pass has the name of a known failure: {unknown:?}");
}

#[test]
fn steps_and_bytes_grow_as_the_input_does() {
    let findings = on_a_large_stack(|| {
        wanted().iter().flat_map(|pass| verdict::counted(pass, &measure::steps_and_bytes(pass))).collect()
    });
    verdict::confirm(findings);
}

#[test]
#[ignore = "takes ten minutes and valgrind: by hand, with -- --ignored"]
fn instructions_grow_as_the_input_does() {
    let passes = wanted();
    let counts = valgrind::instructions(&passes);
    verdict::confirm(counts.iter().flat_map(|(pass, counts)| verdict::executed(pass, counts)).collect());
}

/// What runs under valgrind: by itself it does nothing.
#[test]
fn measured_by_another_process() {
    let Some(share) = valgrind::share() else { return };
    on_a_large_stack(move || wanted().iter().skip(share.first).step_by(share.each).for_each(valgrind::run));
}
