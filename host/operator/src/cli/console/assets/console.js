// Keeps the open page up to date. The server sends each part of the page that changed. Without this script, the page
// works, but shows no changes.
'use strict';

(() => {
  const { page, base } = document.body.dataset;
  const live = document.getElementById('live');
  const news = document.getElementById('news');
  const pause = document.getElementById('pause');
  // The parts that the server can replace. Their digests tell the server what this page already shows.
  const parts = () => [...document.querySelectorAll('[data-digest]')];

  // Lets users move the keyboard focus to exactly those elements that scroll.
  function markScrollers() {
    document.querySelectorAll('.scroll, .picture').forEach((one) => {
      const scrolls = one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight;
      for (const [name, value] of [['tabindex', '0'], ['role', 'region']]) {
        if (scrolls) one.setAttribute(name, value); else one.removeAttribute(name);
      }
      if (one.dataset.label === undefined) one.dataset.label = one.getAttribute('aria-label') ?? '';
      if (scrolls) one.setAttribute('aria-label', one.dataset.label); else one.removeAttribute('aria-label');
    });
  }
  markScrollers();
  window.addEventListener('resize', markScrollers);

  if (!page || !live || !pause || parts().length === 0) return;

  const retry = 2000;
  // The time between two announcements, in milliseconds: screen readers read each announcement to the end.
  const quiet = 15000;
  let source = null;
  let timer = 0;
  let failures = 0;
  let announced = 0;
  let waiting = '';
  let announcer = 0;

  // Announces a text. If several texts come within the time `quiet`, announces only the last one.
  function announce(text) {
    waiting = text;
    if (announcer) return;
    announcer = setTimeout(() => {
      announcer = 0;
      announced = Date.now();
      news.textContent = waiting;
    }, Math.max(0, announced + quiet - Date.now()));
  }

  // Shows the state of the connection. Also announces the text when a problem begins or ends.
  function say(text, isTrouble) {
    const wasTrouble = live.dataset.trouble === 'true';
    if (live.textContent === text) return;
    live.textContent = text;
    live.dataset.trouble = String(isTrouble);
    if (isTrouble || wasTrouble) announce(text);
  }

  // Finds the element that replaces the focused one: the element with the same id. Without an id, it is the element at
  // the same position among the elements with the same address, label or text.
  function same(part, focused, at) {
    if (focused.id) return part.querySelector('#' + CSS.escape(focused.id));
    return alike(part, focused)[at];
  }

  function alike(part, one) {
    const sign = (other) => other.getAttribute('href') ?? other.getAttribute('aria-label') ?? other.textContent;
    return [...part.querySelectorAll(one.tagName)].filter((other) => sign(other) === sign(one));
  }

  // Puts the focus on the heading of a part, or on the page, if the element with the focus is gone.
  function focusNear(part) {
    const near = part.querySelector('h2') ?? document.getElementById('main');
    near.setAttribute('tabindex', '-1');
    near.focus({ preventScroll: true });
  }

  function replace({ id, digest, html }) {
    const part = document.getElementById(id);
    if (!part) return;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const at = focused ? alike(part, focused).indexOf(focused) : 0;
    const opened = [...part.querySelectorAll('details')].map((one) => one.open);
    const scrolled = [...part.querySelectorAll('.scroll, .picture')].map((one) => [one.scrollLeft, one.scrollTop]);
    const sentence = part.querySelector('[data-announce]');
    const before = sentence ? sentence.textContent : '';

    // `html` is safe: the server's templates escape every text that users wrote.
    const template = document.createElement('template');
    template.innerHTML = html;
    part.replaceChildren(template.content);
    part.dataset.digest = digest;

    part.querySelectorAll('details').forEach((one, index) => { one.open = opened[index] || false; });
    markScrollers();
    part.querySelectorAll('.scroll, .picture').forEach((one, index) => {
      if (scrolled[index]) [one.scrollLeft, one.scrollTop] = scrolled[index];
    });
    if (focused) {
      const again = same(part, focused, at);
      if (again) again.focus({ preventScroll: true }); else focusNear(part);
    }
    const now = part.querySelector('[data-announce]');
    if (now && now.textContent !== before) announce(now.textContent);
  }

  function close() {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  }

  function open() {
    close();
    const seen = parts().map((part) => `${part.id}:${part.dataset.digest}`).join(',');
    source = new EventSource(`${base}/events?` + new URLSearchParams({ page, seen }));
    source.addEventListener('open', () => { failures = 0; });
    source.addEventListener('parts', (event) => JSON.parse(event.data).forEach(replace));
    source.addEventListener('fresh', () => say('Live', false));
    source.addEventListener('stale', (event) => say('The page may be out of date: ' + event.data, true));
    source.addEventListener('reload', () => { close(); location.reload(); });
    source.addEventListener('gone', (event) => {
      close();
      pause.hidden = true;
      say('Gone: ' + event.data, true);
    });
    source.addEventListener('error', () => {
      close();
      failures += 1;
      // A connection may end at any time. The page may be out of date only if the next connection also fails.
      if (failures > 1) say('Not connected. The page may be out of date.', true);
      timer = setTimeout(open, failures > 1 ? retry : 0);
    });
  }

  const paused = () => sessionStorage.getItem('paused') === 'yes';

  // A browser opens only a few connections to one server, so pages in the background close their connections.
  function follow() {
    pause.setAttribute('aria-pressed', String(paused()));
    if (paused()) {
      close();
      say('Paused', false);
    } else if (document.hidden) {
      close();
    } else {
      open();
    }
  }

  pause.hidden = false;
  pause.addEventListener('click', () => {
    sessionStorage.setItem('paused', paused() ? 'no' : 'yes');
    follow();
  });
  document.addEventListener('visibilitychange', follow);
  window.addEventListener('pagehide', close);
  follow();
})();
