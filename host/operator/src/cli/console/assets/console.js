// Keeps the open page up to date. The server sends each part that changed; everything else works without this script.
'use strict';

(() => {
  const page = document.body.dataset.page;
  const live = document.getElementById('live');
  const news = document.getElementById('news');
  // The address changes nothing here: the digests tell the server what this page already shows.
  const parts = () => [...document.querySelectorAll('[data-digest]')];
  if (!page || !live || parts().length === 0) return;

  const retry = 2000;
  let source = null;
  let timer = 0;

  function say(text) {
    live.textContent = text;
  }

  // Finds the element that replaces another one: it has the same id, or the same address, or the same text.
  function same(part, before) {
    if (!before) return null;
    if (before.id) return part.querySelector('#' + CSS.escape(before.id));
    const text = before.getAttribute('href') || before.getAttribute('aria-label') || before.textContent;
    const candidates = [...part.querySelectorAll(before.tagName)];
    return candidates.find((one) => [one.getAttribute('href'), one.getAttribute('aria-label'), one.textContent].includes(text));
  }

  function replace({ id, digest, html }) {
    const part = document.getElementById(id);
    if (!part) return;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const opened = [...part.querySelectorAll('details')].map((one) => one.open);
    const scrolled = [...part.querySelectorAll('.scroll, .picture')].map((one) => [one.scrollLeft, one.scrollTop]);
    const announced = part.querySelector('[data-announce]');
    const before = announced ? announced.textContent : '';

    // The server's templates escape every text of users.
    const template = document.createElement('template');
    template.innerHTML = html;
    part.replaceChildren(template.content);
    part.dataset.digest = digest;

    part.querySelectorAll('details').forEach((one, at) => { one.open = opened[at] || false; });
    part.querySelectorAll('.scroll, .picture').forEach((one, at) => {
      if (scrolled[at]) [one.scrollLeft, one.scrollTop] = scrolled[at];
    });
    const again = same(part, focused);
    if (again) again.focus({ preventScroll: true });
    const now = part.querySelector('[data-announce]');
    if (now && now.textContent !== before) news.textContent = now.textContent;
  }

  function close() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  function open() {
    close();
    const seen = parts().map((part) => `${part.id}:${part.dataset.digest}`).join(',');
    source = new EventSource('/events?' + new URLSearchParams({ page, seen }));
    source.addEventListener('open', () => say('Live'));
    source.addEventListener('parts', (event) => JSON.parse(event.data).forEach(replace));
    source.addEventListener('gone', (event) => {
      close();
      say('Gone: ' + event.data);
      news.textContent = event.data;
    });
    source.addEventListener('error', () => {
      close();
      say('Not connected. The page may be out of date.');
      timer = setTimeout(open, retry);
    });
  }

  // A browser opens few connections to one server, so pages in the background give theirs back.
  function follow() {
    if (document.hidden) close(); else open();
  }

  document.addEventListener('visibilitychange', follow);
  window.addEventListener('pagehide', close);
  follow();
})();
