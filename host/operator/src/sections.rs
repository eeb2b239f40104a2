//! Splits a WebAssembly binary into sections, and removes sections that only people and debuggers use.
//!
//! The build script `build.rs` also includes this file. This code reads only the names of custom sections, imports and
//! exports, no other contents.

/// One section.
pub(crate) struct Section<'a> {
    id: u8,
    /// The bytes of the section, including its header.
    whole: &'a [u8],
    content: &'a [u8],
}

impl Section<'_> {
    /// Returns the name of this section if it is a custom section. Returns `None` for all other sections.
    pub(crate) fn custom(&self) -> Option<&[u8]> {
        let (length, rest) = number(self.content).filter(|_| self.id == 0)?;
        rest.get(..length)
    }

    /// Returns the module and the name of each import, if this is the import section. Stops at the first import that is
    /// not a function.
    #[allow(dead_code, reason = "build.rs does not ask")]
    pub(crate) fn imports(&self) -> Vec<[&[u8]; 2]> {
        const IMPORTS: u8 = 2;
        let Some((count, mut rest)) = number(self.content).filter(|_| self.id == IMPORTS) else { return Vec::new() };
        let mut imports = Vec::new();
        for _ in 0..count {
            let Some((names, after)) = import(rest) else { break };
            imports.push(names);
            let Some(after) = function(after) else { break };
            rest = after;
        }
        imports
    }

    /// Returns the name of each export, if this is the export section.
    #[allow(dead_code, reason = "build.rs does not ask")]
    pub(crate) fn exports(&self) -> Vec<&[u8]> {
        const EXPORTS: u8 = 7;
        let Some((count, mut rest)) = number(self.content).filter(|_| self.id == EXPORTS) else { return Vec::new() };
        let mut exports = Vec::new();
        for _ in 0..count {
            let Some((name, after)) = export(rest) else { break };
            exports.push(name);
            rest = after;
        }
        exports
    }

    /// Returns whether only people and debuggers use the section, so that it is safe to remove.
    fn is_for_people(&self) -> bool {
        const NAMES: [&[u8]; 4] = [b"name", b"component-name", b"producers", b"target_features"];
        self.custom().is_some_and(|name| NAMES.contains(&name) || name.starts_with(b".debug_"))
    }
}

/// Returns the sections of a module or component, up to the first unreadable section.
pub(crate) fn sections(binary: &[u8]) -> impl Iterator<Item = Section<'_>> {
    let mut rest = binary.get(8..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (&id, after) = rest.split_first()?;
        let (size, after) = number(after)?;
        let (content, after) = after.split_at_checked(size)?;
        let whole = &rest[..rest.len() - after.len()];
        rest = after;
        Some(Section { id, whole, content })
    })
}

/// Removes names of functions, debug information and the list of tools. In a module built without `strip`, these
/// sections are a quarter of the module. The conversion to a component adds further sections of this sort.
pub(crate) fn slim(binary: &[u8]) -> Vec<u8> {
    let (mut slim, mut read) = (binary.get(..8).unwrap_or(binary).to_vec(), binary.len().min(8));
    for section in sections(binary) {
        read += section.whole.len();
        if !section.is_for_people() {
            slim.extend_from_slice(section.whole);
        }
    }
    // Keep the rest after an unreadable section, so that the next reader of the binary reports the error.
    slim.extend_from_slice(&binary[read..]);
    slim
}

/// Parses the module and the name of an import. Returns the module, the name and the remaining bytes, or `None` if the
/// bytes are invalid.
fn import(bytes: &[u8]) -> Option<([&[u8]; 2], &[u8])> {
    let (length, rest) = number(bytes)?;
    let (module, rest) = rest.split_at_checked(length)?;
    let (length, rest) = number(rest)?;
    let (name, rest) = rest.split_at_checked(length)?;
    Some(([module, name], rest))
}

/// Parses an export. Returns its name and the remaining bytes, or `None` if the bytes are invalid.
fn export(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    let (name, rest) = rest.split_at_checked(length)?;
    let (_, rest) = rest.split_first()?;
    number(rest).map(|(_, rest)| (name, rest))
}

/// Skips the description of an imported function. Returns the remaining bytes, or `None` if the import is not a
/// function.
fn function(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(&[0])?;
    number(rest).map(|(_, rest)| rest)
}

/// Parses an unsigned LEB128 number. Returns the number and the remaining bytes, or `None` if the bytes are invalid.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (position, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[position + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &[u8] =
        b"\0asm\x01\0\0\0\x01\x01\0\x00\x06\x05a:b:c\x00\x06\x04name!\x00\x0c\x0bkaos:policy\x00\x0c\x0b.debug_line";

    #[test]
    fn custom_sections_have_names_and_others_have_none() {
        let names: Vec<_> = sections(MODULE).map(|section| section.custom().map(<[u8]>::to_vec)).collect();
        let named = |name: &[u8]| Some(name.to_vec());
        assert_eq!(names, [None, named(b"a:b:c"), named(b"name"), named(b"kaos:policy"), named(b".debug_line")],);
    }

    #[test]
    fn sections_for_people_are_removed_and_the_rest_stays() {
        let slim = slim(MODULE);
        let names: Vec<_> = sections(&slim).filter_map(|section| section.custom().map(<[u8]>::to_vec)).collect();
        assert_eq!(names, [b"a:b:c".to_vec(), b"kaos:policy".to_vec()]);
        assert_eq!(super::slim(&slim), slim);
    }

    #[test]
    fn imports_are_listed_up_to_the_first_that_is_no_function() {
        let content = b"\x03\x01a\x01f\x00\x07\x01b\x01m\x02\x00\x01\x01c\x01g\x00\x00";
        let mut module = b"\0asm\x01\0\0\0\x02".to_vec();
        module.push(u8::try_from(content.len()).unwrap());
        module.extend_from_slice(content);
        let imports: Vec<_> = sections(&module)
            .flat_map(|it| it.imports().into_iter().map(|[m, n]| [m[0], n[0]]).collect::<Vec<_>>())
            .collect();
        assert_eq!(imports, [*b"af", *b"bm"]);
    }

    #[test]
    fn a_binary_that_ends_too_early_keeps_its_end() {
        for end in 0..MODULE.len() {
            let slim = slim(&MODULE[..end]);
            assert!(slim.len() <= end && (end < 8 || slim.starts_with(&MODULE[..8])), "{end}");
        }
        assert_eq!(slim(&MODULE[..13]), &MODULE[..13]);
    }
}
