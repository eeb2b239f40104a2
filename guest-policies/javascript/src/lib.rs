//! The script engine: a component that runs a policy written in JavaScript.
//!
//! The host first loads the script, and then calls the functions of the contract. Each of these functions calls the
//! script's function of the same name. The modules:
//!
//! | module | does |
//! |---|---|
//! | `bindings` | the contract as Rust types |
//! | `engine` | starts QuickJS, loads the script, and calls its functions |
//! | `prelude.js` | removes globals that are not pure, and defines the global `kaos` and the default functions |
//! | `helpers` | the native part of `kaos` for the mapping and for names |
//! | `sdk_types` | converts values between the types of the contract and of the SDK |
//! | `pods` | the native part of `kaos` for merging pod specs and for reading and quoting texts |
//! | `to_script`, `from_script` | convert the contract's records to values of the script and back |
//! | `plain` | reads a value of the script as JSON |
//! | `fields` | the fields with special rules in the conversions |
//! | `error_text` | turns an exception into a message with a line, a column and a remedy |
//! | `progress` | counts in memory how far the script has run |
//! | `failure` | ends the sandbox with a message |
//! | `export` | implements the exports |
//! | `no_imports` | replaces the clock that the C code would import |

mod bindings;
mod engine;
mod error_text;
mod export;
mod failure;
mod fields;
mod from_script;
mod helpers;
mod names;
mod no_imports;
mod plain;
mod pods;
mod progress;
mod sdk_types;
mod to_script;
