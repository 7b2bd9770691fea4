// Making nodes. Text only ever becomes text: nothing in this page writes markup.

/**
 * @param {string} tag
 * @param {Record<string, string> | null} [attributes] `class`, `data-…` and others, as they are written in HTML
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function node(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) made.setAttribute(name, value);
  made.append(...children.filter((child) => child != null));
  return made;
}

/**
 * An element of the page, which must be there.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no #${id}`);
  return found;
}

/** Our name is written as it is. @param {string} text */
export const sentence = (text) => (/^embody\b/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

/**
 * Words of ours as a sentence, with what stands between backticks as code.
 * @param {string} text
 * @returns {(Node | string)[]}
 */
export function prose(text) {
  return sentence(text).split(/`([^`]+)`/).map((part, place) => (place % 2 ? node("code", null, part) : part));
}

/**
 * A time as people read it: the hour today, else the day.
 * @param {string} text RFC 3339
 */
export function when(text) {
  const at = new Date(text);
  const now = new Date();
  const today = at.toDateString() === now.toDateString();
  if (today) return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const year = at.getFullYear() === now.getFullYear() ? undefined : "numeric";
  return at.toLocaleDateString([], { day: "numeric", month: "short", year });
}
