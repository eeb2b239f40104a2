//! Escapes and finds `$(NAME)`, which Kubernetes expands in commands, arguments and values of variables.

use alloc::string::String;

/// Escapes `text` so that Kubernetes expands no variable, and the process sees exactly this text. Kubernetes expands
/// variables even inside of quotes, before a shell sees the text. So call this function also for text that you quote
/// for a shell.
///
/// Doubles only a `$` that has a meaning for Kubernetes, so most texts stay unchanged. Also doubles a `$` before a
/// non-ASCII character, because Kubernetes would treat the first byte of this character as a complete character.
pub fn unexpanded(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = dollar(rest) {
        let (before, after) = rest.split_at(at + 1);
        escaped.push_str(before);
        if after.bytes().next().is_some_and(|next| matches!(next, b'$' | b'(') || !next.is_ascii()) {
            escaped.push('$');
        }
        rest = after;
    }
    escaped.push_str(rest);
    escaped
}

/// Iterates over the names of the variables that Kubernetes expands in `text`, in order.
pub(crate) fn references(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    core::iter::from_fn(move || {
        while let Some(at) = dollar(rest) {
            let after = rest.get(at + 1..).unwrap_or_default();
            match after.bytes().next() {
                // If this reference has no closing parenthesis, the rest of the text has none either.
                Some(b'(') => {
                    let end = after.bytes().position(|byte| byte == b')')?;
                    rest = after.get(end + 1..).unwrap_or_default();
                    return after.get(1..end);
                }
                Some(b'$') => rest = after.get(1..).unwrap_or_default(),
                _ => rest = after,
            }
        }
        None
    })
}

fn dollar(text: &str) -> Option<usize> {
    text.bytes().position(|byte| byte == b'$')
}

#[cfg(test)]
mod tests {
    use super::{references, unexpanded};

    #[test]
    fn only_text_that_kubernetes_would_expand_is_escaped() {
        for same in ["", "costs $5", "$HOME and $", "a ${b} $", "$'x'", "(a)", "plain"] {
            assert_eq!(unexpanded(same), same);
        }
        for (text, escaped) in
            [("$(A)", "$$(A)"), ("$$", "$$$"), ("$$(A)", "$$$$(A)"), ("$$x $(", "$$$x $$("), ("5$€ $é", "5$$€ $$é")]
        {
            assert_eq!(unexpanded(text), escaped);
        }
    }

    #[test]
    fn references_are_those_that_kubernetes_reads() {
        let found = |text| references(text).collect::<Vec<_>>();
        assert_eq!(found("$(A) $$(B) $$$(C) $D $(E"), ["A", "C"]);
        assert_eq!(found("$($(A)"), ["$(A"]);
        assert_eq!(found("$$ $ ) $"), Vec::<&str>::new());
    }
}
