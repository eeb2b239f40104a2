//! Takes the policy's core module out of a component. Other tools make components that import WASI, and the conversion
//! of the core module makes a component that imports nothing.

use anyhow::bail;
use wasmparser::{CanonicalFunction, CanonicalOption, Parser, Payload};

use crate::cli::policy::wasm;

/// The beginning of the names of exports that implement the contract.
const CONTRACT: &str = "kaos:policy/";

/// Returns the core module that implements the contract.
pub(super) fn core_module(component: &[u8]) -> anyhow::Result<&[u8]> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::ModuleSection { unchecked_range, .. } => {
                let module = component.get(unchecked_range).unwrap_or_default();
                if wasm::exports(module).iter().any(|name| name.starts_with(CONTRACT)) {
                    found.push(module);
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

/// Refuses an export that has its texts in another encoding than UTF-8, because the conversion expects UTF-8.
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
        let source = format!("(component (core module (func (export \"x\"))) (core module {export}))");
        let component = wat::parse_str(source).unwrap();
        assert_eq!(wasm::exports(core_module(&component).unwrap()), ["kaos:policy/meta@0.1.0#describe"]);
        let both = refusal(&format!("(component (core module {export}) (core module {export}))"));
        assert!(both.contains("several components"), "{both}");
        let none = refusal("(component (core module))");
        assert!(none.contains("no core module exports the contract"), "{none}");
    }
}
