//! What the demo's cluster serves.

/// What the cluster serves, by its own list.
pub(super) fn served() -> String {
    let of_group =
        |(group, kind): (&str, &str)| if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let kinds: Vec<String> = kaos_cluster::kinds().map(of_group).collect();
    format!("the demo's cluster serves {}, and what --crds and `kubectl apply` define", kinds.join(", "))
}
