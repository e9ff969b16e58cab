//! Futures that are watched over whenever they are polled.

use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;

use super::Share;
use super::attend::Background;
use crate::work::{Broken, Meter};

/// Runs work that takes turns on the processors.
///
/// # Errors
///
/// The work was ended, or it panicked.
pub fn metered<F: Future>(share: &Arc<Share>, work: F) -> impl Future<Output = Result<F::Output, Broken>> + use<F> {
    run(meter(share), work)
}

/// Runs the server's own background work; other tasks don't wait for its thread.
pub async fn background<F: Future>(work: F) -> F::Output {
    in_background(Meter::new(Background::new()), work).await
}

/// Runs background work under a meter that ends nothing.
pub(super) async fn in_background<F: Future>(meter: Meter, work: F) -> F::Output {
    match run(meter, work).await {
        Ok(output) => output,
        Err(Broken::Panicked(payload)) => resume_unwind(payload),
        Err(Broken::Ended(ended)) => resume_unwind(Box::new(ended)),
    }
}

/// A meter for work that takes turns on the processors, if it is not a future.
pub fn meter(share: &Arc<Share>) -> Meter {
    Meter::new(share.attendant())
}

/// A meter for a stream that goes on for long, if it is not a future.
pub fn stream_meter() -> Meter {
    Meter::new(Background::of_stream())
}

/// Polls `work` under the meter. It boxes `work`, as callers move the future that they are given;
/// it is not an `async fn`, which would hold `work` twice.
fn run<F: Future>(mut meter: Meter, work: F) -> impl Future<Output = Result<F::Output, Broken>> + use<F> {
    let mut work = Box::pin(work);
    poll_fn(move |context| match meter.run(|| work.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(broken) => Poll::Ready(Err(broken)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use tokio::task::yield_now;

    use super::*;
    use crate::processor::turns::WaiterKind;
    use crate::processor::{ExpectedWork, Processor, THREADS_BESIDE};
    use crate::work::{self, Ended, NoThread, commit, step};

    fn share(processor: &Processor) -> Arc<Share> {
        processor.share("jane", "a kind", ExpectedWork::Short)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_work_leaves_its_thread_to_others_and_ends_when_nobody_wants_it() {
        let processor = Arc::new(Processor::default());
        let share = share(&processor);
        let work = tokio::spawn({
            let share = Arc::clone(&share);
            async move { metered(&share, async { (0..u64::MAX).for_each(|_| step()) }).await }
        });
        // The only thread of the runtime is busy, and yet this task continues.
        for _ in 0..100 {
            yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(!work.is_finished());
        share.cancel();
        let ended = work.await.expect("it does not panic");
        assert!(matches!(ended, Err(Broken::Ended(Ended::Cancelled))));
        processor.done(&share);
        assert_eq!(processor.share("jane", "a kind", ExpectedWork::Short).expected(), ExpectedWork::Long);
        assert_eq!(processor.share("joe", "a kind", ExpectedWork::Short).expected(), ExpectedWork::Short);
    }

    #[tokio::test]
    async fn work_ends_at_its_deadline() {
        let processor = Processor::default();
        let share = share(&processor);
        share.set_deadline(Instant::now() + Duration::from_millis(5));
        let ended = metered(&share, async { (0..u64::MAX).for_each(|_| step()) }).await;
        assert!(matches!(ended, Err(Broken::Ended(Ended::Deadline))));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_request_that_waits_for_a_service_gives_up_its_turn_until_its_deadline() {
        let processor = Processor::of(1, THREADS_BESIDE);
        let share = processor.share("jane", "a kind", ExpectedWork::Long);
        let joe = Arc::from("joe");
        let asks = async {
            share.ready().await?;
            let mut other = None;
            let waited = work::wait(&mut |_| {
                other = Some(processor.turns.take_on_thread(&joe, || Err(Ended::Deadline)));
                Poll::Ready(())
            });
            assert_eq!(waited, Ok(()));
            other.map_or(Ok(()), |turn| turn.map(drop))
        };
        assert_eq!(metered(&share, asks).await.ok(), Some(Ok::<(), Ended>(())));
        share.set_deadline(Instant::now() + Duration::from_millis(5));
        let ended = metered(&share, async { work::wait(&mut |_| Poll::Pending) }).await;
        assert!(matches!(ended, Err(Broken::Ended(Ended::Deadline))));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn few_hold_a_thread_while_they_wait_for_a_service() {
        let processor = Processor::of(1, 4);
        let [first, second] = ["jane", "joe"].map(|user| processor.share(user, "a kind", ExpectedWork::Short));
        let mut meter = meter(&second);
        let refused = metered(&first, async {
            let mut refused = None;
            _ = work::wait(&mut |_| {
                refused = meter.run(|| work::wait(&mut |_| Poll::Ready(()))).ok();
                Poll::Ready(())
            });
            refused
        });
        assert_eq!(refused.await.ok().flatten(), Some(Err(NoThread)));
        assert_eq!(metered(&second, async { work::wait(&mut |_| Poll::Ready(())) }).await.ok(), Some(Ok(())));
    }

    #[tokio::test]
    async fn what_is_short_is_left_alone() {
        let processor = Processor::default();
        let share = share(&processor);
        assert_eq!(metered(&share, async { yield_now().await }).await.ok(), Some(()));
        processor.done(&share);
        assert_eq!(share.expected(), ExpectedWork::Short);
        assert_eq!(background(async { 1 }).await, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_change_that_has_begun_is_not_refused_for_those_who_wait() {
        let processor = Processor::of(1, THREADS_BESIDE);
        let user = Arc::from("jane");
        let mut waiting = Vec::new();
        while let Ok(turn) = processor.turns.take(&user, WaiterKind::ToGoOn) {
            waiting.push(turn);
        }
        let work = || async {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(10) {
                step();
            }
        };
        let read = processor.share("jane", "a read", ExpectedWork::Short);
        assert!(matches!(metered(&read, work()).await, Err(Broken::Ended(Ended::Overload))));
        let change = processor.share_of_change("jane", "a change", ExpectedWork::Short);
        assert_eq!(metered(&change, work()).await.ok(), Some(()));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn where_there_is_no_memory_what_takes_long_ends_unless_it_has_written() {
        let is_out = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_out);
        let processor = Processor::default().within_memory(move || told.load(Ordering::SeqCst));
        let work = |writes: bool, until_steps: u64| async move {
            if writes {
                commit();
            }
            (0..until_steps).for_each(|_| step());
        };
        is_out.store(true, Ordering::SeqCst);
        let small = processor.share("jane", "a small one", ExpectedWork::Short);
        assert_eq!(metered(&small, work(false, 2_000)).await.ok(), Some(()), "what is short goes on");
        let change = processor.share_of_change("jane", "a change", ExpectedWork::Short);
        let ended = metered(&change, work(false, u64::MAX)).await;
        assert!(matches!(ended, Err(Broken::Ended(Ended::Overload))));
        let written = processor.share_of_change("jane", "a change", ExpectedWork::Short);
        written.set_deadline(Instant::now() + Duration::from_millis(50));
        let ended = metered(&written, work(true, u64::MAX)).await;
        assert!(
            matches!(ended, Err(Broken::Ended(Ended::Deadline))),
            "what has written goes on until its time is over"
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn of_a_thousand_that_turn_out_to_be_long_few_have_begun_at_once() {
        let processor = Arc::new(Processor::of(1, THREADS_BESIDE));
        let begun = Arc::new(AtomicUsize::new(0));
        let work = |_| {
            let share = processor.share_of_change("jane", "a kind", ExpectedWork::Short);
            let begun = Arc::clone(&begun);
            tokio::spawn(async move {
                let work = async {
                    share.ready().await?;
                    let at_once = begun.fetch_add(1, Ordering::SeqCst) + 1;
                    let since = Instant::now();
                    while since.elapsed() < Duration::from_millis(6) {
                        step();
                    }
                    begun.fetch_sub(1, Ordering::SeqCst);
                    Ok::<usize, Ended>(at_once)
                };
                metered(&share, work).await.ok()
            })
        };
        let working: Vec<_> = (0..200).map(work).collect();
        for work in working {
            let at_once = work.await.expect("it does not panic").expect("no change is ended").expect("few wait");
            assert!(at_once <= 8, "{at_once} had begun");
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_body_has_a_budget_and_waits_for_nobody() {
        let processor = Processor::of(1, THREADS_BESIDE);
        let user = Arc::from("jane");
        let mut waiting = Vec::new();
        while let Ok(turn) = processor.turns.take(&user, WaiterKind::ToGoOn) {
            waiting.push(turn);
        }
        let of = share(&processor);
        of.set_deadline(Instant::now());
        let body = processor.share_of_body(&of);
        let mut meter = meter(&body);
        let mut spin = |pause| {
            let begun = Instant::now();
            meter.run(|| {
                while begun.elapsed() < pause {
                    step();
                }
            })
        };
        assert!(spin(Duration::from_millis(10)).is_ok(), "the time for its request does not count, nor do others");
        drop(meter);
        let body = Arc::into_inner(body).expect("nothing else has it");
        let short = Arc::new(Share { budget: Duration::from_millis(1), ..body });
        let ended = super::meter(&short).run(|| (0..u64::MAX).for_each(|_| step()));
        assert!(matches!(ended, Err(Broken::Ended(Ended::Budget))));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn long_work_needs_one_turn_and_gives_it_back() {
        let processor = Processor::of(1, THREADS_BESIDE);
        let work = |expected| {
            let share = processor.share("jane", expected == ExpectedWork::Long, expected);
            tokio::spawn(async move {
                let work = async {
                    share.ready().await?;
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_millis(10) {
                        step();
                    }
                    Ok(())
                };
                metered(&share, work).await.ok()
            })
        };
        let working: Vec<_> =
            [ExpectedWork::Long, ExpectedWork::Short].into_iter().cycle().take(10).map(work).collect();
        for work in working {
            assert_eq!(work.await.expect("it does not panic"), Some(Ok::<(), Ended>(())));
        }
        assert!(!processor.turns.are_wanted(&Arc::from("jane")));
    }
}
