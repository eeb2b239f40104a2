//! Compares the contracts of two components. `policy build` takes the core module of a component, and writes the types
//! of this operator's contract into the module. Another tool may have built the component with other types of the same
//! contract version. Then the module would read the host's values from wrong addresses.

use anyhow::bail;
use wit_component::{DecodedWasm, WitPrinter, decode};
use wit_parser::PackageId;

/// Fails if the contract of the converted component `to` differs from the contract of the original component `from`.
pub(super) fn check(from: &[u8], to: &[u8]) -> anyhow::Result<()> {
    let (theirs, ours) = (contract(from)?, contract(to)?);
    let [mut theirs, mut ours] = [&theirs, &ours].map(|text| text.lines().filter(|line| !line.is_empty()));
    let mut within = "";
    loop {
        match (theirs.next(), ours.next()) {
            (None, None) => return Ok(()),
            (Some(line), Some(other)) if line == other => {
                if line.starts_with("interface ") {
                    within = line.trim_end_matches(" {");
                }
            }
            (theirs, ours) => bail!(
                "was built for another contract of the same version: in `{within}`, it has `{}` where this operator has \
                 `{}`. Build the policy with the file wit/policy.wit of this operator's release",
                shown(theirs),
                shown(ours)
            ),
        }
    }
}

fn shown(line: Option<&str>) -> String {
    kaos_policy::printable::printable(line.unwrap_or("nothing").trim()).to_string()
}

/// Prints the interfaces of the contract in a component. Sorts interfaces, types and functions, because their order has
/// no meaning.
fn contract(component: &[u8]) -> anyhow::Result<String> {
    let DecodedWasm::Component(mut resolve, _) = decode(component)? else {
        bail!("is a WIT package, and not a component");
    };
    for (_, interface) in &mut resolve.interfaces {
        interface.types.sort_keys();
        interface.functions.sort_keys();
    }
    let mut ids: Vec<PackageId> = Vec::new();
    for (id, package) in &mut resolve.packages {
        if (package.name.namespace.as_str(), package.name.name.as_str()) == ("kaos", "policy") {
            package.interfaces.sort_keys();
            ids.push(id);
        }
    }
    let mut printer = WitPrinter::default();
    printer.emit_docs(false);
    for id in ids {
        printer.print(&resolve, id, &[])?;
    }
    Ok(printer.output.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a component that imports the interface `types` with these types.
    fn with(types: &[&str]) -> Vec<u8> {
        let types: Vec<String> = types
            .iter()
            .enumerate()
            .map(|(number, text)| {
                let (name, text) = text.split_once('=').unwrap();
                format!("(type (record {text})) (export \"{name}\" (type (eq {})))", number * 2)
            })
            .collect();
        let types = types.concat();
        wat::parse_str(format!("(component (import \"kaos:policy/types@0.1.0\" (instance {types})))")).unwrap()
    }

    const NEED: &str = r#"need=(field "id" string) (field "fields" string)"#;
    const NOTE: &str = r#"note=(field "reason" string)"#;

    #[test]
    fn the_order_of_types_makes_no_difference() {
        check(&with(&[NEED, NOTE]), &with(&[NOTE, NEED])).unwrap();
    }

    #[test]
    fn another_contract_is_refused_with_the_first_line_that_differs() {
        let swapped = r#"need=(field "fields" string) (field "id" string)"#;
        let told = check(&with(&[swapped]), &with(&[NEED])).unwrap_err().to_string();
        assert!(told.contains("in `interface types`, it has `fields: string,` where"), "{told}");
        assert!(told.contains("this operator has `id: string,`"), "{told}");

        let longer = format!(r#"{NEED} (field "more" u32)"#);
        let told = check(&with(&[&longer]), &with(&[NEED])).unwrap_err().to_string();
        assert!(told.contains("it has `more: u32,` where this operator has `}`"), "{told}");

        let told = check(&with(&[NEED]), &with(&[NEED, NOTE])).unwrap_err().to_string();
        assert!(told.contains("where this operator has `record note {`"), "{told}");
    }
}
