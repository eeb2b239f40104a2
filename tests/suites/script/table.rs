//! Checks that the script engine's lists of fields and enums agree with the contract.

use wit_parser::TypeDefKind;

use super::records::{Contract, pascal};

#[path = "../../../guest-policies/javascript/src/fields.rs"]
pub(super) mod fields;

/// Converts the name of a field in the contract to its name in Rust.
fn snake(field: &str) -> String {
    let name = field.replace('-', "_");
    if name == "type" { "type_".to_owned() } else { name }
}

#[test]
fn the_table_of_the_script_engine_has_the_json_fields_and_enums_of_the_contract() {
    let contract = Contract::read();
    let (mut json, mut enums, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for id in &contract.types {
        let name = contract.name(*id);
        match &contract.definition(*id).kind {
            TypeDefKind::Record(record) => {
                for field in &record.fields {
                    let path = format!("{name}.{}", snake(&field.name));
                    if contract.is_json(&field.ty) {
                        json.push(path.clone());
                    }
                    all.push(path);
                }
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter().filter(|case| case.ty.is_some_and(|of| contract.is_json(&of)));
                json.extend(cases.map(|case| format!("{name}.{}", pascal(&case.name))));
            }
            TypeDefKind::Enum(_) => enums.push(name),
            _ => {}
        }
    }
    json.sort_unstable();
    enums.sort_unstable();
    let remedy = "change guest-policies/javascript/src/fields.rs, and run guest-policies/javascript/build";
    assert_eq!(json, fields::JSON, "{remedy}");
    assert_eq!(enums, fields::ENUMS, "{remedy}");
    for path in fields::EMPTY.iter().chain(&fields::REQUIRED) {
        assert!(all.iter().any(|there| there == path), "{path} is not a field of the contract: {remedy}");
    }
}
