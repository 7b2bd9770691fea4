// The list of conversations.

import { byId, node, when } from "./nodes.js";

/** @typedef {import("./api.js").Thread} Thread */

/** @param {string} id */
export const place = (id) => `#/t/${id}`;

/** The conversation that the address names. @returns {string | null} */
export function named() {
  const found = /^#\/t\/([\w-]+)$/.exec(location.hash);
  return found ? found[1] : null;
}

/**
 * @param {Thread[]} threads
 * @param {string | null} current
 */
export function showThreads(threads, current) {
  const focused = document.activeElement?.getAttribute("href");
  const rows = threads.map((thread) => {
    const channel = thread.channel === "web" ? "" : ` · ${thread.channel}`;
    const state = thread.turn ? " · answering" : "";
    const link = node("a", { href: place(thread.id) },
      node("span", { class: "name" }, thread.title || "Untitled"),
      node("span", { class: "when" }, when(thread.changed_at) + channel + state));
    if (thread.id === current) link.setAttribute("aria-current", "page");
    return node("li", null, link);
  });
  byId("threads").replaceChildren(...rows);
  if (focused) rows.map((row) => /** @type {HTMLElement} */ (row.firstElementChild)).find((link) => link.getAttribute("href") === focused)?.focus();
}
