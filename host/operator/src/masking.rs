//! Masks secret values, which must not appear on screens or in logs. The names of variables and fields show which
//! values are secret.

/// The text that replaces a secret value.
pub const MASK: &str = "********";

/// Bytes that `Debug` does not show.
#[derive(Clone, Default)]
pub struct Hidden(pub Vec<u8>);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(MASK)
    }
}

/// Returns whether a variable or field of this name may contain a secret. In doubt, returns true, because a user can
/// still read the value with kubectl.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // A field with a number of tokens does not contain a secret token.
    if ["BUDGET", "LIMIT", "COUNT"].iter().any(|measure| name.ends_with(measure)) || name.ends_with("MAX_TOKENS") {
        return false;
    }
    let parts =
        ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "APIKEY", "PRIVATE", "AUTHORIZATION"];
    parts.iter().any(|part| name.contains(part))
        // Connection strings may contain passwords.
        || ["DATABASE_URL", "CONNECTION_STRING", "DSN"].iter().any(|end| name.ends_with(end))
        || name.split(['_', '-', '.']).any(|part| part == "KEY" || part == "KEYS")
}

/// Masks the values of secret names in each line of a text: `api_key: …`, `--token=…`.
pub fn text(text: &str) -> String {
    text.split_inclusive('\n').map(line).collect()
}

/// Returns the values that [`text`] masks.
pub fn hidden(text: &str) -> impl Iterator<Item = &str> {
    let values = text.lines().filter_map(|line| Some(secret_part(line)?.1));
    values.map(|value| value.trim().trim_matches(['"', '\'', ',']))
}

/// Splits a line into the name of a secret value and the value. Returns `None` if the line contains no secret value.
fn secret_part(line: &str) -> Option<(&str, &str)> {
    let at = line.find([':', '='])?;
    let (name, value) = line.split_at(at + 1);
    let named = name[..at].trim_matches(|c: char| !c.is_alphanumeric());
    // Fields such as `secretName: x` only refer to a secret.
    let refers = named.ends_with("Name") || named.ends_with("Ref");
    (!refers && !value.trim().is_empty() && is_secret(named)).then_some((name, value))
}

fn line(line: &str) -> String {
    let Some((name, value)) = secret_part(line) else { return line.to_owned() };
    let end = if line.ends_with('\n') { "\n" } else { "" };
    let space = if value.starts_with(' ') { " " } else { "" };
    format!("{name}{space}{MASK}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "PROXY_API_KEY",
            "SLACK_BOT_TOKEN",
            "db_password",
            "CLIENT_SECRET",
            "OPENAI_APIKEY",
            "GPG_PASSPHRASE",
            "HTTP_AUTHORIZATION",
            "DATABASE_URL",
            // The values of these variables are not secret, but a rule for names cannot find this out.
            "TOKENIZER_OFF",
        ] {
            assert!(is_secret(name), "{name}");
        }
        let counts = ["MEMORY_SHORT_TERM_TOKEN_BUDGET", "tokenBudget", "TOKEN_LIMIT", "LLM_MAX_TOKENS", "token_count"];
        for name in ["MONKEY", "KEYBOARD", "LOG_LEVEL", "MODEL_API_URL"].into_iter().chain(counts) {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn values_of_secret_names_are_hidden_line_by_line() {
        let told =
            "model: gpt\n  api_key: s3cret\n--token=abc\n\"password\": \"x\"\nurl: http://a:1\nsecretName: b\nkey:\n";
        let shown = "model: gpt\n  api_key: ********\n--token=********\n\"password\": ********\nurl: http://a:1\nsecretName: b\nkey:\n";
        assert_eq!(text(told), shown);
        assert_eq!(hidden(told).collect::<Vec<_>>(), ["s3cret", "abc", "x"]);
    }
}
