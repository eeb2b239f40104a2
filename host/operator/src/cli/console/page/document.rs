//! A page as an HTML document. The server can replace each part of the document. The templates escape every text. Texts
//! that users wrote also pass through [`plain`]. This function replaces control characters, and characters that change
//! the direction of text, by visible escapes.

use std::borrow::Cow;

use axum::http::StatusCode;
use kaos_policy::printable::printable_lines;
use maud::{DOCTYPE, Markup, html};

use super::address::Address;
use crate::{cli::console::model::Interest, hashing::hash};

/// The entries of the menu: the title, and the address.
const MENU: [(&str, &str); 3] = [("Overview", "/"), ("Objects", "/objects"), ("Policies", "/policies")];

/// A page.
pub(in crate::cli::console) struct Page {
    pub(in crate::cli::console) status: StatusCode,
    title: String,
    /// The address of the menu entry to which the page belongs.
    entry: &'static str,
    /// The part that does not change while the page is open, such as a form.
    fixed: Markup,
    pub(in crate::cli::console) parts: Vec<Part>,
    /// The changes that wake the page.
    pub(in crate::cli::console) interest: Interest,
    /// Whether the page shows objects that the console does not watch.
    pub(in crate::cli::console) is_unwatched: bool,
}

/// A part of a page.
pub(in crate::cli::console) struct Part {
    pub(in crate::cli::console) id: &'static str,
    pub(in crate::cli::console) body: Markup,
}

impl Part {
    pub(super) fn new(id: &'static str, body: Markup) -> Self {
        Self { id, body }
    }

    /// Returns the content of the part. `base` is the secret path of the console.
    pub(in crate::cli::console) fn html(&self, base: &str) -> String {
        below(base, &self.body.0)
    }

    /// Returns a digest of the content. From the digest, the server sees whether the part changed.
    pub(in crate::cli::console) fn digest(&self) -> String {
        format!("{:016x}", hash(&self.body.0))
    }
}

impl Page {
    pub(super) fn new(title: impl Into<String>, entry: &'static str, fixed: Markup, parts: Vec<Part>) -> Self {
        let (interest, is_unwatched) = (Interest::default(), false);
        Self { status: StatusCode::OK, title: title.into(), entry, fixed, parts, interest, is_unwatched }
    }

    /// Returns the page for an object that no watch has reported yet. The part of this page has another id than the
    /// parts of the object's real page. So the browser loads the page again after a watch reports the object.
    pub(super) fn loading(title: impl Into<String>, entry: &'static str) -> Self {
        let parts = vec![Part::new(
            "loading",
            html! { p.summary data-announce { "The console still reads the objects of the cluster." } },
        )];
        Self::new(title, entry, html! {}, parts)
    }

    /// Sets the changes that wake the page.
    pub(super) fn showing(self, interest: Interest) -> Self {
        Self { interest, ..self }
    }

    /// Sets whether the page shows objects that the console does not watch.
    pub(super) fn with_unwatched(self, is_unwatched: bool) -> Self {
        Self { is_unwatched, ..self }
    }

    /// Returns the page that says that there is no such page or object.
    pub(in crate::cli::console) fn not_found(what: &str) -> Self {
        let fixed = html! { p { (plain(what)) } p { a href="/" { "Back to the overview" } } };
        Self { status: StatusCode::NOT_FOUND, ..Self::new("Not found", "", fixed, Vec::new()) }
    }

    /// Returns the page that shows an error.
    pub(in crate::cli::console) fn failed(why: &str) -> Self {
        let fixed = html! { p { "The console cannot show this page:" } pre.error tabindex="0" { (plain(why)) } };
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, ..Self::new("Error", "", fixed, Vec::new()) }
    }

    /// Returns the whole document. `base` is the secret path of the console. `address` is the address of the page;
    /// `None` if the page does not change.
    pub(in crate::cli::console) fn html(&self, base: &str, address: Option<&Address>) -> String {
        let entry = |title: &str, to: &str| {
            html! { li { a href=(to) aria-current=[(to == self.entry).then_some("page")] { (title) } } }
        };
        let document = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (plain(&self.title)) " · KAOS console" }
                    link rel="icon" href="/static/icon.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/static/console.css";
                    script src="/static/console.js" defer {}
                }
                body data-page=[address.map(ToString::to_string)] data-base=(base) {
                    a.skip href="#main" { "Skip to the content" }
                    header {
                        p.brand { "KAOS console" }
                        nav aria-label="Pages" { ul { @for (title, to) in MENU { (entry(title, to)) } } }
                        div.live {
                            button #pause type="button" aria-pressed="false" hidden { "Pause updates" }
                            p #live {}
                        }
                    }
                    main #main tabindex="-1" {
                        h1 { (plain(&self.title)) }
                        (self.fixed)
                        @for part in &self.parts {
                            div id=(part.id) data-digest=(part.digest()) { (part.body) }
                        }
                    }
                    p #news.hidden role="status" aria-live="polite" {}
                }
            }
        };
        below(base, &document.0)
    }
}

/// Adds the secret path of the console to each address, by searching for the beginning of an attribute with an address.
/// Texts of users cannot contain this beginning, because the templates escape their quotation marks.
fn below(base: &str, html: &str) -> String {
    let mut placed = html.to_owned();
    for attribute in ["href", "src", "action"] {
        placed = placed.replace(&format!("{attribute}=\"/"), &format!("{attribute}=\"{base}/"));
    }
    placed
}

/// Escapes those characters of a text that would mislead a reader.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    printable_lines(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_users_is_never_markup() {
        let title = "<script>alert(1)</script>\u{202e}";
        let fixed = html! { p title=(plain("\" onclick=\"x")) { (plain("<img src=x onerror=y>")) } };
        let text = Page::new(title, "/", fixed, Vec::new()).html("/secret", Some(&Address::Overview));
        assert!(!text.contains("<script>alert") && !text.contains("<img") && !text.contains("\" onclick"), "{text}");
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\u{202e}"), "{text}");
        assert_eq!(text.matches("<script").count(), 1, "{text}");
    }

    #[test]
    fn every_address_of_a_page_is_below_the_secret_path_and_texts_of_users_stay_as_they_are() {
        let fixed = html! { p { a href="/objects" { (plain("href=\"/x and <a href=\"/y\">")) } } };
        let page = Page::new("Title", "/", fixed, Vec::new()).html("/secret", Some(&Address::Overview));
        assert!(page.contains("<a href=\"/secret/objects\">href=&quot;/x and &lt;a href=&quot;/y&quot;"), "{page}");
        assert!(page.contains("src=\"/secret/static/console.js\"") && page.contains("data-page=\"/\""), "{page}");
        for attribute in ["href", "src", "action"] {
            let other = page.matches(&format!("{attribute}=\"/")).count();
            assert_eq!(other, page.matches(&format!("{attribute}=\"/secret/")).count(), "{page}");
        }
    }
}
