//! Creates the files of a new project. The files come from a template of this repository, in which this module replaces
//! the names, or from a default policy.

use std::collections::BTreeMap;

use anyhow::Context as _;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::{sdk::Sdk, shipped::ShippedSources};
use crate::cli::policy::package_name::usual;

/// The names of the new project, which replace the names in the template.
pub(super) struct Names<'a> {
    pub(super) name: &'a str,
    pub(super) kind: &'a str,
    pub(super) api_version: &'a str,
}

/// The line of the template's `Cargo.toml` that declares the dependency on the SDK.
const NEAR: &str = "kaos-policy-sdk = { path = \"../sdk\" }";

/// The files of a project, by path.
pub(in crate::cli::policy) type Files = BTreeMap<String, String>;

/// Returns the files of a project that starts from the template.
pub(super) fn from_template(names: &Names<'_>, sdk: &Sdk) -> anyhow::Result<Files> {
    let manifest = template!("Cargo.toml").replace(NEAR, &format!("kaos-policy-sdk = {}", sdk.dependency()?));
    let mut files = surroundings(names, include_str!("project/README.md"), sdk);
    files.extend([
        ("Cargo.toml".to_owned(), named(&manifest, names) + include_str!("project/manifest.toml")),
        ("src/lib.rs".to_owned(), named(template!("src/lib.rs"), names)),
        ("tests/samples.rs".to_owned(), named(template!("tests/samples.rs"), names)),
        ("samples/plans/minimal.json".to_owned(), sorted(&named(template!("samples/plans/minimal.json"), names))?),
        ("settings.schema.json".to_owned(), named(template!("settings.schema.json"), names)),
        ("policy.yaml".to_owned(), named(template!("policy.yaml"), names)),
    ]);
    files.extend(definition(names).map(|definition| ("crd.yaml".to_owned(), definition)));
    Ok(files)
}

/// Sorts the fields of a recorded plan again. One field has the name of the policy, so a new name can break the order.
fn sorted(plan: &str) -> anyhow::Result<String> {
    let plan: Value = serde_json::from_str(plan).context("the recorded plan of the template")?;
    Ok(format!("{plan:#}\n"))
}

/// Returns the files of a project for an overlay. `kind` is the API version and the name of the only kind that the
/// overlay amends. If `kind` is `None`, the overlay amends the kinds in the template.
pub(super) fn overlay(name: &str, kind: Option<(&str, &str)>, sdk: &Sdk) -> anyhow::Result<Files> {
    let manifest = overlay_template!("Cargo.toml").replace(NEAR, &format!("kaos-policy-sdk = {}", sdk.dependency()?));
    let code = kind.map_or_else(
        || overlay_template!("src/lib.rs").to_owned(),
        |(api_version, kind)| {
            let kinds = format!("(\"{api_version}\", \"{kind}\")];\n");
            with_kinds(overlay_template!("src/lib.rs"), (KINDS, "];\n"), &kinds)
        },
    );
    let names = Names { name, kind: "", api_version: "" };
    let mut files = surroundings(&names, include_str!("project/README-overlay.md"), sdk);
    files.extend([
        ("Cargo.toml".to_owned(), overlaid(&manifest, name) + include_str!("project/manifest.toml")),
        ("src/lib.rs".to_owned(), overlaid(&code, name)),
        ("settings.schema.json".to_owned(), overlaid(overlay_template!("settings.schema.json"), name)),
        ("policy.yaml".to_owned(), overlaid(overlay_template!("policy.yaml"), name)),
    ]);
    Ok(files)
}

/// Replaces the list of kinds in the code of a template for overlays. The texts `begin` and `end` surround the old
/// items. The text `kinds` contains the new items, and then the text `end`.
pub(super) fn with_kinds(code: &str, (begin, end): (&str, &str), kinds: &str) -> String {
    let (before, listed) = code.split_once(begin).unwrap_or_default();
    let after = listed.split_once(end).map_or("", |(_, after)| after);
    format!("{before}{begin}{kinds}{after}")
}

/// The beginning of the list of kinds in the template for overlays.
const KINDS: &str = "const KINDS: &[(&str, &str)] = &[";

/// Returns the API version and the name of the kind of a default policy, from the list of kinds in the template for
/// overlays.
pub(super) fn kind_of(policy: &str) -> anyhow::Result<(&'static str, &'static str)> {
    let (_, listed) = overlay_template!("src/lib.rs").split_once(KINDS).unwrap_or_default();
    let (listed, _) = listed.split_once("];\n").unwrap_or_default();
    let mut texts = listed.split('"').skip(1).step_by(2);
    let mut kinds = Vec::new();
    while let (Some(api_version), Some(kind)) = (texts.next(), texts.next()) {
        kinds.push((api_version, kind));
    }
    let names = || kinds.iter().map(|(_, kind)| kind.to_lowercase()).collect::<Vec<_>>().join(", ");
    let found = kinds.iter().find(|(_, kind)| kind.to_lowercase() == policy);
    found
        .copied()
        .with_context(|| format!("--for {policy}: there is no default policy of this name: use one of {}", names()))
}

/// Replaces the names of the template for overlays in a text.
pub(super) fn overlaid(text: &str, name: &str) -> String {
    let word = name.replace('-', "_");
    let replaced = [
        ("DEFAULT_MIRROR_", format!("DEFAULT_{}_", word.to_uppercase())),
        // The library of an overlay gets a name like the library of a policy, so that the build commands of both are
        // the same.
        ("mirror-overlay", format!("{name}-policy")),
        ("mirror overlay", format!("{name} overlay")),
        ("\"mirror\"", format!("\"{name}\"")),
        ("'mirror'", format!("'{name}'")),
        ("policy-mirror", usual(name)),
        ("# mirror:", format!("# {name}:")),
        ("remove mirror", format!("remove {name}")),
        ("--set mirror.", format!("--set {name}.")),
        ("example:mirror", format!("example:{name}")),
    ];
    replace(text, &replaced)
}

/// The paragraph of the README about settings, if the project has the name of its default policy.
const SETTINGS_APPLY: &str = "\
The policy has the name of the default policy, so presets and all settings for the default policy apply to this policy
too. The unchanged policy makes the same manifests.
";
/// The paragraph of the README about settings, if the project has another name.
const SETTINGS_DO_NOT_APPLY: &str = "\
Presets and settings for the default policy do not apply to this policy, because its name differs. Without such settings,
the unchanged policy makes the same manifests. To keep the settings, run `policy new` again without the name `website`.
";

/// Returns the files of a project that starts from a default policy.
pub(super) fn from_shipped(shipped: &ShippedSources, name: &str, sdk: &Sdk) -> anyhow::Result<Files> {
    let names = Names { name, kind: "", api_version: "" };
    let settings = if shipped.name() == name { SETTINGS_APPLY } else { SETTINGS_DO_NOT_APPLY };
    let readme = include_str!("project/README-from.md").replace("SETTINGS\n", settings);
    let mut files = surroundings(&names, &readme, sdk);
    files.extend(shipped.project(name, sdk)?);
    if let Some(manifest) = files.get_mut("Cargo.toml") {
        *manifest += include_str!("project/manifest.toml");
    }
    Ok(files)
}

/// Returns the files that every project has.
fn surroundings(names: &Names<'_>, readme: &str, sdk: &Sdk) -> Files {
    Files::from([
        ("README.md".to_owned(), named(readme, names) + sdk.caution()),
        (".cargo/config.toml".to_owned(), include_str!("project/config.toml").to_owned()),
        (".github/workflows/policy.yml".to_owned(), named(include_str!("project/ci.yml"), names)),
        ("rustfmt.toml".to_owned(), include_str!("project/rustfmt.toml").to_owned()),
        (".gitignore".to_owned(), "/target\n/*.wasm\n".to_owned()),
    ])
}

/// Returns the CRD of the kind. Returns `None` for kinds of the default policies, because their CRDs come with the
/// operator.
pub(super) fn definition(names: &Names<'_>) -> Option<String> {
    let (group, version) = names.api_version.split_once('/')?;
    if group == kaos_crds::GROUP {
        return None;
    }
    // `policy pack` derives the plural for its rights in the same way.
    let plural = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, names.kind)).plural;
    let replaced = [
        ("kind Website", format!("kind {}", names.kind)),
        ("\"Website\"", names.kind.to_owned()),
        ("websites", plural),
        ("website", names.kind.to_lowercase()),
        ("example.com", group.to_owned()),
        ("name: v1", format!("name: {version}")),
    ];
    Some(replace(template!("crd.yaml"), &replaced))
}

/// The flag of `policy conform` in the CI files. Only a project with a CRD has this flag.
const CRDS: &str = " --crds crd.yaml";

/// Replaces the names of the template in a text. The Rust type of the policy gets the suffix `Policy`, because the name
/// of the kind may already be a Rust name.
pub(super) fn named(text: &str, names: &Names<'_>) -> String {
    let Names { name, kind, api_version } = names;
    let word = name.replace('-', "_");
    let policy = format!("{kind}Policy");
    let crds = if definition(names).is_some() { CRDS } else { "" };
    let replaced = [
        (CRDS, crds.to_owned()),
        ("--tag VERSION", concat!("--tag v", env!("CARGO_PKG_VERSION")).to_owned()),
        ("DEFAULT_WEBSITE_", format!("DEFAULT_{}_", word.to_uppercase())),
        ("\"Website\"", format!("\"{kind}\"")),
        ("'Website'", format!("'{kind}'")),
        ("kind: Website", format!("kind: {kind}")),
        ("`Website`", format!("`{kind}`")),
        ("each Website ", format!("each {kind} ")),
        ("of a Website", format!("of a {kind}")),
        ("Website", policy),
        ("website(", "example(".to_owned()),
        ("website}", "example}".to_owned()),
        ("website_policy", format!("{word}_policy")),
        ("policy-website", usual(name)),
        ("website", (*name).to_owned()),
        ("example.com/v1", (*api_version).to_owned()),
    ];
    replace(text, &replaced)
}

/// Replaces texts. Protects each inserted text from later replacements, because a name may contain another name.
fn replace(text: &str, replaced: &[(&str, String)]) -> String {
    replaced.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, &shielded(new))).replace(SHIELD, "")
}

/// A character that protects inserted text. The templates do not contain this character.
const SHIELD: char = '\u{1}';

fn shielded(text: &str) -> String {
    text.chars().flat_map(|c| [c, SHIELD]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, kind: &str) -> String {
        let names = Names { name, kind, api_version: "sky.io/v2" };
        let files = from_template(&names, &Sdk::Version("0.1.0".to_owned())).unwrap();
        files.into_iter().flat_map(|(path, text)| [path, "\n".to_owned(), text, "\n".to_owned()]).collect()
    }

    #[test]
    fn a_project_in_each_language_has_a_file_for_ci_and_its_sizes_and_costs() {
        use super::super::{go, python, script};
        let names = Names { name: "red-kite", kind: "Kite", api_version: "sky.io/v2" };
        let rust = from_template(&names, &Sdk::Version("0.1.0".to_owned())).unwrap();
        let all = [
            ("Rust", rust),
            ("Go", go::from_template(&names)),
            ("Python", python::from_template(&names)),
            ("JavaScript", script::from_template(&names)),
        ];
        for (language, files) in all {
            let ci = &files[".github/workflows/policy.yml"];
            for there in ["kaos-operator policy pack", "red-kite.yaml", "-o junit >conform.xml", "--crds crd.yaml"] {
                assert!(ci.contains(there), "{language}: no {there}: {ci}");
            }
            let tag = concat!("--tag v", env!("CARGO_PKG_VERSION"), " ");
            assert!(ci.contains(tag), "{language}: {ci}");
            for action in ci.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action) {
                let (_, commit) = action.split_once('@').unwrap_or_default();
                let (commit, version) = commit.split_once(" # v").unwrap_or_default();
                let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(is_commit && !version.is_empty(), "{language}: a tag can move, a commit cannot: {action}");
            }
            let readme = &files["README.md"];
            for figure in ["size of the component or script", "fuel of a pass, of 500 million", "memory of a pass"] {
                assert!(readme.contains(figure), "{language}: no {figure}");
            }
        }
    }

    #[test]
    fn every_text_has_the_same_table_of_sizes_and_costs() {
        let costs = include_str!("project/costs.md");
        for text in [
            include_str!("project/README.md"),
            include_str!("project/README-go.md"),
            include_str!("project/README-python.md"),
            template!("javascript/README.md"),
            include_str!("../../../../../../docs/guide/writing-policies-in-go.md"),
        ] {
            assert!(text.contains(costs), "write the table of project/costs.md into this text:\n{text}");
        }
    }

    #[test]
    fn a_new_project_contains_no_name_of_the_template() {
        let all = made("red-kite", "Kite");
        for left in ["website", "Website", "WEBSITE", "example.com", "../sdk", "\u{1}", "kite("] {
            assert!(!all.contains(left), "{left}: {all}");
        }
        for there in [
            "name = \"red-kite-policy\"",
            "kaos-policy-sdk = { version = \"0.1.0\" }",
            "pub struct KitePolicy;",
            "export_policy!(KitePolicy)",
            "need::resource_type(API_VERSION, \"Kite\")",
            "const API_VERSION: &str = \"sky.io/v2\"",
            "name: \"red-kite\".to_owned()",
            "DEFAULT_RED_KITE_IMAGE",
            "release/red_kite_policy.wasm -o red-kite.wasm",
            "  name: kites.sky.io\n",
            "    kind: Kite\n    plural: kites\n    singular: kite\n",
            "    - name: v2\n",
        ] {
            assert!(all.contains(there), "{there}: {all}");
        }
    }

    #[test]
    fn a_project_for_an_overlay_has_its_own_name_and_kinds() {
        let all = |kind: Option<(&str, &str)>| -> String {
            let files = overlay("red-hat", kind, &Sdk::Version("0.1.0".to_owned())).unwrap();
            files.into_iter().flat_map(|(path, text)| [path, "\n".to_owned(), text, "\n".to_owned()]).collect()
        };
        let default = all(None);
        for left in ["\"mirror\"", "mirror-overlay", "MIRROR", "website", "../sdk", "\u{1}"] {
            assert!(!default.contains(left), "{left}: {default}");
        }
        for there in [
            "name = \"red-hat-policy\"",
            "name: \"red-hat\".to_owned()",
            "(\"kaos.tools/v1alpha1\", \"ModelAPI\")",
            "DEFAULT_RED_HAT_REGISTRY",
            "release/red_hat_policy.wasm -o red-hat.wasm",
            "export_overlay!(Mirror)",
        ] {
            assert!(default.contains(there), "{there}: {default}");
        }
        let one = all(Some(("sky.io/v2", "Kite")));
        assert!(one.contains("&[(\"sky.io/v2\", \"Kite\")];") && !one.contains("ModelAPI"), "{one}");
    }

    #[test]
    fn the_version_occurs_in_one_file() {
        let names = Names { name: "red-kite", kind: "Kite", api_version: "sky.io/v2" };
        let files = from_template(&names, &Sdk::Version("0.1.0".to_owned())).unwrap();
        let text = |wanted: &str| files[wanted].clone();
        let file = kaos_policy::manifest::PolicyFile::parse(&text("policy.yaml")).unwrap();
        assert_eq!((file.name, file.version), (None, None));
        assert!(text("Cargo.toml").contains("version = \"0.1.0\""));
    }

    #[test]
    fn every_rust_project_has_the_format_of_the_templates() {
        let sdk = Sdk::Version("0.1.0".to_owned());
        let names = Names { name: "red-kite", kind: "Kite", api_version: "sky.io/v2" };
        let agent = from_shipped(&ShippedSources::named("agent").unwrap(), "red-kite", &sdk).unwrap();
        for files in [from_template(&names, &sdk).unwrap(), overlay("red-hat", None, &sdk).unwrap(), agent] {
            assert_eq!(files["rustfmt.toml"], include_str!("../../../../../../rustfmt.toml"));
        }
    }

    #[test]
    fn the_recorded_plan_has_the_names_of_the_project_in_the_order_of_the_sdk() {
        for (name, first) in [("red-kite", "app"), ("aaa", "aaa")] {
            let names = Names { name, kind: "Kite", api_version: "sky.io/v2" };
            let files = from_template(&names, &Sdk::Version("0.1.0".to_owned())).unwrap();
            let (_, labels) = files["samples/plans/minimal.json"].split_once("\"labels\": {").unwrap();
            assert!(labels.trim_start().starts_with(&format!("\"{first}\"")), "{labels}");
            assert!(labels.contains(&format!("\"{name}\": \"blog\"")), "{labels}");
        }
    }

    #[test]
    fn a_project_for_a_kind_of_the_operator_has_no_crd() {
        let names = Names { name: "own-agents", kind: "Agent", api_version: "kaos.tools/v1alpha1" };
        let files = from_template(&names, &Sdk::Version("0.1.0".to_owned())).unwrap();
        assert!(!files.contains_key("crd.yaml"));
    }

    #[test]
    fn names_that_contain_template_names_or_rust_keywords_work() {
        let all = made("website-two", "Website");
        assert!(all.contains("name = \"website-two-policy\"") && !all.contains("two-two"), "{all}");
        let all = made("policy", "Policy");
        assert!(all.contains("impl Policy for PolicyPolicy"), "{all}");
    }
}
