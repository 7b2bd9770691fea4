// Calls that wait for a person. The words are those of the broker, all of them: who asks and why comes first, what would be
// sent after it. What is shown is what is decided.

import * as api from "./api.js";
import { byId, node, prose } from "./nodes.js";

/** @typedef {import("./api.js").Approval} Approval */

/** A card that came or moved just now takes no click for so long, in milliseconds: it was meant for something else. */
const REST = 600;

/** @type {Map<string, HTMLElement>} */
const shown = new Map();
let restsUntil = 0;
/** @type {number | undefined} */
let timer;
/** Watches all cards, too: they move each other where the place for all of them stays as large as it is. */
const sizes = new ResizeObserver(rest);
sizes.observe(byId("approvals"));

/** Looks at what waits, and shows it. @param {string} user who looks @returns {Promise<number>} how many there are */
export async function showApprovals(user) {
  const { approvals: waiting, denied } = await api.approvals();
  showDenied(denied, user);
  // A question whose rules have changed meanwhile is another card: it cannot be approved.
  const current = new Map(waiting.map((approval) => [approval.id, String(Boolean(approval.rules_changed))]));
  for (const [id, card] of shown) {
    if (current.get(id) !== card.dataset.rulesChanged) { card.remove(); sizes.unobserve(card); shown.delete(id); rest(); }
  }
  for (const approval of waiting.reverse()) {
    if (shown.has(approval.id)) continue;
    const made = card(approval, user);
    made.dataset.rulesChanged = String(Boolean(approval.rules_changed));
    shown.set(approval.id, made);
    byId("approvals").append(made);
    sizes.observe(made);
    rest();
  }
  count();
  return shown.size;
}

/** Shows nothing any more: nobody knows who looks. */
export function forgetApprovals() {
  byId("approvals").replaceChildren();
  for (const card of shown.values()) sizes.unobserve(card);
  shown.clear();
  count();
  showDenied([], "");
}

/** What was denied is refused without a question until its time is over, or a person takes the denial back. @param {Approval[]} denied @param {string} user */
function showDenied(denied, user) {
  const list = byId("denied");
  const ids = denied.map(({ id }) => id).join();
  list.hidden = denied.length === 0;
  // A button that a person is about to click stays where it is.
  if (list.dataset.ids === ids) return;
  list.dataset.ids = ids;
  list.replaceChildren(...denied.map((approval) => deniedLine(approval, user)));
}

/** @param {Approval} approval @param {string} user */
function deniedLine({ id, body, tool, expires_at }, user) {
  const error = node("span", { class: "error", role: "alert" });
  const again = /** @type {HTMLButtonElement} */ (node("button", { type: "button", class: "quiet" }, "Ask me again"));
  again.addEventListener("click", async () => {
    again.disabled = true;
    try {
      await api.decide(id, "ask_again");
      await showApprovals(user);
    } catch (problem) {
      error.replaceChildren(...prose(/** @type {api.Refusal} */ (problem).message));
      again.disabled = false;
    }
  });
  return node("li", null, node("code", null, `${body}/${tool}`), ` was denied; the same call is refused until ${hour(expires_at)}. `, again, error);
}

/** @param {string} at */
const hour = (at) => new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

function count() {
  const count = shown.size;
  byId("approvals").hidden = count === 0;
  const badge = byId("waiting");
  badge.hidden = count === 0;
  badge.textContent = count === 1 ? "1 call waits for approval" : `${count} calls wait for approval`;
}

/** The cards have moved. */
function rest() {
  restsUntil = performance.now() + REST;
  const mark = (/** @type {string} */ rests) => {
    for (const button of byId("approvals").querySelectorAll(".row button")) button.setAttribute("aria-disabled", rests);
  };
  mark("true");
  window.clearTimeout(timer);
  timer = window.setTimeout(() => mark("false"), REST);
}

/** @param {Approval} approval @param {string} user */
function card(approval, user) {
  const error = node("p", { class: "error", role: "alert" });
  error.hidden = true;
  const yes = /** @type {HTMLButtonElement} */ (node("button", { type: "button", class: "primary" }, "Approve once"));
  const no = /** @type {HTMLButtonElement} */ (node("button", { type: "button" }, "Deny"));
  // What cannot be shown whole cannot be approved, and an approval under old rules does not count.
  const cannot = approval.text === null || approval.rules_changed;
  yes.disabled = cannot;
  const answer = async (/** @type {"approve" | "deny"} */ decision) => {
    if (performance.now() < restsUntil) return;
    yes.disabled = no.disabled = true;
    try {
      await api.decide(approval.id, decision);
      await showApprovals(user);
    } catch (problem) {
      const refusal = /** @type {api.Refusal} */ (problem);
      error.replaceChildren(...prose([refusal.message, refusal.hint].filter(Boolean).join(" — ")));
      error.hidden = false;
      yes.disabled = cannot;
      no.disabled = false;
    }
  };
  yes.addEventListener("click", () => answer("approve"));
  no.addEventListener("click", () => answer("deny"));
  const said = parts(approval.text ?? "");
  const title = said?.get(WHAT) ?? `Approve this call? ${approval.body} / ${approval.tool}`;
  return node("article", { class: "approval", "data-id": approval.id, "aria-label": `${approval.tool} waits for approval` },
    node("h2", null, title),
    approval.rules_changed ? node("p", { class: "error" }, "Asked under rules that have changed since; approve the new question instead.") : null,
    ...scrolled(...(said ? facts(said, approval.user === user) : [node("pre", { class: "exact" }, whole(approval))])),
    node("div", { class: "row" }, yes, no, node("span", { class: "until" }, `until ${hour(approval.expires_at)}`)),
    error);
}

/** @param {Approval} approval */
function whole({ text, tool, body }) {
  return text ?? `${tool} of ${body}: this call is too large to show in full, so it can only be denied.`;
}

/**
 * The broker's words: the question and the reason from their first three lines (the second is the beginning of what the
 * arguments show whole), then what follows by its labels. A label of its own begins a line, and nothing that a model or a tool
 * says can. Null if anything is there that we do not know: then they are shown as they are.
 * @param {string} text
 * @returns {Map<string, string> | null}
 */
function parts(text) {
  const [what, , why, ...lines] = text.split("\n");
  if (!why?.startsWith(BECAUSE)) return null;
  /** @type {Map<string, string>} */
  const found = new Map([[WHAT, what], [WHY, why.slice(BECAUSE.length)]]);
  let label = "";
  for (const line of lines) {
    const begins = /^([a-z][a-z ,]*):(?: (.*))?$/.exec(line);
    if (begins) {
      if (found.has(begins[1])) return null;
      label = begins[1];
      found.set(label, begins[2] ?? "");
    } else if (line.startsWith("  ") && label) {
      found.set(label, [found.get(label), line.slice(2)].filter(Boolean).join("\n"));
    } else {
      return null;
    }
  }
  // The whole reason, where its line was too short for it.
  const reason = found.get("reason");
  if (reason !== undefined) found.set(WHY, reason);
  const known = new Set([WHAT, "reason", "body", "tool", ARGUMENTS, ...FACTS.map(([name]) => name)]);
  const hasAll = ["body", "tool", "class", ARGUMENTS, "asked by"].every((name) => found.has(name));
  return hasAll && [...found.keys()].every((name) => known.has(name)) ? found : null;
}

const BECAUSE = "Asked because: ";
/** What is no label of the broker's: none has a capital letter. */
const WHAT = "What";
const WHY = "Why";
const ARGUMENTS = "arguments, exactly";
/** Labels of the broker, in the order in which a person needs them, and ours for them. */
const FACTS = [
  ["asked by", "Asked by"],
  [WHY, "Reason"],
  ["flagged by the mind", "Flagged"],
  ["who will see it", "Who sees it"],
  ["who will see it, by its arguments", "Who sees it"],
  ["class", "Class"],
];

/** @param {Map<string, string>} said @param {boolean} isOwn */
function facts(said, isOwn) {
  const list = node("dl");
  for (const [label, title] of FACTS) {
    const text = said.get(label);
    if (text === undefined) continue;
    const isOthers = label === "asked by" && !isOwn;
    list.append(node("dt", null, title), node("dd", isOthers || label.startsWith("flagged") ? { class: "strong" } : null, text));
  }
  return [list, node("p", { class: "label" }, "Arguments, exactly"), node("pre", { class: "exact" }, said.get(ARGUMENTS) ?? "")];
}

/** Something that may be longer than its place, and says so. @param {...HTMLElement} content */
function scrolled(...content) {
  const place = node("div", { class: "whole", tabindex: "0" }, ...content);
  const more = node("button", { type: "button", class: "quiet more" }, "↓ There is more below");
  const look = () => {
    const below = place.scrollHeight - place.clientHeight;
    more.hidden = below < 4;
    // It keeps its place when the end is reached: what stands below does not move under a hand that is about to click.
    more.style.visibility = below - place.scrollTop < 4 ? "hidden" : "visible";
  };
  more.hidden = true;
  more.addEventListener("click", () => place.scrollBy({ top: place.clientHeight * 0.8 }));
  place.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(place);
  return [place, more];
}
