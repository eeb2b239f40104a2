//! Creates the files of a new project in JavaScript. The template is in `guest-policies/template/javascript`.

use super::files::{Files, Names, definition, named};

/// Returns the files of a project that starts from the template.
pub(super) fn from_template(names: &Names<'_>) -> Files {
    let mut files = Files::from(
        [
            ("README.md", template!("javascript/README.md")),
            (".github/workflows/policy.yml", include_str!("project/ci-javascript.yml")),
            ("kustomization.yaml", template!("javascript/kustomization.yaml")),
            ("policy.js", template!("javascript/policy.js")),
            ("policy.yaml", template!("javascript/policy.yaml")),
            ("test.sh", template!("javascript/test.sh")),
            ("tests/minimal.yaml", template!("javascript/tests/minimal.yaml")),
        ]
        .map(|(path, text)| (path.to_owned(), named(text, names))),
    );
    files.insert("policy.d.ts".to_owned(), template!("javascript/policy.d.ts").to_owned());
    files.extend(definition(names).map(|definition| ("crd.yaml".to_owned(), definition)));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_script_project_contains_no_name_of_the_template() {
        let names = Names { name: "red-kite", kind: "Kite", api_version: "sky.io/v2" };
        let files = from_template(&names);
        let all: String = files.values().flat_map(|text| [text.as_str(), "\n"]).collect();
        for left in ["website", "Website", "WEBSITE", "example.com", "KitePolicy"] {
            assert!(!all.contains(left), "{left}: {all}");
        }
        for there in [
            "name: 'red-kite'",
            "kind: 'Kite'",
            "kind: Kite\n",
            "const API_VERSION = 'sky.io/v2'",
            "DEFAULT_RED_KITE_IMAGE",
            "name: policy-red-kite\n",
            "  name: kites.sky.io\n",
        ] {
            assert!(all.contains(there), "{there}: {all}");
        }
        let own = from_template(&Names { name: "own", kind: "Agent", api_version: "kaos.tools/v1alpha1" });
        assert!(!own.contains_key("crd.yaml"));
    }
}
