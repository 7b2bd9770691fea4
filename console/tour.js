// The guided tour: the demo of embody, step by step, with this page's person as the owner who approves or denies.

import * as api from "./api.js";
import { events } from "./events.js";
import { byId, node, prose } from "./nodes.js";

/** @typedef {import("./api.js").Me} Me */

const MARKS = /** @type {Record<string, string>} */ ({ sent: "→", received: "←" });
const LABELS = /** @type {Record<string, string>} */ ({ sent: "The host sends", received: "It gets" });

/** @type {AbortController | null} */
let running = null;
let offered = false;

/** Offers the tour where no model can talk yet. @param {Me | null} me */
export function offerTour(me) {
  const isOffered = Boolean(me?.is_owner && !me.has_model);
  const room = byId("tour-offer");
  room.hidden = !isOffered;
  if (!isOffered || offered) return;
  offered = true;
  const button = node("button", { type: "button", id: "tour" }, "Guided tour");
  button.addEventListener("click", begin);
  room.replaceChildren(node("div", { class: "card" },
    node("p", null, "See it work without a model: a scripted host, the real broker, and an approval that you give or deny."), button));
  const panel = byId("tour-panel");
  // Closing the panel ends the tour.
  panel.addEventListener("close", () => running?.abort());
  byId("tour-close").addEventListener("click", () => panel.close());
}

async function begin() {
  const panel = byId("tour-panel");
  if (running && !running.signal.aborted) return panel.showModal();
  const steps = byId("tour-steps");
  steps.replaceChildren();
  if (!panel.open) panel.showModal();
  const mine = running = new AbortController();
  const drawing = new Tour(steps);
  try {
    for await (const { event, data } of events(await api.tour(mine.signal))) drawing.draw(event, data);
    if (!drawing.over) drawing.failed("The tour was interrupted", "");
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error instanceof api.Refusal) drawing.failed(error.message, error.hint ?? "");
    else drawing.failed("Could not reach embody", "");
  } finally {
    if (running === mine) running = null;
  }
}

class Tour {
  /** @param {HTMLElement} steps */
  constructor(steps) {
    this.steps = steps;
    this.id = "";
    /** @type {HTMLElement} where lines go */
    this.step = steps;
    this.over = false;
  }

  /** @param {string} event @param {any} data */
  draw(event, data) {
    switch (event) {
      case "tour": this.id = data.tour; return;
      case "step": return this.begin(data.number, data.title);
      case "line": return this.line(data.kind, data.text);
      case "ask": return this.ask();
      case "failed": return this.failed(data.message, data.hint);
      case "done": return this.done(data.approved, data.took_ms);
    }
  }

  /** @param {number} number @param {string} title */
  begin(number, title) {
    this.step = node("li", { class: "step" }, node("h3", null, `${number}  ${title}`));
    this.show(this.steps, this.step);
  }

  /** @param {string} kind @param {string} text */
  line(kind, text) {
    if (kind === "quote") {
      const before = this.step.lastElementChild;
      if (before?.matches("pre.exact")) return void before.append(`\n${text}`);
      return this.show(this.step, node("pre", { class: "exact", tabindex: "0" }, text));
    }
    if (!MARKS[kind]) return this.show(this.step, node("p", null, ...prose(text)));
    const mark = node("span", { class: "mark", "aria-hidden": "true" }, MARKS[kind]);
    this.show(this.step, node("p", { class: kind }, mark, node("span", { class: "hidden" }, LABELS[kind]), node("code", null, text)));
  }

  ask() {
    const row = node("div", { class: "row" });
    for (const [name, approve] of /** @type {[string, boolean][]} */ ([["Approve", true], ["Deny", false]])) {
      const button = node("button", { type: "button", class: approve ? "primary" : "" }, name);
      button.addEventListener("click", () => this.answer(row, approve));
      row.append(button);
    }
    this.show(this.step, row);
  }

  /** @param {HTMLElement} row @param {boolean} approve */
  async answer(row, approve) {
    row.replaceWith(node("p", { class: "answer" }, approve ? "You approved." : "You denied."));
    try {
      await api.answerTour(this.id, approve);
    } catch (error) {
      this.failed(error instanceof api.Refusal ? error.message : "Could not reach embody", "");
    }
  }

  /** @param {boolean} approved @param {number} took */
  done(approved, took) {
    this.over = true;
    const said = approved ? "The message was sent once" : "The message was not sent";
    this.show(this.steps, node("li", { class: "end" }, node("p", null,
      `${said}, and all of it was on record. The tour took ${(took / 1000).toFixed(1)} s; its temporary folder is removed.`), this.again()));
  }

  /** @param {string} message @param {string} hint */
  failed(message, hint) {
    if (this.over) return;
    this.over = true;
    this.steps.querySelectorAll(".row").forEach((row) => row.remove());
    this.show(this.steps, node("li", { class: "note bad" }, node("p", null, node("strong", null, ...prose(message))),
      hint ? node("p", null, ...prose(hint)) : null, this.again()));
  }

  again() {
    const button = node("button", { type: "button" }, "Start again");
    button.addEventListener("click", begin);
    return node("div", { class: "row" }, button);
  }

  /** @param {HTMLElement} room @param {HTMLElement} made */
  show(room, made) {
    room.append(made);
    made.scrollIntoView({ block: "nearest" });
  }
}
