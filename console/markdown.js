// Markdown to nodes: what models write, and no more. Whatever is not understood stays text; markup is never parsed, so a
// text cannot become anything but words. Pictures are not loaded: they become links.

import { node } from "./nodes.js";

/** How deep quotes and lists may stand in each other. */
const DEPTH = 8;
/** A paragraph that is longer is no prose; reading it for marks could take long. */
const PARAGRAPH = 10_000;

/**
 * @param {string} text
 * @param {number} [depth]
 * @returns {DocumentFragment}
 */
export function markdown(text, depth = 0) {
  const out = document.createDocumentFragment();
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    const taken = fence(lines, at, out) || heading(lines, at, out) || rule(lines, at, out) || quote(lines, at, out, depth)
      || table(lines, at, out) || list(lines, at, out, depth) || paragraph(lines, at, out);
    at += taken;
  }
  return out;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)/;
const CELLS = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

/** @typedef {(lines: string[], at: number, out: ParentNode & Node, depth?: number) => number} Block how many lines it took */

/** @type {Block} */
function fence(lines, at, out) {
  const opened = FENCE.exec(lines[at]);
  if (!opened) return 0;
  const [, ticks, language] = opened;
  let end = at + 1;
  const closes = (/** @type {string} */ line) => line.trim().startsWith(ticks) && !line.trim().slice(ticks.length).replaceAll(ticks[0], "");
  while (end < lines.length && !closes(lines[end])) end += 1;
  const code = node("code", language ? { "data-language": language } : null, lines.slice(at + 1, end).join("\n"));
  out.append(node("pre", { tabindex: "0" }, code));
  return end - at + 1;
}

/** @type {Block} */
function heading(lines, at, out) {
  const found = HEADING.exec(lines[at]);
  if (!found) return 0;
  // The page has a first heading of its own.
  const made = node(`h${Math.min(found[1].length + 1, 6)}`);
  inline(found[2], made);
  out.append(made);
  return 1;
}

/** @type {Block} */
function rule(lines, at, out) {
  if (!RULE.test(lines[at])) return 0;
  out.append(node("hr"));
  return 1;
}

/** @type {Block} */
function quote(lines, at, out, depth = 0) {
  if (!QUOTE.test(lines[at]) || depth >= DEPTH) return 0;
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, "")).join("\n");
  out.append(node("blockquote", null, markdown(inner, depth + 1)));
  return end - at;
}

/** @type {Block} */
function table(lines, at, out) {
  const next = lines[at + 1];
  if (!lines[at].includes("|") || next === undefined || !next.includes("-") || !CELLS.test(next)) return 0;
  const head = cells(lines[at]);
  if (cells(next).length !== head.length) return 0;
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) end += 1;
  const row = (/** @type {string[]} */ texts, /** @type {string} */ tag) => {
    const made = head.map((_, place) => {
      const cell = node(tag);
      inline(texts[place] ?? "", cell);
      return cell;
    });
    return node("tr", null, ...made);
  };
  const body = lines.slice(at + 2, end).map((line) => row(cells(line), "td"));
  const made = node("table", null, node("thead", null, row(head, "th")), node("tbody", null, ...body));
  out.append(node("div", { class: "table", tabindex: "0" }, made));
  return end - at;
}

/** @param {string} line */
function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @type {Block} */
function list(lines, at, out, depth = 0) {
  const first = ITEM.exec(lines[at]);
  if (!first || depth >= DEPTH) return 0;
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const made = node(ordered ? "ol" : "ul");
  if (ordered && parseInt(first[2], 10) !== 1) made.setAttribute("start", String(parseInt(first[2], 10)));
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length > indent + 1 || item[1].length < indent || /\d/.test(item[2]) !== ordered) break;
    const width = item[0].length;
    const text = lines[end].slice(width);
    const box = /^\[[ xX]\] +/.exec(text)?.[0];
    const inner = [text.slice(box?.length ?? 0)];
    end += 1;
    while (end < lines.length && belongs(lines, end, indent)) {
      inner.push(lines[end].replace(new RegExp(`^\\s{0,${width}}`), ""));
      end += 1;
    }
    const content = tight(markdown(inner.join("\n"), depth + 1));
    if (box) content.prepend(node("input", { type: "checkbox", disabled: "", ...(box[1] === " " ? {} : { checked: "" }) }), " ");
    made.append(node("li", box ? { class: "task" } : null, content));
  }
  out.append(made);
  return end - at;
}

/**
 * Whether a line goes on with an item that stands so far in.
 * @param {string[]} lines @param {number} at @param {number} indent
 */
function belongs(lines, at, indent) {
  const line = lines[at];
  if (!line.trim()) {
    const next = lines.slice(at).find((later) => later.trim());
    return next !== undefined && /^\s/.test(next) && next.search(/\S/) > indent;
  }
  const item = ITEM.exec(line);
  if (item) return item[1].length > indent + 1;
  const before = lines[at - 1];
  return line.search(/\S/) > indent || (before.trim() !== "" && !begins(line));
}

/** An item that is one paragraph needs no paragraph. @param {DocumentFragment} inner */
function tight(inner) {
  const paragraphs = [...inner.children].filter((child) => child.tagName === "P");
  if (paragraphs.length === 1 && inner.firstElementChild === paragraphs[0]) paragraphs[0].replaceWith(...paragraphs[0].childNodes);
  return inner;
}

/** Whether a line begins something else. @param {string} line */
function begins(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

/** @type {Block} */
function paragraph(lines, at, out) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines[end])) end += 1;
  const made = node("p");
  inline(lines.slice(at, end).map((line) => line.trimStart()).join("\n"), made);
  out.append(made);
  return end - at;
}

// The first that fits counts: code, escapes, links, bare addresses, strong, emphasis, struck out.
const INLINE = new RegExp([
  "(?<ticks>`+)(?<code>[^`](?:[\\s\\S]*?[^`])?)\\k<ticks>(?!`)",
  "\\\\(?<escaped>[\\\\`*_{}\\[\\]()#+.!|>~-])",
  "!?\\[(?<label>[^\\[\\]]*)\\]\\((?<target>[^\\s()]*(?:\\([^\\s()]*\\)[^\\s()]*)*)(?:\\s+\"[^\"]*\")?\\)",
  "<?(?<bare>https?:\\/\\/[^\\s<>\"'`]+[^\\s<>\"'`.,;:!?)\\]])>?",
  "\\*\\*(?=\\S)(?<strong>[\\s\\S]*?\\S)\\*\\*(?!\\*)",
  "(?<![\\p{L}\\p{N}_])__(?=\\S)(?<strong2>[\\s\\S]*?\\S)__(?![\\p{L}\\p{N}_])",
  "\\*(?=[^\\s*])(?<em>[^*]*?[^\\s*])\\*(?!\\*)",
  "(?<![\\p{L}\\p{N}_])_(?=[^\\s_])(?<em2>[^_]*?[^\\s_])_(?![\\p{L}\\p{N}_])",
  "~~(?=\\S)(?<struck>[\\s\\S]*?\\S)~~",
].join("|"), "gu");

/**
 * @param {string} text
 * @param {Element} into
 * @param {number} [depth]
 */
function inline(text, into, depth = 0) {
  let at = 0;
  if (depth < DEPTH && text.length <= PARAGRAPH) {
    for (const found of text.matchAll(INLINE)) {
      plain(text.slice(at, found.index), into);
      into.append(span(found, depth));
      at = found.index + found[0].length;
    }
  }
  plain(text.slice(at), into);
}

/** @param {RegExpMatchArray} found @param {number} depth @returns {Node} */
function span(found, depth) {
  const group = found.groups ?? {};
  const within = (/** @type {string} */ tag, /** @type {string} */ text) => {
    const made = node(tag);
    inline(text, made, depth + 1);
    return made;
  };
  if (group.code !== undefined) return node("code", null, group.code.replace(/^ ([\s\S]*) $/, "$1"));
  if (group.escaped !== undefined) return document.createTextNode(group.escaped);
  if (group.label !== undefined) return link(group.target, within("span", group.label || group.target), found[0]);
  if (group.bare !== undefined) return link(group.bare, document.createTextNode(group.bare), found[0]);
  if (group.strong !== undefined || group.strong2 !== undefined) return within("strong", group.strong ?? group.strong2);
  if (group.struck !== undefined) return within("s", group.struck);
  return within("em", group.em ?? group.em2);
}

/** Only addresses that a person would click; anything else stays as it was written. */
function link(/** @type {string} */ target, /** @type {Node} */ label, /** @type {string} */ written) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return document.createTextNode(written);
  return node("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}

/** @param {string} text @param {Element} into */
function plain(text, into) {
  text.split(/(?: {2,}|\\)\n/).forEach((part, place) => {
    if (place) into.append(node("br"));
    if (part) into.append(part);
  });
}
