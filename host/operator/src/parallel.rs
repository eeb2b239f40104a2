//! Runs work on all processors, with one thread for each.

use std::{panic::resume_unwind, thread};

/// Runs `work` in one thread for each processor, but in at most `items` threads. `work` gets the index of its thread
/// and the number of threads. Returns the results in the order of the threads.
pub(crate) fn on_all_processors<R: Send>(items: usize, work: impl Fn(usize, usize) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items).max(1);
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number, threads))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Maps items on all processors. Keeps the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let parts = on_all_processors(items.len(), |number, threads| {
        let size = items.len().div_ceil(threads).max(1);
        items.chunks(size).nth(number).unwrap_or_default().iter().map(&map).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_have_the_order_of_the_items() {
        for many in [0, 1, 2, 3, 100, 1001] {
            let items: Vec<usize> = (0..many).collect();
            assert_eq!(in_parallel(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        }
    }
}
