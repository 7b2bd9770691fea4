// One conversation: its messages, the turn that goes on, and what is said next.

import * as api from "./api.js";
import { markdown } from "./markdown.js";
import { byId, node } from "./nodes.js";

/** @typedef {import("./api.js").Message} Message */
/** @typedef {import("./api.js").Thread} Thread */
/** @typedef {import("./events.js").Told} Told */

/** A text is drawn anew at most so often, in milliseconds; a long one less often. */
const DRAW = 80;

/** What the broker decided about a call, in words. */
const DECISIONS = /** @type {Record<string, string>} */ ({
  pending: "waits for you",
  deny: "was denied",
  bounce: "has to be made again",
  held: "is held until you have looked at the changed tool",
  timeout: "took too long",
  blocked: "is blocked",
});

/** One turn as it is drawn: words and calls, in the order in which they come. */
class Drawing {
  constructor() {
    this.element = node("li", { class: "theirs" });
    /** @type {{ element: HTMLElement, text: string } | null} */
    this.words = null;
    /** @type {Map<string, HTMLElement>} */
    this.tools = new Map();
    this.drawn = 0;
    /** @type {number | undefined} */
    this.timer = undefined;
    this.thinking = node("div", { class: "thinking", role: "status", "aria-label": "The agent is thinking" });
    this.element.append(this.thinking);
  }

  /** @param {string} delta */
  text(delta) {
    if (!this.words) {
      this.words = { element: node("div", { class: "words" }), text: "" };
      this.element.append(this.words.element, this.thinking);
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

  /** @param {string} id @param {string} name */
  tool(id, name) {
    this.draw();
    this.words = null;
    const line = node("div", { class: "tool", "data-state": "running" },
      node("span", { class: "mark", "aria-hidden": "true" }, "◌"), node("code", null, name), node("span", { class: "said" }));
    this.tools.set(id, line);
    this.element.append(line, this.thinking);
    stick();
  }

  /** @param {{ id: string, name: string, is_error?: boolean, decision?: string | null }} done */
  toolDone({ id, name, is_error, decision }) {
    if (!this.tools.has(id)) this.tool(id, name);
    const line = /** @type {HTMLElement} */ (this.tools.get(id));
    const held = decision === "pending" || decision === "held";
    line.dataset.state = held ? "held" : is_error ? "failed" : "done";
    const [mark, said] = line.querySelectorAll("span");
    mark.textContent = held ? "⏸" : is_error ? "✕" : "✓";
    said.textContent = decision ? (DECISIONS[decision] ?? decision) : is_error ? "failed" : "";
  }

  /** @param {string} text */
  aside(text) {
    this.element.append(node("p", { class: "aside" }, text), this.thinking);
    stick();
  }

  /** @param {string} message @param {string | null | undefined} hint */
  failed(message, hint) {
    this.end();
    this.element.append(problem(message, hint));
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
    this.draw();
    this.thinking.remove();
    for (const line of this.tools.values()) {
      if (line.dataset.state === "running") this.toolEnd(line);
    }
  }

  /** @param {HTMLElement} line */
  toolEnd(line) {
    line.dataset.state = "failed";
    const [mark, said] = line.querySelectorAll("span");
    mark.textContent = "✕";
    said.textContent = "was broken off";
  }
}

/** @param {string} message @param {string | null | undefined} hint */
export function problem(message, hint) {
  const [first, ...lines] = (hint ?? "").split("\n");
  // What comes with lines to add is no accident, only something to be done.
  return node("div", { class: lines.length ? "note todo" : "note bad", role: "alert" },
    node("p", null, node("strong", null, sentence(message))),
    first ? node("p", null, sentence(first)) : null,
    lines.length ? node("pre", { class: "exact", tabindex: "0" }, lines.join("\n")) : null);
}

/** @param {string} text */
function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
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

function stick() {
  const scroll = byId("scroll");
  if (sticks) scroll.scrollTop = scroll.scrollHeight;
}

/** @param {string} text */
function mine(text) {
  return node("li", { class: "mine" }, node("div", null, text));
}

/** What embody itself says to the agent in the user's place is no message of the user. @param {string} text */
function told(text) {
  const found = /^\[embody: the owner has (approved|said no to) the call of (\S+) that waited(, but it could not be made)?[^\n]*\]$/.exec(text);
  if (!found) return null;
  const [, word, name, failed] = found;
  const words = word === "approved" ? `You approved ${name}${failed ? ", but it could not be made" : ""}.` : `You said no to ${name}.`;
  return node("li", null, node("p", { class: "aside" }, words));
}

/** @param {Message[]} messages @returns {HTMLElement[]} */
function drawn(messages) {
  /** @type {HTMLElement[]} */
  const rows = [];
  /** @type {Drawing | null} */
  let drawing = null;
  for (const message of messages) {
    if (message.role === "user") {
      drawing?.end();
      drawing = null;
      rows.push(told(message.text ?? "") ?? mine(message.text ?? ""));
      continue;
    }
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
      for (const call of message.calls ?? []) drawing.tool(call.id, call.name);
    } else if (message.id && message.name) {
      drawing.toolDone({ id: message.id, name: message.name, is_error: message.is_error });
    }
  }
  drawing?.end();
  return rows;
}

/** The conversation in view. */
export class Chat {
  /** @param {{ changed: () => void, lost: (refusal: api.Refusal) => void }} hooks told when the list has to be looked at, and when nobody is signed in any more */
  constructor(hooks) {
    this.hooks = hooks;
    /** @type {string | null} */
    this.thread = null;
    /** @type {string | null} */
    this.turn = null;
    /** How many messages of the thread are drawn. */
    this.seen = 0;
    this.first = 0;
    this.stops = new AbortController();
    byId("earlier").addEventListener("click", () => this.earlier());
  }

  /** Nothing, to begin with. */
  clear() {
    this.leave();
    this.thread = null;
    this.seen = 0;
    byId("messages").replaceChildren();
    byId("earlier").hidden = true;
    byId("title").textContent = "New conversation";
    this.writable("web");
  }

  /** The turn goes on without us. */
  leave() {
    this.stops.abort();
    this.stops = new AbortController();
    this.running(null);
    sticks = true;
  }

  /** @param {string} id */
  async open(id) {
    this.leave();
    this.thread = id;
    const { thread, messages, has_earlier } = await api.thread(id);
    if (this.thread !== id) return;
    byId("title").textContent = thread.title || "Untitled";
    this.writable(thread.channel);
    this.seen = thread.messages;
    this.first = messages[0]?.seq ?? 0;
    byId("earlier").hidden = !has_earlier;
    // What the running turn has said so far comes with its events.
    const began = thread.turn?.began ?? Infinity;
    byId("messages").replaceChildren(...drawn(messages.filter((message) => message.seq <= began)));
    stick();
    if (thread.turn) {
      this.running(thread.turn.id);
      this.hear(api.follow(thread.turn.id, this.stops.signal));
    }
  }

  /** Messages before those in view. */
  async earlier() {
    if (!this.thread || !this.first) return;
    const { messages, has_earlier } = await api.thread(this.thread, this.first);
    const scroll = byId("scroll");
    const below = scroll.scrollHeight - scroll.scrollTop;
    byId("messages").prepend(...drawn(messages));
    scroll.scrollTop = scroll.scrollHeight - below;
    this.first = messages[0]?.seq ?? 0;
    byId("earlier").hidden = !has_earlier;
  }

  /** Something may have happened elsewhere. @param {Thread | undefined} thread */
  async notice(thread) {
    if (!thread || thread.id !== this.thread || this.turn) return;
    if (thread.turn || thread.messages !== this.seen) await this.open(thread.id);
  }

  /** @param {string} text @returns {Promise<boolean>} whether it was taken */
  async say(text) {
    sticks = true;
    const row = mine(text);
    byId("messages").append(row);
    byId("empty").hidden = true;
    this.running("…");
    const taken = await this.hear(api.say({ thread: this.thread, text }, this.stops.signal));
    if (!taken) row.remove();
    return taken;
  }

  async stop() {
    if (!this.turn || this.turn === "…") return;
    try {
      await api.cancel(this.turn);
    } catch (error) {
      // It ended meanwhile, which is what was wanted.
      if (!(error instanceof api.Refusal)) throw error;
    }
  }

  /** @param {AsyncGenerator<Told>} turn @returns {Promise<boolean>} whether it began */
  async hear(turn) {
    const drawing = new Drawing();
    const signal = this.stops.signal;
    byId("messages").append(drawing.element);
    stick();
    let began = false;
    let ended = "";
    try {
      for await (const { event, data } of turn) {
        if (signal.aborted) return true;
        if (event === "turn") {
          began = true;
          this.began(data.turn, data.thread);
        }
        this.draw(drawing, event, data);
        ended = event;
      }
    } catch (error) {
      if (signal.aborted) return true;
      this.broken(drawing, error, began);
      if (error instanceof api.Refusal && error.status === 401) return began;
    }
    if (signal.aborted) return true;
    this.running(null);
    if (this.thread && began) {
      const known = await api.thread(this.thread).catch(() => null);
      if (known && known.thread.id === this.thread) this.seen = known.thread.messages;
    }
    this.hooks.changed();
    return began || ended !== "failed";
  }

  /** @param {Drawing} drawing @param {string} event @param {any} data */
  draw(drawing, event, data) {
    switch (event) {
      case "text": return drawing.text(data.delta);
      case "tool": return drawing.tool(data.id, data.name);
      case "tool_done": this.hooks.changed(); return drawing.toolDone(data);
      case "waiting": return drawing.aside(`The model is asked again in ${Math.ceil(data.after_ms / 1000)} s: ${data.reason}`);
      case "away": return data.failures === 2 ? drawing.aside("The connection is lost; trying again.") : undefined;
      case "failed": return drawing.failed(data.message, data.hint);
      case "cancelled": drawing.end(); return drawing.aside("Stopped.");
      case "done":
        drawing.done(data.reply);
        if (data.is_cut) drawing.aside("The reply is cut: the model met the limit of its length.");
        if (data.reply === null) drawing.aside("The agent has nothing to say.");
    }
  }

  /** @param {Drawing} drawing @param {unknown} error @param {boolean} began */
  broken(drawing, error, began) {
    if (error instanceof api.Refusal) {
      if (error.status === 401) return this.hooks.lost(error);
      return drawing.failed(error.message, error.hint);
    }
    const hint = began ? "Reload the page when embody is back." : "Is embody still running? Nothing was sent, or nobody knows.";
    drawing.failed("embody does not answer", hint);
  }

  /** @param {string} turn @param {string} thread */
  began(turn, thread) {
    this.running(turn);
    if (this.thread === thread) return;
    this.thread = thread;
    history.replaceState(null, "", `#/t/${thread}`);
    this.hooks.changed();
  }

  /** @param {string | null} turn */
  running(turn) {
    this.turn = turn;
    byId("send").hidden = turn !== null;
    byId("stop").hidden = turn === null;
    byId("stop").disabled = turn === "…";
  }

  /** Conversations of other channels go on there. @param {string} channel */
  writable(channel) {
    const text = byId("text");
    text.disabled = byId("send").disabled = channel !== "web";
    text.placeholder = channel === "web" ? "Message" : `This conversation goes on on ${channel}.`;
  }
}
