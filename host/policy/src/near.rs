//! Finds the name that a user probably meant by a mistyped name. The caller writes the message with the suggestion.

/// Returns the name that is most similar to `written`, or `None` if no name is similar enough for a suggestion.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within((written.chars().count() / 3).max(1), written, names)
}

/// Returns the name that the user almost certainly meant by `written`, or `None` if no name is similar enough. Accepts
/// at most two typing errors, because long names can share many letters and still have different meanings.
pub fn slipped<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within((written.chars().count() / 3).clamp(1, 2), written, names)
}

fn within<'a>(allowed: usize, written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, name)| name)
}

/// Returns the number of edits between two texts. An edit adds, removes or changes a letter, or swaps two neighboring
/// letters. Treats upper and lower case as equal.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let substituted = last[j] + usize::from(a[i] != b[j]);
            let mut best = substituted.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{nearest, slipped};

    #[test]
    fn a_typing_error_finds_its_name() {
        for written in ["logLevle", "loglevel", "logLevl", "llogLevel"] {
            assert_eq!(nearest(written, ["image", "logLevel"]), Some("logLevel"), "{written}");
        }
        assert_eq!(nearest("colour", ["image", "logLevel"]), None);
        assert_eq!(nearest("", ["image"]), None);
    }

    #[test]
    fn similar_names_are_not_mistaken_for_each_other() {
        let names = ["DEFAULT_AGENT_IMAGE", "GATEWAY_NAME"];
        assert_eq!(slipped("DEFAULT_AGENT_IMG", names), Some("DEFAULT_AGENT_IMAGE"));
        for other in ["DEFAULT_MCP_SERVER_IMAGE", "GATEWAY_HOST", "LOG_LEVEL"] {
            assert_eq!(slipped(other, names), None, "{other}");
        }
    }
}
