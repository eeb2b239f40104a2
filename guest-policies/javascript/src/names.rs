//! The names of fields, cases and enum values in the script.

/// Returns a field's name in the script: `api_version` becomes `apiVersion`, and `type_` becomes `type`.
pub(crate) fn camel(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut upper = false;
    for c in field.trim_end_matches('_').chars() {
        match c {
            '_' => upper = true,
            c if upper => {
                name.extend(c.to_uppercase());
                upper = false;
            }
            c => name.push(c),
        }
    }
    name
}

/// Returns a case's name in the script: `ConfigMapKey` becomes `config-map-key`.
pub(crate) fn kebab(case: &str) -> String {
    let mut name = String::with_capacity(case.len() + 2);
    for c in case.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(c.to_lowercase());
    }
    name
}
