//! The open pages, and the objects that each of them shows. A change wakes only the pages that it affects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::{input::Identity, locking::lock};

/// The maximum number of changes that the console remembers for a page while building this page.
const MOST: usize = 1_000;

/// A change of an object, or of its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli::console) struct Change {
    /// The object, its owners, and the objects that it began or ceased to use.
    pub(super) related: BTreeSet<Identity>,
    /// Whether the object looks different in lists of objects.
    pub(super) is_listed: bool,
    /// Whether the object uses other objects than before.
    pub(super) is_connected: bool,
}

/// Which changes wake a page. Changes of the policies and of the user's rights wake every page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli::console) struct Interest {
    /// Whether the page shows a list of objects, or numbers of objects.
    pub(in crate::cli::console) lists: bool,
    /// Whether the page shows how all objects are connected.
    pub(in crate::cli::console) connections: bool,
    /// The objects about which the page shows more than a line.
    pub(in crate::cli::console) objects: BTreeSet<Identity>,
}

impl Interest {
    fn is_in(&self, Change { related, is_listed, is_connected }: &Change) -> bool {
        (self.lists && *is_listed)
            || (self.connections && *is_connected)
            || related.iter().any(|identity| self.objects.contains(identity))
    }
}

/// All open pages.
#[derive(Debug, Default)]
pub(in crate::cli::console) struct OpenPages(Mutex<Register>);

#[derive(Debug, Default)]
struct Register {
    next: u64,
    pages: BTreeMap<u64, Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    interest: Interest,
    /// The changes since the console began to build the page; `None` while the console does not build the page.
    meanwhile: Option<Vec<Change>>,
    is_due: bool,
    notify: Arc<Notify>,
}

impl Registered {
    fn wake(&mut self) {
        self.is_due = true;
        self.notify.notify_one();
    }
}

impl OpenPages {
    /// Registers an open page.
    pub(in crate::cli::console) fn open(self: &Arc<Self>) -> OpenPage {
        let mut register = lock(&self.0);
        register.next += 1;
        let (id, notify) = (register.next, Arc::<Notify>::default());
        register.pages.insert(id, Registered { notify: Arc::clone(&notify), ..Registered::default() });
        OpenPage { all: Arc::clone(self), id, notify }
    }

    /// Wakes the pages that show one of the changes.
    pub(super) fn tell(&self, changes: &[Change]) {
        for page in lock(&self.0).pages.values_mut().filter(|page| !page.is_due) {
            match &mut page.meanwhile {
                Some(meanwhile) if meanwhile.len() + changes.len() <= MOST => meanwhile.extend_from_slice(changes),
                Some(_) => page.wake(),
                None if changes.iter().any(|change| page.interest.is_in(change)) => page.wake(),
                None => {}
            }
        }
    }

    /// Wakes all pages.
    pub(super) fn tell_all(&self) {
        lock(&self.0).pages.values_mut().for_each(Registered::wake);
    }
}

/// One open page. The page counts as open until the browser closes its connection.
#[derive(Debug)]
pub(in crate::cli::console) struct OpenPage {
    all: Arc<OpenPages>,
    id: u64,
    notify: Arc<Notify>,
}

impl OpenPage {
    fn with(&self, change: impl FnOnce(&mut Registered)) {
        if let Some(page) = lock(&self.all.0).pages.get_mut(&self.id) {
            change(page);
        }
    }

    /// Remembers all changes from now on, because the page that the console is building may not show them yet.
    pub(in crate::cli::console) fn begin(&self) {
        self.with(|page| (page.is_due, page.meanwhile) = (false, Some(Vec::new())));
    }

    /// Records which changes wake the page that the console has built.
    pub(in crate::cli::console) fn shows(&self, interest: Interest) {
        self.with(|page| {
            let meanwhile = page.meanwhile.take().unwrap_or_default();
            page.interest = interest;
            if meanwhile.iter().any(|change| page.interest.is_in(change)) {
                page.wake();
            }
        });
    }

    /// Waits until something that the page shows has changed since [`Self::begin`].
    pub(in crate::cli::console) async fn changed(&self) {
        loop {
            let mut is_due = true;
            self.with(|page| is_due = page.is_due);
            if is_due {
                return;
            }
            self.notify.notified().await;
        }
    }
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        lock(&self.all.0).pages.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn named(name: &str) -> Identity {
        let [group, kind] = ["kaos.tools", "Agent"].map(str::to_owned);
        Identity { group, kind, namespace: Some("team".to_owned()), name: name.to_owned() }
    }

    fn change(name: &str, is_listed: bool) -> Change {
        Change { related: BTreeSet::from([named(name)]), is_listed, is_connected: false }
    }

    fn showing(objects: &[&str]) -> Interest {
        Interest { objects: objects.iter().map(|name| named(name)).collect(), ..Interest::default() }
    }

    #[test]
    fn a_change_wakes_only_the_pages_that_show_it() {
        let pages = Arc::<OpenPages>::default();
        let [list, writer, reader] = [pages.open(), pages.open(), pages.open()];
        let interests = [Interest { lists: true, ..Interest::default() }, showing(&["writer"]), showing(&["reader"])];
        for (page, interest) in [&list, &writer, &reader].into_iter().zip(interests) {
            page.begin();
            page.shows(interest);
        }
        let due = |page: &OpenPage| page.changed().now_or_never().is_some();
        assert!(![&list, &writer, &reader].into_iter().any(due), "nothing changed");
        pages.tell(&[change("writer", false)]);
        assert_eq!([&list, &writer, &reader].map(due), [false, true, false]);
        pages.tell(&[change("other", true)]);
        assert_eq!([&list, &writer, &reader].map(due), [true, true, false]);
        pages.tell_all();
        assert!(due(&reader));
    }

    #[test]
    fn a_page_sees_changes_that_happen_while_the_console_builds_it() {
        let pages = Arc::<OpenPages>::default();
        let page = pages.open();
        let due = || page.changed().now_or_never().is_some();
        page.begin();
        pages.tell(&[change("writer", false)]);
        assert!(!due(), "the page may not show the object");
        page.shows(showing(&["writer"]));
        assert!(due());
        page.begin();
        page.shows(showing(&["writer"]));
        assert!(!due());
        page.begin();
        pages.tell(&vec![change("other", false); MOST + 1]);
        page.shows(showing(&["writer"]));
        assert!(due(), "the page cannot remember so many changes");
        drop(page);
        assert!(lock(&pages.0).pages.is_empty());
    }
}
