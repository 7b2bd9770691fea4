// Markdown, in a real browser: what it draws, and that no text makes it slow.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { open } from "./house.mjs";

/** @type {import("playwright-core").Page} */
let page;
let house;

before(async () => {
  house = await open(null);
  page = await house.page();
  await page.evaluate(async () => { window.markdown = (await import("/console/markdown.js")).markdown; });
});
after(() => assert.deepEqual(house.problems, []));

const drawn = (text) => page.evaluate((given) => {
  const place = document.createElement("div");
  place.append(window.markdown(given));
  return place.innerHTML.replaceAll(' target="_blank" rel="noopener noreferrer nofollow"', "");
}, text);

const LINK = '<a href="https://x.example/a"><span>b</span></a>';
const CASES = [
  ["plain <b>x</b>", "<p>plain &lt;b&gt;x&lt;/b&gt;</p>"],
  ["**a** *b* __c__ _d_ ~~e~~ ***f***",
    "<p><strong>a</strong> <em>b</em> <strong>c</strong> <em>d</em> <s>e</s> <strong><em>f</em></strong></p>"],
  ["**a *b* c** and 2 * 3 * 4, snake_case_name, __init__x, ** a**",
    "<p><strong>a <em>b</em> c</strong> and 2 * 3 * 4, snake_case_name, __init__x, ** a**</p>"],
  ["`a` ``b ` c`` `` ` `` `open", "<p><code>a</code> <code>b ` c</code> <code>`</code> `open</p>"],
  ["\\*a\\* \\[x\\]", "<p>*a* [x]</p>"],
  ["[b](https://x.example/a) ![b](https://x.example/a \"t\")", `<p>${LINK} ${LINK}</p>`],
  ["[b](javascript:x) [b](/c) [b](https://x.example/(a))", '<p>[b](javascript:x) [b](/c) <a href="https://x.example/(a)"><span>b</span></a></p>'],
  ["see https://x.example/a. (http://y.example) <https://z.example>",
    '<p>see <a href="https://x.example/a">https://x.example/a</a>. (<a href="http://y.example">http://y.example</a>) <a href="https://z.example">https://z.example</a></p>'],
  ["one  \ntwo\\\nthree\nfour", "<p>one<br>two<br>three\nfour</p>"],
  ["# a #\n## b\n####### c", "<h2>a</h2><h3>b</h3><p>####### c</p>"],
  ["~~~ js x\na\n~~~\n```\nb", '<pre tabindex="0"><code data-language="js">a</code></pre><pre tabindex="0"><code>b</code></pre>'],
  ["- - -\n***\n_ _", "<hr><hr><p>_ _</p>"],
  ["> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"],
  ["- a\n\n  b\n- c\n\n3. d", '<ul><li><p>a</p><p>b</p></li><li>c</li></ul><ol start="3"><li>d</li></ol>'],
  ["a|b\n:-|-:\n1|2\\|3", '<div class="table" tabindex="0"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2|3</td></tr></tbody></table></div>'],
];

test("each mark is drawn as what it is", async () => {
  for (const [text, expected] of CASES) assert.equal(await drawn(text), expected, text);
});

const SIZE = 100_000;
const fill = (unit, end = "") => unit.repeat(Math.ceil(SIZE / unit.length)) + end;
const HOSTILE = [
  ...["*", "_", "~", "`", "[", "]", "(", "!", "\\", "<", "#", "-", "|", ">", " ", "\n", "\t", "a", ":", "+", "1."].map((unit) => fill(unit)),
  ...["*a ", "**a ", "_a ", "__a ", "~~a ", "*a**", "**a*", "`a``", "![", "[]", "[](", "[a](b ", "[](a \"", "[a](b(", "[](()", "http://",
    "https://.", "<http://", "a  ", "- ", "1. ", "> ", "# ", "|-", "| ", ": -", "- \n", "\n \n", "a\n", "```\n", "~~~ x\n", "> \n"].map((unit) => fill(unit)),
  `# ${fill(" ")}x`, `#${fill(" #")}x`, `# ${fill("# ")}x`, `~~~${fill("~")}\``, `~~~ ${fill("a ")}\``, `\`\`\`${fill(" ")}\``,
  `${fill("- ")}x`, `a|b\n${fill(" ")}x`, `a|b\n|${fill(" -|")}x`, `a|b\n-|-\n${fill("|\n")}`,
  `${fill("|").slice(0, SIZE / 4)}\n${fill("-|").slice(0, SIZE / 2)}\n${fill("|\n").slice(0, SIZE / 4)}`,
  `x${fill(" ")}x`, `x${fill(" ")}\\x`, `- a\n${fill("\n").slice(0, SIZE / 2)}${fill(" ").slice(0, SIZE / 2)}b`,
  `- ${fill("  ")}a`, fill("*a* **b** `c` [d](e) "), fill("- a\n  - b\n    - c\n"), `[${fill("a")}](${fill("b")}`, `[](${fill("()")}`,
];

test("a line of 100 kB takes no time, whatever stands in it", async () => {
  const slow = [];
  for (const text of HOSTILE) {
    const took = await page.evaluate((given) => {
      const began = performance.now();
      window.markdown(given);
      return performance.now() - began;
    }, text);
    if (took > 2000) slow.push(`${JSON.stringify(text.slice(0, 12))}: ${Math.round(took)} ms`);
  }
  assert.deepEqual(slow, []);
});
