//! The bounds of a component.

use serde::{Deserialize, Serialize};

use crate::engine::{MEMORIES, TABLES};

/// The size classes of components. The operator's owner chooses the largest class that the gate accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeClass {
    /// Components from compilers.
    #[default]
    Standard,
    /// Components that contain an interpreter and its library.
    Large,
}

impl SizeClass {
    /// Returns the bounds of the components of this class.
    pub fn bounds(self) -> Bounds {
        match self {
            Self::Standard => Bounds::default(),
            Self::Large => Bounds { bytes: 24 << 20, function_bytes: 512 << 10, ..Bounds::default() },
        }
    }

    /// Returns the maximum number of bytes of compiled code. Compiled code is two to four times as large as its
    /// component.
    pub fn code(self) -> u64 {
        match self {
            Self::Standard => 32 << 20,
            Self::Large => 64 << 20,
        }
    }
}

/// The maximum sizes of the parts of a component, and the maximum numbers of these parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// The maximum number of bytes of the component. The bound applies to the packed bytes and to the unpacked bytes
    /// separately.
    pub bytes: usize,
    /// The maximum number of bytes of a script.
    pub script_bytes: usize,
    /// The maximum number of bytes of one function. A function of twice the size takes more than twice the time to
    /// compile.
    pub function_bytes: u64,
    /// The maximum number of functions in all modules together.
    pub functions: u64,
    /// The maximum number of modules and components inside the component.
    pub parts: u64,
    /// The maximum number of types in all modules and components together.
    pub types: u64,
    /// The maximum number of data segments and element segments.
    pub segments: u64,
    /// The maximum number of linear memories in all modules together.
    pub memories: u64,
    /// The maximum number of function tables in all modules together.
    pub tables: u64,
    /// The maximum number of bytes of each name in a component's types, imports and exports. Validation compares each
    /// name many times.
    pub name_bytes: usize,
    /// The maximum number of fields, cases, parameters and declarations in all types of components together.
    pub members: u64,
    /// The maximum number of instances of modules and components. Validation compares the arguments of each instance
    /// with its imports.
    pub instances: u64,
    /// The maximum number of arguments of all instances together.
    pub arguments: u64,
    /// The maximum number of nesting levels of components or component types.
    pub levels: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: 8 << 20,
            script_bytes: 256 << 10,
            function_bytes: 128 << 10,
            functions: 50_000,
            parts: 64,
            types: 50_000,
            segments: 65_536,
            memories: MEMORIES.into(),
            tables: TABLES.into(),
            name_bytes: 256,
            members: 20_000,
            instances: 500,
            arguments: 10_000,
            levels: 8,
        }
    }
}
