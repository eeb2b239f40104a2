//! The version of the API server that receives the children of the plans. This program knows only the fields of one
//! version of Kubernetes, but a newer server may have more fields.

use crate::kubernetes::VERSION;

/// The API server that receives the children of the plans. The gate accepts the fields that this API server may have.
pub trait Server {
    /// Returns whether the server may have fields that this program does not know. The error says why the server did
    /// not report its version. The gate calls this function only after the guard refused the answer for a sample.
    fn is_newer(&self) -> Result<bool, String>;
}

/// A server whose version is already known. The default is a server that is not newer than this program.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownServer {
    /// Whether the server's version is newer than the version that this program knows.
    pub is_newer: bool,
}

impl Server for KnownServer {
    fn is_newer(&self) -> Result<bool, String> {
        Ok(self.is_newer)
    }
}

/// Returns whether a server of this version may have fields that this program does not know. Treats an unreadable
/// version as newer.
pub fn is_newer(major: &str, minor: &str) -> bool {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let known = VERSION.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    let told = number(major).zip(number(minor));
    told.is_none_or(|told| known.is_some_and(|known| told > known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_and_unreadable_versions_count_as_newer() {
        for (major, minor, newer) in [
            ("1", "36", false),
            ("1", "36+", false),
            ("1", "30", false),
            ("1", "37", true),
            ("1", "37+", true),
            ("1", "100", true),
            ("2", "0", true),
            ("", "", true),
        ] {
            assert_eq!(is_newer(major, minor), newer, "{major}.{minor}");
        }
    }
}
