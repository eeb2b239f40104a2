//! The contract's fields with special rules in the conversions. The entries use the names of the Rust types in
//! `bindings`. A test of the operator (`tests/script.rs`) compares this table with the WIT.

/// The fields and cases of the type `json`. The contract has their content as JSON text, and the script as a value.
pub(crate) const JSON: [&str; 16] = [
    "Answer.Objects",
    "Child.live",
    "Claim.extra",
    "Descriptor.extra",
    "Descriptor.settings_schema",
    "EnvSource.Other",
    "Observation.extra",
    "Plan.extra",
    "Plan.manifests",
    "Report.extra",
    "Report.fields",
    "Sample.beside",
    "Sample.object",
    "Subject.extra",
    "Subject.object",
    "Subject.settings",
];

/// The JSON fields that a script may omit. An omitted field has the value `{}`.
pub(crate) const EMPTY: [&str; 6] =
    ["Claim.extra", "Descriptor.extra", "Descriptor.settings_schema", "Plan.extra", "Report.extra", "Report.fields"];

/// The lists and Booleans that a script must write: a plan without manifests, for example, would delete all children. A
/// script may omit all other lists (`[]`), Booleans (`false`) and options.
pub(crate) const REQUIRED: [&str; 4] = ["Claim.emits", "Descriptor.claims", "Plan.manifests", "Report.ready"];

/// The enums, whose values are texts in the script. In the script, the cases of all other variants are objects with a
/// `tag`.
pub(crate) const ENUMS: [&str; 2] = ["Severity", "Truth"];
