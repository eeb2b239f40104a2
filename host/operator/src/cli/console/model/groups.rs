//! Groups objects, for pictures that cannot show every object.

use std::collections::BTreeMap;

use super::{
    counts::{Count, GroupKey},
    objects::{KeptObject, Objects},
};
use crate::input::Identity;

/// Groups of objects, and how many objects of a group use objects of another group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Groups {
    pub(in crate::cli::console) counts: BTreeMap<GroupKey, Count>,
    /// The number of connections, by the group of the using object and the group of the used object.
    pub(in crate::cli::console) uses: BTreeMap<(GroupKey, GroupKey), usize>,
}

impl Groups {
    /// Groups the objects for which `is_wanted` returns true, by namespace and kind.
    pub(super) fn of(objects: &Objects, is_wanted: impl Fn(&Identity, &KeptObject) -> bool) -> Self {
        let mut groups = Self::default();
        let wanted = |identity: &Identity| objects.get(identity).is_some_and(|kept| is_wanted(identity, kept));
        for (user, kept) in objects.claimed().filter(|(identity, kept)| is_wanted(identity, kept)) {
            groups.counts.entry(GroupKey::of(user)).or_default().add_one(kept.state.is_open());
            for used in objects.uses(user).iter().filter(|used| wanted(used)) {
                *groups.uses.entry((GroupKey::of(user), GroupKey::of(used))).or_default() += 1;
            }
        }
        groups
    }

    /// Joins groups, so that at most `most` groups remain. First the namespaces with the most unready objects keep
    /// their own groups, and then the largest namespaces. For each kind, the other namespaces share one group with an
    /// empty namespace. Returns the number of namespaces that share groups.
    pub(in crate::cli::console) fn join(self, most: usize) -> (Self, usize) {
        if self.counts.len() <= most {
            return (self, 0);
        }
        let mut namespaces: BTreeMap<&str, (Count, usize)> = BTreeMap::new();
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (GroupKey { namespace, kind }, count) in &self.counts {
            let (total, groups) = namespaces.entry(namespace).or_default();
            total.add(*count);
            *groups += 1;
            *kinds.entry(kind).or_default() += 1;
        }
        let mut worst_first: Vec<(&str, (Count, usize))> = namespaces.into_iter().collect();
        worst_first.sort_by(|(name, (count, _)), (other, (against, _))| against.cmp(count).then(name.cmp(other)));
        let mut room = most.saturating_sub(kinds.len());
        let fits = |(_, (_, groups)): &&(&str, (Count, usize))| {
            let fits = *groups <= room;
            room = room.saturating_sub(*groups);
            fits
        };
        let own: Vec<String> = worst_first.iter().take_while(fits).map(|(name, _)| (*name).to_owned()).collect();
        let shared = worst_first.len() - own.len();
        let joined = |key: GroupKey| {
            if own.contains(&key.namespace) { key } else { GroupKey { namespace: String::new(), ..key } }
        };
        let mut groups = Self::default();
        for (key, count) in self.counts {
            groups.counts.entry(joined(key)).or_default().add(count);
        }
        for ((user, used), number) in self.uses {
            *groups.uses.entry((joined(user), joined(used))).or_default() += number;
        }
        (groups, shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: usize, kind: &str) -> GroupKey {
        GroupKey { namespace: format!("team-{namespace:03}"), kind: kind.to_owned() }
    }

    #[test]
    fn the_namespaces_with_open_objects_keep_their_groups_and_the_others_share_one_for_each_kind() {
        let mut groups = Groups::default();
        for namespace in 0..100 {
            groups.counts.insert(key(namespace, "Widget"), Count { open: usize::from(namespace == 77), total: 9 });
            groups.counts.insert(key(namespace, "Gadget"), Count { open: 0, total: 1 });
            groups.uses.insert((key(namespace, "Widget"), key(namespace, "Gadget")), 9);
        }
        assert_eq!(groups.clone().join(200), (groups.clone(), 0));
        let (joined, shared) = groups.join(60);
        assert_eq!((joined.counts.len(), shared), (60, 71));
        let other = |kind: &str| GroupKey { namespace: String::new(), kind: kind.to_owned() };
        assert_eq!(joined.counts[&key(77, "Widget")], Count { open: 1, total: 9 });
        assert_eq!(joined.counts[&other("Widget")], Count { open: 0, total: 71 * 9 });
        assert_eq!(joined.uses[&(other("Widget"), other("Gadget"))], 71 * 9);
        let total: usize = joined.counts.values().map(|count| count.total).sum();
        assert_eq!(total, 1_000, "each object is in one group");
    }
}
