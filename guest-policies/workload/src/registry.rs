//! A registry contains named entries, in the YAML text of a ConfigMap. An object chooses one entry.
//!
//! The policy decodes only the chosen entry, so an invalid field in another entry has no effect. All values are texts,
//! with or without quotes, even `8000`. Each policy decides what an entry means, and what to do without a registry.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use kaos_policy_sdk::{Decode, Path, decode, yaml};
use serde_json::{Map, Value};

/// The key below which a registry lists its entries.
const RUNTIMES: &str = "runtimes";

/// The maximum size of a registry in bytes. The policy does not parse a longer text, because parsing takes much fuel.
const READ: usize = 150_000;

/// The entries of a registry, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry(Map<String, Value>);

impl Registry {
    /// Parses the entries below `runtimes` in `text`. Returns an error with the reason if the text is not a registry.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > READ {
            return Err(format!(
                "it has {bytes} bytes, but the limit is {READ}: remove unused entries",
                bytes = text.len()
            ));
        }
        let fields = match yaml::parse_texts(text).map_err(|error| error.to_string())? {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => return Err(format!("it must be a mapping with the key {RUNTIMES}")),
        };
        match fields.get(RUNTIMES) {
            Some(Value::Object(entries)) => Ok(Self(entries.clone())),
            Some(Value::Null) => Ok(Self::default()),
            Some(_) => Err(format!("{RUNTIMES} must be a mapping from names to entries")),
            // If the key `runtimes` is missing, the entries are at the top level.
            None => Ok(Self(fields)),
        }
    }

    /// Returns the sorted names of all entries.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Returns the entry `name`, or an error if the entry cannot be decoded. Returns `None` if the entry does not
    /// exist.
    pub fn entry<T: Decode>(&self, name: &str) -> Option<Result<T, String>> {
        // If a name has no value, the entry is empty.
        let nothing = Value::Object(Map::new());
        let entry = self.0.get(name).map(|entry| if entry.is_null() { &nothing } else { entry })?;
        Some(decode(entry).map_err(|error| {
            let path = error.path().under(Path::new(RUNTIMES).key(name).as_str());
            format!("{path}: {}", error.message())
        }))
    }
}

impl From<&Map<String, Value>> for Registry {
    fn from(entries: &Map<String, Value>) -> Self {
        Self(entries.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::Registry;
    use kaos_policy_sdk::Decode;

    #[derive(Debug, Default, PartialEq, Decode)]
    #[serde(default)]
    struct Entry {
        image: String,
        command: Option<Vec<String>>,
    }

    fn entry(text: &str, name: &str) -> Entry {
        Registry::parse(text).unwrap().entry(name).unwrap().unwrap()
    }

    fn image(text: &str, name: &str) -> Option<Result<String, String>> {
        Registry::parse(text).unwrap().entry::<Entry>(name).map(|read| read.map(|entry| entry.image))
    }

    #[test]
    fn an_entry_is_read_in_every_style_of_yaml() {
        for text in
            ["runtimes:\n  a:\n    image: x:1 # one\n", "runtimes: {a: {image: 'x:1'}}", "a:\n  image: >-\n    x:1\n"]
        {
            assert_eq!(image(text, "a"), Some(Ok("x:1".to_owned())), "{text}");
            assert_eq!(image(text, "b"), None, "{text}");
        }
        assert!(Registry::parse("").unwrap().names().is_empty());
        assert!(Registry::parse("runtimes:\nother: {}").unwrap().names().is_empty());
    }

    #[test]
    fn an_error_in_one_entry_affects_no_other() {
        let text = "runtimes:\n  bad: {image: [1]}\n  good: {image: i, command: null}\n  empty:\n";
        let message = image(text, "bad").unwrap().unwrap_err();
        assert!(message.starts_with("runtimes.bad.image: "), "{message}");
        assert_eq!(image(text, "good"), Some(Ok("i".to_owned())));
        assert_eq!(image(text, "empty"), Some(Ok(String::new())));
    }

    #[test]
    fn unquoted_numbers_are_read_as_their_text() {
        let read = entry("a: {image: 1.10, command: [--port, 8000, true, no, '1']}", "a");
        assert_eq!(read.image, "1.10");
        assert_eq!(read.command.unwrap(), ["--port", "8000", "true", "no", "1"]);
    }

    #[test]
    fn the_error_for_a_too_long_registry_gives_the_maximum() {
        let long = |length: usize| format!("a: {{}}\n#{}\n", "x".repeat(length));
        assert!(Registry::parse(&long(149_990)).is_ok());
        let message = Registry::parse(&long(150_000)).unwrap_err();
        assert!(message.starts_with("it has 150008 bytes, but the limit is 150000: "), "{message}");
    }

    #[test]
    fn a_text_that_is_no_registry_is_reported() {
        for text in ["runtimes: [", "runtimes: [a]", "- a", "text"] {
            assert!(Registry::parse(text).is_err(), "{text}");
        }
    }
}
