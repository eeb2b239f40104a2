//! Takes the policy's core module out of a component. Other tools make components that import WASI. From the core
//! module of such a component, `policy build` makes a component that imports nothing.

use anyhow::bail;
use kaos_policy::printable::printable;
use wasmparser::{CanonicalFunction, CanonicalOption, Parser, Payload};

use crate::cli::policy::wasm;

/// The beginning of the names of exports that implement the contract.
const CONTRACT: &str = "kaos:policy/";

/// The export with the table of functions that need the policy's memory.
const TABLE: &str = "$imports";

/// Returns the core module that implements the contract.
pub(super) fn core_module(component: &[u8]) -> anyhow::Result<&[u8]> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { unchecked_range, .. } => {
                let module = component.get(unchecked_range).unwrap_or_default();
                if wasm::exports(module).iter().any(|name| name.starts_with(CONTRACT)) {
                    found.push(module);
                } else {
                    check_connection(module)?;
                }
            }
            Payload::ComponentCanonicalSection(section) => {
                for function in section {
                    check_texts(&function?)?;
                }
            }
            _ => {}
        }
    }
    match found[..] {
        [module] => Ok(module),
        [] => bail!(
            "is a component in which no core module exports the contract: build it for the world `policy` or `overlay` of \
             wit/policy.wit"
        ),
        _ => bail!(
            "is made of several components, so this command cannot take the policy out of it: pass it the component of \
             the policy alone"
        ),
    }
}

/// Accepts a module only if it merely connects the policy's module with the component's imports. The conversion drops
/// all such modules, so they must not contain a part of the policy.
///
/// Every component has two modules for imported functions that need the policy's memory: one has a table of these
/// functions, and the other fills this table. A component can also have adapters, which convert calls of WASI
/// preview 1. An adapter uses the policy's memory, and contains no data of its own.
fn check_connection(module: &[u8]) -> anyhow::Result<()> {
    let mut imports = Vec::new();
    let (mut exports, mut has_memory) = (Vec::new(), false);
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    imports.push((import.module, import.name));
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    exports.push(export?.name);
                }
            }
            Payload::MemorySection(_) | Payload::DataSection(_) => has_memory = true,
            _ => {}
        }
    }
    let is_table = imports.is_empty() && exports.iter().all(|name| *name == TABLE || name.parse::<u32>().is_ok());
    let fills_table = exports.is_empty() && imports.iter().all(|(module, _)| module.is_empty());
    let is_adapter = imports.contains(&("env", "memory"));
    if !has_memory && (is_table || fills_table || is_adapter) {
        return Ok(());
    }
    let shown = exports.first().map(|name| format!(", which exports {}", printable(name))).unwrap_or_default();
    bail!(
        "contains a second program{shown}, and a policy would lose this program: pass the component as the compiler \
         made it, before another tool composed it or embedded files"
    )
}

/// Refuses an export whose texts are not in UTF-8, because the conversion expects UTF-8.
fn check_texts(function: &CanonicalFunction) -> anyhow::Result<()> {
    let CanonicalFunction::Lift { options, .. } = function else { return Ok(()) };
    if options.iter().any(|option| matches!(option, CanonicalOption::UTF16 | CanonicalOption::CompactUTF16)) {
        bail!("has texts in UTF-16: build it with the string encoding UTF-8");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(source: &str) -> String {
        core_module(&wat::parse_str(source).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn the_module_with_the_contract_is_found_among_others() {
        let export = "(func (export \"kaos:policy/meta@0.1.0#describe\"))";
        let table = r#"(core module (func (export "0")) (table (export "$imports") 1 1 funcref))"#;
        let fills = r#"(core module (import "" "0" (func)) (import "" "$imports" (table 1 1 funcref)))"#;
        let adapter = r#"(core module (import "env" "memory" (memory 0)) (func (export "fd_write")))"#;
        let source = format!("(component {table} {fills} {adapter} (core module {export}))");
        let component = wat::parse_str(source).unwrap();
        assert_eq!(wasm::exports(core_module(&component).unwrap()), ["kaos:policy/meta@0.1.0#describe"]);
        let both = refusal(&format!("(component (core module {export}) (core module {export}))"));
        assert!(both.contains("several components"), "{both}");
        let none = refusal("(component (core module))");
        assert!(none.contains("no core module exports the contract"), "{none}");
    }
    #[test]
    fn a_second_program_is_refused_with_the_name_of_an_export() {
        let policy = r#"(core module (func (export "kaos:policy/meta@0.1.0#describe")))"#;
        for other in [
            r#"(core module (memory 1) (data (i32.const 0) "a file") (func (export "open")))"#,
            r#"(core module (import "env" "memory" (memory 1)) (data (i32.const 0) "x") (func (export "open")))"#,
            r#"(core module (func (export "open")))"#,
        ] {
            let told = refusal(&format!("(component {other} {policy})"));
            assert!(told.contains("a second program, which exports open"), "{told}");
        }
        let told = refusal(&format!("(component (component (core module (memory 1))) {policy})"));
        assert!(told.contains("a second program, and a policy"), "{told}");
    }
}
