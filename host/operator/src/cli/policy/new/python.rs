//! Creates the files of a new project in Python. The templates are in `guest-policies/template/python` and
//! `guest-policies/overlay-template/python`.

use super::files::{Files, Names, definition, named, overlaid, with_kinds};
use crate::cli::policy::build::wit::CONTRACT;

/// Embeds files of the library.
macro_rules! library {
    ($($path:literal),* $(,)?) => {
        [$((concat!("kaos/", $path), include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template/python/kaos/", $path)))),*]
    };
}

/// The files of the library.
const LIBRARY: [(&str, &str); 12] = library![
    "__init__.py",
    "amend.py",
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
    files.extend(shared());
    files.extend(definition(names).map(|definition| ("crd.yaml".to_owned(), definition)));
    files
}

/// Returns the files that do not contain the name of the project.
fn shared() -> Files {
    let mut files = Files::from(
        [
            (".gitignore", "/bindings\n/*.wasm\n__pycache__\n"),
            ("app.py", template!("python/app.py")),
            ("kaos_export.py", template!("python/kaos_export.py")),
            ("requirements.txt", template!("python/requirements.txt")),
            ("wit/policy.wit", CONTRACT),
        ]
        .map(|(path, text)| (path.to_owned(), text.to_owned())),
    );
    files.extend(LIBRARY.map(|(path, text)| (path.to_owned(), text.to_owned())));
    files
}

/// The beginning and the end of the list of kinds in the template for overlays.
const KINDS: (&str, &str) = ("KINDS = [", "]\n");
/// The flags with which the scripts of the template name the WIT world. An overlay has another world.
const WORLD: [&str; 2] = ["-w policy ", "-w overlay "];

/// Returns the files of a project for an overlay. `kind` is the API version and the name of the only kind that the
/// overlay amends. If `kind` is `None`, the overlay amends the kinds in the template.
pub(super) fn overlay(name: &str, kind: Option<(&str, &str)>) -> Files {
    let code = overlay_template!("python/policy.py");
    let code = kind.map_or_else(
        || code.to_owned(),
        |(api_version, kind)| with_kinds(code, KINDS, &format!("(\"{api_version}\", \"{kind}\")]\n")),
    );
    let names = Names { name, kind: "", api_version: "" };
    let mut files = Files::from(
        [
            ("README.md", include_str!("project/README-overlay-python.md")),
            (".github/workflows/policy.yml", include_str!("project/ci-python.yml")),
            ("build.sh", template!("python/build.sh")),
            ("test.sh", template!("python/test.sh")),
        ]
        .map(|(path, text)| (path.to_owned(), named(&text.replace(WORLD[0], WORLD[1]), &names))),
    );
    let own = [
        ("amendment.py", overlay_template!("python/amendment.py")),
        ("policy.py", &code),
        ("policy.yaml", overlay_template!("component/policy.yaml")),
        ("settings.schema.json", overlay_template!("settings.schema.json")),
        ("tests/test_policy.py", overlay_template!("python/tests/test_policy.py")),
    ];
    files.extend(own.map(|(path, text)| (path.to_owned(), overlaid(text, name))));
    files.extend(shared());
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
    fn a_project_for_an_overlay_has_its_own_name_and_kinds_and_the_world_of_overlays() {
        let all = |kind: Option<(&str, &str)>| -> String {
            let files = overlay("red-hat", kind);
            let own = files.iter().filter(|(path, _)| !path.starts_with("wit/") && !path.starts_with("kaos/"));
            own.flat_map(|(_, text)| [text.as_str(), "\n"]).collect()
        };
        let default = all(None);
        for left in ["\"mirror", "mirror-overlay", "MIRROR", "website", "--crds", "-w policy", "translation", "\u{1}"] {
            assert!(!default.contains(left), "{left}: {default}");
        }
        assert_eq!(default.matches("-w overlay ").count(), 3, "{default}");
        for there in [
            "kaos.descriptor(\"red-hat\"",
            "(\"kaos.tools/v1alpha1\", \"ModelAPI\"),",
            "DEFAULT_RED_HAT_REGISTRY",
            "-o red-hat.wasm",
            "policy remove red-hat",
        ] {
            assert!(default.contains(there), "{there}: {default}");
        }
        let one = all(Some(("sky.io/v2", "Kite")));
        assert!(one.contains("KINDS = [(\"sky.io/v2\", \"Kite\")]\n") && !one.contains("ModelAPI"), "{one}");
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
        // Leave out the contract and the library, because examples in their documentation contain `example.com`.
        let own = files.iter().filter(|(path, _)| !path.starts_with("wit/") && !path.starts_with("kaos/"));
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
