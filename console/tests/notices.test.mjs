// Notices and the guided tour, in a real browser.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { open, rule, say } from "./house.mjs";

const TEXT = "The tea is ready. <img src=x onerror=alert(1)>";
const tells = (text, urgency) => ({ calls: [{ name: "notify_user", arguments: { text, urgency } }] });
const shot = (page, name) => process.env.EMBODY_SHOTS ? page.screenshot({ path: join(process.env.EMBODY_SHOTS, `${name}.png`) }) : null;

test("a notice is an entry with an unread mark, and no line of a conversation", async () => {
  const house = await open([
    rule("hello", { text: "Hello." }), rule("tell me", tells(TEXT, "high")), rule("tell me", { text: "Told." }, 1),
    rule("and again", tells("Post is here.")), rule("and again", { text: "Told again." }, 1),
  ]);
  const page = await house.page();
  assert.ok(await page.locator("#notices-unread").isHidden());
  await page.locator("#notices-open").click();
  await page.getByText("What an agent tells you outside of a conversation").waitFor();
  await page.keyboard.press("Escape");
  await say(page, "hello");
  await page.getByText("Hello.", { exact: true }).waitFor();
  await page.locator("#new").click();
  await say(page, "tell me");
  await page.getByText("Told.", { exact: true }).waitFor();
  // Announced without a reload.
  await page.locator("#notices-unread").getByText("1", { exact: true }).waitFor();
  await say(page, "and again");
  await page.getByText("Told again.").waitFor();
  await page.locator("#notices-unread").getByText("2", { exact: true }).waitFor();
  await page.locator("#notices-open").click();
  const entries = page.locator("#notices-list .notice");
  await entries.nth(1).waitFor();
  assert.deepEqual(await entries.locator(".text").allInnerTexts(), ["Post is here.", TEXT], "markup is text");
  assert.equal(await entries.locator("img").count(), 0);
  const tea = entries.filter({ hasText: "The tea is ready." });
  assert.match(await tea.innerText(), /Unread[\s\S]*\d{4}[\s\S]*urgent[\s\S]*From assistant, conversation on web “tell me”/);
  await shot(page, "notices");
  await tea.getByRole("button", { name: "Mark as read" }).click();
  await page.locator("#notices-unread").getByText("1", { exact: true }).waitFor();
  await page.locator("#notices-list .notice[data-unread=false]").waitFor();
  assert.deepEqual(await entries.locator(".text").allInnerTexts(), ["Post is here.", TEXT], "the unread one is first");
  await page.locator("#notices-all").click();
  await page.locator("#notices-unread").waitFor({ state: "hidden" });
  await page.locator("#notices-list .notice[data-unread=true]").first().waitFor({ state: "detached" });
  assert.equal(await page.locator("#notices-list .notice").count(), 2);
  await tea.getByRole("link").click();
  await page.getByText("Told.", { exact: true }).waitFor();
  assert.ok(await page.locator("#notices").isHidden());
  // Only the call is in the conversation, as the agent made it.
  assert.ok(!(await page.locator("#messages .words").allInnerTexts()).join().includes("The tea is ready."));
  await page.locator("#threads a").filter({ hasText: "hello" }).click();
  await page.getByText("Hello.", { exact: true }).waitFor();
  assert.equal(await page.locator("#messages > li").count(), 2);
  assert.deepEqual(house.problems, []);
});

test("notices of one user are not shown to another", async () => {
  const house = await open([rule("tell me", tells("Only the owner's.")), rule("tell me", { text: "Told." }, 1)]);
  const page = await house.page();
  await say(page, "tell me");
  await page.locator("#notices-unread").getByText("1", { exact: true }).waitFor();
  const anns = await house.pageOf("ann", "chat");
  await anns.locator("#notices-open").click();
  await anns.getByText("What an agent tells you outside of a conversation").waitFor();
  assert.equal(await anns.locator(".notice").count(), 0);
  const operator = await house.pageOf("owner", "operate");
  await operator.locator("#notices-unread").getByText("1", { exact: true }).waitFor();
  assert.deepEqual(house.problems, []);
});

/** Plays the tour up to its question. */
async function toTheQuestion(page) {
  await page.locator("#tour").click();
  await page.locator("#tour-steps").getByRole("button", { name: "Approve" }).waitFor();
  const text = await page.locator("#tour-steps").innerText();
  for (const part of ["1  A host connects and gets the contract", "runtime_bootstrap {}", "bounce: this call arrived",
    "4  The same call again needs approval", "The workshop is on Thursday."]) assert.ok(text.includes(part), `${part} in ${text}`);
}

test("the guided tour is played to its end, with either answer", async () => {
  const house = await open(null);
  const page = await house.page();
  await shot(page, "tour-offer");
  await toTheQuestion(page);
  await shot(page, "tour-question");
  const steps = page.locator("#tour-steps");
  await steps.getByRole("button", { name: "Approve" }).click();
  await steps.locator(".end").getByText("The message was sent once").waitFor();
  assert.equal(await steps.locator(".step").count(), 8);
  let text = await steps.innerText();
  for (const part of ["You approved.", "5  The message is sent once and recorded", "to ann@example.com: The workshop", "intact  chain"]) assert.ok(text.includes(part), text);
  await shot(page, "tour-end");
  await steps.getByRole("button", { name: "Start again" }).click();
  await steps.getByRole("button", { name: "Deny" }).click();
  await steps.locator(".end").getByText("The message was not sent").waitFor();
  text = await steps.innerText();
  for (const part of ["You denied.", "5  The message is not sent, and that is recorded", "decision  deny"]) assert.ok(text.includes(part), text);
  await page.locator("#tour-close").click();
  assert.ok(await page.locator("#tour-panel").isHidden());
  assert.deepEqual(house.problems, []);
});

test("a tour that is closed ends, and another can start", async () => {
  const house = await open(null);
  const page = await house.page({ viewport: { width: 360, height: 640 } });
  await toTheQuestion(page);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `${wide} pixels`);
  await shot(page, "tour-narrow");
  const other = await house.pageOf("ann", "chat");
  assert.equal(await other.locator("#tour").count(), 0, "it is the owner's");
  await page.keyboard.press("Escape");
  await page.locator("#tour-panel").waitFor({ state: "hidden" });
  // The one that was closed may need a moment to end.
  for (;;) {
    await page.locator("#tour").click();
    const steps = page.locator("#tour-steps");
    await steps.locator(".step, .note.bad").first().waitFor();
    if (await steps.locator(".step").count()) break;
    await page.keyboard.press("Escape");
  }
  await page.locator("#tour-steps").getByRole("button", { name: "Deny" }).click();
  await page.locator("#tour-steps .end").getByText("The message was not sent").waitFor();
});

test("with a model no tour is offered", async () => {
  const house = await open([rule("", { text: "Hello." })]);
  const page = await house.page();
  await page.getByText("Talk to assistant").waitFor();
  assert.equal(await page.locator("#tour").count(), 0);
});
