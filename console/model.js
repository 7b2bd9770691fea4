// The form for the model, while none is configured: it is tested with a real request, and only one that answers is saved.

import * as api from "./api.js";
import { node, prose } from "./nodes.js";

/** What a provider is called, where it is, and where its key usually is. */
const PROVIDERS = {
  openai: { label: "OpenAI, or any server with its API", url: "https://api.openai.com/v1", variable: "OPENAI_API_KEY" },
  anthropic: { label: "Anthropic", url: "https://api.anthropic.com", variable: "ANTHROPIC_API_KEY" },
};

/** Models of one server that are offered. */
const OFFERED = 6;

/**
 * @param {api.Me} me the owner
 * @param {() => void} saved the agent has the model now
 */
export function modelForm(me, saved) {
  const provider = /** @type {HTMLSelectElement} */ (node("select", { id: "model-provider" },
    ...Object.entries(PROVIDERS).map(([name, { label }]) => node("option", { value: name }, label))));
  const url = field("model-url", { type: "url", spellcheck: "false" });
  const name = field("model-name", { type: "text", required: "", spellcheck: "false", placeholder: "gpt-4o" });
  const key = field("model-key", { type: "password", autocomplete: "new-password" });
  const variable = field("model-key-env", { type: "text", spellcheck: "false" });
  const found = node("div", { id: "model-found" });
  found.hidden = true;
  const problem = node("p", { id: "model-error", class: "error", role: "alert" });
  problem.hidden = true;
  const state = node("p", { id: "model-state", role: "status" });
  state.hidden = true;
  const submit = /** @type {HTMLButtonElement} */ (node("button", { type: "submit", class: "primary" }, "Test and save"));
  const form = /** @type {HTMLFormElement} */ (node("form", { id: "no-model", class: "card" },
    node("h2", null, me.lacks ? "The model's name is not configured" : "No model is configured"),
    node("p", null, "The agent needs a model. Everything else in embody works without one."),
    found,
    label(provider, "Provider"), provider,
    label(url, "Base URL"), url,
    label(name, "Model"), name,
    label(key, "API key (a model on this machine seldom needs one)"), key,
    label(variable, "Or the environment variable that holds the key"), variable,
    node("p", null, ...prose(`The model is tested with a small request, and then saved in \`${me.config}\`; a key that you enter here in a file beside it that only you can read.`)),
    submit, state, problem));
  const shows = () => {
    const chosen = PROVIDERS[/** @type {keyof typeof PROVIDERS} */ (provider.value)];
    url.placeholder = chosen.url;
    variable.placeholder = chosen.variable;
  };
  provider.addEventListener("change", shows);
  shows();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!submit.disabled) test();
  });
  offer();
  return form;

  async function test() {
    submit.disabled = true;
    problem.hidden = true;
    say("Testing the model. One that has to be loaded first can take a minute.");
    try {
      const set = await api.setModel(filled({
        provider: provider.value, base_url: url.value, model: name.value, api_key: key.value, api_key_env: variable.value,
      }));
      // It is in its file now, and need not stay in the page.
      key.value = "";
      if (set.applied) return saved();
      say(`The model answered, and is saved in \`${set.file}\`, but it is not in use yet: \`embody reload\` says why.`);
    } catch (error) {
      say("");
      problem.hidden = false;
      problem.replaceChildren(...(error instanceof api.Refusal ? refusal(error) : ["Could not reach embody."]));
      problem.scrollIntoView({ block: "nearest" });
    }
    submit.disabled = false;
  }

  /** @param {string} text */
  function say(text) {
    state.hidden = !text;
    state.replaceChildren(...prose(text));
    if (text) state.scrollIntoView({ block: "nearest" });
  }

  /** What is configured already, and servers on the machine that embody runs on: one click takes a model of theirs. */
  async function offer() {
    const known = await api.model().catch(() => null);
    if (!known) return;
    if (known.model && !name.value) name.value = known.model;
    const models = known.found.flatMap((server) => server.models.slice(0, OFFERED).map((model) => ({ server, model })));
    if (!models.length) return;
    found.hidden = false;
    found.append(node("p", null, "Found on this machine:"), ...models.map(({ server, model }) => {
      const take = node("button", { type: "button" }, `${model} (${server.server})`);
      take.addEventListener("click", () => {
        provider.value = "openai";
        shows();
        [url.value, name.value, key.value, variable.value] = [server.base_url, model, "", ""];
        form.requestSubmit();
      });
      return take;
    }));
  }
}

/** @param {string} id @param {Record<string, string>} attributes @returns {any} */
function field(id, attributes) {
  return node("input", { id, autocomplete: "off", ...attributes });
}

/** @param {HTMLElement} of @param {string} text */
function label(of, text) {
  return node("label", { for: of.id }, text);
}

/** Without what was left empty. @param {Record<string, string>} values */
function filled(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value.trim()));
}

/** @param {api.Refusal} refusal */
function refusal({ message, hint }) {
  return [...prose(message), ". ", ...prose(hint ? `${hint}.` : "")];
}
