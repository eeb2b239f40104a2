//! What is known of the API server that is to take what policies plan. This program knows the fields of one Kubernetes, and a
//! newer one may have more.

use crate::kubernetes::VERSION;

/// The API server that a policy is checked for.
pub trait Server {
    /// Whether it may have fields that this program does not know, or why it did not say. Asked only where that decides
    /// something.
    fn is_newer(&self) -> Result<bool, String>;
}

/// One of which nothing is known, or what was found out beforehand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known {
    /// Whether it is newer than what this program knows.
    pub is_newer: bool,
}

impl Server for Known {
    fn is_newer(&self) -> Result<bool, String> {
        Ok(self.is_newer)
    }
}

/// Whether a server of this version, as it says that itself, has fields that this program does not know. A version that
/// cannot be read is one that nobody knows either.
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
