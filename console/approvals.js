// Calls that wait for the owner. The text is shown exactly as the broker wrote it, and decided as it is shown.

import * as api from "./api.js";
import { byId, node } from "./nodes.js";

/** @typedef {import("./api.js").Approval} Approval */

/** @type {Map<string, HTMLElement>} */
const shown = new Map();

/** Looks at what waits, and shows it. */
export async function showApprovals() {
  const waiting = await api.approvals();
  const ids = new Set(waiting.map((approval) => approval.id));
  for (const [id, card] of shown) {
    if (!ids.has(id)) { card.remove(); shown.delete(id); }
  }
  for (const approval of waiting.reverse()) {
    if (shown.has(approval.id)) continue;
    const made = card(approval);
    shown.set(approval.id, made);
    byId("approvals").append(made);
  }
  const count = shown.size;
  byId("approvals").hidden = count === 0;
  const badge = byId("waiting");
  badge.hidden = count === 0;
  badge.textContent = count === 1 ? "1 call waits for you" : `${count} calls wait for you`;
}

/** @param {Approval} approval */
function card(approval) {
  const error = node("p", { class: "error", role: "alert" });
  error.hidden = true;
  const yes = /** @type {HTMLButtonElement} */ (node("button", { type: "button", class: "primary" }, "Approve once"));
  const no = /** @type {HTMLButtonElement} */ (node("button", { type: "button" }, "Deny"));
  // What cannot be shown whole cannot be approved.
  const text = approval.text ?? `${approval.tool} of ${approval.body}: this call cannot be shown whole, so it can only be denied.`;
  yes.disabled = approval.text === null;
  const answer = async (/** @type {"approve" | "deny"} */ decision) => {
    yes.disabled = no.disabled = true;
    try {
      await api.decide(approval.id, decision);
      await showApprovals();
    } catch (problem) {
      const refusal = /** @type {api.Refusal} */ (problem);
      error.textContent = [refusal.message, refusal.hint].filter(Boolean).join(" — ");
      error.hidden = false;
      yes.disabled = approval.text === null;
      no.disabled = false;
    }
  };
  yes.addEventListener("click", () => answer("approve"));
  no.addEventListener("click", () => answer("deny"));
  const until = new Date(approval.expires_at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return node("article", { class: "approval", "data-id": approval.id, "aria-label": `${approval.tool} waits for you` },
    node("h2", null, `May this happen? ${approval.body} / ${approval.tool}`),
    node("pre", { class: "exact", tabindex: "0" }, text),
    node("div", { class: "row" }, yes, no, node("span", { class: "until" }, `until ${until}`)),
    error);
}
