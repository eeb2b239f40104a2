//! Kubernetes' own expansion of `$(NAME)` in commands, arguments and values of variables.

use alloc::string::String;

/// `text` so that Kubernetes puts no variable into it. It does so before any shell sees the text, inside of quotes
/// too: what is quoted for a shell has to go through here as well.
pub fn unexpanded(text: &str) -> String {
    let mut doubled = String::with_capacity(text.len());
    for c in text.chars() {
        doubled.push(c);
        if c == '$' {
            doubled.push(c);
        }
    }
    doubled
}
