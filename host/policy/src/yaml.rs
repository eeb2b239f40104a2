//! Explains errors in a YAML text to the author of the text. Replaces messages in which the parser mentions options and
//! types of its Rust library.

use std::borrow::Cow;

use serde_saphyr::{Error, MessageFormatter, SnippetMode, UserMessageFormatter, budget::BudgetBreach};

/// Formats the error with its line. `lines_before` is the number of lines before the text in its file.
pub fn told(error: &Error, lines_before: usize) -> String {
    error.render_with_options(serde_saphyr::render_options! {
        formatter: &Words,
        snippets: SnippetMode::Off,
        line_offset: u64::try_from(lines_before).unwrap_or_default(),
    })
}

/// Returns whether the error means that a text is not valid YAML. Returns `false` if the parser refused valid YAML, for
/// example because of a duplicate field or too many aliases.
pub fn is_syntax(error: &Error) -> bool {
    let mut error = error.without_snippet();
    while let Error::AliasError { error: inner, .. } = error {
        error = inner.without_snippet();
    }
    !matches!(
        error,
        Error::DuplicateMappingKey { .. }
            | Error::Budget { .. }
            | Error::AliasReplayCounterOverflow { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. }
    )
}

/// Replaces messages in which the parser mentions options and types of its Rust library.
struct Words;

impl MessageFormatter for Words {
    fn format_message<'a>(&self, error: &'a Error) -> Cow<'a, str> {
        match error {
            Error::DuplicateMappingKey { key: Some(key), .. } => format!("the field {key} occurs twice").into(),
            Error::DuplicateMappingKey { key: None, .. } => "a field occurs twice".into(),
            Error::MultipleDocuments { .. } => "the text has several documents, but must have one".into(),
            Error::Unexpected { expected: "mapping start", .. } => "fields with values are expected".into(),
            Error::Unexpected { expected: "sequence start", .. } => {
                "a list is expected: write [one, two], or each item on a line of its own after `- `".into()
            }
            Error::Unexpected { expected: "scalar" | "string scalar", .. } => "one value is expected".into(),
            Error::Budget { breach, .. } => too_much(breach).into(),
            Error::AliasReplayCounterOverflow { .. }
            | Error::AliasReplayLimitExceeded { .. }
            | Error::AliasExpansionLimitExceeded { .. }
            | Error::AliasReplayStackDepthExceeded { .. } => ALIASES.into(),
            error => UserMessageFormatter.format_message(error),
        }
    }
}

const ALIASES: &str = "the aliases expand to more than the limit: write the values in full";

fn too_much(breach: &BudgetBreach) -> &'static str {
    match breach {
        BudgetBreach::Depth { .. } => "the text is nested too deep",
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => ALIASES,
        _ => "the text has too many parts: split it into several documents",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    fn refused(text: &str) -> String {
        told(&serde_saphyr::from_str::<Value>(text).unwrap_err(), 2)
    }

    #[test]
    fn an_error_has_its_place_in_the_file_and_no_word_of_the_library() {
        assert_eq!(refused("spec: 1\nspec: 2\n"), "the field spec occurs twice at line 4, column 1");
        assert_eq!(refused("kind: [\n"), "unclosed bracket '[' at line 3, column 7");
        assert_eq!(refused("size: .nan\n"), "value `.nan` is not a finite number at line 3, column 7");
        let several = refused("a: 1\n---\nb: 2\n");
        assert!(several.starts_with("the text has several documents, but must have one"), "{several}");
        let deep = refused(&format!("{}{}", "[".repeat(100), "]".repeat(100)));
        assert!(deep.starts_with("the text is nested too deep"), "{deep}");
        let long = refused(&"- x\n".repeat(300_000));
        assert!(long.starts_with("the text has too many parts: split it into several documents at line "), "{long}");
        let is_no_yaml = |text: &str| is_syntax(&serde_saphyr::from_str::<Value>(text).unwrap_err());
        assert!(is_no_yaml("kind: [\n") && !is_no_yaml("spec: 1\nspec: 2\n") && !is_no_yaml(&"- x\n".repeat(300_000)));
        let list = serde_saphyr::from_str::<BTreeMap<String, Vec<String>>>("names: a\n").unwrap_err();
        assert!(told(&list, 0).starts_with("a list is expected: write [one, two], or "), "{}", told(&list, 0));
        assert!(told(&list, 0).ends_with(" at line 1, column 8"), "{}", told(&list, 0));
        let text = serde_saphyr::from_str::<BTreeMap<String, String>>("name: [a]\n").unwrap_err();
        assert_eq!(told(&text, 0), "one value is expected at line 1, column 7");
        let fields = serde_saphyr::from_str::<BTreeMap<String, Value>>("hello\n").unwrap_err();
        assert_eq!(told(&fields, 0), "fields with values are expected at line 1, column 1");
    }
}
