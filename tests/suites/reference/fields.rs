//! Generates `docs/reference/fields.md`. The page lists every field of every kind, from the CustomResourceDefinitions.
//!
//! If a group of fields occurs several times, the page shows the group once, and links to it wherever else it occurs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::page::{code, head, limits, plain, prose, table};

/// The minimum number of fields in a group that has its own table. The page repeats a smaller group wherever it occurs,
/// because a link would be harder to read.
const WORTH_SHARING: usize = 2;

/// Generates the page.
pub(crate) fn page() -> Result<String> {
    let definitions = kaos_crds::manifests::ALL.map(serde_saphyr::from_str::<Value>);
    let definitions = definitions.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut groups = Groups::default();
    for definition in &definitions {
        groups.count(schema(definition), "");
    }
    groups.name();
    let mut page = head("Fields", "crds/generated");
    page += "The fields of each kind and of its status. `kubectl explain agent.spec` shows the same texts from a \
             cluster.\n\
             The policy of the kind decides the effect of a field. [settings.md](settings.md) has the defaults, and \
             `kaos-operator render -f FILE` prints the children of an object.\n\n";
    for definition in &definitions {
        let kind = definition["spec"]["names"]["kind"].as_str().context("a definition without a kind")?;
        let _ = writeln!(page, "- [{kind}](#{})", kind.to_lowercase());
    }
    page += "- [Shared groups of fields](#shared-groups-of-fields)\n\n";
    for definition in &definitions {
        page += &kind(definition, &groups);
    }
    page += "## Shared groups of fields\n\n";
    for (shape, title) in &groups.order {
        let group = &groups.shapes[shape];
        let _ = writeln!(page, "### {title}\n\n{}\n", used_by(&group.places));
        let mut rows = Vec::new();
        inner_rows(&group.schema, "", &groups, &mut rows);
        page += &table(&HEADS, &rows);
    }
    Ok(page.trim_end().to_owned() + "\n")
}

const HEADS: [&str; 5] = ["Field", "Type", "Default", "Meaning", "Takes"];

fn schema(definition: &Value) -> &Value {
    &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

fn kind(definition: &Value, groups: &Groups) -> String {
    let names = &definition["spec"]["names"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let short: Vec<String> = names["shortNames"].as_array().into_iter().flatten().map(|it| code(&text(it))).collect();
    let version = &definition["spec"]["versions"][0];
    let title = text(&names["kind"]);
    let mut page = format!("## {title}\n\n{}\n\n", prose(&text(&schema(definition)["description"])));
    let group = text(&definition["spec"]["group"]);
    let _ = write!(page, "`apiVersion: {group}/{}`, resource `{}`", text(&version["name"]), text(&names["plural"]));
    if !short.is_empty() {
        let _ = write!(page, ", for short {}", short.join(", "));
    }
    let columns = version["additionalPrinterColumns"].as_array().into_iter().flatten();
    let (wide, always): (Vec<_>, Vec<_>) = columns.partition(|column| column["priority"].as_i64().unwrap_or(0) > 0);
    let listed = |columns: Vec<&Value>| columns.iter().map(|it| text(&it["name"])).collect::<Vec<_>>().join(", ");
    let _ = writeln!(page, ". `kubectl get` shows {}; with `-o wide` also {}.\n", listed(always), listed(wide));
    for part in ["spec", "status"] {
        let _ = writeln!(page, "### {part} of {title}\n");
        let of = &schema(definition)["properties"][part];
        for rule in limits(of) {
            let _ = writeln!(page, "Rule: {rule}.\n");
        }
        if let Some(shared) = groups.title(of) {
            let _ = writeln!(page, "The status has the same fields in all kinds: [{shared}](#{}).\n", anchor(shared));
            continue;
        }
        let mut rows = Vec::new();
        inner_rows(of, part, groups, &mut rows);
        page += &table(&HEADS, &rows);
    }
    page
}

/// Adds a row for each field below an object.
fn inner_rows(object: &Value, path: &str, groups: &Groups, rows: &mut Vec<Vec<String>>) {
    let required: Vec<&str> = object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        row(&at, field, required.contains(&name.as_str()), groups, rows);
    }
}

fn row(path: &str, field: &Value, required: bool, groups: &Groups, rows: &mut Vec<Vec<String>>) {
    let (inner, suffix) = inner(field);
    let shared = groups.title(inner);
    let mut of = kind_of(field);
    if let Some(title) = shared {
        of = of.replacen("object", &format!("[{title}](#{})", anchor(title)), 1);
    }
    if required {
        of += ", required";
    }
    let default = field.get("default").map(|value| code(&plain(value))).unwrap_or_default();
    let mut takes = limits(field);
    if suffix == "[]" {
        takes.extend(limits(inner).into_iter().map(|limit| format!("each {limit}")));
    }
    if let Some(keys) = field["x-kubernetes-list-map-keys"].as_array() {
        let keys: Vec<String> = keys.iter().map(|key| code(&plain(key))).collect();
        takes.push(format!("no two with the same {}", keys.join(" and ")));
    }
    let meaning = prose(field["description"].as_str().unwrap_or_default());
    rows.push(vec![code(path), of, default, meaning, takes.join("; ")]);
    if shared.is_none() {
        inner_rows(inner, &format!("{path}{suffix}"), groups, rows);
    }
}

/// Returns the schema of the items of a list or a map, and the suffix that the path of an item gets.
fn inner(field: &Value) -> (&Value, &'static str) {
    match (field.get("items"), field.get("additionalProperties")) {
        (Some(items), _) => (items, "[]"),
        (None, Some(values)) if values.is_object() => (values, "{}"),
        _ => (field, ""),
    }
}

fn kind_of(field: &Value) -> String {
    if field["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match (inner(field), field["type"].as_str()) {
        ((items, "[]"), _) => format!("list of {}", kind_of(items)),
        ((values, "{}"), _) => format!("map to {}", kind_of(values)),
        (_, Some("object")) if field["x-kubernetes-preserve-unknown-fields"] == true => {
            "object, with any other field".to_owned()
        }
        (_, Some("string")) if field["format"] == "date-time" => "time".to_owned(),
        (_, Some(of)) => of.to_owned(),
        (_, None) => "anything".to_owned(),
    }
}

/// Groups of equal fields that occur several times in the CustomResourceDefinitions.
#[derive(Default)]
struct Groups {
    shapes: BTreeMap<String, Group>,
    /// The shape (see [`shape`]) and the title of each shared group, in the order of their first use.
    order: Vec<(String, String)>,
    met: Vec<String>,
}

struct Group {
    schema: Value,
    places: Vec<String>,
}

impl Groups {
    fn count(&mut self, node: &Value, path: &str) {
        let (of, suffix) = inner(node);
        if !suffix.is_empty() {
            return self.count(of, &format!("{path}{suffix}"));
        }
        let Some(fields) = node["properties"].as_object() else { return };
        if fields.len() >= WORTH_SHARING {
            let shape = shape(node);
            if let Some(known) = self.shapes.get_mut(&shape) {
                return known.places.push(path.to_owned());
            }
            self.met.push(shape.clone());
            self.shapes.insert(shape, Group { schema: node.clone(), places: vec![path.to_owned()] });
        }
        for (name, field) in fields {
            self.count(field, &if path.is_empty() { name.clone() } else { format!("{path}.{name}") });
        }
    }

    /// Removes the groups that occur only once. Names each remaining group after one of the fields that contain it.
    fn name(&mut self) {
        self.shapes.retain(|_, group| group.places.len() > 1);
        for shape in &self.met {
            let Some(group) = self.shapes.get(shape) else { continue };
            let title = group.places.iter().map(|place| last(place)).min_by_key(|name| name.len()).unwrap_or_default();
            let same = self.order.iter().filter(|(_, other)| other.split(' ').next() == Some(title)).count();
            let title = if same == 0 { title.to_owned() } else { format!("{title} ({})", same + 1) };
            self.order.push((shape.clone(), title));
        }
    }

    fn title(&self, node: &Value) -> Option<&str> {
        node["properties"].as_object()?;
        let shape = shape(node);
        self.order.iter().find(|(known, _)| *known == shape).map(|(_, title)| title.as_str())
    }
}

/// Returns the shape of a group, which is a part of its schema: the fields, and everything below the fields. Groups of
/// equal shape are the same group.
fn shape(node: &Value) -> String {
    let mut node = node.clone();
    for own in ["description", "default"] {
        node.as_object_mut().map(|node| node.remove(own));
    }
    without_leniency(&mut node);
    node.to_string()
}

/// Removes from a schema the keywords that allow unknown fields and null. The page shows what these keywords allow at
/// each field that links to the group.
fn without_leniency(node: &mut Value) {
    if let Some(node) = node.as_object_mut() {
        node.remove("nullable");
        node.remove("x-kubernetes-preserve-unknown-fields");
        node.values_mut().for_each(without_leniency);
    }
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or_default().trim_end_matches("[]").trim_end_matches("{}")
}

fn used_by(places: &[String]) -> String {
    let mut names: Vec<String> = places.iter().map(|place| code(place)).collect();
    names.sort();
    names.dedup();
    format!("Used at {}.", names.join(", "))
}

/// Returns the anchor that websites such as GitHub generate for a heading.
fn anchor(title: &str) -> String {
    let kept =
        title.to_lowercase().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-')).collect::<String>();
    kept.replace(' ', "-")
}
