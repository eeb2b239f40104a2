//! Turns core modules into components, and writes the Rust table that includes the components.

use std::{fmt::Write, fs, path::Path};

use sha2::{Digest, Sha256};
use wit_component::ComponentEncoder;

use crate::{Component, Result, code::Folder, sections::slim, sources::Policy, write_if_changed};

/// Turns a policy's core module into a component, and validates the component.
pub(crate) fn componentize(policy: &Policy, module: &[u8]) -> Result<Component> {
    let bytes = ComponentEncoder::default()
        .validate(true)
        .module(&slim(module))
        .and_then(|mut encoder| encoder.encode())
        .map(|component| slim(&component))
        .map_err(|error| format!("{}: cannot turn the module into a component: {error:#}", policy.package))?;
    Ok(Component { name: policy.package.clone(), bytes, manifest: policy.manifest.clone() })
}

/// The packed script engine, which `kaos_policy` includes.
const SCRIPT_ENGINE: &str = "javascript/engine.wasm.gz";

/// Writes the file that includes the compiled code of the script engine, if a folder with compiled code is given.
pub(crate) fn write_script_engine(out: &Path, workspace: &Path, code: Option<&Folder>) -> Result<()> {
    let packed = workspace.join(SCRIPT_ENGINE);
    println!("cargo::rerun-if-changed={}", packed.display());
    let mut included = "None".to_owned();
    if let Some(code) = code {
        let packed = fs::read(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
        write_if_changed(&out.join("script-engine.code"), &code.of("the script engine", &hex(&packed))?)?;
        "Some(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/script-engine.code\")))".clone_into(&mut included);
    }
    write_if_changed(&out.join("script_engine.rs"), included.as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Writes the components and the table that includes them. If a folder with compiled code is given, the table also
/// includes this code.
pub(crate) fn write_table(out: &Path, components: &[Component], code: Option<&Folder>) -> Result<()> {
    let directory = out.join("policies");
    fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut table = String::from("&[\n");
    for Component { name, bytes, manifest } in components {
        let digest = hex(bytes);
        for (extension, content) in [("wasm", bytes.as_slice()), ("yaml", manifest.as_bytes())] {
            write_if_changed(&directory.join(format!("{name}.{extension}")), content)?;
        }
        let mut included = "None".to_owned();
        if let Some(code) = code {
            write_if_changed(&directory.join(format!("{name}.code")), &code.of(name, &digest)?)?;
            included =
                format!("Some(include_bytes!(concat!(env!(\"OUT_DIR\"), {:?})))", format!("/policies/{name}.code"));
        }
        let _ = writeln!(
            table,
            "EmbeddedPolicy {{ component: include_bytes!(concat!(env!(\"OUT_DIR\"), {wasm:?})), \
             manifest: include_str!(concat!(env!(\"OUT_DIR\"), {yaml:?})), digest: {digest:?}, code: {included} }},",
            wasm = format!("/policies/{name}.wasm"),
            yaml = format!("/policies/{name}.yaml"),
        );
    }
    table.push_str("]\n");
    write_if_changed(&out.join("embedded.rs"), table.as_bytes())
}
