// One conversation: its messages, the turn that goes on, and what is said next.

import * as api from "./api.js";
import { Drawing, drawn, mine, resultTitle, stick } from "./drawing.js";
import { byId } from "./nodes.js";

/** @typedef {import("./api.js").Message} Message */
/** @typedef {import("./api.js").Thread} Thread */
/** @typedef {import("./events.js").Told} Told */

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
    byId("messages").prepend(...drawn(messages, { last: false }));
    scroll.scrollTop = scroll.scrollHeight - below;
    this.first = messages[0]?.seq ?? 0;
    byId("earlier").hidden = !has_earlier;
  }

  /** Something may have happened elsewhere. @param {Thread | undefined} thread */
  async notice(thread) {
    if (!thread || thread.id !== this.thread || this.turn) return;
    if (thread.turn || thread.messages !== this.seen) await this.open(thread.id);
  }

  /** Calls of the turn may wait for somebody's word. @param {string[]} waiting the tools of those that do */
  waits(waiting) {
    this.drawing?.toolsWait(waiting);
  }

  /** @param {string} text @returns {Promise<boolean>} whether it was taken */
  async say(text) {
    stick(true);
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
    const name = this.turn;
    this.running(null);
    if (this.thread && began) {
      const known = await api.thread(this.thread).catch(() => null);
      if (known && known.thread.id === this.thread) {
        this.seen = known.thread.messages;
        fill(drawing, known.messages, name);
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

/**
 * Calls can be opened once the thread has what they were made with, and what came of them.
 * @param {Drawing} drawing @param {Message[]} messages @param {string | null} turn its name holds where in the thread it began
 */
function fill(drawing, messages, turn) {
  const began = Number(turn?.split(".").at(-2) ?? Infinity);
  for (const { seq, calls, id, text, is_error } of messages) {
    if (seq < began) continue;
    for (const call of calls ?? []) drawing.holds(call.id, "Arguments", call.arguments);
    if (id) drawing.holds(id, resultTitle(is_error), text ?? "");
  }
}
