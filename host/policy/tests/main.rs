//! Tests loading, guarding and running policies, through the crate's public functions. All tests share one executable,
//! because linking takes longer than running most of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod built_in;
mod composed;
mod describe;
mod fields;
mod found;
mod guard;
mod guard_layers;
mod guard_origins;
mod guard_overlay_origins;
mod guard_overlays;
mod guard_power;
mod guard_references;
mod guard_settings;
mod hostile_answers;
mod hostile_bytes;
mod kubernetes;
#[path = "support/overlay.rs"]
mod overlay;
mod script;
mod settings;
mod support;
mod variables;
#[path = "support/widget.rs"]
mod widget;
