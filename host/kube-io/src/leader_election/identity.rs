//! The identity of a process among the replicas.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Returns a name that no other process ever has: the name of the pod or machine, and a random part. The name of a pod
/// is not enough, because for a while two machines can run a pod with the same name.
pub fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.or_else(|| Some(std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned()));
    // This random value differs between two processes that start at the same time.
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
