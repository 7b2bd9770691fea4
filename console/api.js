// What is asked of embody. A refusal becomes a `Refusal` with the words that it came with.

import { events } from "./events.js";

/** @typedef {import("./events.js").Told} Told */
/** @typedef {{ user: string, agent: string, may_chat: boolean, may_operate: boolean, is_owner: boolean, has_model: boolean, config?: string, lacks?: string, configuration?: { problem: string | null, needs_restart: string[] } | null, version: string }} Me */
/** @typedef {{ id: string, title: string | null, channel: string, messages: number, changed_at: string, turn: { id: string, began: number } | null }} Thread */
/** @typedef {{ seq: number, at: string, role: "user" | "assistant" | "tool" | "failure", hint?: string | null, text?: string, calls?: { id: string, name: string, arguments: string }[], id?: string, name?: string, is_error?: boolean, decision?: string | null, approval?: string | null, settled?: string | null }} Message */
/** @typedef {{ approval: string, channel: string, body: string, tool: string }} Waiting */
/** @typedef {{ id: string, user: string, body: string, tool: string, class: string, reason: string, text: string | null, expires_at: string, flags: string[], rules_changed: boolean }} Approval */

/** @typedef {{ server: string, base_url: string, models: string[] }} FoundServer */

/** A request that was not served. */
export class Refusal extends Error {
  /** @param {number} status @param {{ message?: string, hint?: string, turn?: string }} error */
  constructor(status, error) {
    super(error.message ?? `embody answers with ${status}`);
    this.status = status;
    this.hint = error.hint;
    this.turn = error.turn;
  }
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
  const response = await fetch(path, { cache: "no-store", credentials: "same-origin", ...init });
  if (response.ok) return response;
  const said = await response.json().catch(() => ({}));
  throw new Refusal(response.status, said.error ?? {});
}

/** @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
function post(path, body, signal) {
  return ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal });
}

/** @returns {Promise<Me>} */
export const me = async () => (await ask("/api/me")).json();
/** @param {{ code?: string, token?: string }} secret @returns {Promise<Me>} */
export const login = async (secret) => (await post("/api/login", secret)).json();
export const logout = async () => { await post("/api/logout", {}); };
/** @returns {Promise<{ threads: Thread[], waiting: Waiting[] }>} */
export const threads = async () => (await ask("/api/threads")).json();
/** @param {string} id @param {number} [before] @returns {Promise<{ thread: Thread, messages: Message[], has_earlier: boolean }>} */
export const thread = async (id, before) => (await ask(`/api/threads/${encodeURIComponent(id)}${before ? `?before=${before}` : ""}`)).json();
/** @returns {Promise<{ approvals: Approval[], denied: Approval[] }>} those that wait, and those whose denial stands */
export const approvals = async () => (await ask("/api/approvals")).json();
/** @param {string} id @param {"approve" | "deny" | "ask_again"} decision */
export const decide = async (id, decision) => { await post("/api/approvals", { id, decision }); };
/** @returns {Promise<{ model: string | null, found: FoundServer[] }>} */
export const model = async () => (await ask("/api/model?discover=1")).json();
/** @param {Record<string, string>} model @returns {Promise<{ applied: boolean, file: string }>} */
export const setModel = async (model) => (await post("/api/model", model)).json();
/** @param {string} turn */
export const cancel = async (turn) => { await ask(`/api/chat/${encodeURIComponent(turn)}`, { method: "DELETE" }); };

/** @returns {Promise<{ notices: import("./notices.js").Notice[], unread: number }>} */
export const notices = async () => (await ask("/api/notices")).json();
/** @param {string[]} ids @returns {Promise<{ read: number, unread: number }>} */
export const readNotices = async (ids) => (await post("/api/notices/read", { ids })).json();
/** @param {AbortSignal} signal */
export const noticeEvents = (signal) => ask("/api/notices/events", { signal });
/** @param {AbortSignal} signal */
export const tour = (signal) => post("/api/tour", {}, signal);
/** @param {string} tour @param {boolean} approve */
export const answerTour = async (tour, approve) => { await post("/api/tour/answer", { tour, approve }); };

/** What ends a turn. */
export const LAST = new Set(["done", "failed", "cancelled"]);

/**
 * Says something, or tries the last turn of a thread again; what happens comes back. A stream that breaks is taken up again
 * where it was.
 * @param {{ thread: string | null, text: string } | { thread: string, retry: true }} said
 * @param {AbortSignal} signal
 * @returns {AsyncGenerator<Told>}
 */
export async function* say(said, signal) {
  const body = said.thread || "retry" in said ? said : { text: said.text };
  let turn = "";
  let last = "0";
  try {
    for await (const told of events(await post("/api/chat", body, signal))) {
      if (told.event === "turn") turn = told.data.turn;
      last = told.id;
      yield told;
      if (LAST.has(told.event)) return;
    }
  } catch (error) {
    // Before the turn has a name nobody knows whether it began: that is for the person to see.
    if (!turn || signal.aborted || error instanceof Refusal) throw error;
  }
  if (turn) yield* follow(turn, signal, last);
}

/**
 * What happens in a turn, from a place on.
 * @param {string} turn
 * @param {AbortSignal} signal
 * @param {string} [last]
 * @returns {AsyncGenerator<Told>}
 */
export async function* follow(turn, signal, last = "0") {
  for (let failures = 0; ; ) {
    try {
      const response = await ask(`/api/chat/${encodeURIComponent(turn)}`, { headers: { "last-event-id": last }, signal });
      for await (const told of events(response)) {
        failures = 0;
        last = told.id;
        yield told;
        if (LAST.has(told.event)) return;
      }
    } catch (error) {
      if (signal.aborted || error instanceof Refusal) throw error;
    }
    failures += 1;
    yield { id: last, event: "away", data: { failures } };
    await rest(Math.min(500 * 2 ** Math.min(failures, 4), 5000), signal);
  }
}

/** @param {number} ms @param {AbortSignal} signal */
function rest(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}
