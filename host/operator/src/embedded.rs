//! The default policies that are part of the binary; `build.rs` fills the table.

use kaos_policy::{digest::Digest, engine::BuiltIn};

/// A policy as it was built in. It cannot be copied: whoever could exchange a field would give code to another component.
#[derive(Debug)]
pub struct EmbeddedPolicy {
    /// The component.
    pub component: &'static [u8],
    /// Its `policy.yaml`: what a policy ConfigMap would say of it, grants included.
    pub manifest: &'static str,
    /// SHA-256 of the component, in lower-case hex.
    pub digest: &'static str,
    /// What `compile-embedded` of another build of these sources made of it, where this build was given that.
    code: Option<&'static [u8]>,
}

/// The default policies, ordered by package name.
pub static DEFAULTS: &[EmbeddedPolicy] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

impl EmbeddedPolicy {
    /// Its compiled code, for a gate.
    #[must_use]
    pub fn built_in(&self) -> Option<BuiltIn> {
        let component = self.digest.parse::<Digest>().ok()?;
        // SAFETY: `build.rs` took the file that is named after this component from a folder that `compile-embedded` wrote,
        // and nothing but its table can make one of these.
        #[allow(unsafe_code)]
        self.code.map(|code| unsafe { BuiltIn::new(component, code) })
    }
}
