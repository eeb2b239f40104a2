//! Removes the whitespace between JSON tokens at compile time. So a policy's schema and samples can be readable files
//! that take little space in the component.

/// Includes a JSON file as text without whitespace between tokens. The path is relative to the source file.
#[macro_export]
macro_rules! include_json {
    ($path:literal) => {{
        const TEXT: &str = include_str!($path);
        #[allow(long_running_const_eval, reason = "a few steps for each byte of the file")]
        const BYTES: [u8; $crate::__minified_len(TEXT)] = $crate::__minified(TEXT);
        const MINIFIED: &str = match ::core::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => TEXT,
        };
        MINIFIED
    }};
}

/// Returns the length of `text` without the whitespace between tokens.
#[doc(hidden)]
pub const fn __minified_len(text: &str) -> usize {
    let mut scan = Scan::new(text);
    let mut length = 0;
    while scan.next().is_some() {
        length += 1;
    }
    length
}

/// Returns `text` without the whitespace between tokens. `N` is the result of [`__minified_len`].
#[doc(hidden)]
pub const fn __minified<const N: usize>(text: &str) -> [u8; N] {
    let mut scan = Scan::new(text);
    let mut bytes = [0; N];
    let mut at = 0;
    while let Some(byte) = scan.next() {
        bytes[at] = byte;
        at += 1;
    }
    bytes
}

/// Iterates over the bytes of a text, without the whitespace between tokens.
struct Scan<'a> {
    rest: &'a [u8],
    in_string: bool,
    escaped: bool,
}

impl<'a> Scan<'a> {
    const fn new(text: &'a str) -> Self {
        Self { rest: text.as_bytes(), in_string: false, escaped: false }
    }

    const fn next(&mut self) -> Option<u8> {
        while let [byte, rest @ ..] = self.rest {
            self.rest = rest;
            if self.in_string {
                if self.escaped {
                    self.escaped = false;
                } else if *byte == b'\\' {
                    self.escaped = true;
                } else if *byte == b'"' {
                    self.in_string = false;
                }
                return Some(*byte);
            }
            if *byte == b'"' {
                self.in_string = true;
            }
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn a_file_is_the_same_json_in_fewer_bytes() {
        let (file, small) = (include_str!("../tests/data/minify.json"), include_json!("../tests/data/minify.json"));
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(small), read(file));
        assert_eq!(small, "{\"a b\":[1,2],\"c\":\"d \\\" e\\\\\",\"ü\":{}}");
    }
}
