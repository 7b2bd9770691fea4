// A conversation as it is drawn: words, calls, and what went wrong.

import { markdown } from "./markdown.js";
import { byId, node, prose } from "./nodes.js";

/** @typedef {import("./api.js").Message} Message */
/** @typedef {import("./api.js").Waiting} Waiting */
/** @typedef {{ id: string, name: string, is_error?: boolean, decision?: string | null, approval?: string | null, settled?: string | null, text?: string }} Result */

/** A text is drawn anew at most so often, in milliseconds; a long one less often. */
const DRAW = 80;

/** Whether the one who looks decides about calls that wait, or somebody else does. */
let decides = false;

/** @param {boolean} may */
export function mayDecide(may) {
  decides = may;
}

const whose = () => (decides ? "your" : "the owner's");
const deniedBy = () => `was denied by ${decides ? "you" : "the owner"}`;
const waits = () => `waits for ${whose()} approval`;

/**
 * What became of a call: its state, a mark, and words.
 * @param {Result} result
 * @returns {[string, string, string]}
 */
function outcome({ is_error, decision, settled, approval }) {
  // Of a call that waited, what became of its approval counts.
  const state = settled ?? (decision === "timeout" && approval ? "expired" : decision);
  switch (state) {
    case "pending": return ["held", "‖", waits()];
    case "held": return ["held", "‖", `is held until ${decides ? "you have" : "the owner has"} looked at the changed tool`];
    case "approved": case "used": return ["held", "‖", "waited, and was approved"];
    case "unknown": return ["held", "‖", `waited for ${whose()} approval; how that ended is not known here any more`];
    case "denied": return ["denied", "⊘", deniedBy()];
    case "deny": return ["denied", "⊘", approval ? deniedBy() : "was denied"];
    case "expired": return ["denied", "⊘", "expired without an answer"];
    case "unused": return ["denied", "⊘", "was approved, but not made in time"];
    case "bounce": return ["held", "↻", "has to be made again"];
    case "timeout": return ["failed", "✕", "took too long"];
    case "blocked": return ["failed", "✕", "is blocked"];
  }
  return is_error ? ["failed", "✕", decision || "failed"] : ["done", "✓", decision || ""];
}

/** One turn as it is drawn: words and calls, in the order in which they come. */
export class Drawing {
  constructor() {
    this.element = node("li", { class: "theirs" });
    /** @type {{ element: HTMLElement, text: string } | null} */
    this.words = null;
    /** @type {Map<string, HTMLElement[]>} the lines of calls by their ids; an id names one call of an answer, and may come again in the next */
    this.tools = new Map();
    this.drawn = 0;
    /** @type {number | undefined} */
    this.timer = undefined;
    /** @type {HTMLElement | null} the line that counts the retries of a request */
    this.retries = null;
    this.thinking = node("div", { class: "thinking", role: "status", "aria-label": "The agent is thinking" });
    this.element.append(this.thinking);
  }

  /** Puts something behind all else; while the agent thinks, that stands last. @param {HTMLElement} made */
  put(made) {
    if (this.thinking.parentNode) this.thinking.before(made);
    else this.element.append(made);
  }

  /** One line, which the next one replaces. @param {string} text */
  retrying(text) {
    if (!this.retries) this.put(this.retries = node("p", { class: "aside retries", role: "status" }));
    this.retries.textContent = text;
    stick();
  }

  answers() {
    this.retries?.remove();
    this.retries = null;
  }

  /** @param {string} delta */
  text(delta) {
    this.answers();
    if (!this.words) {
      this.words = { element: node("div", { class: "words" }), text: "" };
      this.put(this.words.element);
    }
    this.words.text += delta;
    const due = this.drawn + Math.max(DRAW, this.words.text.length / 100) - performance.now();
    if (due <= 0) this.draw();
    else this.timer ??= window.setTimeout(() => this.draw(), due);
  }

  draw() {
    window.clearTimeout(this.timer);
    this.timer = undefined;
    this.drawn = performance.now();
    if (this.words) this.words.element.replaceChildren(markdown(this.words.text));
    stick();
  }

  /** @param {string} id @param {string} name @param {string} [args] */
  tool(id, name, args) {
    this.answers();
    this.draw();
    this.words = null;
    const line = node("div", { class: "tool", "data-state": "running" },
      node("span", { class: "mark", "aria-hidden": "true" }, "◌"), node("code", null, name), node("span", { class: "said" }));
    this.tools.set(id, [...this.tools.get(id) ?? [], line]);
    this.put(line);
    if (args !== undefined) this.holds(line, "Arguments", args);
    stick();
    return line;
  }

  /** @param {Result} done */
  toolDone(done) {
    const line = this.tools.get(done.id)?.at(-1) ?? this.tool(done.id, done.name);
    ended(line, done);
    if (done.text !== undefined) this.holds(line, resultTitle(done.is_error), done.text);
  }

  /** Which of the calls that go on wait for somebody's word. @param {Waiting[]} waiting those that do */
  toolsWait(waiting) {
    for (const line of [...this.tools.values()].flat()) {
      const name = line.querySelector("code")?.textContent ?? "";
      const does = waiting.some(({ body, tool }) => name === tool || name === `${body}__${tool}`);
      if (line.dataset.state === "running" && does) mark(line, "waiting", "‖", waits());
      else if (line.dataset.state === "waiting" && !does) mark(line, "running", "◌", "");
    }
  }

  /**
   * Calls can be opened once the thread has what they were made with, and what came of them.
   * @param {Message[]} messages those of this turn, of which the calls are drawn already
   */
  fill(messages) {
    const left = new Map([...this.tools].map(([id, lines]) => [id, [...lines]]));
    /** @type {Map<string, HTMLElement | undefined>} those that a result is for */
    const open = new Map();
    for (const { calls, id, text, is_error } of messages) {
      for (const call of calls ?? []) {
        const line = left.get(call.id)?.shift();
        open.set(call.id, line);
        if (line) this.holds(line, "Arguments", call.arguments);
      }
      const line = open.get(id ?? "");
      if (line) this.holds(line, resultTitle(is_error), text ?? "");
    }
  }

  /** What a call's line can be opened for. @param {HTMLElement} line @param {string} title @param {string} text */
  holds(line, title, text) {
    if (!text.trim()) return;
    if (line.parentElement?.tagName !== "SUMMARY") {
      const parts = node("details", { class: "call" });
      line.replaceWith(parts);
      parts.append(node("summary", null, line));
    }
    const parts = /** @type {HTMLElement} */ (line.closest("details"));
    parts.append(node("p", null, title), node("pre", { class: "exact", tabindex: "0" }, text));
  }

  /** @param {string} text */
  aside(text) {
    this.put(node("p", { class: "aside" }, text));
    stick();
  }

  /** @param {string} message @param {string | null | undefined} hint */
  failed(message, hint) {
    this.end();
    this.put(problem(message, hint));
    stick();
  }

  /** The last words are what the reply is, whatever was missed on the way. @param {string | null} reply */
  done(reply) {
    if (reply !== null && this.words?.text !== reply) {
      if (!this.words) this.text("");
      if (this.words) this.words.text = reply;
    }
    this.end();
  }

  end() {
    this.answers();
    this.draw();
    this.thinking.remove();
    for (const line of [...this.tools.values()].flat()) {
      if (line.dataset.state === "running" || line.dataset.state === "waiting") mark(line, "failed", "✕", "was broken off");
    }
  }
}

/** @param {HTMLElement} line @param {string} state @param {string} sign @param {string} words */
function mark(line, state, sign, words) {
  line.dataset.state = state;
  const [signs, said] = line.querySelectorAll("span");
  signs.textContent = sign;
  said.textContent = words;
}

/** The call of this line has come to an end, or waits for one. @param {HTMLElement} line @param {Result} done */
function ended(line, done) {
  const waits = (done.decision === "pending" || done.decision === "held") && (done.settled ?? "pending") === "pending";
  if (waits && done.approval) line.dataset.approval = done.approval;
  else delete line.dataset.approval;
  mark(line, ...outcome(done));
}

/** The lines in view of calls that their turn left waiting. @returns {HTMLElement[]} */
const left = () => [...byId("messages").querySelectorAll(".tool[data-approval]")];

/** Whether a call is drawn as one that waits, but does not. @param {Waiting[]} waiting those that do */
export function isStale(waiting) {
  const ids = new Set(waiting.map(({ approval }) => approval));
  return left().some((line) => !ids.has(line.dataset.approval ?? ""));
}

/** What became of calls that waited. @param {Message[]} messages */
export function settle(messages) {
  for (const line of left()) {
    const found = messages.find((message) => message.approval === line.dataset.approval);
    if (found?.id && found.name) ended(line, { ...found, id: found.id, name: found.name });
  }
}

/** @param {boolean | undefined} isError */
const resultTitle = (isError) => (isError ? "Error" : "Result");

/** @param {string} message @param {string | null | undefined} hint */
export function problem(message, hint) {
  const [first, ...lines] = (hint ?? "").split("\n");
  // What comes with lines to add is no accident, only something to be done.
  return node("div", { class: lines.length ? "note todo" : "note bad", role: "alert" },
    node("p", null, node("strong", null, ...prose(message))),
    first ? node("p", null, ...prose(first)) : null,
    lines.length ? node("pre", { class: "exact", tabindex: "0" }, lines.join("\n")) : null);
}

/** Whether the newest is in view; if so it stays there. */
let sticks = true;

export function watchScroll() {
  const scroll = byId("scroll");
  scroll.addEventListener("scroll", () => {
    sticks = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 60;
  }, { passive: true });
  new ResizeObserver(() => stick()).observe(scroll);
}

export function stick(anew = false) {
  const scroll = byId("scroll");
  sticks ||= anew;
  // Without messages nothing is newest: the page is read from its beginning.
  if (sticks && byId("messages").childElementCount) scroll.scrollTop = scroll.scrollHeight;
}

/** @param {string} text */
export function mine(text) {
  return node("li", { class: "mine" }, node("div", null, text));
}

const DECIDED = /^\[embody: the owner (approved|denied) the waiting call of (\S+?)(, and it was made|, but it could not be made)?\. [^\n]*\]$/;
/** As stored by earlier versions. */
const DECIDED_BEFORE = /^\[embody: the owner has (approved|said no to) the call of (\S+) that waited(, but it could not be made)?[^\n]*\]$/;

/** What embody itself says to the agent in the user's place is no message of the user. @param {string} text */
function told(text) {
  const found = DECIDED.exec(text) ?? DECIDED_BEFORE.exec(text);
  if (!found) return null;
  const [, word, name, outcome = ""] = found;
  const failed = outcome.startsWith(", but") ? ", but it could not be made" : "";
  const words = `${decides ? "You" : "The owner"} ${word === "approved" ? "approved" : "denied"} ${name}${failed}.`;
  return node("li", null, node("p", { class: "aside" }, words));
}

/**
 * @param {Message[]} messages
 * @param {{ last: boolean }} what whether nothing comes after them any more
 * @returns {HTMLElement[]}
 */
export function drawn(messages, { last }) {
  /** @type {HTMLElement[]} */
  const rows = [];
  /** @type {Drawing | null} */
  let drawing = null;
  /** Whether somebody spoke, and nobody has answered. */
  let asked = false;
  const unanswered = () => {
    if (asked) rows.push(node("li", null, node("p", { class: "aside unanswered" }, "Not answered.")));
  };
  for (const message of messages) {
    if (message.role === "failure") {
      asked = false;
      if (!drawing) rows.push((drawing = new Drawing()).element);
      // What was tried again since is no longer a problem.
      if (last && message === messages.at(-1)) drawing.failed(message.text ?? "", message.hint);
      else drawing.aside(`Failed: ${message.text}`);
      drawing.end();
      drawing = null;
      continue;
    }
    if (message.role === "user") {
      drawing?.end();
      drawing = null;
      unanswered();
      asked = true;
      rows.push(told(message.text ?? "") ?? mine(message.text ?? ""));
      continue;
    }
    asked = false;
    if (!drawing) {
      drawing = new Drawing();
      rows.push(drawing.element);
    }
    if (message.role === "assistant") {
      const [, words, stopped] = /^([\s\S]*?)( \[stopped\])?$/.exec(message.text ?? "") ?? [];
      if (words) drawing.text(words);
      drawing.draw();
      if (stopped) drawing.aside("Stopped.");
      drawing.words = null;
      for (const call of message.calls ?? []) drawing.tool(call.id, call.name, call.arguments);
    } else if (message.id && message.name) {
      drawing.toolDone({ ...message, id: message.id, name: message.name });
    }
  }
  drawing?.end();
  if (!last) return rows;
  unanswered();
  const end = messages.at(-1);
  // A call that was approved afterwards stands alone until the conversation goes on.
  if (end?.role === "tool" && !end.id?.startsWith("approved-")) drawing?.aside("No reply.");
  return rows;
}
