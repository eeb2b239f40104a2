//! Limits the size of the default policies. A larger component takes longer to compile. A compressed component must fit
//! into a ConfigMap, which can contain at most one mebibyte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kaos_operator::embedded::DEFAULTS;
use kaos_tests::shipped::gzipped;

/// The maximum size of a component, in bytes.
const RAW: usize = 375_000;
/// The maximum size of a component after `gzip -6`, in bytes.
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
