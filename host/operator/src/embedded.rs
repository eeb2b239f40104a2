//! The default policies that are part of the binary; `build.rs` fills the table.

/// A policy as it was built in.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedPolicy {
    /// The component.
    pub component: &'static [u8],
    /// Its `policy.yaml`: what a policy ConfigMap would say of it, grants included.
    pub manifest: &'static str,
    /// SHA-256 of the component, in lower-case hex.
    pub digest: &'static str,
}

/// The default policies, ordered by package name.
pub static DEFAULTS: &[EmbeddedPolicy] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
