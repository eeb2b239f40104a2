//! Decides from the names of variables, fields and flags which values are secret.

use std::sync::LazyLock;

use serde_json::{Number, Value};

use super::{hidden::SHORTEST, hints::Hints};

/// Parts of names that belong to secret values, in upper case.
const PARTS: [&str; 12] = [
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
    "SECRET",
    "TOKEN",
    "CREDENTIAL",
    "APIKEY",
    "PRIVATE",
    "AUTHORIZATION",
    "COOKIE",
    "BEARER",
];
/// Parts of names that consist of several words without a separator.
const JOINED: [&str; 7] =
    ["ACCESSKEY", "SIGNINGKEY", "ENCRYPTIONKEY", "MASTERKEY", "ACCOUNTKEY", "SHAREDKEY", "SSHKEY"];
/// Whole words of names that belong to secret values.
const WORDS: [&str; 4] = ["KEY", "KEYS", "PIN", "JWT"];
/// Endings of names of connection strings, which may contain passwords.
const CONNECTIONS: [&str; 3] = ["DATABASE_URL", "CONNECTION_STRING", "DSN"];
/// Words in a name that show that the field contains a number of tokens, not a secret token.
const AMOUNTS: [&str; 6] = ["MAX", "MIN", "NUM", "TOTAL", "INPUT", "OUTPUT"];
/// The ending of names of passwords. The variable `PWD` itself names a directory.
const PWD: &str = "PWD";

/// Each secret name contains at least one of these parts.
static HINTS: LazyLock<Hints> =
    LazyLock::new(|| Hints::new(PARTS.into_iter().chain(JOINED).chain(WORDS).chain(CONNECTIONS).chain([PWD])));

/// Returns whether a variable or field of this name may contain a secret. In doubt, returns true, because a user can
/// still read the value with kubectl.
pub fn is_secret(name: &str) -> bool {
    if !HINTS.may_be_in(name) {
        return false;
    }
    let name = name.to_ascii_uppercase();
    if is_amount(&name) {
        return false;
    }
    PARTS.iter().chain(&JOINED).any(|part| name.contains(part))
        || CONNECTIONS.iter().any(|end| name.ends_with(end))
        || name.split(['_', '-', '.']).any(|word| WORDS.contains(&word))
        || name.strip_suffix(PWD).is_some_and(|rest| rest.ends_with(['_', '-', '.']))
}

/// Returns whether a name belongs to a limit, to a count (such as a number of tokens), or to the switch
/// `automountServiceAccountToken`. The name must be in upper case.
fn is_amount(name: &str) -> bool {
    let has_word = |word: &str| name.starts_with(word) || name.contains(&format!("_{word}_"));
    ["BUDGET", "LIMIT", "COUNT", "AUTOMOUNTSERVICEACCOUNTTOKEN"].iter().any(|end| name.ends_with(end))
        || (name.ends_with("TOKENS") && AMOUNTS.iter().any(|word| has_word(word)))
}

/// Returns whether the value of this key only refers to a secret by name.
fn is_reference_key(key: &str) -> bool {
    matches!(key, "key" | "name" | "valueFrom" | "from") || key.ends_with("Name") || key.ends_with("Ref")
}

/// Returns whether a key in a text belongs to a secret value. In `db.secretRef.name`, the last word counts.
pub(super) fn is_secret_in_text(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    !last.is_empty() && !is_reference_key(last) && is_secret(name)
}

/// Returns whether an argument is a flag with a secret name and without a value, such as `--token`. Its value is the
/// next argument.
pub(super) fn is_secret_flag(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() < argument.len() && name.chars().all(is_name) && is_secret_in_text(name)
}

/// Returns whether a value with a secret name is certainly not secret: it is empty, a switch, or a reference to a
/// variable.
pub(super) fn is_plain(value: &str) -> bool {
    let variable = value.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    let variable = variable.or_else(|| value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')));
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    matches!(value, "" | "true" | "false" | "null" | "~") || variable.is_some_and(is_name)
}

/// How secret a value is, judged by the names of its field and of the fields above.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Secrecy {
    /// No name shows that the value is secret.
    #[default]
    Open,
    /// The value is inside a larger value with a secret name. If it is a text or a long number, it is secret.
    Part,
    /// The value's own field has a name that suggests a secret.
    Whole,
    /// The value's own field has a plural name, such as `tokens`. A short number in it is probably a count, not a
    /// secret.
    Several,
}

impl Secrecy {
    /// Returns the secrecy of the value of a key in an object. `is_named` is true if the object belongs to a variable
    /// with a secret name, or if its field `name` or `key` contains a secret name.
    pub(crate) fn below(self, key: &str, is_named: bool) -> Self {
        let is_value = || is_named && matches!(key, "value" | "literal" | "default" | "content" | "values");
        if is_reference_key(key) {
            Self::Open
        } else if is_value() || is_secret(key) {
            let plural = ["TOKENS", "KEYS"];
            let is_plural = plural.iter().any(|end| key.to_ascii_uppercase().ends_with(end));
            if is_plural { Self::Several } else { Self::Whole }
        } else if self == Self::Open {
            Self::Open
        } else {
            Self::Part
        }
    }

    /// Returns whether texts are secret.
    pub(crate) fn hides_texts(self) -> bool {
        self != Self::Open
    }

    /// Returns whether a number of this many digits is secret.
    pub(crate) fn hides_number(self, digits: usize) -> bool {
        match self {
            Self::Open => false,
            Self::Part | Self::Several => digits >= SHORTEST,
            Self::Whole => true,
        }
    }
}

/// The facts about an object that decide whether its fields are secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names {
    /// Whether the object is a Secret.
    is_secret: bool,
    /// Whether the object belongs to a variable with a secret name, or its field `name` or `key` contains a secret
    /// name.
    is_named: bool,
}

impl Names {
    pub(super) fn of(fields: &serde_json::Map<String, Value>, is_variable: bool) -> Self {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            is_secret: text("kind") == "Secret",
            is_named: is_variable || ["name", "key"].iter().any(|field| is_secret(text(field))),
        }
    }

    /// Returns the secrecy of the value of a key, and whether this value is the `source` of a variable with a secret
    /// name.
    pub(super) fn below(self, secrecy: Secrecy, key: &str) -> (Secrecy, bool) {
        let Self { is_secret, is_named } = self;
        if is_secret && matches!(key, "data" | "stringData") {
            return (Secrecy::Part, false);
        }
        (secrecy.below(key, is_named), is_named && key == "source")
    }
}

/// Returns whether an item of a list is the value of the secret flag before it: `["--token", "…"]`.
pub(crate) fn is_secret_argument(items: &[Value], at: usize) -> bool {
    let argument = |at: usize| items.get(at).and_then(Value::as_str);
    let is_after_flag = at.checked_sub(1).and_then(argument).is_some_and(is_secret_flag);
    is_after_flag && !argument(at).is_some_and(|argument| argument.starts_with("--"))
}

/// Returns whether a number has enough digits for a secret value.
pub(crate) fn can_be_secret(number: &Number) -> bool {
    digits(number).len() >= SHORTEST
}

/// Returns the digits of a number.
pub(super) fn digits(number: &Number) -> String {
    number.to_string().trim_start_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masking::hints::may_name_a_secret;

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
            "accessKey",
            "DB_PWD",
            "door-pin",
            // The names of these variables look secret, but their values are not.
            "TOKENIZER_OFF",
        ] {
            assert!(is_secret(name), "{name}");
        }
        let counts = ["MEMORY_SHORT_TERM_TOKEN_BUDGET", "tokenBudget", "TOKEN_LIMIT", "LLM_MAX_TOKENS", "token_count"];
        let more = ["maxTokens", "num_output_tokens", "automountServiceAccountToken", "PWD", "topologyKey", "spinner"];
        for name in ["MONKEY", "KEYBOARD", "LOG_LEVEL", "MODEL_API_URL"].into_iter().chain(counts).chain(more) {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn a_text_with_a_name_of_a_secret_may_name_a_secret() {
        for name in PARTS.into_iter().chain(JOINED).chain(WORDS).chain(CONNECTIONS).chain([PWD]) {
            assert!(may_name_a_secret(&format!("the {}: x", name.to_ascii_lowercase())), "{name}");
        }
    }

    #[test]
    fn a_flag_and_a_reference_are_told_apart_from_values() {
        for flag in ["--token", "-api-key", "--db.password"] {
            assert!(is_secret_flag(flag), "{flag}");
        }
        for other in ["token", "--token=x", "--verbose", "--secretName", "--token x", "--"] {
            assert!(!is_secret_flag(other), "{other}");
        }
        for plain in ["", "true", "$(OTHER)", "${OTHER_2}"] {
            assert!(is_plain(plain), "{plain}");
        }
        for secret in ["$(a b)", "$x", "x", "truer"] {
            assert!(!is_plain(secret), "{secret}");
        }
    }
}
