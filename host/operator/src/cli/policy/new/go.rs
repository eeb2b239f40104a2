//! Creates the files of a new project in Go. The templates are in `guest-policies/template/go` and
//! `guest-policies/overlay-template/go`, and the library is in `guest-policies/go/kaos`. The project contains a copy of
//! the library, so that the project needs no other module.

use super::files::{Files, Names, definition, named, overlaid, with_kinds};

/// Embeds files of the library.
macro_rules! library {
    ($($path:literal),* $(,)?) => {
        [$((concat!("kaos/", $path), include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/go/kaos/", $path)))),*]
    };
}

/// The files of the library, except its tests.
const LIBRARY: [(&str, &str); 32] = library![
    "amend/amend.go",
    "amend/pod.go",
    "decode.go",
    "env.go",
    "envlist.go",
    "envpod.go",
    "internal/guest/answers.go",
    "internal/guest/memory_wasip1.go",
    "internal/guest/words.go",
    "internal/wire/layout.go",
    "internal/wire/values.go",
    "json.go",
    "kaostest/defaults.go",
    "kaostest/kaostest.go",
    "names.go",
    "need.go",
    "object.go",
    "overlay/export_wasip1.go",
    "overlay/pass.go",
    "patch/list.go",
    "patch/merge.go",
    "patch/patch.go",
    "patch/table.go",
    "plan.go",
    "policy.go",
    "policy/export_wasip1.go",
    "policy/pass.go",
    "quote.go",
    "refusal.go",
    "seen.go",
    "subject.go",
    "types.go",
];

/// The name of the library in this repository.
const IN_REPOSITORY: &str = "github.com/kaos-tools/policy-operator/guest-policies/go/kaos";

/// Returns the files of the library, with their names in a project.
fn library(name: &str) -> Files {
    let library = format!("{name}-policy/kaos");
    LIBRARY.map(|(path, text)| (path.to_owned(), text.replace(IN_REPOSITORY, &library))).into_iter().collect()
}

/// Returns the files of a project that starts from the template.
pub(super) fn from_template(names: &Names<'_>) -> Files {
    let mut files = library(names.name);
    let own = [
        ("README.md", include_str!("project/README-go.md")),
        (".github/workflows/policy.yml", include_str!("project/ci-go.yml")),
        ("build.sh", template!("go/build.sh")),
        ("go.mod", template!("go/go.mod")),
        ("policy.go", template!("go/policy.go")),
        ("policy_test.go", template!("go/policy_test.go")),
        ("policy.yaml", template!("policy.yaml")),
        ("settings.schema.json", template!("settings.schema.json")),
    ];
    files.extend(own.map(|(path, text)| (path.to_owned(), named(text, names))));
    files.insert(".gitignore".to_owned(), "/*.wasm\n".to_owned());
    files.extend(definition(names).map(|definition| ("crd.yaml".to_owned(), definition)));
    files
}

/// The beginning and the end of the list of kinds in the template for overlays.
const KINDS: (&str, &str) = ("var kinds = []kaos.ResourceType{", "}\n\n");

/// Returns the files of a project for an overlay. `kind` is the API version and the name of the only kind that the
/// overlay amends. If `kind` is `None`, the overlay amends the kinds in the template.
pub(super) fn overlay(name: &str, kind: Option<(&str, &str)>) -> Files {
    let code = overlay_template!("go/policy.go");
    let code = kind.map_or_else(
        || code.to_owned(),
        |(api_version, kind)| {
            let kinds = format!("{{APIVersion: \"{api_version}\", Kind: \"{kind}\"}}}}\n\n");
            with_kinds(code, KINDS, &kinds)
        },
    );
    let names = Names { name, kind: "", api_version: "" };
    let mut files = library(name);
    let surroundings = [
        ("README.md", include_str!("project/README-overlay-go.md")),
        (".github/workflows/policy.yml", include_str!("project/ci-go.yml")),
        ("build.sh", template!("go/build.sh")),
    ];
    files.extend(surroundings.map(|(path, text)| (path.to_owned(), named(text, &names))));
    let own = [
        ("go.mod", overlay_template!("go/go.mod")),
        ("policy.go", &code),
        ("policy_test.go", overlay_template!("go/policy_test.go")),
        ("policy.yaml", overlay_template!("component/policy.yaml")),
        ("settings.schema.json", overlay_template!("settings.schema.json")),
    ];
    files.extend(own.map(|(path, text)| (path.to_owned(), overlaid(text, name))));
    files.insert(".gitignore".to_owned(), "/*.wasm\n".to_owned());
    files
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn a_new_go_project_contains_no_name_of_the_template() {
        let files = from_template(&Names { name: "red-kite", kind: "Kite", api_version: "sky.io/v2" });
        let all: String = files.values().flat_map(|text| [text.as_str(), "\n"]).collect();
        let library = "github.com/kaos-tools/policy-operator/guest-policies/go";
        for left in ["website", "Website", "WEBSITE", library] {
            assert!(!all.contains(left), "{left}: {all}");
        }
        // Leave out the library, because examples in its documentation contain `example.com`.
        let own = files.iter().filter(|(path, _)| !path.starts_with("kaos/")).map(|(_, text)| text.as_str());
        assert!(!own.collect::<String>().contains("example.com"));
        for there in [
            "module red-kite-policy\n",
            "\"red-kite-policy/kaos/policy\"",
            "\"red-kite-policy/kaos/internal/wire\"",
            "apiVersion = \"sky.io/v2\"",
            "Kind: \"Kite\"",
            "DEFAULT_RED_KITE_IMAGE",
            "-o red-kite.wasm",
            "  name: kites.sky.io\n",
        ] {
            assert!(all.contains(there), "{there}: {all}");
        }
    }

    #[test]
    fn a_project_for_an_overlay_has_its_own_name_and_kinds() {
        let all = |kind: Option<(&str, &str)>| -> String {
            overlay("red-hat", kind).values().flat_map(|text| [text.as_str(), "\n"]).collect()
        };
        let default = all(None);
        for left in ["\"mirror", "mirror-overlay", "MIRROR", "website", "--crds", "\u{1}"] {
            assert!(!default.contains(left), "{left}: {default}");
        }
        for there in [
            "module red-hat-policy\n",
            "\"red-hat-policy/kaos/overlay\"",
            "Name: \"red-hat\"",
            "Kind: \"ModelAPI\"",
            "DEFAULT_RED_HAT_REGISTRY",
            "-o red-hat.wasm",
            "policy remove red-hat",
        ] {
            assert!(default.contains(there), "{there}: {default}");
        }
        let one = all(Some(("sky.io/v2", "Kite")));
        let kinds = "var kinds = []kaos.ResourceType{{APIVersion: \"sky.io/v2\", Kind: \"Kite\"}}\n\n//go:embed";
        assert!(one.contains(kinds) && !one.contains("Kind: \"ModelAPI\""), "{one}");
    }

    #[test]
    fn a_project_has_the_whole_library() {
        fn collect(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                if path.is_dir() {
                    collect(&path, root, found);
                } else if !name.ends_with("_test.go") {
                    found.insert(name);
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guest-policies/go");
        let mut found = BTreeSet::new();
        collect(&root.join("kaos"), &root, &mut found);
        assert_eq!(found, LIBRARY.iter().map(|(path, _)| (*path).to_owned()).collect());
    }
}
