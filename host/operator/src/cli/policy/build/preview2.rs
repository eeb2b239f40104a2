//! Decides which calls of WASI 0.2 a policy may contain, and builds the modules that answer them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use kaos_policy::printable::printable;
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, Instruction, Module, TypeSection, ValType,
};
use wasmparser::{FuncType, Parser, Payload, TypeRef};

/// The module that answers the calls of every interface in [`ANSWERED`], except the wall clock.
///
/// `preview2.wat` is the source.
const CALLS: &[u8] = include_bytes!("preview2.wasm");
/// The module that answers the calls of the wall clock. `wall_clock.wat` is the source.
const WALL_CLOCK: &[u8] = include_bytes!("wall_clock.wasm");

/// The interfaces that every program uses, because its runtime needs them to start and to end.
const ANSWERED: [&str; 19] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

/// The interface for files, and the suffix of the methods that open or change files by path. The other methods need an
/// open file, and a policy never has one.
const FILES: (&str, &str) = ("wasi:filesystem/types", "-at");

/// The maximum number of calls that a message lists.
const SHOWN: usize = 3;

/// A function that a module imports.
struct Call<'a> {
    module: &'a str,
    name: &'a str,
    signature: FuncType,
}

impl Call<'_> {
    /// Returns the interface without its version.
    fn interface(&self) -> &str {
        self.module.split_once('@').map_or(self.module, |(interface, _)| interface)
    }

    fn text(&self) -> String {
        printable(&format!("{}.{}", self.module, self.name)).to_string()
    }
}

/// Returns whether the name of an imported module is the name of an interface of WASI 0.2.
pub(super) fn is_interface(module: &str) -> bool {
    module.starts_with("wasi:") && module.contains("@0.2.")
}

/// Returns a module for each interface of WASI 0.2 that `module` imports. The module answers the calls of the
/// interface.
pub(super) fn adapters(module: &[u8], stub: bool) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let calls = calls(module)?;
    let mut outside = BTreeMap::<&str, BTreeSet<String>>::new();
    for call in &calls {
        let (reason, is_outside) = match call.interface() {
            interface if ANSWERED.contains(&interface) => continue,
            interface if interface == FILES.0 => {
                ("a policy has no files: put the file into the policy when you build it", call.name.ends_with(FILES.1))
            }
            interface if ["wasi:sockets/", "wasi:http/"].iter().any(|prefix| interface.starts_with(prefix)) => {
                ("a policy has no network: name the objects that it reads in its needs", true)
            }
            _ => bail!(
                "imports {}, but a policy must import nothing: remove the code that needs this interface",
                call.text()
            ),
        };
        if is_outside && !stub {
            outside.entry(reason).or_default().insert(call.text());
        }
    }
    if let Some((reason, calls)) = outside.first_key_value() {
        let more = calls.len().saturating_sub(SHOWN);
        let more = if more == 0 { String::new() } else { format!(" and {more} more calls") };
        bail!(
            "imports {}{more}, but {reason}. If only a library contains these calls and the policy never makes them, pass \
             --stub-wasi: then they end the policy",
            calls.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")
        );
    }
    let known = [exports(CALLS), exports(WALL_CLOCK)];
    let mut adapters = BTreeMap::new();
    for module in calls.iter().map(|call| call.module).collect::<BTreeSet<_>>() {
        let own: Vec<&Call<'_>> = calls.iter().filter(|call| call.module == module).collect();
        let Some(first) = own.first() else { continue };
        let (bytes, names) = match first.interface() {
            "wasi:clocks/wall-clock" => (WALL_CLOCK.to_vec(), &known[1]),
            interface if ANSWERED.contains(&interface) => (CALLS.to_vec(), &known[0]),
            _ => {
                adapters.insert(module.to_owned(), traps(&own));
                continue;
            }
        };
        if let Some(unknown) = own.iter().find(|call| !names.contains(call.name)) {
            bail!("imports {}, which is not a call of WASI 0.2 that a policy can have", unknown.text());
        }
        adapters.insert(module.to_owned(), bytes);
    }
    Ok(adapters)
}

fn exports(module: &[u8]) -> BTreeSet<String> {
    crate::cli::policy::wasm::exports(module).into_iter().collect()
}

/// Returns the calls of WASI 0.2 that a module imports.
fn calls(module: &[u8]) -> anyhow::Result<Vec<Call<'_>>> {
    let (mut types, mut calls) = (Vec::new(), Vec::new());
    for payload in Parser::new(0).parse_all(module) {
        match payload? {
            Payload::TypeSection(section) => types = section.into_iter_err_on_gc_types().collect::<Result<_, _>>()?,
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    let (TypeRef::Func(index), true) = (import.ty, is_interface(import.module)) else { continue };
                    let signature = usize::try_from(index).ok().and_then(|index| types.get(index)).cloned();
                    let signature = signature.context("an import has no type")?;
                    calls.push(Call { module: import.module, name: import.name, signature });
                }
                break;
            }
            _ => {}
        }
    }
    Ok(calls)
}

/// Builds a module in which each of these calls ends the policy.
fn traps(calls: &[&Call<'_>]) -> Vec<u8> {
    let (mut types, mut functions) = (TypeSection::new(), FunctionSection::new());
    let (mut exports, mut code) = (ExportSection::new(), CodeSection::new());
    let values = |of: &[wasmparser::ValType]| of.iter().map(|of| value(*of)).collect::<Vec<_>>();
    for (at, call) in (0_u32..).zip(calls) {
        types.ty().function(values(call.signature.params()), values(call.signature.results()));
        functions.function(at);
        exports.export(call.name, ExportKind::Func, at);
        let mut body = Function::new([]);
        body.instruction(&Instruction::Unreachable).instruction(&Instruction::End);
        code.function(&body);
    }
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&exports).section(&code);
    module.finish()
}

/// Converts a type of the canonical ABI, which has only numbers.
fn value(of: wasmparser::ValType) -> ValType {
    match of {
        wasmparser::ValType::I64 => ValType::I64,
        wasmparser::ValType::F32 => ValType::F32,
        wasmparser::ValType::F64 => ValType::F64,
        _ => ValType::I32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn importing(calls: &[(&str, &str)]) -> Vec<u8> {
        let imports = calls.iter().map(|(module, name)| format!("(import \"{module}\" \"{name}\" (func (param i32)))"));
        wat::parse_str(format!("(module {})", imports.collect::<String>())).unwrap()
    }

    fn refusal(calls: &[(&str, &str)], stub: bool) -> String {
        adapters(&importing(calls), stub).unwrap_err().to_string()
    }

    #[test]
    fn the_bytes_of_the_adapters_are_those_of_their_sources() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/policy/build/");
        let sources = [
            ("preview2.wasm", include_str!("preview2.wat"), CALLS),
            ("wall_clock.wasm", include_str!("wall_clock.wat"), WALL_CLOCK),
        ];
        for (file, source, committed) in sources {
            let bytes = wat::parse_str(source).unwrap();
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                std::fs::write(format!("{folder}{file}"), &bytes).unwrap();
            }
            assert!(
                bytes == committed,
                "{file} is old: UPDATE_GOLDEN=1 cargo test --package kaos-operator --lib preview2"
            );
        }
    }

    #[test]
    fn each_interface_of_a_runtime_gets_an_adapter() {
        let module = importing(&[
            ("wasi:cli/environment@0.2.3", "get-environment"),
            ("wasi:clocks/wall-clock@0.2.3", "now"),
            ("wasi:filesystem/types@0.2.3", "[method]descriptor.get-type"),
            ("kaos:policy/types@0.1.0", "x"),
        ]);
        let adapters = adapters(&module, false).unwrap();
        assert_eq!(
            adapters.keys().collect::<Vec<_>>(),
            ["wasi:cli/environment@0.2.3", "wasi:clocks/wall-clock@0.2.3", "wasi:filesystem/types@0.2.3"]
        );
        assert_eq!(
            exports(&adapters["wasi:filesystem/types@0.2.3"]).into_iter().collect::<Vec<_>>(),
            ["[method]descriptor.get-type"]
        );
    }

    #[test]
    fn a_call_that_needs_the_outside_world_is_refused_with_its_name_and_the_reason() {
        let open = ("wasi:filesystem/types@0.2.3", "[method]descriptor.open-at");
        let http = ("wasi:http/outgoing-handler@0.2.3", "handle");
        let told = refusal(&[open], false);
        assert!(
            told.contains("wasi:filesystem/types@0.2.3.[method]descriptor.open-at, but a policy has no files"),
            "{told}"
        );
        assert!(told.contains("--stub-wasi"), "{told}");
        let told = refusal(&[http], false);
        assert!(told.contains("wasi:http/outgoing-handler@0.2.3.handle, but a policy has no network"), "{told}");
        assert_eq!(adapters(&importing(&[open, http]), true).unwrap().len(), 2);
        let told = refusal(&[("wasi:keyvalue/store@0.2.0", "open")], true);
        assert!(told.contains("a policy must import nothing"), "{told}");
        let told = refusal(&[("wasi:io/poll@0.2.0", "pull")], true);
        assert!(told.contains("wasi:io/poll@0.2.0.pull, which is not a call of WASI 0.2"), "{told}");
    }
}
