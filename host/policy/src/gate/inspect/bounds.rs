//! How much of everything a component may have.

use serde::{Deserialize, Serialize};

/// Bounds of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Bytes, packed and unpacked.
    pub bytes: usize,
    /// Bytes of one function; compiling takes longer than the size grows.
    pub function_bytes: u64,
    /// Functions in all modules.
    pub functions: u64,
    /// Modules and components within.
    pub parts: u64,
    /// Types in all modules and components.
    pub types: u64,
    /// Data and element segments.
    pub segments: u64,
    /// Bytes of a name in a component's types, imports and exports: validating compares each again and again.
    pub name_bytes: usize,
    /// Fields, cases, parameters and declarations of the types of components.
    pub members: u64,
    /// Instances of modules and components: each compares what it is given with what it wants.
    pub instances: u64,
    /// What all instances together are given.
    pub arguments: u64,
    /// Components or types of components in one another.
    pub levels: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            function_bytes: 128 << 10,
            functions: 50_000,
            parts: 64,
            types: 50_000,
            segments: 20_000,
            name_bytes: 256,
            members: 20_000,
            instances: 500,
            arguments: 10_000,
            levels: 8,
        }
    }
}
