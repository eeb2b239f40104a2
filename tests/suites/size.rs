//! How large the default policies are: every byte of a component is compiled by each operator that starts, and a
//! policy in a ConfigMap has a megabyte for everything.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kaos_operator::embedded::DEFAULTS;
use kaos_tests::shipped::gzipped;

/// The largest that a component may be, in bytes.
const RAW: usize = 375_000;
/// The largest that it may be as `gzip -6` makes it.
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
