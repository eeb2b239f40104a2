//! Recognizes WebAssembly files by their first bytes. The crate `kaos_policy` examines the contents of the files.

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

/// Returns the module and the name of each function that a core module imports from outside the component.
pub(super) fn foreign_imports(module: &[u8]) -> Vec<[String; 2]> {
    let sections: Vec<_> = sections(module).collect();
    let imports = sections.iter().flat_map(|section| section.imports());
    let foreign = imports.filter(|[module, _]| !module.starts_with(OWN_RESOURCES));
    foreign.map(|names| names.map(|name| String::from_utf8_lossy(name).into_owned())).collect()
}

/// Returns the names of the exports of a core module.
pub(super) fn exports(module: &[u8]) -> Vec<String> {
    let sections: Vec<_> = sections(module).collect();
    let names = sections.iter().flat_map(|section| section.exports());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
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
    fn imports_from_outside_are_found() {
        let module = b"\0asm\x01\0\0\0\x02\x0a\x01\x03abc\x02de\0\0";
        assert_eq!(foreign_imports(module), [["abc".to_owned(), "de".to_owned()]]);
        for end in 0..module.len() {
            assert!(foreign_imports(&module[..end]).is_empty(), "{end}");
        }
        assert!(foreign_imports(b"\0asm\x01\0\0\0\x02\x01\x00").is_empty());
    }

    #[test]
    fn exports_are_found_up_to_the_first_that_is_incomplete() {
        let module = b"\0asm\x01\0\0\0\x07\x0b\x02\x03abc\x00\x05\x01m\x02\0";
        assert_eq!(exports(module), ["abc", "m"]);
        for end in 0..module.len() {
            assert!(exports(&module[..end]).is_empty(), "{end}");
        }
        assert_eq!(exports(b"\0asm\x01\0\0\0\x07\x07\x02\x03abc\x00\x05"), ["abc"]);
    }
}
