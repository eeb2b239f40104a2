//! Version 0.1 of the contract: the types that the engine generates, and the conversions of these types.

/// The types and calls that the engine generates from the contract's world `policy`.
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
pub(crate) mod policy {
    wasmtime::component::bindgen!({ path: "../../wit", world: "policy" });
}

/// The calls that the engine generates from the contract's world `overlay`. They use the types of the module
/// [`policy`].
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
pub(crate) mod overlay {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "overlay",
        with: { "kaos:policy/types@0.1.0": crate::adapter::v0_1::policy::kaos::policy::types },
    });
}

/// The conversions between the generated types and the host's types.
#[allow(missing_docs, unreachable_pub, dead_code, clippy::pedantic)]
pub(crate) mod convert {
    crate::adapt_v0_1!(crate::adapter::v0_1::policy::kaos::policy::types);
}
