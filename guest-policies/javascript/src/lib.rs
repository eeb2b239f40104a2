//! The script engine: a component that runs a policy written in JavaScript.
//!
//! The host loads the script first. Then it calls the functions of the contract, and each of them calls the script's
//! function of the same name:
//!
//! | module | does |
//! |---|---|
//! | `bindings` | the contract as Rust types |
//! | `engine` | starts QuickJS, loads the script, and calls its functions |
//! | `prelude.js` | removes what is not pure, and defines the global `kaos` and the default functions |
//! | `helpers` | the native part of `kaos` |
//! | `to_script`, `from_script` | convert the contract's records to values of the script and back |
//! | `plain` | reads a value of the script as JSON |
//! | `fields` | the table of fields that the conversions treat differently |
//! | `error_text` | turns an exception into a message with its place and remedy |
//! | `failure` | ends the sandbox with the place and the remedy of an error |
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
mod to_script;
