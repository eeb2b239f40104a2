//! Collects the secret values of objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    encoded,
    hidden::{MASK, SHORTEST},
    hints::may_name_a_secret,
    names::{Names, Secrecy, digits, is_plain, is_secret_argument},
    scan::secret_parts,
    structure::Structure,
};

/// The minimum length, in bytes, of a secret value that the module masks as a whole word. Such a value is shorter than
/// [`SHORTEST`], and consists of ASCII letters and digits, with at least one digit.
const SHORTEST_WORD: usize = 3;
/// The minimum length, in bytes, of a line that the module also masks alone, if a secret value has several lines.
const SHORTEST_LINE: usize = 8;
/// The maximum number of formats around a value, such as three for JSON in YAML in base64.
pub(super) const DEEPEST: usize = 4;

/// The secret values that the module has found so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) values: BTreeSet<String>,
    /// Short secret values.
    pub(super) words: BTreeSet<String>,
}

impl Collected {
    /// Adds the secret values within a value.
    ///
    /// `secrecy` is the secrecy of this value. `depth` is the number of formats around it, such as two for JSON in
    /// YAML.
    pub(super) fn walk(&mut self, value: &Value, secrecy: Secrecy, is_variable: bool, depth: usize) {
        match value {
            Value::String(text) => {
                if secrecy.hides_texts() {
                    self.add(text);
                    self.add_decoded(text);
                }
                self.within(text, depth);
            }
            Value::Number(number) => {
                let digits = digits(number);
                if secrecy.hides_number(digits.len()) {
                    self.add(&digits);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let secrecy = if is_secret_argument(items, at) { Secrecy::Whole } else { secrecy };
                    self.walk(item, secrecy, false, depth);
                }
            }
            Value::Object(fields) => {
                let names = Names::of(fields, is_variable);
                for (key, value) in fields {
                    self.within(key, depth);
                    let (secrecy, is_variable) = names.below(secrecy, key);
                    self.walk(value, secrecy, is_variable, depth);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Adds the secret values within a text.
    fn within(&mut self, text: &str, depth: usize) {
        if may_name_a_secret(text) {
            let structure = if depth < DEEPEST { Structure::of(text) } else { None };
            let is_structure = structure.is_some();
            for document in structure.into_iter().flat_map(|structure| structure.documents) {
                self.walk(&document, Secrecy::Open, false, depth + 1);
            }
            for part in secret_parts(text, !is_structure) {
                self.add_part(&text[part]);
            }
        }
        if depth < DEEPEST {
            for (_, decoded) in encoded::parts(text) {
                self.within(&decoded, depth + 1);
            }
        }
    }

    /// Adds a secret part of a text. For `user:password` or `Bearer token`, also adds the password or the token alone.
    fn add_part(&mut self, part: &str) {
        let part = part.trim().trim_matches(['"', '\'', '`', ',', '\\']);
        self.add(part);
        for separator in [':', ' '] {
            if let Some((_, secret)) = part.split_once(separator) {
                self.add(secret);
            }
        }
    }

    /// If the text is in base64, such as the content of a Secret, adds the decoded text.
    fn add_decoded(&mut self, text: &str) {
        if let Some(decoded) = encoded::decoded(text) {
            self.add(&decoded);
        }
    }

    fn add(&mut self, value: &str) {
        let value = value.trim();
        if is_plain(value) || value.contains(MASK) {
            return;
        }
        if value.len() >= SHORTEST {
            self.values.insert(value.to_owned());
            if value.contains('\n') {
                let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
                self.values.extend(lines.map(str::to_owned));
            }
        } else if value.len() >= SHORTEST_WORD
            && value.bytes().any(|byte| byte.is_ascii_digit())
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            self.words.insert(value.to_owned());
        }
    }
}
