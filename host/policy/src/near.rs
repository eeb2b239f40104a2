//! Finds the name that somebody meant who mistyped it. What to say of it is for the caller.

/// The name that was probably meant, if one is near.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    within((written.chars().count() / 3).max(1), written, names)
}

/// The name that was meant for certain: of long names that have much in common, more than a slip apart are two names.
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

/// How many letters were added, left out, changed or swapped with their neighbour; case is no difference.
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
    fn a_slip_of_the_hand_finds_its_name() {
        for written in ["logLevle", "loglevel", "logLevl", "llogLevel"] {
            assert_eq!(nearest(written, ["image", "logLevel"]), Some("logLevel"), "{written}");
        }
        assert_eq!(nearest("colour", ["image", "logLevel"]), None);
        assert_eq!(nearest("", ["image"]), None);
    }

    #[test]
    fn names_that_have_much_in_common_are_not_taken_for_each_other() {
        let names = ["DEFAULT_AGENT_IMAGE", "GATEWAY_NAME"];
        assert_eq!(slipped("DEFAULT_AGENT_IMG", names), Some("DEFAULT_AGENT_IMAGE"));
        for other in ["DEFAULT_MCP_SERVER_IMAGE", "GATEWAY_HOST", "LOG_LEVEL"] {
            assert_eq!(slipped(other, names), None, "{other}");
        }
    }
}
