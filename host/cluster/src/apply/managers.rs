//! Tracks the field managers of an object, for server-side apply and for all other writes.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, json};

use super::{FieldSet, collect, compare, merge, remove};
use crate::{schema::Node, status::Cause};

/// A field manager: its name, operation, API version and subresource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) applies: bool,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
}

#[derive(Debug, Clone, PartialEq)]
struct ManagerEntry {
    fields: FieldSet,
    time: Option<String>,
}

/// All managers of an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Managed(BTreeMap<Manager, ManagerEntry>);

/// The reasons to refuse an apply.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The object does not fit its schema.
    Misfit(String),
    /// Other managers own some of the fields that the apply would change.
    Conflicts { message: String, causes: Vec<Cause> },
}

/// The facts about a request that decide which manager owns which fields.
pub(crate) struct OwnershipRules<'a> {
    pub(crate) node: &'a Node,
    /// Fields that this endpoint resets. A manager that writes through this endpoint does not own these fields.
    pub(crate) ignored: &'a FieldSet,
    pub(crate) now: &'a str,
}

impl Managed {
    /// Reads `metadata.managedFields` of an object.
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        Self(entries.filter(|entry| entry["fieldsV1"].is_object()).map(read_entry).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the managed fields into an object.
    pub(crate) fn write(&self, object: &mut Value) {
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        metadata.remove("managedFields");
        if !self.0.is_empty() {
            metadata.insert("managedFields".into(), self.to_value());
        }
    }

    fn to_value(&self) -> Value {
        let mut entries: Vec<(&Manager, &ManagerEntry)> = self.0.iter().collect();
        entries.sort_by_key(|(manager, entry)| (!manager.applies, entry.time.clone(), (*manager).clone()));
        entries.into_iter().map(write_entry).collect()
    }

    /// Returns whether two lists of managers are equal except for their times.
    pub(crate) fn same_fields(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .all(|(manager, entry)| other.0.get(manager).is_some_and(|theirs| theirs.fields == entry.fields))
    }

    /// Records a write, other than an apply, that changed `old` to `new`.
    pub(crate) fn update(&mut self, old: &Value, new: &Value, manager: Manager, rules: &OwnershipRules<'_>) {
        let changes = compare::compare(old, new, rules.node).without(rules.ignored);
        let touched = changes.added.union(&changes.modified);
        self.release(&touched.union(&changes.removed), None);
        let fields = touched.difference(&UNMANAGED);
        if !fields.is_empty() {
            // As on a real server, the entry of a manager that writes to the scale subresource has no time.
            let time = (manager.subresource != "scale").then(|| rules.now.to_owned());
            let entry =
                self.0.entry(manager).or_insert_with(|| ManagerEntry { fields: FieldSet::default(), time: None });
            entry.fields = entry.fields.union(&fields);
            entry.time = time;
        }
    }

    /// Applies `config` to `live`. The result still contains the managed fields of `live`.
    pub(crate) fn apply(
        &mut self,
        live: &Value,
        config: &Value,
        manager: &Manager,
        force: bool,
        rules: &OwnershipRules<'_>,
    ) -> Result<Value, Refusal> {
        if let Some(why) = collect::misfit(config, rules.node) {
            return Err(Refusal::Misfit(why));
        }
        let before = self.0.get(manager).map(|entry| entry.fields.clone()).unwrap_or_default();
        let fields = collect::fields(config, rules.node).without_subtrees(rules.ignored);
        let merged = merge::merge(live, config, rules.node);
        let new = self.prune(&merged, &before, &fields, manager, rules.node);
        let changes = compare::compare(live, &new, rules.node).without(rules.ignored);
        let touched = changes.added.union(&changes.modified);
        if !force {
            self.check_conflicts(&touched, manager)?;
        }
        self.release(&touched.union(&changes.removed), Some(manager));
        let fields = fields.difference(&UNMANAGED);
        if fields.is_empty() {
            self.0.remove(manager);
        } else {
            let old_time = self.0.get(manager).and_then(|entry| entry.time.clone());
            let time = if new == *live { old_time } else { Some(rules.now.to_owned()) };
            self.0.insert(manager.clone(), ManagerEntry { fields, time });
        }
        Ok(new)
    }

    /// Gives all fields of `live` to one manager. This manager stands for all writes before the first apply.
    pub(crate) fn adopt_unmanaged(
        &mut self,
        blank: &Value,
        live: &Value,
        api_version: &str,
        rules: &OwnershipRules<'_>,
    ) {
        let manager = Manager {
            name: "before-first-apply".into(),
            applies: false,
            api_version: api_version.into(),
            subresource: String::new(),
        };
        self.update(blank, live, manager, rules);
    }

    /// Removes the fields that `manager` applied last time and no longer applies. Keeps fields that another manager
    /// owns.
    fn prune(&self, merged: &Value, before: &FieldSet, now: &FieldSet, manager: &Manager, node: &Node) -> Value {
        if before.is_empty() {
            return merged.clone();
        }
        let owned = |set: &FieldSet| set.with_declared_fields(node);
        let without = |unwanted: &FieldSet| remove::remove(merged, unwanted, node).unwrap_or_else(|| json!({}));
        let all = owned(&collect::fields(merged, node));
        let last = owned(before);
        let pruned = without(&last);
        let others = self.0.iter().filter(|(other, _)| *other != manager);
        let kept = others.fold(now.clone(), |kept, (_, entry)| kept.union(&entry.fields));
        let left = owned(&collect::fields(&pruned, node));
        let pruned = without(&all.difference(&left.union(&owned(&kept))));
        let left = owned(&collect::fields(&pruned, node));
        without(&all.difference(&left).intersection(&last))
    }

    fn check_conflicts(&self, touched: &FieldSet, manager: &Manager) -> Result<(), Refusal> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (other, entry) in self.0.iter().filter(|(other, _)| *other != manager) {
            let shown = show(other);
            found.extend(entry.fields.intersection(touched).paths().into_iter().map(|path| (shown.clone(), path)));
        }
        let message = match found.as_slice() {
            [] => return Ok(()),
            [(who, path)] => format!("Apply failed with 1 conflict: conflict with {who}: {path}"),
            many => {
                let mut lines: Vec<String> = Vec::new();
                for (at, (who, path)) in many.iter().enumerate() {
                    if at == 0 || many[at - 1].0 != *who {
                        lines.push(format!("conflicts with {who}:"));
                    }
                    lines.push(format!("- {path}"));
                }
                format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
            }
        };
        let causes = found.into_iter().map(|(who, path)| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {who}"),
            field: path,
        });
        Err(Refusal::Conflicts { message, causes: causes.collect() })
    }

    /// Removes the given fields from all managers except `keep`.
    fn release(&mut self, fields: &FieldSet, keep: Option<&Manager>) {
        for (manager, entry) in &mut self.0 {
            if Some(manager) != keep {
                entry.fields = entry.fields.difference(fields);
            }
        }
        self.0.retain(|manager, entry| Some(manager) == keep || !entry.fields.is_empty());
    }
}

/// The fields that no manager ever owns.
static UNMANAGED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

fn show(manager: &Manager) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text = format!("{text} with subresource {:?}", manager.subresource);
    }
    if !manager.applies {
        text = format!("{text} using {}", manager.api_version);
    }
    text
}

fn read_entry(entry: &Value) -> (Manager, ManagerEntry) {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let manager = Manager {
        name: text("manager"),
        applies: entry["operation"] == "Apply",
        api_version: text("apiVersion"),
        subresource: text("subresource"),
    };
    (
        manager,
        ManagerEntry { fields: FieldSet::read(&entry["fieldsV1"]), time: entry["time"].as_str().map(str::to_owned) },
    )
}

fn write_entry((manager, entry): (&Manager, &ManagerEntry)) -> Value {
    let mut value = json!({
        "manager": manager.name,
        "operation": if manager.applies { "Apply" } else { "Update" },
        "apiVersion": manager.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields.to_value(),
    });
    if let Some(time) = &entry.time {
        value["time"] = json!(time);
    }
    if !manager.subresource.is_empty() {
        value["subresource"] = json!(manager.subresource);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::definitions;

    static DEPLOYMENT: LazyLock<Node> =
        LazyLock::new(|| definitions::read(definitions::name_of("apps", "v1", "Deployment").unwrap()));
    static NOTHING: LazyLock<FieldSet> = LazyLock::new(FieldSet::default);

    fn rules() -> OwnershipRules<'static> {
        OwnershipRules { node: &DEPLOYMENT, ignored: &NOTHING, now: "2026-01-01T00:00:00Z" }
    }

    fn manager(name: &str) -> Manager {
        Manager { name: name.into(), applies: true, api_version: "apps/v1".into(), subresource: String::new() }
    }

    fn deployment(containers: &Value, labels: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": labels},
            "spec": {"template": {"spec": {"containers": containers}}}})
    }

    #[test]
    fn a_field_no_longer_applied_disappears_and_a_foreign_one_stays() {
        let mut managed = Managed::default();
        let empty = json!({"metadata": {"name": "d"}});
        let first = deployment(
            &json!([{"name": "a", "image": "x", "env": [{"name": "E", "value": "1"}]}]),
            &json!({"k": "v", "z": "v"}),
        );
        let live = managed.apply(&empty, &first, &manager("one"), false, &rules()).unwrap();
        let foreign = deployment(&json!([{"name": "side", "image": "y"}]), &json!({"f": "v"}));
        let live = managed.apply(&live, &foreign, &manager("two"), false, &rules()).unwrap();
        let second = deployment(&json!([{"name": "a", "image": "x"}]), &json!({"k": "v"}));
        let live = managed.apply(&live, &second, &manager("one"), false, &rules()).unwrap();
        assert_eq!(live["metadata"]["labels"], json!({"k": "v", "f": "v"}));
        assert_eq!(
            live["spec"]["template"]["spec"]["containers"],
            json!([{"name": "a", "image": "x"}, {"name": "side", "image": "y"}])
        );
    }

    #[test]
    fn a_changed_foreign_field_conflicts_until_forced() {
        let mut managed = Managed::default();
        let empty = json!({"metadata": {"name": "d"}});
        let one = deployment(&json!([{"name": "a", "image": "x"}]), &json!({}));
        let live = managed.apply(&empty, &one, &manager("one"), false, &rules()).unwrap();
        let two = deployment(&json!([{"name": "a", "image": "y"}]), &json!({}));
        let refused = managed.clone().apply(&live, &two, &manager("two"), false, &rules()).unwrap_err();
        let Refusal::Conflicts { message, .. } = refused else { panic!("no conflict") };
        let path = ".spec.template.spec.containers[name=\"a\"].image";
        assert_eq!(message, format!("Apply failed with 1 conflict: conflict with \"one\": {path}"));
        let live = managed.apply(&live, &two, &manager("two"), true, &rules()).unwrap();
        assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "y");
        // The second manager owns the field now. So the field stays when the first manager no longer applies it.
        let one = deployment(&json!([{"name": "a"}]), &json!({}));
        let live = managed.apply(&live, &one, &manager("one"), false, &rules()).unwrap();
        assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "y");
    }
}
