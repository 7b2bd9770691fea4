// The page: signing in, and then the list and one conversation.

import * as api from "./api.js";
import { forgetApprovals, showApprovals } from "./approvals.js";
import { Chat } from "./chat.js";
import { mayDecide, watchScroll } from "./drawing.js";
import { modelForm } from "./model.js";
import { byId, node, prose, sentence } from "./nodes.js";
import { followNotices, forgetNotices } from "./notices.js";
import { named, place, showThreads } from "./threads.js";
import { offerTour } from "./tour.js";

/** @typedef {import("./api.js").Me} Me */

/** How often the page looks for what happened elsewhere, in milliseconds: while a turn goes on, and otherwise. */
const LOOK = { busy: 1500, idle: 4000 };

const CODE = /^#code=([0-9a-f]+)$/;

/** @type {Me | null} */
let me = null;
/** @type {HTMLFormElement | null} while there is no model */
let form = null;
const chat = new Chat({ changed: () => look(), lost: (refusal) => signIn(refusal.message) });
/** Pages of one browser have one session: when somebody signs in or out, all begin anew. */
const others = new BroadcastChannel("embody");

start();

async function start() {
  byId("signin-form").addEventListener("submit", submitSecret);
  window.addEventListener("hashchange", () => arrive());
  others.onmessage = () => location.reload();
  const problem = await useCode();
  try {
    me = await api.me();
  } catch (error) {
    return signIn(error instanceof api.Refusal ? problem : "Could not reach embody. Is it running?");
  }
  enter();
  if (problem) say(`${problem}. You are signed in as ${me.user}, as before.`, true);
}

/** The address has changed: it names a conversation, or holds a code. */
async function arrive() {
  if (!CODE.test(location.hash)) return show();
  const problem = await useCode();
  if (!problem) return anew();
  if (!me) return signIn(problem);
  if (chat.thread) history.replaceState(null, "", place(chat.thread));
  say(`${problem}. You are still signed in as ${me.user}.`, true);
}

/**
 * Signs in with the code in the address, whoever was signed in before: to open it is to wish for it. A code that does not
 * hold changes nothing.
 * @returns {Promise<string | null>} why it could not
 */
async function useCode() {
  const code = CODE.exec(location.hash)?.[1];
  if (!code) return null;
  // It is a secret, and does not stay in the address.
  history.replaceState(null, "", "/");
  try {
    await api.login({ code });
    others.postMessage("signed in");
    return null;
  } catch (refusal) {
    return words(refusal);
  }
}

/** @param {SubmitEvent} event */
async function submitSecret(event) {
  event.preventDefault();
  const field = byId("secret");
  const secret = field.value.trim().replace(/^.*#code=/, "");
  field.value = "";
  try {
    await api.login(/^[0-9a-f]{64}$/.test(secret) ? { code: secret } : { token: secret });
  } catch (refusal) {
    return signIn(words(refusal));
  }
  others.postMessage("signed in");
  anew();
}

async function signOut() {
  await api.logout().catch(() => {});
  others.postMessage("signed out");
  history.replaceState(null, "", "/");
  anew();
}

/** Begins anew: nothing of whoever was there before is left in the page. */
function anew() {
  location.reload();
}

/** @param {string | null} problem */
function signIn(problem) {
  me = null;
  forgetApprovals();
  forgetNotices();
  byId("app").hidden = true;
  byId("signin").hidden = false;
  byId("signin-error").hidden = !problem;
  byId("signin-error").replaceChildren(...prose(problem ?? ""));
  byId("secret").focus();
}

function enter() {
  if (!me) return;
  mayDecide(me.may_operate);
  byId("app").hidden = false;
  byId("who").textContent = me.user === "owner" ? me.agent : `${me.user} · ${me.agent}`;
  byId("new").hidden = byId("composer").hidden = byId("hint").hidden = !me.may_chat;
  listen();
  followNotices((refusal) => signIn(refusal.message));
  // On a phone the keyboard would cover the page.
  if (me.may_chat && matchMedia("(pointer: fine)").matches) byId("text").focus();
  show();
  look();
}

function listen() {
  watchScroll();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  byId("new").addEventListener("click", () => { location.hash = ""; show(); byId("text").focus(); });
  byId("signout").addEventListener("click", signOut);
  byId("waiting").addEventListener("click", () => byId("approvals").querySelector(".row button")?.focus());
  byId("menu").addEventListener("click", () => drawer(true));
  byId("close").addEventListener("click", () => drawer(false));
  byId("shade").addEventListener("click", () => drawer(false));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") drawer(false); });
  byId("composer").addEventListener("submit", (/** @type {SubmitEvent} */ event) => { event.preventDefault(); send(); });
  byId("stop").addEventListener("click", () => chat.stop());
  const text = byId("text");
  text.addEventListener("input", () => grow(text));
  text.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
  });
}

/** @param {boolean} open */
function drawer(open) {
  const side = byId("side");
  if (side.classList.contains("open") === open) return;
  side.classList.toggle("open", open);
  byId("shade").hidden = !open;
  byId("menu").setAttribute("aria-expanded", String(open));
  (open ? byId("close") : byId("menu")).focus();
}

/** Shows what the address names. */
async function show() {
  if (!me) return;
  byId("side").classList.remove("open");
  byId("shade").hidden = true;
  const id = named();
  say(null);
  if (!me.may_chat) return look();
  if (!id) {
    chat.clear();
    empty();
    return look();
  }
  if (id === chat.thread) return;
  byId("empty").hidden = true;
  try {
    await chat.open(id);
  } catch (refusal) {
    if (refusal instanceof api.Refusal && refusal.status === 401) return signIn(refusal.message);
    chat.clear();
    history.replaceState(null, "", "/");
    empty();
    say(words(refusal), true);
  }
  look();
}

async function send() {
  const field = byId("text");
  const text = field.value;
  if (!text.trim() || chat.turn || field.disabled) return;
  field.value = "";
  grow(field);
  say(null);
  const taken = await chat.say(text);
  if (!taken && me && !me.has_model) empty();
  // What was not taken is not lost.
  if (!taken && !field.value) {
    field.value = text;
    grow(field);
  }
}

/** @param {HTMLTextAreaElement} field */
function grow(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}

/** What is there before anything is said. @param {number} [waiting] calls that wait */
function empty(waiting = 0) {
  const room = byId("empty");
  room.hidden = false;
  offerTour(me);
  if (!me?.may_chat) {
    byId("title").textContent = "Approvals";
    return room.replaceChildren(waiting ? card("Pending approvals", "They are shown below. This token can decide about calls; it cannot talk to the agent.")
      : card("No pending approvals", "A call that needs approval appears here. This token can decide about calls; it cannot talk to the agent."));
  }
  const yes = me.may_operate ? "your approval" : "the owner's approval";
  const store = me.is_owner ? "your own store" : "the owner's store";
  if (me.has_model) return room.replaceChildren(card(`Talk to ${me.agent}`, `Conversations are stored in ${store}. Calls with effects that other people see wait for ${yes}.`));
  if (me.config && me.is_owner) {
    // What was filled in stays.
    form ??= modelForm(me, hasModel);
    return room.replaceChildren(form);
  }
  const made = card("No model is configured", "The agent cannot answer before the owner has set one up.");
  made.id = "no-model";
  room.replaceChildren(made);
}

/** The owner has set a model up. */
async function hasModel() {
  form = null;
  chat.clear();
  await refreshMe();
  byId("text").focus();
}

/** @param {string} title @param {string} text */
function card(title, text) {
  return node("div", { class: "card" }, node("h2", null, title), node("p", null, text));
}

/** @param {string | null} text @param {boolean} [bad] */
function say(text, bad = false) {
  const room = byId("notice");
  room.hidden = !text;
  room.replaceChildren(...prose(text ?? ""));
  room.classList.toggle("bad", bad);
}

/** @type {number | undefined} */
let timer;
let looking = false;
let again = false;

/** Looks at the list and at what waits, now and from time to time. */
async function look() {
  if (!me) return;
  if (looking) { again = true; return; }
  looking = true;
  window.clearTimeout(timer);
  try {
    await refreshMe();
    const calls = me.may_operate ? await showApprovals(me.user) : 0;
    if (!me.may_chat) empty(calls);
    if (me.may_chat) {
      const { threads, waiting } = await api.threads();
      showThreads(threads, chat.thread);
      await chat.waits(waiting);
      const current = threads.find((thread) => thread.id === chat.thread);
      if (current) byId("title").textContent = current.title || "Untitled";
      await chat.notice(current);
    }
    if (byId("notice").dataset.away) { say(null); delete byId("notice").dataset.away; }
  } catch (refusal) {
    if (refusal instanceof api.Refusal && refusal.status === 401) signIn(refusal.message);
    else { say("Could not reach embody; reconnecting.", true); byId("notice").dataset.away = "1"; }
  }
  looking = false;
  if (again) { again = false; return look(); }
  if (me && !document.hidden) timer = window.setTimeout(look, chat.turn ? LOOK.busy : LOOK.idle);
}

/** The configuration may have changed: the page follows it without being loaded again. */
async function refreshMe() {
  const had = me?.has_model;
  me = await api.me();
  const { problem, needs_restart: sections } = me.configuration ?? {};
  const text = problem ? `embody.toml cannot be used, so the previous configuration is in force: ${problem}. Fix the file; it is read again when saved.`
    : sections?.length ? `Restart embody up to apply these sections of embody.toml: ${sections.join(", ")}` : "";
  byId("configuration").hidden = !text;
  byId("configuration").replaceChildren(...prose(text));
  if (me.has_model) form = null;
  if (me.has_model !== had && !byId("empty").hidden) empty();
}

/** @param {unknown} problem */
function words(problem) {
  if (problem instanceof api.Refusal) return [problem.message, problem.hint ?? ""].filter(Boolean).map(sentence).join(". ");
  return "Could not reach embody";
}
