//! Masks secret values wherever they appear. To mask only fields with secret names is not enough: a policy can copy a
//! secret value into a field with another name.

use std::collections::BTreeSet;

use kaos_policy::render::Rendered;
use serde_json::Value;

use super::{
    collected::{Collected, DEEPEST},
    encoded,
    hidden::{MASK, SHORTEST},
    hints::may_name_a_secret,
    names::{Names, Secrecy, digits, is_plain, is_secret_argument},
    scan::secret_parts,
    structure::Structure,
};

/// Masks the secret values of some objects wherever they appear, and all values of fields with secret names.
#[derive(Debug, Default)]
pub struct Masks {
    /// The secret values and their encoded forms. The longest is first, because a value can contain a shorter value.
    values: Vec<String>,
    /// Short secret values. The module masks them only as whole words.
    words: BTreeSet<String>,
}

/// The value that replaces a secret number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// The mask.
    Text,
    /// A zero, so that the value keeps its type.
    Zero,
}

/// One walk through a value.
struct Run<'a> {
    masks: &'a Masks,
    numbers: Numbers,
    depth: usize,
    found: &'a mut dyn FnMut(&str),
}

impl Masks {
    /// Collects the secret values of these objects.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut collected = Collected::default();
        for object in objects {
            collected.walk(object, Secrecy::Open, false, 0);
        }
        let Collected { values, words } = collected;
        let forms: Vec<String> = values.iter().flat_map(|value| encoded::forms(value)).collect();
        let mut values: Vec<String> = values.into_iter().chain(forms).collect();
        values.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        values.dedup();
        Self { values, words }
    }

    /// Collects the secret values in the inputs and the plan of a pass.
    pub(crate) fn of_pass(rendered: &Rendered) -> Self {
        let object: Value = serde_json::from_str(&rendered.subject().object).unwrap_or_default();
        let found = rendered.found_objects();
        let settings = rendered.settings.iter().map(|settings| settings.tree());
        Self::of([&object].into_iter().chain(&found).chain(settings).chain(rendered.manifests()))
    }

    /// Masks the secret values in a text.
    pub fn text(&self, text: &str) -> String {
        self.in_text(text, Numbers::Text, 0)
    }

    /// Returns a copy of a value to show to people, with its secret values masked. The mask of a secret number is a
    /// text.
    pub fn value(&self, value: &Value) -> Value {
        self.below(value, Secrecy::Open)
    }

    /// Like [`value`](Self::value), but the caller knows the secrecy of the whole value from its field's name.
    pub(crate) fn below(&self, value: &Value, secrecy: Secrecy) -> Value {
        let mut value = value.clone();
        let mut run = Run { masks: self, numbers: Numbers::Text, depth: 0, found: &mut |_: &str| {} };
        run.value(&mut value, secrecy, "", false);
        value
    }

    /// Masks a value in place, and keeps the types of its fields. Calls `found` with the path of each masked value.
    pub(crate) fn mask(&self, value: &mut Value, path: &str, found: &mut dyn FnMut(&str)) {
        Run { masks: self, numbers: Numbers::Zero, depth: 0, found }.value(value, Secrecy::Open, path, false);
    }

    fn in_text(&self, text: &str, numbers: Numbers, depth: usize) -> String {
        let mut shown = text.to_owned();
        let is_suspect = may_name_a_secret(text);
        let knows = self.values.iter().any(|value| text.contains(value.as_str())) || self.knows_word(text);
        let structure = if is_suspect || knows { Structure::of(text) } else { None };
        let is_structure = structure.is_some();
        if let Some(structure) = structure {
            if depth >= DEEPEST {
                return MASK.to_owned();
            }
            let mut masked = structure.clone();
            for document in &mut masked.documents {
                let mut run = Run { masks: self, numbers, depth: depth + 1, found: &mut |_: &str| {} };
                run.value(document, Secrecy::Open, "", false);
            }
            if masked != structure {
                shown = masked.text().unwrap_or_else(|| MASK.to_owned());
            }
        }
        if knows {
            for value in self.values.iter().filter(|value| text.contains(value.as_str())) {
                shown = shown.replace(value.as_str(), MASK);
            }
            shown = self.without_words(&shown);
        }
        if is_suspect {
            shown = without(&shown, secret_parts(&shown, !is_structure));
        }
        self.without_encoded(shown, depth)
    }

    /// Masks the base64 parts of a text whose decoded text contains secrets.
    fn without_encoded(&self, text: String, depth: usize) -> String {
        let parts = encoded::parts(&text).into_iter();
        let is_secret = |decoded: &str| depth >= DEEPEST || self.in_text(decoded, Numbers::Text, depth + 1) != decoded;
        let secret: Vec<_> = parts.filter(|(_, decoded)| is_secret(decoded)).map(|(range, _)| range).collect();
        if secret.is_empty() { text } else { without(&text, secret) }
    }

    fn knows_word(&self, text: &str) -> bool {
        !self.words.is_empty() && words(text).any(|(_, word)| self.words.contains(word))
    }

    fn without_words(&self, text: &str) -> String {
        let secret = words(text).filter(|(_, word)| self.words.contains(*word));
        without(text, secret.map(|(at, word)| at..at + word.len()).collect())
    }

    /// Returns whether a number is a secret value.
    fn knows_number(&self, digits: &str) -> bool {
        digits.len() >= SHORTEST && self.values.iter().any(|value| value == digits)
    }
}

impl Run<'_> {
    fn value(&mut self, value: &mut Value, secrecy: Secrecy, path: &str, is_variable: bool) {
        match value {
            Value::String(text) => {
                let is_hidden = secrecy.hides_texts() && !is_plain(text);
                let shown =
                    if is_hidden { MASK.to_owned() } else { self.masks.in_text(text, self.numbers, self.depth) };
                if shown != *text {
                    (self.found)(path);
                    *text = shown;
                }
            }
            Value::Number(number) => {
                let digits = digits(number);
                let is_hidden = secrecy.hides_number(digits.len()) || self.masks.knows_number(&digits);
                if is_hidden && number.as_f64() != Some(0.0) {
                    (self.found)(path);
                    *value = match self.numbers {
                        Numbers::Text => MASK.into(),
                        Numbers::Zero => 0.into(),
                    };
                }
            }
            Value::Array(items) => {
                let arguments: Vec<bool> = (0..items.len()).map(|at| is_secret_argument(items, at)).collect();
                for (at, (item, is_argument)) in items.iter_mut().zip(arguments).enumerate() {
                    let secrecy = if is_argument { Secrecy::Whole } else { secrecy };
                    self.value(item, secrecy, &format!("{path}[{at}]"), false);
                }
            }
            Value::Object(fields) => {
                let names = Names::of(fields, is_variable);
                let mut renamed = Vec::new();
                for (key, value) in fields.iter_mut() {
                    let (secrecy, is_variable) = names.below(secrecy, key);
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    self.value(value, secrecy, &path, is_variable);
                    if is_secret_in_key(self.masks, key) {
                        renamed.push(key.clone());
                    }
                }
                for key in renamed {
                    let Some(value) = fields.remove(&key) else { continue };
                    (self.found)(path);
                    let mut shown = self.masks.in_text(&key, Numbers::Text, self.depth);
                    while fields.contains_key(&shown) {
                        shown.push('*');
                    }
                    fields.insert(shown, value);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// Returns whether a key contains a secret value. Returns false for a key that consists only of letters. Such a key is
/// probably a field name of a schema, even if a password is the same word.
fn is_secret_in_key(masks: &Masks, key: &str) -> bool {
    let is_word = key.bytes().all(|byte| byte.is_ascii_alphabetic());
    !is_word && masks.in_text(key, Numbers::Text, 0) != key
}

/// Returns the words of a text with their positions.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(|c: char| !c.is_alphanumeric()).map(move |piece| {
        let start = at;
        at += piece.len();
        (start, piece.trim_end_matches(|c: char| !c.is_alphanumeric()))
    })
}

/// Replaces parts of a text by the mask. Keeps quotes around a part, so that JSON stays JSON.
fn without(text: &str, parts: Vec<std::ops::Range<usize>>) -> String {
    let (mut shown, mut at) = (String::new(), 0);
    for part in parts {
        shown += &text[at..part.start];
        let secret = &text[part.clone()];
        let inner = secret.trim_start_matches('\\');
        let opening = secret.len() - inner.len() + usize::from(inner.starts_with(['"', '\'', '`']));
        let quote = &secret[..opening];
        let is_quoted = inner.len() < secret.len() || opening > 0;
        if is_quoted && secret.len() >= 2 * opening && secret.ends_with(quote) {
            shown += &format!("{quote}{MASK}{quote}");
        } else {
            shown += MASK;
        }
        at = part.end;
    }
    shown + &text[at..]
}
