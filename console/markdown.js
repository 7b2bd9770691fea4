// Markdown to nodes: what models write, and no more. Whatever is not understood stays text; markup is never parsed, so a
// text cannot become anything but words. Pictures are not loaded: they become links.
//
// A text is what a model, a body or another person wrote, so it is read in time proportional to its length: marks are
// searched from left to right and never twice. Patterns below match a bounded number of characters, or one run of them.

import { node } from "./nodes.js";

/** How deep quotes and lists may stand in each other. */
const DEPTH = 8;
/** Columns of a table. Every row has as many cells as the head: more could make few lines very many cells. */
const COLUMNS = 64;

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

const HEADING = /^ {0,3}(#{1,6})\s/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(?=\S)/;
const CELL = /^:?-+:?$/;

/**
 * The sign, its number and the language of a line that opens a block of code.
 * @param {string} line
 */
function fenceOf(line) {
  const start = line.trimStart();
  const sign = start[0];
  if ((sign !== "`" && sign !== "~") || line.length - start.length > 3) return null;
  let length = 0;
  while (start[length] === sign) length += 1;
  const rest = start.slice(length);
  return length >= 3 && !rest.includes("`") ? { ticks: sign.repeat(length), language: rest.trim().split(/\s/, 1)[0] } : null;
}

/** Whether a line is three or more of one sign. @param {string} line */
function isRule(line) {
  const start = line.trimStart();
  if (!"-*_".includes(start[0] ?? "x") || line.length - start.length > 3) return false;
  let count = 0;
  for (const sign of start) {
    if (sign === start[0]) count += 1;
    else if (sign.trim()) return false;
  }
  return count >= 3;
}

/** @typedef {(lines: string[], at: number, out: ParentNode & Node, depth?: number) => number} Block how many lines it took */

/** @type {Block} */
function fence(lines, at, out) {
  const opened = fenceOf(lines[at]);
  if (!opened) return 0;
  const { ticks, language } = opened;
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
  const text = lines[at].slice(found[0].length).trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  inline(text.slice(0, end).trimEnd(), made);
  out.append(made);
  return 1;
}

/** @type {Block} */
function rule(lines, at, out) {
  if (!isRule(lines[at])) return 0;
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
  if (!lines[at].includes("|") || next === undefined || !next.includes("-")) return 0;
  const head = cells(lines[at]);
  const marks = cells(next);
  if (marks.length !== head.length || head.length > COLUMNS || !marks.every((mark) => CELL.test(mark))) return 0;
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
  const body = node("tbody");
  for (const line of lines.slice(at + 2, end)) body.append(row(cells(line), "td"));
  const made = node("table", null, node("thead", null, row(head, "th")), body);
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
  const next = nextIndent(lines, at);
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length > indent + 1 || item[1].length < indent || /\d/.test(item[2]) !== ordered) break;
    const width = item[0].length;
    const text = lines[end].slice(width);
    const box = /^\[[ xX]\] +/.exec(text)?.[0];
    const inner = [text.slice(box?.length ?? 0)];
    end += 1;
    while (end < lines.length && belongs(lines, end, indent, next)) {
      inner.push(outdented(lines[end], width));
      end += 1;
    }
    const content = tight(markdown(inner.join("\n"), depth + 1));
    if (box) content.prepend(node("input", { type: "checkbox", disabled: "", ...(box[1] === " " ? {} : { checked: "" }) }), " ");
    made.append(node("li", box ? { class: "task" } : null, content));
  }
  out.append(made);
  return end - at;
}

/** A line with less white space before it. @param {string} line @param {number} width at most so much less */
function outdented(line, width) {
  return line.slice(Math.min(width, line.length - line.trimStart().length));
}

/**
 * How far in the next line stands that is not blank, from any line on. Lines are asked for in their order, and each is looked
 * at once.
 * @param {string[]} lines @param {number} from
 */
function nextIndent(lines, from) {
  let found = from - 1;
  let indent = -1;
  return (/** @type {number} */ at) => {
    if (found < at) {
      found = at;
      while (found < lines.length && !lines[found].trim()) found += 1;
      indent = found < lines.length ? lines[found].search(/\S/) : -1;
    }
    return indent;
  };
}

/**
 * Whether a line goes on with an item that stands so far in.
 * @param {string[]} lines @param {number} at @param {number} indent @param {(at: number) => number} next
 */
function belongs(lines, at, indent, next) {
  const line = lines[at];
  if (!line.trim()) return next(at) > indent;
  const item = ITEM.exec(line);
  if (item) return item[1].length > indent + 1;
  const before = lines[at - 1];
  return line.search(/\S/) > indent || (before.trim() !== "" && !begins(line));
}

/** An item that is one paragraph needs no paragraph. @param {DocumentFragment} inner */
function tight(inner) {
  const paragraphs = [...inner.children].filter((child) => child.tagName === "P");
  if (paragraphs.length === 1 && inner.firstElementChild === paragraphs[0]) {
    const [only] = paragraphs;
    while (only.firstChild) only.before(only.firstChild);
    only.remove();
  }
  return inner;
}

/** Whether a line begins something else. @param {string} line */
function begins(line) {
  return fenceOf(line) !== null || HEADING.test(line) || isRule(line) || QUOTE.test(line) || ITEM.test(line);
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

/** @typedef {{ made: Node, end: number }} Span what stands at a place, and where it ends */

/**
 * @param {string} text
 * @param {Element} into
 * @param {number} [depth]
 */
function inline(text, into, depth = 0) {
  let at = 0;
  if (depth < DEPTH) {
    const marks = new Marks(text, depth);
    let place = 0;
    while (place < text.length) {
      const span = marks.at(place);
      if (!span) {
        place += marks.step(place);
        continue;
      }
      plain(text.slice(at, place), into);
      into.append(span.made);
      at = place = span.end;
    }
  }
  plain(text.slice(at), into);
}

const ESCAPED = "\\`*_{}[]()#+.!|>~-";
const isSpace = (/** @type {string | undefined} */ sign) => sign === undefined || !sign.trim();
const isWord = (/** @type {string} */ sign) => /^[\p{L}\p{N}_]$/u.test(sign);

/** The marks of one text. Places are asked for from left to right; what was found once is not searched again. */
class Marks {
  /** @param {string} text @param {number} depth */
  constructor(text, depth) {
    this.text = text;
    this.depth = depth;
    /** Where the next mark of each kind closes. @type {Map<string, number>} */
    this.closers = new Map();
    /** Where the runs of so many backticks are. @type {Map<number, number[]> | undefined} */
    this.runs = undefined;
  }

  /** How far it is to the next place where something may stand, from one where nothing does. @param {number} place */
  step(place) {
    return this.text[place] === "`" ? this.ticks(place) : 1;
  }

  /** What stands at a place. @param {number} place @returns {Span | null} */
  at(place) {
    switch (this.text[place]) {
      case "`": return this.code(place);
      case "\\": return this.escaped(place);
      case "!": case "[": return this.link(place);
      case "<": case "h": return this.address(place);
      case "*": return this.double(place, "*", "strong", false) ?? this.single(place, "*", false);
      case "_": return this.double(place, "_", "strong", true) ?? this.single(place, "_", true);
      case "~": return this.double(place, "~", "s", false);
      default: return null;
    }
  }

  /** @param {string} tag @param {string} text */
  within(tag, text) {
    const made = node(tag);
    inline(text, made, this.depth + 1);
    return made;
  }

  /** How many backticks stand there. @param {number} place */
  ticks(place) {
    let end = place;
    while (this.text[end] === "`") end += 1;
    return end - place;
  }

  /** @param {number} place @returns {Span | null} */
  code(place) {
    if (!this.runs) {
      this.runs = new Map();
      for (let at = this.text.indexOf("`", place); at !== -1; at = this.text.indexOf("`", at)) {
        const length = this.ticks(at);
        const same = this.runs.get(length);
        if (same) same.push(at);
        else this.runs.set(length, [at]);
        at += length;
      }
      for (const same of this.runs.values()) same.reverse();
    }
    const length = this.ticks(place);
    const same = this.runs.get(length) ?? [];
    while (same.length && same[same.length - 1] <= place) same.pop();
    const end = same[same.length - 1];
    if (end === undefined) return null;
    const code = this.text.slice(place + length, end);
    const padded = code.length > 1 && code.startsWith(" ") && code.endsWith(" ");
    return { made: node("code", null, padded ? code.slice(1, -1) : code), end: end + length };
  }

  /** @param {number} place @returns {Span | null} */
  escaped(place) {
    const sign = this.text[place + 1];
    if (sign === undefined || !ESCAPED.includes(sign)) return null;
    return { made: document.createTextNode(sign), end: place + 2 };
  }

  /** `[label](target "title")`, also of a picture. @param {number} place @returns {Span | null} */
  link(place) {
    const { text } = this;
    const start = text[place] === "!" ? place + 1 : place;
    if (text[start] !== "[") return null;
    const end = this.next("bracket", start + 1, (at) => text[at] === "[" || text[at] === "]");
    if (text[end] !== "]" || text[end + 1] !== "(") return null;
    const target = targetEnd(text, end + 2);
    const close = titleEnd(text, target);
    if (text[close] !== ")") return null;
    const address = text.slice(end + 2, target);
    const label = this.within("span", text.slice(start + 1, end) || address);
    return { made: link(address, label, text.slice(place, close + 1)), end: close + 1 };
  }

  /** An address without any marks. @param {number} place @returns {Span | null} */
  address(place) {
    const { text } = this;
    const start = text[place] === "<" ? place + 1 : place;
    const scheme = ["http://", "https://"].find((one) => text.startsWith(one, start));
    if (!scheme) return null;
    const least = start + scheme.length + 2;
    let end = start + scheme.length;
    while (end < text.length && !isSpace(text[end]) && !"<>\"'`".includes(text[end])) end += 1;
    const behind = end;
    while (end >= least && ".,;:!?)]".includes(text[end - 1])) end -= 1;
    if (end < least) return null;
    const address = text.slice(start, end);
    const after = end === behind && text[end] === ">" ? end + 1 : end;
    return { made: link(address, document.createTextNode(address), text.slice(place, after)), end: after };
  }

  /** `**so**`, `__so__`, `~~so~~`. @param {number} place @param {string} sign @param {string} tag @param {boolean} isWhole whether it must not stand inside a word */
  double(place, sign, tag, isWhole) {
    const { text } = this;
    const mark = sign + sign;
    if (!text.startsWith(mark, place) || isSpace(text[place + 2]) || (isWhole && isWord(before(text, place)))) return null;
    const closes = (/** @type {number} */ at) => text.startsWith(mark, at) && !isSpace(text[at - 1])
      && (sign !== "*" || text[at + 2] !== "*") && !(isWhole && isWord(after(text, at + 2)));
    const end = this.next(mark, place + 3, closes);
    return end < text.length ? { made: this.within(tag, text.slice(place + 2, end)), end: end + 2 } : null;
  }

  /** `*so*`, `_so_`. @param {number} place @param {string} sign @param {boolean} isWhole */
  single(place, sign, isWhole) {
    const { text } = this;
    if (isSpace(text[place + 1]) || text[place + 1] === sign || (isWhole && isWord(before(text, place)))) return null;
    const end = this.next(sign, place + 1, (at) => text[at] === sign);
    const closes = end < text.length && !isSpace(text[end - 1]) && text[end + 1] !== sign
      && !(isWhole && isWord(after(text, end + 1)));
    return closes ? { made: this.within("em", text.slice(place + 1, end)), end: end + 1 } : null;
  }

  /**
   * The first place from `from` on where something is so; otherwise the end of the text.
   * @param {string} kind @param {number} from @param {(at: number) => boolean} isSo
   */
  next(kind, from, isSo) {
    let at = this.closers.get(kind) ?? 0;
    if (at < from) {
      at = from;
      while (at < this.text.length && !isSo(at)) at += 1;
      this.closers.set(kind, at);
    }
    return at;
  }
}

/** The character before a place. @param {string} text @param {number} place */
function before(text, place) {
  const low = text.charCodeAt(place - 1);
  return text.slice(place - (low >= 0xdc00 && low <= 0xdfff ? 2 : 1), place);
}

/** The character at a place. @param {string} text @param {number} place */
function after(text, place) {
  return place < text.length ? String.fromCodePoint(text.codePointAt(place) ?? 0) : "";
}

/** Where an address ends: at white space, or at a bracket that it did not open. @param {string} text @param {number} from */
function targetEnd(text, from) {
  let isOpen = false;
  let at = from;
  for (; at < text.length && !isSpace(text[at]); at += 1) {
    if (text[at] === "(") {
      if (isOpen) break;
      isOpen = true;
    } else if (text[at] === ")") {
      if (!isOpen) break;
      isOpen = false;
    }
  }
  return at;
}

/** Where a title behind an address ends, with the white space before it. @param {string} text @param {number} from */
function titleEnd(text, from) {
  let at = from;
  while (at < text.length && isSpace(text[at])) at += 1;
  if (at === from || text[at] !== "\"") return from;
  const end = text.indexOf("\"", at + 1);
  return end === -1 ? from : end + 1;
}

/** Only addresses that a person would click; anything else stays as it was written. */
function link(/** @type {string} */ target, /** @type {Node} */ label, /** @type {string} */ written) {
  if (!/^(https?:\/\/|mailto:)/i.test(target)) return document.createTextNode(written);
  return node("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}

/** Text, with a break where a line ends with two spaces or a backslash. @param {string} text @param {Element} into */
function plain(text, into) {
  const lines = text.split("\n");
  let kept = "";
  lines.forEach((line, place) => {
    const isLast = place === lines.length - 1;
    const isBroken = !isLast && (line.endsWith("  ") || line.endsWith("\\"));
    if (!isBroken) {
      kept += isLast ? line : `${line}\n`;
      return;
    }
    let end = line.length - 1;
    if (line.endsWith(" ")) while (line[end - 1] === " ") end -= 1;
    kept += line.slice(0, end);
    if (kept) into.append(kept);
    into.append(node("br"));
    kept = "";
  });
  if (kept) into.append(kept);
}
