//! The default policies that are embedded in the binary. `build.rs` fills the table.

use kaos_policy::{
    digest::Digest,
    engine::{BuiltIn, ScriptEngine},
};

/// An embedded policy. The type is not `Clone`, because a caller could change the component of a copy, and the compiled
/// code would belong to another component.
#[derive(Debug)]
pub struct EmbeddedPolicy {
    /// The component.
    pub component: &'static [u8],
    /// The `policy.yaml` of the policy, with its grants.
    pub manifest: &'static str,
    /// The SHA-256 of the component, in lower-case hex.
    pub digest: &'static str,
    /// The compiled code of the component. Another build of the same sources wrote this code with `compile-embedded`.
    /// `None` if this build does not contain the code.
    code: Option<&'static [u8]>,
}

/// The default policies, ordered by package name.
pub static DEFAULTS: &[EmbeddedPolicy] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Returns the compiled script engine for the gate; `None` if this build does not contain the compiled engine.
#[must_use]
pub fn script_engine() -> Option<BuiltIn> {
    let digest = ScriptEngine::shipped().ok()?.digest;
    // SAFETY: `build.rs` took the file with the name of this component from a directory that `compile-embedded` wrote.
    #[allow(unsafe_code)]
    SCRIPT_ENGINE.map(|code| unsafe { BuiltIn::new(digest, code) })
}

/// The compiled code of the script engine. Another build of the same sources wrote this code with `compile-embedded`.
static SCRIPT_ENGINE: Option<&[u8]> = include!(concat!(env!("OUT_DIR"), "/script_engine.rs"));

impl EmbeddedPolicy {
    /// Returns the compiled code of the policy for the gate; `None` if this build does not contain it.
    #[must_use]
    pub fn built_in(&self) -> Option<BuiltIn> {
        let component = self.digest.parse::<Digest>().ok()?;
        // SAFETY: `build.rs` took the file with the name of this component from a directory that `compile-embedded`
        // wrote. Only the table of `build.rs` can create an `EmbeddedPolicy`.
        #[allow(unsafe_code)]
        self.code.map(|code| unsafe { BuiltIn::new(component, code) })
    }
}
