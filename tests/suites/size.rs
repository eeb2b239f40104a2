//! Limits the size of the default policies. The time to compile a component grows with its size, and one ConfigMap
//! holds at most one mebibyte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kaos_operator::embedded::DEFAULTS;
use kaos_tests::shipped::gzipped;

/// The upper bound of a component, in bytes.
const RAW: usize = 375_000;
/// The upper bound of a component compressed with `gzip -6`, in bytes.
const COMPRESSED: usize = 150_000;

#[test]
fn components_stay_small() {
    assert!(!DEFAULTS.is_empty());
    for policy in DEFAULTS {
        let (raw, compressed) = (policy.component.len(), gzipped(policy.component, 6).unwrap().len());
        let name = policy.manifest.lines().find(|line| line.starts_with("name:")).unwrap_or_default();
        assert!(raw <= RAW && compressed <= COMPRESSED, "{name}: {raw} bytes, {compressed} compressed");
    }
}
