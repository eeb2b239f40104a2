//! The command that repeats a check.

use std::path::Path;

use crate::cli::program::Program;

/// The arguments of the checks.
pub(super) struct Repeat<'a> {
    pub(super) file: &'a Path,
    pub(super) crds: &'a [String],
    pub(super) filenames: &'a [String],
    pub(super) settings: Option<&'a str>,
    pub(super) seed: u64,
    pub(super) objects: u64,
}

impl Repeat<'_> {
    /// Returns the command that checks the object with this number again. Without a number, returns the command for all
    /// objects.
    pub(super) fn command(&self, only: Option<u64>) -> String {
        let Self { file, crds, filenames, settings, seed, objects } = self;
        let mut words =
            vec![format!("{} policy conform {}", Program::called().command(), quoted(&file.to_string_lossy()))];
        words.extend(crds.iter().map(|path| format!("--crds {}", quoted(path))));
        words.extend(filenames.iter().map(|path| format!("-f {}", quoted(path))));
        words.extend(settings.map(|path| format!("--settings {}", quoted(path))));
        words.push(format!("--seed {seed}"));
        words.push(only.map_or_else(|| format!("--objects {objects}"), |number| format!("--only {number}")));
        words.join(" ")
    }
}

/// Quotes a word for a shell, if the word needs quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_all_arguments_that_choose_the_object() {
        let (crds, filenames) = (["crd.yaml".to_owned()], ["my site's.yaml".to_owned()]);
        let (file, settings) = (Path::new("a.wasm"), Some("s.yaml"));
        let repeat = Repeat { file, crds: &crds, filenames: &filenames, settings, seed: 7, objects: 20 };
        let told =
            r"kaos-operator policy conform a.wasm --crds crd.yaml -f 'my site'\''s.yaml' --settings s.yaml --seed 7";
        assert_eq!(repeat.command(None), format!("{told} --objects 20"));
        assert_eq!(repeat.command(Some(12)), format!("{told} --only 12"));
    }
}
