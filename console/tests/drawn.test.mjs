// How a conversation is drawn, in a real browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { last, open, rule, say } from "./house.mjs";

test("nobody seems to think any more when a reply is stopped", async () => {
  const house = await open([rule("for ever", { text: "on and on ", repeat: 5000, chunk: 10, delay_ms: 20 })]);
  const page = await house.page();
  await say(page, "talk for ever");
  await page.getByText("on and on").first().waitFor();
  assert.equal(await page.locator(".thinking").count(), 1);
  await page.locator("#stop").click();
  await page.getByText("Stopped.").waitFor();
  assert.equal(await page.locator(".thinking").count(), 0);
  assert.deepEqual(house.problems, []);
});

test("what was not answered is called so, also after a reload", async () => {
  const house = await open([rule("again", { text: "Here I am." }), rule("fail", { status: 401, text: "no such `key`" })]);
  const page = await house.page();
  await say(page, "fail, please");
  await page.locator(".note.bad").waitFor();
  assert.equal(await page.locator(".thinking").count(), 0);
  assert.doesNotMatch(await page.locator(".note.bad").innerText(), /`/);
  await page.reload();
  await page.getByText("Not answered.").waitFor();
  await say(page, "and again");
  await page.getByText("Here I am.").waitFor();
  await page.reload();
  await page.getByText("Here I am.").waitFor();
  const rows = await page.locator("#messages > li").allInnerTexts();
  assert.deepEqual(rows.map((row) => row.trim()), ["fail, please", "Not answered.", "and again", "Here I am."]);
  assert.deepEqual(house.problems, []);
});

test("without a model the note says what to do, and then", async () => {
  const house = await open(null);
  const page = await house.page();
  await say(page, "Hello?");
  const note = page.locator(".note");
  await note.waitFor();
  assert.match(await note.innerText(), /start embody up again/);
  assert.doesNotMatch(await note.innerText(), /`/);
  assert.ok((await note.locator("p code").allInnerTexts()).includes("embody up"));
});

test("tables keep their words whole, bullets are bullets, and tasks have boxes", async () => {
  const long = "Donaudampfschifffahrtsgesellschaft";
  const text = `| ${long} | ${long} | ${long} |\n|---|---|---|\n| 1 | 2 | 3 |\n\n- one\n  - inner\n- [ ] open\n- [x] done\n- [link](https://example.com)\n- [x] odd\u2028break\n`;
  const house = await open([rule("table", { text })]);
  const page = await house.page({ viewport: { width: 390, height: 844 } });
  await say(page, "a table");
  await last(page).locator("td").first().waitFor();
  await page.locator("#stop").waitFor({ state: "hidden" });
  const words = last(page).locator(".words");
  const { lines, wide } = await words.locator("th").first().evaluate((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return { lines: range.getClientRects().length, wide: document.documentElement.scrollWidth };
  });
  assert.equal(lines, 1, "a word is not broken");
  assert.ok(wide <= 390, "the table is scrolled, not the page");
  const style = (selector) => words.locator(selector).first().evaluate((list) => getComputedStyle(list).listStyleType);
  assert.deepEqual([await style("ul"), await style("ul ul")], ["disc", "circle"]);
  const boxes = words.locator("li.task input[type=checkbox]:disabled");
  assert.deepEqual(await boxes.evaluateAll((all) => all.map((box) => box.checked)), [false, true, true]);
  const tasks = (await words.locator("li.task").allTextContents()).map((line) => line.trim().replace(/\s/gu, " "));
  assert.deepEqual(tasks, ["open", "done", "odd break"]);
  assert.equal(await words.locator("a").innerText(), "link");
  assert.deepEqual(house.problems, []);
});
