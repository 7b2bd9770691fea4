// Signing in, in a real browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./house.mjs";

const who = (page) => page.locator("#who").innerText();

test("the printed address works in the tab that asks who is there, and leaves no code in it", async () => {
  const house = await open(null);
  const page = await house.stranger();
  await page.goto(house.base);
  await page.locator("#signin").waitFor();
  await page.evaluate((hash) => { location.hash = hash; }, new URL(house.url).hash);
  await page.locator("#app").waitFor();
  assert.equal(new URL(page.url()).hash, "");
  assert.equal(await who(page), "assistant");
  // One that was used says so in an open page too.
  const other = await house.stranger();
  await other.goto(house.base);
  await other.locator("#signin").waitFor();
  await other.evaluate((hash) => { location.hash = hash; }, new URL(house.url).hash);
  await other.locator("#signin-error").waitFor();
  assert.match(await other.locator("#signin-error").innerText(), /^This code was used already.*\. Get a new code from the terminal/);
  assert.equal(new URL(other.url()).hash, "");
  assert.deepEqual(house.problems, []);
});

test("a fresh code signs in as the owner whoever was there, and one that does not hold changes nothing", async () => {
  const house = await open(null);
  const page = await house.pageOf("ann", "chat");
  assert.equal(await who(page), "ann · assistant");
  const another = await page.context().newPage();
  await another.goto(house.base);
  await another.locator("#app").waitFor();
  const [before] = await page.context().cookies();
  const wrong = `${house.base}/#code=${"0".repeat(64)}`;
  for (const how of ["in the open page", "opened anew"]) {
    if (how === "opened anew") await page.goto("about:blank");
    await page.goto(wrong);
    await page.getByText("signed in as ann").waitFor();
    assert.match(await page.locator("#notice").innerText(), /was used already.*terminal/);
    assert.equal(await who(page), "ann · assistant");
    assert.equal(new URL(page.url()).hash, "");
  }
  await page.goto(house.url);
  await page.locator("#who").getByText("assistant", { exact: true }).waitFor();
  assert.equal(new URL(page.url()).hash, "");
  // Nothing of Ann is left: neither in her other tab, nor in the process.
  await another.locator("#who").getByText("assistant", { exact: true }).waitFor();
  const old = await fetch(`${house.base}/api/me`, { headers: { cookie: `${before.name}=${before.value}` } });
  assert.equal(old.status, 401);
  assert.deepEqual(house.problems, []);
});

test("a token that nobody has leads on", async () => {
  const house = await open(null);
  const page = await house.stranger();
  await page.goto(house.base);
  await page.locator("#secret").fill("embody_nobodys");
  await page.keyboard.press("Enter");
  const said = page.locator("#signin-error");
  await said.waitFor();
  assert.match(await said.innerText(), /^The token is unknown, revoked or expired\. Ask the owner for another/);
  assert.match(await said.locator("code").innerText(), /^embody token add/);
});

test("what is left of one user is not shown to the next", async () => {
  const house = await open(null);
  const page = await house.page();
  await page.locator("#no-model").waitFor();
  assert.match(await page.locator("#no-model").innerText(), new RegExp(house.folder));
  await page.locator("#signout").click();
  await page.locator("#signin").waitFor();
  assert.equal(await page.locator("#no-model").count(), 0);
  await page.locator("#secret").fill(house.token("ann", "chat"));
  await page.keyboard.press("Enter");
  await page.locator("#no-model").waitFor();
  assert.doesNotMatch(await page.locator("#no-model").innerText(), new RegExp(house.folder));
});

test("a page for operating says what it is for", async () => {
  const house = await open(null);
  const page = await house.pageOf("owner", "operate");
  await page.getByText("No pending approvals").waitFor();
  assert.equal(await page.locator("#title").innerText(), "Approvals");
  assert.doesNotMatch(await page.locator("main").innerText(), /below|New conversation/);
  assert.deepEqual(house.problems, []);
});
