//! `policy test-runner`: runs a test executable that was built for wasm32-wasip1.
//!
//! Cargo starts this command for `cargo component test` (components) and for plain `cargo test --target wasm32-wasip1`
//! (core modules). The executable can use WASI, and gets its arguments and the environment variables. The executable
//! can read the files of its repository, so tests find their cases at the same paths as in a native run.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Args;
use wasmtime::{
    Config, Engine, OptLevel, RegallocAlgorithm, Store,
    component::{Component, Linker, ResourceTable},
};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, p1, p2};

use super::wasm;
use crate::reading::{self, MODULE};

/// Arguments of the runner.
#[derive(Debug, Args)]
pub(super) struct TestRunner {
    /// The executable: a component of world wasi:cli/command, or a core module
    file: PathBuf,
    /// Arguments for the executable
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl TestRunner {
    /// Runs the executable and returns its exit code.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let Self { file, arguments } = self;
        let bytes = reading::bytes(&file, MODULE)?;
        let mut context = WasiCtxBuilder::new();
        context.inherit_stdio().inherit_env().arg(file.to_string_lossy());
        for argument in &arguments {
            context.arg(argument.to_str().with_context(|| format!("argument {} is not UTF-8", argument.display()))?);
        }
        preopen(&mut context, &std::env::current_dir()?)?;
        let engine = engine()?;
        let outcome = if wasm::is_component(&bytes) {
            run_component(&engine, &bytes, &mut context)
        } else if wasm::is_core(&bytes) {
            run_module(&engine, &bytes, &mut context)
        } else {
            bail!("{}: not WebAssembly", file.display());
        };
        match outcome {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => match error.downcast_ref::<I32Exit>() {
                Some(exit) => Ok(exit_code(exit.0)),
                None => Err(anyhow::Error::from(error).context(file.display().to_string())),
            },
        }
    }
}

/// Creates an engine that compiles fast: most of a test executable's code never runs.
fn engine() -> anyhow::Result<Engine> {
    let mut config = Config::new();
    config.cranelift_opt_level(OptLevel::None).cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
    Ok(Engine::new(&config)?)
}

/// Gives read access to two directories. The package's directory becomes the working directory, as cargo expects. The
/// repository has the same path as on the machine, because tests use the path `env!("CARGO_MANIFEST_DIR")`.
fn preopen(context: &mut WasiCtxBuilder, package: &Path) -> anyhow::Result<()> {
    let repository = package.ancestors().find(|directory| directory.join(".git").exists()).unwrap_or(package);
    for (directory, name) in [(package, "."), (repository, &*repository.to_string_lossy())] {
        context
            .preopened_dir(directory, name, FsPerms::ReadOnly)
            .map_err(anyhow::Error::from)
            .with_context(|| directory.display().to_string())?;
    }
    Ok(())
}

fn exit_code(code: i32) -> ExitCode {
    // An exit code above 255 must not become 0, because 0 means success.
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}

struct State {
    context: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.context, table: &mut self.table }
    }
}

fn run_component(engine: &Engine, bytes: &[u8], context: &mut WasiCtxBuilder) -> wasmtime::Result<()> {
    let component = Component::from_binary(engine, bytes)?;
    let mut linker = Linker::new(engine);
    p2::add_to_linker_sync(&mut linker)?;
    let mut store = Store::new(engine, State { context: context.build(), table: ResourceTable::new() });
    let command = p2::bindings::sync::Command::instantiate(&mut store, &component, &linker)?;
    match command.wasi_cli_run().call_run(&mut store)? {
        Ok(()) => Ok(()),
        Err(()) => Err(I32Exit(1).into()),
    }
}

fn run_module(engine: &Engine, bytes: &[u8], context: &mut WasiCtxBuilder) -> wasmtime::Result<()> {
    let module = wasmtime::Module::from_binary(engine, bytes)?;
    let mut linker = wasmtime::Linker::new(engine);
    p1::add_to_linker_sync(&mut linker, |context: &mut p1::WasiP1Ctx| context)?;
    // The component of a policy provides the functions for the WIT resources of the policy. A test executable imports
    // these functions, but tests never call them, because tests call the policy in Rust.
    linker.define_unknown_imports_as_traps(&module)?;
    let mut store = Store::new(engine, context.build_p1());
    let instance = linker.instantiate(&mut store, &module)?;
    instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ())
}
