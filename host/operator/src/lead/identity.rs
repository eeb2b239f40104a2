//! Who a process is among the replicas.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// A name that no other process has or had: the pod's or the machine's, and something random. The name alone would not
/// do, since two machines can run a pod of one name for a while.
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.or_else(|| Some(std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned()));
    // Something that processes which start together do not share.
    let random = RandomState::new().build_hasher().finish();
    format!("{}_{}_{:08x}", host.as_deref().unwrap_or("operator"), std::process::id(), random >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_processes_are_the_same() {
        assert_ne!(identity(), identity());
    }
}
