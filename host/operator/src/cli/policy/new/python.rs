//! Creates the files of a new project in Python. The template is in `guest-policies/template/python`.

use super::files::{Files, Names, definition, named};
use crate::cli::policy::build::wit::CONTRACT;

/// Embeds files of the library.
macro_rules! library {
    ($($path:literal),* $(,)?) => {
        [$((concat!("kaos/", $path), include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/python/kaos/", $path)))),*]
    };
}

/// The files of the library.
const LIBRARY: [(&str, &str); 11] = library![
    "__init__.py",
    "answers.py",
    "env.py",
    "merge.py",
    "merge_table.py",
    "need.py",
    "patch.py",
    "quote.py",
    "refusal.py",
    "seen.py",
    "testing.py",
];

/// Returns the files of a project that starts from the template.
pub(super) fn from_template(names: &Names<'_>) -> Files {
    let mut files = Files::from(
        [
            ("README.md", include_str!("project/README-python.md")),
            (".github/workflows/policy.yml", include_str!("project/ci-python.yml")),
            ("app.py", template!("python/app.py")),
            ("build.sh", template!("python/build.sh")),
            ("policy.py", template!("python/policy.py")),
            ("policy.yaml", template!("policy.yaml")),
            ("settings.schema.json", template!("settings.schema.json")),
            ("test.sh", template!("python/test.sh")),
            ("tests/test_policy.py", template!("python/tests/test_policy.py")),
            ("translation.py", template!("python/translation.py")),
        ]
        .map(|(path, text)| (path.to_owned(), named(text, names))),
    );
    files.extend(
        [
            (".gitignore", "/bindings\n/*.wasm\n__pycache__\n"),
            ("kaos_export.py", template!("python/kaos_export.py")),
            ("requirements.txt", template!("python/requirements.txt")),
            ("wit/policy.wit", CONTRACT),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned())),
    );
    files.extend(LIBRARY.map(|(path, text)| (path.to_owned(), text.to_owned())));
    files.extend(definition(names).map(|definition| ("crd.yaml".to_owned(), definition)));
    files
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn a_project_has_the_whole_library() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-policies/template/python/kaos");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let found: BTreeSet<String> =
            names.filter(|name| name != "__pycache__").map(|name| format!("kaos/{name}")).collect();
        assert_eq!(found, LIBRARY.iter().map(|(path, _)| (*path).to_owned()).collect());
    }

    #[test]
    fn the_build_tool_is_pinned_with_hashes() {
        let pins = template!("python/requirements.txt");
        assert!(pins.lines().any(|line| line == "--require-hashes"), "{pins}");
        let (pinned, hashes) = (pins.matches("==").count(), pins.matches("--hash=sha256:").count());
        assert!(pinned == 1 && hashes > 1, "{pins}");
    }

    #[test]
    fn a_new_python_project_contains_no_name_of_the_template() {
        let files = from_template(&Names { name: "red-kite", kind: "Kite", api_version: "sky.io/v2" });
        let own = files.iter().filter(|(path, _)| !path.starts_with("wit/"));
        let all: String = own.flat_map(|(_, text)| [text.as_str(), "\n"]).collect();
        for left in ["website", "Website", "WEBSITE", "example.com"] {
            assert!(!all.contains(left), "{left}: {all}");
        }
        for there in [
            "API_VERSION = \"sky.io/v2\"",
            "kaos.claim(API_VERSION, \"Kite\"",
            "\"red-kite\", \"0.1.0\"",
            "DEFAULT_RED_KITE_IMAGE",
            "-o red-kite.wasm",
            "  name: kites.sky.io\n",
        ] {
            assert!(all.contains(there), "{there}: {all}");
        }
    }
}
