//! Generates `docs/reference/settings.md`. The page lists the settings of the default policies. The settings come from
//! the schemas that the policies return from the function `describe`.

use std::fmt::Write as _;

use anyhow::Result;
use kaos_policy::policy::Policy;
use kaos_policy::settings::Path;
use kaos_tests::policies;
use serde_json::Value;

use crate::page::{code, head, limits, prose, table};

/// The maximum length of a default in the table. The page shows longer defaults after the table.
const INLINE: usize = 60;
/// The maximum length of a regular expression on the page. The page leaves out longer expressions, because the error
/// message for a wrong value explains the rule better.
const LIMIT: usize = 60;

const PROBE: &str = "Fields have the names and meanings of a Kubernetes probe; `handler` selects the kind of the probe. \
                     Without a `port`, the probe uses the container port.\n\n";

const HEADS: [&str; 6] = ["Setting", "Type", "Default", "Variable", "Object", "Meaning"];

/// Generates the page.
pub(crate) fn page() -> Result<String> {
    let mut page = head("Settings of the default policies", "guest-policies/*/settings.schema.json");
    page += "Every literal of the default policies is a setting: images, ports, probes, timeouts, resources, security \
             contexts. The defaults are KAOS's values.\n\n\
             These layers set a setting. The first layer with a value wins:\n\n\
             1. an annotation of the object, `settings.kaos.tools/PATH: VALUE`, if the column *Object* says yes;\n\
             2. `--set` and `--settings` of `kaos-operator run`, for all objects;\n\
             3. a ConfigMap with the label `kaos.tools/policy` for the object's namespace. The ConfigMap for a \
             namespace is in the operator's namespace and lists the object's namespace in its `scope`. With \
             `--namespace-policies`, the \
             ConfigMap can also be in the object's namespace;\n\
             4. a ConfigMap with the label `kaos.tools/policy` in the operator's namespace, for the whole cluster;\n\
             5. the `policy.yaml` next to a component that `--policy` names;\n\
             6. the ConfigMap `kaos-operator-config` in the operator's namespace, which contains the chart's values, and then \
             the operator's environment, by the name in the column *Variable*;\n\
             7. the preset that the flag `--compatibility` or the chart's value `compatibility` chooses: the defaults of a \
             version of KAOS, `kaos-0.8` or `kaos-0.1`;\n\
             8. the default on this page, which equals the default of KAOS 0.1.\n\n\
             Neither a namespace nor an object can give pods more power (privileges, host namespaces): \
             [guard.md](guard.md). `kaos-operator render --env` prints the origin of each value, and \
             `kaos-operator policy plan --settings FILE --for POLICY` prints the effect of a change. \
             `kaos-operator policy plan --compatibility PRESET` prints the effect of another preset.\n\n";
    let policies = policies::native()?;
    for policy in &policies {
        let name = &policy.id().name;
        let _ = writeln!(page, "- [{name}](#{name}): {}", claims(policy));
    }
    for policy in &policies {
        let _ = writeln!(page, "\n## {}\n", policy.id().name);
        page += &of(policy);
    }
    Ok(page.trim_end().to_owned() + "\n")
}

fn claims(policy: &Policy) -> String {
    let kinds: Vec<String> =
        policy.descriptor().claims.iter().map(|claim| format!("for `{}`", claim.primary.kind)).collect();
    kinds.join(", ")
}

/// Returns a table for the settings without a group, and a table for each group.
fn of(policy: &Policy) -> String {
    let document = policy.schema().document();
    let fields = || document["properties"].as_object().into_iter().flatten();
    let mut long = Vec::new();
    let mut alone = Vec::new();
    for (name, schema) in fields().filter(|(_, schema)| schema["properties"].is_null()) {
        leaves(policy, name, schema, &mut alone, &mut long);
    }
    let mut text = table(&HEADS, &alone) + &shown(&mut long);
    for (name, schema) in fields().filter(|(_, schema)| !schema["properties"].is_null()) {
        let _ = writeln!(text, "### {name} of {}\n", policy.id().name);
        if let Some(description) = schema["description"].as_str() {
            let _ = writeln!(text, "{}\n", prose(description));
        }
        if name.ends_with("Probe") {
            text += PROBE;
        }
        let mut rows = Vec::new();
        leaves(policy, name, schema, &mut rows, &mut long);
        text += &(table(&HEADS, &rows) + &shown(&mut long));
    }
    text.trim_end().to_owned() + "\n"
}

fn leaves(policy: &Policy, path: &str, schema: &Value, rows: &mut Vec<Vec<String>>, long: &mut Vec<(String, Value)>) {
    if let Some(inner) = schema["properties"].as_object() {
        for (name, schema) in inner {
            leaves(policy, &format!("{path}.{name}"), schema, rows, long);
        }
        return;
    }
    let default = &schema["default"];
    let default = match default.to_string() {
        written if written.len() > INLINE => {
            long.push((path.to_owned(), default.clone()));
            "below".to_owned()
        }
        written => code(&written),
    };
    let at = Path::parse(path);
    let variable = policy.schema().variables().iter().find(|(_, fed)| **fed == at);
    let object = if policy.schema().annotatable(&at) { "yes" } else { "" };
    let mut meaning = schema["description"].as_str().map(prose).unwrap_or_default();
    let says_something = |limit: &String| limit.len() <= LIMIT && !limit.ends_with(&i32::MAX.to_string());
    for limit in limits(schema).into_iter().filter(says_something) {
        let _ = write!(meaning, "{}{limit}", if meaning.is_empty() { "" } else { " · " });
    }
    rows.push(vec![
        code(path),
        type_of(schema),
        default,
        variable.map(|(name, _)| code(name)).unwrap_or_default(),
        object.to_owned(),
        meaning,
    ]);
}

/// Returns the defaults that are too long for a table.
fn shown(long: &mut Vec<(String, Value)>) -> String {
    let block = |(path, value): (String, Value)| format!("The default of `{path}`:\n\n```json\n{value:#}\n```\n\n");
    long.drain(..).map(block).collect()
}

fn type_of(schema: &Value) -> String {
    let choices: Vec<String> = schema["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|one| one["enum"].as_array().cloned().unwrap_or_else(|| vec![one["const"].clone()]))
        .filter_map(|value| value.as_str().map(code))
        .collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    match &schema["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        one => one.as_str().unwrap_or("anything").to_owned(),
    }
}
