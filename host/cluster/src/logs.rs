//! Logs of containers. The cluster runs no containers, so tests write the logs. If no test writes a log for a
//! container, the container has no log.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use crate::{lock::lock, signal};

/// The namespace, the pod and the container of a log.
pub(crate) type LogKey = [String; 3];

#[derive(Debug, Default)]
struct Log {
    lines: Vec<String>,
    ended: bool,
}

/// All logs.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    logs: Mutex<BTreeMap<LogKey, Log>>,
    changed: signal::Sender,
}

impl Logs {
    /// Adds a line to a log.
    pub(crate) fn write(&self, key: LogKey, line: &str) {
        lock(&self.logs).entry(key).or_default().lines.push(line.to_owned());
        self.changed.bump();
    }

    /// Ends a log, as if the container ended.
    pub(crate) fn end(&self, key: LogKey) {
        lock(&self.logs).entry(key).or_default().ended = true;
        self.changed.bump();
    }

    /// Returns whether a container has a log.
    pub(crate) fn has(&self, key: &LogKey) -> bool {
        lock(&self.logs).contains_key(key)
    }

    /// Opens a log. If `tail` is set, begins with the last `tail` lines of the log.
    pub(crate) fn open(self: &Arc<Self>, key: LogKey, tail: Option<usize>, follow: bool) -> Reader {
        let (changed, logs) = (self.changed.subscribe(), Arc::clone(self));
        let count = lock(&self.logs).get(&key).map_or(0, |log| log.lines.len());
        Reader {
            next: tail.map_or(0, |tail| count.saturating_sub(tail)),
            logs,
            key,
            follow,
            changed,
            ready: VecDeque::new(),
        }
    }
}

/// Reads a log.
pub(crate) struct Reader {
    logs: Arc<Logs>,
    key: LogKey,
    next: usize,
    follow: bool,
    changed: signal::Receiver,
    ready: VecDeque<String>,
}

impl Reader {
    /// Returns the next line; `None` at the end.
    ///
    /// A reader that follows the log waits for the next line until the log ends.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            let ended = self.read();
            if self.ready.is_empty() && (ended || !self.follow || self.changed.changed().await.is_err()) {
                return None;
            }
        }
    }

    /// Takes the unread lines. Returns whether the log has ended.
    fn read(&mut self) -> bool {
        let logs = lock(&self.logs.logs);
        let Some(log) = logs.get(&self.key) else { return true };
        self.ready.extend(log.lines.get(self.next..).unwrap_or_default().iter().cloned());
        self.next = self.next.max(log.lines.len());
        log.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_follower_gets_the_tail_and_every_new_line_until_the_log_ends() {
        let (logs, key) = (Arc::new(Logs::default()), ["t", "pod", "main"].map(str::to_owned));
        assert!(!logs.has(&key));
        for line in ["one", "two"] {
            logs.write(key.clone(), line);
        }
        let mut whole = logs.open(key.clone(), None, false);
        let mut tail = logs.open(key.clone(), Some(1), true);
        assert_eq!(
            (whole.line().await, whole.line().await, whole.line().await),
            (Some("one".into()), Some("two".into()), None)
        );
        assert_eq!(tail.line().await.as_deref(), Some("two"));
        let (next, ()) = tokio::join!(tail.line(), async { logs.write(key.clone(), "three") });
        assert_eq!(next.as_deref(), Some("three"));
        let (next, ()) = tokio::join!(tail.line(), async { logs.end(key.clone()) });
        assert_eq!(next, None);
    }
}
