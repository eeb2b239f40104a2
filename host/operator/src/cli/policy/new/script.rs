//! Creates the files of a new project in JavaScript. The templates are in `guest-policies/template/javascript` and
//! `guest-policies/overlay-template/javascript`.

use super::files::{Files, Names, definition, named, overlaid, with_kinds};

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

/// The beginning of the list of kinds in the template for overlays.
const KINDS: &str = "const KINDS = [";
/// The tests of an overlay, one for each kind in the template. `kaos-operator` contains the default policies of these
/// kinds, over which the overlay applies.
const TESTS: [(&str, &str); 4] = [
    ("Agent", overlay_template!("javascript/tests/agent.yaml")),
    ("MCPServer", overlay_template!("javascript/tests/mcpserver.yaml")),
    ("MemoryStore", overlay_template!("javascript/tests/memorystore.yaml")),
    ("ModelAPI", overlay_template!("javascript/tests/modelapi.yaml")),
];

/// Returns the files of a project for an overlay. `kind` is the API version and the name of the only kind that the
/// overlay amends. If `kind` is `None`, the overlay amends the kinds in the template.
pub(super) fn overlay(name: &str, kind: Option<(&str, &str)>) -> Files {
    let code = overlay_template!("javascript/policy.js");
    let code = kind.map_or_else(
        || code.to_owned(),
        |(api_version, kind)| {
            let kinds = format!("{{ apiVersion: '{api_version}', kind: '{kind}' }}];\n");
            with_kinds(code, (KINDS, "];\n"), &kinds)
        },
    );
    let names = Names { name, kind: "", api_version: "" };
    let mut files = Files::from([
        ("README.md".to_owned(), overlaid(overlay_template!("javascript/README.md"), name)),
        (".github/workflows/policy.yml".to_owned(), named(include_str!("project/ci-javascript.yml"), &names)),
        ("kustomization.yaml".to_owned(), overlaid(overlay_template!("javascript/kustomization.yaml"), name)),
        ("policy.d.ts".to_owned(), template!("javascript/policy.d.ts").to_owned()),
        ("policy.js".to_owned(), overlaid(&code, name)),
        ("policy.yaml".to_owned(), overlaid(overlay_template!("javascript/policy.yaml"), name)),
        ("test.sh".to_owned(), named(template!("javascript/test.sh"), &names)),
    ]);
    for (own, test) in TESTS {
        if kind.is_none_or(|kind| kind == (kaos_crds::API_VERSION, own)) {
            let place = format!("tests/{}", own.to_lowercase());
            files.insert(format!("{place}.yaml"), test.to_owned());
            files
                .insert(format!("{place}.flags"), overlaid(overlay_template!("javascript/tests/registry.flags"), name));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_for_an_overlay_has_its_own_name_and_kinds() {
        let all = |kind: Option<(&str, &str)>| -> String {
            let files = overlay("red-hat", kind);
            files.into_iter().flat_map(|(path, text)| [path, "\n".to_owned(), text, "\n".to_owned()]).collect()
        };
        let default = all(None);
        for left in [
            "'mirror'",
            "# mirror",
            "policy-mirror",
            "MIRROR",
            "mirror.registry",
            "website",
            "--crds crd.yaml -o",
            "\u{1}",
        ] {
            assert!(!default.contains(left), "{left}: {default}");
        }
        for there in [
            "name: 'red-hat'",
            "{ apiVersion: 'kaos.tools/v1alpha1', kind: 'ModelAPI' },",
            "DEFAULT_RED_HAT_REGISTRY",
            "  - name: policy-red-hat\n",
            "--set red-hat.registry=",
            "policy pack policy.js >red-hat.yaml",
            "policy remove red-hat",
        ] {
            assert!(default.contains(there), "{there}: {default}");
        }
        let one = all(Some(("sky.io/v2", "Kite")));
        assert!(one.contains("const KINDS = [{ apiVersion: 'sky.io/v2', kind: 'Kite' }];"), "{one}");
        assert!(!one.contains("ModelAPI") && !one.contains("--set "), "{one}");
        let agent = overlay("red-hat", Some(("kaos.tools/v1alpha1", "Agent")));
        let tests: Vec<&str> = agent.keys().map(String::as_str).filter(|path| path.starts_with("tests/")).collect();
        assert_eq!(tests, ["tests/agent.flags", "tests/agent.yaml"]);
    }

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
