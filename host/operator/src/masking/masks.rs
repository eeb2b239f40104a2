//! Masks secret values wherever they appear. Masking only fields with secret names would not suffice: a policy can copy
//! a secret value into a field with another name.

use std::collections::BTreeSet;

use kaos_policy::render::Rendered;
use serde_json::{Number, Value};

use super::{
    encoded,
    hidden::{MASK, SHORTEST},
    names::{Secrecy, is_plain, is_secret, is_secret_flag},
    scan::secret_parts,
    structure::Structure,
};

/// The minimum length of a secret value, in bytes, that the module masks as a whole word of other texts. The value must
/// consist of ASCII letters and digits, with at least one digit.
const SHORTEST_WORD: usize = 3;
/// If a secret value has several lines, the module also masks each single line with at least this many bytes.
const SHORTEST_LINE: usize = 8;
/// The maximum depth of texts within texts, such as JSON in YAML in base64.
const DEEPEST: usize = 4;
/// Parts of texts in lower case, for a quick check: a text without these parts names no secret value.
const HINTS: [&str; 19] = [
    "passw",
    "passp",
    "passc",
    "pwd",
    "secret",
    "token",
    "credential",
    "key",
    "private",
    "authorization",
    "cookie",
    "bearer",
    "basic ",
    "pin",
    "jwt",
    "://",
    "database_url",
    "connection_string",
    "dsn",
];

/// Masks the secret values of some objects, and all values with secret names.
#[derive(Debug, Default)]
pub struct Masks {
    /// The secret values and their encoded forms. The longest is first, because a value can contain a shorter value.
    values: Vec<String>,
    /// Short secret values. The module masks them only as whole words.
    words: BTreeSet<String>,
}

/// The replacement of a secret number.
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

    /// Collects the secret values of the inputs and of the plan of a pass.
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

    /// Returns a value with its secret values masked, for people. Secret numbers become texts.
    pub fn value(&self, value: &Value) -> Value {
        self.below(value, Secrecy::Open)
    }

    /// Like [`value`](Self::value), for a value with this secrecy.
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

    /// Masks the parts of a text that contain another text with secrets in base64.
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

/// Returns whether an item of a list is the value of the secret flag before it: `["--token", "…"]`.
pub(crate) fn is_secret_argument(items: &[Value], at: usize) -> bool {
    let argument = |at: usize| items.get(at).and_then(Value::as_str);
    let is_after_flag = at.checked_sub(1).and_then(argument).is_some_and(is_secret_flag);
    is_after_flag && !argument(at).is_some_and(|argument| argument.starts_with("--"))
}

/// The facts about an object's fields that decide whether other fields are secret.
#[derive(Debug, Clone, Copy)]
struct Names {
    /// Whether the object is a Secret.
    is_secret: bool,
    /// Whether the object is a variable, or its field `name` or `key` contains a secret name.
    is_named: bool,
}

impl Names {
    fn of(fields: &serde_json::Map<String, Value>, is_variable: bool) -> Self {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            is_secret: text("kind") == "Secret",
            is_named: is_variable || ["name", "key"].iter().any(|field| is_secret(text(field))),
        }
    }

    /// Returns the secrecy of the value of a key. Also returns whether this value is the `source` of a variable with a
    /// secret name.
    fn below(self, secrecy: Secrecy, key: &str) -> (Secrecy, bool) {
        let Self { is_secret, is_named } = self;
        if is_secret && matches!(key, "data" | "stringData") {
            return (Secrecy::Part, false);
        }
        (secrecy.below(key, is_named), is_named && key == "source")
    }
}

/// The secret values that the module has found so far.
#[derive(Debug, Default)]
struct Collected {
    values: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl Collected {
    fn walk(&mut self, value: &Value, secrecy: Secrecy, is_variable: bool, depth: usize) {
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

    /// Adds a secret part of a text. If the part consists of several pieces, also adds the secret piece alone.
    fn add_part(&mut self, part: &str) {
        let part = part.trim().trim_matches(['"', '\'', '`', ',', '\\']);
        self.add(part);
        // Such parts are `user:password` and `Bearer token`.
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

/// Returns the digits of a number.
fn digits(number: &Number) -> String {
    number.to_string().trim_start_matches('-').to_owned()
}

/// Returns whether a text can name a secret value. The check is quick, and can return true for other texts.
fn may_name_a_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    HINTS.iter().any(|hint| text.contains(hint))
}
