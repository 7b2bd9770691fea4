// Calls in a conversation, and those that wait for somebody's word, in a real browser.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ASKS, last, open, rule, say } from "./house.mjs";

const SHORT = ASKS.replace("60", "1");
const MESSAGE = { channel: "telegram", to: "4711", text: "See you at noon." };
const TELLS = [
  rule("denied the waiting call", { text: "So it is not sent." }),
  rule("tell bob", { calls: [{ name: "send_message", arguments: MESSAGE }] }),
  rule("tell bob", { text: "I tried." }, 1),
];
const call = (page) => page.locator("#messages > li").nth(1).locator(".tool");

// spec: N-10
test("a call that waits is drawn as such, and so is what became of it", async () => {
  const house = await open(TELLS, SHORT);
  const page = await house.page();
  await say(page, "tell bob");
  await page.getByText("I tried.").waitFor();
  await page.locator(".approval").waitFor();
  for (const again of [false, true]) {
    if (again) await page.reload();
    await call(page).and(page.locator("[data-state=held]")).waitFor();
    assert.match(await call(page).innerText(), /send_message\s+waits for your approval/);
    assert.doesNotMatch(await page.locator("#messages").innerText(), /failed/);
  }
  await page.locator(".approval").getByRole("button", { name: "Deny" }).click();
  await page.getByText("So it is not sent.").waitFor();
  for (const again of [false, true]) {
    if (again) await page.reload();
    await call(page).and(page.locator("[data-state=denied]")).waitFor();
    assert.match(await call(page).innerText(), /send_message\s+was denied by you/);
  }
  await page.getByText("You denied send_message.").waitFor();
  assert.deepEqual(house.problems, []);
});

// spec: N-10
test("a denial is taken back, and the same call asks again", async () => {
  const house = await open(TELLS, ASKS);
  const page = await house.page();
  await say(page, "tell bob");
  await page.locator(".approval").getByRole("button", { name: "Deny" }).click();
  await page.getByText("I tried.").waitFor();
  assert.match(await page.locator("#denied li").innerText(), /^embody\/send_message was denied; the same call is refused until/);
  // Another call like it is refused without a question.
  await say(page, "tell bob once more");
  await page.getByText("I tried.").nth(1).waitFor();
  assert.equal(await page.locator(".approval").count(), 0);
  await page.locator("#denied").getByRole("button", { name: "Ask me again" }).click();
  await page.locator("#denied").waitFor({ state: "hidden" });
  await say(page, "tell bob at last");
  await page.locator(".approval").getByRole("button", { name: "Approve once" }).click();
  await last(page).locator(".tool[data-state=done]").waitFor();
  assert.deepEqual(house.problems, []);
});

// spec: N-10
test("a question under rules that have changed says so and cannot be approved", async () => {
  const house = await open(TELLS, SHORT);
  const page = await house.page();
  await say(page, "tell bob");
  const card = page.locator(".approval");
  await card.getByRole("button", { name: "Approve once", disabled: false }).waitFor();
  const file = join(house.folder, "embody.toml");
  const rule = '\n[[policy.rule]]\ntools = ["send_*"]\ngate = "ask"\nreason = "new"\n';
  writeFileSync(file, readFileSync(file, "utf8") + rule);
  await card.getByText("Asked under rules that have changed since; approve the new question instead.").waitFor();
  assert.equal(await card.getByRole("button", { name: "Approve once" }).isDisabled(), true);
  await card.getByRole("button", { name: "Deny" }).click();
  await card.waitFor({ state: "detached" });
  assert.deepEqual(house.problems, []);
});

// spec: N-10
test("the owner decides about everybody's calls, and whoever cannot reads whom it waits for", async () => {
  const house = await open(TELLS, ASKS);
  const owner = await house.page();
  await owner.getByText("wait for your approval").waitFor();
  const ann = await house.pageOf("ann", "chat");
  await ann.getByText("wait for the owner's approval").waitFor();
  const bob = await house.pageOf("bob", "operate");
  await say(ann, "tell bob");
  await last(ann).locator(".tool[data-state=waiting]").waitFor();
  assert.match(await last(ann).locator(".tool").innerText(), /waits for the owner's approval/);
  assert.equal(await ann.locator(".approval").count(), 0);
  const card = owner.locator(".approval");
  await card.waitFor();
  assert.match(await card.innerText(), /agent assistant of user ann, channel web/);
  assert.match(await card.innerText(), /See you at noon\./);
  // Another operator sees nothing of it, whenever it looks.
  await bob.reload();
  await bob.getByText("No pending approvals").waitFor();
  await card.getByRole("button", { name: "Approve once" }).click();
  await ann.getByText("I tried.").waitFor();
  assert.equal(await last(ann).locator(".tool").getAttribute("data-state"), "done");
  await card.waitFor({ state: "detached" });
  assert.deepEqual(house.problems, []);
});

// spec: N-10, N-12
test("who asks and why is seen first, and that there is more is said", async () => {
  const text = Array.from({ length: 80 }, (_, number) => `line ${number}`).join("\n");
  const house = await open([
    rule("at length", { calls: [{ name: "send_message", arguments: { ...MESSAGE, text } }] }),
    ...TELLS,
  ], `${ASKS}[[policy.rule]]\ntools = ["send_*"]\ngate = "ask"\nreason = "mail leaves the building"\n`);
  const page = await house.page();
  await say(page, "tell bob");
  const card = page.locator(".approval");
  await card.waitFor();
  assert.equal(await card.locator(".exact").innerText(), `"channel": "telegram"\n"text": "${MESSAGE.text}"\n"to": "4711"`);
  for (const size of [{ width: 1280, height: 900 }, { width: 390, height: 844 }]) {
    await page.setViewportSize(size);
    const place = await card.locator(".whole").boundingBox();
    for (const words of ["agent assistant of user owner", "mail leaves the building"]) {
      const box = await card.getByText(words).boundingBox();
      assert.ok(box.y >= place.y && box.y + box.height <= place.y + place.height, `${words} at ${size.width}`);
    }
    assert.equal(await card.locator(".more").isVisible(), false, "all of it is in view");
  }
  await card.getByRole("button", { name: "Deny" }).click();
  await page.getByText("I tried.").waitFor();
  await say(page, "at length");
  await card.locator(".more").waitFor();
  await card.locator(".whole").evaluate((place) => place.scrollTo(0, place.scrollHeight));
  await card.locator(".more").waitFor({ state: "hidden" });
  assert.deepEqual(house.problems, []);
});

test("a card that came just now takes no click", async () => {
  const house = await open(TELLS, ASKS);
  const page = await house.page();
  await page.evaluate(() => {
    const click = () => document.querySelector(".approval button.primary")?.click();
    new MutationObserver(click).observe(document.getElementById("approvals"), { childList: true });
  });
  const asked = [];
  page.on("request", (request) => { if (request.method() === "POST") asked.push(new URL(request.url()).pathname); });
  await say(page, "tell bob");
  const card = page.locator(".approval");
  await card.waitFor();
  await card.getByRole("button", { name: "Deny" }).click();
  await page.getByText("I tried.").waitFor();
  assert.deepEqual(asked, ["/api/chat", "/api/approvals"]);
  assert.equal(await last(page).locator(".tool").getAttribute("data-state"), "denied");
});

test("a call can be opened: what it was made with, and what came of it", async () => {
  const hidden = { ...MESSAGE, text: "See you at noon.\u202e\u3164" };
  const house = await open([rule("tell bob", { calls: [{ name: "send_message", arguments: hidden }] }, 0), ...TELLS], SHORT);
  const page = await house.page();
  await say(page, "tell bob");
  await page.getByText("I tried.").waitFor();
  for (const again of [false, true]) {
    if (again) await page.reload();
    const opened = page.locator("details.call");
    await opened.locator("summary").click();
    assert.match(await opened.locator(".exact").first().innerText(), /"text": "See you at noon\.⟨U\+202E⟩⟨U\+3164⟩"/);
    assert.match(await opened.locator(".exact").last().innerText(), /Not sent \(pending\)/);
  }
  assert.deepEqual(house.problems, []);
});

test("calls of one turn that came with the same id can each be opened", async () => {
  const to = (/** @type {string} */ name) => ({ calls: [{ name: "send_message", arguments: { ...MESSAGE, to: name } }] });
  const house = await open([rule("both", to("anna"), 0), rule("both", to("bert"), 1), rule("both", { text: "I tried." }, 2)],
    ASKS.replace("60", "0"));
  const page = await house.page();
  // As servers do that count from zero in every answer.
  await page.route(/\/api\/(chat|threads\/)/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace(/call_\d+_\d+/g, "call_0") });
  });
  await say(page, "tell both");
  await page.getByText("I tried.").waitFor();
  await page.locator("#messages").evaluate((list) => { list.lastElementChild.dataset.live = "1"; });
  for (const again of [false, true]) {
    if (again) await page.reload();
    const opened = page.locator("details.call");
    await opened.nth(1).waitFor();
    assert.equal(await page.locator("[data-live]").count(), again ? 0 : 1, "what a turn said is not drawn anew at its end");
    const held = await opened.evaluateAll((all) => all.map((one) => [...one.querySelectorAll("pre")].map((text) => text.textContent)));
    assert.deepEqual(held.map((texts) => texts.length), [2, 2]);
    assert.match(held[0][0], /"to": "anna"/);
    assert.match(held[1][0], /"to": "bert"/);
  }
  assert.deepEqual(house.problems, []);
});

// spec: N-10
test("a call whose time is over does not wait in the page any more", async () => {
  const house = await open(TELLS, ASKS.replace("60", "0\nask_timeout_s = 5"));
  const page = await house.page();
  await say(page, "tell bob");
  await page.getByText("I tried.").waitFor();
  assert.match(await call(page).innerText(), /waits for your approval/);
  await page.locator("details.call summary").click();
  await call(page).getByText("expired without an answer").waitFor();
  assert.equal(await page.locator("details.call[open]").count(), 1, "nothing else is drawn anew");
  assert.deepEqual(house.problems, []);
});

test("only a call that waits itself is drawn so", async () => {
  const house = await open(TELLS, ASKS);
  const page = await house.page();
  const states = await page.evaluate(async () => {
    const { Drawing } = await import("/console/drawing.js");
    const drawing = new Drawing();
    for (const name of ["create_task", "task", "shop__task", "mail__task"]) drawing.tool(name, name);
    drawing.toolsWait([{ approval: "1", channel: "web", body: "shop", tool: "task" }]);
    return [...drawing.element.querySelectorAll(".tool")].map((line) => line.dataset.state);
  });
  assert.deepEqual(states, ["running", "waiting", "waiting", "running"]);
  // What another conversation left waiting before this turn began is none of its calls.
  let looks = 0;
  await page.route(/\/api\/threads$/, async (route) => {
    const response = await route.fetch();
    const waiting = [{ approval: "another", channel: "web", body: "embody", tool: "send_message" }];
    await route.fulfill({ response, json: { ...await response.json(), waiting } });
    looks += 1;
  });
  const looked = async (/** @type {number} */ more) => {
    for (const until = looks + more; looks < until; ) await page.waitForResponse(/\/api\/threads$/);
  };
  await looked(2);
  await say(page, "tell bob");
  await page.locator(".approval").waitFor();
  await looked(2);
  assert.equal(await last(page).locator(".tool").getAttribute("data-state"), "running");
  await page.unroute(/\/api\/threads$/);
  await last(page).locator(".tool[data-state=waiting]").waitFor();
  assert.deepEqual(house.problems, []);
});

// spec: N-10
test("with several cards nothing moves under the hand without a rest", async () => {
  const text = Array.from({ length: 80 }, (_, number) => `line ${number}`).join("\n");
  const send = (/** @type {object} */ more) => ({ calls: [{ name: "send_message", arguments: { ...MESSAGE, ...more } }] });
  const house = await open([rule("both", send({ text }), 0), rule("both", send({}), 1), rule("both", { text: "I tried." }, 2)],
    ASKS.replace("60", "0"));
  const page = await house.page();
  await say(page, "tell both");
  await page.getByText("I tried.").waitFor();
  const [long, short] = [page.locator(".approval").first(), page.locator(".approval").nth(1)];
  await short.waitFor();
  await long.locator(".more").waitFor();
  const top = () => long.locator(".row").evaluate((row) => row.getBoundingClientRect().top);
  const before = await top();
  await long.locator(".whole").evaluate((place) => place.scrollTo(0, place.scrollHeight));
  await long.locator(".more").waitFor({ state: "hidden" });
  assert.equal(await top(), before);
  // What cannot be decided is said in its card, and moves the next one.
  const asked = [];
  await page.route(/\/api\/approvals$/, async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    asked.push(route.request().postDataJSON().id);
    await route.fulfill({ status: 409, json: { error: { message: "it was settled before" } } });
  });
  await page.evaluate(() => {
    const [first, second] = document.querySelectorAll(".approval");
    const frame = () => new Promise((resolve) => { requestAnimationFrame(resolve); });
    new MutationObserver(async () => {
      await frame();
      await frame();
      second.querySelector(".row button.primary").click();
      document.body.dataset.clicked = "1";
    }).observe(first.querySelector(".error"), { attributes: true, attributeFilter: ["hidden"] });
  });
  await long.getByRole("button", { name: "Deny" }).click();
  await page.locator("body[data-clicked]").waitFor();
  assert.deepEqual(asked, [await long.getAttribute("data-id")]);
});
