//! Recognizes WebAssembly files by their first bytes. `kaos_policy` examines the contents of the files.

use crate::sections::sections;

/// The prefix of the module names from which a core module imports functions for the policy's own resources. The
/// component provides these functions.
const OWN_RESOURCES: &[u8] = b"[export]kaos:policy/";

pub(super) fn is_component(bytes: &[u8]) -> bool {
    layer(bytes) == Some(1)
}

/// Returns whether these are the bytes of a core module.
pub(super) fn is_core(bytes: &[u8]) -> bool {
    layer(bytes) == Some(0)
}

/// Returns the field of the header that distinguishes components from core modules. `None` if the bytes are not
/// WebAssembly.
fn layer(bytes: &[u8]) -> Option<u16> {
    bytes.strip_prefix(b"\0asm")?.get(2..4).map(|layer| u16::from_le_bytes([layer[0], layer[1]]))
}

/// Returns whether a core module has a custom section with a name that starts with `prefix`.
pub(super) fn has_custom_section(module: &[u8], prefix: &str) -> bool {
    sections(module).any(|section| section.custom().is_some_and(|name| name.starts_with(prefix.as_bytes())))
}

/// Returns the module and the name of the first function that a core module imports from outside the component. `None`
/// if the module has no such import.
pub(super) fn first_import(module: &[u8]) -> Option<[String; 2]> {
    let sections: Vec<_> = sections(module).collect();
    let imports = sections.iter().flat_map(|section| section.imports());
    let mut foreign = imports.filter(|[module, _]| !module.starts_with(OWN_RESOURCES));
    foreign.next().map(|names| names.map(|name| String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_and_core_modules_are_distinguished() {
        assert!(is_component(b"\0asm\x0d\0\x01\0") && !is_core(b"\0asm\x0d\0\x01\0"));
        assert!(is_core(b"\0asm\x01\0\0\0") && !is_component(b"\0asm\x01\0\0\0"));
        for other in ["", "\0asm", "(module)"] {
            assert!(!is_core(other.as_bytes()) && !is_component(other.as_bytes()));
        }
    }

    #[test]
    fn custom_sections_are_found_by_the_start_of_their_name() {
        let module = b"\0asm\x01\0\0\0\x01\x01\0\x00\x06\x05a:b:c";
        assert!(has_custom_section(module, "a:b") && !has_custom_section(module, "b"));
        for end in 0..module.len() {
            assert!(!has_custom_section(&module[..end], "a:b"), "{end}");
        }
    }

    #[test]
    fn the_first_import_is_found() {
        let module = b"\0asm\x01\0\0\0\x02\x0a\x01\x03abc\x02de\0\0";
        assert_eq!(first_import(module), Some(["abc".to_owned(), "de".to_owned()]));
        for end in 0..module.len() {
            assert_eq!(first_import(&module[..end]), None, "{end}");
        }
        assert_eq!(first_import(b"\0asm\x01\0\0\0\x02\x01\x00"), None);
    }
}
