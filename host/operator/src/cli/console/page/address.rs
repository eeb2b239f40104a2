//! The addresses of the pages. An address contains everything that the user chose on the page, such as a filter. So
//! from the address of an open page, the server can build the page again, and send the changed parts.

use form_urlencoded::{Serializer, parse};
use kaos_policy::names::{is_label, is_subdomain};
use maud::Render;

use crate::input::Identity;

/// The page at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli::console) enum Address {
    /// The first page: the objects that are not ready, and the namespaces.
    Overview,
    /// The list of the objects that fit a filter.
    Objects(Filter),
    /// One object.
    Object(Identity),
    /// The effect of an edit of an object.
    Effect(Identity),
    /// The policies and their revisions.
    Policies,
    /// The effect of settings.
    Candidate,
    /// One revision.
    Revision(String),
}

/// Which objects a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Filter {
    /// The namespace; empty for all.
    pub(in crate::cli::console) namespace: String,
    /// The kind; empty for all.
    pub(in crate::cli::console) kind: String,
    /// Whether to show only the objects that are not ready.
    pub(in crate::cli::console) is_open: bool,
    /// A part of the objects' names; empty for all names.
    pub(in crate::cli::console) name: String,
    /// The number of the page of the list. The first page has the number 0.
    pub(in crate::cli::console) page: usize,
}

impl Address {
    /// Reads an address, such as `/objects?namespace=team`. Returns `None` if there is no such page.
    pub(in crate::cli::console) fn parse(text: &str) -> Option<Self> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        match segments.as_slice() {
            [""] => Some(Self::Overview),
            ["objects"] => Some(Self::Objects(Filter::parse(query))),
            ["policies"] => Some(Self::Policies),
            ["candidate"] => Some(Self::Candidate),
            ["policies", name] if is_subdomain(name) => Some(Self::Revision((*name).to_owned())),
            ["object", rest @ ..] => Some(Self::Object(identity(rest)?)),
            ["effect", rest @ ..] => Some(Self::Effect(identity(rest)?)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Overview => f.write_str("/"),
            Self::Objects(filter) => write!(f, "/objects{}", filter.query()),
            Self::Object(identity) => write!(f, "/object/{}", path(identity)),
            Self::Effect(identity) => write!(f, "/effect/{}", path(identity)),
            Self::Policies => f.write_str("/policies"),
            Self::Candidate => f.write_str("/candidate"),
            Self::Revision(name) => write!(f, "/policies/{name}"),
        }
    }
}

impl Render for Address {
    fn render_to(&self, buffer: &mut String) {
        self.to_string().render_to(buffer);
    }
}

impl Filter {
    fn parse(query: &str) -> Self {
        let mut filter = Self::default();
        for (name, value) in parse(query.as_bytes()) {
            let value = value.trim().to_owned();
            match &*name {
                "namespace" => filter.namespace = value,
                "kind" => filter.kind = value,
                "state" => filter.is_open = value == "open",
                "name" => filter.name = value,
                "page" => filter.page = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        filter
    }

    fn query(&self) -> String {
        let Self { namespace, kind, is_open, name, page } = self;
        let mut pairs = Serializer::new(String::new());
        for (field, value) in [("namespace", namespace), ("kind", kind), ("name", name)] {
            if !value.is_empty() {
                pairs.append_pair(field, value);
            }
        }
        if *is_open {
            pairs.append_pair("state", "open");
        }
        if *page > 0 {
            pairs.append_pair("page", &page.to_string());
        }
        let query = pairs.finish();
        if query.is_empty() { query } else { format!("?{query}") }
    }

    /// Returns whether the list shows an object.
    pub(in crate::cli::console) fn fits(&self, identity: &Identity, is_open: bool) -> bool {
        let Self { namespace, kind, is_open: only_open, name, page: _ } = self;
        (namespace.is_empty() || identity.namespace.as_deref() == Some(namespace))
            && (kind.is_empty() || identity.kind == *kind)
            && (name.is_empty() || identity.name.contains(name.as_str()))
            && (is_open || !only_open)
    }
}

fn identity(segments: &[&str]) -> Option<Identity> {
    let [group, kind, namespace, name] = segments else { return None };
    let is_kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_name = is_subdomain(group) && is_kind && is_label(namespace) && is_subdomain(name);
    is_name.then(|| Identity {
        group: (*group).to_owned(),
        kind: (*kind).to_owned(),
        namespace: Some((*namespace).to_owned()),
        name: (*name).to_owned(),
    })
}

fn path(Identity { group, kind, namespace, name }: &Identity) -> String {
    format!("{group}/{kind}/{}/{name}", namespace.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in [
            "/",
            "/objects",
            "/objects?namespace=team&kind=Agent&name=a%26b&state=open&page=2",
            "/object/kaos.tools/Agent/team/writer",
            "/effect/kaos.tools/Agent/team/writer",
            "/policies",
            "/candidate",
            "/policies/agent-1.2",
        ] {
            assert_eq!(Address::parse(text).expect("a page").to_string(), text);
        }
        for text in ["", "objects", "/object", "/object/kaos.tools/Agent/team", "/policies/", "/policies/A", "/x"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
        for text in ["/object/kaos.tools/<b>/team/a", "/object/kaos.tools/Agent/../a", "/policies/%2e%2e"] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }
}
