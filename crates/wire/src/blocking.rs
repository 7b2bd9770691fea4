//! Runs work on a large text without blocking the runtime's threads, which serve all calls and signals.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Below this many bytes, switching threads costs more than the work.
const LARGE: usize = 64 * 1024;

/// Runs work on a text of this many bytes. For a large one the runtime moves its other tasks to another thread; a
/// single-threaded runtime cannot.
pub fn off_runtime<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let has_others =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if bytes >= LARGE && has_others() { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn large_work_leaves_the_only_worker_to_others() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let large = tokio::spawn(async move { off_runtime(LARGE, || receiver.recv().is_ok()) });
        tokio::spawn(async move { sender.send(()).is_ok() }).await.unwrap();
        assert!(large.await.unwrap());
    }

    #[tokio::test]
    async fn a_runtime_with_one_thread_does_it_there() {
        assert_eq!(off_runtime(LARGE, || 7), 7);
    }
}
