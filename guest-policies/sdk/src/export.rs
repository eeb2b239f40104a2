//! Turns the Rust type of a policy into the exports of a component.

use crate::types::{Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Subject};
use alloc::vec::Vec;

/// The version of `wit/policy.wit` that this SDK implements. The custom section `kaos:policy` of every component
/// contains this version, so that a host can check the version before compilation.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// A policy: five pure functions. Three functions have a default:
///
/// - `needs`, for a policy that reads no other objects
/// - `map_env`, for a kind without pods
/// - `assess`, for a status that only says whether the pods serve
///
/// All functions of a pass get the same subject. So if one function reads a value with [`Subject::once`], the other
/// functions get the value without reading it again.
pub trait Policy {
    /// Returns the name and version of the policy, the kinds that the policy claims, and the schema of its settings.
    fn describe() -> Descriptor;
    /// Returns the needs: the objects that the policy must see. The host finds these objects and calls the function
    /// again, until the policy returns no new needs. The default has no needs.
    fn needs(subject: &Subject) -> Vec<Need> {
        let _ = subject;
        Vec::new()
    }
    /// Returns the mapping of environment variables. `base` is the mapping of the layer below, or an empty mapping for
    /// the lowest layer. The default returns `base`.
    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let _ = subject;
        Ok(base)
    }
    /// Returns the plan with the manifests. `env` is the final mapping.
    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal>;
    /// Returns the status to show to the user, based on the live children. By default, the object is ready as soon as
    /// all children exist, and each Deployment and StatefulSet has an available pod of its current generation or wants
    /// no pods. The object stays ready while plan gates hold back a change of these children.
    fn assess(subject: &Subject, seen: &Observation) -> Report {
        let _ = subject;
        crate::seen::assess(seen)
    }
}

/// An overlay. An overlay changes the answer of the policy below: its mapping of environment variables, its plan, or
/// both. The defaults change nothing.
pub trait Overlay {
    /// See [`Policy::describe`]. In each claim, `emits` lists the types of the children that the overlay changes or
    /// adds.
    fn describe() -> Descriptor;
    /// See [`Policy::needs`].
    fn needs(subject: &Subject) -> Vec<Need> {
        let _ = subject;
        Vec::new()
    }
    /// Returns the mapping of environment variables. `base` is the mapping of the layer below.
    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let _ = subject;
        Ok(base)
    }
    /// Returns the amended plan. `below` is the plan of the layer below. The module [`amend`](crate::amend) has
    /// functions that change a plan. An overlay can change and add children and variables, and can add notes. An
    /// overlay must not drop children or notes, change selectors, or change any other field of the plan.
    fn amend(subject: &Subject, below: Plan) -> Result<Plan, Refusal> {
        let _ = subject;
        Ok(below)
    }
}

/// Turns a type that implements [`Policy`] into a component. Outside of Wasm, the macro exports nothing and only checks
/// that the type implements the trait. So plain `cargo test` can run the policy natively.
///
/// The host reports the message and the source location of a panic. Use `export_policy!(MyPolicy, no_std)` for a policy
/// without the standard library (`#![no_std]`): this form adds the panic handler that such a policy lacks.
#[macro_export]
macro_rules! export_policy {
    ($policy:ty $(, $no_std:ident)?) => {
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> $crate::types::Descriptor = <$policy as $crate::Policy>::describe;
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::policy::exports::kaos::policy as exports;
            use $crate::types::{EnvVar, Observation, Plan, Refusal, Report};
            struct Component;
            $crate::__panics!($($no_std)?);
            $crate::__shared_exports!(Component, $policy, $crate::Policy, translation, {
                fn translate(&self, env: $crate::__Vec<EnvVar>) -> Result<Plan, Refusal> {
                    <$policy as $crate::Policy>::translate(&self.0.subject(), env)
                }
                fn assess(&self, seen: Observation) -> Report {
                    <$policy as $crate::Policy>::assess(&self.0.subject(), &seen)
                }
            });
    $crate::bindings::policy::export_policy_world!(Component with_types_in $crate::bindings::policy);
        };
    };
}

/// Turns a type that implements [`Overlay`] into a component. See [`export_policy!`].
#[macro_export]
macro_rules! export_overlay {
    ($overlay:ty $(, $no_std:ident)?) => {
        #[cfg(not(target_arch = "wasm32"))]
        const _: fn() -> $crate::types::Descriptor = <$overlay as $crate::Overlay>::describe;
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::bindings::overlay::exports::kaos::policy as exports;
            use $crate::types::{EnvVar, Plan, Refusal};
            struct Component;
            $crate::__panics!($($no_std)?);
            $crate::__shared_exports!(Component, $overlay, $crate::Overlay, amendment, {
                fn amend(&self, below: Plan) -> Result<Plan, Refusal> {
                    <$overlay as $crate::Overlay>::amend(&self.0.subject(), below)
                }
            });
    $crate::bindings::overlay::export_overlay_world!(Component with_types_in $crate::bindings::overlay);
        };
    };
}

/// Defines `tell_panics`, which sets a panic hook. Without the standard library, defines a panic handler instead, and
/// `tell_panics` does nothing. `describe` and each new pass call `tell_panics` first.
#[doc(hidden)]
#[macro_export]
macro_rules! __panics {
    () => {
        fn tell_panics() {
            static ONCE: ::std::sync::Once = ::std::sync::Once::new();
            ONCE.call_once(|| ::std::panic::set_hook(::std::boxed::Box::new(|panic| $crate::__tell_panic(panic))));
        }
    };
    (no_std) => {
        const fn tell_panics() {}
        #[cfg(target_os = "unknown")]
        #[panic_handler]
        fn panicked(panic: &::core::panic::PanicInfo<'_>) -> ! {
            $crate::__tell_panic(panic);
            ::core::arch::wasm32::unreachable()
        }
    };
}

/// Defines the exports that both worlds share, and the custom section with the contract's version. `more` contains the
/// methods of a pass that only one of the worlds has.
#[doc(hidden)]
#[macro_export]
macro_rules! __shared_exports {
    ($component:ty, $author:ty, $role:path, $interface:ident, { $($more:tt)* }) => {
        struct Pass($crate::__Pass);
        impl exports::meta::Guest for $component {
            fn describe() -> $crate::types::Descriptor {
                tell_panics();
                <$author as $role>::describe()
            }
        }
        impl exports::$interface::Guest for $component {
            type Pass = Pass;
        }
        impl exports::$interface::GuestPass for Pass {
            fn new(subject: $crate::contract::Subject) -> Self {
                tell_panics();
                Self($crate::__Pass::new(subject))
            }
            fn needs(&self, found: $crate::__Vec<$crate::types::Found>) -> $crate::__Vec<$crate::types::Need> {
                self.0.add(found);
                <$author as $role>::needs(&self.0.subject())
            }
            fn map_env(&self, base: $crate::__Vec<EnvVar>) -> Result<$crate::__Vec<EnvVar>, Refusal> {
                <$author as $role>::map_env(&self.0.subject(), base)
            }
            $($more)*
        }
        #[used]
        #[unsafe(link_section = "kaos:policy")]
        static CONTRACT: [u8; $crate::CONTRACT_VERSION.len()] = $crate::__contract_bytes();
    };
}

#[doc(hidden)]
pub const fn __contract_bytes() -> [u8; CONTRACT_VERSION.len()] {
    let mut bytes = [0; CONTRACT_VERSION.len()];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = CONTRACT_VERSION.as_bytes()[i];
        i += 1;
    }
    bytes
}
