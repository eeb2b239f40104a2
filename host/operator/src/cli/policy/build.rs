//! `policy build`: converts a core module to a component.

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
    /// The core module that `cargo build --release --target wasm32-unknown-unknown` creates
    file: PathBuf,
    /// File to write the component to
    #[arg(short, long, value_name = "X.wasm")]
    output: PathBuf,
}

impl Build {
    /// Writes the component. Only `policy check` checks the component.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { file, output } = self;
        let module = reading::bytes(&file, MODULE)?;
        if wasm::is_component(&module) {
            bail!("{}: is already a component", file.display());
        }
        if !wasm::is_core(&module) {
            bail!("{}: not a core module: build it with --target wasm32-unknown-unknown", file.display());
        }
        // wit-bindgen writes the types of the exports into sections whose names begin with `component-type`. A module
        // without such a section cannot become a component.
        if !wasm::has_custom_section(&module, "component-type") {
            bail!(
                "{}: exports no contract: name your type in kaos_policy_sdk::export_policy! or export_overlay!",
                file.display()
            );
        }
        if let Some([module, name]) = wasm::first_import(&module) {
            let import = format!("{module}.{name}");
            let (file, import) = (file.display(), printable(&import));
            let remedy = "build it with --target wasm32-unknown-unknown";
            if module.starts_with("wasi") {
                bail!("{file}: was built for WASI and imports {import}, but a policy must import nothing: {remedy}");
            }
            bail!(
                "{file}: imports {import}, but a policy must import nothing: remove the code that declares the \
                 import, and {remedy}"
            );
        }
        let component = ComponentEncoder::default()
            .validate(true)
            .module(&slim(&module))
            .and_then(|mut encoder| encoder.encode())
            .map(|component| slim(&component))
            .map_err(|error| anyhow::anyhow!("{}: {error:#}", file.display()))?;
        std::fs::write(&output, &component).with_context(|| output.display().to_string())?;
        complain("built", format_args!("{}, {} bytes", output.display(), component.len()));
        Ok(ExitCode::SUCCESS)
    }
}
