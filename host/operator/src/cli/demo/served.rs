//! The kinds that the cluster of the demo serves.

/// Returns a clause that lists the kinds of the demo's cluster, for help texts and errors.
pub(super) fn served() -> String {
    let of_group =
        |(group, kind): (&str, &str)| if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let kinds: Vec<String> = kaos_cluster::kinds().map(of_group).collect();
    format!("the demo's cluster serves {}, and the kinds that --crds and `kubectl apply` define", kinds.join(", "))
}
