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

test("why a turn failed is shown, also after a reload", async () => {
  const house = await open([rule("again", { text: "Here I am." }), rule("fail", { status: 401, text: "no such `key`" })]);
  const page = await house.page();
  await say(page, "fail, please");
  await page.locator(".note.bad").waitFor();
  assert.equal(await page.locator(".thinking").count(), 0);
  assert.doesNotMatch(await page.locator(".note.bad").innerText(), /`/);
  const problem = await page.locator(".note.bad strong").innerText();
  await page.reload();
  assert.equal(await page.locator(".note.bad strong").innerText(), problem, "the reason is kept");
  await say(page, "and again");
  await page.getByText("Here I am.").waitFor();
  await page.reload();
  await page.getByText("Here I am.").waitFor();
  const rows = await page.locator("#messages > li").allInnerTexts();
  assert.deepEqual(rows.map((row) => row.trim().slice(0, 8)), ["fail, pl", "Failed: ", "and agai", "Here I a"]);
  assert.deepEqual(house.problems, []);
});

test("without a model the note says what to do, and then", async () => {
  const house = await open(null);
  const page = await house.page();
  await say(page, "Hello?");
  const note = page.locator(".note");
  await note.waitFor();
  assert.match(await note.innerText(), /add these lines to embody.toml/);
  assert.doesNotMatch(await note.innerText(), /`/);
  assert.ok((await note.locator("p code").allInnerTexts()).includes("embody model test"));
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

test("retries are counted in one line, and a turn that failed is tried again", async () => {
  const down = { when: { user: "hello" }, reply: { status: 503, retry_after: 0, text: "overloaded" }, times: 8 };
  const house = await open([down, rule("hello", { text: "Here I am." })]);
  const page = await house.page();
  await page.evaluate(() => {
    const seen = /** @type {any} */ (window).seen = [];
    new MutationObserver(() => {
      const lines = [...document.querySelectorAll(".retries")].map((line) => line.textContent ?? "");
      if (lines.length && lines.join("|") !== seen.at(-1)) seen.push(lines.join("|"));
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await say(page, "hello");
  await page.locator(".note.bad").waitFor();
  const counted = await page.evaluate(() => /** @type {any} */ (window).seen);
  const numbers = counted.map((/** @type {string} */ line) => /^The model does not answer; retry (\d) of 7 in \d+ s: [^|]+$/.exec(line)?.[1]);
  assert.deepEqual(numbers, ["1", "2", "3", "4", "5", "6", "7"], counted.join("\n"));
  assert.equal(await page.locator(".retries").count(), 0);
  const problem = await page.locator(".note.bad").innerText();
  await page.reload();
  assert.equal(await page.locator(".note.bad").innerText(), problem);
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("Here I am.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 0);
  await page.reload();
  await page.getByText("Here I am.").waitFor();
  assert.equal(await page.locator("#messages .mine").count(), 1, "the message was not sent again");
  assert.equal(await page.locator(".note.bad").count(), 0);
  assert.deepEqual(house.problems, []);
});
