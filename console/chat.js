// One conversation: its messages, the turn that goes on, and what is said next.

import * as api from "./api.js";
import { Drawing, drawn, isStale, mine, settle, stick } from "./drawing.js";
import { byId, node } from "./nodes.js";

/** @typedef {import("./api.js").Thread} Thread */
/** @typedef {import("./api.js").Waiting} Waiting */
/** @typedef {import("./events.js").Told} Told */

/** A conversation is asked at most so often what became of its calls that waited, in milliseconds. */
const SETTLE = 5000;

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
    /** @type {Drawing | null} what the turn that goes on says. */
    this.drawing = null;
    /** Whether that turn is over, and what the thread has of it is still to come. */
    this.closing = false;
    /** @type {string | null} the last turn that came to its end in view: a list from before it may still name it. */
    this.over = null;
    /** @type {Waiting[]} calls of this user that wait for somebody's word, in any conversation. */
    this.waiting = [];
    /** @type {Set<string>} the approvals of those that waited before the turn in view began. */
    this.others = new Set();
    this.settled = 0;
    /** @type {HTMLElement | null} tries the last turn again. */
    this.again = null;
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
    this.offerRetry(false);
    this.stops.abort();
    this.stops = new AbortController();
    this.closing = false;
    this.running(null);
    stick(true);
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
    const said = messages.filter((message) => message.seq <= began);
    byId("messages").replaceChildren(...drawn(said, { last: thread.channel === "web" && !thread.turn }));
    this.offerRetry(thread.channel === "web" && !thread.turn && messages.at(-1)?.role === "failure");
    stick();
    if (thread.turn) {
      this.others = new Set();
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
    byId("messages").prepend(...drawn(messages, { last: false }));
    scroll.scrollTop = scroll.scrollHeight - below;
    this.first = messages[0]?.seq ?? 0;
    byId("earlier").hidden = !has_earlier;
  }

  /** Something may have happened elsewhere. @param {Thread | undefined} thread */
  async notice(thread) {
    if (!thread || thread.id !== this.thread || this.turn || this.closing) return;
    const goesOn = thread.turn && thread.turn.id !== this.over;
    if (goesOn || thread.messages > this.seen) await this.open(thread.id);
  }

  /**
   * Calls of the turn may wait for somebody's word, and those that an earlier one left may wait no more: when it is too late
   * for them nothing is said in the thread.
   * @param {Waiting[]} waiting all that do
   */
  async waits(waiting) {
    this.waiting = waiting;
    this.drawing?.toolsWait(waiting.filter(({ approval, channel }) => channel === "web" && !this.others.has(approval)));
    const id = this.thread;
    if (!id || !isStale(waiting) || performance.now() < this.settled + SETTLE) return;
    this.settled = performance.now();
    const { messages } = await api.thread(id);
    if (this.thread === id) settle(messages);
  }

  /** @param {string} text @returns {Promise<boolean>} whether it was taken */
  async say(text) {
    stick(true);
    this.offerRetry(false);
    const row = mine(text);
    byId("messages").append(row);
    byId("empty").hidden = true;
    this.running("…");
    this.others = new Set(this.waiting.map(({ approval }) => approval));
    const taken = await this.hear(api.say({ thread: this.thread, text }, this.stops.signal));
    if (!taken) row.remove();
    return taken;
  }

  /** Whether the last turn failed, and can be tried again. @param {boolean | undefined} can */
  offerRetry(can) {
    this.again?.remove();
    this.again = null;
    if (!can) return;
    const button = this.again = node("button", { type: "button", class: "again" }, "Retry");
    button.addEventListener("click", () => this.retry());
    byId("messages").lastElementChild?.append(button);
  }

  async retry() {
    if (!this.thread || this.turn) return;
    this.offerRetry(false);
    this.running("…");
    this.others = new Set(this.waiting.map(({ approval }) => approval));
    await this.hear(api.say({ thread: this.thread, retry: true }, this.stops.signal));
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
    const drawing = this.drawing = new Drawing();
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
    // Its name holds where in the thread it began.
    const from = Number(this.turn?.split(".").at(-2) ?? Infinity);
    if (api.LAST.has(ended)) this.over = this.turn;
    this.running(null);
    if (this.thread && began) {
      this.closing = true;
      const known = await api.thread(this.thread).catch(() => null);
      if (signal.aborted) return true;
      this.closing = false;
      if (known && known.thread.id === this.thread) {
        this.seen = known.thread.messages;
        drawing.fill(known.messages.filter(({ seq }) => seq >= from));
        this.offerRetry(ended === "failed" && known.messages.at(-1)?.role === "failure");
      }
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
      case "waiting": {
        const count = data.most === null ? data.retry : `${data.retry} of ${data.most}`;
        return drawing.retrying(`The model does not answer; retry ${count} in ${Math.ceil(data.after_ms / 1000)} s: ${data.reason}`);
      }
      case "starting": return drawing.aside(`Waiting for ${data.servers.join(", ")} to start.`);
      case "missing": {
        const names = data.servers.map((/** @type {{name: string, reason: string | null}} */ one) =>
          `${one.name} (${one.reason === null ? "still starting" : one.reason})`);
        return drawing.aside(`The agent goes on without ${names.join(", ")}.`);
      }
      case "away": return data.failures === 2 ? drawing.aside("Connection lost; reconnecting.") : undefined;
      case "failed": return drawing.failed(data.message, data.hint);
      case "cancelled": drawing.end(); return drawing.aside("Stopped.");
      case "done":
        drawing.done(data.reply);
        if (data.is_cut) drawing.aside("The reply is cut: the model reached its output limit.");
        if (data.reply === null) drawing.aside("The agent did not reply.");
    }
  }

  /** @param {Drawing} drawing @param {unknown} error @param {boolean} began */
  broken(drawing, error, began) {
    if (error instanceof api.Refusal) {
      if (error.status === 401) return this.hooks.lost(error);
      return drawing.failed(error.message, error.hint);
    }
    const hint = began ? "Reload the page when embody runs again." : "Your message may not have been sent.";
    drawing.failed("Could not reach embody", hint);
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
    text.placeholder = channel === "web" ? "Message" : `Continue this conversation on ${channel}.`;
  }
}
