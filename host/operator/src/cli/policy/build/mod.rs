//! `policy build`: converts a core module to a component that imports nothing. The input can also be a component that
//! imports WASI.

mod preview2;
mod same_contract;
mod unwrapped;
mod wasi;
pub(super) mod wit;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use wit_component::ComponentEncoder;

use super::{output::complain, wasm};
use crate::{
    reading::{self, MODULE},
    sections::slim,
};
use kaos_policy::printable::printable;

/// Arguments of `policy build`.
#[derive(Debug, Args)]
pub(super) struct Build {
    /// The core module that a compiler creates: cargo for wasm32-unknown-unknown, or Go for wasip1 with
    /// -buildmode=c-shared. Or a component that imports WASI, for example of cargo for wasm32-wasip2
    file: PathBuf,
    /// File to write the component to
    #[arg(short, long, value_name = "X.wasm")]
    output: PathBuf,
    /// Accept calls of WASI that open files or sockets. In a core module, such a call then fails. In a component, it
    /// ends the policy. Without this flag, the command refuses code with such calls
    #[arg(long)]
    stub_wasi: bool,
}

impl Build {
    /// Writes the component. Only `policy check` checks the component.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { file, output, stub_wasi } = self;
        let module = reading::bytes(&file, MODULE)?;
        let component = component(&module, stub_wasi).with_context(|| file.display().to_string())?;
        std::fs::write(&output, &component).with_context(|| output.display().to_string())?;
        complain("built", format_args!("{}, {} bytes", output.display(), component.len()));
        Ok(ExitCode::SUCCESS)
    }
}

fn component(bytes: &[u8], stub_wasi: bool) -> anyhow::Result<Vec<u8>> {
    let module = if wasm::is_component(bytes) { unwrapped::core_module(bytes)? } else { bytes };
    if !wasm::is_core(module) {
        bail!("not WebAssembly: build it with --target wasm32-unknown-unknown, or with GOOS=wasip1 GOARCH=wasm");
    }
    let imports = wasm::foreign_imports(module);
    let is_answered = |module: &str| module == wasi::MODULE || preview2::is_interface(module);
    if let Some([module, name]) = imports.iter().find(|[module, _]| !is_answered(module)) {
        let import = format!("{module}.{name}");
        // Modules that are linked at run time import their common memory and addresses from modules with these names.
        let is_linked = module == "env" || module.starts_with("GOT.");
        if wasm::is_component(bytes) && is_linked {
            bail!(
                "is a component of several linked modules ({}), so this command cannot convert it: let the tool that \
                 built it leave out WASI, as componentize-py does with --stub-wasi, and pass the result to policy check",
                printable(&import)
            );
        }
        bail!(
            "imports {}, but a policy must import nothing: remove the code that declares the import, and build the \
             policy with --target wasm32-unknown-unknown",
            printable(&import)
        );
    }
    let preview1 = imports.iter().filter(|[module, _]| module == wasi::MODULE);
    let names: Vec<&str> = preview1.map(|[_, name]| name.as_str()).collect();
    if let Some(refusal) = wasi::refusal(&names, stub_wasi) {
        bail!("{refusal}");
    }
    let preview2 = preview2::adapters(module, stub_wasi)?;
    let mut module = slim(module);
    // If the source contains bindings for components, the compiler writes the types of the exports into sections whose
    // names begin with `component-type`. The compiler of Go writes no such section, and the core modules of a component
    // have no such section either.
    if !wasm::has_custom_section(&module, "component-type") {
        wit::embed(&mut module)?;
    }
    let mut encoder = ComponentEncoder::default().validate(true).module(&module)?;
    if !names.is_empty() {
        encoder = encoder.adapter(wasi::MODULE, wasi::ADAPTER)?;
    }
    for (interface, adapter) in &preview2 {
        encoder = encoder.adapter(interface, adapter)?;
    }
    let component = slim(&encoder.encode()?);
    if wasm::is_component(bytes) {
        same_contract::check(bytes, &component)?;
    }
    Ok(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_component_of_linked_modules_is_called_so() {
        let importing = |from: &str| {
            let module = format!(
                r#"(core module (import "{from}" "x" (func)) (func (export "kaos:policy/meta@0.1.0#describe")))"#
            );
            component(&wat::parse_str(format!("(component {module})")).unwrap(), false).unwrap_err().to_string()
        };
        for linked in ["env", "GOT.mem", "GOT.func"] {
            let told = importing(linked);
            assert!(told.contains(&format!("several linked modules ({linked}.x)")), "{told}");
        }
        let told = importing("host:clock/time@1.0.0");
        assert!(told.contains("imports host:clock/time@1.0.0.x, but a policy must import nothing"), "{told}");
    }
}
