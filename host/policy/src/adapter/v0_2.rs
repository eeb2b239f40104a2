//! A draft of version 0.2 of the contract, which only tests use: the types that the engine generates, and their
//! conversions. The draft shares all records with 0.1 except `note` and `plan`, so this module converts only notes and
//! plans.

use super::v0_1::{convert, policy::kaos::policy::types as v0_1};
use crate::contract;

/// The version of the draft.
pub(crate) const VERSION: &str = "0.2.0-draft.1";

/// The types and calls that the engine generates from the draft's world `policy`.
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
pub(crate) mod policy {
    wasmtime::component::bindgen!({
        path: ["../../wit", "tests/guests/grown/wit"],
        world: "kaos:policy/policy@0.2.0-draft.1",
        with: { "kaos:policy/types@0.1.0": crate::adapter::v0_1::policy::kaos::policy::types },
    });
}

/// The calls that the engine generates from the draft's world `validator`. This world has only the optional interface
/// `validation`.
#[allow(missing_docs, unreachable_pub, clippy::pedantic)]
pub(crate) mod validator {
    wasmtime::component::bindgen!({
        path: ["../../wit", "tests/guests/grown/wit"],
        world: "kaos:policy/validator@0.2.0-draft.1",
        with: { "kaos:policy/types@0.1.0": crate::adapter::v0_1::policy::kaos::policy::types },
    });
}

use policy::kaos::policy0_2_0_draft_1::types as v0_2;

/// Converts a plan. A note's link becomes a part of the note's message, because the host's notes have no field for a
/// link.
pub(crate) fn plan(it: v0_2::Plan) -> contract::Plan {
    let v0_2::Plan { manifests, origins, gates, env, notes, finalizer, kept, gates_hold, extra } = it;
    let note = |v0_2::Note { severity, reason, message, path, link }| v0_1::Note {
        severity,
        reason,
        message: link.map_or_else(|| message.clone(), |link| format!("{message} ({link})")),
        path,
    };
    let notes = notes.into_iter().map(note).collect();
    convert::plan(v0_1::Plan { manifests, origins, gates, env, notes, finalizer, kept, gates_hold, extra })
}
