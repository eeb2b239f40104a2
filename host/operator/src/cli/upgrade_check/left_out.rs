//! Finds the namespaces that lose access because the AuthorizationPolicy can list only a limited number of namespaces.
//! KAOS's operator has no such limit.

use std::collections::BTreeSet;

use kaos_crds::{
    GROUP,
    access::{MAX_NAMESPACES, PROJECTION_NAME},
    manifests,
};
use serde_json::Value;

use super::{
    recorded::Recorded,
    report::{Sort, UpgradeFinding},
    table::{Case, text},
    values::Values,
};
use crate::{
    decision_point::{AUTHORIZATION_POLICY, ChosenNamespaces},
    input::Document,
};

/// The chart value that lists the namespaces.
const LIST: &str = "security.agentAuth.projection.namespaces";

/// Returns the finding about the namespaces that the operator would leave out. If an earlier upgrade already left
/// namespaces out, the finding is only a note.
pub(super) fn finding(
    documents: &[Document],
    values: &Values,
    recorded: &Recorded,
    home: &str,
) -> Option<UpgradeFinding> {
    let cases = values.cases();
    if !cases.contains(&Case::Projected) || !cases.contains(&Case::Automated) {
        return None;
    }
    let environment = values.environment(home);
    let listed = text(&environment, "AUTHZ_PROJECTION_NAMESPACES").split(',').map(str::trim);
    let listed: BTreeSet<String> = listed.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let found = if listed.is_empty() { with_objects(documents) } else { listed };
    let ChosenNamespaces { left_out, .. } = ChosenNamespaces::choose(&found, &before(documents, home));
    if left_out.is_empty() {
        return None;
    }
    let names = left_out.into_iter().collect::<Vec<_>>().join(", ");
    let message = format!(
        "lists at most {MAX_NAMESPACES} namespaces, but it needs {}: the decision point denies all requests to the objects \
         in {names}",
        found.len()
    );
    let remedy = format!(
        "move the objects into at most {MAX_NAMESPACES} namespaces, or choose these namespaces in {LIST}, and accept this \
         change in security.acceptUnserved"
    );
    let is_old = recorded.is_installed && !recorded.is_of_go;
    let sort = if is_old { Sort::Note } else { Sort::Breaks };
    Some(UpgradeFinding::new(sort, format!("AuthorizationPolicy {home}/{PROJECTION_NAME}"), message, remedy))
}

/// Returns the namespaces that contain objects of KAOS, because the decision point needs the data of these namespaces.
fn with_objects(documents: &[Document]) -> BTreeSet<String> {
    let counts = |document: &&Document| {
        let kind = document.identity.kind.as_str();
        document.identity.group == GROUP && kind != AUTHORIZATION_POLICY && manifests::claimed().any(|it| it == kind)
    };
    documents.iter().filter(counts).filter_map(|document| document.identity.namespace.clone()).collect()
}

/// Returns the namespaces that the AuthorizationPolicy lists now. The upgrade keeps these namespaces in the list.
fn before(documents: &[Document], home: &str) -> BTreeSet<String> {
    let is_it = |document: &&Document| {
        let identity = &document.identity;
        (identity.group.as_str(), identity.kind.as_str()) == (GROUP, AUTHORIZATION_POLICY)
            && (identity.namespace.as_deref(), identity.name.as_str()) == (Some(home), PROJECTION_NAME)
    };
    let policy = documents.iter().find(is_it).map_or(&Value::Null, |document| &document.object);
    let listed = policy["spec"]["namespaces"].as_array().into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned).collect()
}
