//! Stores texts with their positions, to find duplicates in lists of thousands of texts.
//!
//! The data structure is a tree. Each node separates two groups of texts by the first bit in which the groups differ. A
//! lookup takes one step for each node on its path, and compares one complete text. A map with owned keys would copy
//! each text and compare it with about twenty others. In a hash table, an attacker could make all texts collide.

use alloc::vec::Vec;

/// A set of texts, each with its position.
#[derive(Clone, Debug)]
pub struct Places<'a> {
    texts: Vec<(&'a str, usize)>,
    nodes: Vec<Node>,
    /// The root of the tree. The root has no meaning while the collection is empty.
    root: Link,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The index of the byte whose symbol separates the two groups, and the bit in which the symbols differ.
    at: usize,
    bit: u16,
    /// The group of texts without this bit, and the group of texts with this bit.
    below: [Link; 2],
}

#[derive(Clone, Copy, Debug)]
enum Link {
    Text(usize),
    Node(usize),
}

/// Returns the symbol for the byte of `text` at an index. The end of a text has a separate symbol, so that a text
/// differs from longer texts that begin with it.
fn symbol(text: &str, at: usize) -> u16 {
    text.as_bytes().get(at).map_or(0, |byte| u16::from(*byte) + 1)
}

impl Node {
    fn side(&self, text: &str) -> usize {
        usize::from(symbol(text, self.at) & self.bit != 0)
    }
}

impl<'a> Places<'a> {
    /// Creates an empty collection.
    #[must_use]
    pub const fn new() -> Self {
        Self { texts: Vec::new(), nodes: Vec::new(), root: Link::Text(0) }
    }

    /// Adds `text` with the position `place`. If the collection already contains `text`, returns the position of `text`
    /// and changes nothing.
    #[inline(never)]
    pub fn insert(&mut self, text: &'a str, place: usize) -> Option<usize> {
        let own = Link::Text(self.texts.len());
        let Some((near, before)) = self.nearest(text) else {
            self.root = own;
            self.texts.push((text, place));
            return None;
        };
        let at = near.bytes().zip(text.bytes()).take_while(|(one, other)| one == other).count();
        let differ = symbol(near, at) ^ symbol(text, at);
        if differ == 0 {
            return Some(before);
        }
        let bit = 1 << differ.ilog2();
        let (mut above, mut link) = (None, self.root);
        while let Link::Node(index) = link {
            let node = &self.nodes[index];
            if node.at > at || (node.at == at && node.bit < bit) {
                break;
            }
            let side = node.side(text);
            above = Some((index, side));
            link = node.below[side];
        }
        let mut node = Node { at, bit, below: [link, link] };
        node.below[node.side(text)] = own;
        let new = Link::Node(self.nodes.len());
        match above {
            None => self.root = new,
            Some((index, side)) => self.nodes[index].below[side] = new,
        }
        self.nodes.push(node);
        self.texts.push((text, place));
        None
    }

    /// Returns the position of `text`, or `None` if the collection does not contain `text`.
    pub fn get(&self, text: &str) -> Option<usize> {
        self.nearest(text).filter(|(near, _)| *near == text).map(|(_, place)| place)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns whether the collection contains no texts.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the only text in the collection that can equal `text`, with its position. `None` if the collection is
    /// empty.
    fn nearest(&self, text: &str) -> Option<(&'a str, usize)> {
        let mut link = self.root;
        loop {
            match link {
                Link::Node(index) => {
                    let node = &self.nodes[index];
                    link = node.below[node.side(text)];
                }
                Link::Text(index) => return self.texts.get(index).copied(),
            }
        }
    }
}

impl Default for Places<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> FromIterator<&'a str> for Places<'a> {
    /// Keeps the first position of each text.
    fn from_iter<T: IntoIterator<Item = &'a str>>(texts: T) -> Self {
        let mut places = Self::new();
        for (at, text) in texts.into_iter().enumerate() {
            places.insert(text, at);
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_text_keeps_its_first_position() {
        let mut places = Places::new();
        assert_eq!((places.get("a"), places.len(), places.is_empty()), (None, 0, true));
        assert_eq!(places.insert("a", 1), None);
        assert_eq!(places.insert("", 2), None);
        assert_eq!(places.insert("ab", 3), None);
        assert_eq!(places.insert("a", 4), Some(1));
        assert_eq!(
            (places.get("a"), places.get(""), places.get("ab"), places.get("b")),
            (Some(1), Some(2), Some(3), None)
        );
        assert_eq!(places.len(), 3);
    }

    proptest! {
        #[test]
        fn lookups_find_the_same_as_a_map(
            texts in prop::collection::vec("(V[0-9]{1,3}|[ab]{0,5}|\\PC{0,3}|\u{0}{0,3})", 0..200),
            others in prop::collection::vec("[abV0-9]{0,3}", 0..20),
        ) {
            let mut map: BTreeMap<&str, usize> = BTreeMap::new();
            let mut places = Places::new();
            for (at, text) in texts.iter().enumerate() {
                prop_assert_eq!(places.insert(text, at), map.get(text.as_str()).copied());
                map.entry(text).or_insert(at);
            }
            for text in texts.iter().chain(&others) {
                prop_assert_eq!(places.get(text), map.get(text.as_str()).copied());
            }
            prop_assert_eq!(places.len(), map.len());
        }
    }
}
