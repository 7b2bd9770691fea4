// Notices: what an agent told its user outside of a conversation, each with its date, its origin and an unread mark.

import * as api from "./api.js";
import { events } from "./events.js";
import { byId, node } from "./nodes.js";

/** @typedef {{ id: string, at: string, text: string, urgency: string, read_at: string | null, origin: { thread: string | null, text: string } }} Notice */

/** How long the page waits before it follows the stream again, in milliseconds. */
const PAUSE = 4000;

/** @type {AbortController | null} */
let stream = null;
/** @type {(refusal: api.Refusal) => void} */
let lost = () => {};
/** How often the number of unread notices was told: a list from before may come late. */
let version = 0;

/** Follows the user's notices. @param {(refusal: api.Refusal) => void} signedOut called when the session has ended */
export function followNotices(signedOut) {
  lost = signedOut;
  const panel = byId("notices");
  byId("notices-open").addEventListener("click", () => { panel.showModal(); list(); });
  byId("notices-close").addEventListener("click", () => panel.close());
  byId("notices-all").addEventListener("click", readAll);
  panel.addEventListener("click", (/** @type {MouseEvent} */ event) => { if (event.target === panel) panel.close(); });
  // A tab that is not looked at keeps no connection: a browser has few for one server.
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : listen()));
  if (!document.hidden) listen();
}

/** Nothing of one user is left for the next. */
export function forgetNotices() {
  stop();
  const panel = byId("notices");
  if (panel.open) panel.close();
  byId("notices-list").replaceChildren();
}

function stop() {
  stream?.abort();
  stream = null;
}

async function listen() {
  stop();
  const mine = stream = new AbortController();
  while (!mine.signal.aborted) {
    try {
      for await (const { event, data } of events(await api.noticeEvents(mine.signal))) {
        if (event === "notices") count(data.unread);
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof api.Refusal && error.status === 401) return lost(error);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

/** @param {number} number */
function count(number) {
  version += 1;
  const mark = byId("notices-unread");
  mark.hidden = number === 0;
  mark.textContent = String(number);
  byId("notices-open").setAttribute("aria-label", number ? `Notices, ${number} unread` : "Notices");
  byId("notices-all").disabled = number === 0;
  if (byId("notices").open) list();
}

async function list() {
  const asked = version;
  try {
    const { notices } = await api.notices();
    if (asked === version) draw(notices);
  } catch (error) {
    failed(error);
  }
}

/** @param {Notice[]} notices */
function draw(notices) {
  byId("notices-list").replaceChildren(...notices.map(entry));
  byId("notices-none").hidden = notices.length > 0;
  byId("notices-error").hidden = true;
}

/** @param {Notice} notice */
function entry(notice) {
  const isUnread = notice.read_at === null;
  const at = new Date(notice.at);
  const time = node("time", { datetime: notice.at, title: at.toLocaleString() },
    `${at.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" })}, ${at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`);
  const head = node("p", { class: "head" }, isUnread ? node("strong", { class: "unread" }, "Unread") : null, time);
  if (notice.urgency === "high") head.append(node("span", { class: "urgent" }, "urgent"));
  const origin = node("p", { class: "origin" }, "From ", notice.origin.text);
  const made = node("li", { class: "notice", "data-id": notice.id, "data-unread": String(isUnread) }, head,
    node("p", { class: "text" }, notice.text), origin);
  const row = node("div", { class: "row" });
  if (isUnread) {
    const button = node("button", { type: "button" }, "Mark as read");
    button.addEventListener("click", () => read([notice.id]));
    row.append(button);
  }
  if (notice.origin.thread) {
    const link = node("a", { href: `#/t/${notice.origin.thread}` }, "Open its conversation");
    link.addEventListener("click", () => byId("notices").close());
    row.append(link);
  }
  if (row.childNodes.length) made.append(row);
  return made;
}

/** Only those that are shown: a newer one has not been read. */
function readAll() {
  const shown = [...byId("notices-list").querySelectorAll("[data-unread=true]")];
  return read(shown.map((one) => one.dataset.id));
}

/** @param {string[]} ids */
async function read(ids) {
  try {
    count((await api.readNotices(ids)).unread);
  } catch (error) {
    failed(error);
  }
}

/** @param {unknown} error */
function failed(error) {
  if (error instanceof api.Refusal && error.status === 401) {
    byId("notices").close();
    return lost(error);
  }
  const room = byId("notices-error");
  room.hidden = false;
  room.textContent = error instanceof api.Refusal ? error.message : "Could not reach embody.";
}
